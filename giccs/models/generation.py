"""Greedy text generation in batches.

The other prompts of a batch must not affect an answer. Prompts of similar length are batched together.
Different lengths are padded, but only for a model that was verified to give equal results with padding. In
half precision, batch composition changes the third digit, which can change an answer. On a CPU, prompts are
therefore processed one at a time, unless the user specifies a batch size. On a GPU, which is then several
times faster, the first and the last prompt of each larger batch are compared with the same prompts alone, and
the batch is halved where they differ by more than `TOLERANCE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from giccs.models.abilities import Response
from giccs.models.checkpoint import first_line
from giccs.models.devices import free_memory, input_device, retry_out_of_memory
from giccs.models.model_errors import ModelFaultError, out_of_memory
from giccs.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

Ids = tuple[int, ...]

TOKENS = {"cpu": 4096, "cuda": 32768}
"""Maximum number of tokens, read and generated, of a batch without a specified batch size."""
TOLERANCE = {"float32": 1e-4, "float16": 0.03, "bfloat16": 0.25}
"""Data type of the weights -> tolerated mean difference of ln p of a token, in nats, due to rounding."""
SPECIAL = (
    "bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id"
)  # fmt: skip
"""Settings used from the model's generation config; sampling, penalties and lengths are ignored."""
TRIED = 2
"""Number of tokens generated to test padding: the first one, and one that uses the cache."""


class Greedy:
    """Generates answers with one model."""

    def __init__(self, model: Any, tokenizer: Any, dtype: str, batch_size: int | None) -> None:
        self._model, self._dtype = model, dtype
        self._reads_first = bool(model.config.is_encoder_decoder)
        self._ends = _ends(model, tokenizer)
        self._pad = _first(tokenizer.pad_token_id, *self._ends, 0)
        self._settings = _settings(model, self._ends, self._pad)
        self._is_checked = not (dtype == "float32" or batch_size)
        on_cpu = input_device(model).type == "cpu"
        self._prompts = batch_size or (1 if self._is_checked and on_cpu else None)
        self._tried = 0
        self.batch_deviation = 0.0
        """Largest difference of a token's ln p between a batch and a single prompt, in nats."""
        self.largest = 1
        """Maximum number of prompts in a batch so far."""
        self.padding: bool | None = None
        """Whether padding leaves the answers unchanged; None if all prompts had the same length."""
        self.padding_refused = ""
        """The error of a padded prompt, if there was one."""

    def run(self, prompts: Sequence[Ids], max_tokens: int) -> Iterator[tuple[int, Ids]]:
        """Yield (index of a prompt, at most `max_tokens` generated tokens), the longest prompts first.

        End tokens are removed. Raises ModelFaultError if the model returns NaN, and MemoryError if a single
        prompt does not fit.
        """
        order = sorted(range(len(prompts)), key=lambda place: -len(prompts[place]))
        self._try_padding([prompts[index] for index in order])
        while order:
            batch_indices = self._next(order, prompts, max_tokens)
            batch = [prompts[index] for index in batch_indices]
            try:
                if not self._matches_single_prompts(batch):
                    self._prompts = len(batch) // 2
                    continue
                answers = self._write(batch, max_tokens)
            except (MemoryError, RuntimeError) as error:
                self._less(error, len(batch))
                continue
            self.largest = max(self.largest, len(batch_indices))
            order = order[len(batch_indices) :]
            yield from zip(batch_indices, answers, strict=True)

    def settings_used(self) -> dict[str, Any]:
        """Return the largest batch, its deviation from single prompts, and why padding is not used."""
        optional = {
            "batch_deviation": self.batch_deviation,
            "not_used": {"padding": self.padding_refused} if self.padding_refused else {},
        }
        return {
            "batch_size": self.largest,
            **{name: value for name, value in optional.items() if value},
        }

    def _next(self, order: Sequence[int], prompts: Sequence[Ids], max_tokens: int) -> Sequence[int]:
        """Return the indices of the next batch; its first prompt is the longest."""
        longest = len(prompts[order[0]])
        kind = self._model.device.type
        budget = TOKENS.get(kind, TOKENS["cpu"]) // (longest + max_tokens)
        batch_indices = order[: self._prompts or max(1, budget)]
        if self.padding:
            return batch_indices
        return [index for index in batch_indices if len(prompts[index]) == longest]

    def _less(self, error: BaseException, prompts: int) -> None:
        """Halve the batch size after a batch ran out of memory."""
        if not out_of_memory(error):
            raise error
        if prompts == 1:
            raise MemoryError("a single prompt does not fit into memory") from error
        self._prompts = prompts // 2
        free_memory()

    def _write(self, prompts: Sequence[Ids], max_tokens: int) -> list[Ids]:
        rows = self._generate(prompts, len(prompts[0]), max_new_tokens=max_tokens).tolist()
        # The output begins with the decoder start tokens (encoder-decoder) or the prompt (causal model).
        start = 1 if self._reads_first else len(prompts[0])
        return [_until(row[start:], self._ends) for row in rows]

    def _try_padding(self, prompts: Sequence[Ids]) -> None:
        """Test whether the shortest prompt has the same likelihoods when padded to the longest."""
        if not prompts or self._prompts == 1 or self.padding is False:
            return
        shortest, longest = prompts[-1], len(prompts[0])
        if len(shortest) < longest and longest > self._tried:
            self._tried, self.padding = longest, self._agree(shortest, longest)

    def _agree(self, prompt: Ids, width: int) -> bool:
        (alone,) = self._likelihoods([prompt], len(prompt))
        try:
            (padded,) = retry_out_of_memory(lambda: self._likelihoods([prompt], width))
        except Exception as error:
            # Architectures without support for padding raise various exceptions.
            self.padding_refused = first_line(error)
            return False
        return self._are_equal(alone, padded)

    def _are_equal(self, alone: Tensor, together: Tensor) -> bool:
        """Return whether the (TRIED, vocabulary) ln p differ by no more than rounding."""
        return bool(((alone - together).abs().mean(dim=-1) <= TOLERANCE[self._dtype]).all())

    def _matches_single_prompts(self, batch: Sequence[Ids]) -> bool:
        """Return whether the first and the last prompt of a larger batch have their likelihoods alone."""
        if not self._is_checked or len(batch) <= self.largest:
            return True
        together = self._likelihoods(batch, len(batch[0]))
        for place in (0, -1):
            (alone,) = self._likelihoods([batch[place]], len(batch[place]))
            if not self._are_equal(alone, together[place]):
                return False
            best = alone.argmax(dim=-1, keepdim=True)
            differences = (alone - together[place]).abs().gather(-1, best)
            self.batch_deviation = max(self.batch_deviation, float(differences.max()))
        return True

    def _likelihoods(self, prompts: Sequence[Ids], width: int) -> Tensor:
        """Return (prompts, TRIED, vocabulary) ln p of tokens generated after prompts padded to `width`."""
        import torch

        output = self._generate(
            prompts,
            width,
            max_new_tokens=TRIED,
            min_new_tokens=TRIED,
            output_logits=True,
            return_dict_in_generate=True,
        )
        return torch.log_softmax(torch.stack(output.logits, dim=1).float(), dim=-1)

    def _generate(self, prompts: Sequence[Ids], width: int, **settings: Any) -> Any:
        """Call the model's generate method with explicit settings only."""
        import torch
        from transformers import LogitsProcessorList

        ids, mask = torch.tensor([self._padded(prompt, width) for prompt in prompts]).unbind(dim=-1)
        device = input_device(self._model)
        before = self._model.generation_config
        self._model.generation_config = self._settings  # The method fills in missing settings.
        try:
            return self._model.generate(
                ids.to(device),
                attention_mask=mask.to(device),
                logits_processor=LogitsProcessorList([_must_be_numbers]),
                **settings,
            )
        finally:
            self._model.generation_config = before

    def _padded(self, prompt: Ids, width: int) -> list[tuple[int, int]]:
        """Return (token, attention) pairs; generated tokens must follow their prompt without a gap."""
        read = [(token, 1) for token in prompt]
        padding = [(self._pad, 0)] * (width - len(prompt))
        return read + padding if self._reads_first else padding + read


def responses(
    greedy: Greedy, tokenizer: Any, prompts: Sequence[Ids], max_tokens: int, progress: Progress
) -> list[Response]:
    """Return the answers to prompts, in their order; equal prompts are processed once."""
    distinct = list(dict.fromkeys(prompts))
    work = progress(greedy.run(distinct, max_tokens), "answering", len(distinct))
    answers = {
        distinct[index]: Response(
            tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False),
            "length" if len(ids) == max_tokens else "stop",
        )
        for index, ids in work
    }
    return [answers[prompt] for prompt in prompts]


def must_fit(
    name: str, prompts: Sequence[Ids], *, context: int | None, vocabulary: int, after: int
) -> None:
    """Raise InputError for every prompt that a model cannot read completely.

    `context` is the maximum number of tokens, None if unlimited; `after` is the number reserved for the
    answer.
    """
    faults = (
        (n, _fault(prompt, context, vocabulary, after)) for n, prompt in enumerate(prompts, 1)
    )
    problems = [Problem(name, None, f"prompt {n} {fault}") for n, fault in faults if fault]
    if problems:
        raise InputError(problems)


def _fault(prompt: Ids, context: int | None, vocabulary: int, after: int) -> str:
    if not prompt:
        return "is empty, and the tokenizer has no beginning-of-sequence token"
    if max(prompt) >= vocabulary:
        return f"has token {max(prompt)}, but the vocabulary of the model has {vocabulary} entries"
    if context is not None and len(prompt) + after > context:
        room = f", {after} of them for the answer" if after else ""
        return f"has {len(prompt)} tokens; the maximum is {context}{room}"
    return ""


def _must_be_numbers(ids: Tensor, logits: Tensor) -> Tensor:
    """Return the logits; raise ModelFaultError for NaN, for which the first token would silently be the most
    likely."""
    if logits.isnan().any():
        raise ModelFaultError("returns NaN; float16 may overflow, try --dtype float32")
    return logits


def _settings(model: Any, ends: Sequence[int], pad: int) -> Any:
    from transformers import GenerationConfig

    special_ids = {key: getattr(model.generation_config, key, None) for key in SPECIAL}
    settings = {key: value for key, value in special_ids.items() if value is not None}
    settings |= {"eos_token_id": list(ends) or None, "pad_token_id": pad}
    return GenerationConfig(**settings)  # type: ignore[no-untyped-call]


def _ends(model: Any, tokenizer: Any) -> list[int]:
    """Return the end tokens of the model, possibly several, or of the tokenizer."""
    end_ids = getattr(model.generation_config, "eos_token_id", None)
    several = end_ids if isinstance(end_ids, list) else [end_ids]
    return [end for end in dict.fromkeys([*several, tokenizer.eos_token_id]) if end is not None]


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def _until(ids: Sequence[int], ends: Sequence[int]) -> Ids:
    """Return the ids before the first end token.

    >>> _until([5, 6, 2, 0, 0], ends=[2])
    (5, 6)
    """
    end = next((n for n, token in enumerate(ids) if token in ends), len(ids))
    return tuple(ids[:end])
