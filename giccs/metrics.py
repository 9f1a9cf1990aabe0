"""From predictions to numbers: correlations, with intervals that respect dependence.

The items of one dialogue share its last turn, so they are not independent: intervals come from a
bootstrap that resamples whole dialogues. A resample is a vector of weights, how often each dialogue was
drawn; a point estimate is the same formula with every weight 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LOWER_IS_BETTER",
    "Estimate",
    "Statistic",
    "correlations",
    "estimated",
    "mean_over_dialogues",
    "rank_correlation_inside",
    "resampled",
    "weighted_pearson",
    "weighted_spearman",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

LOWER_IS_BETTER = frozenset(["alignment", "invalid", "mean_rank", "uniformity"])
"""Names of metrics of which less is better."""
CHUNK = 1_000_000
"""Weights held at a time."""
CONSTANT = 1e-12
"""Variance, relative to the mean square, below which values count as all the same."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, its 95 % interval, and on how much it rests; NaN always comes with a reason."""

    value: float
    low: float
    high: float
    n: int
    """Items; for a mean over dialogues, dialogues."""
    reason: str = ""
    """Why value, low and high, or only low and high, are NaN; or what was left out."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else belongs to this number: ``stderr``, ``chance``, ``p`` …"""

    def document(self) -> dict[str, Any]:
        """Return the estimate as a dict; the reason only where there is one."""
        numbers = {"value": self.value, "low": self.low, "high": self.high, "n": self.n}
        return numbers | ({"reason": self.reason} if self.reason else {}) | dict(self.extra)


def correlations(
    prediction: Floats, score: Floats, dialogue: Ints, *, resamples: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """Correlate predictions with scores over all items, and inside dialogues.

    All arrays are (N,); `dialogue` holds indices 0 … D-1, each used. Returns ``pearson`` and
    ``spearman`` over all items (paper section 5.1.1) and ``rank_spearman``, the mean over dialogues of
    Spearman's rho of the dialogue's own items; dialogues where that is not defined are left out and
    counted in the reason. Ties get average ranks. The interval is the 2.5 and 97.5 percentile over
    `resamples` draws of D dialogues with replacement.

    NaN with a reason: fewer than two items, predictions or scores that are all the same, a
    prediction that is NaN; an interval needs two dialogues.

    >>> x, y = np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.5, 0.5, 1.0])
    >>> found = correlations(x, y, np.array([0, 0, 1, 1]), resamples=10)
    >>> round(found["pearson"].value, 3), round(found["spearman"].value, 3)
    (0.986, 0.949)
    >>> found["rank_spearman"].value, found["rank_spearman"].n
    (1.0, 2)
    """
    n, n_dialogues = len(score), int(dialogue.max()) + 1 if len(dialogue) else 0
    reason = _why_undefined(prediction, score)
    if reason:
        undefined = Estimate(math.nan, math.nan, math.nan, n, reason)
        within = Estimate(math.nan, math.nan, math.nan, n_dialogues, reason)
        return {"pearson": undefined, "spearman": undefined, "rank_spearman": within}
    per_dialogue = rank_correlation_inside(prediction, score, dialogue)
    defined = int(np.count_nonzero(~np.isnan(per_dialogue)))
    statistics = {
        "pearson": (weighted_pearson(prediction, score, dialogue), n, ""),
        "spearman": (weighted_spearman(prediction, score, dialogue), n, ""),
        "rank_spearman": (_mean(per_dialogue), defined, _left_out(n_dialogues - defined)),
    }
    whole = np.ones((1, n_dialogues))
    values = {name: float(of(whole)[0]) for name, (of, _, _) in statistics.items()}
    drawn: dict[str, list[Floats]] = {name: [np.empty(0)] for name in statistics}
    for weights in resampled(n_dialogues, resamples, seed):
        for name, (of, _, _) in statistics.items():
            drawn[name].append(of(weights))
    return {
        name: estimated(values[name], np.concatenate(drawn[name]), count, n_dialogues, remark)
        for name, (_, count, remark) in statistics.items()
    }


def mean_over_dialogues(
    values: Floats, *, resamples: int = 1000, seed: int = 0, what: str = "not defined"
) -> Estimate:
    """Return the mean of one value a dialogue (D,), its interval and its standard error.

    NaN is a dialogue that has no value: it is left out and counted, and `what` says why. The interval
    is that of `correlations`; ``stderr`` is the sample standard deviation (n-1) by the root of n.

    >>> found = mean_over_dialogues(np.array([0.0, 1.0, np.nan]), what="no answer")
    >>> found.value, found.n, found.extra["stderr"], found.reason
    (0.5, 2, 0.5, '1 dialogues left out: no answer')
    """
    known = values[~np.isnan(values)]
    remark = (
        f"{len(values) - len(known)} dialogues left out: {what}" if len(known) < len(values) else ""
    )
    mean = _mean(known)
    whole = float(np.mean(known)) if len(known) else math.nan
    drawn = [np.empty(0), *map(mean, resampled(len(known), resamples, seed))]
    found = estimated(whole, np.concatenate(drawn), len(known), len(known), remark)
    error = float(np.std(known, ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else math.nan
    return replace(found, extra={"stderr": error})


def _why_undefined(prediction: Floats, score: Floats) -> str:
    missing = int(np.count_nonzero(np.isnan(prediction)))
    if len(score) < 2:
        return f"{len(score)} items; a correlation needs two"
    if missing:
        return f"{missing} predictions are NaN"
    if _constant(prediction):
        return "all predictions are the same"
    return "all scores are the same" if _constant(score) else ""


def _constant(values: Floats) -> bool:
    return bool(np.ptp(values) <= CONSTANT * max(1.0, float(np.abs(values).max())))


def _left_out(count: int) -> str:
    what = "predictions or scores are all the same, or there is one item"
    return f"{count} dialogues left out: {what}" if count else ""


def estimated(value: float, drawn: Floats, n: int, n_dialogues: int, remark: str = "") -> Estimate:
    """Return a value with the percentile interval of what its resamples gave (R,); NaN where there is none.

    `remark` says why the value is NaN, or what was left out; the reason also says why an interval is.
    """
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan, n, remark or "not defined")
    if n_dialogues < 2:
        reason = "; ".join(filter(None, [remark, "one dialogue: no interval"]))
        return Estimate(value, math.nan, math.nan, n, reason)
    defined = drawn[~np.isnan(drawn)]
    if not len(defined):
        return Estimate(value, math.nan, math.nan, n, "no resample has a correlation: no interval")
    low, high = np.quantile(defined, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n, remark)


def resampled(n_dialogues: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield (b, D) weights: how often each dialogue is in a resample of D."""
    if n_dialogues < 2:
        return
    rng = np.random.default_rng(seed)
    at_once = max(1, CHUNK // n_dialogues)
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        draws = rng.integers(n_dialogues, size=(rows, n_dialogues))
        draws += n_dialogues * np.arange(rows)[:, None]
        counts = np.bincount(draws.ravel(), minlength=rows * n_dialogues)
        yield counts.reshape(rows, n_dialogues).astype(np.float64)


Statistic = Callable[[Floats], Floats]
"""From weights of the dialogues, (b, D), to the value under each, (b,)."""


def weighted_pearson(x: Floats, y: Floats, dialogue: Ints) -> Statistic:
    """Return Pearson's r of items (N,) under weights of their dialogues."""
    x, y = x - x.mean(), y - y.mean()  # sums of products of centred values do not cancel
    sums = [
        np.bincount(dialogue, values) for values in (np.ones_like(x), x, y, x * x, y * y, x * y)
    ]
    per_dialogue = np.stack(sums, axis=1)

    def pearson(weights: Floats) -> Floats:
        n, sx, sy, sxx, syy, sxy = (weights @ per_dialogue).T
        return _correlation(n * sxy - sx * sy, n * sxx - sx * sx, n * syy - sy * sy, n**2)

    return pearson


def weighted_spearman(x: Floats, y: Floats, dialogue: Ints) -> Statistic:
    """Return Spearman's rho likewise: Pearson's r of the ranks that items have in the resample itself."""
    _, place_x = np.unique(x, return_inverse=True)
    _, place_y = np.unique(y, return_inverse=True)

    def spearman(weights: Floats) -> Floats:
        items = weights[:, dialogue]
        rank_x, rank_y = _weighted_ranks(place_x, items), _weighted_ranks(place_y, items)
        weighted = items * rank_x
        sxy = np.einsum("bi,bi->b", weighted, rank_y)
        sxx = np.einsum("bi,bi->b", weighted, rank_x)
        syy = np.einsum("bi,bi,bi->b", items, rank_y, rank_y)
        n = items.sum(axis=1)
        return _correlation(sxy, sxx, syy, n**3)

    return spearman


def _weighted_ranks(place: Ints, items: Floats) -> Floats:
    """Return (b, N) average ranks, centred on 0, of values that occur `items` (b, N) times each.

    `place` (N,) is the index of each item's value among the sorted distinct values. Copies of a value
    share the mean of the ranks they take: those before it, plus half of its own.
    """
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    counts = np.add.reduceat(items[:, order], starts, axis=1)
    through = np.cumsum(counts, axis=1)
    centred = through - counts / 2 - through[:, -1:] / 2
    return np.take(centred, place, axis=1)


def _correlation(
    covariance: Floats, variance_x: Floats, variance_y: Floats, unit: Floats
) -> Floats:
    """Return covariance / sqrt(variances); NaN in resamples that drew only equal values."""
    unit = np.maximum(unit, 1.0)  # no item was drawn: 0 / 1
    usable = _varies(variance_x / unit) & _varies(variance_y / unit)
    product = np.where(usable, variance_x * variance_y, 1.0)
    return np.where(usable, np.clip(covariance / np.sqrt(product), -1, 1), math.nan)


def _varies(variance: Floats) -> NDArray[np.bool_]:
    """Tell which variances are more than rounding, beside the largest of them."""
    return variance > CONSTANT * np.max(variance)


def _mean(values: Floats) -> Statistic:
    defined = ~np.isnan(values)
    kept = np.where(defined, values, 0.0)

    def mean(weights: Floats) -> Floats:
        total = weights @ defined.astype(np.float64)
        return np.where(total > 0, weights @ kept / np.where(total > 0, total, 1.0), math.nan)

    return mean


def rank_correlation_inside(x: Floats, y: Floats, dialogue: Ints) -> Floats:
    """Return (D,) Spearman's rho of each dialogue's own items; NaN where it is not defined.

    >>> rank_correlation_inside(np.array([1., 2, 3, 4]), np.array([0., 1, 1, 1]), np.array([0, 0, 1, 1]))
    array([ 1., nan])
    """
    rank_x, rank_y = _ranks_inside(x, dialogue), _ranks_inside(y, dialogue)
    sxy, sxx, syy = (
        np.bincount(dialogue, product)
        for product in (rank_x * rank_y, rank_x * rank_x, rank_y * rank_y)
    )
    usable = (sxx > 0) & (syy > 0)
    return np.where(usable, sxy / np.sqrt(np.where(usable, sxx * syy, 1.0)), math.nan)


def _ranks_inside(values: Floats, dialogue: Ints) -> Floats:
    """Return (N,) average ranks of the items inside their dialogue, centred on 0."""
    order = np.lexsort((values, dialogue))
    block = dialogue[order]
    new_dialogue = np.diff(block, prepend=-1) != 0
    new_value = new_dialogue | (np.diff(values[order], prepend=np.nan) != 0)
    run = np.cumsum(new_value) - 1
    first = np.flatnonzero(new_value)
    length = np.diff(np.append(first, len(order)))
    middle = first + (length - 1) / 2
    size = np.bincount(dialogue)
    start = np.cumsum(size) - size
    centred = middle[run] - (start + (size - 1) / 2)[block]
    ranks = np.empty(len(order))
    ranks[order] = centred
    return ranks
