"""Tests of the differences of scores: which items of a group are surely above which others.

The difference of two utilities, for counting scores smoothed logits (`bws.scoring.counting.smoothed_logit`),
has a variance between clusters in which the two items of a tuple count together, since they compete. With few
annotators it is uncertain. Its ratio to the variance of independent judgments is therefore moderated (Smyth
2004, Stat. Appl. Genet. Mol. Biol. 3): the ratios of all pairs are scaled inverse χ² values around a common
one, and the degrees of freedom of this prior are added to those of the pair. The sum is at most that of the
mean ratio of all items, which is small if annotators differ in the same way for all items. Two items differ
if Student's t test is significant after the adjustment of Holm (1979) for all pairs of the group.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.scoring.choice import MAX_STDERR_ITEMS
from bws.scoring.clustering import Clusters
from bws.scoring.methods import ErrorCovariance, Floats, Integers, Utilities
from bws.stats.clusters import MAX_T_DF, ClusterVariance, ErrorVariance, two_way_variance
from bws.stats.multiple_tests import holm

LEVEL = 0.05
"""Family-wise error rate of the tests of a group."""
MIN_MODERATED_ITEMS = 10
"""Number of items from which variances are moderated."""
Pairs = tuple[Integers, Integers]


def order_counts(
    fitted: Utilities,
    clusters: Clusters,
    group_of: NDArray[np.integer],
    set_of: NDArray[np.integer],
) -> tuple[Floats, Floats]:
    """Return (N,) the numbers of items that are surely above, and surely below, each item.

    fitted: utilities of at least N items with a covariance; the first N are compared. group_of, set_of: (N,)
    group and connected set of each item; a set is a part of a group. Only items of the same set of at most
    `MAX_STDERR_ITEMS` items are compared. NaN for items with too few clusters or without a standard error
    above 0.
    """
    assert fitted.covariance is not None
    assert fitted.stderr is not None
    n = len(set_of)
    known = np.flatnonzero(~clusters.too_few[:n] & (fitted.stderr[:n] > 0))
    by_label = (known[set_of[known] == label] for label in np.unique(set_of[known]))
    sets = [items for items in by_label if len(items) <= MAX_STDERR_ITEMS]
    above, below = np.full((2, n), np.nan)
    above[known] = below[known] = 0.0
    pairs = [items[np.stack(np.triu_indices(len(items), 1))] for items in sets]
    first, second = np.concatenate([np.empty((2, 0), dtype=np.int64), *pairs], axis=1)
    if not len(first):
        return above, below
    difference = fitted.utility[first] - fitted.utility[second]
    p = _p_values(difference, fitted.covariance, clusters, (first, second), known)
    is_different = holm_rejected(p, group_of[first])
    higher, lower = np.where(difference > 0, (first, second), (second, first))
    below += np.bincount(higher, is_different, n)
    above += np.bincount(lower, is_different, n)
    return above, below


def holm_rejected(p: Floats, family_of: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return (M,) whether each test is significant after Holm's adjustment for the tests of its family.

    >>> holm_rejected(np.array([0.04, 0.02, 0.04]), np.array([0, 0, 1])).tolist()
    [True, True, True]
    """
    rejected = np.empty(len(p), dtype=bool)
    order = np.argsort(family_of, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(family_of[order])) + 1):
        rejected[rows] = holm(p[rows]) <= LEVEL
    return rejected


def _p_values(
    difference: Floats,
    covariance: ErrorCovariance,
    clusters: Clusters,
    pairs: Pairs,
    known: Integers,
) -> Floats:
    """Return (M,) two-sided p-values of differences of pairs of items."""
    from scipy.special import stdtr

    error, independent = _difference_variances(covariance, clusters, pairs)
    if len(known) >= MIN_MODERATED_ITEMS:
        error = moderated(error, independent, _pooled_df(covariance, clusters, known))
    total = error.variance + _of_differences(covariance.known, pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.minimum(error.df * (total / error.variance) ** 2, MAX_T_DF)
        t = np.where(total > 0, np.abs(difference) / np.sqrt(total), np.nan)
    p: Floats = 2 * stdtr(df, -t)
    return p


def _difference_variances(
    covariance: ErrorCovariance, clusters: Clusters, pairs: Pairs
) -> tuple[ErrorVariance, Floats]:
    """Return the error variance of (M,) differences, and that with independent judgments."""

    def between(labels: Integers) -> ClusterVariance:
        counts = clusters.per_item(labels)
        fewer = np.minimum(counts[pairs[0]], counts[pairs[1]])
        return ClusterVariance(_of_differences(covariance.between(labels), pairs), fewer)

    labels = [clusters.rows]
    correction = np.max([clusters.population_correction[items] for items in pairs], axis=0)
    if clusters.columns is not None and correction.any():
        labels += [clusters.columns, clusters.cells]
    error = two_way_variance(*map(between, labels), population_correction=correction)
    return error, between(np.arange(len(clusters.rows))).corrected


def _of_differences(products: Any, pairs: Pairs) -> Floats:
    """Return (M,) variances of the differences of pairs of items from a sparse (N, N) covariance."""
    squares, shared = products.diagonal(), np.asarray(products[pairs]).ravel()
    variances: Floats = squares[pairs[0]] + squares[pairs[1]] - 2 * shared
    return variances


def _pooled_df(covariance: ErrorCovariance, clusters: Clusters, known: Integers) -> float:
    """Return the degrees of freedom of the mean ratio of variances of items.

    The standardised sums of C clusters have a covariance S of the items, with d = C - 1 degrees of freedom.
    The trace of S has d tr(Σ)² / tr(Σ²), where tr(Σ²) is estimated without bias for normal values (Srivastava
    2005, J. Japan Statist. Soc. 35). At least d.
    """
    squares = covariance.between(np.arange(len(clusters.rows))).diagonal()
    weight = np.zeros(len(squares))
    weight[known] = 1 / np.sqrt(np.where(squares > 0, squares, np.inf)[known])
    d = int(clusters.rows.max())
    trace = (covariance.between(clusters.rows).diagonal() * weight**2).sum() / d
    square = covariance.sum_of_squares(clusters.rows, weight) / d**2
    unbiased = d**2 / ((d - 1) * (d + 2)) * (square - trace**2 / d)
    return float(max(d, d * trace**2 / unbiased)) if unbiased > 0 else MAX_T_DF


def moderated(error: ErrorVariance, independent: Floats, max_df: float) -> ErrorVariance:
    """Return variances whose ratios to those of independent judgments are moderated.

    max_df: maximum degrees of freedom of the moderated variances. Variances of 0 remain.
    """
    from scipy.special import digamma, polygamma

    is_used = (error.variance > 0) & (independent > 0)
    ratio = error.variance[is_used] / independent[is_used]
    half = error.df[is_used] / 2
    logs = np.log(ratio) - digamma(half) + np.log(half)
    spread = float(np.var(logs, ddof=1) - np.mean(polygamma(1, half)))
    prior_half = _inverse_trigamma(spread)
    common = np.exp(logs.mean() + digamma(prior_half) - np.log(prior_half))
    added_half = np.clip(max_df / 2 - half, 0, prior_half)
    weight = added_half / (added_half + half)
    variance, df = error.variance.copy(), error.df.copy()
    variance[is_used] = (weight * common + (1 - weight) * ratio) * independent[is_used]
    df[is_used] = 2 * (added_half + half)
    return ErrorVariance(variance, df)


def _inverse_trigamma(value: float) -> float:
    """Return x with trigamma(x) = value, at most `MAX_T_DF`."""
    from scipy.optimize import brentq
    from scipy.special import polygamma

    low = 1 / MAX_T_DF
    if value <= polygamma(1, MAX_T_DF):
        return MAX_T_DF
    return float(brentq(lambda x: polygamma(1, x) - value, low, MAX_T_DF))
