"""Constant values, decided relative to their magnitude, and correlations of values in any unit."""

import math

import numpy as np
import pytest
from scipy import stats

from bws.design import make_tuples
from bws.scoring.anchoring import _mean_sigma
from bws.scoring.pooling import shrink
from bws.simulation import correlated_scores
from bws.split_half import correlate
from bws.stats.constancy import centred, constant_groups, is_constant

SCALES = [1e-300, 1e-14, 1.0, 1e14, 1e300]
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("scale", SCALES)
def test_the_unit_does_not_decide(scale):
    noise = 1 + 1e-16 * RNG.integers(-3, 4, size=50)
    assert is_constant(scale * noise)
    assert is_constant(-scale * noise)
    assert not is_constant(scale * np.array([1.0, 1.0, 1 + 1e-9]))
    assert not is_constant(scale * np.array([0.0, 0.0, 1e-8]))
    assert constant_groups(scale * np.append(noise, [1.0, 2.0]), np.repeat([0, 1], [50, 2])).tolist() == [
        True,
        False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.0], True),
        ([0.0, -0.0], True),
        ([math.inf, math.inf], True),
        ([math.inf, 1.0], False),
        ([-math.inf, math.inf], False),
        ([-1e308, 1e308], False),  # their range is not finite
        ([math.nan, math.nan], False),
        ([5e-324, 1e-323], False),
    ],
)
def test_zeros_infinities_and_limits_of_numbers(values, expected):
    assert is_constant(values) is expected
    assert constant_groups(np.array(values), np.zeros(2, dtype=int)).tolist() == [expected]


def test_centring_changes_no_bit_of_a_correlation():
    x, y = RNG.normal(size=(2, 40))
    expected = (x - x.mean()) @ (y - y.mean())
    plain = expected / math.sqrt(np.sum((x - x.mean()) ** 2) * np.sum((y - y.mean()) ** 2))
    u, v = centred(x), centred(y)
    assert u @ v / math.sqrt((u @ u) * (v @ v)) == pytest.approx(plain, rel=1e-15)
    assert np.abs(centred(2.0**900 * x)).max() == np.abs(u).max()
    assert np.isnan(centred([1.0, math.inf])).all()


@pytest.mark.parametrize("scale", SCALES)
def test_split_halves_in_any_unit(scale):
    x, y = RNG.normal(size=(2, 30))
    assert correlate(scale * x, y) == pytest.approx(stats.pearsonr(x, y).statistic)
    noise = scale * (0.3 + 1e-16 * RNG.integers(-2, 3, size=30))
    assert math.isnan(correlate(noise, y))


def test_anchors_and_predictors_that_are_equal_up_to_rounding_have_no_slope():
    noise = np.array([0.3, 0.1 + 0.2, 0.3])
    with pytest.raises(
        ValueError, match="expected at least two shared items with different scores"
    ):
        _mean_sigma(noise, np.array([0.1, 0.2, 0.3]), 2)
    y, variance = np.linspace(-0.9, 0.9, 12), np.full(12, 0.1)
    predictor = np.where(np.arange(12) % 2, 0.3, 0.1 + 0.2)
    assert len(shrink(y, variance, predictor).coefficients) == 1


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_true_scores_in_any_unit_have_a_correlated_model(scale):
    tuples, truth = make_tuples(list("abcdefgh"), 4), scale * np.arange(8.0)
    scores = correlated_scores(tuples, truth, 0.8, seed=0)
    assert np.corrcoef(scores, truth)[0, 1] == pytest.approx(0.8)
    with pytest.raises(ValueError, match="are equal"):
        correlated_scores(tuples, scale * (0.3 + 1e-16 * np.arange(8)), 0.8, seed=0)
