"""Draws from the posterior of latent variables and hyperparameters, started at the fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bws.absolute.fit import Fit, moved
from bws.absolute.model import Data, Floats, Latent, hyper, log_density
from bws.absolute.sampler import sample

MAX_THETA = 20.0
"""Absolute value of a logarithm or logit beyond which the density counts as 0."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """R draws."""

    utility: Floats
    """(R, D, K); meaningless for places without an item."""
    threshold: Floats
    """(R,) threshold of the average person: the mean over annotators, weighted by 1 - lambda_a."""
    slope: Floats
    """(R,) slope of the average person, from the same mean of its logarithm."""
    sd: dict[str, Floats]
    """Name -> (R,) standard deviation."""
    lapse: Floats
    """(R, A) lapse rates."""
    thresholds: Floats
    """(R, A)"""
    slopes: Floats
    """(R, A)"""
    acceptance: float
    divergences: int


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """Coordinates z in which the posterior is close to a standard normal density.

    theta = theta^ + sd z_1 and x = x^ + J (theta - theta^) + T z_2, with the slopes J of the mode and the
    factor T of the Hessian.
    """

    data: Data
    fit: Fit
    slope_blocks: Floats
    """(H, D n)"""
    slope_thresholds: Floats
    """(H, A)"""

    @classmethod
    def of(cls, data: Data, fit: Fit) -> _Coordinates:
        scaled = [
            (slope.blocks * sd, slope.thresholds * sd)
            for slope, sd in zip(fit.slopes, fit.theta_sd, strict=True)
        ]
        blocks, thresholds = zip(*scaled, strict=True)
        return cls(data, fit, np.array(blocks).reshape(len(blocks), -1), np.array(thresholds))

    @property
    def size(self) -> int:
        return self.data.n_hyper + self.fit.mode.x.blocks.size + self.data.n_annotators

    def _split(self, z: Floats) -> tuple[Floats, Latent]:
        n, p = self.data.n_hyper, self.data.n_annotators
        return z[:n], Latent(
            z[n : len(z) - p].reshape(self.fit.mode.x.blocks.shape), z[len(z) - p :]
        )

    def place(self, z: Floats) -> tuple[Latent, Floats]:
        """Return x and theta."""
        first, rest = self._split(z)
        step = self.fit.mode.factor.spread(rest)
        x = moved(self.fit.mode.x, step)
        shift = (first @ self.slope_blocks).reshape(x.blocks.shape)
        return moved(
            x, Latent(shift, first @ self.slope_thresholds)
        ), self.fit.mode.theta + self.fit.theta_sd * first

    def density(self, z: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient."""
        with np.errstate(all="ignore"):  # A trajectory that diverges ends.
            x, theta = self.place(z)
            if np.abs(theta).max() > MAX_THETA:
                return -np.inf, np.zeros(len(z))
            value, by_x, by_theta = log_density(self.data, x, theta)
            first = self.fit.theta_sd * by_theta + self.slope_thresholds @ by_x.thresholds
            first += self.slope_blocks @ by_x.blocks.ravel()
            rest = self.fit.mode.factor.gathered(by_x)
        return value, np.concatenate([first, rest.blocks.ravel(), rest.thresholds])


def draw(data: Data, fit: Fit, n_draws: int, seed: int, n_adapt: int = 100) -> Posterior:
    """Draw from the posterior with a fixed seed."""
    coordinates = _Coordinates.of(data, fit)
    rng = np.random.Generator(np.random.PCG64(seed))
    start = 0.1 * rng.standard_normal(coordinates.size)
    draws = sample(coordinates.density, start, n_draws, rng, n_adapt)
    places = [coordinates.place(z) for z in draws.positions]
    hypers = [hyper(data, theta) for _, theta in places]
    thresholds = np.array([x.thresholds for x, _ in places])
    slopes = np.array([h.slope for h in hypers])
    lapse = np.array([h.lapse for h in hypers])
    weight = (1 - lapse) * data.answered
    weight /= weight.sum(axis=1, keepdims=True)
    _, _, k = data.shape
    return Posterior(
        utility=np.array([x.blocks[:, :k] for x, _ in places]),
        threshold=(weight * thresholds).sum(axis=1),
        slope=np.exp((weight * np.log(slopes)).sum(axis=1)),
        sd={name: np.array([h.sd[name] for h in hypers]) for name in data.sds},
        lapse=lapse,
        thresholds=thresholds,
        slopes=slopes,
        acceptance=draws.acceptance,
        divergences=draws.divergences,
    )
