"""Scales and position effects of annotators: coefficients of a best–worst logit.

An annotator chooses the best of K items with probability proportional to exp(lambda u + b x) and then the
worst of the others with probability proportional to exp(-lambda u + w x): the sequential best–worst logit
(Marley and Louviere 2005) with a scale lambda (sigma = 1 / lambda; Swait and Louviere 1993) and linear
effects b and w of the position x on the page, which is 1/2 for the item shown first and -1/2 for the item
shown last. The utilities u come from the judgments of all other annotators, for language models from those
of people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bws.records import Judgments
from bws.stats.clusters import Z_95

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Stage = tuple[Floats, Floats]
"""(L, C) regressor and (L, C) offset of C choices among L alternatives, the chosen one first."""

SCALE_PRIOR_SD = 1.0
"""Standard deviation of the prior of an annotator's scale, whose mean is 1."""
POOLED_PRIOR_SD = 10.0
Z_POWER = 1.6448536269514722
"""0.95 quantile of the normal distribution: a power of 0.9 and a margin, since the bound of random answers is
estimated."""
POSITION_PRIOR_SD = 2.0
"""Standard deviation of the prior of a position effect, in logits; its mean is 0."""
STEP_TOLERANCE = 1e-6
"""Size of the last Newton step; the remaining error is far smaller."""
MAX_STEPS = 200


@dataclass(frozen=True, eq=False)
class ScaleEstimates:
    """Scales of A annotators relative to the other annotators, and of the judgments without annotator.

    Arrays are (A + 1,); standard errors and limits are NaN where the others judged none of the items.
    """

    value: Floats
    """1: the average of the annotators whose answers do not oppose those of the others; 0: random answers;
    below 0: opposite answers."""
    stderr: Floats
    low: Floats
    """Lower limits of the 95 % intervals."""
    high: Floats
    random_high: Floats
    """Values below which random answers to the same tuples have their upper limits in 95 % of cases."""
    random_stderr: Floats
    """Standard errors of the scales of random answers to the same tuples."""
    pooled: float
    """Coefficient of the others' utilities over the judgments of annotators who do not oppose the others; it
    corresponds to a scale of 1."""
    is_defined: bool
    """Whether this coefficient is above 0 (score test, two-sided p < 0.05), so that scales have a unit."""

    def random_power(self, limit: float) -> Floats:
        """Return (A + 1,) the probability that the upper limit of random answers is below a limit."""
        from scipy.special import ndtr

        shift = self.random_stderr**2 / SCALE_PRIOR_SD**2
        power: Floats = ndtr((limit - shift) / self.random_stderr - Z_95)
        return power


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """Effect of being shown first rather than last on being chosen; NaN if unknown."""

    log_odds: float = float("nan")
    """Difference of the logits; above 0 if items that are shown first are chosen more often."""
    low: float = float("nan")
    """Lower end of the 95 % interval."""
    high: float = float("nan")
    p: float = float("nan")
    """Two-sided p-value of no effect (score test), multiplied by the number of tests, at most 1."""

    @property
    def value(self) -> float:
        """The log odds, for tables of estimates."""
        return self.log_odds


@dataclass(frozen=True, slots=True)
class PositionEffects:
    """Position effects on the best and the worst answer."""

    best: PositionEffect
    worst: PositionEffect


NO_EFFECTS = PositionEffects(PositionEffect(), PositionEffect())


def opposition(judgments: Judgments, annotator_of: Integers, utility: Floats) -> Floats:
    """Return (A + 1,) how clearly the answers of each annotator oppose those of the others.

    The arguments are those of `estimate_scales`. The values are minus the statistics of score tests that the
    coefficient of the utilities is 0: approximately standard normal for random answers; 0 without judgments.
    """
    n_labels = len(judgments.annotators) + 1
    stages = _best_worst_stages(judgments, _zero_unknown(utility))
    likelihood = _Posterior(stages, annotator_of, n_labels, 0.0, math.inf)
    _, slope, information = likelihood.derivatives(np.zeros(n_labels))
    statistic: Floats = -slope / np.sqrt(np.where(information > 0, information, 1.0))
    return statistic


def estimate_scales(
    judgments: Judgments,
    annotator_of: Integers,
    utility: Floats,
    scales_of_people: ScaleEstimates | None = None,
    cluster_of: Integers | None = None,
    *,
    is_opposed: NDArray[np.bool_] | None = None,
) -> ScaleEstimates:
    """Estimate the scale of every annotator.

    annotator_of: (J,) annotator index of each judgment, A if unknown.
    utility: (J, K) utilities of each judgment's items from the judgments of all other annotators, or NaN.
        A judgment with NaN does not count.
    scales_of_people: those of which the unit is used; None for the unit of these judgments.
    cluster_of: (J,) clusters of dependent judgments; None if judgments are independent.
    is_opposed: (A + 1,) annotators who do not determine the unit; None for none.

    A scale is relative to the coefficient over all judgments that determine the unit. It is the mode of the
    posterior under a normal prior with mean 1 and standard deviation 1, which pulls annotators with few
    judgments towards 1 and keeps the scale of an annotator who always agrees with the others finite. Standard
    errors and intervals, see `_Posterior`, ignore the error of the utilities. The answers of a judgment are
    one observation.
    """
    utility = _zero_unknown(utility)
    if cluster_of is None:
        cluster_of = np.arange(len(annotator_of))
    together = np.zeros(len(annotator_of), dtype=np.int64)
    counted = utility
    if is_opposed is not None:
        counted = np.where(is_opposed[annotator_of][:, None], 0.0, utility)
    pooled_posterior = _Posterior(
        _best_worst_stages(judgments, counted), together, 1, 0.0, POOLED_PRIOR_SD
    )
    _, (slope,), (information,) = replace(pooled_posterior, sd=math.inf).derivatives(np.zeros(1))
    (pooled,), is_defined = pooled_posterior.modes(), bool(slope > Z_95 * np.sqrt(information))
    if scales_of_people:
        pooled, is_defined = scales_of_people.pooled, scales_of_people.is_defined
    unit, n_labels = pooled if pooled > 0 else 1.0, len(judgments.annotators) + 1
    posterior = _Posterior(
        _best_worst_stages(judgments, unit * utility),
        annotator_of, n_labels, 1.0, SCALE_PRIOR_SD, cluster_of,
    )  # fmt: skip
    value = posterior.modes()
    stderr = posterior.stderrs(value)
    low, high = posterior.limits(value, stderr)
    _, _, random_curvature = posterior.derivatives(np.zeros(n_labels))
    random_stderr = 1 / np.sqrt(random_curvature)
    random_high = random_stderr**2 / SCALE_PRIOR_SD**2 + (Z_POWER + Z_95) * random_stderr
    is_known = random_curvature > 1 / SCALE_PRIOR_SD**2
    stderr, low, high, random_high, random_stderr = (
        _round_digits(np.where(is_known, each, np.nan))
        for each in (stderr, low, high, random_high, random_stderr)
    )
    limits = low, high, random_high, random_stderr
    return ScaleEstimates(_round_digits(value), stderr, *limits, float(pooled), is_defined)


@dataclass(frozen=True, eq=False)
class ScaleChanges:
    """Scales of the first and the second half of each annotator's judgments; (A + 1,) each."""

    first: Floats
    second: Floats
    p: Floats
    """One-sided p-values of a scale that does not fall; NaN without information in one of the halves."""


def scale_changes(
    judgments: Judgments,
    annotator_of: Integers,
    utility: Floats,
    scales: ScaleEstimates,
    is_second: NDArray[np.bool_],
) -> ScaleChanges:
    """Compare the scales of both halves of each annotator's judgments.

    The arguments are those of `estimate_scales` and its result; is_second: (J,) judgments of second halves.
    The scales of halves have the same prior and unit. The p-value is that of the efficient score of a
    difference, at the annotator's scale, which is approximately normal. Its variance is the larger of that
    from the curvature and that between judgments.
    """
    from scipy.special import ndtr

    unit, n_labels = scales.pooled if scales.pooled > 0 else 1.0, len(scales.value)
    posterior = _Posterior(
        _best_worst_stages(judgments, unit * _zero_unknown(utility)),
        2 * annotator_of + is_second, 2 * n_labels, 1.0, SCALE_PRIOR_SD, np.arange(len(annotator_of)),
    )  # fmt: skip
    likelihood, common = replace(posterior, sd=math.inf), scales.value.repeat(2)
    _, slope, information = likelihood.derivatives(common)
    variance = np.maximum(information, likelihood.slope_variance(common))
    halves = information.reshape(-1, 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = (halves[:, ::-1] / halves.sum(axis=1, keepdims=True)).ravel() * np.tile(
            (-1, 1), n_labels
        )
        score = (weight * slope).reshape(-1, 2).sum(axis=1)
        z = score / np.sqrt((weight**2 * variance).reshape(-1, 2).sum(axis=1))
    first, second = posterior.modes().reshape(-1, 2).T
    return ScaleChanges(*map(_round_digits, (first, second, ndtr(z))))


def position_effects(
    judgments: Judgments,
    annotator_of: Integers,
    utility: Floats,
    scales: ScaleEstimates,
    cluster_of: Integers | None = None,
) -> tuple[PositionEffects, list[PositionEffects]]:
    """Return the position effects of all judgments together, and of each of A annotators.

    The arguments are those of `estimate_scales` and its result. Judgments with items that no other
    annotator judged count as if these items were equal. Effects of an annotator require 5 K judgments. The
    p-values of annotators are corrected for the number of annotators with effects and the two answers, those
    of all judgments for the two answers (Bonferroni). All are NaN if the order on the page is unknown.
    """
    k, n_annotators = judgments.tuples.k, len(judgments.annotators)
    if judgments.shown is None:
        return NO_EFFECTS, [NO_EFFECTS] * n_annotators
    position = 0.5 - np.argsort(judgments.shown, axis=1) / max(k - 1, 1)
    unit = scales.pooled if scales.pooled > 0 else 1.0
    offset = unit * scales.value[annotator_of][:, None] * _zero_unknown(utility)
    best_order, worst_order = _chosen_first(judgments)
    stages = (_stage(position, offset, best_order), _stage(position, -offset, worst_order))
    has_enough = np.bincount(annotator_of, minlength=n_annotators + 1)[:n_annotators] >= 5 * k

    def effects(owner_of: Integers, n_owners: int, n_tests: int) -> list[PositionEffects]:
        posteriors = (
            _Posterior([stage], owner_of, n_owners, 0.0, POSITION_PRIOR_SD, cluster_of)
            for stage in stages
        )
        best, worst = (_estimate_effects(posterior, n_tests) for posterior in posteriors)
        return [PositionEffects(*pair) for pair in zip(best, worst, strict=True)]

    (overall,) = effects(np.zeros_like(annotator_of), 1, 2)
    by_annotator = effects(annotator_of, n_annotators + 1, 2 * int(np.count_nonzero(has_enough)))
    return overall, [by_annotator[a] if has_enough[a] else NO_EFFECTS for a in range(n_annotators)]


def _estimate_effects(posterior: _Posterior, n_tests: int) -> list[PositionEffect]:
    """Return the position effect per owner (an annotator, or all judgments)."""
    from scipy.special import chdtrc

    likelihood, none = replace(posterior, sd=math.inf), np.zeros(posterior.n_owners)
    _, slope, information = likelihood.derivatives(none)
    variance = np.maximum(information, likelihood.slope_variance(none))
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.minimum(1.0, n_tests * chdtrc(1, slope**2 / variance))
    value = posterior.modes()
    margin = Z_95 * posterior.stderrs(value)
    rows = np.column_stack((value, value - margin, value + margin, p))
    has_no_choice = information == 0  # worst answers of pairs (K = 2)
    return [
        PositionEffect() if empty else PositionEffect(*_round_digits(row).tolist())
        for row, empty in zip(rows, has_no_choice, strict=True)
    ]


def _round_digits(values: Floats) -> Floats:
    """Return values rounded to 10 digits, so that they do not depend on the order of summation."""
    return np.array([float(f"{value:.9e}") for value in values])


def _zero_unknown(utility: Floats) -> Floats:
    """Return the utilities, set to 0 in every judgment with an unknown utility."""
    has_unknown: NDArray[np.bool_] = np.any(np.isnan(utility), axis=1)
    return np.where(has_unknown[:, None], 0.0, utility)


def _chosen_first(judgments: Judgments) -> tuple[Integers, Integers]:
    """Return tuple positions (J, K) with the best first, and (J, K - 1) without the best, the worst first."""
    position = np.arange(judgments.tuples.k)
    is_best, is_worst = (
        position == answer_position[:, None]
        for answer_position in (judgments.best, judgments.worst)
    )
    order = np.argsort(np.where(is_best, 0, np.where(is_worst, 1, 2)), axis=1, kind="stable")
    return order, order[:, 1:]


def _stage(value: Floats, offset: Floats, order: Integers) -> Stage:
    """Return (K, J) values and offsets, the chosen item first; sums over few items are fast in this order."""
    chosen_first = (
        np.take_along_axis(value, order, axis=1),
        np.take_along_axis(offset, order, axis=1),
    )
    return np.ascontiguousarray(chosen_first[0].T), np.ascontiguousarray(chosen_first[1].T)


def _best_worst_stages(judgments: Judgments, utility: Floats) -> list[Stage]:
    zeros = np.zeros_like(utility)
    best_order, worst_order = _chosen_first(judgments)
    return [_stage(utility, zeros, best_order), _stage(-utility, zeros, worst_order)]


@dataclass(frozen=True, eq=False)
class _Posterior:
    """Posterior of the regressor's coefficient x of each of n owners (annotators, or all judgments)."""

    stages: Sequence[Stage]
    owner_of: Integers
    """(J,) owner of each judgment."""
    n_owners: int
    mean: float
    """Mean of the normal prior."""
    sd: float
    """Standard deviation of the prior; infinity for the likelihood alone."""
    cluster_of: Integers | None = None
    """(J,) clusters of dependent judgments; None for errors derived from the curvature alone."""

    def derivatives(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (n,) log posterior densities at x, first derivatives, and minus second derivatives."""
        precision = 1 / self.sd**2
        total = [-precision * (x - self.mean) ** 2 / 2, -precision * (x - self.mean)]
        total.append(np.full(len(x), precision))
        for stage in self.stages:
            terms = _choice_derivatives(*stage, x[self.owner_of])
            for n, term in enumerate(terms):
                total[n] = total[n] + np.bincount(self.owner_of, term, len(x))
        return total[0], total[1], total[2]

    def modes(self) -> Floats:
        """Return (n,) modes.

        Newton's method from the prior mean, safeguarded by bisection: a step that leaves the interval in
        which the slope changes its sign, or is not shorter than half of the step before, is replaced by a
        step to the midpoint of the interval. (Steps between two flat ends of a logit do not get shorter.)
        """
        x = np.full(self.n_owners, self.mean)
        low, high = np.full(self.n_owners, -np.inf), np.full(self.n_owners, np.inf)
        step = np.full(self.n_owners, np.inf)
        for _ in range(MAX_STEPS):
            _, slope, curvature = self.derivatives(x)
            low, high = np.where(slope >= 0, x, low), np.where(slope <= 0, x, high)
            target = x + slope / curvature
            is_slow = np.abs(target - x) > np.maximum(np.abs(step) / 2, STEP_TOLERANCE)
            is_slow &= np.isfinite(high - low)
            target = np.where(is_slow | (target < low) | (target > high), (low + high) / 2, target)
            step, x = target - x, target
            if np.abs(step).max(initial=0.0) <= STEP_TOLERANCE:
                break
        return x

    def stderrs(self, mode: Floats) -> Floats:
        """Return (n,) standard errors: from the curvature, or from the clusters if these are larger.

        Those of clusters are a sandwich estimate.
        """
        _, _, curvature = self.derivatives(mode)
        return np.sqrt(np.maximum(curvature, self.slope_variance(mode))) / curvature

    def limits(self, mode: Floats, stderr: Floats) -> tuple[Floats, Floats]:
        """Return (n,) lower and upper limits of 95 % intervals: profiles of the log posterior.

        At the limits, the log posterior is below that at the mode by half the 0.95 quantile of chi-square,
        times the ratio of the squared standard error to that from the curvature. Newton's method converges
        from outside of a limit, as the log posterior is concave.
        """
        height, _, curvature = self.derivatives(mode)
        height = height - (Z_95 * stderr) ** 2 * curvature / 2
        limits = []
        for margin in (-Z_95 * stderr, Z_95 * stderr):
            x = mode + margin
            for _ in range(MAX_STEPS):
                value, slope, _ = self.derivatives(x)
                step = (height - value) / slope
                x = x + step
                if np.abs(step).max(initial=0.0) <= STEP_TOLERANCE:
                    break
            limits.append(x)
        return limits[0], limits[1]

    def slope_variance(self, x: Floats) -> Floats:
        """Return (n,) variances between clusters of the log-likelihood's slope; 0 without clusters."""
        if self.cluster_of is None:
            return np.zeros(len(x))
        slope = np.zeros(len(self.owner_of))
        for stage in self.stages:
            slope += _choice_derivatives(*stage, x[self.owner_of])[1]
        size = int(self.cluster_of.max(initial=0)) + 1
        keys, key_of = np.unique(self.owner_of * size + self.cluster_of, return_inverse=True)
        owner_of, squares = keys // size, np.bincount(key_of, slope, len(keys)) ** 2
        n_clusters = np.bincount(owner_of, minlength=len(x))
        correction = n_clusters / np.maximum(n_clusters - 1, 1)
        return np.bincount(owner_of, squares, len(x)) * correction


def _choice_derivatives(value: Floats, offset: Floats, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (C,) log-likelihoods of choices, first derivatives, and minus second derivatives."""
    logit = x * value + offset
    logit -= logit.max(axis=0)
    p = np.exp(logit)
    total = p.sum(axis=0)
    p /= total
    mean = (p * value).sum(axis=0)
    return logit[0] - np.log(total), value[0] - mean, (p * (value - mean) ** 2).sum(axis=0)
