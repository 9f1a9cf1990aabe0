"""Minimum numbers of clusters for intervals, and error variances of estimates from clustered judgments.

Intervals resample whole clusters (dialogues, annotators, tuples, sentence pairs). A bootstrap of few
clusters has few distinct resamples (two clusters have three, four have 35). Its percentiles are then values
of single resamples, and the interval covers far less than its level. Intervals of moderately few clusters
have a warning.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.stats.estimates import Estimate

Floats = NDArray[np.float64]

MIN_CLUSTERS = 5
"""Minimum number of clusters for an interval."""
MANY_CLUSTERS = 20
"""Minimum number of clusters for an interval without a note.

Coverage is then 93 to 97 % (docs/background/coverage.md).
"""
LIMIT_DECIMALS = 12
"""Decimals of limits of intervals, which are thus independent of the order of summation."""
MIN_VARIANCE = 1e-20
"""Variance of a mean of shares below which it is a rounding error of 0."""
TOO_FEW = "{n:d} {unit}: no interval, which needs {minimum:d}"
FEW = "{n:d} {unit}: the interval is approximate below {enough:d}"
UNEVEN = "{n:d} {unit}, of unequal size (effectively {effective:.1f}): the interval is approximate"
Z_95 = 1.959963984540054
"""Quantile of the normal distribution for a 95 % interval."""
MAX_T_DF = 1e6
"""Degrees of freedom above which Student's t is treated as the normal distribution."""


def too_few_clusters_note(count: int, unit: str, minimum: int = MIN_CLUSTERS) -> str:
    """Return the reason why `count` clusters have no interval; empty if they suffice.

    unit: plural name of the clusters.

    >>> too_few_clusters_note(2, "dialogues"), too_few_clusters_note(5, "dialogues")
    ('2 dialogues: no interval, which needs 5', '')
    """
    return "" if count >= minimum else note(TOO_FEW, n=count, unit=unit, minimum=minimum)


def few_clusters_note(count: int, unit: str) -> str:
    """Return a warning about an interval from few clusters; empty if they suffice.

    >>> few_clusters_note(7, "dialogues")
    '7 dialogues: the interval is approximate below 20'
    """
    return "" if count >= MANY_CLUSTERS else note(FEW, n=count, unit=unit, enough=MANY_CLUSTERS)


def effective_number(cluster_of: NDArray[np.integer]) -> float:
    """Return the effective number of clusters of unequal size, (Σ n)² / Σ n², given the cluster of each row.

    The variance between clusters has about that number of clusters less one as degrees of freedom (Carter,
    Schnepel and Steigerwald 2017, for equal variances). Equal clusters give their number.

    >>> effective_number(np.array([0, 0, 1, 1])), effective_number(np.array([0, 0, 0, 1]))
    (2.0, 1.6)
    """
    sizes = np.unique(cluster_of, return_counts=True)[1].astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) if len(sizes) else 0.0


def uneven_clusters_note(cluster_of: NDArray[np.integer], unit: str) -> str:
    """Return a warning about few clusters, or about clusters of uneven size; empty if they suffice.

    Where fewer than half of the clusters are effective, twice as many effective ones are needed: with uneven
    sizes, the variance depends on a few clusters.

    >>> uneven_clusters_note(np.repeat(np.arange(40), 2), "annotators")
    ''
    >>> uneven_clusters_note(np.repeat(np.arange(30), [80, *[1] * 29]), "annotators")
    '30 annotators, of unequal size (effectively 1.8): the interval is approximate'
    """
    count = len(np.unique(cluster_of))
    effective = effective_number(cluster_of)
    few = few_clusters_note(count, unit)
    if few or effective >= (2 * MANY_CLUSTERS if 2 * effective < count else MANY_CLUSTERS):
        return few
    return note(UNEVEN, n=count, unit=unit, effective=effective)


def cluster_sums(rows: Floats, cluster_of: NDArray[np.int64]) -> Floats:
    """Return (C, S) sums of the rows (R, S) per cluster, given the cluster of each row (R,)."""
    sums = np.zeros((int(cluster_of.max(initial=-1)) + 1, rows.shape[1]))
    np.add.at(sums, cluster_of, rows)
    return sums


class ClusterVariance(NamedTuple):
    """Variances of N estimates between clusters and the numbers of clusters; (N,) each."""

    variance: Floats
    """Sum over clusters of the squared influence of a cluster, not corrected for their number."""
    clusters: NDArray[np.int64] | Floats
    """Numbers of clusters, or effective ones."""

    @property
    def corrected(self) -> Floats:
        """The variance times C / (C - 1); NaN for a single cluster."""
        divisor = np.where(self.clusters > 1, self.clusters - 1, np.nan)
        product: Floats = self.variance * self.clusters / divisor
        return product


def variance_between(influence: Floats, cluster_of: NDArray[np.int64]) -> ClusterVariance:
    """Return the variance between clusters of the sum of (R,) influences, given the cluster of each."""
    numbers = np.unique(cluster_of, return_inverse=True)[1].ravel()
    sums = cluster_sums(influence[:, None], numbers)
    return ClusterVariance((sums**2).sum(axis=0), np.array([len(sums)]))


def clustered_mean(values: Floats, cluster_of: NDArray[np.int64]) -> Estimate:
    """Return the mean of (R,) values in clusters, with a t interval; NaN without values.

    The interval is mean ± t standard errors with C - 1 degrees of freedom; NaN for fewer than
    `MIN_CLUSTERS` clusters.

    >>> clustered_mean(np.arange(10.0), np.arange(10))
    Estimate(value=4.5, low=2.334..., high=6.665...)
    """
    mean, variance, df = _mean_and_variance(values, cluster_of)
    margin = _t(df) * math.sqrt(variance)
    return Estimate(mean, mean - margin, mean + margin)


def clustered_share(values: Floats, cluster_of: NDArray[np.int64]) -> Estimate:
    """Return the mean of (R,) shares in [0, 1] in clusters, with an interval within [0, 1].

    Wilson's interval (1927) with the effective sample size p (1 - p) / V of Korn and Graubard (1998), where
    V is the variance of the mean between clusters, and Student's t instead of the normal quantile. Without
    variance, the size is the number of clusters: a share of 1 has an interval below 1. NaN as for
    `clustered_mean`.

    >>> clustered_share(np.ones(20), np.arange(20))
    Estimate(value=1.0, low=0.820..., high=1.0)
    """
    p, variance, df = _mean_and_variance(values, cluster_of)
    spread = p * (1 - p)
    size = spread / variance if variance > MIN_VARIANCE else df + 1
    t2 = _t(df) ** 2
    center = (p + t2 / (2 * size)) / (1 + t2 / size)
    margin = math.sqrt(t2 * spread / size + t2**2 / (4 * size**2)) / (1 + t2 / size)
    low, high = (round(center + sign * margin, LIMIT_DECIMALS) for sign in (-1, 1))
    return Estimate(p, max(low, 0.0), min(high, 1.0))


def _mean_and_variance(values: Floats, cluster_of: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return mean, variance of the mean between clusters and degrees of freedom; NaN where undefined."""
    if not len(values):
        return math.nan, math.nan, math.nan
    mean = float(values.mean())
    between = variance_between((values - mean) / len(values), cluster_of)
    (count,) = between.clusters
    if count < MIN_CLUSTERS:
        return mean, math.nan, math.nan
    return mean, float(between.corrected[0]), float(count - 1)


def _t(df: float) -> float:
    return float(t_quantile(np.array(df)))


class ErrorVariance(NamedTuple):
    """Error variances of N estimates and their degrees of freedom; (N,) each."""

    variance: Floats
    df: Floats


def two_way_variance(
    rows: ClusterVariance,
    columns: ClusterVariance | None = None,
    cells: ClusterVariance | None = None,
    *,
    population_correction: Floats | float = 1.0,
    known_variance: Floats | float = 0.0,
) -> ErrorVariance:
    """Return the error variance of estimates from judgments in clusters of one or two kinds.

    V = V_rows + population_correction * max(V_columns - V_cells, 0) + known_variance (Cameron, Gelbach and
    Miller 2011, Robust Inference with Multiway Clustering, section 2.1), each cluster variance times
    C / (C - 1). `cells` are the intersections of rows and columns. `population_correction` is the finite
    population correction of the columns: 0 if every column of the population was judged. `known_variance` is
    a variance without estimation error. The degrees of freedom are those of Satterthwaite (1946).

    >>> four = ClusterVariance(np.array([0.3]), np.array([4]))
    >>> two_way_variance(four)
    ErrorVariance(variance=array([0.4]), df=array([3.]))
    """
    first = rows.corrected
    second = np.zeros_like(first)
    df_second: Floats | float = 1.0
    if columns is not None and cells is not None:
        between = np.maximum(columns.corrected - cells.corrected, 0)
        second = np.where(np.asarray(population_correction) > 0, population_correction * between, 0)
        df_second = np.maximum(columns.clusters - 1, 1)
    variance = first + second + known_variance
    noise = first**2 / np.maximum(rows.clusters - 1, 1) + second**2 / df_second
    with np.errstate(invalid="ignore", divide="ignore"):
        df = np.where(noise > 0, variance**2 / noise, np.inf)
    return ErrorVariance(variance, np.where(np.isnan(variance), np.nan, df))


def t_quantile(df: Floats, probability: Floats | float = 0.975) -> Floats:
    """Return a quantile of Student's t distribution, by default of 97.5 %; NaN for NaN degrees of freedom.

    >>> t_quantile(np.array([4.0, np.inf])).round(3)
    array([2.776, 1.96 ])
    """
    from scipy.special import stdtrit

    quantile: Floats = stdtrit(np.minimum(df, MAX_T_DF), probability)
    return quantile
