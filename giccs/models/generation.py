"""What does a model write after a prompt? Its likeliest next token, again and again, in batches.

What stands beside a prompt in its batch must not show in its answer. Prompts of about one length go
together; where they differ, the shorter are padded, but only in a model that was found to give the same
with padding as without. In half precision neighbours show in the third digit, which is enough to turn an
answer: there a prompt has the model for itself, unless the user says how many are to share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from giccs.models.devices import input_device
from giccs.models.encoding import out_of_memory
from giccs.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TOLERANCE", "Greedy", "answered", "must_fit"]

Ids = tuple[int, ...]

TOKENS = {"cpu": 4096, "cuda": 32768}
"""Most tokens, read and written, of a batch where the user does not say how many prompts share it."""
TOLERANCE = {"float32": 1e-4, "float16": 0.03, "bfloat16": 0.25}
"""Type of the weights -> by how much ln p of a token may differ on average, in nats: what rounding does."""
SPECIAL = (
    "bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id"
)  # fmt: skip
"""What is taken from a model's own settings; its sampling, penalties and lengths are not."""
TRIED = 2
"""Tokens that are written to see whether padding shows: the first, and one that the cache takes part in."""


class Greedy:
    """Writes after prompts by one model."""

    def __init__(self, model: Any, tokenizer: Any, dtype: str, batch_size: int | None) -> None:
        self._model, self._dtype = model, dtype
        self._reads_first = bool(model.config.is_encoder_decoder)
        self._ends = _ends(model, tokenizer)
        self._pad = _first(tokenizer.pad_token_id, *self._ends, 0)
        self._settings = _settings(model, self._ends, self._pad)
        self._prompts = batch_size or (None if dtype == "float32" else 1)
        self._tried = 0
        self.largest = 1
        """Most prompts that shared a batch."""
        self.padding: bool | None = None
        """Does padding leave the model's answers alone? None where all prompts were of one length."""

    def run(self, prompts: Sequence[Ids], max_tokens: int) -> Iterator[tuple[int, Ids]]:
        """Yield (place of a prompt, the tokens written after it, at most `max_tokens`), the longest first.

        What ends an answer is left out. ValueError where the model gives no numbers, MemoryError where
        one prompt alone is too much.
        """
        order = sorted(range(len(prompts)), key=lambda place: -len(prompts[place]))
        self._try_padding([prompts[place] for place in order])
        while order:
            places = self._next(order, prompts, max_tokens)
            try:
                answers = self._write([prompts[place] for place in places], max_tokens)
            except (MemoryError, RuntimeError) as error:
                self._less(error, len(places))
                continue
            self.largest = max(self.largest, len(places))
            order = order[len(places) :]
            yield from zip(places, answers, strict=True)

    def _next(self, order: Sequence[int], prompts: Sequence[Ids], max_tokens: int) -> Sequence[int]:
        """Return the places of the next batch; its first prompt is its longest."""
        longest = len(prompts[order[0]])
        kind = self._model.device.type
        budget = TOKENS.get(kind, TOKENS["cpu"]) // (longest + max_tokens)
        places = order[: self._prompts or max(1, budget)]
        if self.padding:
            return places
        return [place for place in places if len(prompts[place]) == longest]

    def _less(self, error: BaseException, prompts: int) -> None:
        """Halve after a batch that did not fit into memory."""
        if not out_of_memory(error):
            raise error
        if prompts == 1:
            raise MemoryError("one prompt alone does not fit into memory") from error
        self._prompts = prompts // 2

    def _write(self, prompts: Sequence[Ids], max_tokens: int) -> list[Ids]:
        rows = self._generate(prompts, len(prompts[0]), max_new_tokens=max_tokens).tolist()
        # An encoder-decoder gives back what opens its answer, a causal model the prompt.
        start = 1 if self._reads_first else len(prompts[0])
        return [_until(row[start:], self._ends) for row in rows]

    def _try_padding(self, prompts: Sequence[Ids]) -> None:
        """Find out whether the shortest prompt, padded to the longest, has the same likelihoods as alone."""
        if not prompts or self._prompts == 1 or self.padding is False:
            return
        shortest, longest = prompts[-1], len(prompts[0])
        if len(shortest) < longest and longest > self._tried:
            self._tried, self.padding = longest, self._agree(shortest, longest)

    def _agree(self, prompt: Ids, width: int) -> bool:
        alone = self._likelihoods(prompt, len(prompt))
        try:
            padded = self._likelihoods(prompt, width)
        except Exception:
            return False  # an architecture that takes no padding says so in a manner of its own
        return bool(((alone - padded).abs().mean(dim=-1) <= TOLERANCE[self._dtype]).all())

    def _likelihoods(self, prompt: Ids, width: int) -> Tensor:
        """Return (TRIED, vocabulary) ln p of what may be written after a prompt that is padded to `width`."""
        import torch

        found = self._generate(
            [prompt],
            width,
            max_new_tokens=TRIED,
            min_new_tokens=TRIED,
            output_logits=True,
            return_dict_in_generate=True,
        )
        return torch.log_softmax(torch.cat(found.logits).float(), dim=-1)

    def _generate(self, prompts: Sequence[Ids], width: int, **settings: Any) -> Any:
        """Call the model's own generation, with nothing set but what is said here."""
        import torch
        from transformers import LogitsProcessorList

        ids, mask = torch.tensor([self._padded(prompt, width) for prompt in prompts]).unbind(dim=-1)
        device = input_device(self._model)
        before = self._model.generation_config
        self._model.generation_config = self._settings  # it fills in what the call leaves open
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
        """Return (token, is it read?) pairs; what is written must follow its prompt without a gap."""
        read = [(token, 1) for token in prompt]
        padding = [(self._pad, 0)] * (width - len(prompt))
        return read + padding if self._reads_first else padding + read


def answered(
    greedy: Greedy, tokenizer: Any, prompts: Sequence[Ids], max_tokens: int, progress: Progress
) -> list[str]:
    """Return the answers to prompts as text, in their order; equal prompts are answered once."""
    distinct = list(dict.fromkeys(prompts))
    work = progress(greedy.run(distinct, max_tokens), "answering", len(distinct))
    found = {
        distinct[place]: tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        for place, ids in work
    }
    return [found[prompt] for prompt in prompts]


def must_fit(
    name: str, prompts: Sequence[Ids], *, context: int | None, vocabulary: int, after: int
) -> None:
    """Raise InputError for every prompt that a model cannot read whole.

    `context` is the number of tokens it reads, None where nothing limits it; `after` how many of them are
    for what it writes.
    """
    faults = (
        (n, _fault(prompt, context, vocabulary, after)) for n, prompt in enumerate(prompts, 1)
    )
    problems = [Problem(name, None, f"prompt {n} {fault}") for n, fault in faults if fault]
    if problems:
        raise InputError(problems)


def _fault(prompt: Ids, context: int | None, vocabulary: int, after: int) -> str:
    if not prompt:
        return "is empty, and the tokenizer has no token for a beginning"
    if max(prompt) >= vocabulary:
        return f"has token {max(prompt)} of the tokenizer's, and the model knows {vocabulary}"
    if context is not None and len(prompt) + after > context:
        room = f", {after} of them for the answer" if after else ""
        return f"has {len(prompt)} tokens; the model reads {context}{room}"
    return ""


def _must_be_numbers(ids: Tensor, logits: Tensor) -> Tensor:
    """Pass logits on; ValueError where one is NaN: the likeliest token would be the first, without a word."""
    if logits.isnan().any():
        raise ValueError("gives no numbers (NaN); float16 overflows, --dtype float32 may help")
    return logits


def _settings(model: Any, ends: Sequence[int], pad: int) -> Any:
    from transformers import GenerationConfig

    own = {key: getattr(model.generation_config, key, None) for key in SPECIAL}
    kept = {key: value for key, value in own.items() if value is not None}
    kept |= {"eos_token_id": list(ends) or None, "pad_token_id": pad}
    return GenerationConfig(**kept)  # type: ignore[no-untyped-call]


def _ends(model: Any, tokenizer: Any) -> list[int]:
    """Return the tokens that end an answer: the model's, of which there may be several; the tokenizer's."""
    own = getattr(model.generation_config, "eos_token_id", None)
    several = own if isinstance(own, list) else [own]
    return [end for end in dict.fromkeys([*several, tokenizer.eos_token_id]) if end is not None]


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def _until(ids: Sequence[int], ends: Sequence[int]) -> Ids:
    """Return the ids before the first that is an end.

    >>> _until([5, 6, 2, 0, 0], ends=[2])
    (5, 6)
    """
    place = next((n for n, token in enumerate(ids) if token in ends), len(ids))
    return tuple(ids[:place])
