"""Posterior of utilities under a logit model of choices: its mode and the evidence for its prior.

All models of `choice` are sums of log p(chosen | u) over stages of linear alternatives, so they share one
gradient and one Hessian. Adding a constant to u changes no probability: the Hessian is the Laplacian of a
weighted graph on the items, as sparse as the tuples.

The standard deviation of the prior is estimated from the judgments (empirical Bayes). The evidence for a
standard deviation τ is the marginal likelihood of the judgments. It is computed by Laplace's approximation
at the mode û under τ:

    log Z(τ) = ℓ(û) - |û|² / 2τ² - N log τ - log |H| / 2, with H the Hessian at û; log Z(0) = ℓ(0).

τ maximises the evidence over {0} and [0.05, 5]. For judgments without signal the maximum is at or near 0,
and all scores are about 0; a prior of fixed width would treat noise as differences between items.

Bradley–Terry and Plackett–Luce treat the comparisons of a judgment as independent. Their log-likelihood is
multiplied by tr H / tr J of a random answer between equal items, where J is the variance of the answer's
gradient (magnitude adjustment of a composite likelihood: Pauli, Racugno and Ventura 2011). Without signal,
curvature and variance then agree. The factor is 1 for models whose choices are those of the judgment
(best–worst logit, MaxDiff, Plackett–Luce for K = 3).

The determinant is exact if no connected set has more than 200 items. Otherwise it is estimated by
stochastic Lanczos quadrature (Ubaru, Chen and Saad 2017) with the same random vectors for every τ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bws.records import CanonicalJudgments
from bws.scoring.methods import Floats, Integers

BLOCK_SIZE = 1 << 14
MAX_STEPS = 100
STEP_TOLERANCE = 1e-8
PRIOR_RANGE = (0.05, 5.0)
LOG_PRIOR_TOLERANCE = 0.05
SEARCH_TOLERANCE = 5e-2
"""Tolerance of fits during the search; the remaining error is far smaller than the last step."""
PRIOR_DECIMALS = 3
MAX_DENSE_ITEMS = 200
N_PROBES = 4
LANCZOS_STEPS = 15


@dataclass(frozen=True, eq=False)
class Outcomes:
    """M distinct answers (tuple, best, worst) and their frequencies."""

    items: Integers
    """(K, M) item indices, the best first and the worst last."""
    weight: Floats
    """(M,) frequency of each outcome."""
    outcome_of_judgment: Integers
    """(J,) the outcome of each judgment."""
    n_items: int
    """N; all item indices are less than N."""

    @classmethod
    def from_judgments(cls, judgments: CanonicalJudgments) -> Outcomes:
        """Collect the distinct answers."""
        key = (judgments.tuple_of * judgments.k + judgments.best) * judgments.k + judgments.worst
        _, first, outcome_of_judgment, weight = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        items = np.ascontiguousarray(judgments.select(first).best_first().T)
        return cls(items, weight.astype(np.float64), outcome_of_judgment, len(judgments.items))

    @cached_property
    def pairs(self) -> tuple[Integers, Integers]:
        """The P = K(K-1)/2 pairs of positions in an answer."""
        i, j = np.triu_indices(len(self.items), 1)
        return i, j

    @cached_property
    def edges(self) -> tuple[Integers, Integers]:
        """Distinct item pairs (low, high) as low * N + high, ascending; (P * M,) the edge of each pair."""
        first, second = (self.items[position] for position in self.pairs)
        keys = np.minimum(first, second) * self.n_items + np.maximum(first, second)
        distinct, index = np.unique(keys, return_inverse=True)
        return distinct, index.ravel()

    @cached_property
    def matrix_pattern(self) -> tuple[Integers, Integers, Integers]:
        """Order of the entries (edges, edges transposed, diagonal) in a CSR matrix, its columns and row
        starts.
        """
        low, high = np.divmod(self.edges[0], self.n_items)
        diagonal = np.arange(self.n_items)
        rows, columns = np.concatenate([low, high, diagonal]), np.concatenate([high, low, diagonal])
        order = np.argsort(rows * self.n_items + columns)
        return order, columns[order], np.searchsorted(rows[order], np.arange(self.n_items + 1))


class Posterior:
    """log p(u | outcomes) up to a constant, for a Gaussian prior with mean 0 on each utility."""

    def __init__(self, outcomes: Outcomes, stages: list[Floats], prior: float) -> None:
        self.outcomes = outcomes
        self.stages = stages
        self.precision = 1 / prior**2

    def with_prior(self, prior: float) -> Posterior:
        """Return the posterior under another prior."""
        updated = copy(self)
        updated.precision = 1 / prior**2
        return updated

    def value(self, u: Floats) -> float:
        """Return the log posterior at (N,) utilities."""
        total = 0.0
        for block in self._blocks():
            x, weight = u[self.outcomes.items[:, block]], self.outcomes.weight[block]
            total += sum(
                float(weight @ log_probability_of_first(stage, x)) for stage in self.stages
            )
        return total - self.precision / 2 * float(u @ u)

    def gradients(self, u: Floats) -> Floats:
        """Return (K, M) gradients of each outcome's log-likelihood with respect to its items' utilities."""
        derivatives = np.zeros(self.outcomes.items.shape)
        for block in self._blocks():
            x = u[self.outcomes.items[:, block]]
            for stage in self.stages:
                derivatives[:, block] += stage[0][:, None] - stage.T @ _probabilities(stage, x)
        return derivatives

    def gradient(self, u: Floats) -> Floats:
        """Return (N,) the gradient of the log posterior."""
        weighted = self.gradients(u) * self.outcomes.weight
        summed = np.bincount(self.outcomes.items.ravel(), weighted.ravel(), self.outcomes.n_items)
        slope: Floats = summed - self.precision * u
        return slope

    def hessian(self, u: Floats) -> Any:
        """Return the sparse (N, N) Hessian of the negative log posterior."""
        from scipy.sparse import csr_array

        edges, edge = self.outcomes.edges
        curvatures = np.bincount(edge, self._pair_curvatures(u).ravel(), len(edges))
        n = self.outcomes.n_items
        low, high = np.divmod(edges, n)
        diagonal = np.bincount(low, curvatures, n) + np.bincount(high, curvatures, n)
        order, columns, row_starts = self.outcomes.matrix_pattern
        entries = np.concatenate([-curvatures, -curvatures, diagonal + self.precision])[order]
        return csr_array((entries, columns, row_starts), shape=(n, n))

    def _pair_curvatures(self, u: Floats) -> Floats:
        """Return (P, M) the negated off-diagonal Hessian entries of each outcome's pairs of items.

        With the probabilities p of the alternatives and q = Σ_l p_l a_l, the Hessian of a stage is
        Σ_l p_l a_l a_lᵀ - q qᵀ; the value for i and j is minus its entry (i, j).
        """
        i, j = self.outcomes.pairs
        curvatures: Floats = np.zeros((len(i), self.outcomes.items.shape[1]))
        for block in self._blocks():
            x = u[self.outcomes.items[:, block]]
            for stage in self.stages:
                p = _probabilities(stage, x)
                q = stage.T @ p
                curvatures[:, block] += q[i] * q[j] - (stage[:, i] * stage[:, j]).T @ p
        curvatures *= self.outcomes.weight
        return curvatures

    def _blocks(self) -> Iterator[slice]:
        """Yield slices of outcomes that fit into a processor's cache."""
        for start in range(0, self.outcomes.items.shape[1], BLOCK_SIZE):
            yield slice(start, start + BLOCK_SIZE)


def _probabilities(stage: Floats, x: Floats) -> Floats:
    """Return (L, M) probabilities of the alternatives, from (K, M) utilities."""
    z = stage @ x
    z -= z.max(axis=0)
    np.exp(z, out=z)
    z /= z.sum(axis=0)
    return z


def log_probability_of_first(stage: Floats, x: Floats) -> Floats:
    """Return (M,) log probabilities of the first alternative, the chosen one."""
    z = stage @ x
    z -= z.max(axis=0)
    log_probability: Floats = z[0] - np.log(np.exp(z).sum(axis=0))
    return log_probability


@dataclass(frozen=True, eq=False)
class Solution:
    """Mode of a posterior, or the last iterate if the fit did not converge."""

    utility: Floats
    steps: int
    last_step: float
    """Largest change of a utility in the last step."""

    @property
    def converged(self) -> bool:
        """Whether the last step was within the tolerance."""
        return self.last_step <= STEP_TOLERANCE


def maximize(
    posterior: Posterior, start: Floats | None = None, tolerance: float = STEP_TOLERANCE
) -> Solution:
    """Maximise a posterior by Newton steps from `start` (default: 0), solved by conjugate gradients.

    The posterior is strictly concave. The iteration ends when no utility changes by more than `tolerance`;
    quadratic convergence makes the remaining error far smaller.
    """
    u = np.zeros(posterior.outcomes.n_items) if start is None else start
    steps, last_step = 0, np.inf
    value = posterior.value(u)
    while last_step > tolerance and steps < MAX_STEPS:
        u, value, last_step = _line_search(posterior, u, value, _newton_step(posterior, u))
        steps += 1
    return Solution(u, steps, last_step)


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
    """Take the step, halved until the posterior does not decrease (within rounding)."""
    rounding = 1e-12 * abs(value)
    step_size = float(np.abs(step).max(initial=0.0))
    while True:
        candidate = u + step
        candidate_value = posterior.value(candidate)
        if candidate_value >= value - rounding or step_size <= STEP_TOLERANCE:
            return candidate, candidate_value, step_size
        step, step_size = step / 2, step_size / 2


def estimate_prior(posterior: Posterior, label: Integers) -> tuple[float, Floats]:
    """Return the standard deviation with the highest evidence, to 3 decimals, and utilities near its mode.

    label: (N,) the connected set of each item; -1 for items without judgments.
    """
    from scipy.optimize import minimize_scalar

    utility = np.zeros(posterior.outcomes.n_items)
    null_value = _likelihood_weight(posterior.stages) * posterior.value(utility)

    def loss(log_prior: float) -> float:
        nonlocal utility
        trial = posterior.with_prior(math.exp(log_prior))
        utility = maximize(trial, utility, SEARCH_TOLERANCE).utility
        return null_value - log_evidence(trial, utility, label)

    bounds = [math.log(end) for end in PRIOR_RANGE]
    options = {"xatol": LOG_PRIOR_TOLERANCE}
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options=options)
    if best.fun >= 0:
        return 0.0, np.zeros_like(utility)
    return round(math.exp(best.x), PRIOR_DECIMALS), utility


def log_evidence(posterior: Posterior, utility: Floats, label: Integers) -> float:
    """Return log Z of the posterior's prior, from the utilities at the mode (up to a constant)."""
    items = np.count_nonzero(label >= 0)  # the terms of the others cancel
    determinant = _log_determinant(posterior.hessian(utility), posterior.precision, label)
    weighted = _likelihood_weight(posterior.stages) * posterior.value(utility)
    return weighted + items * math.log(posterior.precision) / 2 - determinant / 2


def _likelihood_weight(stages: list[Floats]) -> float:
    """Return tr H / tr J of an answer between equal items.

    >>> from bws.scoring.choice import bradley_terry, maxdiff
    >>> round(_likelihood_weight(maxdiff(4)), 6), round(_likelihood_weight(bradley_terry(4)), 6)
    (1.0, 0.555556)
    """
    curvature = sum(stage.var(axis=0).sum() for stage in stages)
    gradient = np.sum([stage[0] - stage.mean(axis=0) for stage in stages], axis=0)
    return float(curvature / (gradient @ gradient))


def _log_determinant(hessian: Any, precision: float, label: Integers) -> float:
    """Return log |H| over the judged items."""
    judged_items = label >= 0
    set_of_item = np.unique(label[judged_items], return_inverse=True)[1]
    sizes = np.bincount(set_of_item)
    submatrix = hessian if judged_items.all() else hessian[judged_items][:, judged_items]
    if sizes.max(initial=0) <= MAX_DENSE_ITEMS:
        return _exact_log_determinant(submatrix.tocoo(), set_of_item, sizes)
    return _lanczos_log_determinant(submatrix, precision, set_of_item, sizes)


def _exact_log_determinant(hessian: Any, set_of_item: Integers, sizes: Integers) -> float:
    """Return log |H| from dense blocks, one batch per set size."""
    order = np.argsort(set_of_item, kind="stable")
    position = np.empty_like(order)
    position[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    set_of_entry, total = set_of_item[hessian.row], 0.0
    for size in np.unique(sizes):
        sets = np.flatnonzero(sizes == size)
        block = np.zeros((len(sets), size, size))
        is_in_sets = sizes[set_of_entry] == size
        row, column = position[hessian.row[is_in_sets]], position[hessian.col[is_in_sets]]
        block[np.searchsorted(sets, set_of_entry[is_in_sets]), row, column] = hessian.data[
            is_in_sets
        ]
        total += float(np.linalg.slogdet(block).logabsdet.sum())
    return total


def _lanczos_log_determinant(
    hessian: Any, precision: float, set_of_item: Integers, sizes: Integers
) -> float:
    """Return an estimate of log |H| = tr log H.

    The constant vector of each connected set is an eigenvector with eigenvalue `precision`, by far the
    smallest. It is projected out of the random vectors, so that few steps suffice for the others.
    """
    from scipy.sparse import csr_array

    n, sets = len(set_of_item), len(sizes)
    member = csr_array((np.ones(n), set_of_item, np.arange(n + 1)), shape=(n, sets))
    rng = np.random.Generator(np.random.PCG64(0))
    start = np.where(rng.random((n, N_PROBES)) < 0.5, -1.0, 1.0)
    start -= member @ ((member.T @ start) / sizes[:, np.newaxis])
    nodes, weights = _quadrature(hessian, start)
    mean_log = float((weights * np.log(np.maximum(nodes, precision))).sum(axis=1).mean())
    return (n - sets) * mean_log + sets * math.log(precision)


def _quadrature(matrix: Any, start: Floats) -> tuple[Floats, Floats]:
    """Return (P, M) nodes and weights for vᵀ f(A) v / |v|² = Σ weight f(node).

    The vectors v are the P columns of `start`.
    """
    vector, previous = start / np.linalg.norm(start, axis=0), np.zeros_like(start)
    beta = np.zeros(start.shape[1])
    tridiagonal = np.zeros((start.shape[1], LANCZOS_STEPS, LANCZOS_STEPS))
    for step in range(LANCZOS_STEPS):
        product = matrix @ vector - beta * previous
        alpha = (vector * product).sum(axis=0)
        product -= alpha * vector
        beta = np.linalg.norm(product, axis=0)
        tridiagonal[:, step, step] = alpha
        if step + 1 < LANCZOS_STEPS:
            tridiagonal[:, step, step + 1] = tridiagonal[:, step + 1, step] = beta
        previous, vector = vector, product / np.maximum(beta, np.finfo(float).tiny)
    nodes, vectors = np.linalg.eigh(tridiagonal)
    return nodes, vectors[:, 0] ** 2
