"""Draws from a density that is close to a standard normal one: Hamiltonian Monte Carlo with exact rotations.

The flow of a standard normal density is a rotation of positions and momenta; it alternates with half steps
of the momenta by what remains of the gradient (split Hamiltonian: Shahbaba et al. 2014). The error depends on
the difference from a normal density alone, not on the number of dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bws.absolute.model import Floats
from bws.base.progress import tracked

Density = Callable[[Floats], tuple[float, Floats]]
"""Position -> log density up to a constant, and its gradient."""

TARGET_ACCEPTANCE = 0.8
ANGLE = math.pi / 2
"""Length of a trajectory: a quarter turn makes draws from a normal density independent."""
ANGLE_FACTORS = 0.7, 1.3
"""Range of random factors of this length, so that no variable returns to its start."""
STEP_RANGE = 0.03, ANGLE / 2
SPEED, DELAY, FORGETTING = 4.0, 10, 0.75
"""Constants of the averaging: of the deviations of the acceptance, and of the steps."""
MAX_ENERGY_ERROR = 1000.0
"""Increase of the energy beyond which a trajectory has diverged."""


@dataclass(frozen=True, eq=False)
class Draws:
    """R draws of n variables."""

    positions: Floats
    """(R, n)"""
    acceptance: float
    """Mean probability of acceptance after the adaptation."""
    divergences: int
    """Number of diverged trajectories after the adaptation."""


class _Step:
    """Step size, adapted to the acceptance by dual averaging (Hoffman and Gelman 2014, section 3.2)."""

    def __init__(self) -> None:
        self.current = self.mean = math.log(ANGLE / 4)
        self.n, self.missing = 0, 0.0

    def update(self, acceptance: float) -> None:
        """Move the step by the sum of the deviations so far, and average it on the log scale."""
        self.n += 1
        self.missing += TARGET_ACCEPTANCE - acceptance
        step = math.log(ANGLE / 3) - SPEED * math.sqrt(self.n) / (self.n + DELAY) * self.missing
        low, high = math.log(STEP_RANGE[0]), math.log(STEP_RANGE[1])
        self.current = min(max(step, low), high)
        weight = self.n**-FORGETTING
        self.mean += weight * (self.current - self.mean)


def sample(
    density: Density, start: Floats, n_draws: int, rng: np.random.Generator, n_adapt: int = 100
) -> Draws:
    """Draw from a density, after `n_adapt` draws that adapt the step size to an acceptance of 0.8."""
    position, (value, gradient) = start, density(start)
    adapted = _Step()
    kept, acceptances, divergences = [], [], 0
    for iteration in tracked(range(-n_adapt, n_draws), "draws", n_adapt + n_draws):
        is_kept = iteration >= 0
        angle = ANGLE * rng.uniform(*ANGLE_FACTORS)
        n_steps = max(1, round(angle / math.exp(adapted.mean if is_kept else adapted.current)))
        momentum = rng.standard_normal(len(position))
        candidate, end, end_value, end_gradient = _trajectory(
            density, position, momentum, gradient, angle / n_steps, n_steps
        )
        gain = float(end_value - value + (momentum @ momentum - end @ end) / 2)
        acceptance = math.exp(min(0.0, gain)) if math.isfinite(gain) else 0.0
        if rng.random() < acceptance:
            position, value, gradient = candidate, end_value, end_gradient
        if is_kept:
            kept.append(position)
            acceptances.append(acceptance)
            divergences += not gain > -MAX_ENERGY_ERROR
        else:
            adapted.update(acceptance)
    return Draws(np.array(kept), float(np.mean(acceptances)), divergences)


def _trajectory(
    density: Density,
    position: Floats,
    momentum: Floats,
    gradient: Floats,
    step: float,
    n_steps: int,
) -> tuple[Floats, Floats, float, Floats]:
    """Return the position, momentum, log density and gradient at the end."""
    cos, sin = math.cos(step), math.sin(step)
    value = math.nan
    for _ in range(n_steps):
        momentum = momentum + step / 2 * (gradient + position)
        position, momentum = position * cos + momentum * sin, momentum * cos - position * sin
        value, gradient = density(position)
        if not math.isfinite(value):
            break
        momentum = momentum + step / 2 * (gradient + position)
    return position, momentum, value, gradient
