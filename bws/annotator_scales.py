"""Annotator scales and position effects: coefficients of a best–worst logit, one annotator at a time.

An annotator chooses the best of K items with probability proportional to exp(lambda u + b x) and then the
worst of the others with probability proportional to exp(-lambda u + w x): the sequential best–worst logit
(Marley and Louviere 2005) with a scale lambda (sigma = 1 / lambda; Swait and Louviere 1993) and linear
effects b and w of the position x on the page, which is 1/2 for the item shown first and -1/2 for the item
shown last. The utilities u come from the judgments of all other annotators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bws.records import Judgments

__all__ = [
    "NO_EFFECTS",
    "PositionEffect",
    "PositionEffects",
    "Scales",
    "position_effects",
    "scales",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Stage = tuple[Floats, Floats]
"""(C, L) regressor and (C, L) offset of C choices among L alternatives, the chosen one first."""

SCALE_PRIOR_SD = 1.0
"""Standard deviation of the prior of an annotator's scale, whose mean is 1."""
POOLED_PRIOR_SD = 10.0
POSITION_PRIOR_SD = 2.0
"""Standard deviation of the prior of a position effect, in logits; its mean is 0."""
Z = 1.959963984540054
"""Quantile of the normal distribution for a 95 % interval."""
TOLERANCE = 1e-6
"""Of the last Newton step; what is left after it is far smaller."""
MAX_STEPS = 200


@dataclass(frozen=True, eq=False)
class Scales:
    """How sharply annotators follow the others, for A annotators and the judgments without annotator."""

    value: Floats
    """(A + 1,) 1: as sharply as all annotators on average; 0: guesses; below 0: contradicts."""
    stderr: Floats
    """(A + 1,) standard errors; NaN where the others judged none of the items."""
    pooled: float
    """Coefficient of the others' utilities over all judgments: what a scale of 1 stands for."""
    is_defined: bool
    """Whether this coefficient is above 0 (score test, two-sided p < 0.05), so that scales have a unit."""


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """Effect of being shown first rather than last on being chosen; NaN where it is unknown."""

    log_odds: float = float("nan")
    """Difference of the logits; above 0 where items that are shown first are chosen more often."""
    low: float = float("nan")
    """Lower end of the 95 % interval."""
    high: float = float("nan")
    p: float = float("nan")
    """Two-sided p-value of no effect (score test), multiplied by the number of tests, at most 1."""


@dataclass(frozen=True, slots=True)
class PositionEffects:
    """Effects on both answers."""

    best: PositionEffect
    worst: PositionEffect


NO_EFFECTS = PositionEffects(PositionEffect(), PositionEffect())


def scales(judgments: Judgments, owner: Integers, utility: Floats) -> Scales:
    """Estimate the scale of every annotator.

    owner: (J,) the annotator of each judgment, below A, or A where it is unknown.
    utility: (J, K) of each judgment's items, from the judgments of all other annotators; NaN where there are
        none. A judgment with such an item does not count.

    A scale is relative to the coefficient over all judgments. It is the mode of the posterior under a normal
    prior with mean 1 and standard deviation 1, which pulls annotators with few judgments towards 1 and keeps
    the scale of an annotator who always follows the others finite; the standard error is from the curvature
    there. It ignores the error of the utilities.
    """
    n_owners = len(judgments.annotators) + 1
    utility = _known(utility)
    everyone = np.zeros(len(owner), dtype=np.int64)
    stages = _both_stages(judgments, utility)
    (slope,), (information,) = _slopes(stages, everyone, np.zeros(1))
    (pooled,), _ = _modes(stages, everyone, 1, mean=0.0, sd=POOLED_PRIOR_SD)
    unit = pooled if pooled > 0 else 1.0
    stages = _both_stages(judgments, unit * utility)
    value, stderr = _modes(stages, owner, n_owners, mean=1.0, sd=SCALE_PRIOR_SD)
    stderr[_slopes(stages, owner, value)[1] == 0] = np.nan
    is_defined = bool(slope > Z * np.sqrt(information))
    return Scales(_rounded(value), _rounded(stderr), float(pooled), is_defined)


def position_effects(
    judgments: Judgments, owner: Integers, utility: Floats, estimated: Scales
) -> tuple[PositionEffects, list[PositionEffects]]:
    """Return the position effects of all judgments together, and of each of A annotators.

    The arguments are those of `scales`, and its result. Judgments with items that no other annotator judged
    count as if these items were equal. An annotator has effects from 5 K judgments. The p-values of
    annotators are corrected for the number of annotators with effects and the two answers, those of all
    judgments for the two answers (Bonferroni). ValueError: the order on the page is unknown.
    """
    if judgments.shown is None:
        raise ValueError("the order on the page is unknown; position effects need it")
    k, n_annotators = judgments.tuples.k, len(judgments.annotators)
    position = 0.5 - np.argsort(judgments.shown, axis=1) / max(k - 1, 1)
    unit = estimated.pooled if estimated.pooled > 0 else 1.0
    offset = unit * estimated.value[owner][:, None] * _known(utility)
    best_order, worst_order = _chosen_first(judgments)
    answers = (_stage(position, offset, best_order), _stage(position, -offset, worst_order))
    everyone = np.zeros(len(owner), dtype=np.int64)
    together = [_effects([stage], everyone, 1, n_tests=2)[0] for stage in answers]
    enough = np.bincount(owner, minlength=n_annotators + 1)[:n_annotators] >= 5 * k
    n_tests = 2 * int(np.count_nonzero(enough))
    best, worst = (_effects([stage], owner, n_annotators + 1, n_tests) for stage in answers)
    each = [
        PositionEffects(best[a], worst[a]) if enough[a] else NO_EFFECTS for a in range(n_annotators)
    ]
    return PositionEffects(*together), each


def _effects(
    stages: Sequence[Stage], owner: Integers, n_owners: int, n_tests: int
) -> list[PositionEffect]:
    """Return the effect of each owner."""
    from scipy.special import chdtrc

    slope, information = _slopes(stages, owner, np.zeros(n_owners))
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.minimum(1.0, n_tests * chdtrc(1, slope**2 / information))
    value, stderr = _modes(stages, owner, n_owners, mean=0.0, sd=POSITION_PRIOR_SD)
    rows = np.column_stack((value, value - Z * stderr, value + Z * stderr, p))
    no_choice = information == 0  # the worst of two
    return [
        PositionEffect() if empty else PositionEffect(*_rounded(row).tolist())
        for row, empty in zip(rows, no_choice, strict=True)
    ]


def _rounded(values: Floats) -> Floats:
    """Return numbers with 10 digits, which do not depend on the order in which terms were added."""
    return np.array([float(f"{value:.9e}") for value in values])


def _known(utility: Floats) -> Floats:
    """Return utilities that are 0 in every judgment with an unknown one."""
    unknown: NDArray[np.bool_] = np.any(np.isnan(utility), axis=1)
    return np.where(unknown[:, None], 0.0, utility)


def _chosen_first(judgments: Judgments) -> tuple[Integers, Integers]:
    """Return positions in the tuple: (J, K) with the best first, (J, K - 1) without it, the worst first."""
    position = np.arange(judgments.tuples.k)
    is_best, is_worst = (
        position == chosen[:, None] for chosen in (judgments.best, judgments.worst)
    )
    order = np.argsort(np.where(is_best, 0, np.where(is_worst, 1, 2)), axis=1, kind="stable")
    return order, order[:, 1:]


def _stage(value: Floats, offset: Floats, order: Integers) -> Stage:
    return np.take_along_axis(value, order, axis=1), np.take_along_axis(offset, order, axis=1)


def _both_stages(judgments: Judgments, utility: Floats) -> list[Stage]:
    none = np.zeros_like(utility)
    best_order, worst_order = _chosen_first(judgments)
    return [_stage(utility, none, best_order), _stage(-utility, none, worst_order)]


def _modes(
    stages: Sequence[Stage], owner: Integers, n_owners: int, *, mean: float, sd: float
) -> tuple[Floats, Floats]:
    """Return (n_owners,) modes of the posterior of the regressor's coefficient, and standard errors.

    Newton steps from the prior's mean; a step that leaves the interval in which the slope is known to change
    its sign is replaced by the middle of this interval.
    """
    x = np.full(n_owners, mean)
    low, high = np.full(n_owners, -np.inf), np.full(n_owners, np.inf)
    for _ in range(MAX_STEPS):
        slope, curvature = _slopes(stages, owner, x)
        slope, curvature = slope - (x - mean) / sd**2, curvature + 1 / sd**2
        low, high = np.where(slope >= 0, x, low), np.where(slope <= 0, x, high)
        target = x + slope / curvature
        target = np.where((target < low) | (target > high), (low + high) / 2, target)
        moved, x = np.abs(target - x).max(initial=0.0), target
        if moved <= TOLERANCE:
            break
    return x, 1 / np.sqrt(_slopes(stages, owner, x)[1] + 1 / sd**2)


def _slopes(stages: Sequence[Stage], owner: Integers, x: Floats) -> tuple[Floats, Floats]:
    """Return (n_owners,) first and minus second derivatives of the log-likelihood at coefficients x."""
    slope, curvature = np.zeros(len(x)), np.zeros(len(x))
    for value, offset in stages:
        logit = x[owner][:, None] * value + offset
        p = np.exp(logit - logit.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        mean = (p * value).sum(axis=1)
        spread = (p * (value - mean[:, None]) ** 2).sum(axis=1)
        slope += np.bincount(owner, value[:, 0] - mean, len(x))
        curvature += np.bincount(owner, spread, len(x))
    return slope, curvature
