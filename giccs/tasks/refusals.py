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

__all__ = ["lacking", "unable_to_write"]

ENCODERS = "an encoder", "encoder:FOLDER, package:minilm or static:FILE"
NEEDED: dict[type, tuple[str, str, str]] = {
    PairModel: ("compares no texts", *ENCODERS),
    VectorModel: ("gives no vectors", *ENCODERS),
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


def lacking(model: Any, ability: type, task: str) -> str:
    """Return why a task cannot be asked of a model, and what to do; empty where it has the ability.

    ability: one of the protocols of `giccs.models.abilities`.

    >>> from giccs.models import open_model
    >>> lacking(open_model("baseline:chance"), PairModel, "pairwise-sts")
    ''
    >>> lacking(open_model("baseline:chance"), VectorModel, "uniformity")
    'gives no vectors; uniformity needs an encoder: encoder:FOLDER, package:minilm or static:FILE'
    """
    if isinstance(model, ability):
        return ""
    gap, kind, names = NEEDED[ability]
    gap = model.description() if isinstance(model, DescribedModel) else gap
    wants_encoder = (kind, names) == ENCODERS and isinstance(model, EncodableModel)
    own = model.encoder_name() if wants_encoder else ""
    how = f"; write {own} to take the mean of its hidden states" if own else f": {names}"
    return f"{gap}; {task} needs {kind}{how}"


def unable_to_write(model: Any, task: str, *, chat_template: bool) -> str:
    """Return why a model cannot answer in words, in a chat template if so wanted; empty where it can."""
    return lacking(model, GeneratingModel, task) or without_template(
        model, chat_template=chat_template
    )


def without_template(model: Any, *, chat_template: bool) -> str:
    """Return why a prompt cannot be put into the model's chat template, if that is wanted; else nothing."""
    if not chat_template or isinstance(model, ChatTemplateModel):
        return ""
    return "takes no chat template from here; leave --chat-template out"
