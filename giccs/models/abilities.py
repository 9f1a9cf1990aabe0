"""Abilities of models: protocols implemented by backends, and the prompts and scores that they exchange.

A backend lists its abilities as base classes, so that mypy checks the signatures of its methods. Models of
other packages need no base class: ``isinstance(model, PairModel)`` only checks for the methods.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bws.base.problems import InputError, Problem
from giccs.models.model_errors import report_errors
from giccs.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Model(Protocol):
    """Interface of all models.

    Subclasses report exceptions of frameworks as InputError, see `giccs.models.model_errors`.
    """

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        report_errors(cls)

    if TYPE_CHECKING:  # Excluded from isinstance(), which evaluates properties before Python 3.12.

        @property
        def name(self) -> str:
            """The name given by the user."""
            ...

        @property
        def identity(self) -> Mapping[str, Any]:
            """Settings that determine the predictions; available before the weights are loaded."""
            ...

        def environment(self) -> Mapping[str, Any]:
            """Return the environment of the run: versions, device, batch size."""
            ...


@runtime_checkable
class PairModel(Model, Protocol):
    """A model that computes the similarity of two texts."""

    @abstractmethod
    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return (N,) similarities of N pairs, higher for more similar pairs; NaN if undefined."""


@runtime_checkable
class OrderedPairModel(PairModel, Protocol):
    """A model whose similarity depends on the order of the two texts."""

    @abstractmethod
    def order_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return (N, 2) similarities of N pairs, in the orders (left, right) and (right, left)."""

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return (N,) similarities: the mean of both orders."""
        similarities: NDArray[np.float64] = self.order_scores(left, right, progress).mean(axis=1)
        return similarities


@runtime_checkable
class VectorModel(Model, Protocol):
    """A model that computes vectors of texts."""

    @abstractmethod
    def vectors(self, texts: Sequence[str], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) vectors of N texts; rows of texts without a vector are NaN."""


@runtime_checkable
class SidedModel(VectorModel, Protocol):
    """A vector model that may encode the two texts of a pair differently, as with a prompt per side."""

    @abstractmethod
    def is_symmetric(self) -> bool:
        """Return whether both sides are encoded alike; if not, `vectors` raises InputError."""

    @abstractmethod
    def side_vectors(
        self, targets: Sequence[str], candidates: Sequence[str], progress: Progress
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return (N, D) vectors of N targets and (M, D) vectors of M candidates, in one space."""


@runtime_checkable
class LimitedModel(Model, Protocol):
    """A model that reads at most a number of tokens, and can tell which inputs it reads completely."""

    @abstractmethod
    def fits(
        self, targets: Sequence[str], candidates: Sequence[str], progress: Progress
    ) -> NDArray[np.bool_]:
        """Return (N,) whether both texts of each pair are read completely, with prompts and special
        tokens."""


@runtime_checkable
class PromptedModel(Model, Protocol):
    """A model that can put a prompt before each text."""

    @abstractmethod
    def with_prompt(self, prompt: str) -> Model:
        """Return this model with another prompt; both share the loaded weights.

        prompt: a value of ``--prompt``, see `giccs.models.encoder_prompts`. Raises InputError for the name
        of an unknown prompt.
        """


@runtime_checkable
class ResizableModel(VectorModel, Protocol):
    """A vector model that computes vectors of fewer dimensions itself."""

    @abstractmethod
    def with_dimensions(self, dimensions: int) -> Model:
        """Return this model with vectors of that many dimensions."""


@runtime_checkable
class TextPairModel(Model, Protocol):
    """A model that may encode a pair of texts as one input."""

    @abstractmethod
    def separates_pairs(self) -> bool:
        """Return whether its tokenizer puts a separator between two texts."""


@runtime_checkable
class LikelihoodModel(Model, Protocol):
    """A model that computes the likelihood of options after a prompt."""

    @abstractmethod
    def score(self, prompts: Sequence[Prompt], progress: Progress) -> Scored:
        """Return the likelihood of each option of each prompt.

        A prompt that is too long for the model is replaced by the first of its shorter prompts that fits with
        its longest option. Raises InputError with all prompts for which none fits.
        """


@runtime_checkable
class GeneratingModel(Model, Protocol):
    """A model that generates text."""

    @abstractmethod
    def generate(self, prompts: Sequence[str], max_tokens: int, progress: Progress) -> list[str]:
        """Return the greedy continuation of each prompt, of at most `max_tokens` tokens."""


@runtime_checkable
class RespondingModel(Model, Protocol):
    """A model that generates answers and states how they ended."""

    @abstractmethod
    def respond(
        self, prompts: Sequence[str], max_tokens: int, progress: Progress
    ) -> list[Response]:
        """Return the answer to each prompt, of at most `max_tokens` tokens including its reasoning."""

    @abstractmethod
    def response_settings(self) -> Mapping[str, Any]:
        """Return the settings of `respond` that are not part of `identity`."""


@runtime_checkable
class LimitedRespondingModel(RespondingModel, Protocol):
    """A generating model that can tell which prompts it reads completely."""

    @abstractmethod
    def fits_prompts(self, prompts: Sequence[str], max_tokens: int) -> list[bool]:
        """Return whether each prompt fits, with an answer of at most `max_tokens` tokens."""


@runtime_checkable
class LetterModel(RespondingModel, Protocol):
    """A model that may return the likelihoods of the letters with which an answer begins."""

    @abstractmethod
    def has_letters(self) -> bool:
        """Return whether it does; a test request may be needed."""

    @abstractmethod
    def letter_responses(self, prompts: Sequence[str], progress: Progress) -> list[Response]:
        """Return the answer of one token to each prompt, with the likelihoods of letters."""


@runtime_checkable
class ChatTemplateModel(Model, Protocol):
    """A model with a chat template."""

    @abstractmethod
    def render_chat(self, text: str) -> str:
        """Return `text` as a user message followed by the generation prompt; raise InputError without a
        template."""


@runtime_checkable
class ServedModel(Model, Protocol):
    """A model on a server, with its own cache of answers."""

    @abstractmethod
    def usage(self) -> str:
        """Return requests, tokens and cost of the last call as one line."""


@runtime_checkable
class DescribedModel(Model, Protocol):
    """A model that is only for one task."""

    @abstractmethod
    def description(self) -> str:
        """Return a description of the model for the error messages of other tasks."""


@runtime_checkable
class EncodableModel(Model, Protocol):
    """A model whose hidden states can be used as vectors, under another name."""

    @abstractmethod
    def encoder_name(self) -> str:
        """Return that name, or an empty string."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of a model to a prompt."""

    text: str
    """Possibly with its reasoning in tags, as in ``<think>...</think>B``."""
    end: str = "stop"
    """``stop``; ``length`` if the limit of tokens was reached; ``refusal`` if the server states one."""
    reasoning: str = ""
    """Reasoning that the server returns separately."""
    letters: Mapping[str, float] = field(default_factory=dict)
    """ln p of the letters among the most likely first tokens, if requested."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text and its possible continuations."""

    text: str
    options: tuple[str, ...]
    """Each follows `text` directly, so it includes its own leading space."""
    shorter: tuple[str, ...] = ()
    """Alternatives for a `text` that exceeds the model's context, from longest to shortest."""


@dataclass(frozen=True, slots=True)
class OptionScore:
    """Log-likelihood of an option after its prompt."""

    logprob: float
    """Sum of ln p(token | preceding tokens) over the tokens of the option; at most 0."""
    tokens: int | None
    """Number of tokens in the sum, at least 1; None if unknown."""
    bytes: int
    """Number of UTF-8 bytes of the option without leading white space, as in lm-evaluation-harness, where
    this space is the delimiter and not part of the choice.
    """


@dataclass(frozen=True, slots=True)
class Scored:
    """The option scores of a sequence of prompts, in the same order."""

    prompts: tuple[str, ...]
    """Inputs of the model: the text of a prompt, or the first shorter text that fits."""
    options: tuple[tuple[OptionScore, ...], ...]
    cut: int
    """Number of prompts replaced by a shorter text because they were too long."""


def check_prompts(name: str, prompts: Sequence[Prompt]) -> None:
    """Raise InputError for the model `name` with all invalid prompts."""
    problems = [
        Problem(name, None, f"prompt {n} {fault}")
        for n, prompt in enumerate(prompts, start=1)
        for fault in _faults(prompt)
    ]
    if problems:
        raise InputError(problems)


def _faults(prompt: Prompt) -> Iterator[str]:
    if not prompt.options:
        yield "has no options; expected at least one"
    for option in prompt.options:
        if not option.strip():
            yield f"has the empty option {option!r}; expected text"
