"""Scores from counts: counting and its two logit forms.

All functions take the numbers of appearances, best and worst answers as arrays of the same shape and return
utilities of that shape, NaN for items without appearances. Swapping best and worst changes the sign.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.records import CanonicalJudgments
from bws.scoring.clustering import Clusters, VarianceFunction
from bws.scoring.methods import (
    METHODS,
    ErrorCovariance,
    Fit,
    Floats,
    Formula,
    Integers,
    Method,
    Utilities,
    logistic,
)
from bws.stats.clusters import MIN_VARIANCE, Z_95

Numbers = NDArray[Any]
ABW_CLIP = 0.9999


def counting(appearances: Numbers, best: Numbers, worst: Numbers) -> Floats:
    """Return (best - worst) / appearances, in [-1, 1] (Orme 2009; Kiritchenko and Mohammad 2016).

    >>> counting(np.array([6, 0]), np.array([4, 0]), np.array([1, 0]))
    array([0.5, nan])
    """
    balance: Floats = (best - worst) / _nan_if_zero(appearances)
    return balance


def analytical(appearances: Numbers, best: Numbers, worst: Numbers) -> Floats:
    """Return the analytical estimate of a logit model's utility (Lipovetsky and Conklin 2014).

    p = (n + B - W) / 2n, b = ln(p / (1 - p)), for n appearances, B best and W worst answers. An item that is
    always best (p = 1) or always worst (p = 0) has no finite logit; its p is moved by half a count:
    p = 1 - 1/4n or 1/4n. The nearest other p is 1/2n away, so the order of items does not change.

    >>> analytical(np.array([6, 6]), np.array([4, 6]), np.array([1, 0])).round(4)
    array([1.0986, 3.1355])
    """
    p = _proportion(appearances, best, worst)
    return np.log(p / (1 - p))


def analytical_stderr(appearances: Numbers, best: Numbers, worst: Numbers) -> Floats:
    """Return the standard error of `analytical`: 1 / sqrt(2n p (1 - p)).

    >>> analytical_stderr(np.array([6]), np.array([4]), np.array([1])).round(4)
    array([0.6667])
    """
    p = _proportion(appearances, best, worst)
    return 1 / np.sqrt(2 * _nan_if_zero(appearances) * p * (1 - p))


def abw(appearances: Numbers, best: Numbers, worst: Numbers) -> Floats:
    """Return the analytic best–worst score (Marley, Islam and Hawkins 2016, in Hollis 2018).

    ln((1 + r) / (1 - r)) with r = (B - W) / n clipped to ±0.9999. Except at the extremes this equals
    `analytical`; at the extremes it is ±9.9 for any number of appearances.

    >>> abw(np.array([6, 6]), np.array([4, 6]), np.array([1, 0])).round(4)
    array([1.0986, 9.9034])
    """
    r = np.clip(counting(appearances, best, worst), -ABW_CLIP, ABW_CLIP)
    return np.log((1 + r) / (1 - r))


def smoothed_logit(appearances: Numbers, best: Numbers, worst: Numbers) -> Floats:
    """Return ln((1 + s) / (1 - s)) of s = (B - W) / (n + 1): the score with one pseudo-judgment.

    The pseudo-judgment is half best and half worst, which makes the logit finite if all judgments agree
    (compare Agresti and Coull 1998).

    >>> smoothed_logit(np.array([9, 9]), np.array([0, 9]), np.array([0, 0])).round(4)
    array([0.    , 2.9444])
    """
    smoothed: Floats = 2 * np.arctanh((best - worst) / (_nan_if_zero(appearances) + 1))
    return smoothed


def pseudo_variance(appearances: Numbers, best: Numbers, worst: Numbers) -> Floats:
    """Return the variance of `smoothed_logit` that is due to its pseudo-judgment.

    Its two halves count as separate clusters: (1 + s²) / 2 / (n + 1)² on the scale of s.
    """
    return _pseudo_variance((best - worst) / (_nan_if_zero(appearances) + 1), appearances)


def _pseudo_variance(s: Floats, appearances: Numbers) -> Floats:
    variance: Floats = (1 + s**2) / 2 / (appearances + 1) ** 2 * _logit_slope(s) ** 2
    return variance


def _logit_slope(s: Floats) -> Floats:
    slope: Floats = 2 / (1 - s**2)
    return slope


def smoothed_logit_of_values(
    values: Floats,
    judgments: CanonicalJudgments,
    clusters: Clusters,
    known_covariance: Any = None,
) -> Utilities:
    """Return `smoothed_logit` of the mean values of items, with standard errors by linearisation.

    values: (J, K) values of the items in each judgment, 1 for best, -1 for worst and 0 for neither, or
    corrected values with means in [-1, 1]. known_covariance: sparse (N, N) covariance of the means that is
    not due to the judgments. A cluster's influence on s is the sum of its values minus s, divided by n + 1;
    the delta method transforms it to the logit scale.
    """
    from scipy.sparse import diags_array

    items, appearances = clusters.items, judgments.counts.appearances
    total = np.bincount(items.ravel(), values.ravel(), len(appearances))
    s = total / (appearances + 1)
    weight = _logit_slope(s) / (appearances + 1)
    known = diags_array(_pseudo_variance(s, appearances)).tocsr()
    if known_covariance is not None:
        scale = diags_array(weight * appearances)
        known = known + scale @ known_covariance @ scale
    error = clusters.error_variance(
        squared_cluster_sums(items, (values - s[items]) * weight[items]), known.diagonal()
    )
    influence = (values - (total / appearances)[items]) * weight[items]
    return Utilities(
        2 * np.arctanh(s),
        np.sqrt(error.variance),
        df=error.df,
        stderr_method="clustered counts",
        covariance=ErrorCovariance(
            partial(cluster_products, items, influence, group_of=judgments.group_of),
            known,
            partial(squared_products, items, influence),
        ),
    )


def cluster_products(
    items: Integers, influence: Floats, labels: Integers, group_of: Integers
) -> Any:
    """Return sparse (N, N) sums over clusters of products of the influences on two items of a group.

    items, influence: as in `squared_cluster_sums`. labels: (J,) clusters. group_of: (N,).
    """
    rows = np.repeat(labels, items.shape[1]) * (int(group_of.max()) + 1) + group_of[items.ravel()]
    distinct_rows = np.unique(rows, return_inverse=True)[1]
    sums = _cluster_sums(items, influence, distinct_rows, len(group_of))
    return (sums.T @ sums).tocsr()


def squared_products(items: Integers, influence: Floats, labels: Integers, weight: Floats) -> float:
    """Return the sum over all pairs of items, also of different groups, of the squares of their products.

    weight: (N,) factors of the influences on each item. Other arguments as in `cluster_products`.
    """
    rows = np.repeat(labels, items.shape[1])
    sums = _cluster_sums(items, influence * weight[items], rows, len(weight))
    smaller = sums @ sums.T if sums.shape[0] < sums.shape[1] else sums.T @ sums
    return float((smaller.data**2).sum())


def _cluster_sums(items: Integers, influence: Floats, rows: Integers, n: int) -> Any:
    """Return sparse (C, n) sums of influences; rows: (J K,) the row of each."""
    from scipy.sparse import coo_array

    shape = (int(rows.max(initial=-1)) + 1, n)
    return coo_array((influence.ravel(), (rows, items.ravel())), shape=shape).tocsr()


def extreme_ends(utility: Floats, stderr: Floats, appearances: Numbers, t: Floats) -> Floats:
    """Return (N,) Jeffreys' end of each interval on the side of -1 or 1 that is nearer to the score.

    A score near 1 is the higher, the fewer answers differ from best, and their small number is skewed, also
    on the logit scale. The end is that of Jeffreys' interval (Brown, Cai and DasGupta 2001) for the effective
    number of answers p (1 - p) / V (1.96 / t)² of Korn and Graubard (1998), with p = (1 + |score|) / 2. V is
    the variance of p between clusters, without that of the pseudo-judgment; NaN without V, where all agree.

    utility, stderr: those of `smoothed_logit`. t: quantiles of the interval.

    >>> smoothed = smoothed_logit(np.array([120]), np.array([119]), np.array([0]))
    >>> extreme_ends(smoothed, np.array([0.71]), np.array([120]), np.array([1.96])).round(4)
    array([0.9991])
    """
    from scipy.special import betaincinv

    s = np.tanh(utility / 2)
    between = stderr**2 - _pseudo_variance(s, appearances)
    p = (1 + np.abs(s) * (appearances + 1) / appearances) / 2
    variance = between / _logit_slope(s) ** 2 * ((appearances + 1) / appearances) ** 2 / 4
    with np.errstate(invalid="ignore", divide="ignore"):
        size = p * (1 - p) / variance * (Z_95 / t) ** 2
        is_defined = (variance > MIN_VARIANCE) & (p < 1)
        end = 2 * betaincinv(size * p + 0.5, size * (1 - p) + 0.5, 0.975) - 1
    return np.where(is_defined, np.sign(s) * end, np.nan)


def unbeaten_ends(score: Floats, tuples: Numbers, correction: Floats) -> Floats:
    """Return (N,) the ends, on the side of 0, of intervals of items that won (or lost) all of their tuples.

    Without a difference between its tuples an item seems to have the same score in all others, although one
    may contain a better item. The end is the lower one of Jeffreys' interval for T successes in T / f tuples
    that are equally informative, where f is the finite population correction of the design: with T = 8 of
    many, the score may be 0.48, and if the tuples contain most of the other items (f = 0.4), 0.77. NaN for
    other items, whose score differs from -1 and 1 by more than half a tuple.

    score: counting scores in [-1, 1]. tuples: (N,) numbers of tuples. correction: (N,) f, at least 0.

    >>> unbeaten_ends(np.array([1, -1, 0.9]), np.array([8, 8, 8]), np.array([1, 0.4, 1])).round(2)
    array([ 0.48, -0.77,   nan])
    """
    from scipy.special import betaincinv

    size = tuples / np.maximum(correction, MIN_VARIANCE)
    end = np.sign(score) * (2 * betaincinv(size + 0.5, 0.5, 0.025) - 1)
    is_unbeaten = (1 - np.abs(score)) * tuples < 0.5
    return np.where(is_unbeaten & (correction > 0), end, np.nan)


def squared_cluster_sums(items: Integers, influence: Floats) -> VarianceFunction:
    """Return the function from (J,) cluster labels to (N,) sums of squared influences of the clusters.

    items, influence: (J, K) items of the judgments, and the influence of each on its item's estimate.
    """
    n_items = int(items.max(initial=-1)) + 1

    def variance(labels: Integers) -> Floats:
        size = int(labels.max(initial=0)) + 1
        keys, block = np.unique(items * size + labels[:, None], return_inverse=True)
        sums: Floats = np.bincount(block.ravel(), influence.ravel(), len(keys)).astype(np.float64)
        return np.bincount(keys // size, sums**2, n_items).astype(np.float64)

    return variance


def _fit_smoothed(
    judgments: CanonicalJudgments, *, clusters: Clusters | None, seed: int
) -> Utilities:
    """Fit `smoothed_logit`."""
    if clusters is None:
        counts = judgments.counts
        return Utilities(smoothed_logit(counts.appearances, counts.best, counts.worst))
    return smoothed_logit_of_values(judgments.values, judgments, clusters)


def _make_formula_fit(formula: Formula) -> Fit:
    """Return the `Fit` of a formula on counts."""

    def fit(judgments: CanonicalJudgments, *, clusters: Clusters | None, seed: int) -> Utilities:
        item_counts = judgments.counts
        return Utilities(formula(item_counts.appearances, item_counts.best, item_counts.worst))

    return fit


def _fit_analytical(
    judgments: CanonicalJudgments, *, clusters: Clusters | None, seed: int
) -> Utilities:
    """Fit `analytical` with standard errors from `_fit_smoothed`, or from its formula without clusters.

    The formula assumes independent judgments, each with a different annotator and tuple.
    """
    item_counts = judgments.counts
    counts = (item_counts.appearances, item_counts.best, item_counts.worst)
    if clusters is None:
        return Utilities(analytical(*counts), analytical_stderr(*counts), stderr_method="formula")
    smoothed = _fit_smoothed(judgments, clusters=clusters, seed=seed)
    return replace(smoothed, utility=analytical(*counts))


def _proportion(appearances: Numbers, best: Numbers, worst: Numbers) -> Floats:
    denominator = 2 * _nan_if_zero(appearances)
    p = (appearances + best - worst) / denominator
    half_count = 0.5 / denominator
    return np.clip(p, half_count, 1 - half_count)


def _nan_if_zero(appearances: Numbers) -> Floats:
    return np.where(appearances > 0, appearances, np.nan)


def _identity(u: Floats) -> Floats:
    return u


METHODS["counting"] = Method(
    "(best - worst) / appearances",
    _make_formula_fit(counting),
    _identity,
    formula=counting,
    has_stderr=True,
)
METHODS["analytical"] = Method(
    "analytical estimate of a logit model, with standard errors",
    _fit_analytical,
    logistic,
    formula=analytical,
    has_stderr=True,
)
METHODS["abw"] = Method(
    "analytic best-worst score", _make_formula_fit(abw), logistic, formula=abw, has_stderr=True
)
SMOOTHED_COUNTING = Method(
    "logit of the counting score with a pseudo-judgment",
    _fit_smoothed,
    logistic,
    formula=smoothed_logit,
    has_stderr=True,
)
"""The basis of the intervals of all methods with a formula; their scores differ only at the extremes."""
