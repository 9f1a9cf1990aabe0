"""Correlations of predictions with scores, with intervals that respect dependence.

The items of one dialogue share its last turn and are not independent. Intervals are from the jackknife over
dialogues, with Student's t (Tukey 1958; Efron and Tibshirani 1993, chapter 11), for correlations on the scale
of Fisher's z. A replicate is a vector of weights of the dialogues, 0 for omitted ones; the point estimate is
the same formula with all weights 1. In simulations, bootstrap percentiles over 30 dialogues cover 89 to 93 %
and these intervals 93 to 97 % (docs/background/coverage.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.stats.clusters import MIN_CLUSTERS, too_few_clusters_note
from bws.stats.constancy import centred, constant_groups, is_constant
from bws.stats.estimates import Estimate
from giccs.measures.clusters import Clusters

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

LOWER_IS_BETTER_METRICS = frozenset([
    "alignment", "invalid", "mean_rank", "order_difference", "uniformity",
])  # fmt: skip
"""Metrics for which lower values are better."""
SELECTED_KEY = "selected"
"""Key of `Estimate.extra`: the choices made by this score, which is therefore optimistic for new data."""
INTERVAL_METHOD = "jackknife-t"
"""Name of the method of intervals in signatures."""
CORRELATION_BOUNDS = (-1.0, 1.0)
SHARE_BOUNDS = (0.0, 1.0)
"""Bounds of a share and of its interval."""
MAX_CHUNK_WEIGHTS = 300_000
"""Number of weights in memory at a time."""
MAX_CORRECTED_CLUSTERS = 60
"""Number of dialogues or other clusters above which the jackknife of a difference needs no correction."""
MAX_SKEWNESS = 1.0
"""Skewness of predictions or scores above which the interval of Pearson's r has a note."""
MAX_EXCESS_KURTOSIS = 1.0
"""The same for the kurtosis minus 3."""
MAX_COARSE_ITEMS = 3
"""Number of items up to which Spearman's rho of a dialogue has few values, all far apart."""
MIN_COARSE_SHARE = 0.05
"""Share of such dialogues from which the interval of the mean rho may have a note."""
MIN_REVERSED = 5.0
"""Expected number of them with reversed items below which it has: then most studies lack low values."""
CONSTANT_TOLERANCE = 1e-12
"""Variance relative to the largest one, and distance of a correlation from a bound, treated as 0."""
EXCLUDED = "{n:d} {unit} excluded: {reason}"
NAN_PREDICTIONS = "{n:d} predictions are NaN"
FEWER_THAN_TWO = "{n:d} {unit}; a correlation requires two"
EQUAL_PREDICTIONS = "all predictions are equal"
EQUAL_SCORES = "all scores are equal"
FEW_DIFFERENT = "{n:d} {unit} that differ from the others: no interval, which needs {minimum:d}"
UNDEFINED = note("undefined")


def interval_signature(unit: str, resamples: int, seed: int) -> dict[str, Any]:
    """Return the method of intervals for the signature of a result."""
    return {"method": INTERVAL_METHOD, "unit": unit, "resamples": resamples, "seed": seed}


Statistic = Callable[[Floats], Floats]
"""Function from weights of the dialogues, (b, D), to the values, (b,)."""


AddedVariance = tuple[float, int]
"""Variance of an additional source of error, and its degrees of freedom."""
NO_ADDED_VARIANCE: AddedVariance = (0.0, 1)


def correlations(
    prediction: Floats,
    score: Floats,
    dialogue: Ints,
    *,
    resamples: int = 1000,
    seed: int = 0,
    added: Mapping[str, AddedVariance] | None = None,
    items: Sequence[str] = (),
    clusters: Clusters | None = None,
) -> dict[str, Estimate]:
    """Correlate predictions with scores over all items, and within dialogues.

    All arrays are (N,); `dialogue` contains indices 0 … D-1, each used. Returns ``pearson`` and ``spearman``
    over all items (paper section 5.1.1) and ``rank_spearman``, the mean over dialogues of Spearman's rho of
    the dialogue's own items. Dialogues where it is undefined are excluded and counted in the reason. Ties get
    average ranks. The interval is that of `jackknife_interval`, on the scale of Fisher's z; that of
    ``pearson`` has a note for skewed or heavy-tailed values (`with_tails_note`), and that of
    ``rank_spearman`` for dialogues of few items (`with_coarse_note`). At most
    `resamples` jackknife replicates are computed, 0 for no interval: each omits one dialogue, or, if there
    are more dialogues, one of `resamples` random groups of them (from `seed`). added: by coefficient,
    variances of z that are added to that of the jackknife. items: (N,) ids for reasons. clusters: those of
    the D dialogues that are omitted together; by default each dialogue alone.

    NaN with a reason: fewer than two items, constant predictions or scores (`constancy.is_constant`), a
    prediction of NaN; for ``pearson``, an infinite prediction. In ranks, infinity is the highest value.
    Intervals require `MIN_CLUSTERS` dialogues with a value.

    >>> x, y = np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.5, 0.5, 1.0])
    >>> metrics = correlations(x, y, np.array([0, 0, 1, 1]), resamples=10)
    >>> round(metrics["pearson"].value, 3), round(metrics["spearman"].value, 3)
    (0.986, 0.949)
    >>> metrics["rank_spearman"].value, metrics["rank_spearman"].n
    (1.0, 2)
    """
    if undefined := undefined_correlations(prediction, score, dialogue):
        return undefined
    n, n_dialogues = len(score), int(dialogue.max()) + 1
    every_dialogue = Clusters.single(n_dialogues)
    every = clusters or every_dialogue
    infinite = infinite_reason(prediction, items)
    per_dialogue = within_dialogue_correlations(prediction, score, dialogue)
    is_defined = ~np.isnan(per_dialogue)
    defined = int(np.count_nonzero(is_defined))
    statistics = {
        "pearson": (weighted_pearson(prediction, score, dialogue), n, every, infinite),
        "spearman": (weighted_spearman(prediction, score, dialogue), n, every, ""),
        "rank_spearman": (
            _mean(per_dialogue[is_defined]),
            defined,
            every.select(is_defined),
            _excluded_remark(
                n_dialogues - defined,
                note("predictions or scores are constant, or there is one item"),
            ),
        ),
    }
    estimates = {
        name: jackknife_estimate(
            statistic,
            count,
            of_statistic,
            remark,
            bounds=CORRELATION_BOUNDS,
            added=(added or {}).get(name, NO_ADDED_VARIANCE),
            has_heavy_tails=name == "pearson",
            resamples=resamples,
            seed=seed,
        )
        for name, (statistic, count, of_statistic, remark) in statistics.items()
    }
    pearson = with_tails_note(estimates["pearson"], prediction, score)
    if clusters and clusters.unit != every_dialogue.unit:
        pearson = with_offsets_note(pearson, clusters.unit)
    within = with_coarse_note(estimates["rank_spearman"], np.bincount(dialogue)[is_defined])
    return {**estimates, "pearson": pearson, "rank_spearman": within}


def undefined_correlations(
    prediction: Floats, score: Floats, dialogue: Ints
) -> dict[str, Estimate]:
    """Return the estimates of `correlations`, NaN with the reason, or none if they are defined."""
    reason = _undefined_reason(prediction, score)
    n_dialogues = int(dialogue.max()) + 1 if len(dialogue) else 0
    counts = {"pearson": len(score), "spearman": len(score), "rank_spearman": n_dialogues}
    nan = math.nan
    return {name: Estimate(nan, nan, nan, n, reason) for name, n in counts.items() if reason}


def with_tails_note(estimate: Estimate, *values: Floats) -> Estimate:
    """Add a note to an interval of Pearson's r if one of the values (N,) is skewed or has heavy tails.

    The limits are `MAX_SKEWNESS` and `MAX_EXCESS_KURTOSIS`. If they are exceeded, also by dialogues with very
    unequal spread, a few dialogues determine r, and intervals of 20 or 200 dialogues may be too narrow.

    >>> estimate = Estimate(0.5, 0.4, 0.6, 100)
    >>> with_tails_note(estimate, np.exp(np.linspace(0, 5, 100))).reason
    'skewed values or outliers (skewness 1.5, excess kurtosis 1.4): the interval may be too narrow, read ρ'
    """
    if math.isnan(estimate.low):
        return estimate
    for standardised in (each / each.std() for each in map(centred, values)):
        skewness, kurtosis = (float(np.mean(standardised**power)) for power in (3, 4))
        if abs(skewness) > MAX_SKEWNESS or kurtosis - 3 > MAX_EXCESS_KURTOSIS:
            remark = note(
                "skewed values or outliers (skewness {skewness:.1f}, excess kurtosis {excess:.1f}): the "
                "interval may be too narrow, read ρ",
                skewness=skewness,
                excess=kurtosis - 3,
            )
            return estimate.with_notes(remark)
    return estimate


def with_offsets_note(estimate: Estimate, unit: str) -> Estimate:
    """Add a note to an interval of Pearson's r over clusters of dialogues, named by their plural `unit`."""
    if math.isnan(estimate.low):
        return estimate
    return estimate.with_notes(
        note("too narrow if offsets differ much between {unit}, read ρ", unit=unit)
    )


def with_coarse_note(
    estimate: Estimate, sizes: Ints, differences: Floats | None = None
) -> Estimate:
    """Add a note to an interval of the mean rho of dialogues if few of them can have low values.

    sizes: (D,) numbers of items of the dialogues with a value. With two or three items, rho is 1 or far below
    it. If the mean is near 1 or -1, low values are rare, and an interval without them is too narrow.
    differences: (D,) those of two models, if the estimate is their mean; values other than 0 are rare then.

    >>> with_coarse_note(Estimate(0.8, 0.7, 0.9, 30), np.array([2] * 10 + [5] * 20)).reason
    '10 dialogues of 2 or 3 items, rarely in another order: the interval may be too narrow'
    """
    is_coarse = sizes <= MAX_COARSE_ITEMS
    coarse = int(np.count_nonzero(is_coarse))
    n_reversed = coarse * (1 - abs(estimate.value)) / 2
    if differences is not None:
        n_reversed = float(np.count_nonzero(np.abs(differences[is_coarse]) > CONSTANT_TOLERANCE))
    if math.isnan(estimate.low) or coarse < max(1, MIN_COARSE_SHARE * len(sizes)):
        return estimate
    if n_reversed >= MIN_REVERSED:
        return estimate
    remark = note(
        "{n:d} dialogues of 2 or {most:d} items, rarely in another order: the interval may be too narrow",
        n=coarse,
        most=MAX_COARSE_ITEMS,
    )
    return estimate.with_notes(remark)


def order_metrics(
    orders: Floats,
    score: Floats,
    dialogue: Ints,
    *,
    resamples: int = 1000,
    seed: int = 0,
    clusters: Clusters | None = None,
) -> dict[str, Estimate]:
    """Compare the predictions for both orders of the texts of each item.

    orders: (N, 2) predictions with the target utterance first, and with the candidate first. The other
    arguments and intervals are those of `correlations`. Returns ``spearman_target_first`` and
    ``spearman_candidate_first``, Spearman's rho of each order with the scores, and ``order_difference``, the
    mean of |r_1 - r_2| / N, where r_1 and r_2 are the average ranks of an item's predictions in the two
    orders: 0 if the order of the texts does not matter, about 1/3 if the two orders are independent.

    >>> orders = np.array([[0.1, 0.1], [0.2, 0.4], [0.3, 0.3], [0.4, 0.2]])
    >>> metrics = order_metrics(orders, np.array([0.0, 0.1, 0.2, 0.3]), np.array([0, 0, 1, 1]), resamples=2)
    >>> metrics["spearman_target_first"].value, metrics["order_difference"].value
    (1.0, 0.25)
    """
    settings: Any = {"resamples": resamples, "seed": seed}
    by_order = {
        f"spearman_{first}_first": correlations(
            predictions, score, dialogue, clusters=clusters, **settings
        )["spearman"]
        for first, predictions in zip(("target", "candidate"), orders.T, strict=True)
    }
    n, n_dialogues = len(score), int(dialogue.max()) + 1 if len(dialogue) else 0
    if missing := int(np.isnan(orders).any(axis=1).sum()):
        reason = note(NAN_PREDICTIONS, n=missing)
        undefined = Estimate(math.nan, math.nan, math.nan, n, reason)
        return by_order | {"order_difference": undefined}
    over_all = np.zeros(n, dtype=np.intp)
    first, second = (_within_dialogue_ranks(predictions, over_all) for predictions in orders.T)
    differences, items = np.bincount(dialogue, np.abs(first - second) / n), np.bincount(dialogue)

    def mean(weights: Floats) -> Floats:
        values: Floats = (weights @ differences) / (weights @ items)
        return values

    every = clusters or Clusters.single(n_dialogues)
    difference = jackknife_estimate(mean, n, every, bounds=SHARE_BOUNDS, **settings)
    return by_order | {"order_difference": difference}


def with_excluded(
    estimates: Mapping[str, Estimate], n_excluded: int, unit: str, part: str
) -> dict[str, Estimate]:
    """Add to the reasons that units are excluded because a part of them is too long for the model.

    unit: plural name of the units.

    >>> with_excluded({"r": Estimate(0.5, 0.1, 0.8, 9)}, 2, "pairs", "an utterance")["r"].reason
    '2 pairs excluded: an utterance is too long for the model'
    """
    remark = note(
        "{n:d} {unit} excluded: {part} is too long for the model",
        n=n_excluded,
        unit=unit,
        part=part,
    )
    return {
        name: estimate.with_notes(remark) if n_excluded else estimate
        for name, estimate in estimates.items()
    }


def mean_over_dialogues(
    values: Floats,
    *,
    bounds: tuple[float, float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    missing_reason: str = UNDEFINED,
    clusters: Clusters | None = None,
) -> Estimate:
    """Return the mean of one value per dialogue (D,), with its interval and standard error.

    NaN denotes a dialogue without a value: it is excluded and counted, with `missing_reason`. The interval is
    that of `jackknife_interval`; without `bounds` it is mean ± t · ``stderr``, the sample standard deviation
    (n-1) divided by the square root of n, for any `resamples` but 0. clusters: those of the D dialogues;
    ``stderr`` is then that of the jackknife over clusters.

    >>> estimate = mean_over_dialogues(np.array([0.0, 1.0, np.nan]), missing_reason="no answer")
    >>> estimate.value, estimate.n, estimate.extra["stderr"], estimate.reason
    (0.5, 2, 0.5, '1 dialogues excluded: no answer; 2 dialogues: no interval, which needs 5')
    """
    is_defined = ~np.isnan(values)
    defined = values[is_defined]
    remark = _excluded_remark(len(values) - len(defined), missing_reason)
    n = len(defined)
    every = (clusters or Clusters.single(len(values))).select(is_defined)
    mean = float(defined.mean()) if n else math.nan
    sizes = every.sizes
    is_many = every.count > 1
    means = [(defined.sum() - every.sums(defined)) / (n - sizes)] if is_many else []
    if bounds is None:
        estimate = jackknife_interval(mean, means if resamples else [], n, every, remark)
    else:
        estimate = jackknife_estimate(
            _mean(defined), n, every, remark, bounds=bounds, resamples=resamples, seed=seed
        )
    error = math.sqrt((every.count - 1) * float(np.var(means[0]))) if is_many else math.nan
    return replace(estimate, extra={"stderr": error})


def mean_difference(
    values: Floats,
    *,
    resamples: int = 1000,
    missing_reason: str = UNDEFINED,
    clusters: Clusters | None = None,
) -> Estimate:
    """Return `mean_over_dialogues` of one difference per dialogue (D,), with ``p`` of the paired t-test.

    ``p`` is two-sided; NaN without an interval.

    >>> round(mean_difference(np.array([0.5, 0.1, 0.2, 0.3, 0.4])).extra["p"], 3)
    0.013
    """
    mean = mean_over_dialogues(
        values, resamples=resamples, missing_reason=missing_reason, clusters=clusters
    )
    every = clusters or Clusters.single(len(values))
    return _t_tested(mean, every.select(~np.isnan(values)).df)


def _undefined_reason(prediction: Floats, score: Floats) -> str:
    missing = int(np.count_nonzero(np.isnan(prediction)))
    if len(score) < 2:
        return note(FEWER_THAN_TWO, n=len(score), unit="items")
    if missing:
        return note(NAN_PREDICTIONS, n=missing)
    if is_constant(prediction):
        return note(EQUAL_PREDICTIONS)
    return note(EQUAL_SCORES) if is_constant(score) else ""


def infinite_reason(prediction: Floats, items: Sequence[str] = ()) -> str:
    """Return why Pearson's r of predictions (N,) is undefined; empty if all are finite.

    items: (N,) ids; without them, items are counted from 1.

    >>> infinite_reason(np.array([0.5, np.inf, -np.inf]))
    "2 predictions are infinite (the first is that of item 2): Pearson's r is undefined"
    """
    infinite = np.flatnonzero(np.isinf(prediction))
    if not len(infinite):
        return ""
    first = items[infinite[0]] if items else infinite[0] + 1
    if len(infinite) == 1:
        return note(
            "1 prediction is infinite (that of item {item}): Pearson's r is undefined", item=first
        )
    return note(
        "{n:d} predictions are infinite (the first is that of item {item}): Pearson's r is undefined",
        n=len(infinite),
        item=first,
    )


def _excluded_remark(count: int, reason: str) -> str:
    return note(EXCLUDED, n=count, unit="dialogues", reason=reason) if count else ""


def jackknife_estimate(
    statistic: Statistic,
    n: int,
    clusters: Clusters,
    remark: str = "",
    *,
    bounds: tuple[float, float] | None = None,
    added: AddedVariance = NO_ADDED_VARIANCE,
    has_heavy_tails: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return a statistic of dialogues with the interval of `jackknife_interval`.

    clusters: those of all dialogues of the statistic. resamples, seed: as in `leave_out_weights`. The other
    arguments are those of `jackknife_interval`.
    """
    n_dialogues = len(clusters.of_dialogue)
    value = float(statistic(np.ones((1, n_dialogues)))[0]) if n_dialogues else math.nan
    deleted = map(statistic, leave_out_weights(clusters, resamples, seed))
    settings: Any = {"bounds": bounds, "added": added, "has_heavy_tails": has_heavy_tails}
    return jackknife_interval(value, deleted, n, clusters, remark, **settings)


@dataclass(frozen=True, eq=False)
class Replicates:
    """A statistic of all dialogues and its values without some of them, in which differences are paired."""

    value: float
    deleted: Floats
    """(G,) values of the replicates of `leave_out_weights`."""
    without_pairs: Floats
    """(C(C-1)/2,) values without each pair of clusters; empty for many clusters."""
    clusters: Clusters

    def __sub__(self, other: Replicates) -> Replicates:
        """Return the replicates of the difference of two statistics of the same dialogues."""
        return Replicates(
            self.value - other.value,
            self.deleted - other.deleted,
            self.without_pairs - other.without_pairs,
            self.clusters,
        )

    @property
    def quadratic_excess(self) -> float:
        """Share of excess in the jackknife's variance, in [0, 0.5]; 0 for many clusters.

        The jackknife counts the quadratic part of a statistic twice: its expectation is L + 2Q, with the
        variances of the linear and quadratic parts, so Q is the excess, at most one half. This matters if the
        linear part nearly cancels, as in the difference of two nearly equal correlations. Q is estimated by
        omitting each pair of clusters (Efron and Stein 1981, Ann. Stat. 9, section 5).
        """
        if not len(self.without_pairs):
            return 0.0
        n = len(self.deleted)
        first, second = np.triu_indices(n, 1)
        single = (n - 1) * (self.deleted[first] + self.deleted[second])
        quadratic = n * self.value - single + (n - 2) * self.without_pairs
        excess = len(first) * float(np.var(quadratic)) / (n * (n - 1))
        variance = (n - 1) * float(np.var(self.deleted))
        return min(excess / variance, 0.5) if excess < math.inf and variance > 0 else 0.0


def replicates(
    statistic: Statistic, clusters: Clusters, resamples: int = 1000, seed: int = 0
) -> Replicates:
    """Return a statistic of dialogues with its replicates; arguments as in `leave_out_weights`."""
    deleted = [statistic(weights) for weights in leave_out_weights(clusters, resamples, seed)]
    without_pairs: list[Floats] = []
    count = clusters.count
    if clusters.minimum <= count <= min(MAX_CORRECTED_CLUSTERS, resamples):
        first, second = np.triu_indices(count, 1)
        weights = np.ones((len(first), count))
        weights[np.arange(len(first)), first] = weights[np.arange(len(first)), second] = 0.0
        without_pairs = [
            statistic(chunk[:, clusters.of_dialogue]) for chunk in np.array_split(weights, count)
        ]
    return Replicates(
        float(statistic(np.ones((1, len(clusters.of_dialogue))))[0]),
        np.concatenate([np.empty(0), *deleted]),
        np.concatenate([np.empty(0), *without_pairs]),
        clusters,
    )


def difference_estimate(
    difference: Replicates, n: int, remark: str = "", *, has_heavy_tails: bool = False
) -> Estimate:
    """Return a difference of two correlations with its interval, ``stderr`` and ``p``.

    The interval is difference ± t · stderr of `jackknife_interval`, where the variance is reduced by its
    `Replicates.quadratic_excess`. ``p`` is that of the t-test of a difference of 0, two-sided; NaN without an
    interval. has_heavy_tails: as in `jackknife_interval`.
    """
    estimate = jackknife_interval(
        difference.value,
        [difference.deleted],
        n,
        difference.clusters,
        remark,
        widening=math.sqrt(1 - difference.quadratic_excess),
        has_heavy_tails=has_heavy_tails,
    )
    df = degrees_of_freedom(difference.clusters, difference.deleted, has_heavy_tails)
    return _t_tested(estimate, df)


def _t_tested(estimate: Estimate, df: float) -> Estimate:
    """Return a difference with ``df`` and ``p`` of the t-test, two-sided; NaN without an interval."""
    from scipy.special import stdtr

    p = math.nan
    if not math.isnan(estimate.low):
        t = abs(estimate.value) / estimate.extra["stderr"]
        p = 2 * float(stdtr(df, -t))
    return replace(estimate, extra={**estimate.extra, "df": df, "p": p})


def leave_out_weights(clusters: Clusters | int, resamples: int, seed: int = 0) -> Iterator[Floats]:
    """Yield (b, D) weights of jackknife replicates: 0 for omitted dialogues, 1 for the others.

    clusters: those of the D dialogues, or the number of dialogues. Each cluster is omitted in one replicate:
    alone, or, if there are more clusters than `resamples`, with a random group from `seed`. Yields nothing
    for fewer than the minimum number of clusters.
    """
    clusters = Clusters.single(clusters) if isinstance(clusters, int) else clusters
    if clusters.count < clusters.minimum:
        return
    groups = min(clusters.count, resamples)
    group = np.arange(clusters.count)
    if groups < clusters.count:
        group = np.random.default_rng(seed).permutation(clusters.count) % max(1, groups)
    group = group[clusters.of_dialogue]
    at_once = max(1, MAX_CHUNK_WEIGHTS // len(group))
    for start in range(0, groups, at_once):
        rows = np.arange(start, min(start + at_once, groups))
        yield (group != rows[:, None]).astype(np.float64)


def jackknife_interval(
    value: float,
    resample_values: Iterable[Floats],
    n: int,
    clusters: Clusters,
    remark: str = "",
    *,
    bounds: tuple[float, float] | None = None,
    widening: float = 1.0,
    added: AddedVariance = NO_ADDED_VARIANCE,
    has_heavy_tails: bool = False,
) -> Estimate:
    """Return a value with its jackknife-t interval.

    resample_values: chunks of the values of the G replicates of `leave_out_weights`. The interval is value ±
    t · stderr with the 97.5 percentile of t with G-1 degrees of freedom, for clusters of unequal size their
    effective number minus 1, and stderr² = (G-1)/G times the sum of squared deviations of the replicates from
    their mean; `widening` multiplies stderr. A value with `bounds` is first mapped to -1 ... 1 and by the
    inverse hyperbolic tangent: Fisher's z of a correlation, half of the logit of a share. A value without
    bounds has its ``stderr`` in `extra`. `added` is a variance
    on that scale from another source: the interval is then value ± the square root of the sum of both squared
    t · stderr, each with its own degrees of freedom (Banerjee 1960, Sankhya 22), which covers at least 95 %
    of normal values. If few clusters may determine the value (`has_heavy_tails`, Pearson's r), the degrees of
    freedom are at most 2 G / (k - 1) for the kurtosis k of the replicates: those of a variance with this
    sampling error (Satterthwaite 1946, Biometrics 2).

    No interval, with a reason: fewer than the minimum number of `clusters`; a replicate in which the value is
    undefined or at a bound; mostly equal replicates with fewer than `MIN_CLUSTERS` others, because the
    variance of rare values is unknown. The reason also warns of fewer than `MANY_CLUSTERS`.
    `remark` is the reason for a value of NaN, or a note on exclusions.
    """
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan, n, remark or UNDEFINED)
    deleted = np.concatenate([np.empty(0), *resample_values])
    low = high = stderr = math.nan
    unit = clusters.unit
    reason = too_few_clusters_note(clusters.count, unit, clusters.minimum)
    reason = reason or _no_interval_reason(deleted, bounds, unit)
    if not reason:
        transformed = to_unbounded(deleted, bounds)
        stderr = widening * math.sqrt((len(transformed) - 1) * float(np.var(transformed)))
        df = degrees_of_freedom(clusters, transformed, has_heavy_tails)
        half = _half_width(stderr, df)
        if added[0]:
            half = math.hypot(half, _half_width(math.sqrt(added[0]), added[1]))
        low, high = _limits(value, half, bounds)
        reason = clusters.few_note
    extra = {} if bounds else {"stderr": stderr}
    return Estimate(value, low, high, n, "; ".join(filter(None, [remark, reason])), extra)


def _no_interval_reason(deleted: Floats, bounds: tuple[float, float] | None, unit: str) -> str:
    """Return why jackknife replicates (G,) give no interval, or an empty string."""
    if few := too_few_clusters_note(len(deleted), "resamples"):
        return few
    if np.isnan(deleted).any():
        return note("undefined without some of the {unit}: no interval", unit=unit)
    scale = max(1.0, float(np.abs(deleted).max()))
    n_equal = int(np.unique(np.round(deleted / scale, 12), return_counts=True)[1].max())
    n_different = len(deleted) - n_equal
    if n_different < min(MIN_CLUSTERS, n_equal):
        return note(FEW_DIFFERENT, n=n_different, unit=unit, minimum=MIN_CLUSTERS)
    is_at_bound = np.isinf(to_unbounded(deleted, bounds)).any()
    return (
        note("at its bound without some of the {unit}: no interval", unit=unit)
        if is_at_bound
        else ""
    )


def degrees_of_freedom(clusters: Clusters, replicates: Floats, has_heavy_tails: bool) -> float:
    """Return the degrees of freedom of the variance of jackknife replicates (G,), at least 1."""
    g = len(replicates)
    limits = [clusters.df, g - 1.0]
    deviations = replicates - replicates.mean() if g else replicates
    squares = float(np.sum(deviations**2))
    if has_heavy_tails and squares > 0:
        kurtosis = g * float(np.sum(deviations**4)) / squares**2
        limits.append(2 * g / (kurtosis - 1) if kurtosis > 1 else math.inf)
    return max(1.0, min(limits))


def _half_width(stderr: float, df: float) -> float:
    """Return half the width of an interval with Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.975)) * stderr


def _limits(value: float, half: float, bounds: tuple[float, float] | None) -> tuple[float, float]:
    middle = float(to_unbounded(np.array([value]), bounds)[0])
    limits = middle + np.array([-1, 1]) * half
    if bounds is not None:
        limits = bounds[0] + (bounds[1] - bounds[0]) * (1 + np.tanh(limits)) / 2
    return float(limits[0]), float(limits[1])


def to_unbounded(values: Floats, bounds: tuple[float, float] | None) -> Floats:
    """Return values on an unbounded scale, Fisher's z for correlations; infinite at a bound."""
    if bounds is None:
        return values
    low, high = bounds
    scaled = np.clip((2 * values - low - high) / (high - low), -1, 1)
    scaled = np.where(1 - np.abs(scaled) < CONSTANT_TOLERANCE, np.sign(scaled), scaled)
    with np.errstate(divide="ignore"):
        return np.arctanh(scaled)


def percentile_estimate(
    value: float,
    resample_values: Floats,
    n: int,
    n_dialogues: int,
    remark: str = "",
    unit: str = "dialogues",
) -> Estimate:
    """Return a value with the percentile interval of its resampled values (R,); NaN if there are none.

    n_dialogues: the number of dialogues, or other clusters (`unit`), with a value; there is no interval for
    fewer than `MIN_CLUSTERS`. `remark` is the reason for a value of NaN, or a note on exclusions; the reason
    for a missing interval is added.
    """
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan, n, remark)
    if few := too_few_clusters_note(n_dialogues, unit):
        reason = "; ".join(filter(None, [remark, few]))
        return Estimate(value, math.nan, math.nan, n, reason)
    defined = resample_values[~np.isnan(resample_values)]
    if not len(defined):
        reason = note("no resample has a defined correlation: no interval")
        return Estimate(value, math.nan, math.nan, n, reason)
    low, high = np.quantile(defined, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n, remark)


def weighted_pearson(x: Floats, y: Floats, dialogue: Ints) -> Statistic:
    """Return a function for Pearson's r of items (N,) with weights of their dialogues.

    NaN if a value is infinite.
    """
    x, y = centred(x), centred(y)  # Sums of products of centred values do not cancel.
    sums = [
        np.bincount(dialogue, values) for values in (np.ones_like(x), x, y, x * x, y * y, x * y)
    ]
    per_dialogue = np.stack(sums, axis=1)

    def pearson(weights: Floats) -> Floats:
        n, sx, sy, sxx, syy, sxy = (weights @ per_dialogue).T
        return _correlation(n * sxy - sx * sy, n * sxx - sx * sx, n * syy - sy * sy, n**2)

    return pearson


def weighted_spearman(x: Floats, y: Floats, dialogue: Ints) -> Statistic:
    """Return the same function for Spearman's rho: Pearson's r of the ranks within each resample."""
    _, value_index_x = np.unique(x, return_inverse=True)
    _, value_index_y = np.unique(y, return_inverse=True)

    def spearman(weights: Floats) -> Floats:
        items = weights[:, dialogue]
        rank_x, rank_y = (
            _weighted_ranks(value_index_x, items),
            _weighted_ranks(value_index_y, items),
        )
        weighted = items * rank_x
        sxy = np.einsum("bi,bi->b", weighted, rank_y)
        sxx = np.einsum("bi,bi->b", weighted, rank_x)
        syy = np.einsum("bi,bi,bi->b", items, rank_y, rank_y)
        n = items.sum(axis=1)
        return _correlation(sxy, sxx, syy, n**3)

    return spearman


def _weighted_ranks(value_index: Ints, items: Floats) -> Floats:
    """Return (b, N) average ranks, centred on 0, of values that occur `items` (b, N) times each.

    `value_index` (N,) is the index of each item's value among the sorted distinct values. Equal values share
    the mean of their ranks: the number of smaller values plus half of their own number.
    """
    order = np.argsort(value_index, kind="stable")
    starts = np.flatnonzero(np.diff(value_index[order], prepend=-1))
    counts = np.add.reduceat(items[:, order], starts, axis=1)
    cumulative = np.cumsum(counts, axis=1)
    centred = cumulative - counts / 2 - cumulative[:, -1:] / 2
    return np.take(centred, value_index, axis=1)


def _correlation(
    covariance: Floats, variance_x: Floats, variance_y: Floats, unit: Floats
) -> Floats:
    """Return covariance / sqrt(variances); NaN in resamples with constant values."""
    unit = np.maximum(unit, 1.0)  # No item was sampled: 0 / 1.
    usable = _varies(variance_x / unit) & _varies(variance_y / unit)
    product = np.where(usable, variance_x * variance_y, 1.0)
    return np.where(usable, np.clip(covariance / np.sqrt(product), -1, 1), math.nan)


def _varies(variance: Floats) -> NDArray[np.bool_]:
    """Return which variances exceed rounding errors, relative to the largest of them."""
    return variance > CONSTANT_TOLERANCE * np.max(variance)


def _mean(values: Floats) -> Statistic:
    defined = ~np.isnan(values)
    filled = np.where(defined, values, 0.0)

    def mean(weights: Floats) -> Floats:
        total = weights @ defined.astype(np.float64)
        return np.where(total > 0, weights @ filled / np.where(total > 0, total, 1.0), math.nan)

    return mean


def weighted_rank_spearman(x: Floats, y: Floats, dialogue: Ints) -> Statistic:
    """Return the same function for the mean of `within_dialogue_correlations`, over dialogues where it is
    defined."""
    return _mean(within_dialogue_correlations(x, y, dialogue))


WEIGHTED_CORRELATIONS = {
    "pearson": weighted_pearson,
    "spearman": weighted_spearman,
    "rank_spearman": weighted_rank_spearman,
}
"""Name of a correlation -> function of (x, y, dialogue) that returns it as a function of weights."""


def within_dialogue_correlations(x: Floats, y: Floats, dialogue: Ints) -> Floats:
    """Return (D,) Spearman's rho of each dialogue's own items; NaN if undefined.

    >>> within_dialogue_correlations(np.array([1., 2, 3, 4]), np.array([0., 1, 1, 1]), np.array([0, 0, 1, 1]))
    array([ 1., nan])
    """
    rank_x, rank_y = _within_dialogue_ranks(x, dialogue), _within_dialogue_ranks(y, dialogue)
    sxy, sxx, syy = (
        np.bincount(dialogue, product)
        for product in (rank_x * rank_y, rank_x * rank_x, rank_y * rank_y)
    )
    usable = (sxx > 0) & (syy > 0)
    usable &= ~(constant_groups(x, dialogue) | constant_groups(y, dialogue))
    return np.where(usable, sxy / np.sqrt(np.where(usable, sxx * syy, 1.0)), math.nan)


def _within_dialogue_ranks(values: Floats, dialogue: Ints) -> Floats:
    """Return (N,) average ranks of the items within their dialogue, centred on 0."""
    order = np.lexsort((values, dialogue))
    block = dialogue[order]
    new_dialogue = np.diff(block, prepend=-1) != 0
    in_order = values[order]
    new_value = new_dialogue | np.append(True, in_order[1:] != in_order[:-1])
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
