"""Inter-annotator agreement on the same tuples.

Observed and strong agreement are ratios of sums over tuples, so that each jackknife replicate only subtracts
the sum of the omitted cluster. Krippendorff's alpha is a linear function of observed agreement.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Source, Tabular, frames_like_source
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.base.tables import Cell, Column, ResultTable, part_name
from bws.files import as_judgments
from bws.metadata import By, breakdown
from bws.raw_agreement import chance_of_equal_answers
from bws.records import Judgments
from bws.stats.clusters import (
    MIN_CLUSTERS,
    ClusterVariance,
    cluster_sums,
    effective_number,
    few_clusters_note,
    t_quantile,
    too_few_clusters_note,
    two_way_variance,
    uneven_clusters_note,
)
from bws.stats.estimates import Estimate

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
MAXIMA = {"observed": 1.0, "strong": 100.0}
"""The largest value of each measure; the smallest is 0."""
INTERVAL_DECIMALS = 12
REPEATED_CALLS_NOTE = note(
    "judgments of one language model of the same tuple are compared like those of different annotators: "
    "this is its consistency, not agreement"
)
Measures = dict[str, dict[str, Floats]]
"""A measure (observed, strong), then an answer (both, best, worst, joint), to (...,) values."""
ANSWERS = ("both", "best", "worst", "joint")
MAX_POSITION_DIFFERENCE = 0.02
"""Difference between alpha and alpha over positions above which a note reports the latter."""
ROUNDING = 1e-9
"""Tolerance for rounding errors of share times count: 0.7 * 10 is 7.000000000000001."""
NO_PAIRED_TUPLE = note("no agreement: no tuple has two judgments")


@dataclass(frozen=True, eq=False)
class AgreementGroup:
    """Agreement on a group of tuples."""

    by: Mapping[str, Any]
    """Column values that these tuples share; empty for all tuples."""
    tuples: int
    """Tuples with at least one judgment."""
    annotations: int
    alpha: Mapping[str, Estimate]
    """Krippendorff's alpha of ``best`` and ``worst``, of ``both`` pooled, and of their pair, ``joint``; the
    expected agreement is that of random answers to a tuple."""
    observed: Mapping[str, Estimate]
    """Share of pairs of annotators of a tuple that gave the same answer, in [0, 1]; same names."""
    strong: Mapping[str, Estimate]
    """Percentage of tuples with strong agreement on ``best`` and ``worst``."""
    alpha_positions: Mapping[str, float]
    """Krippendorff's alpha with the expected agreement of the positions in which the items are written; same
    names as `alpha`."""
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
            "alpha_positions": dict(self.alpha_positions),
            "intervals": {name: _intervals(estimates) for name, estimates in measures.items()},
            "notes": list(self.notes),
        }

    def cells(self) -> Iterator[Cell]:
        """Yield the measures, without limits if no interval was requested."""
        for estimates in (self.alpha, self.strong, self.observed):
            for estimate in (estimates[answer] for answer in ANSWERS if answer in estimates):
                is_plain = math.isnan(estimate.low) and not self.without_interval
                yield estimate.value if is_plain else estimate
        yield from self.alpha_positions.values()


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
            *_columns("alpha_positions", "alpha over positions", ANSWERS, ".3f", is_detail=True),
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
            limits=f"intervals/{measure}/{answer}",
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
    control: Iterable[str] = (),
) -> Agreement:
    """Return Krippendorff's alpha and strong agreement on best and worst answers (GiCCS, section 3.3).

    judgments: `Judgments`, a path, a data frame, or records.

    Two annotators agree if they gave the same answer to the same question about the same tuple: they chose
    the same item, or for ``joint`` the same (best, worst) pair of items. alpha = 1 - D_o / D_e (Krippendorff
    2011, Computing Krippendorff's Alpha-Reliability, nominal data). D_o is the share of differing pairs among
    answers to one question about one tuple; for ``both``, best and worst questions are pooled. ``observed``
    is 1 - D_o. D_e is that of random answers: two of them differ with probability 1 - 1 / K, for ``joint``
    1 - 1 / (K (K - 1)). If all tuples have the same number of judgments, this is the free-marginal kappa of
    Brennan and Prediger (1981) and Randolph (2005).

    ``alpha_positions`` takes D_e from all pairs of answers instead, which are coded as the position of the
    item in its tuple as written (`Tuples.members`; if rows of a file list a tuple in different orders, that
    of the first row). It is the value of programs for Krippendorff's alpha if answers are coded in this way.
    It equals alpha up to O(1 / n) if items are in random positions, is lower if the best or worst item tends
    to be in the same position, and NaN if all answers are at one position. A note reports a visible
    difference.

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
    hard. Tuples with control items do not count, with a note: they are easy, or placeholders of various items
    (`control`: as in `read_judgments`).

    Results are independent of the order of rows and of the ids of items, tuples and annotators, and all but
    ``alpha_positions`` of the order of the items in a row. alpha is 1 for perfect agreement, 0 on average for
    random answers, and negative for less agreement than by chance. Without a tuple with two judgments, all
    measures are NaN, with a note.

    Raises ValueError for an argument out of range or if all tuples are adaptive, and InputError if there are
    no judgments, or for copies of judgments (`bws.copies`).

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> answers = [("a", "c"), ("a", "c"), ("a", "b"), ("b", "c")]
    >>> rows = [Judgment(("a", "b", "c"), best, worst) for best, worst in answers]
    >>> rows += [Judgment(("c", "d", "b"), "b", "d")] * 4
    >>> whole = agreement(judgments_from_records(rows)).groups[0]
    >>> whole.observed["best"].value  # 3 of the 6 pairs on the first tuple, 6 of 6 on the second
    0.75
    >>> round(whole.alpha["best"].value, 3), whole.strong["best"].value  # 1 - (1 - 0.75) / (1 - 1/3)
    (0.625, 50.0)
    >>> round(whole.alpha_positions["best"], 3)
    0.632
    """
    judgments = as_judgments(judgments, control)
    if not 0 < strong <= 1:
        raise ValueError(f"strong is {strong}; expected a share above 0 and at most 1")
    if not len(judgments):
        message = note("no judgments; agreement requires at least one")
        raise InputError(Problem(judgments.source or "judgments", None, message))
    judgments.check_no_copies()
    control_notes = judgments.notes
    judgments, adaptive_notes = judgments.without_adaptive("agreement")
    groups = [
        _measure_group(values, subset, strong, intervals)
        for values, subset in breakdown(judgments, by)
    ]
    notes = [
        *control_notes,
        *adaptive_notes,
        *([REPEATED_CALLS_NOTE] if judgments.has_repeated_calls else []),
        *groups[0].notes,
        *_position_notes(groups[0]),
    ]
    groups[0] = replace(groups[0], notes=tuple(notes))
    settings = {
        "alpha": "nominal, answers are items of the tuple, expected agreement of random answers",
        "strong": strong,
        "interval": "jackknife" if intervals else None,
    }
    return Agreement(tuple(groups), settings, judgments)


def _measure_group(
    by: Mapping[str, Any], subset: Judgments, strong: float, intervals: bool
) -> AgreementGroup:
    counts = [count.astype(np.float64) for count in _count_answers(subset)]
    paired_tuples = np.flatnonzero(counts[0].sum(axis=1) >= 2)
    counts = [count[paired_tuples] for count in counts]
    statistics = _statistics(counts, strong)
    sums = _sum_exactly(statistics)
    tuples = len(np.unique(subset.tuple_of))
    log.debug("%s: %d judgments of %d tuples", part_name(by), len(subset), tuples)
    notes = _undefined_notes(tuples, len(statistics))
    no_interval_reason, jackknife_values = "", list[Measures]()
    if intervals:
        has_groups = len(subset.tuples.groups) > 1
        clusters = _rank_keys(subset.tuples.clusters()[paired_tuples])
        no_interval_reason, cluster_notes = _cluster_notes(
            subset, len(np.unique(clusters)), has_groups
        )
        notes += cluster_notes
        if not no_interval_reason:
            jackknife_values = [_measures(sums - cluster_sums(statistics, clusters))]
            if _enough_annotators(subset):
                changes = (
                    sums + cluster_sums(changed, labels)
                    for changed, labels in _deletions_by_cluster(subset, strong)
                )
                by_annotator, by_cell = map(_measures, changes)
                jackknife_values = [by_annotator, *jackknife_values, by_cell]
    estimates = {
        name: {
            answer: _estimate(
                value,
                [kind[name][answer] for kind in jackknife_values],
                MAXIMA[name],
                effective_number(subset.annotator_of),
            )
            for answer, value in values.items()
        }
        for name, values in _measures(sums).items()
    }
    if jackknife_values:
        notes += _missing_interval_notes(estimates["observed"])
    return AgreementGroup(
        by,
        tuples,
        len(subset),
        _alpha(estimates["observed"], subset.tuples.k),
        **estimates,
        alpha_positions=_alpha_positions(estimates["observed"], counts),
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
            note(
                "without groups, tuples that share items are treated as independent: the intervals are "
                "conservative"
            )
        )
    if _enough_annotators(subset):
        notes.append(uneven_clusters_note(subset.annotator_of, "annotators"))
    else:
        notes.append(
            note(
                "fewer than {n:d} annotators, or judgments without annotator: the intervals do not "
                "generalise to other annotators",
                n=MIN_CLUSTERS,
            )
        )
    return "", list(filter(None, notes))


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
    value: Floats, jackknife_values: list[Floats], maximum: float, annotators: float
) -> Estimate:
    """Return a value with its jackknife interval; without interval if a replicate is undefined.

    `jackknife_values`: the leave-one-cluster-out values of groups, or of annotators, groups and their
    intersections; empty for no interval. `maximum`: the largest possible value. `annotators`: their effective
    number, on which correction and degrees of freedom of their variance are based. The limits are rounded to
    12 decimals, so that they are independent of the order of summation.
    """
    if (
        not jackknife_values
        or math.isnan(value)
        or not all(np.isfinite(values).all() for values in jackknife_values)
    ):
        return Estimate(float(value))
    variances = [_jackknife(values) for values in jackknife_values]
    if len(variances) > 1:
        variances[0] = variances[0]._replace(clusters=np.array([annotators]))
    error = two_way_variance(*variances)
    margin = float((t_quantile(error.df) * np.sqrt(error.variance))[0])
    low, high = (
        np.clip([value - margin, value + margin], 0, maximum).round(INTERVAL_DECIMALS).tolist()
    )
    return Estimate(float(value), low, high)


def _jackknife(values: Floats) -> ClusterVariance:
    """Return the jackknife variance from the (C,) leave-one-cluster-out values."""
    c = len(values)
    squares = ((values - values.mean()) ** 2).sum() * ((c - 1) / c) ** 2
    return ClusterVariance(np.array([squares]), np.array([c]))


def _undefined_notes(n_tuples: int, n_paired: int) -> list[str]:
    notes = []
    if n_paired < n_tuples:
        notes.append(
            note(
                "{n:d} of {m:d} tuples have one judgment and count in no measure",
                n=n_tuples - n_paired,
                m=n_tuples,
            )
        )
    if not n_paired:
        notes.append(NO_PAIRED_TUPLE)
    return notes


def _missing_interval_notes(observed: Mapping[str, Estimate]) -> list[str]:
    estimate = observed["both"]  # All are undefined for the same clusters.
    if math.isnan(estimate.value) or not math.isnan(estimate.low):
        return []
    return [note("no intervals: no tuple has two judgments without one of the clusters")]


def _position_notes(group: AgreementGroup) -> list[str]:
    """Return a note with alpha over positions if it differs visibly from alpha."""
    differences = [group.alpha[name].value - group.alpha_positions[name] for name in ANSWERS]
    if math.isnan(group.alpha["both"].value) or all(
        abs(difference) <= MAX_POSITION_DIFFERENCE for difference in differences
    ):
        return []
    values = ", ".join(f"{name} {value:.3f}" for name, value in group.alpha_positions.items())
    return [
        note(
            "with positions in the row as answers, alpha is {values} (alpha_positions), because some "
            "positions are chosen more often than others; published values may be computed in this way",
            values=values,
        )
    ]


def _deletions(judgments: Judgments, strong: float) -> Floats:
    """Return (J, S) changes of the sum of `_statistics` when a judgment is omitted.

    Changes are additive over judgments of different tuples, such as those of one annotator.
    """
    rows = np.arange(len(judgments))
    before, after = [], []
    for count, (answers, _) in zip(_count_answers(judgments), _questions(judgments), strict=True):
        before.append(count[judgments.tuple_of].astype(np.float64))
        after.append(before[-1].copy())
        after[-1][rows, answers] -= 1
    changes: Floats = _statistics(after, strong) - _statistics(before, strong)
    return changes


def _questions(judgments: Judgments) -> list[tuple[NDArray[np.integer], int]]:
    """Return the answers (J,) and the number of possible answers per question: best, worst, pair."""
    k = judgments.tuples.k
    return [(judgments.best, k), (judgments.worst, k), (_answer_pairs(judgments), k * (k - 1))]


def _statistics(counts: list[Floats], strong: float) -> Floats:
    """Return (U, 7) statistics from (U, n) answer counts per question (best, worst, pair).

    They are the pairs of equal answers in either order, divided by the number of annotators minus one, per
    question; whether agreement on best, and on worst, is strong; the number of annotators; and 1. All are 0
    for fewer than two annotators.
    """
    total = counts[0].sum(axis=1)
    agreeing = map(_agreeing_pairs, counts)
    is_strong = (count.max(axis=1) >= strong * total - ROUNDING for count in counts[:2])
    statistics = np.column_stack((*agreeing, *is_strong, total, np.ones(len(total))))
    statistics[total < 2] = 0
    return statistics


def _answer_pairs(judgments: Judgments) -> NDArray[np.int64]:
    """Return (J,) indices of each judgment's pair of best and worst position, in [0, K (K - 1))."""
    k = judgments.tuples.members.shape[1]
    worst_of_rest = judgments.worst - (judgments.worst > judgments.best)
    pairs: NDArray[np.int64] = judgments.best.astype(np.int64) * (k - 1) + worst_of_rest
    return pairs


def _count_answers(judgments: Judgments) -> Iterator[NDArray[np.intp]]:
    """Yield (T, n) counts of the n possible answers per tuple, for each question."""
    n_tuples = len(judgments.tuples)
    for answers, n in _questions(judgments):
        cell = judgments.tuple_of.astype(np.int64) * n + answers
        yield np.bincount(cell, minlength=n_tuples * n).reshape(n_tuples, n)


def _agreeing_pairs(counts: Floats) -> Floats:
    """Return (U,) pairs of equal answers in either order, divided by the number of answers minus one."""
    divisor = np.maximum(counts.sum(axis=1) - 1, 1)
    agreeing: Floats = (counts * (counts - 1)).sum(axis=1) / divisor
    return agreeing


def _sum_exactly(statistics: Floats) -> Floats:
    """Return the sums over tuples, bit-identical for every order of tuples."""
    return np.array([math.fsum(column) for column in statistics.T])


def _measures(sums: Floats) -> Measures:
    """Return observed and strong agreement from (..., 7) sums of `_statistics`.

    ``both`` pools best and worst questions, ``joint`` treats a judgment's (best, worst) as one answer.
    """
    best, worst, joint, strong_best, strong_worst, annotations, tuples = np.moveaxis(sums, -1, 0)
    agreeing = {"both": (best + worst) / 2, "best": best, "worst": worst, "joint": joint}
    strong = {"best": strong_best, "worst": strong_worst}
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "observed": {name: pairs / annotations for name, pairs in agreeing.items()},
            "strong": {name: 100 * count / tuples for name, count in strong.items()},
        }


def _alpha(observed: Mapping[str, Estimate], k: int) -> dict[str, Estimate]:
    """Return alpha with the expected agreement of random answers to tuples of k items."""
    chance = chance_of_equal_answers(k)
    chance["both"] = chance["best"]
    return {
        name: estimate.transformed(partial(_correct_for_chance, expected=chance[name]))
        for name, estimate in observed.items()
    }


def _alpha_positions(observed: Mapping[str, Estimate], counts: list[Floats]) -> dict[str, float]:
    """Return alpha with the expected agreement of all pairs of answers, from (U, n) counts per question."""
    best, worst, joint = (count.sum(axis=0) for count in counts)
    positions = {"both": best + worst, "best": best, "worst": worst, "joint": joint}
    return {
        name: _correct_for_chance(observed[name].value, _share_of_equal_pairs(count))
        for name, count in positions.items()
    }


def _share_of_equal_pairs(counts: Floats) -> float:
    """Return the share of pairs of equal answers among all pairs; NaN without pairs."""
    n = counts.sum()
    return float((counts * (counts - 1)).sum() / (n * (n - 1))) if n > 1 else math.nan


def _correct_for_chance(observed: float, expected: float) -> float:
    """Return the agreement above the expected one, as a share of the largest possible."""
    is_undefined = math.isnan(observed) or expected == 1
    return math.nan if is_undefined else (observed - expected) / (1 - expected)
