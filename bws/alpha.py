"""From answers to numbers: Krippendorff's alpha, observed agreement, strong agreement.

Each is a function of sums over tuples, so that a resample of tuples costs one more sum.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bws.records import Judgments

__all__ = ["Measures", "measures", "of_tuples", "total"]

Floats = NDArray[np.float64]
Measures = dict[str, dict[str, Floats]]
"""A measure (alpha, observed, strong), then an answer (both, best, worst), to (...,) values."""

AGREEING, STRONG, ONE, PLACES = 0, 1, 2, slice(3, None)
"""The columns of the statistics."""
ROUNDING = 1e-9
"""What a share times a number of annotations may be off: 0.7 * 10 is 7.000000000000001."""


def of_tuples(judgments: Judgments, strong: float) -> tuple[Floats, NDArray[np.int32]]:
    """Return the statistics of the U tuples with at least two judgments, and their groups (U,).

    The statistics are (U, 2, 3 + K), for a tuple and a question (best, worst): pairs of equal answers
    in either order, divided by the tuple's annotators less one; 1 where agreement is strong; 1; and
    how often each place was the answer.
    """
    n_tuples, k = judgments.tuples.members.shape
    unit = 2 * judgments.tuple_of.astype(np.int64) + [[0], [1]]
    cell = unit * k + np.stack([judgments.best, judgments.worst])
    counts = np.bincount(cell.ravel(), minlength=2 * n_tuples * k).reshape(n_tuples, 2, k)
    paired = np.flatnonzero(counts[:, 0].sum(axis=1) >= 2)
    counts = counts[paired]
    size = counts.sum(axis=2)
    statistics = np.ones((len(paired), 2, PLACES.start + k))
    statistics[:, :, AGREEING] = (counts * (counts - 1)).sum(axis=2) / (size - 1)
    statistics[:, :, STRONG] = counts.max(axis=2) >= strong * size - ROUNDING
    statistics[:, :, PLACES] = counts
    return statistics, judgments.tuples.group_of_tuple[paired]


def total(statistics: Floats) -> Floats:
    """Return (2, 3 + K) sums over tuples, to the last bit the same in every order of tuples."""
    sums: Floats = statistics.sum(axis=0)
    sums[:, AGREEING] = [math.fsum(column) for column in statistics[:, :, AGREEING].T]
    return sums


def measures(sums: Floats) -> Measures:
    """Return all measures from (..., 2, 3 + K) sums; ``both`` pools best and worst questions."""
    agreeing, places = sums[..., AGREEING], sums[..., PLACES]
    answers = {
        "both": (agreeing.sum(axis=-1), places.sum(axis=-2)),
        "best": (agreeing[..., 0], places[..., 0, :]),
        "worst": (agreeing[..., 1], places[..., 1, :]),
    }
    with np.errstate(invalid="ignore", divide="ignore"):
        strong = 100 * sums[..., STRONG] / sums[..., ONE]
        return {
            "alpha": {name: _alpha(*found) for name, found in answers.items()},
            "observed": {name: _observed(*found) for name, found in answers.items()},
            "strong": {"best": strong[..., 0], "worst": strong[..., 1]},
        }


def _observed(agreeing: Floats, places: Floats) -> Floats:
    """Return the share of pairs of answers to one question on one tuple that agree."""
    share: Floats = agreeing / places.sum(axis=-1)
    return share


def _expected(places: Floats) -> Floats:
    """Return the share of pairs among all answers that agree; 1 where all are at one place."""
    n = places.sum(axis=-1)
    share: Floats = (places * (places - 1)).sum(axis=-1) / (n * (n - 1))
    return share


def _alpha(agreeing: Floats, places: Floats) -> Floats:
    expected = _expected(places)
    alpha = 1 - (1 - _observed(agreeing, places)) / (1 - expected)
    return np.where(expected < 1, alpha, math.nan)
