"""Confidence intervals of correlations over pairs of texts that share texts.

Resampling texts instead of pairs is too conservative: it triples the variance if no text is shared. Therefore
the interval is computed analytically. The influence of a pair on the correlation is the first derivative with
respect to its weight, and the variance of the correlation is that of the sum of influences (see
`dependence`). If no text is shared, this is the usual variance of a correlation, without an assumption of
normality. The interval is computed on Fisher's z scale with Student's t; the degrees of freedom are the
number of texts, or of pairs if smaller, minus one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.stats.clusters import too_few_clusters_note
from bws.stats.constancy import centred, is_constant
from bws.stats.estimates import Estimate
from giccs.evalrank.dependence import variances
from giccs.measures.metrics import (
    EQUAL_PREDICTIONS,
    EQUAL_SCORES,
    FEWER_THAN_TWO,
    infinite_reason,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
EXACT_TOLERANCE = 1e-12
"""Distance from 1 up to which a correlation is 1 or -1."""


@dataclass(frozen=True)
class PairCorrelation:
    """A correlation over N pairs, with the influence of each pair."""

    value: float
    """Correlation coefficient; NaN if undefined."""
    influence: Floats
    """(N,) first derivatives with respect to the weights of the pairs, at weights of 1/N; their sum is 0."""
    reason: str = ""
    """Reason why the value is NaN."""


def pearson(x: Floats, y: Floats) -> PairCorrelation:
    """Return Pearson's r of (N,) values; NaN with a reason if it is undefined.

    >>> round(pearson(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])).value, 12)
    0.5
    """
    if reason := _undefined_reason(x, y) or infinite_reason(x):
        return PairCorrelation(math.nan, np.zeros(len(x)), reason)
    u, v = (values / values.std() for values in map(centred, (x, y)))
    r = float(np.clip(np.mean(u * v), -1, 1))
    return PairCorrelation(r, u * v - r * (u * u + v * v) / 2)


def spearman(x: Floats, y: Floats) -> PairCorrelation:
    """Return Spearman's rho of (N,) values; NaN with a reason if it is undefined.

    Ties have their average rank. The influence of a pair includes its effect on the ranks of other pairs.

    >>> round(spearman(np.array([1.0, 2, 90]), np.array([1.0, 3, 2])).value, 12)
    0.5
    """
    if reason := _undefined_reason(x, y):
        return PairCorrelation(math.nan, np.zeros(len(x)), reason)
    below_x, below_y = _share_below(x), _share_below(y)
    rank_shifts = _weight_above(x, below_y) + _weight_above(y, below_x)
    mean_product = np.mean(below_x * below_y)
    covariance = mean_product - 0.25  # the mean share below is always 1/2
    variance_x, variance_y = np.mean(below_x**2) - 0.25, np.mean(below_y**2) - 0.25
    rho = float(np.clip(covariance / math.sqrt(variance_x * variance_y), -1, 1))
    on_covariance = below_x * below_y + rank_shifts - 3 * mean_product
    on_x = below_x**2 + 2 * _weight_above(x, below_x) - 3 * np.mean(below_x**2)
    on_y = below_y**2 + 2 * _weight_above(y, below_y) - 3 * np.mean(below_y**2)
    influence = on_covariance / math.sqrt(variance_x * variance_y)
    return PairCorrelation(rho, influence - rho / 2 * (on_x / variance_x + on_y / variance_y))


def estimate_correlation(correlation: PairCorrelation, left: Ints, right: Ints) -> Estimate:
    """Return a correlation with its interval, given (N,) numbers of the left and right texts of the pairs."""
    n = len(correlation.influence)
    if correlation.reason:
        return Estimate(math.nan, math.nan, math.nan, n, correlation.reason)
    return _estimate(correlation.value, n, correlation.influence / n, left, right)


def estimate_mean_correlation(
    correlations: Sequence[PairCorrelation], left: Sequence[Ints], right: Sequence[Ints]
) -> Estimate:
    """Return the mean correlation over sets, which may share texts and pairs; n is the number of sets.

    Sets without a correlation are excluded and counted in the reason.
    """
    defined = [index for index, correlation in enumerate(correlations) if not correlation.reason]
    n_undefined = len(correlations) - len(defined)
    remark = note("{n:d} sets without a correlation excluded", n=n_undefined) if n_undefined else ""
    if not defined:
        return Estimate(math.nan, math.nan, math.nan, 0, remark or note("no sets"))
    value = float(np.mean([correlations[index].value for index in defined]))
    contributions = [
        correlations[index].influence / len(correlations[index].influence) / len(defined)
        for index in defined
    ]
    first, second = (np.concatenate([side[index] for index in defined]) for side in (left, right))
    return _estimate(value, len(defined), np.concatenate(contributions), first, second, remark)


def _estimate(
    value: float, n: int, contributions: Floats, left: Ints, right: Ints, remark: str = ""
) -> Estimate:
    from scipy.special import stdtrit

    degrees_of_freedom = min(len(contributions), len(np.union1d(left, right))) - 1
    pair_variances = variances(contributions, left, right)
    variance = max(pair_variances.same_pair, pair_variances.shared_text)
    standard_error = math.sqrt(variance * (degrees_of_freedom + 1) / max(degrees_of_freedom, 1))
    undefined_note = too_few_clusters_note(
        degrees_of_freedom + 1, "pairs" if degrees_of_freedom + 1 == len(contributions) else "texts"
    )
    if not undefined_note and (1 - abs(value) < EXACT_TOLERANCE or standard_error == 0):
        undefined_note = note("the correlation is exact: no interval")
    if undefined_note:
        reason = "; ".join(filter(None, [remark, undefined_note]))
        return Estimate(value, math.nan, math.nan, n, reason)
    half_width = float(stdtrit(degrees_of_freedom, 0.975)) * standard_error / (1 - value * value)
    low, high = (math.tanh(math.atanh(value) + side * half_width) for side in (-1, 1))
    return Estimate(value, low, high, n, remark, {"stderr": standard_error})


def _undefined_reason(x: Floats, y: Floats) -> str:
    if len(x) < 2:
        return note(FEWER_THAN_TWO, n=len(x), unit="pairs")
    if is_constant(x):
        return note(EQUAL_PREDICTIONS)
    return note(EQUAL_SCORES) if is_constant(y) else ""


def _share_below(values: Floats) -> Floats:
    """Return (N,) shares of values below each value, ties counting half: (average rank − ½) / N."""
    return _weight_above(-values, np.ones(len(values)))


def _weight_above(values: Floats, weight: Floats) -> Floats:
    """Return (N,) total weights of the values above each value, ties counting half, divided by N."""
    _, value_index = np.unique(values, return_inverse=True)
    total = np.bincount(value_index, weight)
    above = total.sum() - np.cumsum(total) + total / 2
    weight_above: Floats = above[value_index] / len(values)
    return weight_above
