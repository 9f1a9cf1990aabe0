"""Variance components of counting scores: items, the design, annotators, single answers.

A judgment gives each of its K items the value 1 (best), -1 (worst) or 0; the counting score of an item
is the mean of its values. A generalisability study (Cronbach and others 1972; Brennan 2001) takes a value
for item + design + annotator + residual: how good the item is; which opponents it met in this tuple; what
this annotator thinks of it in every tuple; the rest. Half the expected squared difference of two values
of one item is then

    same tuple, different annotators    annotator + residual
    same annotator, different tuples    design + residual
    both different                      design + annotator + residual

so that mean squared differences over pairs of values estimate the components without bias, however the
tuples were given to the annotators.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from bws.scoring.answers import Answers
from bws.scoring.opponents import design_share

__all__ = [
    "Components",
    "component_sums",
    "components",
    "estimates_from_sums",
    "is_complete",
    "item_components",
    "possible_tuples",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Components:
    """How much the values of N items vary, and for what reason; NaN where the judgments cannot tell."""

    item: float
    """Variance of the items' true scores."""
    design: float
    """Variance of an item's values between tuples: of the opponents that it met."""
    annotator: float
    """Variance of an item's values between annotators that is the same in all tuples."""
    residual: float
    """Variance of an annotator's answers to a tuple, and all that cannot be told from it."""
    error: Floats
    """(N,) the variance of each item's score over annotators, designs and answers, from its own values."""

    @property
    def reliability(self) -> float:
        """Share of the scores' variance that is the variance of true scores."""
        if np.isnan(self.item):
            return np.nan
        return self.item / (self.item + float(np.nanmean(self.error)))


def components(answers: Answers, *, without: Integers | None = None) -> Components:
    """Estimate the variance components of the scores of some judgments.

    without: indices of annotators whose values are left out of all pairs; the scores whose errors are
    estimated remain those of all judgments. An item that loses all pairs of a kind has no error: NaN.

    Where no annotator judged an item in two tuples, or no tuple has two annotators, the component that
    needs such pairs cannot be told from the residual, and is in it. The design counts in an item's error
    as far as it met some opponents of its group more often than others, as if each opponent added its
    own part to a value: not at all where all opponents were met equally often, as in a group of which
    every set of K items was judged. An annotator who is not known is another one in every judgment.

    An estimate is below 0 where the component is small and chance has it so. It is not cut off, so that
    means have no bias. A component is NaN where there is one tuple (design) or one annotator (annotator).

    >>> from bws.records import Judgments
    >>> from bws.design import make_tuples
    >>> from bws.simulate import simulate
    >>> from bws.scoring.answers import in_order
    >>> design = make_tuples([f"i{n}" for n in range(50)], 4, factor=2)
    >>> said = simulate(design, np.linspace(-1, 1, 50), annotators=4, disagreement=0.3)
    >>> found = components(in_order(said))
    >>> found.item > found.design > found.annotator > 0
    True
    """
    values = _Values.of(answers)
    compared = values
    if without is not None:
        compared = _Values.of(answers.take(np.flatnonzero(~np.isin(answers.annotator_of, without))))
    squares, pairs = compared.squared_differences
    design, annotator, residual = _solved(squares.sum(axis=1), pairs.sum(axis=1))
    error = values.error(_design_shares(answers), *_solved(squares, pairs))
    if compared is not values:
        lost = (values.squared_differences[1] > 0) & (pairs == 0)
        error = np.where(lost.any(axis=0), np.nan, error)
    counts = answers.counts
    score = (counts.best - counts.worst) / counts.appearances
    known = ~np.isnan(error)
    enough = np.count_nonzero(known) > 1
    item = float(np.var(score[known], ddof=1) - error[known].mean()) if enough else np.nan
    return Components(item, float(design), float(annotator), float(residual), error)


def item_components(answers: Answers) -> tuple[Floats, Floats, Floats]:
    """Return (N,) each the components of design, annotator and residual of every item's own values.

    As in `components`, an estimate may be below 0.
    """
    return _solved(*_Values.of(answers).squared_differences)


@dataclass(frozen=True, eq=False)
class _Values:
    """The R = J K values of N items, and of whom and where they are."""

    value: Floats
    """(R,) 1, 0 or -1."""
    item: Integers
    """(R,)"""
    tuple_of: Integers
    """(R,)"""
    annotator_of: Integers
    """(R,)"""
    n_items: int

    @classmethod
    def of(cls, answers: Answers) -> _Values:
        place, k = np.arange(answers.k), answers.k
        value = (place == answers.best[:, None]) * 1.0 - (place == answers.worst[:, None])
        unknown = answers.annotator_of < 0
        annotator_of = answers.annotator_of.copy()
        annotator_of[unknown] = len(answers.annotators) + np.arange(np.count_nonzero(unknown))
        return cls(
            value.ravel(),
            answers.members[answers.tuple_of].ravel(),
            np.repeat(answers.tuple_of, k),
            np.repeat(annotator_of, k),
            len(answers.items),
        )

    @cached_property
    def squared_differences(self) -> tuple[Floats, Floats]:
        """Half the squared differences, summed over pairs of an item's values, and the pairs: (3, N) each.

        The rows: same tuple, same annotator, both different.
        """
        everything, tuples, annotators, cells = (self._within(*keys) for keys in self._keys)
        kinds = [tuples - cells, annotators - cells, everything - tuples - annotators + cells]
        squares, pairs = np.stack(kinds, axis=1)
        return squares, pairs

    @property
    def _keys(self) -> tuple[tuple[Integers, ...], ...]:
        tuples, annotators = (self.tuple_of,), (self.annotator_of,)
        return (), tuples, annotators, (*tuples, *annotators)

    def _blocks(self, *keys: Integers) -> tuple[Integers, Integers]:
        """Return (R,) the number of each value's block, of equal item and keys, and (B,) its item."""
        number = self.item
        for key in keys:
            number = np.unique(number * (key.max() + 1) + key, return_inverse=True)[1]
        item = np.zeros(number.max() + 1, dtype=np.int64)  # an item without values has no block
        item[number] = self.item
        return number, item

    def _within(self, *keys: Integers) -> Floats:
        """Return (2, N) `squared_differences` of all pairs of values of an item that share the keys."""
        block, item = self._blocks(*keys)
        n = np.bincount(block).astype(np.float64)
        total, squared = np.bincount(block, self.value), np.bincount(block, self.value**2)
        size = self.n_items
        squares = np.bincount(item, n * squared - total**2, size) / 2
        return np.stack((squares, np.bincount(item, n * (n - 1), size) / 2))

    def error(
        self, design_shares: Floats, design: Floats, annotator: Floats, residual: Floats
    ) -> Floats:
        """Return (N,) the variance of each item's mean value, from the components (N,) of its values."""
        annotators, cells = (self._squared_shares(*keys) for keys in self._keys[2:])
        of_design = np.where(design_shares > 0, design_shares * design, 0)
        return of_design + annotators * annotator + cells * residual

    def _squared_shares(self, *keys: Integers) -> Floats:
        """Return (N,) the sum over blocks of the squared share of an item's values that is in the block."""
        block, item = self._blocks(*keys)
        n, size = np.bincount(block).astype(np.float64), self.n_items
        shares: Floats = np.bincount(item, n**2, size) / np.bincount(item, n, size) ** 2
        return shares


def _design_shares(answers: Answers) -> Floats:
    """Return (N,) `design_share` with tuples weighted by their judgments."""
    judged = np.bincount(answers.tuple_of, minlength=len(answers.members))
    return design_share(answers, judged.astype(np.float64))


def _solved(squares: Floats, pairs: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the components (...) of design, annotator and residual from `squared_differences` (3, ...)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        same_tuple, same_annotator, different = squares / pairs
    design, annotator = different - same_tuple, different - same_annotator
    residual = same_tuple + same_annotator - different
    no_tuple, no_annotator = pairs[0] == 0, pairs[1] == 0
    design = np.where(no_tuple & (pairs[2] > 0), 0, design)
    annotator = np.where(no_annotator, 0, annotator)
    residual = np.where(no_annotator, same_tuple, residual)
    residual = np.where(no_tuple, same_annotator, residual)
    return design, annotator, np.where(no_tuple & no_annotator, different, residual)


def possible_tuples(answers: Answers) -> Floats:
    """Return (N,) how many sets of K items of its group contain an item."""
    sizes = np.bincount(answers.group_of)
    possible = np.array([float(comb(int(size) - 1, answers.k - 1)) for size in sizes])
    return possible[answers.group_of]


def is_complete(answers: Answers) -> bool:
    """Tell whether every set of K items of every group was judged."""
    shown = np.bincount(answers.members.ravel(), minlength=len(answers.items))
    return bool((shown >= possible_tuples(answers)).all())


def component_sums(answers: Answers) -> Floats:
    """Return (N, 12) what each item adds to the sums of which `estimates_from_sums` makes estimates.

    The columns: 1, the score and its square; by what the components of design, annotator and residual are
    multiplied in the error variance of the score; squared differences, and numbers of pairs, of the three
    kinds. Items without judgments (after `Answers.take`) are rows of 0.
    """
    values, counts = _Values.of(answers), answers.counts
    with np.errstate(invalid="ignore"):
        score = (counts.best - counts.worst) / counts.appearances
        shares = [_design_shares(answers), *(values._squared_shares(*k) for k in values._keys[2:])]
    scores = (np.ones_like(score), score, score**2)
    sums = np.stack((*scores, *shares, *np.concatenate(values.squared_differences)), axis=-1)
    return np.where(counts.appearances[:, None] > 0, sums, 0)


def estimates_from_sums(sums: Floats) -> Floats:
    """Return (..., 6) estimates from sums (..., 12) of the rows of `component_sums` over some items.

    The components of item, design, annotator and residual, all items together; the mean error variance
    of the scores; log(item / error). NaN as in `components`, and for the logarithm where item or error is
    not above 0.
    """
    n, total, squared, *others = np.moveaxis(sums, -1, 0)
    shares, squares, pairs = np.split(np.stack(others), 3)
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = np.stack(_solved(squares, pairs))
        error = np.where(shares > 0, shares / n * parts, 0).sum(axis=0)
        item = (squared - total**2 / n) / (n - 1) - error
        log_ratio = np.where((item > 0) & (error > 0), np.log(item / error), np.nan)
    return np.stack((item, *parts, error, log_ratio), axis=-1)
