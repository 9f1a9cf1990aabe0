"""A generalisability study: variance components of scores and their reliability, with intervals.

The intervals are those of a jackknife in two directions. Clusters of items (groups, or the items of judgments
with few groups) and annotators are samples from populations; the variance of an estimate is that over
clusters, plus that over annotators, less that over clusters within annotators, which both contain
(Owen 2007, Annals of Applied Statistics 1; Cameron, Gelbach and Miller 2011, JBES 29).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.clusters import MIN_CLUSTERS, few_clusters, too_few_clusters
from bws.components import Components, component_sums, components, estimates_from_sums
from bws.scoring.answers import Answers

__all__ = ["Generalisability", "VarianceEstimate", "generalisability"]

Floats = NDArray[np.float64]
COMPONENTS = ("item", "design", "annotator", "residual")
MAX_ANNOTATOR_GROUPS = 20
"""Annotators are left out in at most so many random groups, which bounds the time."""
SEED = 0


@dataclass(frozen=True, slots=True)
class VarianceEstimate:
    """An estimate and its 95 % interval; NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan

    def document(self) -> dict[str, float]:
        """Return the estimate as JSON has it."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, eq=False)
class Generalisability:
    """Variance components of the scores of some judgments, and the scores' reliability."""

    components: Components
    variances: Mapping[str, VarianceEstimate]
    """Of ``item``, ``design``, ``annotator`` and ``residual``, for one judgment of an item."""
    error_shares: Mapping[str, float]
    """By what the variances of ``design``, ``annotator``, ``residual`` are multiplied in the mean error
    variance of the scores."""
    reliability: VarianceEstimate
    notes: tuple[str, ...] = ()
    """Why numbers are missing or uncertain."""

    @property
    def root(self) -> VarianceEstimate:
        """The expected correlation of the scores with the true scores: the root of the reliability."""
        found = self.reliability
        return VarianceEstimate(*(math.sqrt(each) for each in (found.value, found.low, found.high)))

    def document(self) -> dict[str, Any]:
        """Return the study as JSON has it."""
        return {
            "variances": {
                name: estimate.document() | {"of_error": self.error_shares.get(name)}
                for name, estimate in self.variances.items()
            },
            "reliability": self.reliability.document(),
            "root": self.root.document(),
            "notes": list(self.notes),
        }

    def table(self) -> str:
        """Return the study as text: the components, the reliability, the notes."""
        from tabulate import tabulate

        total = sum(max(estimate.value, 0) for estimate in self.variances.values())
        rows = [
            [
                name,
                f"{estimate.value:.4f}",
                _interval(estimate, 4),
                f"{100 * max(estimate.value, 0) / total:.1f} %" if total > 0 else "",
                f"{self.error_shares[name] * estimate.value:.4f}"
                if self.error_shares.get(name)
                else "",
            ]
            for name, estimate in self.variances.items()
        ]
        headers = ["variance", "one judgment", "95 %", "share", "in a score"]
        lines = [
            f"{name}: {estimate.value:.4f} {_interval(estimate, 4)}".rstrip()
            for name, estimate in (
                ("reliability of the scores, all errors included", self.reliability),
                ("its root, the correlation with the true scores", self.root),
            )
        ]
        table = tabulate(rows, headers, disable_numparse=True, colalign=("left", *["right"] * 4))
        return "\n".join([table, *lines, *self.notes])


def _interval(estimate: VarianceEstimate, digits: int) -> str:
    if math.isnan(estimate.low):
        return ""
    return f"[{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def generalisability(answers: Answers) -> Generalisability:
    """Estimate the variance components of some judgments and the reliability of their scores.

    The reliability is that of `bws.components`: error of the design, of annotators and of single answers
    counts. A 95 % interval is estimate ± t s: s by the jackknife over clusters and annotators, t with the
    degrees of freedom of Satterthwaite (1946, Biometrics Bulletin 2); for the variance of items on the
    scale of its logarithm, for the reliability on that of log(item / error). More than 20 annotators are
    left out in 20 random groups.

    >>> import numpy as np
    >>> from bws.design import make_tuples
    >>> from bws.simulate import simulate
    >>> from bws.scoring.answers import in_order
    >>> design = make_tuples([f"i{n}" for n in range(50)], 4, factor=2)
    >>> study = generalisability(in_order(simulate(design, np.linspace(-1, 1, 50))))
    >>> study.reliability.low < study.reliability.value < study.reliability.high < 1
    True
    """
    cluster_of, unit = _clusters(answers)
    sums = _by_cluster(component_sums(answers), cluster_of)
    point = components(answers)
    values = np.array([getattr(point, name) for name in COMPONENTS])
    variances = {
        name: VarianceEstimate(float(value)) for name, value in zip(COMPONENTS, values, strict=True)
    }
    shares = sums.sum(axis=0)[3:6] / max(sums[:, 0].sum(), 1)
    notes = [*_undefined(point, shares), *_warnings(answers, len(sums), unit)]
    reliability = VarianceEstimate(point.reliability if point.item > 0 else math.nan)
    if len(sums) >= MIN_CLUSTERS:
        half = _half_widths(answers, sums, cluster_of)
        variances = _with_intervals(values, half)
        reliability = _reliability(reliability.value, half[5])
    return Generalisability(
        point,
        variances,
        dict(zip(COMPONENTS[1:], shares.tolist(), strict=True)),
        reliability,
        tuple(notes),
    )


def _clusters(answers: Answers) -> tuple[NDArray[np.int64], str]:
    """Return (N,) the cluster of each item, and what a cluster is, in the plural."""
    if len(answers.groups) >= MIN_CLUSTERS:
        return answers.group_of, "groups of items"
    return np.arange(len(answers.items)), "items"


def _by_cluster(sums: Floats, cluster_of: NDArray[np.int64]) -> Floats:
    """Return (C, 12) the sums of each cluster's items."""
    by_cluster = np.zeros((cluster_of.max() + 1, sums.shape[1]))
    np.add.at(by_cluster, cluster_of, sums)
    return by_cluster


def _half_widths(answers: Answers, sums: Floats, cluster_of: NDArray[np.int64]) -> Floats:
    """Return (6,) half the widths of the intervals of `estimates_from_sums`, from cluster sums (C, 12)."""
    from scipy.stats import t

    of_clusters, n = _spread(estimates_from_sums(sums.sum(axis=0) - sums)), len(sums)
    without = [
        _by_cluster(component_sums(answers.take(rows)), cluster_of) for rows in _kept_rows(answers)
    ]
    of_annotators, a = np.zeros_like(of_clusters), len(without)
    if a > 2:  # of two annotators, one alone has no components
        totals = np.stack([each.sum(axis=0) for each in without])
        both = estimates_from_sums(totals[:, None] - np.stack(without))
        both = both - both.mean(axis=0) - both.mean(axis=1, keepdims=True) + both.mean(axis=(0, 1))
        shared = (a - 1) * (n - 1) / (a * n) * (both**2).sum(axis=(0, 1))
        of_annotators = np.maximum(_spread(estimates_from_sums(totals)) - shared, 0)
    variance = of_clusters + of_annotators
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = variance**2 / (of_clusters**2 / (n - 1) + of_annotators**2 / max(a - 1, 1))
    half: Floats = t.ppf(0.975, freedom) * np.sqrt(variance)
    return half


def _spread(left_out: Floats) -> Floats:
    """Return (6,) the jackknife variance from the estimates (n, 6) without each of n parts."""
    n = len(left_out)
    spread: Floats = (n - 1) * left_out.var(axis=0)
    return spread


def _kept_rows(answers: Answers) -> Iterator[NDArray[np.int64]]:
    """Yield the judgments that stay where an annotator, or a random group of them, is left out."""
    n = len(answers.annotators)
    order = np.random.Generator(np.random.PCG64(SEED)).permutation(n)
    part_of = order % min(n, MAX_ANNOTATOR_GROUPS) if n else order
    part = np.append(part_of, -1)[answers.annotator_of]
    for number in range(min(n, MAX_ANNOTATOR_GROUPS)):
        yield np.flatnonzero(part != number)


def _with_intervals(values: Floats, half: Floats) -> dict[str, VarianceEstimate]:
    """Return the estimates of the components (4,) with intervals; of the item's logarithm."""
    item, width = float(values[0]), float(half[0])
    ends = [(value - by, value + by) for value, by in zip(values, half[:4], strict=True)]
    factor = math.exp(min(width / item, 700)) if item > 0 and width == width else math.nan
    ends[0] = (item / factor, item * factor)
    return {
        name: VarianceEstimate(float(value), float(low), float(high))
        for name, value, (low, high) in zip(COMPONENTS, values, ends, strict=True)
    }


def _reliability(value: float, half: float) -> VarianceEstimate:
    if not 0 < value < 1:
        return VarianceEstimate(value)
    logit = math.log(value / (1 - value))
    low, high = (1 / (1 + math.exp(-(logit + sign * half))) for sign in (-1, 1))
    return VarianceEstimate(value, low, high)


def _undefined(point: Components, shares: Floats) -> Iterator[str]:
    if math.isnan(point.item):
        yield (
            "no reliability from variance components: it takes two annotators, and where the design is "
            "incomplete items in two tuples"
        )
    elif point.item <= 0:
        yield "no reliability: the scores vary no more than their errors"
    if point.design != point.design and not shares[0]:
        yield "the variance of the design is not defined: no item is in two tuples"


def _warnings(answers: Answers, n_clusters: int, unit: str) -> Iterator[str]:
    if few := too_few_clusters(n_clusters, unit) or few_clusters(n_clusters, unit):
        yield few
    if len(answers.groups) < MIN_CLUSTERS:
        yield (
            "intervals over items of the same group are wider than needed: they take scores that depend on "
            "each other for independent"
        )
    n = len(answers.annotators)
    if n < 3:
        named = f"{n} named annotators" if n else "no annotators are named"
        yield f"{named}: the intervals do not contain that other annotators differ"
