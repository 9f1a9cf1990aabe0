"""The mode of the latent variables, the Laplace evidence, and the hyperparameters with the highest evidence.

The Hessian has a block per group, bordered by annotators: with H = [[B, C], [C', E]] and B block diagonal,
log |H| = log |B| + log |E - C' inv(B) C|, and all systems are solved block by block. The border of a group
has columns for its own annotators only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.absolute.model import (
    Curvature,
    Data,
    Floats,
    Integers,
    Latent,
    curvature,
    log_density,
    start_theta,
    sums,
    zero,
)
from bws.base.progress import tracked

MAX_STEPS = 60
DECREMENT = 1e-5
"""Newton's method stops where a step promises a smaller increase of the log density."""
STEP = 0.05
"""Step of differences of the evidence in a hyperparameter."""
BOUNDS = (-4.0, 3.0), (-9.0, 9.0)
"""Bounds of logarithms of standard deviations and of logits of lapse rates."""
TOLERANCE = 0.5
"""Slope of the log evidence in any hyperparameter at which the search stops; posterior draws follow."""
MAX_SEARCH = 12


@dataclass(frozen=True, eq=False)
class Factor:
    """Factor of H = T^-T T^-1 with x = T xi: draws, solutions and the determinant."""

    inverse_lower: Floats
    """(D, n, n) inverse Cholesky factors of the blocks."""
    solved_border: Floats
    """(D, n, S) inv(B) C."""
    annotator: Integers
    """(D, S) annotator of each place."""
    inverse_people: Floats
    """(A, A) inverse Cholesky factor of E - C' inv(B) C."""
    log_determinant: float

    @classmethod
    def of(cls, h: Curvature) -> Factor:
        """Factorise."""
        lower = np.linalg.cholesky(h.blocks())
        inverse = np.linalg.inv(lower)
        half = inverse @ h.border()
        people = _without(h.people, h.annotator, half.transpose(0, 2, 1) @ half)
        lower_people = np.linalg.cholesky(people)
        solved = inverse.transpose(0, 2, 1) @ half
        return cls(
            inverse,
            solved,
            h.annotator,
            np.linalg.inv(lower_people),
            _log_square(lower) + _log_square(lower_people),
        )

    def spread(self, xi: Latent) -> Latent:
        """Return T xi: with standard normal xi a draw from N(0, inv(H))."""
        people = self.inverse_people.T @ xi.thresholds
        blocks = (xi.blocks[:, None] @ self.inverse_lower)[:, 0]
        return Latent(
            blocks - (self.solved_border @ people[self.annotator][:, :, None])[:, :, 0], people
        )

    def gathered(self, gradient: Latent) -> Latent:
        """Return T' g: the gradient with respect to xi."""
        blocks = (self.inverse_lower @ gradient.blocks[:, :, None])[:, :, 0]
        by_place = (gradient.blocks[:, None] @ self.solved_border)[:, 0]
        rest = sums(self.annotator.ravel(), by_place.ravel(), len(gradient.thresholds))
        return Latent(blocks, self.inverse_people @ (gradient.thresholds - rest))

    def solve(self, gradient: Latent) -> Latent:
        """Return inv(H) g = T T' g."""
        return self.spread(self.gathered(gradient))


def log_determinant(h: Curvature) -> float:
    """Return log |H|, by eliminating the places, then the items, then the people.

    With the places P and their coupling C, each block [[P, C], [C', c 1]] is factorised for C' inv(P) C. It
    is positive definite for c = 1 + |C|^2, because P - 1 has no negative eigenvalue.
    """
    d, s, m, _ = h.coupling.shape
    k = m - 1
    whole = np.zeros((d, s, 2 * m, 2 * m))
    whole[..., :m, :m], whole[..., m:, :m] = h.places, h.coupling.transpose(0, 1, 3, 2)
    whole[..., range(m, 2 * m), range(m, 2 * m)] = 1 + (h.coupling**2).sum(axis=(2, 3))[..., None]
    lower = np.linalg.cholesky(whole)
    half = lower[..., m:, :m]
    gram = half @ half.transpose(0, 1, 3, 2)
    items = np.linalg.cholesky(h.items - gram[..., :k, :k].sum(axis=1))
    rest = (h.thresholds - gram[..., :k, k]) @ np.linalg.inv(items).transpose(0, 2, 1)
    own = gram[..., k, k, None] * np.eye(s)
    people = _without(h.people, h.annotator, rest @ rest.transpose(0, 2, 1) + own)
    factors = lower[..., :m, :m], items, np.linalg.cholesky(people)
    return sum(map(_log_square, factors))


def _without(people: Floats, annotator: Integers, entries: NDArray[Any]) -> Floats:
    """Return the (A, A) matrix minus (D, S, S) entries of the annotators of each group."""
    a = len(people)
    index = annotator[:, :, None] * a + annotator[:, None]
    return people - sums(index.ravel(), entries.ravel(), a * a).reshape(a, a)


def _log_square(lower: NDArray[Any]) -> float:
    """Return the sum of log |L L'| over (..., n, n) Cholesky factors L."""
    return 2 * float(np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum())


@dataclass(frozen=True, eq=False)
class Mode:
    """The mode of the latent variables for given hyperparameters."""

    theta: Floats
    x: Latent
    value: float
    """Log density."""
    factor: Factor

    @property
    def log_evidence(self) -> float:
        """Laplace approximation up to a constant."""
        return self.value - self.factor.log_determinant / 2


def moved(x: Latent, step: Latent, size: float = 1.0) -> Latent:
    """Return x + size * step."""
    return Latent(x.blocks + size * step.blocks, x.thresholds + size * step.thresholds)


def product(a: Latent, b: Latent) -> float:
    """Return the scalar product."""
    return float(np.vdot(a.blocks, b.blocks) + a.thresholds @ b.thresholds)


def find_mode(data: Data, theta: Floats, start: Latent | None = None) -> Mode:
    """Maximise the log density over the latent variables by Newton's method with halved steps."""
    x = zero(data) if start is None else start
    value, gradient, _ = log_density(data, x, theta)
    for _ in range(MAX_STEPS):
        factor = Factor.of(curvature(data, x, theta))
        step = factor.solve(gradient)
        promised = product(gradient, step) / 2
        if promised < DECREMENT:
            break
        size = 1.0
        while True:
            candidate = moved(x, step, size)
            candidate_value, candidate_gradient, _ = log_density(data, candidate, theta)
            if candidate_value >= value or size < 1e-4:
                break
            size /= 2
        x, value, gradient = candidate, candidate_value, candidate_gradient
    return Mode(theta, x, value, factor)


def mode_slopes(data: Data, mode: Mode) -> list[Latent]:
    """Return the derivatives of the mode with respect to each hyperparameter: inv(H) d gradient / d theta."""
    slopes = []
    for index in range(data.n_hyper):
        change = np.zeros(data.n_hyper)
        change[index] = STEP / 10
        above, below = (
            log_density(data, mode.x, mode.theta + sign * change)[1] for sign in (1, -1)
        )
        difference = moved(above, below, -1.0)
        scale = 2 * change[index]
        slopes.append(
            mode.factor.solve(Latent(difference.blocks / scale, difference.thresholds / scale))
        )
    return slopes


def evidence_slopes(data: Data, mode: Mode, slopes: list[Latent]) -> tuple[Floats, Floats]:
    """Return first and second derivatives of the log evidence in each hyperparameter, by differences.

    The mode moves along its slope, so that no further search is necessary: the log density changes by the
    square of its error, which is of the second order of the step.
    """
    first, second = np.zeros(data.n_hyper), np.zeros(data.n_hyper)
    for index, slope in enumerate(slopes):
        values = []
        for sign in (1, -1):
            theta = mode.theta.copy()
            theta[index] += sign * STEP
            x = moved(mode.x, slope, sign * STEP)
            value = log_density(data, x, theta)[0]
            values.append(value - log_determinant(curvature(data, x, theta)) / 2)
        first[index] = (values[0] - values[1]) / (2 * STEP)
        second[index] = (values[0] + values[1] - 2 * mode.log_evidence) / STEP**2
    return first, second


@dataclass(frozen=True, eq=False)
class Fit:
    """The mode at the hyperparameters with the highest evidence, and how both depend on each other."""

    mode: Mode
    slopes: list[Latent]
    theta_sd: Floats
    """Standard deviation of each hyperparameter, from the curvature of the log evidence."""


def fit(data: Data, theta: Floats | None = None) -> Fit:
    """Maximise the evidence by Newton steps with the diagonal of its Hessian, of at most 1 each."""
    mode = find_mode(data, start_theta(data) if theta is None else theta)
    low, high = (
        np.repeat([BOUNDS[0][i], BOUNDS[1][i]], [data.first_lapse, data.n_annotators])
        for i in (0, 1)
    )
    damping = 1.0
    for _ in tracked(range(MAX_SEARCH), "steps of the fit", MAX_SEARCH):
        slopes = mode_slopes(data, mode)
        first, second = evidence_slopes(data, mode, slopes)
        step = np.clip(first / np.maximum(-second, 0.5), -1, 1)
        if np.abs(first * step).max() < TOLERANCE**2 / 2:
            break
        while True:
            theta = np.clip(mode.theta + damping * step, low, high)
            start = mode.x
            for change, slope in zip(theta - mode.theta, slopes, strict=True):
                start = moved(start, slope, change)
            candidate = find_mode(data, theta, start)
            if candidate.log_evidence > mode.log_evidence - 1e-6 or damping < 0.05:
                break
            damping /= 2
        mode, damping = candidate, min(1.0, 2 * damping)
    return Fit(mode, slopes, 1 / np.sqrt(np.maximum(-second, 0.25)))
