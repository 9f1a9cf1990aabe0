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

Density = Callable[[Floats], tuple[float, Floats]]
"""Position -> log density up to a constant, and its gradient."""

TARGET_ACCEPTANCE = 0.8
ANGLE = math.pi / 2
"""Length of a trajectory: a quarter turn makes draws from a normal density independent."""
STEP_RANGE = 0.03, ANGLE / 2
MAX_ENERGY_ERROR = 1000.0
"""Increase of the energy beyond which a trajectory has diverged."""


@dataclass(frozen=True, eq=False)
class Draws:
    """R draws of n variables."""

    positions: Floats
    """(R, n)"""
    acceptance: float
    """Mean probability of acceptance after the adaptation."""
    step: float
    divergences: int
    """Number of diverged trajectories after the adaptation."""


def sample(density: Density, start: Floats, n_draws: int, rng: np.random.Generator, n_adapt: int = 100) -> Draws:
    """Draw from a density; the step size is adapted to an acceptance of 0.8 before (Nesterov's averaging)."""
    position, (value, gradient) = start, density(start)
    log_step, log_mean, error_sum = math.log(ANGLE / 4), math.log(ANGLE / 4), 0.0
    centre = math.log(ANGLE / 3)
    kept, acceptances, divergences = [], [], 0
    for iteration in range(-n_adapt, n_draws):
        step = math.exp(log_step if iteration < 0 else log_mean)
        angle = ANGLE * rng.uniform(0.7, 1.3)
        n_steps = max(1, round(angle / step))
        momentum = rng.standard_normal(len(position))
        candidate, end, end_value, end_gradient = _trajectory(
            density, position, momentum, gradient, angle / n_steps, n_steps
        )
        difference = end_value - value + (momentum @ momentum - end @ end) / 2
        probability = math.exp(min(0.0, difference)) if math.isfinite(difference) else 0.0
        if rng.random() < probability:
            position, value, gradient = candidate, end_value, end_gradient
        if iteration < 0:
            n = iteration + n_adapt + 1
            error_sum += TARGET_ACCEPTANCE - probability
            log_step = centre - math.sqrt(n) / 0.05 * error_sum / (n + 10) * 0.05 * 4
            log_step = min(max(log_step, math.log(STEP_RANGE[0])), math.log(STEP_RANGE[1]))
            weight = n**-0.75
            log_mean = weight * log_step + (1 - weight) * log_mean
        else:
            kept.append(position)
            acceptances.append(probability)
            divergences += not difference > -MAX_ENERGY_ERROR
    return Draws(np.array(kept), float(np.mean(acceptances)), math.exp(log_mean), divergences)


def _trajectory(
    density: Density, position: Floats, momentum: Floats, gradient: Floats, step: float, n_steps: int
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
