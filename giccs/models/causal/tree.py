"""The options of a prompt as one tree of tokens: what they share is computed once.

The prompt is the stem; options part from it, and from each other, where their tokens begin to differ. A
token sees its ancestors and itself, and its position is its depth: to the model each path from the root
is a text of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from giccs.models.causal.boundary import TokenQuestion

__all__ = ["TokenTree", "grow"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TokenTree:
    """N tokens, each after its parent."""

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
