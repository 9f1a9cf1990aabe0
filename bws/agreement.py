"""Agreement: did different annotators give the same answers to the same tuples?"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.alpha import measures, of_tuples, total
from bws.breakdown import By, breakdown, part_name
from bws.problems import InputError, Problem
from bws.records import Judgments
from bws.scoring.answers import in_order

__all__ = ["Agreement", "AgreementGroup", "Estimate", "agreement"]

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]


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
    """Krippendorff's alpha of the answers ``best``, ``worst`` and ``both``."""
    observed: Mapping[str, Estimate]
    """Share of pairs of annotators of a tuple that gave the same answer, in [0, 1]; same names."""
    strong: Mapping[str, Estimate]
    """Percent of the tuples with strong agreement on ``best`` and ``worst``."""
    notes: tuple[str, ...] = ()
    """What was left out, and why a number is NaN."""

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
        headers += ["alpha both", "best", "worst", "strong % best", "worst"]
        rows = [
            [part_name(group.by), group.tuples, group.annotations]
            + [_shown(group.alpha[answer], 3) for answer in ("both", "best", "worst")]
            + [_shown(group.strong[answer], 1) for answer in ("best", "worst")]
            for group in self.groups
        ]
        notes = [f"{part_name(group.by)}: {note}" for group in self.groups for note in group.notes]
        return "\n".join([tabulate(rows, headers, disable_numparse=True), *notes])


def _shown(estimate: Estimate, digits: int) -> str:
    value, low, high = (
        f"{number:.{digits}f}" for number in (estimate.value, estimate.low, estimate.high)
    )
    return value if math.isnan(estimate.low) else f"{value} [{low}, {high}]"


def agreement(
    judgments: Judgments,
    *,
    strong: float = 0.8,
    bootstrap: int = 0,
    seed: int = 0,
    by: By | None = None,
) -> Agreement:
    """Return Krippendorff's alpha and strong agreement on best and worst answers (GiCCS, section 3.3).

    Two annotators agree when they gave the same answer to the same question about the same tuple.
    alpha = 1 - D_o / D_e (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, nominal
    data), where D_o is the share of pairs of answers to one question about one tuple that differ, and
    D_e the share among all pairs of answers. For ``both``, best and worst questions are pooled: each
    is a unit of its own, and D_e is over pairs of all answers.

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

    bootstrap: so many resamples, of groups where there are any (a dialogue's tuples share its items)
    and else of tuples, give 95 % percentile intervals; 0 gives none.

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
    if bootstrap < 0:
        raise ValueError(f"bootstrap is {bootstrap}; it must be 0 or a number of resamples")
    if not len(judgments):
        message = "has no judgments; agreement needs some"
        raise InputError(Problem(judgments.source or "judgments", None, message))
    groups = [
        _group(values, part, strong, bootstrap, seed) for values, part in breakdown(judgments, by)
    ]
    settings = {
        "alpha": "nominal, answers are places in the tuple as written",
        "strong": strong,
        "bootstrap": bootstrap,
        "seed": seed,
    }
    return Agreement(tuple(groups), settings, judgments)


def _group(
    by: Mapping[str, Any], part: Judgments, strong: float, bootstrap: int, seed: int
) -> AgreementGroup:
    statistics, groups = of_tuples(part, strong)
    clusters = _by_group(statistics, groups) if len(part.tuples.groups) > 1 else statistics
    point = measures(total(statistics))
    drawn = measures(_resampled(clusters, bootstrap if len(clusters) > 1 else 0, seed))
    estimates = {
        name: {answer: _estimate(value, drawn[name][answer]) for answer, value in found.items()}
        for name, found in point.items()
    }
    tuples = len(np.unique(part.tuple_of))
    log.debug("%s: %d judgments of %d tuples", part_name(by), len(part), tuples)
    notes = _undefined(tuples, len(statistics), point["alpha"])
    if bootstrap:
        notes += _doubtful_intervals(len(clusters), point["alpha"], drawn["alpha"])
    return AgreementGroup(by, tuples, len(part), **estimates, notes=tuple(notes))


def _by_group(statistics: Floats, groups: NDArray[np.int32]) -> Floats:
    """Sum the statistics of the tuples of each group that there is."""
    found, group = np.unique(groups, return_inverse=True)
    sums = np.zeros((len(found), *statistics.shape[1:]))
    np.add.at(sums, group, statistics)
    return sums


def _resampled(clusters: Floats, resamples: int, seed: int) -> Floats:
    """Return (resamples, ...) sums over as many clusters as there are, drawn with replacement."""
    sums, n = np.empty((resamples, *clusters.shape[1:])), len(clusters)
    if resamples:
        clusters = _sorted(clusters)
    rng = np.random.Generator(np.random.PCG64(seed))
    for resample in range(resamples):
        times = np.bincount(rng.integers(n, size=n), minlength=n)
        sums[resample] = np.tensordot(times, clusters, axes=1)
    return sums


def _sorted(clusters: Floats) -> Floats:
    """Sort clusters by what they hold, so that the order they came in has no influence on a draw."""
    keys = np.round(clusters.reshape(len(clusters), -1), 9)  # equal sums may differ in the last bit
    ordered: Floats = clusters[np.lexsort(keys.T)]
    return ordered


def _estimate(value: Floats, drawn: Floats) -> Estimate:
    """Return the value with the 2.5 and 97.5 percentiles of what was drawn and has a value."""
    defined = drawn[~np.isnan(drawn)]
    if math.isnan(value) or not len(defined):
        return Estimate(float(value))
    low, high = np.quantile(defined, [0.025, 0.975])
    return Estimate(float(value), float(low), float(high))


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


def _doubtful_intervals(
    clusters: int, alpha: Mapping[str, Floats], drawn: Mapping[str, Floats]
) -> list[str]:
    if clusters < 2:
        return ["no intervals: they need two groups, or two tuples where there are no groups"]
    lacking = {
        answer: np.count_nonzero(np.isnan(values))
        for answer, values in drawn.items()
        if not np.isnan(alpha[answer])
    }
    return [
        f"{count} resamples have no alpha ({answer}) and are not in its interval"
        for answer, count in lacking.items()
        if count
    ]
