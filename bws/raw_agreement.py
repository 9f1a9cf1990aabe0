"""Observed agreement, not corrected for chance: of pairs of annotators, and on items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.records import Judgments

MIN_COMMON_TUPLES = 10
"""Number of common tuples below which the agreement of a pair is marked as uncertain."""


@dataclass(frozen=True, eq=False)
class AnnotatorPairs:
    """The agreement of all pairs of A annotators, those with the highest mean agreement first.

    The mean agreement of an annotator is over all answers in common with any other annotator; annotators
    without any are last.
    """

    annotators: tuple[str, ...]
    tuples: NDArray[np.int64]
    """(A, A) pairs of judgments of the same tuple, which is the number of common tuples if no annotator
    judged one twice; 0 on the diagonal."""
    agreement: NDArray[np.float64]
    """(A, A) share of equal answers, best and worst, in [0, 1]; NaN without a common tuple."""
    chance: float
    """Expected share of equal answers of random judgments."""
    notes: tuple[str, ...] = ()

    @property
    def is_few(self) -> NDArray[np.bool_]:
        """(A, A) whether a pair has common tuples, but fewer than `MIN_COMMON_TUPLES`."""
        few: NDArray[np.bool_] = (self.tuples > 0) & (self.tuples < MIN_COMMON_TUPLES)
        return few


def annotator_pairs(judgments: Judgments) -> AnnotatorPairs:
    """Return the agreement of all pairs of named annotators.

    Tuples of an adaptive study that were chosen to be hard are ignored. Raises ValueError, with the reason,
    if no two named annotators judged the same tuple.

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> rows = [("a", "c", "w1"), ("a", "b", "w2"), ("b", "c", "w3")]
    >>> tuples = [Judgment(("a", "b", "c"), best, worst, annotator) for best, worst, annotator in rows]
    >>> pairs = annotator_pairs(judgments_from_records(tuples))
    >>> pairs.annotators, pairs.agreement[0].tolist()
    (('w1', 'w2', 'w3'), [nan, 0.5, 0.5])
    """
    random, notes = judgments.without_adaptive("agreement of pairs")
    answers = random.canonical
    named = np.flatnonzero(answers.annotator_of >= 0)
    annotator, tuple_of = answers.annotator_of[named], answers.tuple_of[named]
    best, worst = answers.best[named], answers.worst[named]
    n = len(answers.annotators)
    tuples, equal = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
    largest = int(np.bincount(tuple_of).max(initial=0))
    for distance in range(1, largest):  # Judgments are sorted by tuple.
        first = np.flatnonzero(tuple_of[distance:] == tuple_of[:-distance])
        second = first + distance
        same = (best[first] == best[second]).astype(int) + (worst[first] == worst[second])
        for counts, values in ((tuples, np.ones(len(first), int)), (equal, same)):
            np.add.at(counts, (annotator[first], annotator[second]), values)
    for counts in (tuples, equal):
        counts += counts.T
        np.fill_diagonal(counts, 0)
    if not tuples.any():
        raise ValueError(note("no two named annotators judged the same tuple"))
    order = np.argsort(-_ratio(equal.sum(axis=1), 2 * tuples.sum(axis=1)), kind="stable")
    grid = np.ix_(order, order)
    return AnnotatorPairs(
        tuple(answers.annotators[a] for a in order),
        tuples[grid],
        _ratio(equal[grid], 2 * tuples[grid]),
        chance_of_equal_answers(answers.k)["best"],
        tuple(notes),
    )


def item_disagreement(judgments: Judgments) -> NDArray[np.float64]:
    """Return (N,) the disagreement on each item: the share of judgments that differ from the majority.

    A judgment labels an item best, worst or neither; the most frequent label in a tuple is the majority
    label. The share is over all judgments of the tuples of the item: 0 for full agreement, at most 2/3. NaN
    for items without judgments. Items are those of `judgments.tuples`.
    """
    tuples = judgments.tuples
    votes = np.zeros((*tuples.members.shape, 3), dtype=np.int64)  # best, worst, neither
    for answer, positions in enumerate((judgments.best, judgments.worst)):
        np.add.at(votes[:, :, answer], (judgments.tuple_of, positions), 1)
    n_judgments = np.bincount(judgments.tuple_of, minlength=len(tuples))
    votes[:, :, 2] = n_judgments[:, np.newaxis] - votes.sum(axis=2)
    against = n_judgments[:, np.newaxis] - votes.max(axis=2)
    members, n = tuples.members.ravel(), len(tuples.items)
    total = np.bincount(members, weights=np.repeat(n_judgments, tuples.k), minlength=n)
    differing = np.bincount(members, weights=against.ravel(), minlength=n)
    return _ratio(differing, total)


def answer_counts(row: NDArray[Any], answers: NDArray[Any], n_answers: int) -> NDArray[np.int64]:
    """Return (R, `n_answers`) the numbers of answers in each row, given the row of each answer (J,).

    answers: (J,) numbers below `n_answers`, such as positions in a tuple.

    >>> answer_counts(np.array([0, 0, 1]), np.array([2, 2, 0]), 3).tolist()
    [[0, 0, 2], [1, 0, 0]]
    """
    n_rows = int(row.max(initial=-1)) + 1
    counts = np.bincount(row * n_answers + answers, minlength=n_rows * n_answers)
    return counts.reshape(n_rows, n_answers)


def chance_of_equal_answers(k: int) -> dict[str, float]:
    """Return the probability of the same best, worst, and both (joint), of random answers to K items.

    >>> chance_of_equal_answers(4)
    {'best': 0.25, 'worst': 0.25, 'joint': 0.0833...}
    """
    return {"best": 1 / k, "worst": 1 / k, "joint": 1 / (k * (k - 1))}


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    ratio = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return ratio
