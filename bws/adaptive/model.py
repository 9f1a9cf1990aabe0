"""The posterior of the utilities of all items of a design, and draws from its Gaussian approximation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bws.base.progress import tracked
from bws.records import Judgments, Tuples
from bws.scoring.choice import best_worst_logit, connected_labels
from bws.scoring.expected import expected_counting, expected_of_draws
from bws.scoring.methods import Floats, Integers
from bws.scoring.posterior import Outcomes, Posterior, estimate_prior, maximize

MODEL = best_worst_logit
MAX_DENSE_ITEMS = 1000
"""Number of items up to which draws use a dense Cholesky factor, otherwise conjugate gradients."""
SOLVE_TOLERANCE = 1e-6
"""Residual of the conjugate gradients relative to the right-hand side."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Mode of the posterior of the utilities of N items, and its curvature there."""

    utility: Floats
    """(N,) in the order of the design's items; 0 for items without judgments."""
    prior: float
    """Standard deviation of the prior, in logits; 0 if the judgments contain no signal."""
    hessian: Any
    """Sparse (N, N) Hessian of the negative log posterior; None if `prior` is 0."""
    group_of: Integers
    """(N,) index of each item's group."""
    label: Integers
    """(N,) index of each item's connected set; -1 for items without judgments."""
    appearances: Integers
    """(N,) number of judgments of each item."""
    k: int

    def draw(self, n_draws: int, rng: np.random.Generator) -> Floats:
        """Return (R, N) draws from N(û, H⁻¹); zeros if the judgments contain no signal.

        H = Σ_e w_e (e_i - e_j)(e_i - e_j)ᵀ + τ⁻² I over pairs of items e = (i, j). Hence a vector of
        independent normal numbers per pair and per item, weighted by √w_e and τ⁻¹, has the variance H, and
        the solution x of H x = g the variance H⁻¹.
        """
        if self.hessian is None:
            return np.zeros((n_draws, len(self.utility)))
        if len(self.utility) <= MAX_DENSE_ITEMS:
            return self.utility + _draw_dense(self.hessian.toarray(), n_draws, rng)
        numbers = tracked(range(n_draws), "draws", n_draws)
        draws = [_draw_sparse(self.hessian, 1 / self.prior, rng) for _ in numbers]
        return self.utility + np.array(draws)

    def scores(self) -> Floats:
        """Return (N,) scores on the scale of counting, in [-1, 1]."""
        return expected_counting(self.utility, self.group_of, self.k, MODEL)

    def scores_of(self, draws: Floats) -> Floats:
        """Return (R, N) scores of R draws on the scale of counting."""
        return expected_of_draws(draws, self.group_of, self.k, MODEL)


def fit(tuples: Tuples, judgments: Judgments, *, min_prior: float = 0.0) -> Fit:
    """Fit the best–worst logit with an estimated prior to judgments of some of the tuples.

    min_prior: lower limit of the standard deviation of the prior.
    Raises ValueError for judgments of items that are not in `tuples`, or of tuples of another size.
    """
    canonical = judgments.canonical
    if len(canonical) and canonical.k != tuples.k:
        raise ValueError(f"the judgments are of {canonical.k} items; the tuples have {tuples.k}")
    n, indices = len(tuples.items), _item_indices(tuples, judgments)
    group_of = tuples.group_of_item.astype(np.int64)
    label = np.full(n, -1, dtype=np.int64)
    appearances = np.zeros(n, dtype=np.int64)
    if not len(canonical):
        return Fit(np.zeros(n), 0.0, None, group_of, label, appearances, tuples.k)
    label[indices] = connected_labels(canonical)
    appearances[indices] = canonical.counts.appearances
    outcomes = Outcomes.from_judgments(canonical)
    outcomes = replace(outcomes, items=indices[outcomes.items], n_items=n)
    posterior = Posterior(outcomes, MODEL(tuples.k), 1.0)
    prior, start = estimate_prior(posterior, label)
    prior = max(prior, min_prior)
    if not prior:
        return Fit(np.zeros(n), 0.0, None, group_of, label, appearances, tuples.k)
    posterior = posterior.with_prior(prior)
    utility = maximize(posterior, start).utility
    hessian = posterior.hessian(utility)
    return Fit(utility, prior, hessian, group_of, label, appearances, tuples.k)


def _item_indices(tuples: Tuples, judgments: Judgments) -> Integers:
    """Return the index in the design of each judged item, in canonical order."""
    index_of_item = {key: index for index, key in enumerate(tuples.item_keys)}
    keys = judgments.canonical.item_keys
    unknown = [key for key in keys if key not in index_of_item]
    if unknown:
        group, item = unknown[0]
        location = f" of group {group!r}" if group else ""
        raise ValueError(
            f"{len(unknown)} judged items are not in the tuples, such as {item!r}{location}; pass the tuples "
            "of all rounds"
        )
    return np.array([index_of_item[key] for key in keys], dtype=np.int64)


def _draw_dense(hessian: Floats, n_draws: int, rng: np.random.Generator) -> Floats:
    """Return (R, N) draws from N(0, H⁻¹): with H = L Lᵀ, the solutions of Lᵀ x = z."""
    from scipy.linalg import solve_triangular

    factor = np.linalg.cholesky(hessian)
    normal = rng.standard_normal((n_draws, len(hessian)))
    draws: Floats = solve_triangular(factor, normal.T, trans="T", lower=True).T
    return draws


def _draw_sparse(hessian: Any, root_precision: float, rng: np.random.Generator) -> Floats:
    """Return (N,) a draw from N(0, H⁻¹), solved by conjugate gradients."""
    from scipy.sparse import diags_array, triu
    from scipy.sparse.linalg import cg

    pairs = triu(hessian, 1).tocoo()
    n = hessian.shape[0]
    noise = np.sqrt(np.maximum(-pairs.data, 0)) * rng.standard_normal(pairs.nnz)
    rows, columns = pairs.coords
    right = root_precision * rng.standard_normal(n)
    right += np.bincount(rows, noise, n) - np.bincount(columns, noise, n)
    scale = diags_array(1 / hessian.diagonal())
    draw, _ = cg(hessian, right, rtol=SOLVE_TOLERANCE, atol=0, M=scale)
    return np.asarray(draw, dtype=np.float64)
