"""What is asked of a causal language model, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bws.problems import InputError, Problem

__all__ = ["OptionScore", "Prompt", "Scored", "checked"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text and the options that may follow it."""

    text: str
    options: tuple[str, ...]
    """Each follows `text` directly, so it brings its own leading space."""
    shorter: tuple[str, ...] = ()
    """Texts to take where `text` does not fit into the model's context, from longest to shortest."""


@dataclass(frozen=True, slots=True)
class OptionScore:
    """How likely an option is after its prompt."""

    logprob: float
    """Sum of ln p(token | all tokens before it) over the tokens of the option; at most 0."""
    tokens: int
    """How many tokens that sum has, at least 1."""
    bytes: int
    """UTF-8 bytes of the option without the white space it begins with, as in lm-evaluation-harness, where
    that space is the delimiter and no part of the choice."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The answers to a sequence of prompts, in its order."""

    prompts: tuple[str, ...]
    """What the model read: a prompt's text, or the one of `shorter` that was the first to fit."""
    options: tuple[tuple[OptionScore, ...], ...]
    cut: int
    """How many prompts were too long for the model, so that a shorter text stands in."""


def checked(name: str, prompts: Sequence[Prompt]) -> None:
    """Raise InputError for the model `name`, with all prompts that cannot be asked."""
    problems = [
        Problem(name, None, f"prompt {n} {fault}")
        for n, prompt in enumerate(prompts, start=1)
        for fault in _faults(prompt)
    ]
    if problems:
        raise InputError(problems)


def _faults(prompt: Prompt) -> Iterator[str]:
    if not prompt.options:
        yield "has no options; one at least is needed"
    for option in prompt.options:
        if not option.strip():
            yield f"has the empty option {option!r}; an option has a text"
