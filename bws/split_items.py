"""Split items: items with scores near 0 on which annotators consistently disagree.

An item has a score near 0 if every annotator sometimes chooses it as best and sometimes as worst (noise), or
if some annotators consistently choose it as best and others consistently as worst. In the second case,
answers about the item are more similar within annotators than between annotators: the item has a positive
variance component of annotators (`bws.components`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Tabular
from bws.base.notes import note
from bws.base.progress import tracked
from bws.base.tables import MAX_ROWS_SHOWN, Column, ResultTable
from bws.components import item_components
from bws.records import CanonicalJudgments, Judgments
from bws.stats.clusters import MIN_CLUSTERS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_MIDDLING_SCORE = 1 / 3
"""Largest absolute score of an intermediate item; scores are in [-1, 1]."""
MIN_SHARE = 0.25
"""Smallest share of the annotators' component in a split item. Normal preferences with a standard deviation
of half a logit, as in good judgments, are below it."""
FALSE_DISCOVERY_RATE = 0.05
PERMUTATIONS = 1000
MIN_EXCEEDANCES = 10
"""Smallest number of exceedances for a permutation p-value; below it, the tail of a fitted distribution is
used."""
MIN_SKEWNESS = 0.01


@dataclass(frozen=True, slots=True)
class ItemDisagreement:
    """Disagreement of annotators about an item; NaN where undefined."""

    item: str
    group: str
    score: float
    """Counting score in [-1, 1], from the judgments of named annotators."""
    judgments: int
    annotators: int
    annotators_for: int
    """Number of annotators who chose the item as best more often than as worst."""
    annotators_against: int
    """Number of annotators who chose the item as worst more often than as best."""
    share: float
    """Annotators' component / (annotators' component + residual): the share of the variance of answers
    that is constant over the tuples of an annotator. Not truncated at 0."""
    p: float
    """One-sided p-value of no component of annotators; NaN if too few annotators have two tuples."""
    q: float
    """p adjusted over the items with intermediate scores (Benjamini and Hochberg 1995); NaN for others."""
    split: bool | None
    """Whether q is at most 0.05 and the share at least 0.25; None if q is NaN."""


@dataclass(frozen=True, repr=False)
class SplitItems(Tabular):
    """Disagreement about all judged items, sorted by group and id."""

    items: tuple[ItemDisagreement, ...]
    notes: tuple[str, ...] = ()
    """Unavailable results, with reasons."""
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def split(self) -> list[ItemDisagreement]:
        """The split items, sorted by evidence, strongest first."""
        return sorted(
            (item for item in self.items if item.split), key=lambda item: (item.q, item.p)
        )

    def document(self) -> dict[str, Any]:
        """Return the result as plain dicts and lists."""
        return {
            "items": [asdict(item) for item in self.items],
            "split": [[item.group, item.item] for item in self.split],
            "notes": list(self.notes),
            "settings": self.settings,
        }

    def table(self) -> str:
        """Return the split items as text, their number, then the notes."""
        return str(self.result_table().head(MAX_ROWS_SHOWN))

    def result_table(self) -> ResultTable:
        """Return a row per split item; their number is a note."""
        columns = [
            Column("item", "item"),
            Column("group", "group", is_detail=not any(item.group for item in self.split)),
            Column("score", "score", ".2f", align="right"),
            Column("annotators", "annotators", align="right"),
            Column("annotators_for", "for", align="right"),
            Column("annotators_against", "against", align="right"),
            Column("share", "share", ".2f", align="right"),
            Column("q", "q", ".2g", align="right"),
        ]
        rows = [[getattr(item, column.key) for column in columns] for item in self.split]
        notes = [*self._summary(), *self.notes]
        return ResultTable(columns, rows, notes, "Items on which annotators disagree")

    def _summary(self) -> Iterator[str]:
        tested = sum(item.split is not None for item in self.items)
        if not tested:
            return
        yield note(
            "{n:d} of {m:d} items with an intermediate score (-1/3 to 1/3) are split: some annotators "
            "consistently choose them as best, others as worst (q <= {q:g}, share >= {share:g})",
            n=len(self.split),
            m=tested,
            q=FALSE_DISCOVERY_RATE,
            share=MIN_SHARE,
        )


def split_items(judgments: Judgments, *, seed: int = 0) -> SplitItems:
    """Test whether annotators consistently disagree about each item.

    An answer gives an item 1 (best), -1 (worst) or 0. The residual of an answer is its difference from the
    mean of the tuple times the slope of the annotator's answers on such means over all items. The statistic
    of an item is the sum over annotators of the squared sum of their residuals. It is compared with 1000
    permutations of the residuals among the annotators of each tuple. The p-value is the share of permutations
    with at least this statistic. If fewer than 10 permutations reach it, the p-value is the tail of the gamma
    distribution (Pearson type III) with the permutations' mean, variance and skewness. It is NaN for items
    with fewer than five annotators with two tuples, or without tuples of two annotators.

    Judgments without annotator are ignored, and in an adaptive study those of adaptive tuples, with a note:
    counting scores are biased there. `seed`: seed of the permutations.

    Raises ValueError if all tuples are adaptive.
    """
    judgments, notes = judgments.without_adaptive("split items")
    has_annotator = judgments.annotator_of >= 0
    settings = {
        "seed": seed,
        "permutations": PERMUTATIONS,
        "max_score": MAX_MIDDLING_SCORE,
        "min_share": MIN_SHARE,
        "false_discovery_rate": FALSE_DISCOVERY_RATE,
    }
    if not has_annotator.any():
        reason = note("split items: not available (judgments without annotators)")
        return SplitItems((), (reason,), settings)
    canonical = judgments.select(has_annotator).canonical
    values = _AnswerValues.from_judgments(canonical)
    p = _p_values(values, seed)
    counts = canonical.counts
    score = (counts.best - counts.worst) / counts.appearances
    q = _adjust_p_values(p, np.abs(score) <= MAX_MIDDLING_SCORE + 1e-12)
    _, annotator, residual = item_components(canonical)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = annotator / (annotator + residual)
    share[np.isnan(p)] = np.nan
    signs = values.signs()
    items = tuple(
        ItemDisagreement(
            canonical.items[i],
            canonical.groups[canonical.group_of[i]],
            float(score[i]),
            int(counts.appearances[i]),
            int(values.annotators[i]),
            int(signs[0][i]),
            int(signs[1][i]),
            float(share[i]),
            float(p[i]),
            float(q[i]),
            None
            if np.isnan(q[i])
            else bool(q[i] <= FALSE_DISCOVERY_RATE and share[i] >= MIN_SHARE),
        )
        for i in range(len(canonical.items))
    )
    notes += _notes(int(np.count_nonzero(~has_annotator)), p)
    return SplitItems(items, tuple(notes), settings)


@dataclass(frozen=True, eq=False)
class _AnswerValues:
    """Values of N items in J judgments, and the C cells of one annotator and one item."""

    tuple_of: Integers
    """(J,)"""
    value: Floats
    """(J, K) 1, 0 or -1."""
    deviation: Floats
    """(J, K) residuals: value minus the mean of its item in the tuple times the annotator's slope."""
    cell: Integers
    """(J, K) cell indices of the values."""
    item_of_cell: Integers
    """(C,)"""
    annotators: Integers
    """(N,) numbers of annotators who judged the item."""
    n_with_pairs: Integers
    """(N,) numbers of annotators who judged the item in at least two tuples."""

    @classmethod
    def from_judgments(cls, judgments: CanonicalJudgments) -> _AnswerValues:
        value, n_items = judgments.values, len(judgments.items)
        total = np.zeros(judgments.members.shape)
        np.add.at(total, judgments.tuple_of, value)
        n = np.bincount(judgments.tuple_of, minlength=len(total))[:, None]
        items = judgments.judged_items
        keys = judgments.annotator_of[:, None] * n_items + items
        distinct, cell = np.unique(keys, return_inverse=True)
        cell, item_of_cell = cell.reshape(items.shape), distinct % n_items
        tuples = np.unique(cell.ravel() * len(total) + judgments.tuple_of.repeat(judgments.k))
        has_pairs = np.bincount(tuples // len(total)) > 1
        return cls(
            judgments.tuple_of,
            value,
            value - _expected(judgments.annotator_of, value, (total / n)[judgments.tuple_of]),
            cell,
            item_of_cell,
            np.bincount(item_of_cell, minlength=n_items),
            np.bincount(item_of_cell[has_pairs], minlength=n_items),
        )

    def statistic(self, deviation: Floats) -> Floats:
        """Return (N,) sums over annotators of the squared sums of (J, K) residuals."""
        sums = np.bincount(self.cell.ravel(), deviation.ravel())
        return np.bincount(self.item_of_cell, sums**2, len(self.annotators)).astype(np.float64)

    def signs(self) -> tuple[Integers, Integers]:
        """Return (N,) numbers of annotators whose mean answer about an item is positive, and negative."""
        sums = np.bincount(self.cell.ravel(), self.value.ravel())
        above, below = (
            np.bincount(self.item_of_cell[side], minlength=len(self.annotators))
            for side in (sums > 0, sums < 0)
        )
        return above, below


def _expected(annotator_of: Integers, value: Floats, mean: Floats) -> Floats:
    """Return (J, K) means of the tuples times the slope of each annotator's values on them over all items.

    The slopes, which are 1 on average, prevent that noisy annotators are mistaken for annotators who disagree
    about an item.
    """
    products, squares = (
        np.bincount(annotator_of, (mean * factor).sum(axis=1)) for factor in (value, mean)
    )
    slope = np.divide(products, squares, out=np.ones_like(squares), where=squares > 0)
    return slope[annotator_of][:, None] * mean


def _p_values(values: _AnswerValues, seed: int) -> Floats:
    """Return (N,) one-sided p-values of the statistic; NaN for too few annotators or pairs."""
    from scipy.special import gammaincc

    rng = np.random.Generator(np.random.PCG64(seed))
    observed = values.statistic(values.deviation)
    powers, n_exceedances = np.zeros((3, len(observed))), np.zeros(len(observed))
    for _ in tracked(range(PERMUTATIONS), "permutations", PERMUTATIONS):
        order = np.argsort(values.tuple_of + rng.random(len(values.tuple_of)))
        difference = values.statistic(values.deviation[order]) - observed
        powers += [difference, difference**2, difference**3]
        n_exceedances += difference >= -1e-9
    mean, square, cube = powers / PERMUTATIONS
    variance = square - mean**2
    variance[variance < 1e-12] = np.nan
    variance[values.n_with_pairs < MIN_CLUSTERS] = np.nan
    third = cube - 3 * mean * square + 2 * mean**3
    skewness = np.maximum(third / variance**1.5, MIN_SKEWNESS)
    shape = 4 / skewness**2
    tail = gammaincc(shape, np.maximum(shape - mean / np.sqrt(variance) * np.sqrt(shape), 0))
    share = (n_exceedances + 1) / (PERMUTATIONS + 1)
    p: Floats = np.where(n_exceedances >= MIN_EXCEEDANCES, share, tail)
    return np.where(np.isnan(variance), np.nan, p)


def _adjust_p_values(p: Floats, is_middling: NDArray[np.bool_]) -> Floats:
    """Return (N,) Benjamini–Hochberg adjusted p-values of the intermediate items; NaN for others."""
    from scipy.stats import false_discovery_control

    q = np.full(len(p), np.nan)
    is_tested = is_middling & ~np.isnan(p)
    if is_tested.any():
        q[is_tested] = false_discovery_control(p[is_tested])
    return q


def _notes(n_unnamed: int, p: Floats) -> Iterator[str]:
    if n_unnamed:
        yield note("split items: {n:d} judgments without annotator are ignored", n=n_unnamed)
    if missing := np.count_nonzero(np.isnan(p)):
        yield note(
            "split items: {n:d} of {m:d} items are not tested: fewer than {least:d} annotators judged them "
            "in two tuples, or all answers of each tuple are equal",
            n=missing,
            m=len(p),
            least=MIN_CLUSTERS,
        )
