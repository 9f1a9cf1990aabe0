"""The posterior of utilities under a logit model of choices, and its maximum.

All models of `choice` are sums of log p(chosen | u) over stages of linear alternatives, so that one
gradient and one curvature serve them all. Adding a constant to u changes no chance: the curvature
is the Laplacian of a weighted graph on the items, sparse as the tuples are.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bws.scoring.answers import Answers
from bws.scoring.methods import Floats, Integers

__all__ = ["Outcomes", "Posterior", "Solution", "log_chance_of_first", "maximum"]

BLOCK = 1 << 14
MOST_STEPS = 100
SMALLEST_STEP = 1e-8


@dataclass(frozen=True, eq=False)
class Outcomes:
    """M distinct answers (tuple, best, worst) and how often each was given."""

    items: Integers
    """(K, M) item indices: the best first, the worst last."""
    weight: Floats
    """(M,) how often."""
    of_answer: Integers
    """(J,) the outcome of each answer."""
    size: int
    """N: item indices are below it."""

    @classmethod
    def of(cls, answers: Answers) -> Outcomes:
        """Collect the distinct answers."""
        key = (answers.tuple_of * answers.k + answers.best) * answers.k + answers.worst
        _, first, of_answer, weight = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        items = np.ascontiguousarray(answers.take(first).best_first().T)
        return cls(items, weight.astype(np.float64), of_answer, len(answers.items))

    @cached_property
    def pairs(self) -> tuple[Integers, Integers]:
        """The P = K(K-1)/2 pairs of positions in an answer."""
        i, j = np.triu_indices(len(self.items), 1)
        return i, j

    @cached_property
    def edges(self) -> tuple[Integers, Integers]:
        """Distinct pairs of items (low, high) as low * N + high, ascending; (P * M,) each pair's edge."""
        first, second = (self.items[position] for position in self.pairs)
        keys = np.minimum(first, second) * self.size + np.maximum(first, second)
        distinct, index = np.unique(keys, return_inverse=True)
        return distinct, index.ravel()


class Posterior:
    """log p(u | outcomes) up to a constant, for a Gaussian prior with mean 0 on each utility."""

    def __init__(self, outcomes: Outcomes, stages: list[Floats], prior: float) -> None:
        self.outcomes = outcomes
        self.stages = stages
        self.precision = 1 / prior**2

    def with_prior(self, prior: float) -> Posterior:
        """Return the posterior under another prior."""
        other = copy(self)
        other.precision = 1 / prior**2
        return other

    def value(self, u: Floats) -> float:
        """Return the log posterior at (N,) utilities."""
        total = 0.0
        for block in self._blocks():
            x, weight = u[self.outcomes.items[:, block]], self.outcomes.weight[block]
            total += sum(float(weight @ log_chance_of_first(stage, x)) for stage in self.stages)
        return total - self.precision / 2 * float(u @ u)

    def gradients(self, u: Floats) -> Floats:
        """Return (K, M) the derivative of each outcome's log-likelihood by its items' utilities."""
        found = np.zeros(self.outcomes.items.shape)
        for block in self._blocks():
            x = u[self.outcomes.items[:, block]]
            for stage in self.stages:
                found[:, block] += stage[0][:, None] - stage.T @ _chances(stage, x)
        return found

    def gradient(self, u: Floats) -> Floats:
        """Return (N,) the derivative of the log posterior."""
        weighted = self.gradients(u) * self.outcomes.weight
        summed = np.bincount(self.outcomes.items.ravel(), weighted.ravel(), self.outcomes.size)
        slope: Floats = summed - self.precision * u
        return slope

    def hessian(self, u: Floats) -> Any:
        """Return the sparse (N, N) negative second derivative of the log posterior."""
        from scipy.sparse import csr_array, diags_array

        edges, edge = self.outcomes.edges
        ties = np.bincount(edge, self._ties(u).ravel(), len(edges))
        n = self.outcomes.size
        low, high = np.divmod(edges, n)
        upper = csr_array((ties, high, np.searchsorted(low, np.arange(n + 1))), shape=(n, n))
        both = upper + upper.T
        return diags_array(both.sum(axis=1) + self.precision) - both

    def _ties(self, u: Floats) -> Floats:
        """Return (P, M) how strongly each outcome ties each of its pairs of items.

        With the alternatives' chances p and q = Σ_l p_l a_l a stage's curvature is
        Σ_l p_l a_l a_lᵀ - q qᵀ; the tie of i and j is minus its entry (i, j).
        """
        i, j = self.outcomes.pairs
        found: Floats = np.zeros((len(i), self.outcomes.items.shape[1]))
        for block in self._blocks():
            x = u[self.outcomes.items[:, block]]
            for stage in self.stages:
                p = _chances(stage, x)
                q = stage.T @ p
                found[:, block] += q[i] * q[j] - (stage[:, i] * stage[:, j]).T @ p
        found *= self.outcomes.weight
        return found

    def _blocks(self) -> Iterator[slice]:
        """Yield slices of outcomes that fit into a processor's cache."""
        for start in range(0, self.outcomes.items.shape[1], BLOCK):
            yield slice(start, start + BLOCK)


def _chances(stage: Floats, x: Floats) -> Floats:
    """Return (L, M) the chance of each alternative, from (K, M) utilities."""
    z = stage @ x
    z -= z.max(axis=0)
    np.exp(z, out=z)
    z /= z.sum(axis=0)
    return z


def log_chance_of_first(stage: Floats, x: Floats) -> Floats:
    """Return (M,) the log chance of the first alternative, the chosen one."""
    z = stage @ x
    z -= z.max(axis=0)
    log_chance: Floats = z[0] - np.log(np.exp(z).sum(axis=0))
    return log_chance


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the posterior is highest, or how far the search came."""

    utility: Floats
    steps: int
    moved: float
    """The most that the last step moved a utility."""

    @property
    def converged(self) -> bool:
        """Whether the last step was small enough."""
        return self.moved <= SMALLEST_STEP


def maximum(
    posterior: Posterior, start: Floats | None = None, tolerance: float = SMALLEST_STEP
) -> Solution:
    """Maximise a posterior by Newton steps from `start` (default: 0), solved by conjugate gradients.

    The posterior is strictly concave. The search ends when a step moves no utility by more than
    `tolerance`: the steps shrink so fast that what is left is far smaller.
    """
    u = np.zeros(posterior.outcomes.size) if start is None else start
    steps, moved = 0, np.inf
    value = posterior.value(u)
    while moved > tolerance and steps < MOST_STEPS:
        u, value, moved = _line_search(posterior, u, value, _newton_step(posterior, u))
        steps += 1
    return Solution(u, steps, moved)


def _newton_step(posterior: Posterior, u: Floats) -> Floats:
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import cg

    hessian = posterior.hessian(u)
    scale = diags_array(1 / hessian.diagonal())
    step, _ = cg(hessian, posterior.gradient(u), rtol=1e-6, atol=0, M=scale)
    return np.asarray(step, dtype=np.float64)


def _line_search(
    posterior: Posterior, u: Floats, value: float, step: Floats
) -> tuple[Floats, float, float]:
    """Go along the step, halved until the posterior does not fall (but for rounding)."""
    rounding = 1e-12 * abs(value)
    moved = float(np.abs(step).max(initial=0.0))
    while True:
        there = u + step
        reached = posterior.value(there)
        if reached >= value - rounding or moved <= SMALLEST_STEP:
            return there, reached, moved
        step, moved = step / 2, moved / 2
