"""From answers to numbers: Krippendorff's alpha, observed agreement, strong agreement.

Each is a function of sums over tuples, so that a resample of tuples costs one more sum.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bws.records import Judgments

__all__ = ["Measures", "deletions", "measures", "of_tuples", "total"]

Floats = NDArray[np.float64]
Measures = dict[str, dict[str, Floats]]
"""A measure (alpha, observed, strong), then an answer (both, best, worst, joint), to (...,) values."""

AGREEING, STRONG, ONE, PLACES = 0, 1, 2, slice(3, None)
"""The columns of a question's statistics."""
ROUNDING = 1e-9
"""What a share times a number of annotations may be off: 0.7 * 10 is 7.000000000000001."""


def of_tuples(judgments: Judgments, strong: float) -> tuple[Floats, NDArray[np.int32]]:
    """Return the statistics of the U tuples with at least two judgments, and their groups (U,).

    The statistics are (U, 1 + K (K - 1) + 2 (3 + K)). First those of the pairs (best, worst): pairs of
    equal answers in either order, divided by the tuple's annotators less one; and how often each pair
    was the answer. Then for each question (best, worst): equal answers likewise; 1 where agreement is
    strong; 1; and how often each place was the answer.
    """
    counts = [
        _counts(judgments, answers, n).astype(np.float64) for answers, n in _questions(judgments)
    ]
    paired = np.flatnonzero(counts[0].sum(axis=1) >= 2)
    statistics = _statistics([count[paired] for count in counts], strong)
    return statistics, judgments.tuples.group_of_tuple[paired]


def deletions(judgments: Judgments, strong: float) -> Floats:
    """Return (J, S) how the sum of `of_tuples` changes where a judgment is left out.

    The changes of judgments of different tuples add up: those of an annotator, who judges a tuple once.
    """
    rows = np.arange(len(judgments))
    before, after = [], []
    for answers, n in _questions(judgments):
        count = _counts(judgments, answers, n).astype(np.float64)[judgments.tuple_of]
        before.append(count)
        after.append(count.copy())
        after[-1][rows, answers] -= 1
    changes: Floats = _statistics(after, strong) - _statistics(before, strong)
    return changes


def _questions(judgments: Judgments) -> list[tuple[NDArray[np.integer], int]]:
    """Return the answers (J,) to each question, and how many there may be: pair, best, worst."""
    k = judgments.tuples.members.shape[1]
    return [(_pairs(judgments), k * (k - 1)), (judgments.best, k), (judgments.worst, k)]


def _statistics(counts: list[Floats], strong: float) -> Floats:
    """Return (U, S) statistics, as `of_tuples` has them, of (U, n) counts of each question's answers.

    All are 0 where there are fewer than two answers.
    """
    pairs, *questions = counts
    columns = [_agreeing(pairs)[:, None], pairs]
    for count in questions:
        total = count.sum(axis=1)
        is_strong = count.max(axis=1) >= strong * total - ROUNDING
        columns += [np.column_stack((_agreeing(count), is_strong, np.ones(len(count)))), count]
    statistics: Floats = np.hstack(columns)
    statistics[pairs.sum(axis=1) < 2] = 0
    return statistics


def _pairs(judgments: Judgments) -> NDArray[np.int64]:
    """Return (N,) the number, from 0, of each judgment's pair of a best and another, worst place."""
    k = judgments.tuples.members.shape[1]
    others = judgments.worst - (judgments.worst > judgments.best)
    pairs: NDArray[np.int64] = judgments.best.astype(np.int64) * (k - 1) + others
    return pairs


def _counts(judgments: Judgments, answers: NDArray[np.integer], n: int) -> NDArray[np.intp]:
    """Return (T, n) how often each of n answers was given on each tuple."""
    n_tuples = len(judgments.tuples.members)
    cell = judgments.tuple_of.astype(np.int64) * n + answers
    return np.bincount(cell, minlength=n_tuples * n).reshape(n_tuples, n)


def _agreeing(counts: Floats) -> Floats:
    """Return (U,) pairs of equal answers in either order, divided by the answers less one."""
    others = np.maximum(counts.sum(axis=1) - 1, 1)
    agreeing: Floats = (counts * (counts - 1)).sum(axis=1) / others
    return agreeing


def total(statistics: Floats, k: int) -> Floats:
    """Return the sums over tuples of k items, to the last bit the same in every order of tuples."""
    sums: Floats = statistics.sum(axis=0)
    first = 1 + k * (k - 1)
    for column in (0, first + AGREEING, first + PLACES.start + k + AGREEING):
        sums[column] = math.fsum(statistics[:, column])
    return sums


def measures(sums: Floats, k: int) -> Measures:
    """Return all measures from (..., S) sums over tuples of k items, columns as `of_tuples` has them.

    ``both`` pools best and worst questions, ``joint`` takes a judgment's (best, worst) as one answer.
    """
    pairs, questions = np.split(sums, [1 + k * (k - 1)], axis=-1)
    questions = questions.reshape(*sums.shape[:-1], 2, PLACES.start + k)
    agreeing, places = questions[..., AGREEING], questions[..., PLACES]
    answers = {
        "both": (agreeing.sum(axis=-1), places.sum(axis=-2)),
        "best": (agreeing[..., 0], places[..., 0, :]),
        "worst": (agreeing[..., 1], places[..., 1, :]),
        "joint": (pairs[..., 0], pairs[..., 1:]),
    }
    with np.errstate(invalid="ignore", divide="ignore"):
        strong = 100 * questions[..., STRONG] / questions[..., ONE]
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
