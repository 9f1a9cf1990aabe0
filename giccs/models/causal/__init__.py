"""Causal language models: likelihoods of options after prompts, and generated answers.

tokens      prompts with their options as token ids and trees
forward     forward passes: the tree at once, a shared cache, or option by option
scoring     selection of the forward pass and the batch size
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.models.abilities import (
    ChatTemplateModel,
    EncodableModel,
    GeneratingModel,
    LikelihoodModel,
    LimitedRespondingModel,
    OptionScore,
    Prompt,
    Response,
    Scored,
    check_prompts,
)
from giccs.models.causal.scoring import Scorer
from giccs.models.causal.tokens import Boundary, TokenQuestion, groups_with_prefix, grow_together
from giccs.models.devices import devices
from giccs.models.generation import Greedy, must_fit, responses
from giccs.models.loading import Loaded, Source, find_causal, load
from giccs.models.quantisation import precision, quantised_as, quantised_with
from giccs.models.weights import size_and_licence, unused_weights
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions

__all__ = ["CausalModel", "open_causal"]

READ_AHEAD = 64
"""Number of prompts that are tokenised in one call."""


def open_causal(name: str, location: str = "", options: ModelOptions | None = None) -> CausalModel:
    """Return the model at `location` (or `name`): a folder, a GGUF file or a hub id, without loading weights.

    Raises InputError with a remedy if it is unavailable or not a causal language model.
    """
    from giccs.models import ModelOptions

    options = options or ModelOptions()
    return CausalModel(name, find_causal(name, location or name, options), options)


class CausalModel(
    ChatTemplateModel, EncodableModel, GeneratingModel, LikelihoodModel, LimitedRespondingModel
):
    """A causal language model, loaded on first use."""

    name: str

    def __init__(self, name: str, source: Source, options: ModelOptions) -> None:
        self.name = name
        self._source = source
        self._options = options

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the likelihoods."""
        return {
            "kind": "causal",
            **self._source.identity,
            "dtype": self._source.dtype(self._options.dtype),
            **quantised_as(self._options),
        }

    @property
    def context(self) -> int | None:
        """Maximum number of tokens; None if unlimited."""
        return self._loaded.context

    def encoder_name(self) -> str:
        """Return the name for using its hidden states as vectors; empty for a GGUF file."""
        location = self.name.removeprefix("causal:")
        return "" if self._source.gguf else f"encoder:{location}"

    def score(self, prompts: Sequence[Prompt], progress: Progress = silent) -> Scored:
        """Return the log-likelihood of each option of each prompt.

        A prompt that is too long for the model is replaced by the first of its shorter prompts that fits with
        its longest option. Raises InputError with all prompts for which none fits, and all empty options.
        Equal questions, equal options and equal prefixes are computed once; those of adjacent questions
        where questions share passes, which is not the case in half precision on a CPU.
        """
        check_prompts(self.name, prompts)
        texts, questions = self._encoded(prompts)
        option_logprobs = self._logprobs(list(dict.fromkeys(questions)), progress)
        options = tuple(
            tuple(
                OptionScore(float(logprobs.sum()), len(logprobs), len(option.lstrip().encode()))
                for option, logprobs in zip(prompt.options, option_logprobs[question], strict=True)
            )
            for prompt, question in zip(prompts, questions, strict=True)
        )
        cut = sum(text != prompt.text for text, prompt in zip(texts, prompts, strict=True))
        return Scored(texts, options, cut)

    def generate(
        self, prompts: Sequence[str], max_tokens: int, progress: Progress = silent
    ) -> list[str]:
        """Return the text of `respond`."""
        return [answer.text for answer in self.respond(prompts, max_tokens, progress)]

    def response_settings(self) -> Mapping[str, Any]:
        """Return no settings: answers are greedy."""
        return {}

    def respond(
        self, prompts: Sequence[str], max_tokens: int, progress: Progress = silent
    ) -> list[Response]:
        """Return the greedy continuation of each prompt, of at most `max_tokens` tokens.

        Raises InputError for every prompt that is too long for the model; prompts are never truncated.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; expected 1 or more")
        loaded = self._loaded
        ids = [self._boundary.prompt(text) for text in prompts]
        for prompt in ids:
            loaded.counter.ids(prompt)
        after = max_tokens - 1  # The last token is never read.
        must_fit(self.name, ids, context=self.context, vocabulary=loaded.vocabulary, after=after)
        return responses(self._greedy, loaded.tokenizer, ids, max_tokens, progress)

    def fits_prompts(self, prompts: Sequence[str], max_tokens: int) -> list[bool]:
        """Return whether each prompt and an answer of at most `max_tokens` tokens fit into the context."""
        maximum = math.inf if self.context is None else self.context + 1 - max_tokens
        return [len(self._boundary.prompt(text)) <= maximum for text in prompts]

    def render_chat(self, text: str) -> str:
        """Return `text` as a user message followed by the generation prompt, using the model's chat
        template."""
        if not self._loaded.tokenizer.chat_template:
            raise self._refused("has no chat template; omit --chat-template")
        return self._boundary.chat(text)

    def chat_date(self) -> str:
        """Return today's date if the chat template writes it into prompts, as that of Llama 3."""
        return date.today().isoformat() if "strftime_now" in self._chat_template_text() else ""

    def _chat_template_text(self) -> str:
        folder = self._source.folder
        files = [folder / "tokenizer_config.json", *sorted(folder.rglob("*.jinja"))]
        return "".join(file.read_text("utf-8") for file in files if file.is_file())

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the type of forward pass."""
        from importlib.metadata import version

        return {
            **{package: version(package) for package in ("torch", "transformers")},
            **quantised_with(self._options),
            "device": devices(self._loaded.model),
            **size_and_licence(self._loaded.model, self._source.folder),
            **unused_weights(self._loaded.unused),
            **self._settings_used(),
        }

    def _settings_used(self) -> Mapping[str, Any]:
        """Return the settings of option scoring, or else of text generation."""
        if "_greedy" in vars(self) and "_scorer" not in vars(self):
            return {"forward": "written, greedy", **self._greedy.settings_used()}
        trial = self._scorer.trial
        optional = {"not_used": trial.refused, "batch_deviation": self._scorer.batch_deviation}
        return {
            "batch_size": self._scorer.largest,
            "forward": trial.forward_pass.name,
            "self_check_deviation": trial.deviation,
            **{name: value for name, value in optional.items() if value},
        }

    def _encoded(
        self, prompts: Sequence[Prompt]
    ) -> tuple[tuple[str, ...], tuple[TokenQuestion, ...]]:
        encoded_questions, problems = [], []
        if prompts:
            _ = self._loaded  # A model that cannot be loaded is a single error, not one per prompt.
        for n, prompt in enumerate(prompts, start=1):
            if (n - 1) % READ_AHEAD == 0:
                self._boundary.read_ahead(prompts[n - 1 : n - 1 + READ_AHEAD])
            try:
                encoded_questions.append(self._fitting(prompt))
            except ValueError as error:
                problems.append(Problem(self.name, None, f"prompt {n}: {error}"))
        if problems:
            raise InputError(problems)
        texts, questions = zip(*encoded_questions, strict=True) if encoded_questions else ((), ())
        return texts, questions

    def _fitting(self, prompt: Prompt) -> tuple[str, TokenQuestion]:
        """Return the first text that fits, and its tokens."""
        for text, question in self._boundary.readings(prompt):
            if (largest := max(map(max, question.ids))) >= (
                vocabulary_size := self._loaded.vocabulary
            ):
                raise ValueError(
                    f"the tokenizer has token {largest}, but the vocabulary of the model has "
                    f"{vocabulary_size} entries"
                )
            if self.context is None or question.length <= self.context:
                self._count(question)
                return text, question
        message = (
            f"has {question.length} tokens in its shortest form; the maximum is {self.context}"
        )
        raise ValueError(message)

    def _count(self, question: TokenQuestion) -> None:
        """Count the tokens of a prompt once, and those of each option."""
        counter, start = self._loaded.counter, question.start
        counter.ids(question.ids[0][:start])
        for ids in question.ids:
            counter.ids(ids[start:])

    def _logprobs(
        self, questions: Sequence[TokenQuestion], progress: Progress
    ) -> dict[TokenQuestion, list[NDArray[np.float64]]]:
        if not questions:
            return {}
        # In half precision, the numbers of a question would depend on its neighbours, as in a batch.
        shares = self._scorer.shares_prefixes
        groups = list(groups_with_prefix(questions)) if shares else [[q] for q in questions]
        answers = self._scorer.run(list(map(grow_together, groups)))
        logprobs_by_question = {}
        for index, logprobs in progress(answers, "scoring", len(groups)):
            rest = iter(logprobs)  # From the common prefix on, as far as the questions differ.
            for question in groups[index]:
                logprobs_by_question[question] = [
                    next(rest)[question.start - len(ids) :] for ids in question.ids
                ]
        if any(
            np.isnan(option_logprobs).any()
            for logprobs in logprobs_by_question.values()
            for option_logprobs in logprobs
        ):
            raise self._refused("returns NaN; float16 may overflow, try --dtype float32")
        return logprobs_by_question

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
