"""Encoder-decoders for text generation: T5, Flan-T5, Tk-Instruct, BART, ...

C-STS (section 4.2) prompts instruction-tuned ones. Their encoder reads the whole prompt at once, so unlike
causal models they do not score options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from giccs.models.abilities import GeneratingModel
from giccs.models.checkpoint import architectures, located, stated_kind
from giccs.models.devices import devices
from giccs.models.generation import Greedy, must_fit, responses
from giccs.models.input_limits import LIMITS, position_limit
from giccs.models.loading import Loaded, Source, checked_source, load
from giccs.models.quantisation import precision, quantised_as, quantised_with
from giccs.models.weights import size_and_licence, unused_weights
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions


def open_seq2seq(name: str, location: str, options: ModelOptions) -> Seq2SeqModel:
    """Return the model in the folder `location`, or of that hub id; weights are loaded later.

    Raises InputError with a remedy if it is not an encoder-decoder for text generation.
    """

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    path = located(location, options.revision, offline=options.offline)
    if not path.is_dir():
        raise refused("is a file; expected a folder or a hub id of an encoder-decoder")
    source, config = checked_source(name, path, options)
    if not config.get("is_encoder_decoder"):
        raise refused(
            "not an encoder-decoder (T5, Flan-T5, ...); use causal: for GPT, Llama and similar models"
        )
    if stated_kind(source.base) != "seq2seq":
        kinds = ", ".join(architectures(config) or ["not stated"])
        raise refused(f"has no text generation head (architecture: {kinds})")
    return Seq2SeqModel(name, source, options)


class Seq2SeqModel(GeneratingModel):
    """An encoder-decoder, loaded on first use."""

    name: str

    def __init__(self, name: str, source: Source, options: ModelOptions) -> None:
        self.name = name
        self._source = source
        self._options = options

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the answers."""
        return {
            "kind": "seq2seq",
            **self._source.identity,
            "dtype": self._source.dtype(self._options.dtype),
            **quantised_as(self._options),
        }

    @cached_property
    def context(self) -> int | None:
        """Maximum number of tokens of the encoder; None if unlimited, as in T5."""
        encoder = self._loaded.model.get_encoder()
        return position_limit(encoder, ("max_encoder_position_embeddings", *LIMITS))

    @cached_property
    def _max_generated(self) -> int | None:
        """Maximum number of tokens of the decoder, which reads all generated tokens except the last, after a
        start token; None if unlimited."""
        decoder = self._loaded.model.get_decoder()
        return position_limit(decoder, ("max_decoder_position_embeddings", *LIMITS))

    def generate(
        self, prompts: Sequence[str], max_tokens: int, progress: Progress = silent
    ) -> list[str]:
        """Return the greedy output for each prompt, of at most `max_tokens` tokens.

        Raises InputError for every prompt that is too long for the model, and for more tokens than its
        decoder has positions; prompts are never truncated.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; expected 1 or more")
        loaded = self._loaded
        if self._max_generated is not None and max_tokens > self._max_generated:
            message = f"generates at most {self._max_generated} tokens; {max_tokens} requested"
            raise InputError(Problem(self.name, None, message))
        ids = (
            [tuple(row) for row in loaded.tokenizer(list(prompts))["input_ids"]] if prompts else []
        )
        must_fit(self.name, ids, context=self.context, vocabulary=loaded.vocabulary, after=0)
        for prompt in ids:
            loaded.counter.ids(prompt)
        answers = responses(self._greedy, loaded.tokenizer, ids, max_tokens, progress)
        return [answer.text for answer in answers]

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the maximum number of prompts in a batch."""
        from importlib.metadata import version

        return {
            **{package: version(package) for package in ("torch", "transformers")},
            **quantised_with(self._options),
            "device": devices(self._loaded.model),
            **size_and_licence(self._loaded.model, self._source.folder),
            **unused_weights(self._loaded.unused),
            **self._greedy.settings_used(),
        }

    @cached_property
    def _loaded(self) -> Loaded:
        dtype = self.identity["dtype"]
        return load(self.name, self._source, self._options, dtype, head="AutoModelForSeq2SeqLM")

    @property
    def _precision(self) -> str:
        return precision(self._options, self.identity["dtype"])

    @cached_property
    def _greedy(self) -> Greedy:
        loaded, batch_size = self._loaded, self._options.batch_size
        return Greedy(loaded.model, loaded.tokenizer, self._precision, batch_size)
