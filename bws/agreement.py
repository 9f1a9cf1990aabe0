"""Agreement: did different annotators give the same answers to the same tuples?"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.alpha import Measures, deletions, measures, of_tuples, total
from bws.breakdown import By, breakdown, part_name
from bws.clusters import (
    MIN_CLUSTERS,
    ClusterVariance,
    few_clusters,
    t_quantile,
    too_few_clusters,
    two_way_variance,
)
from bws.problems import InputError, Problem
from bws.records import Judgments
from bws.scoring.answers import in_order

__all__ = ["Agreement", "AgreementGroup", "Estimate", "agreement"]

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
BOUNDS = {"alpha": (-math.inf, 1.0), "observed": (0.0, 1.0), "strong": (0.0, 100.0)}
"""The smallest and the largest value of each measure."""
DECIMALS = 12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its 95 % interval; NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, eq=False)
class AgreementGroup:
    """The agreement on some of the tuples."""

    by: Mapping[str, Any]
    """What these tuples have in common; empty for the whole."""
    tuples: int
    """Tuples with at least one judgment."""
    annotations: int
    alpha: Mapping[str, Estimate]
    """Krippendorff's alpha of ``best`` and ``worst``, of ``both`` pooled, and of their pair, ``joint``."""
    observed: Mapping[str, Estimate]
    """Share of pairs of annotators of a tuple that gave the same answer, in [0, 1]; same names."""
    strong: Mapping[str, Estimate]
    """Percent of the tuples with strong agreement on ``best`` and ``worst``."""
    notes: tuple[str, ...] = ()
    """What was left out, and why a number is NaN."""
    without_interval: bool = False
    """Whether intervals were requested of too few groups or tuples."""

    def document(self) -> dict[str, Any]:
        """Return the group as JSON has it."""
        measures = {"alpha": self.alpha, "observed": self.observed, "strong": self.strong}
        return {
            "by": dict(self.by),
            "tuples": self.tuples,
            "annotations": self.annotations,
            **{
                name: {answer: estimate.value for answer, estimate in found.items()}
                for name, found in measures.items()
            },
            "intervals": {name: _intervals(found) for name, found in measures.items()},
            "notes": list(self.notes),
        }


def _intervals(found: Mapping[str, Estimate]) -> dict[str, dict[str, float]]:
    return {
        answer: {"low": estimate.low, "high": estimate.high}
        for answer, estimate in found.items()
        if not math.isnan(estimate.low)
    }


@dataclass(frozen=True, eq=False)
class Agreement:
    """The agreement on the whole and on its parts."""

    groups: tuple[AgreementGroup, ...]
    """The whole first."""
    settings: Mapping[str, Any]
    judgments: Judgments

    def document(self) -> dict[str, Any]:
        """Return the result as JSON has it."""
        digest = in_order(self.judgments).digest()
        signature = {**self.settings, "judgments": digest, "version": version("giccs")}
        return {"groups": [group.document() for group in self.groups], "signature": signature}

    def table(self) -> str:
        """Return the result as text: a line a group, then the notes."""
        from tabulate import tabulate

        headers = ["", "tuples", "annotations"]
        headers += ["alpha both", "best", "worst", "joint", "strong % best", "worst"]
        rows = [
            [part_name(group.by), group.tuples, group.annotations]
            + [
                _shown(group, group.alpha[answer], 3)
                for answer in ("both", "best", "worst", "joint")
            ]
            + [_shown(group, group.strong[answer], 1) for answer in ("best", "worst")]
            for group in self.groups
        ]
        notes = [f"{part_name(group.by)}: {note}" for group in self.groups for note in group.notes]
        return "\n".join([tabulate(rows, headers, disable_numparse=True), *notes])


def _shown(group: AgreementGroup, estimate: Estimate, digits: int) -> str:
    value, low, high = (
        f"{number:.{digits}f}" for number in (estimate.value, estimate.low, estimate.high)
    )
    if math.isnan(estimate.low):
        return f"{value} [–]" if group.without_interval else value
    return f"{value} [{low}, {high}]"


def agreement(
    judgments: Judgments,
    *,
    strong: float = 0.8,
    intervals: bool = False,
    by: By | None = None,
) -> Agreement:
    """Return Krippendorff's alpha and strong agreement on best and worst answers (GiCCS, section 3.3).

    Two annotators agree when they gave the same answer to the same question about the same tuple.
    alpha = 1 - D_o / D_e (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, nominal
    data), where D_o is the share of pairs of answers to one question about one tuple that differ, and
    D_e the share among all pairs of answers. For ``both``, best and worst questions are pooled: each
    is a unit of its own, and D_e is over pairs of all answers. For ``joint``, a judgment's (best, worst)
    is one answer out of K (K - 1), and two annotators agree where both are the same.

    The answer's category is the place of the chosen item in its tuple, as `Tuples.members` has it,
    not the item: among N items two random answers are hardly ever the same item, though two
    annotators of one tuple choose among K. With items as categories, annotators who guess would get
    an alpha near 1 / K; with places they get 0. So D_e, and it alone, depends on the order in which
    tuples are written. A design whose items take every place equally often makes it 1 - 1 / K, and
    another order changes it only by chance; tuples that are written best item first make it small,
    and alpha with it. Where rows of a file write one tuple in different orders, the first row's
    counts. ``observed`` is 1 - D_o, which no order changes.

    strong: a tuple has strong agreement where at least this share of its annotators, above 0 and at
    most 1, gave the same answer; 0.8 is four of five, four of four, three of three. It is in percent
    of the tuples with at least two judgments. Tuples with one judgment count in no measure; the notes
    say how many there are.

    intervals: 95 % intervals, estimate ± t standard errors by a two-way jackknife over annotators and
    groups (or tuples, where there are no groups; a dialogue's tuples share its items), for other annotators
    and groups (`two_way_variance`). With fewer than `MIN_CLUSTERS` annotators, or judgments that name
    none, over groups alone, with a note; none for fewer than `MIN_CLUSTERS` groups or tuples.

    by: a column's name to (T,) values, one a tuple of `judgments.tuples`. The whole comes first, then
    each combination of values, sorted.

    The order of rows, items and annotators changes nothing. alpha is 1 where all agree, about 0 where
    all guess, below 0 where they agree less than that; NaN, with a note, where no tuple has two
    judgments or where all answers are at the same place. ValueError: an argument outside of what is
    allowed. InputError: no judgments.

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
    if not 0 < strong <= 1:
        raise ValueError(f"strong is {strong}; it is a share, above 0 and at most 1")
    if not len(judgments):
        message = "has no judgments; agreement needs some"
        raise InputError(Problem(judgments.source or "judgments", None, message))
    groups = [_group(values, part, strong, intervals) for values, part in breakdown(judgments, by)]
    settings = {
        "alpha": "nominal, answers are places in the tuple as written",
        "strong": strong,
        "interval": "jackknife" if intervals else None,
    }
    return Agreement(tuple(groups), settings, judgments)


def _group(
    by: Mapping[str, Any], part: Judgments, strong: float, intervals: bool
) -> AgreementGroup:
    statistics, groups = of_tuples(part, strong)
    k = part.tuples.members.shape[1]
    sums = total(statistics, k)
    point = measures(sums, k)
    tuples = len(np.unique(part.tuple_of))
    log.debug("%s: %d judgments of %d tuples", part_name(by), len(part), tuples)
    notes = _undefined(tuples, len(statistics), point["alpha"])
    refusal, left_out = "", list[Measures]()
    if intervals:
        grouped = len(part.tuples.groups) > 1
        units = _numbered(groups) if grouped else np.arange(len(statistics))
        refusal, cluster_notes = _cluster_notes(part, len(np.unique(units)), grouped)
        notes += cluster_notes
        if not refusal:
            left_out = [measures(sums - _summed(statistics, units), k)]
            if _enough_annotators(part):
                changes = (
                    sums + _summed(changed, labels) for changed, labels in _rows(part, strong)
                )
                by_annotator, by_cell = (measures(change, k) for change in changes)
                left_out = [by_annotator, *left_out, by_cell]
    estimates = {
        name: {
            answer: _estimate(value, [kind[name][answer] for kind in left_out], BOUNDS[name])
            for answer, value in values.items()
        }
        for name, values in point.items()
    }
    if left_out:
        notes += _missing_intervals(estimates["alpha"])
    return AgreementGroup(
        by, tuples, len(part), **estimates, notes=tuple(notes), without_interval=bool(refusal)
    )


def _cluster_notes(part: Judgments, units: int, grouped: bool) -> tuple[str, list[str]]:
    """Return why there are no intervals, or an empty string, and what to know of the intervals."""
    name = "groups" if grouped else "tuples"
    if refusal := too_few_clusters(units, name):
        return refusal, [refusal]
    notes = [few_clusters(units, name)]
    if not grouped:
        notes.append(
            "without groups, tuples that share items are taken as independent: the intervals are "
            "conservative"
        )
    if _enough_annotators(part):
        notes.append(few_clusters(len(np.unique(part.annotator_of)), "annotators"))
    else:
        notes.append(
            f"fewer than {MIN_CLUSTERS} annotators, or judgments without one: the intervals do not "
            "hold for other annotators"
        )
    return "", [note for note in notes if note]


def _enough_annotators(part: Judgments) -> bool:
    """Return whether all judgments name an annotator, and the annotators are enough for intervals."""
    annotators = np.unique(part.annotator_of)
    return bool((annotators >= 0).all()) and len(annotators) >= MIN_CLUSTERS


def _rows(part: Judgments, strong: float) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """Yield (J, S) changes of the sums where a judgment is left out, with its annotator and its cell.

    A cell is the judgments of an annotator in a group, or of a tuple where there are no groups.
    """
    changes = deletions(part, strong)
    tuples = part.tuples
    unit = tuples.group_of_tuple[part.tuple_of] if len(tuples.groups) > 1 else part.tuple_of
    yield changes, _numbered(part.annotator_of)
    yield changes, _numbered(part.annotator_of.astype(np.int64) * len(tuples) + unit)


def _numbered(keys: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the rank of each key among the distinct keys."""
    ranks: NDArray[np.int64] = np.unique(keys, return_inverse=True)[1].ravel().astype(np.int64)
    return ranks


def _summed(rows: Floats, labels: NDArray[np.int64]) -> Floats:
    """Return (C, S) the sums of the rows (R, S) of each label."""
    sums = np.zeros((int(labels.max(initial=-1)) + 1, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums


def _estimate(value: Floats, left_out: list[Floats], bounds: tuple[float, float]) -> Estimate:
    """Return a value with its jackknife interval; without one where a cluster is needed to define it.

    `left_out`: the values with one cluster left out at a time, of groups, or of annotators, groups and
    the cells where they meet; empty for no interval. `bounds`: the smallest and the largest possible
    value. The ends have 12 decimals, so that the order of sums does not change them.
    """
    if not left_out or math.isnan(value) or any(np.isnan(values).any() for values in left_out):
        return Estimate(float(value))
    error = two_way_variance(*(_jackknife(values) for values in left_out))
    reach = float((t_quantile(error.df) * np.sqrt(error.variance))[0])
    low, high = np.clip([value - reach, value + reach], *bounds).round(DECIMALS).tolist()
    return Estimate(float(value), low, high)


def _jackknife(values: Floats) -> ClusterVariance:
    """Return the variance between C clusters, from the (C,) values with each left out."""
    c = len(values)
    squares = ((values - values.mean()) ** 2).sum() * ((c - 1) / c) ** 2
    return ClusterVariance(np.array([squares]), np.array([c]))


def _undefined(tuples: int, paired: int, alpha: Mapping[str, Floats]) -> list[str]:
    notes = []
    if paired < tuples:
        notes.append(
            f"{tuples - paired} of {tuples} tuples have one judgment, and count in no measure"
        )
    if not paired:
        return [*notes, "no tuple has two judgments to compare: no agreement"]
    undefined = [answer for answer, value in alpha.items() if np.isnan(value)]
    if undefined:
        what = (
            f"alpha ({', '.join(undefined)}) is not defined: all answers are at one place of their"
        )
        notes.append(f"{what} tuples; write each tuple's items in random order")
    return notes


def _missing_intervals(alpha: Mapping[str, Estimate]) -> list[str]:
    missing = [
        answer
        for answer, estimate in alpha.items()
        if math.isnan(estimate.low) and not math.isnan(estimate.value)
    ]
    if not missing:
        return []
    return [f"no interval of alpha ({', '.join(missing)}): undefined without one of the clusters"]
