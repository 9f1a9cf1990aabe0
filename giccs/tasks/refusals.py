"""Which ability does a task need that a model has not, and which models have it?"""

from __future__ import annotations

from typing import Any

from giccs.models.abilities import (
    ChatTemplateModel,
    DescribedModel,
    EncodableModel,
    GeneratingModel,
    LikelihoodModel,
    PairModel,
    VectorModel,
)

__all__ = ["missing_ability_reason", "no_generation_reason"]

ENCODER_HINT = "an encoder", "encoder:FOLDER, package:minilm or static:FILE"
ABILITY_HINTS: dict[type, tuple[str, str, str]] = {
    PairModel: ("compares no texts", *ENCODER_HINT),
    VectorModel: ("gives no vectors", *ENCODER_HINT),
    LikelihoodModel: (
        "gives no likelihoods",
        "a causal language model",
        "causal:FOLDER, or completions:NAME on a server",
    ),
    GeneratingModel: (
        "writes no text",
        "a model that does",
        "seq2seq:FOLDER, causal:FOLDER or chat:NAME",
    ),
}
"""Ability -> what a model is to be without it, who has it, and how such models are written."""


def missing_ability_reason(model: Any, ability: type, task: str) -> str:
    """Return why a task cannot be asked of a model, and what to do; empty where it has the ability.

    ability: one of the protocols of `giccs.models.abilities`.

    >>> from giccs.models import open_model
    >>> missing_ability_reason(open_model("baseline:chance"), PairModel, "pairwise-sts")
    ''
    >>> missing_ability_reason(open_model("baseline:chance"), VectorModel, "uniformity")
    'gives no vectors; uniformity needs an encoder: encoder:FOLDER, package:minilm or static:FILE'
    """
    if isinstance(model, ability):
        return ""
    problem, kind, examples = ABILITY_HINTS[ability]
    problem = model.description() if isinstance(model, DescribedModel) else problem
    needs_encoder = (kind, examples) == ENCODER_HINT and isinstance(model, EncodableModel)
    encoder = model.encoder_name() if needs_encoder else ""
    suggestion = (
        f"; write {encoder} to take the mean of its hidden states" if encoder else f": {examples}"
    )
    return f"{problem}; {task} needs {kind}{suggestion}"


def no_generation_reason(model: Any, task: str, *, chat_template: bool) -> str:
    """Return why a model cannot answer in words, in a chat template if so wanted; empty where it can."""
    return missing_ability_reason(model, GeneratingModel, task) or no_chat_template_reason(
        model, chat_template=chat_template
    )


def no_chat_template_reason(model: Any, *, chat_template: bool) -> str:
    """Return why a prompt cannot be put into the model's chat template, if that is wanted; else nothing."""
    if not chat_template or isinstance(model, ChatTemplateModel):
        return ""
    return "takes no chat template from here; leave --chat-template out"
