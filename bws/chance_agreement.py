"""Inter-annotator agreement on the same tuples.

Krippendorff's alpha, observed and strong agreement are functions of sums over tuples, so that each jackknife
replicate only subtracts the sum of the omitted cluster.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.clusters import (
    MIN_CLUSTERS,
    ClusterVariance,
    Estimate,
    cluster_sums,
    few_clusters_note,
    t_quantile,
    too_few_clusters_note,
    two_way_variance,
)
from bws.files import as_judgments
from bws.frames import Source, Tabular, frames_like_source
from bws.metadata import By, breakdown
from bws.problems import InputError, Problem
from bws.records import Judgments
from bws.tables import Cell, Column, ResultTable, part_name

__all__ = ["Agreement", "AgreementGroup", "agreement"]

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
BOUNDS = {"alpha": (-math.inf, 1.0), "observed": (0.0, 1.0), "strong": (0.0, 100.0)}
"""The smallest and the largest value of each measure."""
INTERVAL_DECIMALS = 12
REPEATED_CALLS_NOTE = (
    "judgments of one language model of the same tuple are compared like those of different annotators: "
    "this is its consistency, not agreement"
)
Measures = dict[str, dict[str, Floats]]
"""A measure (alpha, observed, strong), then an answer (both, best, worst, joint), to (...,) values."""
ANSWERS = ("both", "best", "worst", "joint")

AGREEING, STRONG, TUPLE_COUNT, POSITIONS = 0, 1, 2, slice(3, None)
"""The columns of a question's statistics."""
ROUNDING = 1e-9
"""Tolerance for rounding errors of share times count: 0.7 * 10 is 7.000000000000001."""


@dataclass(frozen=True, eq=False)
class AgreementGroup:
    """Agreement on a group of tuples."""

    by: Mapping[str, Any]
    """Column values that these tuples share; empty for all tuples."""
    tuples: int
    """Tuples with at least one judgment."""
    annotations: int
    alpha: Mapping[str, Estimate]
    """Krippendorff's alpha of ``best`` and ``worst``, of ``both`` pooled, and of their pair, ``joint``."""
    observed: Mapping[str, Estimate]
    """Share of pairs of annotators of a tuple that gave the same answer, in [0, 1]; same names."""
    strong: Mapping[str, Estimate]
    """Percentage of tuples with strong agreement on ``best`` and ``worst``."""
    notes: tuple[str, ...] = ()
    """Skipped tuples, and reasons for NaN."""
    without_interval: bool = False
    """Whether intervals were requested of too few groups or tuples."""

    def document(self) -> dict[str, Any]:
        """Return the group as a JSON-serialisable dict."""
        measures = {"alpha": self.alpha, "observed": self.observed, "strong": self.strong}
        return {
            "by": dict(self.by),
            "tuples": self.tuples,
            "annotations": self.annotations,
            **{
                name: {answer: estimate.value for answer, estimate in estimates.items()}
                for name, estimates in measures.items()
            },
            "intervals": {name: _intervals(estimates) for name, estimates in measures.items()},
            "notes": list(self.notes),
        }

    def cells(self) -> Iterator[Cell]:
        """Yield the measures, without limits if no interval was requested."""
        for estimates in (self.alpha, self.strong, self.observed):
            for estimate in (estimates[answer] for answer in ANSWERS if answer in estimates):
                is_plain = math.isnan(estimate.low) and not self.without_interval
                yield estimate.value if is_plain else estimate


def _intervals(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, float]]:
    return {
        answer: {"low": estimate.low, "high": estimate.high}
        for answer, estimate in estimates.items()
        if not math.isnan(estimate.low)
    }


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(Tabular):
    """Agreement on all tuples and on each group."""

    groups: tuple[AgreementGroup, ...]
    """All tuples first, then the groups."""
    settings: Mapping[str, Any]
    judgments: Judgments

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON-serialisable dict."""
        digest = self.judgments.canonical.digest()
        signature = {**self.settings, "judgments": digest, "version": version("giccs")}
        return {"groups": [group.document() for group in self.groups], "signature": signature}

    def result_table(self) -> ResultTable:
        """Return a row per group (GiCCS, Table 1)."""
        columns = [
            Column("part"),
            Column("tuples", "tuples", source="tuples"),
            Column("annotations", "annotations", source="annotations"),
            *_columns("alpha", "alpha", ANSWERS, ".3f"),
            *_columns("strong", "strong %", ANSWERS[1:3], ".1f"),
            *_columns("observed", "same answer", ANSWERS, ".3f", is_detail=True),
        ]
        rows = [
            [group.by, group.tuples, group.annotations, *group.cells()] for group in self.groups
        ]
        notes = [f"{part_name(group.by)}: {note}" for group in self.groups for note in group.notes]
        title = "Krippendorff's alpha and strong agreement (GiCCS, Table 1)"
        sources = [f"/groups/{n}" for n in range(len(rows))]
        return ResultTable(columns, rows, notes, title, "nan", sources)


def _columns(
    measure: str, group: str, answers: Sequence[str], spec: str, *, is_detail: bool = False
) -> list[Column]:
    return [
        Column(
            f"{measure}_{answer}", answer, spec, group=group, source=f"{measure}/{answer}",
            is_detail=is_detail,
        )
        for answer in answers
    ]  # fmt: skip


@frames_like_source
def agreement(
    judgments: Judgments | Source,
    *,
    strong: float = 0.8,
    intervals: bool = False,
    by: By | None = None,
) -> Agreement:
    """Return Krippendorff's alpha and strong agreement on best and worst answers (GiCCS, section 3.3).

    judgments: `Judgments`, a path, a data frame, or records.

    Two annotators agree if they gave the same answer to the same question about the same tuple.
    alpha = 1 - D_o / D_e (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, nominal
    data). D_o is the share of differing pairs among answers to one question about one tuple, and D_e the
    share among all pairs of answers. For ``both``, best and worst questions are pooled: each is a separate
    unit, and D_e is over pairs of all answers. For ``joint``, a judgment's (best, worst) is one answer out
    of K (K - 1), and two annotators agree if both are the same.

    The category of an answer is the position of the chosen item in its tuple, as in `Tuples.members`, not
    the item. With N items as categories, random answers would have an alpha near 1 / K, as annotators of a
    tuple choose among K items only; with positions, alpha is 0. Therefore D_e depends on the order in which
    tuples are written. D_e is 1 - 1 / K if items are in every position equally often, and other random
    orders change it only by chance. It is small, and alpha with it, if the best item is always written
    first. If rows of a file list a tuple in different orders, the order of the first row is used.
    ``observed`` is 1 - D_o and independent of the order.

    strong: share of annotators, in (0, 1], that must give the same answer for strong agreement on a tuple;
    0.8 is four of five, four of four, three of three. Strong agreement is a percentage of the tuples with
    at least two judgments. Tuples with one judgment count in no measure; notes give their number.

    intervals: 95 % intervals, estimate ± t standard errors by a two-way jackknife over annotators and
    groups, or tuples without groups (`two_way_variance`). They generalise to other annotators and groups.
    With fewer than `MIN_CLUSTERS` annotators, or judgments without annotator, the jackknife is over groups
    alone, with a note. There are no intervals for fewer than `MIN_CLUSTERS` groups or tuples.

    by: mapping from column names to (T,) values, one per tuple of `judgments.tuples`. The first result is
    that of all tuples, followed by those of each combination of values, sorted.

    Of an adaptive study, only warm-up and audit tuples count, with a note: adaptive tuples are chosen to be
    hard.

    Results are independent of the order of rows, items and annotators. alpha is 1 for perfect agreement,
    about 0 for random answers, and negative for less agreement than by chance. It is NaN, with a note, if no
    tuple has two judgments or all answers are at the same position.

    Raises ValueError for an argument out of range or if all tuples are adaptive, and InputError if there are
    no judgments, or for copies of judgments (`bws.copies`).

    >>> from bws.records import Judgment, Judgments
    >>> answers = [("a", "c"), ("a", "c"), ("a", "b"), ("b", "c")]
    >>> rows = [Judgment(("a", "b", "c"), best, worst) for best, worst in answers]
    >>> rows += [Judgment(("c", "d", "b"), "b", "d")] * 4
    >>> whole = agreement(Judgments.from_records(rows)).groups[0]
    >>> whole.observed["best"].value  # 3 of the 6 pairs on the first tuple, 6 of 6 on the second
    0.75
    >>> round(whole.alpha["best"].value, 3), whole.strong["best"].value
    (0.632, 50.0)
    """
    judgments = as_judgments(judgments)
    if not 0 < strong <= 1:
        raise ValueError(f"strong is {strong}; expected a share above 0 and at most 1")
    if not len(judgments):
        message = "no judgments; agreement requires at least one"
        raise InputError(Problem(judgments.source or "judgments", None, message))
    judgments.check_no_copies()
    judgments, adaptive_notes = judgments.without_adaptive("agreement")
    groups = [
        _measure_group(values, subset, strong, intervals)
        for values, subset in breakdown(judgments, by)
    ]
    notes = [*adaptive_notes, *([REPEATED_CALLS_NOTE] if judgments.has_repeated_calls else [])]
    groups[0] = replace(groups[0], notes=(*notes, *groups[0].notes))
    settings = {
        "alpha": "nominal, answers are places in the tuple as written",
        "strong": strong,
        "interval": "jackknife" if intervals else None,
    }
    return Agreement(tuple(groups), settings, judgments)


def _measure_group(
    by: Mapping[str, Any], subset: Judgments, strong: float, intervals: bool
) -> AgreementGroup:
    statistics, cluster_of = _tuple_statistics(subset, strong)
    k = subset.tuples.members.shape[1]
    sums = _sum_exactly(statistics, k)
    point_estimates = _measures(sums, k)
    tuples = len(np.unique(subset.tuple_of))
    log.debug("%s: %d judgments of %d tuples", part_name(by), len(subset), tuples)
    notes = _undefined_notes(tuples, len(statistics), point_estimates["alpha"])
    no_interval_reason, jackknife_values = "", list[Measures]()
    if intervals:
        has_groups = len(subset.tuples.groups) > 1
        clusters = _rank_keys(cluster_of)
        no_interval_reason, cluster_notes = _cluster_notes(
            subset, len(np.unique(clusters)), has_groups
        )
        notes += cluster_notes
        if not no_interval_reason:
            jackknife_values = [_measures(sums - cluster_sums(statistics, clusters), k)]
            if _enough_annotators(subset):
                changes = (
                    sums + cluster_sums(changed, labels)
                    for changed, labels in _deletions_by_cluster(subset, strong)
                )
                by_annotator, by_cell = (_measures(change, k) for change in changes)
                jackknife_values = [by_annotator, *jackknife_values, by_cell]
    estimates = {
        name: {
            answer: _estimate(
                value, [kind[name][answer] for kind in jackknife_values], BOUNDS[name]
            )
            for answer, value in values.items()
        }
        for name, values in point_estimates.items()
    }
    if jackknife_values:
        notes += _missing_interval_notes(estimates["alpha"])
    return AgreementGroup(
        by,
        tuples,
        len(subset),
        **estimates,
        notes=tuple(notes),
        without_interval=bool(no_interval_reason),
    )


def _cluster_notes(subset: Judgments, units: int, has_groups: bool) -> tuple[str, list[str]]:
    """Return the reason for missing intervals, or an empty string, and notes on the intervals."""
    name = "groups" if has_groups else "tuples"
    if no_interval_reason := too_few_clusters_note(units, name):
        return no_interval_reason, [no_interval_reason]
    notes = [few_clusters_note(units, name)]
    if not has_groups:
        notes.append(
            "without groups, tuples that share items are treated as independent: the intervals are "
            "conservative"
        )
    if _enough_annotators(subset):
        notes.append(few_clusters_note(len(np.unique(subset.annotator_of)), "annotators"))
    else:
        notes.append(
            f"fewer than {MIN_CLUSTERS} annotators, or judgments without annotator: the intervals do not "
            "generalise to other annotators"
        )
    return "", [note for note in notes if note]


def _enough_annotators(subset: Judgments) -> bool:
    """Return whether all judgments name an annotator and there are enough annotators for intervals."""
    annotators = np.unique(subset.annotator_of)
    return bool((annotators >= 0).all()) and len(annotators) >= MIN_CLUSTERS


def _deletions_by_cluster(
    subset: Judgments, strong: float
) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """Yield (J, S) changes of the sums when a judgment is omitted, with its annotator and its cell.

    A cell contains the judgments of an annotator in a group, or of a tuple if there are no groups.
    """
    changes = _deletions(subset, strong)
    cluster_of = _rank_keys(subset.tuples.clusters()[subset.tuple_of])
    n_clusters = int(cluster_of.max(initial=0)) + 1
    yield changes, _rank_keys(subset.annotator_of)
    yield changes, _rank_keys(subset.annotator_of.astype(np.int64) * n_clusters + cluster_of)


def _rank_keys(keys: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the rank of each key among the distinct keys."""
    ranks: NDArray[np.int64] = np.unique(keys, return_inverse=True)[1].ravel().astype(np.int64)
    return ranks


def _estimate(
    value: Floats, jackknife_values: list[Floats], bounds: tuple[float, float]
) -> Estimate:
    """Return a value with its jackknife interval; without interval if a replicate is undefined.

    `jackknife_values`: the leave-one-cluster-out values of groups, or of annotators, groups and their
    intersections; empty for no interval. `bounds`: the smallest and the largest possible value. The limits
    are rounded to 12 decimals, so that they are independent of the order of summation.
    """
    if (
        not jackknife_values
        or math.isnan(value)
        or any(np.isnan(values).any() for values in jackknife_values)
    ):
        return Estimate(float(value))
    error = two_way_variance(*(_jackknife(values) for values in jackknife_values))
    margin = float((t_quantile(error.df) * np.sqrt(error.variance))[0])
    low, high = np.clip([value - margin, value + margin], *bounds).round(INTERVAL_DECIMALS).tolist()
    return Estimate(float(value), low, high)


def _jackknife(values: Floats) -> ClusterVariance:
    """Return the jackknife variance from the (C,) leave-one-cluster-out values."""
    c = len(values)
    squares = ((values - values.mean()) ** 2).sum() * ((c - 1) / c) ** 2
    return ClusterVariance(np.array([squares]), np.array([c]))


def _undefined_notes(n_tuples: int, n_paired: int, alpha: Mapping[str, Floats]) -> list[str]:
    notes = []
    if n_paired < n_tuples:
        notes.append(
            f"{n_tuples - n_paired} of {n_tuples} tuples have one judgment and count in no measure"
        )
    if not n_paired:
        return [*notes, "no agreement: no tuple has two judgments"]
    undefined = [answer for answer, value in alpha.items() if np.isnan(value)]
    if undefined:
        reason = f"alpha ({', '.join(undefined)}) is undefined: all answers are at the same position of their"
        notes.append(f"{reason} tuples; write the items of each tuple in random order")
    return notes


def _missing_interval_notes(alpha: Mapping[str, Estimate]) -> list[str]:
    missing = [
        answer
        for answer, estimate in alpha.items()
        if math.isnan(estimate.low) and not math.isnan(estimate.value)
    ]
    if not missing:
        return []
    return [f"no interval of alpha ({', '.join(missing)}): undefined without one of the clusters"]


def _tuple_statistics(judgments: Judgments, strong: float) -> tuple[Floats, NDArray[np.int64]]:
    """Return the statistics of the U tuples with at least two judgments, and their clusters (U,).

    The statistics are (U, 1 + K (K - 1) + 2 (3 + K)). First those of the pairs (best, worst): pairs of
    equal answers in either order, divided by the tuple's number of annotators minus one; and counts of each
    pair. Then for each question (best, worst): equal answers likewise; 1 if agreement is strong, else 0; 1;
    and counts of each position.
    """
    counts = [
        _count_answers(judgments, answers, n).astype(np.float64)
        for answers, n in _questions(judgments)
    ]
    paired_tuples = np.flatnonzero(counts[0].sum(axis=1) >= 2)
    statistics = _statistics([count[paired_tuples] for count in counts], strong)
    return statistics, judgments.tuples.clusters()[paired_tuples]


def _deletions(judgments: Judgments, strong: float) -> Floats:
    """Return (J, S) changes of the sum of `_tuple_statistics` when a judgment is omitted.

    Changes are additive over judgments of different tuples, such as those of one annotator.
    """
    rows = np.arange(len(judgments))
    before, after = [], []
    for answers, n in _questions(judgments):
        count = _count_answers(judgments, answers, n).astype(np.float64)[judgments.tuple_of]
        before.append(count)
        after.append(count.copy())
        after[-1][rows, answers] -= 1
    changes: Floats = _statistics(after, strong) - _statistics(before, strong)
    return changes


def _questions(judgments: Judgments) -> list[tuple[NDArray[np.integer], int]]:
    """Return the answers (J,) and the number of possible answers per question: pair, best, worst."""
    k = judgments.tuples.members.shape[1]
    return [(_answer_pairs(judgments), k * (k - 1)), (judgments.best, k), (judgments.worst, k)]


def _statistics(counts: list[Floats], strong: float) -> Floats:
    """Return (U, S) statistics of `_tuple_statistics` from (U, n) answer counts per question.

    All are 0 for fewer than two answers.
    """
    pairs, *questions = counts
    columns = [_agreeing_pairs(pairs)[:, None], pairs]
    for count in questions:
        total = count.sum(axis=1)
        is_strong = count.max(axis=1) >= strong * total - ROUNDING
        columns += [
            np.column_stack((_agreeing_pairs(count), is_strong, np.ones(len(count)))),
            count,
        ]
    statistics: Floats = np.hstack(columns)
    statistics[pairs.sum(axis=1) < 2] = 0
    return statistics


def _answer_pairs(judgments: Judgments) -> NDArray[np.int64]:
    """Return (J,) indices of each judgment's pair of best and worst position, in [0, K (K - 1))."""
    k = judgments.tuples.members.shape[1]
    worst_of_rest = judgments.worst - (judgments.worst > judgments.best)
    pairs: NDArray[np.int64] = judgments.best.astype(np.int64) * (k - 1) + worst_of_rest
    return pairs


def _count_answers(judgments: Judgments, answers: NDArray[np.integer], n: int) -> NDArray[np.intp]:
    """Return (T, n) counts of each of n answers per tuple."""
    n_tuples = len(judgments.tuples.members)
    cell = judgments.tuple_of.astype(np.int64) * n + answers
    return np.bincount(cell, minlength=n_tuples * n).reshape(n_tuples, n)


def _agreeing_pairs(counts: Floats) -> Floats:
    """Return (U,) pairs of equal answers in either order, divided by the number of answers minus one."""
    divisor = np.maximum(counts.sum(axis=1) - 1, 1)
    agreeing: Floats = (counts * (counts - 1)).sum(axis=1) / divisor
    return agreeing


def _sum_exactly(statistics: Floats, k: int) -> Floats:
    """Return the sums over tuples of k items, bit-identical for every order of tuples."""
    sums: Floats = statistics.sum(axis=0)
    first = 1 + k * (k - 1)
    for column in (0, first + AGREEING, first + POSITIONS.start + k + AGREEING):
        sums[column] = math.fsum(statistics[:, column])
    return sums


def _measures(sums: Floats, k: int) -> Measures:
    """Return all measures from (..., S) sums of `_tuple_statistics` over tuples of k items.

    ``both`` pools best and worst questions, ``joint`` treats a judgment's (best, worst) as one answer.
    """
    pairs, questions = np.split(sums, [1 + k * (k - 1)], axis=-1)
    questions = questions.reshape(*sums.shape[:-1], 2, POSITIONS.start + k)
    agreeing, positions = questions[..., AGREEING], questions[..., POSITIONS]
    answers = {
        "both": (agreeing.sum(axis=-1), positions.sum(axis=-2)),
        "best": (agreeing[..., 0], positions[..., 0, :]),
        "worst": (agreeing[..., 1], positions[..., 1, :]),
        "joint": (pairs[..., 0], pairs[..., 1:]),
    }
    with np.errstate(invalid="ignore", divide="ignore"):
        strong = 100 * questions[..., STRONG] / questions[..., TUPLE_COUNT]
        return {
            "alpha": {name: _alpha(*counts) for name, counts in answers.items()},
            "observed": {name: _observed(*counts) for name, counts in answers.items()},
            "strong": {"best": strong[..., 0], "worst": strong[..., 1]},
        }


def _observed(agreeing: Floats, positions: Floats) -> Floats:
    """Return the share of agreeing pairs of answers to one question on one tuple."""
    share: Floats = agreeing / positions.sum(axis=-1)
    return share


def _expected(positions: Floats) -> Floats:
    """Return the share of agreeing pairs among all answers; 1 if all are at the same position."""
    n = positions.sum(axis=-1)
    share: Floats = (positions * (positions - 1)).sum(axis=-1) / (n * (n - 1))
    return share


def _alpha(agreeing: Floats, positions: Floats) -> Floats:
    expected = _expected(positions)
    alpha = 1 - (1 - _observed(agreeing, positions)) / (1 - expected)
    return np.where(expected < 1, alpha, math.nan)
