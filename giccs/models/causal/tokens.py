"""Prompts with their options as token ids, and as one tree of tokens whose shared parts are computed once.

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

import numpy as np
from numpy.typing import NDArray

from giccs.models.abilities import Prompt

__all__ = ["Boundary", "TokenQuestion", "TokenTree", "grow", "shared"]

Ints = NDArray[np.int64]


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


@dataclass(frozen=True)
class TokenTree:
    """N tokens, each after its parent.

    The prompt is the stem; options part from it, and from each other, where their tokens begin to differ. A
    token sees its ancestors and itself, and its position is its depth: to the model each path from the root
    is a text of its own.
    """

    question: TokenQuestion
    tokens: Ints
    """(N,) ids."""
    parents: Ints
    """(N,) places; -1 at a root."""
    paths: tuple[tuple[int, ...], ...]
    """For each option the places of its tokens but the last, which is predicted and never read."""

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def depths(self) -> Ints:
        """(N,) distances from the root."""
        found = np.zeros(len(self), dtype=np.int64)
        for path in self.paths:
            found[list(path)] = np.arange(len(path))
        return found

    def visible(self) -> NDArray[np.bool_]:
        """Return (N, N): does token i see token j?"""
        found = np.eye(len(self), dtype=np.bool_)
        for place, parent in enumerate(self.parents):
            if parent >= 0:
                found[place, : parent + 1] |= found[parent, : parent + 1]
        return found

    @cached_property
    def predictions(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each option and each of its scored tokens: (place of the token before it, its id)."""
        start = self.question.start
        return tuple(
            tuple(zip(path[start - 1 :], ids[start:], strict=True))
            for path, ids in zip(self.paths, self.question.ids, strict=True)
        )


def grow(question: TokenQuestion) -> TokenTree:
    """Return the tree of a question.

    >>> tree = grow(TokenQuestion(((5, 6, 7, 1), (5, 6, 8, 9, 1)), start=2))
    >>> tree.tokens.tolist(), tree.parents.tolist(), tree.depths.tolist()
    ([5, 6, 7, 8, 9], [-1, 0, 1, 1, 3], [0, 1, 2, 2, 3])
    >>> tree.predictions
    (((1, 7), (2, 1)), ((1, 8), (3, 9), (4, 1)))
    """
    places: dict[tuple[int, int], int] = {}
    paths = []
    for ids in question.ids:
        path = []
        at = -1
        for token in ids[:-1]:
            at = places.setdefault((at, token), len(places))
            path.append(at)
        paths.append(tuple(path))
    nodes = np.array(list(places), dtype=np.int64).reshape(-1, 2)
    return TokenTree(question, nodes[:, 1], nodes[:, 0], tuple(paths))
