"""Scores that are shrunk towards a regression."""

import numpy as np
import pytest
from scipy.optimize import brentq

from bws.scoring.pooling import shrink

RNG = np.random.default_rng(3)
PREDICTOR = RNG.normal(size=15)
VARIANCE = RNG.uniform(0.05, 0.3, 15)
SCORE = 0.2 + 0.6 * PREDICTOR + RNG.normal(0, np.sqrt(0.1 + VARIANCE))


def regression(weight):
    root = np.sqrt(weight)
    columns = np.column_stack([root, root * PREDICTOR])
    coefficients = np.linalg.lstsq(columns, root * SCORE)[0]
    return coefficients[0] + coefficients[1] * PREDICTOR, columns @ np.linalg.pinv(columns)


def test_estimates_are_those_of_morris_computed_directly():
    n, r = 15, 2

    def equation(tau2):
        weight = 1 / (VARIANCE + tau2)
        residual = SCORE - regression(weight)[0]
        return (weight * (n / (n - r) * residual**2 - VARIANCE - tau2)).sum()

    tau2 = brentq(equation, 1e-6, 5, xtol=1e-14)
    weight = 1 / (VARIANCE + tau2)
    line, hat = regression(weight)
    b = (n - r - 2) / (n - r) * VARIANCE / (VARIANCE + tau2)
    mean_variance = np.average(VARIANCE, weights=weight)
    total = VARIANCE * (1 - (1 - np.diag(hat)) * b)
    for i in range(n):
        v = 2 / (n - r - 2) * b[i] ** 2 * (mean_variance + tau2) / (VARIANCE[i] + tau2)
        total[i] += v * (SCORE[i] - line[i]) ** 2
    pooled = shrink(SCORE, VARIANCE, PREDICTOR)
    assert pooled.residual_variance == pytest.approx(tau2, abs=1e-9)
    np.testing.assert_allclose(pooled.estimate, (1 - b) * SCORE + b * line, atol=1e-8)
    np.testing.assert_allclose(pooled.half_width, 1.959964 * np.sqrt(total), atol=1e-8)


def test_scores_on_the_line_have_no_residual_variance():
    pooled = shrink(2 * PREDICTOR, VARIANCE, PREDICTOR)
    assert pooled.residual_variance == 0
    np.testing.assert_allclose(pooled.estimate, 2 * PREDICTOR, atol=1e-12)
    assert (pooled.half_width > 0).all()


def test_constant_predictor_is_no_predictor():
    constant, none = (shrink(SCORE, VARIANCE, x) for x in (np.ones(15), None))
    assert constant.estimate.tolist() == none.estimate.tolist()
    assert len(constant.coefficients) == 1


def test_fewer_than_ten_items_are_refused():
    with pytest.raises(ValueError, match="9 items with intervals; pooling requires 10"):
        shrink(SCORE[:9], VARIANCE[:9])


@pytest.mark.parametrize(("n", "tau"), [(10, 0.0), (10, 0.5), (40, 0.0), (40, 0.3), (40, 2.0)])
def test_intervals_cover_on_average(n, tau):
    rng = np.random.default_rng(n)
    covered = []
    for _ in range(300):
        x, variance = rng.normal(size=n), rng.uniform(0.1, 0.5, n)
        truth = x + rng.normal(0, tau, n)
        score = truth + rng.normal(0, np.sqrt(variance))
        pooled = shrink(score, variance, x)
        covered.append(np.abs(pooled.estimate - truth) <= pooled.half_width)
    assert 0.93 <= np.mean(covered) <= (1 if tau == 0 else 0.975)
