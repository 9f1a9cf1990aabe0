"""Empirical Bayes estimates: scores that are shrunk towards a regression on other scores of the items.

An item's score y has the error variance V. The true scores are normal around a regression on a predictor,
with the residual variance τ² (Fay and Herriot 1979). The estimate is (1 - B) y + B times the regression, with
B about V / (V + τ²). τ² and the intervals are those of Morris (1983, Journal of the American Statistical
Association 78, pages 47–65), which account for the estimation of the regression and of τ². They contain the
true scores in 95 % of cases on average over the items, not for each item: items far from the regression are
shrunk too much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bws.scoring.methods import Floats
from bws.stats.clusters import Z_95
from bws.stats.constancy import is_constant

MIN_POOLED_ITEMS = 10
MAX_ITERATIONS = 1000
TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Pooled:
    """Shrunk scores of N items."""

    estimate: Floats
    """(N,)"""
    half_width: Floats
    """(N,) half-widths of the 95 % intervals."""
    coefficients: Floats
    """Intercept and, unless the predictor is constant, slope of the regression."""
    residual_variance: float
    """τ²; 0 if the scores vary around the regression no more than their errors."""


def shrink(score: Floats, variance: Floats, predictor: Floats | None = None) -> Pooled:
    """Shrink (N,) scores with error variances towards their regression on a predictor, or to their mean.

    With weights W = 1 / (V + τ²), τ² solves Σ W (N / (N - r) residual² - V - τ²) = 0, and is 0 if
    there is no positive solution; r is the number of coefficients. Raises ValueError for fewer than
    `MIN_POOLED_ITEMS` items.

    >>> y = np.array([-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9])
    >>> shrink(y, np.full(10, 0.1)).estimate.round(2).tolist()[:3]
    [-0.71, -0.55, -0.39]
    >>> shrink(y, np.full(10, 0.1), predictor=y).estimate.round(2).tolist()[:3]
    [-0.9, -0.7, -0.5]
    """
    n = len(score)
    if n < MIN_POOLED_ITEMS:
        raise ValueError(f"{n} items with intervals; pooling requires {MIN_POOLED_ITEMS}")
    columns = [np.ones(n)]
    if predictor is not None and not is_constant(predictor):
        columns.append(predictor)
    design = np.column_stack(columns)
    r = design.shape[1]
    tau2 = _residual_variance(score, variance, design)
    weight = 1 / (variance + tau2)
    coefficients, inverse = _regression(score, weight, design)
    residual = score - design @ coefficients
    leverage = weight * np.einsum("ij,jk,ik->i", design, inverse, design)
    shrinkage = (n - r - 2) / (n - r) * variance * weight
    mean_variance = (weight * variance).sum() / weight.sum()
    uncertainty = 2 / (n - r - 2) * shrinkage**2 * (mean_variance + tau2) * weight
    total = variance * (1 - (1 - leverage) * shrinkage) + uncertainty * residual**2
    return Pooled(score - shrinkage * residual, Z_95 * np.sqrt(total), coefficients, float(tau2))


def _regression(score: Floats, weight: Floats, design: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients of the weighted regression, and the inverse of its cross-product."""
    inverse = np.asarray(np.linalg.inv(design.T @ (weight[:, np.newaxis] * design)), np.float64)
    return inverse @ (design.T @ (weight * score)), inverse


def _residual_variance(score: Floats, variance: Floats, design: Floats) -> float:
    """Return τ² by iteration of its equation."""
    n, r = design.shape
    tau2 = float(score.var())
    for _ in range(MAX_ITERATIONS):
        weight = 1 / (variance + tau2)
        residual = score - design @ _regression(score, weight, design)[0]
        excess = weight * (n / (n - r) * residual**2 - variance)
        previous, tau2 = tau2, max(float(excess.sum() / weight.sum()), 0.0)
        if abs(tau2 - previous) <= TOLERANCE:
            break
    return tau2
