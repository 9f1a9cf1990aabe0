"""Reasons why a model does not support a task, with suitable alternatives."""

from __future__ import annotations

from typing import Any

from giccs.models.abilities import (
    ChatTemplateModel,
    DescribedModel,
    EncodableModel,
    GeneratingModel,
    LetterModel,
    LikelihoodModel,
    PairModel,
    RespondingModel,
    SidedModel,
    VectorModel,
)

ENCODER_HINT = "an encoder", "encoder:FOLDER, package:minilm or static:FILE"
ABILITY_HINTS: dict[type, tuple[str, str, str]] = {
    PairModel: ("does not compare texts", *ENCODER_HINT),
    VectorModel: ("returns no vectors", *ENCODER_HINT),
    LikelihoodModel: (
        "returns no likelihoods",
        "a causal language model",
        "causal:FOLDER, or completions:NAME on a server",
    ),
    RespondingModel: (
        "does not generate answers",
        "a text generation model",
        "causal:FOLDER or chat:NAME",
    ),
    LetterModel: (
        "returns no log-probabilities of letters",
        "a chat model on a server",
        "chat:NAME",
    ),
    GeneratingModel: (
        "does not generate text",
        "a text generation model",
        "seq2seq:FOLDER, causal:FOLDER or chat:NAME",
    ),
}
"""Ability -> message for a model without it, kind of a suitable model, and names of such models."""


def missing_ability_reason(model: Any, ability: type, task: str) -> str:
    """Return why a model does not support a task, with a remedy, or an empty string.

    ability: one of the protocols of `giccs.models.abilities`.

    >>> from giccs.models import open_model
    >>> missing_ability_reason(open_model("baseline:chance"), PairModel, "pairwise-sts")
    ''
    >>> missing_ability_reason(open_model("baseline:chance"), VectorModel, "uniformity")
    'returns no vectors; uniformity requires an encoder: encoder:FOLDER, package:minilm or static:FILE'
    """
    if isinstance(model, ability):
        if ability is VectorModel and isinstance(model, SidedModel) and not model.is_symmetric():
            return f"has a prompt for each side of a pair; {task} requires one prompt for all texts"
        return ""
    problem, kind, examples = ABILITY_HINTS[ability]
    problem = model.description() if isinstance(model, DescribedModel) else problem
    needs_encoder = (kind, examples) == ENCODER_HINT and isinstance(model, EncodableModel)
    encoder = model.encoder_name() if needs_encoder else ""
    suggestion = (
        f"; use {encoder} for the mean of its hidden states" if encoder else f": {examples}"
    )
    return f"{problem}; {task} requires {kind}{suggestion}"


def no_generation_reason(model: Any, task: str, *, chat_template: bool) -> str:
    """Return why a model cannot generate text, with a chat template if requested, or an empty string."""
    return missing_ability_reason(model, GeneratingModel, task) or no_chat_template_reason(
        model, chat_template=chat_template
    )


def chat_parameters(model: Any, *, chat_template: bool) -> dict[str, Any]:
    """Return the signature entries of a chat template.

    A model whose template may write the date has a method `chat_date`, which returns it or an empty string.
    """
    date = model.chat_date() if chat_template and hasattr(model, "chat_date") else ""
    return {"chat_template": chat_template, **({"chat_date": date} if date else {})}


def no_chat_template_reason(model: Any, *, chat_template: bool) -> str:
    """Return why the model does not support a requested chat template, or an empty string."""
    if not chat_template or isinstance(model, ChatTemplateModel):
        return ""
    return "does not support chat templates here; omit --chat-template"
