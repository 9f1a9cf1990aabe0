"""The standard deviation of the utilities' prior, estimated from the judgments (empirical Bayes).

The evidence for a standard deviation τ is the probability of the judgments with the utilities integrated
out, by Laplace's approximation at the utilities û that are most probable under τ:

    log Z(τ) = ℓ(û) - |û|² / 2τ² - N log τ - log |H| / 2,  H the curvature at û; log Z(0) = ℓ(0).

τ maximises it over {0} and [0.05, 5]. Where judgments hold no signal, the maximum is at or near 0, and all
scores are 0 or nearly so; a prior of fixed width would take the noise for differences between items.

Bradley–Terry and Plackett–Luce count the comparisons of a judgment as if they were independent. Their
log-likelihood is multiplied by tr H / tr J of a random answer between equal items, J the variance of the
answer's gradient (a composite likelihood's magnitude adjustment: Pauli, Racugno and Ventura 2011), so that
curvature and variance agree where there is no signal. The factor is 1 for the models whose choices are
those of the judgment (best–worst logit, MaxDiff, Plackett–Luce of triples).

The determinant is exact where no connected set has more than 200 items. Beyond that it is a stochastic
Lanczos quadrature (Ubaru, Chen and Saad 2017) with the same random vectors for every τ.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bws.scoring.likelihood import Posterior, maximum
from bws.scoring.methods import Floats, Integers

__all__ = ["log_evidence", "prior_of"]

PRIOR_RANGE = (0.05, 5.0)
LOG_PRIOR_TOLERANCE = 0.05
SEARCH_TOLERANCE = 5e-2
"""The last step of a fit during the search moves no utility by more; what is left is far smaller."""
DECIMALS = 3
MAX_DENSE_ITEMS = 200
PROBES = 4
LANCZOS_STEPS = 15


def prior_of(posterior: Posterior, label: Integers) -> tuple[float, Floats]:
    """Return the standard deviation with the highest evidence, to 3 decimals, and the utilities near it.

    label: (N,) the connected set of each item, -1 where no judgment shows it.
    """
    from scipy.optimize import minimize_scalar

    utility = np.zeros(posterior.outcomes.size)
    nothing = _weight(posterior.stages) * posterior.value(utility)

    def loss(log_prior: float) -> float:
        nonlocal utility
        trial = posterior.with_prior(math.exp(log_prior))
        utility = maximum(trial, utility, SEARCH_TOLERANCE).utility
        return nothing - log_evidence(trial, utility, label)

    bounds = [math.log(end) for end in PRIOR_RANGE]
    options = {"xatol": LOG_PRIOR_TOLERANCE}
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options=options)
    if best.fun >= 0:
        return 0.0, np.zeros_like(utility)
    return round(math.exp(best.x), DECIMALS), utility


def log_evidence(posterior: Posterior, utility: Floats, label: Integers) -> float:
    """Return log Z of the posterior's prior, from the most probable utilities (up to a constant)."""
    items = np.count_nonzero(label >= 0)  # the others' terms cancel
    determinant = _log_determinant(posterior.hessian(utility), posterior.precision, label)
    weighted = _weight(posterior.stages) * posterior.value(utility)
    return weighted + items * math.log(posterior.precision) / 2 - determinant / 2


def _weight(stages: list[Floats]) -> float:
    """Return tr H / tr J of an answer between equal items.

    >>> from bws.scoring.choice import bradley_terry, maxdiff
    >>> round(_weight(maxdiff(4)), 6), round(_weight(bradley_terry(4)), 6)
    (1.0, 0.555556)
    """
    curvature = sum(stage.var(axis=0).sum() for stage in stages)
    gradient = np.sum([stage[0] - stage.mean(axis=0) for stage in stages], axis=0)
    return float(curvature / (gradient @ gradient))


def _log_determinant(hessian: Any, precision: float, label: Integers) -> float:
    """Return log |H| over the items that judgments show."""
    seen = np.flatnonzero(label >= 0)
    number = np.unique(label[seen], return_inverse=True)[1]
    sizes = np.bincount(number)
    shown = hessian.tocsr()[seen][:, seen]
    if sizes.max(initial=0) <= MAX_DENSE_ITEMS:
        return _exact(shown.tocoo(), number, sizes)
    return _lanczos(shown, precision, number, sizes)


def _exact(hessian: Any, number: Integers, sizes: Integers) -> float:
    """Return log |H| from dense blocks, those of sets of one size together."""
    order = np.argsort(number, kind="stable")
    position = np.empty_like(order)
    position[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    set_of, total = number[hessian.row], 0.0
    for size in np.unique(sizes):
        sets = np.flatnonzero(sizes == size)
        block = np.zeros((len(sets), size, size))
        entry = sizes[set_of] == size
        row, column = position[hessian.row[entry]], position[hessian.col[entry]]
        block[np.searchsorted(sets, set_of[entry]), row, column] = hessian.data[entry]
        total += float(np.linalg.slogdet(block).logabsdet.sum())
    return total


def _lanczos(hessian: Any, precision: float, number: Integers, sizes: Integers) -> float:
    """Return an estimate of log |H| = tr log H.

    The constant vector of each connected set is an eigenvector with eigenvalue `precision`, the smallest
    one by far. It is taken out of the random vectors, so that the others' eigenvalues need few steps.
    """
    from scipy.sparse import csr_array

    n, sets = len(number), len(sizes)
    member = csr_array((np.ones(n), number, np.arange(n + 1)), shape=(n, sets))
    rng = np.random.Generator(np.random.PCG64(0))
    start = np.where(rng.random((n, PROBES)) < 0.5, -1.0, 1.0)
    start -= member @ ((member.T @ start) / sizes[:, np.newaxis])
    nodes, weights = _quadrature(hessian, start)
    mean_log = float((weights * np.log(np.maximum(nodes, precision))).sum(axis=1).mean())
    return (n - sets) * mean_log + sets * math.log(precision)


def _quadrature(matrix: Any, start: Floats) -> tuple[Floats, Floats]:
    """Return (P, M) nodes and weights for vᵀ f(A) v / |v|² = Σ weight f(node), v the P columns of `start`."""
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
