"""Abilities of models: the protocols that backends declare, and the prompts and scores that they exchange.

A backend lists its abilities as base classes, and mypy compares the signatures of its methods with them. A
model of another package needs no base class: ``isinstance(model, PairModel)`` asks for the methods only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bws.problems import InputError, Problem
from giccs.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ChatTemplateModel",
    "DescribedModel",
    "EncodableModel",
    "GeneratingModel",
    "LikelihoodModel",
    "Model",
    "OptionScore",
    "PairModel",
    "Prompt",
    "Scored",
    "ServedModel",
    "TextPairModel",
    "VectorModel",
    "check_prompts",
]


class Model(Protocol):
    """What every model has."""

    if TYPE_CHECKING:  # not part of isinstance(), which before Python 3.12 evaluates properties

        @property
        def name(self) -> str:
            """As the user called it."""
            ...

        @property
        def identity(self) -> Mapping[str, Any]:
            """What its predictions depend on; known before the weights are loaded."""
            ...

        def environment(self) -> Mapping[str, Any]:
            """Return with what it ran: versions, device, batch size."""
            ...


@runtime_checkable
class PairModel(Model, Protocol):
    """A model that says how similar two texts are."""

    @abstractmethod
    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return (N,) similarities of N pairs, higher for more similar; NaN where there is none."""


@runtime_checkable
class VectorModel(Model, Protocol):
    """A model that gives vectors of texts."""

    @abstractmethod
    def vectors(self, texts: Sequence[str], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) vectors of N texts; NaN in the rows of texts that have none."""


@runtime_checkable
class TextPairModel(Model, Protocol):
    """A model that may read a pair of texts as one input."""

    @abstractmethod
    def separates_pairs(self) -> bool:
        """Tell whether its tokenizer puts a separator between two texts."""


@runtime_checkable
class LikelihoodModel(Model, Protocol):
    """A model that says how likely an option is after a prompt."""

    @abstractmethod
    def score(self, prompts: Sequence[Prompt], progress: Progress) -> Scored:
        """Return the likelihood of each option of each prompt.

        A prompt that is too long for the model is replaced by the first of `shorter` that fits with its
        longest option. InputError names all prompts for which none fits.
        """


@runtime_checkable
class GeneratingModel(Model, Protocol):
    """A model that writes text."""

    @abstractmethod
    def generate(self, prompts: Sequence[str], max_tokens: int, progress: Progress) -> list[str]:
        """Return the likeliest continuation of each prompt, of at most `max_tokens` tokens."""


@runtime_checkable
class ChatTemplateModel(Model, Protocol):
    """A model whose chat template is known."""

    @abstractmethod
    def render_chat(self, text: str) -> str:
        """Return `text` as a user's message with what opens the answer; InputError without a template."""


@runtime_checkable
class ServedModel(Model, Protocol):
    """A model on a server, which caches its answers itself."""

    @abstractmethod
    def usage(self) -> str:
        """Return requests, tokens and cost of the last call, in one line."""


@runtime_checkable
class DescribedModel(Model, Protocol):
    """A model that is for one task only."""

    @abstractmethod
    def description(self) -> str:
        """Return what the model is, for other tasks' refusals."""


@runtime_checkable
class EncodableModel(Model, Protocol):
    """A model whose hidden states can be used as vectors, under another name."""

    @abstractmethod
    def encoder_name(self) -> str:
        """Return that name; empty where there is none."""


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


def check_prompts(name: str, prompts: Sequence[Prompt]) -> None:
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
