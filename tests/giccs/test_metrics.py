"""Correlations and their intervals, against SciPy and against resampling by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from giccs.metrics import (
    correlations,
    resampled,
)


def example(n_dialogues=12, size=5, levels=None, seed=0):
    rng = np.random.default_rng(seed)
    dialogue = np.repeat(np.arange(n_dialogues), size)
    score = rng.random(len(dialogue))
    prediction = score + rng.normal(0, 0.4, len(dialogue))
    if levels:  # few values: many ties
        prediction, score = np.round(prediction * levels), np.round(score * levels)
    return prediction, score, dialogue


@pytest.mark.parametrize("levels", [None, 4])
def test_values_equal_scipy(levels):
    x, y, dialogue = example(levels=levels)
    found = correlations(x, y, dialogue, resamples=2)
    assert found["pearson"].value == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert found["spearman"].value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    inside = [stats.spearmanr(x[dialogue == d], y[dialogue == d]).statistic for d in range(12)]
    assert found["rank_spearman"].value == pytest.approx(np.nanmean(inside), abs=1e-12)


@pytest.mark.parametrize("levels", [None, 3])
def test_interval_equals_resampling_dialogues_by_hand(levels):
    x, y, dialogue = example(n_dialogues=9, levels=levels)
    found = correlations(x, y, dialogue, resamples=40, seed=5)
    (weights,) = resampled(9, 40, seed=5)
    pearson, spearman = [], []
    for row in weights.astype(int):
        rows = np.concatenate(
            [np.flatnonzero(dialogue == d) for d, n in enumerate(row) for _ in range(n)]
        )
        pearson.append(stats.pearsonr(x[rows], y[rows]).statistic)
        spearman.append(stats.spearmanr(x[rows], y[rows]).statistic)
    for name, drawn in (("pearson", pearson), ("spearman", spearman)):
        low, high = np.quantile(drawn, [0.025, 0.975])
        assert (found[name].low, found[name].high) == pytest.approx((low, high), abs=1e-12)


def test_dependence_inside_dialogues_widens_the_interval():
    """Ten copies of each dialogue's items add no knowledge, and the interval must say so."""
    x, y, dialogue = example(n_dialogues=20)
    alone = correlations(x, y, dialogue)["pearson"]
    copies = correlations(np.tile(x, 10), np.tile(y, 10), np.tile(dialogue, 10))["pearson"]
    assert (copies.low, copies.high) == pytest.approx((alone.low, alone.high), abs=1e-12)


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        effect = np.repeat(rng.normal(size=(2, 40)), 5, axis=1)  # items of a dialogue go together
        noise = rng.normal(size=(2, 200))
        x, y = effect + noise
        found = correlations(x, y, np.repeat(np.arange(40), 5), resamples=200)["pearson"]
        covered += found.low <= 0 <= found.high
    # expected 190 of 200; four binomial standard deviations below are 178
    assert covered >= 178


def nan_with(found, reason):
    return np.isnan([found.value, found.low, found.high]).all() and reason in found.reason


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([0.3], [0.5], "1 items; a correlation needs two"),
        ([], [], "0 items"),
        ([0.2, 0.2, 0.2], [0.1, 0.5, 0.9], "all predictions are the same"),
        ([0.1, 0.5, 0.9], [0.2, 0.2, 0.2], "all scores are the same"),
        ([0.1, np.nan, 0.9], [0.1, 0.2, 0.3], "1 predictions are NaN"),
        ([1e9, 1e9, 1e9 + 1e-7], [0.1, 0.5, 0.9], "all predictions are the same"),
    ],
)
def test_degenerate_cases_are_nan_with_a_reason(x, y, reason):
    found = correlations(np.array(x), np.array(y), np.arange(len(x)))
    assert nan_with(found["pearson"], reason)
    assert nan_with(found["spearman"], reason)
    assert nan_with(found["rank_spearman"], reason)


def test_one_dialogue_has_a_value_but_no_interval():
    found = correlations(np.array([1.0, 2, 4]), np.array([0.1, 0.3, 0.2]), np.zeros(3, dtype=int))
    assert found["spearman"].value == pytest.approx(0.5)
    assert np.isnan(found["spearman"].low)
    assert found["spearman"].reason == "one dialogue: no interval"


def test_dialogues_without_a_rank_correlation_are_counted():
    x = np.array([0.1, 0.2, 0.3, 0.3])
    y = np.array([0.1, 0.2, 0.3, 0.4])
    found = correlations(x, y, np.array([0, 0, 1, 1]))["rank_spearman"]
    assert (found.value, found.n) == (1.0, 1)
    assert found.reason.startswith("1 dialogues left out")


@given(st.integers(0, 10_000), st.integers(2, 8), st.sampled_from([None, 2, 5]))
def test_what_must_not_matter_does_not(seed, n_dialogues, levels):
    x, y, dialogue = example(n_dialogues, 3, levels, seed)
    known = correlations(x, y, dialogue, resamples=5)
    shuffle = np.random.default_rng(seed).permutation(len(x))
    moved = correlations(3 * x[shuffle] + 1, y[shuffle], dialogue[shuffle], resamples=5)
    for name in known:
        a, b = known[name], moved[name]
        assert a.n == b.n
        assert (a.value, a.low, a.high) == pytest.approx(
            (b.value, b.low, b.high), abs=1e-9, nan_ok=True
        )
