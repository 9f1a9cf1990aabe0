"""Random halves of judgments, and how the scores of two halves correlate.

Everything here works on a `Deck`: the judgments laid out so that a random half of every tuple's
judgments is dealt in as many array operations as the longest tuple has judgments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bws.scoring.answers import Answers

__all__ = [
    "Deck",
    "Halves",
    "Missing",
    "Odd",
    "Trials",
    "by_annotation",
    "by_annotator",
    "by_tuple",
    "check_options",
    "correlate",
    "run_trials",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Halves = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Twice (J,): which judgments are in the first half, and which in the second."""
Odd = Literal["coin", "second"]
"""Which half gets one more where a number is odd: a coin decides, or always the second."""
Missing = Literal["drop", "zero"]
"""What becomes of an item that one half does not score: left out of the trial, or scored 0."""


@dataclass(frozen=True, eq=False)
class Deck:
    """J judgments of T tuples of K items, N items in all, each tuple and item judged at least once.

    Tuples with more judgments come first. The judgments lie in rounds: round j holds the j-th
    judgment of every tuple that has one, so that it belongs to the first tuples, one each.
    """

    members: NDArray[np.int64]
    """(T, K) item indices."""
    n_items: int
    sizes: Ints
    """(T,) judgments of the tuple, descending."""
    rounds: tuple[slice, ...]
    tuple_of: Ints
    """(J,)"""
    best: Ints
    """(J,) item"""
    worst: Ints
    """(J,) item"""
    annotator_of: Ints
    """(J,) -1 where it is not known."""

    @classmethod
    def of(cls, answers: Answers) -> Deck:
        """Lay the answers out, which come sorted by tuple."""
        counts = np.bincount(answers.tuple_of)
        order = np.argsort(-counts, kind="stable")
        new = np.empty_like(order)
        new[order] = np.arange(len(order))
        turn = np.arange(len(answers)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.lexsort((new[answers.tuple_of], turn))
        ends = np.cumsum(np.bincount(turn)).tolist()
        item = answers.members[answers.tuple_of]
        everybody = np.arange(len(answers))
        return cls(
            answers.members[order],
            len(answers.items),
            counts[order],
            tuple(slice(start, end) for start, end in pairwise([0, *ends])),
            new[answers.tuple_of[rows]],
            item[everybody, answers.best][rows],
            item[everybody, answers.worst][rows],
            answers.annotator_of[rows],
        )

    def scores(self, half: NDArray[np.bool_]) -> Floats:
        """Return (N,) counting scores from the judgments of a half; NaN where an item has none.

        score = (best - worst) / appearances; equal fractions are equal floats.
        """
        rows = np.flatnonzero(half)
        judged = np.bincount(self.tuple_of[rows], minlength=len(self.sizes))
        weights = np.repeat(judged, self.members.shape[1])
        appearances = np.bincount(self.members.ravel(), weights, self.n_items)
        best = np.bincount(self.best[rows], minlength=self.n_items)
        worst = np.bincount(self.worst[rows], minlength=self.n_items)
        with np.errstate(invalid="ignore"):
            return (best - worst) / appearances


def by_annotation(
    deck: Deck, rng: np.random.Generator, odd: Odd, drawn: int | None = None
) -> Halves:
    """Split each tuple's judgments into two halves at random.

    A tuple with n judgments, or with `drawn` picked at random from its n, gives n // 2 to one half
    and the rest to the other. Tuples with one judgment, or with fewer than `drawn`, are in neither.
    """
    wanted = deck.sizes if drawn is None else np.full_like(deck.sizes, drawn)
    wanted = np.where((deck.sizes >= 2) & (deck.sizes >= wanted), wanted, 0)
    first = wanted // 2
    if odd == "coin":
        first += (wanted % 2) * (rng.random(len(wanted)) < 0.5)
    return _deal(deck, rng, first, wanted - first)


def _deal(deck: Deck, rng: np.random.Generator, to_first: Ints, to_second: Ints) -> Halves:
    """Deal `to_first` (T,) random judgments of each tuple to one half and `to_second` to the other.

    Selection sampling (Knuth, The Art of Computer Programming 2, section 3.4.2, algorithm S): each
    place that is still open goes to any of the judgments that are left with equal chances.
    """
    first, second = np.zeros((2, len(deck.tuple_of)), dtype=np.bool_)
    open_first, open_any = to_first.copy(), to_first + to_second
    for turn, places in enumerate(deck.rounds):
        n = places.stop - places.start
        draw = rng.random(n) * (deck.sizes[:n] - turn)
        taken = draw < open_any[:n]
        first[places] = draw < open_first[:n]
        second[places] = taken & ~first[places]
        open_first[:n] -= first[places]
        open_any[:n] -= taken
    return first, second


def by_annotator(deck: Deck, rng: np.random.Generator, odd: Odd) -> Halves:
    """Split the annotators into two halves at random; who is not known is in neither."""
    known, annotator_of = np.unique(deck.annotator_of, return_inverse=True)
    draw = np.where(known < 0, np.inf, rng.random(len(known)))
    n = np.count_nonzero(known >= 0)
    more = n % 2 and odd == "coin" and rng.random() < 0.5
    in_first = np.zeros(len(known), dtype=np.bool_)
    in_first[np.argsort(draw, kind="stable")[: n // 2 + more]] = True
    first = in_first[annotator_of]
    return first, ~first & (deck.annotator_of >= 0)


BALANCING_ROUNDS = 20
"""Passes over the tuples that make the halves of `by_tuple` equal; few tuples change after ten."""


def by_tuple(deck: Deck, rng: np.random.Generator, odd: Odd) -> Halves:
    """Split the tuples into two halves at random, each with all its judgments.

    The halves are balanced, as Spearman-Brown supposes halves of equal size: from a random start, tuples
    whose change of sides reduces the sum over items of (judgments in one half - in the other) squared
    change sides, a random share of them at a time.
    """
    k = deck.members.shape[1]
    side = np.where(rng.random(len(deck.sizes)) < 0.5, deck.sizes, -deck.sizes)
    share = 1 / (1 + math.sqrt(deck.members.size / deck.n_items))  # all at once would overshoot
    for _ in range(BALANCING_ROUNDS):
        surplus = np.bincount(deck.members.ravel(), side.repeat(k), deck.n_items)
        gain = np.sign(side) * surplus[deck.members].sum(axis=1) - k * deck.sizes
        if not (gain > 0).any():
            break
        side[(gain > 0) & (rng.random(len(side)) < share)] *= -1
    if odd == "second" and side.sum() > 0:
        side = -side
    first = (side > 0)[deck.tuple_of]
    return first, ~first


@dataclass(frozen=True, eq=False)
class Trials:
    """The correlations of n trials; NaN where a trial has none."""

    pearson: Floats
    """(n,)"""
    spearman: Floats
    """(n,)"""
    missing: int
    """Items that lacked a score from one half or both in any trial."""
    scored: float
    """Mean number of items per trial that both halves score."""


def run_trials(
    deck: Deck,
    split: Callable[[Deck, np.random.Generator], Halves],
    n: int,
    missing: Missing,
    seed: int,
) -> Trials:
    """Split the judgments n times and correlate the scores of the two halves over the items.

    An item that neither half scores is left out of a trial, whatever `missing` says.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    found, lacking = np.empty((n, 2)), np.zeros(deck.n_items, dtype=np.bool_)
    n_scored = 0
    for trial in range(n):
        scores = np.array([deck.scores(half) for half in split(deck, rng)])
        unscored = np.isnan(scores)
        lacking |= unscored.any(axis=0)
        n_scored += int(np.count_nonzero(~unscored.any(axis=0)))
        left_out = unscored.any(axis=0) if missing == "drop" else unscored.all(axis=0)
        first, second = np.nan_to_num(scores, nan=0.0)[:, ~left_out]
        found[trial] = correlate(first, second), correlate(_ranks(first), _ranks(second))
    return Trials(found[:, 0], found[:, 1], int(np.count_nonzero(lacking)), n_scored / n)


def correlate(x: Floats, y: Floats) -> float:
    """Return Pearson's r of two (N,) arrays; NaN where one does not vary or N < 3."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    r = float(x @ y) / math.sqrt(float(x @ x) * float(y @ y))
    return min(1.0, max(-1.0, r))  # rounding


def _ranks(values: Floats) -> Floats:
    """Return (N,) ranks, equal values with their average rank; exact, as every rank is a half."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[index]
    return ranks


def check_options(trials: int, **choices: tuple[str, Any]) -> None:
    """Raise ValueError where an option, given as (value, its Literal type), is not allowed."""
    if trials < 1:
        raise ValueError(f"trials is {trials}; it must be at least 1")
    for name, (value, literal) in choices.items():
        allowed = get_args(literal)
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
