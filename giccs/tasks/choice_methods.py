"""Choice of an option by likelihoods, by log-probabilities of letters, or by a generated answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bws.base.problems import InputError, Problem
from giccs.models.abilities import (
    LetterModel,
    LikelihoodModel,
    LimitedRespondingModel,
    RespondingModel,
)
from giccs.models.shortening import first_fitting
from giccs.tasks.refusals import missing_ability_reason

ABILITIES: Mapping[str, type] = {
    "likelihood": LikelihoodModel,
    "logprobs": LetterModel,
    "generation": RespondingModel,
}
"""Method of choice -> ability of the model."""


def no_choice_reason(model: Any, task: str, choose_by: str | None, answer: str | None) -> str:
    """Return why a model cannot choose by a method, by default any, or an empty string.

    answer: ``letter`` or ``sentence``, None for the default.
    """
    if choose_by is None and isinstance(model, RespondingModel):
        reason = ""
    else:
        reason = missing_ability_reason(model, ABILITIES[choose_by or "likelihood"], task)
    if choose_by == "logprobs" and answer == "sentence":
        reason = reason or "--choose-by logprobs is for letters; omit --answer sentence"
    return reason


def choice_method(model: Any, choose_by: str | None, answer: str | None) -> str:
    """Return the method of choice, ``likelihood``, ``logprobs`` or ``generation``.

    choose_by: the requested method; by default, the first that the model supports. The server of a chat model
    may get a test request. Raises InputError if it does not return the requested log-probabilities.
    """
    if choose_by in ("likelihood", "generation"):
        return str(choose_by)
    if choose_by is None and isinstance(model, LikelihoodModel):
        return "likelihood"
    may_use_letters = isinstance(model, LetterModel) and answer != "sentence"
    if may_use_letters and model.has_letters():
        return "logprobs"
    if choose_by == "logprobs":
        message = "the server returns no log-probabilities of letters; use --choose-by generation"
        raise InputError(Problem(model.name, None, message))
    return "generation"


def fitting_prompts(
    model: Any,
    prompts: Sequence[tuple[str, ...]],
    max_tokens: int,
    chat: Callable[[str], str] | None = None,
) -> list[str]:
    """Return each prompt for a generated answer in its longest form that fits into the model.

    prompts: the forms of each, from longest to shortest; if none fits, the shortest, which the model refuses.
    The longest for models whose context is unknown, such as those on servers, which reject longer ones. chat:
    function that applies a chat template.
    """

    def shown(prompt: str) -> str:
        return chat(prompt) if chat else prompt

    if not isinstance(model, LimitedRespondingModel):
        return [shown(forms[0]) for forms in prompts]

    def fits(forms: Sequence[tuple[int, int]]) -> list[bool]:
        return model.fits_prompts([shown(prompts[index][n]) for index, n in forms], max_tokens)

    fitting = first_fitting([*map(len, prompts)], fits)
    return [shown(forms[-1 if n is None else n]) for forms, n in zip(prompts, fitting, strict=True)]
