"""Which ability does a task need that a model has not, and which models have it?"""

from __future__ import annotations

from typing import Any

__all__ = ["lacking", "unable_to_write"]

ENCODERS = "an encoder", "encoder:FOLDER, package:minilm or static:FILE"
NEEDED = {
    "pair_scores": ("compares no texts", *ENCODERS),
    "vectors": ("gives no vectors", *ENCODERS),
    "score": (
        "gives no likelihoods",
        "a causal language model",
        "causal:FOLDER, or completions:NAME on a server",
    ),
    "generate": (
        "writes no text",
        "a model that does",
        "seq2seq:FOLDER, causal:FOLDER or chat:NAME",
    ),
}
"""Method of a model -> what it is to be without it, who has it, and how such models are written."""


def lacking(model: Any, ability: str, task: str) -> str:
    """Return why a task cannot be asked of a model, and what to do; empty where it has the ability.

    >>> from giccs.models import open_model
    >>> lacking(open_model("baseline:chance"), "pair_scores", "pairwise-sts")
    ''
    >>> lacking(open_model("baseline:chance"), "vectors", "uniformity")
    'gives no vectors; uniformity needs an encoder: encoder:FOLDER, package:minilm or static:FILE'
    """
    if hasattr(model, ability):
        return ""
    gap, kind, names = NEEDED[ability]
    gap = getattr(model, "description", gap)
    own = getattr(model, "as_encoder", "") if (kind, names) == ENCODERS else ""
    how = f"; write {own} to take the mean of its hidden states" if own else f": {names}"
    return f"{gap}; {task} needs {kind}{how}"


def unable_to_write(model: Any, task: str, *, chat_template: bool) -> str:
    """Return why a model cannot answer in words, in a chat template if so wanted; empty where it can."""
    return lacking(model, "generate", task) or without_template(model, chat_template=chat_template)


def without_template(model: Any, *, chat_template: bool) -> str:
    """Return why a prompt cannot be put into the model's chat template, if that is wanted; else nothing."""
    if not chat_template or hasattr(model, "render_chat"):
        return ""
    return "takes no chat template from here; leave --chat-template out"
