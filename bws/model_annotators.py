"""Judgments of language models, distinguished from those of people by their annotator.

The annotator of a model's judgments is ``model:NAME@REVISION``. A model may judge a tuple several times: in
several orders of the items, by repeated calls, and with several prompts. The columns ``prompt`` and ``run``
of a file of judgments distinguish these judgments. Judgments of models and of people are never pooled
unasked: `bws.records.Judgments.canonical`, from which all results are computed, refuses a mixture.
"""

from __future__ import annotations

MODEL_PREFIX = "model:"
RUN_COLUMNS = ("prompt", "run")
"""Columns that distinguish the judgments of one tuple by one model."""
DEFAULT_EPSILON = 0.1
"""Margin of the alternative annotator test, the strictest of the recommended values: 0.1 for crowd workers,
0.15 for skilled annotators, 0.2 for experts (Calderon et al. 2025, section 3.3)."""


def is_model(annotator: str) -> bool:
    """Return whether an annotator is a language model.

    >>> is_model("model:causal:gpt2@main"), is_model("worker-7")
    (True, False)
    """
    return annotator.startswith(MODEL_PREFIX)


def model_annotator(name: str, revision: str) -> str:
    """Return the annotator of a model's judgments.

    >>> model_annotator("chat:gpt-4o-mini", "2024-07-18"), model_annotator("package:smollm2", "")
    ('model:chat:gpt-4o-mini@2024-07-18', 'model:package:smollm2')
    """
    return f"{MODEL_PREFIX}{name}" + (f"@{revision}" if revision else "")


def model_name(annotator: str) -> str:
    """Return the name of a model with its revision, for readers.

    >>> model_name("model:chat:gpt-4o-mini@2024-07-18")
    'chat:gpt-4o-mini@2024-07-18'
    """
    return annotator.removeprefix(MODEL_PREFIX)
