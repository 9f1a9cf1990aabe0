"""Variance components of counting scores: items, the design, annotators, single answers.

A judgment gives each of its K items the value 1 (best), -1 (worst) or 0; the counting score of an item is
the mean of its values. A generalisability study (Cronbach and others 1972; Brennan 2001) takes a value for
item + design + annotator + residual: the quality of the item; its opponents in this tuple; this annotator's
preference for it in all tuples; the rest. Half the expected squared difference of two values of one
item is then

    same tuple, different annotators    annotator + residual
    same annotator, different tuples    design + residual
    both different                      design + annotator + residual

so that mean squared differences over pairs of values are unbiased estimates of the components, for any
assignment of tuples to annotators. Control items have no values, and are not among the opponents.

A generalisability study adds intervals from a two-way jackknife. Clusters of items (groups, or items if
there are few groups) and annotators are samples from populations. The variance of an estimate is that over
clusters, plus that over annotators, minus that over clusters within annotators, which both contain (Owen
2007, Annals of Applied Statistics 1; Cameron, Gelbach and Miller 2011, JBES 29).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Tabular
from bws.base.notes import note
from bws.base.progress import tracked
from bws.base.tables import Column, ResultTable
from bws.records import CanonicalJudgments
from bws.stats.clusters import (
    MIN_CLUSTERS,
    cluster_sums,
    few_clusters_note,
    t_quantile,
    too_few_clusters_note,
)
from bws.stats.estimates import Estimate

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
ROUNDING = 1e-9
COMPONENTS = ("item", "design", "annotator", "residual")
MAX_ANNOTATOR_GROUPS = 20
"""Largest number of jackknife replicates over annotators; more annotators are combined in random groups."""
MAX_CODES_PER_VALUE = 20
"""Largest range of codes per value of which labels are looked up in a table; codes of others are sorted."""
SEED = 0


@dataclass(frozen=True, eq=False)
class Components:
    """Variance components of the values of N items; NaN if not identified by the judgments."""

    item: float
    """Variance of the items' true scores."""
    design: float
    """Variance of an item's values between tuples, due to its opponents."""
    annotator: float
    """Variance of an item's values between annotators that is the same in all tuples."""
    residual: float
    """Variance of an annotator's answers to a tuple, and all that is confounded with it."""
    error: Floats
    """(N,) the variance of each item's score over annotators, designs and answers, from its own values."""

    @property
    def reliability(self) -> float:
        """Share of the scores' variance that is the variance of true scores."""
        if np.isnan(self.item):
            return np.nan
        return self.item / (self.item + float(np.nanmean(self.error)))


def components(
    judgments: CanonicalJudgments, *, excluded_annotators: Integers | None = None
) -> Components:
    """Estimate the variance components of scores.

    excluded_annotators: indices of annotators whose values are excluded from all pairs; the errors are
    those of the scores from all judgments. The error of an item that loses all pairs of a kind is NaN.

    If no annotator judged an item in two tuples, or no tuple has two annotators, the component that requires
    such pairs is part of the residual. The design contributes to an item's error to the extent that its
    opponents are unequally frequent, assuming additive effects of opponents. The contribution is 0 if all
    opponents are equally frequent, as in a group of which every set of K items was judged. Judgments without
    annotator count as judgments of different annotators.

    An estimate of a small component can be negative. It is not truncated at 0, so that means are unbiased.
    A component is NaN if there is one tuple (design) or one annotator (annotator).

    >>> from bws.records import Judgments
    >>> from bws.design import make_tuples
    >>> from bws.simulation import simulate
    >>> design = make_tuples([f"i{n}" for n in range(50)], 4, factor=2)
    >>> judgments = simulate(design, np.linspace(-1, 1, 50), annotators=4, disagreement=0.3)
    >>> estimates = components(judgments.canonical)
    >>> estimates.item > estimates.design > estimates.annotator > 0
    True
    """
    values = _ItemValues.from_judgments(judgments)
    included_values = values
    if excluded_annotators is not None:
        included_values = _ItemValues.from_judgments(
            judgments.select(np.flatnonzero(~np.isin(judgments.annotator_of, excluded_annotators)))
        )
    squares, pairs = included_values.squared_differences
    design, annotator, residual = _solve_components(squares.sum(axis=1), pairs.sum(axis=1))
    error = values.error_variance(
        _judged_design_shares(judgments), *_solve_components(squares, pairs)
    )
    if included_values is not values:
        has_lost_pairs = (values.squared_differences[1] > 0) & (pairs == 0)
        error = np.where(has_lost_pairs.any(axis=0), np.nan, error)
    counts = judgments.counts.first(judgments.n_scored)
    score = (counts.best - counts.worst) / counts.appearances
    has_error = ~np.isnan(error)
    has_enough = np.count_nonzero(has_error) > 1
    item = (
        float(np.var(score[has_error], ddof=1) - error[has_error].mean()) if has_enough else np.nan
    )
    return Components(item, float(design), float(annotator), float(residual), error)


def item_components(judgments: CanonicalJudgments) -> tuple[Floats, Floats, Floats]:
    """Return the (N,) components of design, annotator and residual per item, from the item's values alone.

    As in `components`, estimates may be negative.
    """
    return _solve_components(*_ItemValues.from_judgments(judgments).squared_differences)


@dataclass(frozen=True, eq=False)
class _ItemValues:
    """R = J K values of N items, with their annotators and tuples; without values of control items."""

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
    def from_judgments(cls, judgments: CanonicalJudgments) -> _ItemValues:
        is_scored = judgments.judged_items.ravel() < judgments.n_scored
        return cls(
            judgments.values.ravel()[is_scored],
            judgments.judged_items.ravel()[is_scored],
            np.repeat(judgments.tuple_of, judgments.k)[is_scored],
            np.repeat(judgments.distinct_annotator_of, judgments.k)[is_scored],
            judgments.n_scored,
        )

    @cached_property
    def squared_differences(self) -> tuple[Floats, Floats]:
        """Return (3, N) sums over pairs of an item's values of half the squared differences, and pair counts.

        Rows: same tuple, same annotator, both different.
        """
        everything, tuples, annotators, cells = map(self._squared_differences_within, self._blocks)
        kinds = [tuples - cells, annotators - cells, everything - tuples - annotators + cells]
        squares, pairs = np.stack(kinds, axis=1)
        return squares, pairs

    @cached_property
    def _blocks(self) -> tuple[tuple[Integers, Integers], ...]:
        """Blocks of an item's values: all, of the same tuple, of the same annotator, and of both.

        Each as (R,) indices of the blocks of the values, and the (B,) item of each block.
        """
        tuples, annotators = (
            self._divided(self.item, key) for key in (self.tuple_of, self.annotator_of)
        )
        blocks = (self.item, tuples, annotators, self._divided(tuples, self.annotator_of))
        return tuple((block, self._item_of_block(block)) for block in blocks)

    @staticmethod
    def _divided(block: Integers, key: Integers) -> Integers:
        """Return (R,) indices of the parts of blocks in which a key is the same."""
        return _labels(block * (key.max(initial=0) + 1) + key)

    def _item_of_block(self, block: Integers) -> Integers:
        """Return the (B,) item of each block; an item without values has none."""
        item = np.zeros(block.max(initial=-1) + 1, dtype=np.int64)
        item[block] = self.item
        return item

    def _squared_differences_within(self, blocks: tuple[Integers, Integers]) -> Floats:
        """Return (2, N) `squared_differences` of all pairs of values in the same block."""
        block, item = blocks
        n = np.bincount(block).astype(np.float64)
        total, squared = np.bincount(block, self.value), np.bincount(block, self.value**2)
        size = self.n_items
        squares = np.bincount(item, n * squared - total**2, size) / 2
        return np.stack((squares, np.bincount(item, n * (n - 1), size) / 2))

    def error_variance(
        self, design_shares: Floats, design: Floats, annotator: Floats, residual: Floats
    ) -> Floats:
        """Return the (N,) variance of each item's mean value from the (N,) components of its values."""
        annotators, cells = self.squared_shares
        design_error = np.where(design_shares > 0, design_shares * design, 0)
        return design_error + annotators * annotator + cells * residual

    @property
    def squared_shares(self) -> tuple[Floats, Floats]:
        """Two (N,) sums of squared shares of an item's values: of each annotator, and of each in a tuple."""
        annotators, cells = map(self._squared_shares_of, self._blocks[2:])
        return annotators, cells

    def _squared_shares_of(self, blocks: tuple[Integers, Integers]) -> Floats:
        """Return (N,) sums over blocks of the squared share of an item's values in the block."""
        block, item = blocks
        n, size = np.bincount(block).astype(np.float64), self.n_items
        shares: Floats = np.bincount(item, n**2, size) / np.bincount(item, n, size) ** 2
        return shares


def _labels(codes: Integers) -> Integers:
    """Return (R,) the index of each code among the distinct ones in ascending order.

    >>> _labels(np.array([7, 2, 7])).tolist()
    [1, 0, 1]
    """
    size = int(codes.max(initial=-1)) + 1
    if size > MAX_CODES_PER_VALUE * len(codes):
        return np.unique(codes, return_inverse=True)[1]
    is_present = np.zeros(size, dtype=bool)
    is_present[codes] = True
    labels: Integers = (np.cumsum(is_present) - 1)[codes]
    return labels


def _judged_design_shares(judgments: CanonicalJudgments) -> Floats:
    """Return (N,) `_design_share` with tuples weighted by their judgments."""
    judgments_per_tuple = np.bincount(judgments.tuple_of, minlength=len(judgments.members))
    return _design_share(judgments, judgments_per_tuple.astype(np.float64))


def _solve_components(squares: Floats, pairs: Floats) -> tuple[Floats, Floats, Floats]:
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


def possible_tuples(judgments: CanonicalJudgments) -> Floats:
    """Return (N,) numbers of sets of K items of the item's group that contain the item.

    Here and below, control items are not among the N items.
    """
    group_of = judgments.group_of[: judgments.n_scored]
    sizes = np.maximum(np.bincount(group_of), 1).tolist()
    possible = np.array([float(comb(size - 1, judgments.k - 1)) for size in sizes])
    return possible[group_of]


def is_complete(judgments: CanonicalJudgments) -> bool:
    """Return whether every set of K items of every group was judged."""
    n = judgments.n_scored
    members = judgments.members[(judgments.members < n).all(axis=1)]
    n_judged_tuples = np.bincount(members.ravel(), minlength=n)
    return bool((n_judged_tuples >= possible_tuples(judgments)).all())


def _component_sums(judgments: CanonicalJudgments) -> Floats:
    """Return (N, 12) contributions of the items to the sums from which `_estimates_from_sums` estimates.

    Columns: 1, the score and its square; the factors of the components of design, annotator and residual in
    the error variance of the score; squared differences, and numbers of pairs, of the three kinds. Items
    without judgments (after `CanonicalJudgments.take`) are rows of 0.
    """
    values = _ItemValues.from_judgments(judgments)
    counts = judgments.counts.first(judgments.n_scored)
    with np.errstate(invalid="ignore"):
        score = (counts.best - counts.worst) / counts.appearances
        shares = [
            _judged_design_shares(judgments),
            *values.squared_shares,
        ]
    scores = (np.ones_like(score), score, score**2)
    sums = np.stack((*scores, *shares, *np.concatenate(values.squared_differences)), axis=-1)
    return np.where(counts.appearances[:, None] > 0, sums, 0)


def _estimates_from_sums(sums: Floats) -> Floats:
    """Return (..., 6) estimates from sums (..., 12) of the rows of `_component_sums` over some items.

    The components of item, design, annotator and residual over all items; the mean error variance of the
    scores; log(item / error). NaN as in `components`; the logarithm is NaN unless item and error are
    positive.
    """
    n, total, squared, *remaining_sums = np.moveaxis(sums, -1, 0)
    shares, squares, pairs = np.split(np.stack(remaining_sums), 3)
    with np.errstate(invalid="ignore", divide="ignore"):
        error_components = np.stack(_solve_components(squares, pairs))
        error = np.where(shares > 0, shares / n * error_components, 0).sum(axis=0)
        item = (squared - total**2 / n) / (n - 1) - error
        log_ratio = np.where((item > 0) & (error > 0), np.log(item / error), np.nan)
    return np.stack((item, *error_components, error, log_ratio), axis=-1)


def _design_share(judgments: CanonicalJudgments, weight: Floats) -> Floats:
    """Return (N,) variances of an item's mean value per unit of the design's variance.

    weight: (T,) weights of the tuples.

    Let a value be a sum of effects, of variance v, of the K-1 opponents in the tuple out of the n-1 opponents
    in the group. Opponent o is in a share f_o of the item's values, p = (K-1)/(n-1) on average. The mean
    value then has the variance sum((f_o - p)^2) v. Half the expected squared difference of two values, from
    which the design's variance is estimated, is v times the mean number of opponents in only one of the
    tuples. On simulated logit choices, the root of the reliability is then within 0.005 of the correlation of
    scores and true scores (docs/background/coverage.md). The model of random tuples, which ignores the
    balance of opponents, gives up to 0.07 less in small groups. The result is 0 if all
    opponents are equally frequent. With control items, which are not opponents, K-1 is the mean number of
    the item's opponents in a tuple.
    """
    n, k = judgments.n_scored, judgments.k
    members = np.minimum(judgments.members, n)  # n: control items
    total = np.bincount(members.ravel(), np.repeat(weight, k), n + 1)[:n]
    position_pairs = [(i, o) for i in range(k) for o in range(k) if i != o]
    first, second = (
        np.concatenate([members[:, pair[end]] for pair in position_pairs]) for end in (0, 1)
    )
    is_scored = np.maximum(first, second) < n
    pair, pair_index = np.unique((first * n + second)[is_scored], return_inverse=True)
    pair_weight = np.tile(weight, len(position_pairs))[is_scored]
    share = np.bincount(pair_index, pair_weight) / total[pair // n]
    squares = np.bincount(pair // n, share**2, n)
    opponents = np.bincount(pair // n, share, n) if judgments.n_controls else k - 1
    n_opponents = np.bincount(judgments.group_of[:n])[judgments.group_of[:n]] - 1.0
    unevenness = squares - opponents**2 / n_opponents
    same_tuple = np.bincount(members.ravel(), np.repeat(weight**2, k), n + 1)[:n] / total**2
    different = np.maximum(1 - same_tuple, ROUNDING)  # 0 if the design's variance is unknown
    distinct = opponents - (squares - opponents * same_tuple) / different
    return np.where(unevenness > ROUNDING, unevenness / np.maximum(distinct, ROUNDING), 0.0)


def finite_population_correction(judgments: CanonicalJudgments) -> Floats:
    """Return (N,) finite population corrections of each item's tuples, with equal weights.

    The correction is the variance of an item's score over equally unbalanced designs, divided by the estimate
    from the variance between its tuples, for additive effects of opponents. It is 0 if all opponents are
    equally frequent, as in a complete design; 1 if opponents are few of many; above 1 if the design is less
    balanced than random tuples.
    """
    n = judgments.n_scored
    tuples = np.bincount(judgments.members.ravel(), minlength=len(judgments.items))[:n]
    correction: Floats = tuples * _design_share(judgments, np.ones(len(judgments.members)))
    return correction


@dataclass(frozen=True, eq=False, repr=False)
class Generalisability(Tabular):
    """Variance components of scores, and the reliability of the scores."""

    components: Components
    variances: Mapping[str, Estimate]
    """Components ``item``, ``design``, ``annotator`` and ``residual`` of a single judgment of an item."""
    error_shares: Mapping[str, float]
    """Factors of the variances of ``design``, ``annotator``, ``residual`` in the mean error variance of the
    scores."""
    reliability: Estimate
    notes: tuple[str, ...] = ()
    """Reasons for missing or uncertain values."""

    @property
    def root(self) -> Estimate:
        """The expected correlation of the scores with the true scores: the root of the reliability."""
        return self.reliability.transformed(math.sqrt)

    def document(self) -> dict[str, Any]:
        """Return the study as a JSON-serialisable dict."""
        return {
            "variances": {
                name: estimate.document() | {"of_error": self.error_shares.get(name)}
                for name, estimate in self.variances.items()
            },
            "reliability": self.reliability.document(),
            "root": self.root.document(),
            "notes": list(self.notes),
        }

    def result_table(self) -> ResultTable:
        """Return a row per component; the reliability is a note."""
        total = sum(max(estimate.value, 0) for estimate in self.variances.values())
        rows = [
            [
                name,
                estimate.value,
                _format_interval(estimate),
                100 * max(estimate.value, 0) / total if total > 0 else None,
                self.error_shares[name] * estimate.value if self.error_shares.get(name) else None,
            ]
            for name, estimate in self.variances.items()
        ]
        columns = [
            Column("variance", "variance"),
            Column("judgment", "one judgment", ".4f", align="right"),
            Column("interval", "95 %", align="right"),
            Column("share", "share", ".1f", " %", align="right"),
            Column("score", "in a score", ".4f", align="right"),
        ]
        reliability, root = (
            f"{estimate.value:.4f} {_format_interval(estimate)}".rstrip()
            for estimate in (self.reliability, self.root)
        )
        notes = [
            note(
                "reliability of the scores, all errors included: {estimate}", estimate=reliability
            ),
            note("its root, the correlation with the true scores: {estimate}", estimate=root),
            *self.notes,
        ]
        return ResultTable(columns, rows, notes, "Variance components of the scores", "nan")


def _format_interval(estimate: Estimate) -> str:
    return "" if math.isnan(estimate.low) else f"[{estimate.low:.4f}, {estimate.high:.4f}]"


def generalisability(judgments: CanonicalJudgments) -> Generalisability:
    """Estimate variance components and the reliability of the scores.

    The reliability is that of `Components`, which includes the errors of the design, annotators and single
    answers. A 95 % interval is estimate ± t s, with s from the jackknife over clusters and annotators and t
    with the degrees of freedom of Satterthwaite (1946, Biometrics Bulletin 2). The interval of the item
    variance is computed on the log scale, that of the reliability on the scale of log(item / error). More
    than 20 annotators are omitted in 20 random groups.

    >>> from bws.design import make_tuples
    >>> from bws.simulation import simulate
    >>> design = make_tuples([f"i{n}" for n in range(50)], 4, factor=2)
    >>> study = generalisability(simulate(design, np.linspace(-1, 1, 50)).canonical)
    >>> study.reliability.low < study.reliability.value < study.reliability.high < 1
    True
    """
    cluster_of, unit = _item_clusters(judgments)
    sums = cluster_sums(_component_sums(judgments), cluster_of)
    point_estimate = components(judgments)
    values = np.array([getattr(point_estimate, name) for name in COMPONENTS])
    variances = {
        name: Estimate(float(value)) for name, value in zip(COMPONENTS, values, strict=True)
    }
    shares = sums.sum(axis=0)[3:6] / max(sums[:, 0].sum(), 1)
    notes = [
        *_undefined_notes(point_estimate, shares),
        *_interval_notes(judgments, len(sums), unit),
    ]
    reliability = Estimate(point_estimate.reliability if point_estimate.item > 0 else math.nan)
    if len(sums) >= MIN_CLUSTERS:
        half_widths = _interval_half_widths(judgments, sums, cluster_of)
        variances = _add_intervals(values, half_widths)
        reliability = _reliability_estimate(reliability.value, half_widths[5])
    return Generalisability(
        point_estimate,
        variances,
        dict(zip(COMPONENTS[1:], shares.tolist(), strict=True)),
        reliability,
        tuple(notes),
    )


def _item_clusters(judgments: CanonicalJudgments) -> tuple[NDArray[np.int64], str]:
    """Return the (N,) cluster of each item, and the plural noun for clusters."""
    if len(judgments.groups) >= MIN_CLUSTERS:
        return judgments.group_of[: judgments.n_scored], "groups of items"
    return np.arange(judgments.n_scored), "items"


def _interval_half_widths(
    judgments: CanonicalJudgments, sums: Floats, cluster_of: NDArray[np.int64]
) -> Floats:
    """Return (6,) half-widths of the intervals of `_estimates_from_sums`, from cluster sums (C, 12)."""
    cluster_variance, n = (
        _jackknife_variance(_estimates_from_sums(sums.sum(axis=0) - sums)),
        len(sums),
    )
    annotator_sums = []
    if len(judgments.annotators) > 2:  # a single remaining annotator has no components
        annotator_sums = [
            cluster_sums(_component_sums(judgments.select(rows)), cluster_of)
            for rows in tracked(
                _jackknife_rows(judgments),
                "annotators",
                min(len(judgments.annotators), MAX_ANNOTATOR_GROUPS),
            )
        ]
    annotator_variance, a = np.zeros_like(cluster_variance), len(annotator_sums)
    if annotator_sums:
        totals = np.stack([sums_without.sum(axis=0) for sums_without in annotator_sums])
        cell_estimates = _estimates_from_sums(totals[:, None] - np.stack(annotator_sums))
        cell_estimates = (
            cell_estimates
            - cell_estimates.mean(axis=0)
            - cell_estimates.mean(axis=1, keepdims=True)
            + cell_estimates.mean(axis=(0, 1))
        )
        cell_variance = (a - 1) * (n - 1) / (a * n) * (cell_estimates**2).sum(axis=(0, 1))
        annotator_variance = np.maximum(
            _jackknife_variance(_estimates_from_sums(totals)) - cell_variance, 0
        )
    variance = cluster_variance + annotator_variance
    with np.errstate(invalid="ignore", divide="ignore"):
        df = variance**2 / (cluster_variance**2 / (n - 1) + annotator_variance**2 / max(a - 1, 1))
    half_widths: Floats = t_quantile(df) * np.sqrt(variance)
    return half_widths


def _jackknife_variance(estimates: Floats) -> Floats:
    """Return the (6,) jackknife variance from the (n, 6) estimates without each of n clusters."""
    n = len(estimates)
    variance: Floats = (n - 1) * estimates.var(axis=0)
    return variance


def _jackknife_rows(judgments: CanonicalJudgments) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of the judgments that remain when an annotator, or a random group, is omitted."""
    n = len(judgments.annotators)
    block_of_annotator = np.empty(n, np.int64)
    numbers = np.random.Generator(np.random.PCG64(SEED)).permutation(n)
    block_of_annotator[_order_by_answers(judgments)] = numbers % max(
        min(n, MAX_ANNOTATOR_GROUPS), 1
    )
    block = np.append(block_of_annotator, -1)[judgments.annotator_of]
    for block_number in range(min(n, MAX_ANNOTATOR_GROUPS)):
        yield np.flatnonzero(block != block_number)


def _order_by_answers(judgments: CanonicalJudgments) -> NDArray[np.int64]:
    """Return the (A,) indices of annotators in an order that does not depend on their names.

    They are sorted by numbers of their answers, and sums of powers of the agreement with all answers.
    """
    rows = np.arange(len(judgments))
    members = judgments.members[judgments.tuple_of]
    best, worst = members[rows, judgments.best], members[rows, judgments.worst]
    n = len(judgments.items)
    net = np.bincount(best, minlength=n) - np.bincount(worst, minlength=n)
    sums = np.zeros((4, len(judgments.annotators) + 1), np.int64)  # the last column: unknown
    for power, row in enumerate(sums):
        np.add.at(row, judgments.annotator_of, (net[best] - net[worst]) ** power)
    return np.lexsort(sums[:, :-1])


def _add_intervals(values: Floats, half_widths: Floats) -> dict[str, Estimate]:
    """Return estimates of the (4,) components with intervals; the item's interval is on the log scale."""
    item, width = float(values[0]), float(half_widths[0])
    ends = [(value - by, value + by) for value, by in zip(values, half_widths[:4], strict=True)]
    factor = math.exp(min(width / item, 700)) if item > 0 and width == width else math.nan
    ends[0] = (item / factor, item * factor)
    return {
        name: Estimate(float(value), float(low), float(high))
        for name, value, (low, high) in zip(COMPONENTS, values, ends, strict=True)
    }


def _reliability_estimate(value: float, half_width: float) -> Estimate:
    if not 0 < value < 1:
        return Estimate(value)
    logit = math.log(value / (1 - value))
    low, high = (1 / (1 + math.exp(-(logit + sign * half_width))) for sign in (-1, 1))
    return Estimate(value, low, high)


def _undefined_notes(point_estimate: Components, shares: Floats) -> Iterator[str]:
    if math.isnan(point_estimate.item):
        yield note(
            "no reliability from variance components: requires two annotators and, if the design is "
            "incomplete, items in two tuples"
        )
    elif point_estimate.item <= 0:
        yield note("no reliability: the scores vary no more than their errors")
    if point_estimate.design != point_estimate.design and not shares[0]:
        yield note("the variance of the design is undefined: no item is in two tuples")


def _interval_notes(judgments: CanonicalJudgments, n_clusters: int, unit: str) -> Iterator[str]:
    if cluster_note := too_few_clusters_note(n_clusters, unit) or few_clusters_note(
        n_clusters, unit
    ):
        yield cluster_note
    if len(judgments.groups) < MIN_CLUSTERS:
        yield note(
            "intervals over items of the same group are conservative: dependent scores are treated as "
            "independent"
        )
    n = len(judgments.annotators)
    if not n:
        yield note(
            "no annotators are named: the intervals do not account for differences between annotators"
        )
    elif n < 3:
        yield note(
            "{n:d} named annotators: the intervals do not account for differences between annotators",
            n=n,
        )
