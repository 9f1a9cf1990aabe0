"""How sure is a correlation over pairs of texts, where pairs share their texts?

To draw words in place of pairs is too wide: three times the variance where no text is shared. So the
interval is computed, not drawn. Every pair has an influence on the correlation, the first derivative in its
weight, and the variance is that of their sum (see `dependence`). Where nothing is shared that is the usual
variance of a correlation, without any assumption of normality. The interval is made on Fisher's z scale with
Student's t, whose degrees of freedom are the texts, or the pairs where these are fewer, less one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bws.clusters import too_few_clusters_note
from giccs.evalrank.dependence import variances
from giccs.measures.metrics import Estimate

__all__ = ["Correlated", "interval", "mean_correlated", "pearson", "spearman"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
CONSTANT = 1e-12


@dataclass(frozen=True)
class Correlated:
    """A correlation over N pairs, and how each pair moves it."""

    value: float
    """NaN where there is none."""
    influence: Floats
    """(N,) its first derivative in a pair's weight, where all weights are 1/N; their sum is 0."""
    reason: str = ""
    """Why the value is NaN."""


def pearson(x: Floats, y: Floats) -> Correlated:
    """Return Pearson's r of (N,) values; NaN with a reason where it is not defined.

    >>> round(pearson(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])).value, 12)
    0.5
    """
    if reason := _undefined(x, y):
        return Correlated(math.nan, np.zeros(len(x)), reason)
    u, v = ((one - one.mean()) / one.std() for one in (x, y))
    r = float(np.clip(np.mean(u * v), -1, 1))
    return Correlated(r, u * v - r * (u * u + v * v) / 2)


def spearman(x: Floats, y: Floats) -> Correlated:
    """Return Spearman's rho, ties at their average rank, likewise; a pair also moves the others' ranks.

    >>> round(spearman(np.array([1.0, 2, 90]), np.array([1.0, 3, 2])).value, 12)
    0.5
    """
    if reason := _undefined(x, y):
        return Correlated(math.nan, np.zeros(len(x)), reason)
    below_x, below_y = _share_below(x), _share_below(y)
    moved = _moved(x, below_y) + _moved(y, below_x)
    both = np.mean(below_x * below_y)
    covariance = both - 0.25  # the mean share below is 1/2, whatever the values
    variance_x, variance_y = np.mean(below_x**2) - 0.25, np.mean(below_y**2) - 0.25
    rho = float(np.clip(covariance / math.sqrt(variance_x * variance_y), -1, 1))
    on_covariance = below_x * below_y + moved - 3 * both
    on_x = below_x**2 + 2 * _moved(x, below_x) - 3 * np.mean(below_x**2)
    on_y = below_y**2 + 2 * _moved(y, below_y) - 3 * np.mean(below_y**2)
    influence = on_covariance / math.sqrt(variance_x * variance_y)
    return Correlated(rho, influence - rho / 2 * (on_x / variance_x + on_y / variance_y))


def interval(found: Correlated, left: Ints, right: Ints) -> Estimate:
    """Return a correlation with its interval; (N,) `left` and `right` number the texts of the pairs."""
    n = len(found.influence)
    if found.reason:
        return Estimate(math.nan, math.nan, math.nan, n, found.reason)
    return _estimate(found.value, n, found.influence / n, left, right)


def mean_correlated(
    found: Sequence[Correlated], left: Sequence[Ints], right: Sequence[Ints]
) -> Estimate:
    """Return the mean over S sets, in which the same texts and pairs may be; n is the number of sets.

    Sets without a correlation are left out and counted in the reason.
    """
    kept = [place for place, one in enumerate(found) if not one.reason]
    lost = len(found) - len(kept)
    remark = f"{lost} sets left out: they have no correlation" if lost else ""
    if not kept:
        return Estimate(math.nan, math.nan, math.nan, 0, remark or "there are no sets")
    value = float(np.mean([found[place].value for place in kept]))
    moves = [found[place].influence / len(found[place].influence) / len(kept) for place in kept]
    first, second = (np.concatenate([side[place] for place in kept]) for side in (left, right))
    return _estimate(value, len(kept), np.concatenate(moves), first, second, remark)


def _estimate(
    value: float, n: int, moves: Floats, left: Ints, right: Ints, remark: str = ""
) -> Estimate:
    from scipy.special import stdtrit

    free = min(len(moves), len(np.union1d(left, right))) - 1
    found = variances(moves, left, right)
    variance = max(found.alone, found.shared)
    error = math.sqrt(variance * (free + 1) / max(free, 1))
    why = too_few_clusters_note(free + 1, "pairs" if free + 1 == len(moves) else "texts")
    if not why and (1 - abs(value) < CONSTANT or error == 0):
        why = "the correlation is exact: no interval"
    if why:
        reason = "; ".join(filter(None, [remark, why]))
        return Estimate(value, math.nan, math.nan, n, reason)
    reach = float(stdtrit(free, 0.975)) * error / (1 - value * value)
    low, high = (math.tanh(math.atanh(value) + side * reach) for side in (-1, 1))
    return Estimate(value, low, high, n, remark, {"stderr": error})


def _undefined(x: Floats, y: Floats) -> str:
    if len(x) < 2:
        return f"{len(x)} pairs; a correlation needs two"
    for values, what in ((x, "predictions"), (y, "scores")):
        if np.ptp(values) <= CONSTANT * max(1.0, float(np.abs(values).max())):
            return f"all {what} are the same"
    return ""


def _share_below(values: Floats) -> Floats:
    """Return (N,) the share of values below each, equal ones by half: the average rank, less ½, over N."""
    return _moved(-values, np.ones(len(values)))


def _moved(values: Floats, weight: Floats) -> Floats:
    """Return (N,) for each value the weight of all that are greater, equal ones by half, over N."""
    _, place = np.unique(values, return_inverse=True)
    total = np.bincount(place, weight)
    above = total.sum() - np.cumsum(total) + total / 2
    moved: Floats = above[place] / len(values)
    return moved
