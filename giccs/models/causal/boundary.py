"""Text to token ids, and where the option begins.

As in lm-evaluation-harness, a prompt and its option are encoded together, and the white space at the
prompt's end belongs to the option. Where the tokenizer merges the prompt's last letters with the
option's first ones, the harness keeps the prompt's own tokens and drops as many of the whole's; here
the tokens of the whole stand, and all options of a prompt are scored from the first place at which
one of them parts from the prompt, so that they stay comparable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from giccs.models.causal.records import Prompt

__all__ = ["Boundary", "TokenQuestion", "shared"]


@dataclass(frozen=True, slots=True)
class TokenQuestion:
    """A prompt's options as token ids, each with the prompt before it."""

    ids: tuple[tuple[int, ...], ...]
    start: int
    """Place of the first token that is scored, at least 1; before it all options are the same."""

    @property
    def length(self) -> int:
        """Number of tokens that the model reads for the longest option; its last one is only predicted."""
        return max(map(len, self.ids)) - 1


class Boundary:
    """Encodes prompts for one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def readings(self, prompt: Prompt) -> Iterator[tuple[str, TokenQuestion]]:
        """Yield the prompt's text encoded, then each shorter one; nothing is encoded before it is needed."""
        for text in (prompt.text, *prompt.shorter):
            yield text, self.encode(text, prompt.options)

    def encode(self, text: str, options: Sequence[str]) -> TokenQuestion:
        """Return the token ids of `text` with each option, and where they begin to be scored.

        ValueError where nothing stands before the option and the tokenizer has no token for a beginning.
        """
        kept = text.rstrip()
        alone, *wholes = self._ids([kept, *(text + option for option in options)])
        start = min(shared(alone, whole) for whole in wholes)
        first = self._first_ids(kept, needed=start == 0)
        ids = tuple((*first, *whole) for whole in wholes)
        if any(len(one) <= len(first) + start for one in ids):
            raise ValueError("an option has no tokens of its own")
        return TokenQuestion(ids, len(first) + start)

    def prompt(self, text: str) -> tuple[int, ...]:
        """Return the token ids of a text that is to be written on; none where nothing can stand for it."""
        (ids,) = self._ids([text])
        try:
            return (*self._first_ids(text, needed=not ids), *ids)
        except ValueError:
            return ()

    def _ids(self, texts: list[str]) -> list[list[int]]:
        found: list[list[int]] = self._tokenizer(texts, add_special_tokens=False)["input_ids"]
        return found

    def _first_ids(self, text: str, *, needed: bool) -> list[int]:
        """Return what stands before a text that does not bring it itself, as a chat template may."""
        begin = self._tokenizer.bos_token
        if self._special and not (begin and text.startswith(begin)):
            return self._special
        if not needed:
            return []
        for token in (self._tokenizer.bos_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return [token]
        raise ValueError("the prompt is empty, and the tokenizer has no token for a beginning")

    @cached_property
    def _special(self) -> list[int]:
        """Return the special tokens before a text; those that some tokenizers set behind it are left out."""
        plain = self._tokenizer("a", add_special_tokens=False)["input_ids"]
        whole = self._tokenizer("a")["input_ids"]
        before = (n for n in range(len(whole)) if whole[n : n + len(plain)] == plain)
        return list(whole[: next(before, 0)])


def shared(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return how many tokens two sequences have in common from their beginnings.

    >>> shared([1, 2, 3], [1, 2, 4, 5])
    2
    """
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
