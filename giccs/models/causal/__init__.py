"""Causal language models: the likelihood of options after their prompts, and generated answers.

tokens      prompts with their options as token ids and trees
forward     forward passes: the tree at once, a shared cache, or option by option
scoring     which of them this model supports, and how many questions go through it at once
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.models.abilities import (
    ChatTemplateModel,
    EncodableModel,
    GeneratingModel,
    LikelihoodModel,
    OptionScore,
    Prompt,
    Scored,
    check_prompts,
)
from giccs.models.causal.scoring import Scorer
from giccs.models.causal.tokens import Boundary, TokenQuestion, grow
from giccs.models.devices import devices
from giccs.models.generation import Greedy, answered, must_fit
from giccs.models.loading import Loaded, Source, find_causal, load
from giccs.models.quantisation import precision, quantised_as, quantised_with
from giccs.models.weights import unused_weights
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions

__all__ = ["CausalModel", "open_causal"]


def open_causal(name: str, place: str = "", options: ModelOptions | None = None) -> CausalModel:
    """Return the model at `place` (or `name`): a folder, a GGUF file or a hub id. Weights are loaded later.

    InputError with one sentence on what to do where it cannot be had, and where it is no causal language
    model.
    """
    from giccs.models import ModelOptions

    options = options or ModelOptions()
    return CausalModel(name, find_causal(name, place or name, options), options)


class CausalModel(ChatTemplateModel, EncodableModel, GeneratingModel, LikelihoodModel):
    """A causal language model; loaded when it is first asked."""

    name: str

    def __init__(self, name: str, source: Source, options: ModelOptions) -> None:
        self.name = name
        self._source = source
        self._options = options

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return what the likelihoods depend on."""
        return {
            "kind": "causal",
            "revision": self._source.revision,
            "dtype": self._source.dtype(self._options.dtype),
            **quantised_as(self._options),
        }

    @property
    def context(self) -> int | None:
        """Number of tokens that the model reads at most; None where it has no limit."""
        return self._loaded.context

    def encoder_name(self) -> str:
        """Return the name under which its hidden states are vectors; empty for a GGUF file."""
        place = self.name.removeprefix("causal:")
        return "" if self._source.gguf else f"encoder:{place}"

    def score(self, prompts: Sequence[Prompt], progress: Progress = silent) -> Scored:
        """Return how likely each option of each prompt is.

        A prompt that is too long for the model is replaced by the first of `shorter` that fits with its
        longest option. InputError names all prompts for which none fits, and all that have an empty
        option. Equal questions, equal options and equal beginnings are computed once.
        """
        check_prompts(self.name, prompts)
        texts, questions = self._encoded(prompts)
        found = self._logprobs(list(dict.fromkeys(questions)), progress)
        options = tuple(
            tuple(
                OptionScore(float(logprobs.sum()), len(logprobs), len(option.lstrip().encode()))
                for option, logprobs in zip(prompt.options, found[question], strict=True)
            )
            for prompt, question in zip(prompts, questions, strict=True)
        )
        cut = sum(text != prompt.text for text, prompt in zip(texts, prompts, strict=True))
        return Scored(texts, options, cut)

    def generate(
        self, prompts: Sequence[str], max_tokens: int, progress: Progress = silent
    ) -> list[str]:
        """Return what the model writes after each prompt: at most `max_tokens` tokens, the likeliest each.

        InputError names every prompt that is too long for the model; none is cut.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; 1 or more are allowed")
        loaded = self._loaded
        ids = [self._boundary.prompt(text) for text in prompts]
        for prompt in ids:
            loaded.counter.ids(prompt)
        after = max_tokens - 1  # the last token is never read
        must_fit(self.name, ids, context=self.context, vocabulary=loaded.vocabulary, after=after)
        try:
            return answered(self._greedy, loaded.tokenizer, ids, max_tokens, progress)
        except ValueError as error:
            raise self._refused(str(error)) from error

    def render_chat(self, text: str) -> str:
        """Return `text` as a user's message with what opens the answer, by the model's chat template."""
        if not self._loaded.tokenizer.chat_template:
            raise self._refused("has no chat template; leave --chat-template out")
        message = [{"role": "user", "content": text}]
        rendered: str = self._loaded.tokenizer.apply_chat_template(
            message, add_generation_prompt=True, tokenize=False
        )
        return rendered

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the way that was taken through the model."""
        from importlib.metadata import version

        return {
            **{package: version(package) for package in ("torch", "transformers")},
            **quantised_with(self._options),
            "device": devices(self._loaded.model),
            **unused_weights(self._loaded.unused),
            **self._way(),
        }

    def _way(self) -> Mapping[str, Any]:
        """Return how options were scored, or else how answers were written."""
        if "_greedy" in vars(self) and "_scorer" not in vars(self):
            return {"batch_size": self._greedy.largest, "forward": "written, greedy"}
        trial = self._scorer.trial
        return {
            "batch_size": self._scorer.largest,
            "forward": trial.way.name,
            "self_check_deviation": trial.deviation,
        }

    def _encoded(
        self, prompts: Sequence[Prompt]
    ) -> tuple[tuple[str, ...], tuple[TokenQuestion, ...]]:
        found, problems = [], []
        if prompts:
            _ = self._loaded  # a model that cannot be opened is one error, not one per prompt
        for n, prompt in enumerate(prompts, start=1):
            try:
                found.append(self._fitting(prompt))
            except ValueError as error:
                problems.append(Problem(self.name, None, f"prompt {n}: {error}"))
        if problems:
            raise InputError(problems)
        texts, questions = zip(*found, strict=True) if found else ((), ())
        return texts, questions

    def _fitting(self, prompt: Prompt) -> tuple[str, TokenQuestion]:
        """Return the first text that fits, as it is and as tokens."""
        for text, question in self._boundary.readings(prompt):
            if (largest := max(map(max, question.ids))) >= (known := self._loaded.vocabulary):
                raise ValueError(f"the tokenizer has token {largest}, and the model knows {known}")
            if self.context is None or question.length <= self.context:
                self._count(question)
                return text, question
        message = (
            f"has {question.length} tokens where it is shortest; the model reads {self.context}"
        )
        raise ValueError(message)

    def _count(self, question: TokenQuestion) -> None:
        """Count the tokens of a prompt once, and of each of its options."""
        counter, start = self._loaded.counter, question.start
        counter.ids(question.ids[0][:start])
        for ids in question.ids:
            counter.ids(ids[start:])

    def _logprobs(
        self, questions: Sequence[TokenQuestion], progress: Progress
    ) -> dict[TokenQuestion, list[NDArray[np.float64]]]:
        def answers() -> Iterator[tuple[int, list[NDArray[np.float64]]]]:
            try:
                yield from self._scorer.run([grow(question) for question in questions])
            except ValueError as error:
                raise self._refused(str(error)) from error

        if not questions:
            return {}
        found = {}
        for place, logprobs in progress(answers(), "scoring", len(questions)):
            found[questions[place]] = logprobs
        if any(np.isnan(one).any() for logprobs in found.values() for one in logprobs):
            raise self._refused(
                "gives no numbers (NaN); float16 overflows, --dtype float32 may help"
            )
        return found

    @cached_property
    def _loaded(self) -> Loaded:
        return load(self.name, self._source, self._options, self.identity["dtype"])

    @cached_property
    def _boundary(self) -> Boundary:
        return Boundary(self._loaded.tokenizer)

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self._loaded.model, self._precision, self._options.batch_size)

    @property
    def _precision(self) -> str:
        return precision(self._options, self.identity["dtype"])

    @cached_property
    def _greedy(self) -> Greedy:
        loaded, batch_size = self._loaded, self._options.batch_size
        return Greedy(loaded.model, loaded.tokenizer, self._precision, batch_size)

    def _refused(self, message: str) -> InputError:
        return InputError(Problem(self.name, None, message))
