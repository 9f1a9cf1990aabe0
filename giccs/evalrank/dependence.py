"""Dyadic-robust variance of sums over rows that share texts (Fafchamps and Gubert 2007).

MEN contains 3,000 pairs of 751 words, so an error of a model on one word affects about eight pairs, and pairs
are not independent. The variance of a sum over rows is therefore the sum of the products of the contributions
of all rows that have a text in common. Rows with the same texts, in either order, are treated as one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Variances:
    """Variance of a sum under two assumptions about dependence."""

    same_pair: float
    """Only rows with the same texts are dependent."""
    shared_text: float
    """Rows with any text in common are dependent; may be smaller than `same_pair` by chance."""


def variances(contributions: Floats, left: Indices, right: Indices) -> Variances:
    """Return the variances of a sum of centred contributions (N,), given (N,) numbers of each row's texts.

    A row with one text has the same number on both sides. Sums by text count the products of rows with both
    texts in common twice, so sums by pair are subtracted.

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
    """Return (N,) numbers of the first and of the last text of each row of one or two texts.

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
