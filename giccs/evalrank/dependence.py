"""How far may a sum be off where rows share texts?  (Fafchamps and Gubert 2007: dyadic-robust)

MEN has 3,000 pairs of 751 words: what a model gets wrong about a word it gets wrong in eight pairs, so that
pairs are no independent draws. The variance of a sum over rows is then the sum of the products of the moves
of all rows that have a text in common. Rows of the same text or texts are one row, in either order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Variances", "number_texts", "variances"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Variances:
    """The variance of a sum, by two rules."""

    same_pair: float
    """Rows with all texts in common depend on each other."""
    shared_text: float
    """So do rows with any text in common; by chance it can be less."""


def variances(contributions: Floats, left: Indices, right: Indices) -> Variances:
    """Return the variances of a sum of moves (N,), each less its mean; (N,) numbers of each row's texts.

    A row of one text has it on both sides. Sums by text hold the products of rows with both texts in common
    twice, so sums by both are taken off again.

    >>> variances(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 1]), np.array([1, 0, 2]))
    Variances(same_pair=18.0, shared_text=36.0)
    """
    low, high = np.minimum(left, right), np.maximum(left, right)
    _, row = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
    has_two_texts = left != right
    by_row = np.bincount(row.ravel(), contributions)
    texts = np.concatenate([left, right[has_two_texts]])
    by_text = np.bincount(texts, np.concatenate([contributions, contributions[has_two_texts]]))
    by_two_text_row = np.bincount(row.ravel()[has_two_texts], contributions[has_two_texts])
    return Variances(
        float(by_row @ by_row),
        float(by_text @ by_text)
        - (float(by_two_text_row @ by_two_text_row) if len(by_two_text_row) else 0.0),
    )


def number_texts(rows: Sequence[tuple[str, ...]]) -> tuple[Indices, Indices]:
    """Return (N,) numbers of the first and of the last text of each row of one or two.

    >>> number_texts([("a", "b"), ("b",)])
    (array([0, 1]), array([1, 1]))
    """
    number_by_text: dict[str, int] = {}
    text_numbers = [
        (
            number_by_text.setdefault(row[0], len(number_by_text)),
            number_by_text.setdefault(row[-1], len(number_by_text)),
        )
        for row in rows
    ]
    left, right = np.array(text_numbers, dtype=np.intp).reshape(-1, 2).T
    return left, right
