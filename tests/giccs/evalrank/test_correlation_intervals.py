"""Correlations against SciPy, their derivatives against differences, their intervals against truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from giccs.evalrank.correlation_intervals import (
    estimate_correlation,
    estimate_mean_correlation,
    pearson,
    spearman,
)
from giccs.measures.metrics import correlations, weighted_pearson, weighted_spearman

OURS = {"pearson": pearson, "spearman": spearman}
THEIRS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}
WEIGHTED = {"pearson": weighted_pearson, "spearman": weighted_spearman}
MEASURES = sorted(OURS)


def drawn(n, seed=0, digits=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return np.round(x, digits), np.round(x + rng.normal(size=n), digits)  # with ties


def apart(n):
    """Numbers of the texts of n pairs that share none."""
    return np.arange(n), np.arange(n, 2 * n)


@pytest.mark.parametrize("measure", MEASURES)
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=30))
def test_the_value_is_that_of_scipy(measure, rows):
    x, y = np.array(rows, dtype=np.float64).T
    result = OURS[measure](x, y)
    if np.ptp(x) and np.ptp(y):
        assert result.value == pytest.approx(THEIRS[measure](x, y)[0], abs=1e-12)
        assert result.influence.sum() == pytest.approx(0, abs=1e-9)
    else:
        assert math.isnan(result.value)
        assert result.reason in ("all predictions are equal", "all scores are equal")


@pytest.mark.parametrize("measure", MEASURES)
def test_the_influence_is_the_derivative_in_a_weight(measure):
    n, step = 80, 1e-5
    x, y = drawn(n)
    value = WEIGHTED[measure](x, y, np.arange(n))
    more, less = np.ones((n, n)) + n * step * np.eye(n), np.ones((n, n)) - n * step * np.eye(n)
    differences = (value(more) - value(less)) / (2 * step)
    np.testing.assert_allclose(OURS[measure](x, y).influence, differences, atol=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
def test_pairs_that_share_nothing_get_the_interval_of_the_bootstrap(measure):
    x, y = drawn(400)
    ours = estimate_correlation(OURS[measure](x, y), *apart(400))
    theirs = correlations(x, y, np.arange(400), resamples=2000)[measure]
    assert ours.value == pytest.approx(theirs.value, abs=1e-12)
    assert ours.low == pytest.approx(theirs.low, abs=0.015)
    assert ours.high == pytest.approx(theirs.high, abs=0.015)


def test_the_variance_sums_over_all_pairs_that_share_a_text():
    rng = np.random.default_rng(3)
    left, right = rng.integers(6, size=(2, 40))  # a pair of a text with itself, and pairs twice
    result = pearson(*drawn(40))
    shares = np.array([[bool({a, b} & {c, d}) for c, d in zip(left, right, strict=True)]
                       for a, b in zip(left, right, strict=True)])  # fmt: skip
    variance = result.influence @ shares @ result.influence / 40**2
    same = np.array([[{a, b} == {c, d} for c, d in zip(left, right, strict=True)]
                     for a, b in zip(left, right, strict=True)])  # fmt: skip
    by_pair = result.influence @ same @ result.influence / 40**2
    error = estimate_correlation(result, left, right).extra["stderr"]
    assert error**2 == pytest.approx(max(variance, by_pair) * 6 / 5, rel=1e-9)  # six texts


def test_intervals_hold_the_truth_where_pairs_share_words():
    """Words with a part of their own in both columns: the interval of lone pairs is far too narrow."""
    rng = np.random.default_rng(0)
    n, n_words, repeats = 300, 40, 200

    def sample(n, n_words):
        words = rng.normal(size=(2, n_words))
        left = rng.integers(n_words, size=n)
        right = (left + 1 + rng.integers(n_words - 1, size=n)) % n_words
        both, own = rng.normal(size=n), rng.normal(size=(2, n))
        x, y = both + words[:, left] + words[:, right] + own
        return x, y, left, right

    truth = spearman(*sample(100_000, 100_000)[:2]).value
    held = np.zeros(2)
    for _ in range(repeats):
        x, y, left, right = sample(n, n_words)
        result = spearman(x, y)
        for place, texts in enumerate([(left, right), apart(n)]):
            estimate = estimate_correlation(result, *texts)
            held[place] += estimate.low <= truth <= estimate.high
    shared, alone = held / repeats
    assert shared > 0.88
    assert alone < 0.82


def test_a_set_that_is_there_twice_adds_nothing_to_what_is_known():
    x, y = drawn(100)
    left, right = apart(100)
    result = spearman(x, y)
    once = estimate_correlation(result, left, right)
    twice = estimate_mean_correlation([result, result], [left, left], [right, right])
    assert (twice.value, twice.n) == (pytest.approx(once.value), 2)
    assert twice.extra["stderr"] == pytest.approx(once.extra["stderr"], rel=0.01)
    other = estimate_mean_correlation([result, result], [left, left + 200], [right, right + 200])
    assert other.extra["stderr"] == pytest.approx(once.extra["stderr"] / math.sqrt(2), rel=0.01)


def test_what_has_no_value_or_no_interval_says_why():
    none = np.empty(0, np.intp)
    lone = estimate_correlation(pearson(np.array([1.0]), np.array([2.0])), none, none)
    assert math.isnan(lone.value)
    assert lone.reason == "1 pairs; a correlation requires two"
    few = estimate_correlation(pearson(np.array([1.0, 2, 4]), np.array([1.0, 3, 2])), *apart(3))
    assert (round(few.value, 3), math.isnan(few.low)) == (0.327, True)
    assert few.reason == "3 pairs: no interval, which needs 5"
    exact = estimate_correlation(spearman(np.arange(9.0), np.arange(9.0) ** 3), *apart(9))
    assert (exact.value, exact.reason) == (1.0, "the correlation is exact: no interval")
    constant = spearman(np.ones(5), np.arange(5.0))
    good = spearman(*drawn(30))
    mean = estimate_mean_correlation(
        [constant, good], [apart(5)[0], apart(30)[0]], [apart(5)[1], apart(30)[1]]
    )
    assert (mean.value, mean.n) == (pytest.approx(good.value), 1)
    assert mean.reason == "1 sets without a correlation excluded"
    assert math.isnan(estimate_mean_correlation([constant], [apart(5)[0]], [apart(5)[1]]).value)
