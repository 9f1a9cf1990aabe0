"""Correlations and their intervals, against SciPy and against resampling by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bws.stats.clusters import MANY_CLUSTERS, MIN_CLUSTERS, few_clusters_note, too_few_clusters_note
from giccs.measures.clusters import Clusters
from giccs.measures.metrics import (
    correlations,
    leave_out_weights,
    mean_over_dialogues,
    order_metrics,
    replicates,
)
from tests.nightly import others_nightly


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
    result = correlations(x, y, dialogue, resamples=2)
    assert result["pearson"].value == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert result["spearman"].value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    inside = [stats.spearmanr(x[dialogue == d], y[dialogue == d]).statistic for d in range(12)]
    assert result["rank_spearman"].value == pytest.approx(np.nanmean(inside), abs=1e-12)


def without_each(dialogue, of):
    """What is left of `of` (a function of rows) when each dialogue is left out in turn."""
    return np.array([of(np.flatnonzero(dialogue != d)) for d in range(dialogue.max() + 1)])


def student_limits(value, without):
    """The jackknife-t interval, step by step, on the scale of Fisher's z."""
    z, count = np.arctanh(without), len(without)
    error = np.sqrt((count - 1) / count * sum((each - z.mean()) ** 2 for each in z))
    half = stats.t.ppf(0.975, count - 1) * error
    return np.tanh([np.arctanh(value) - half, np.arctanh(value) + half])


@pytest.mark.parametrize("levels", [None, 3])
def test_interval_equals_leaving_out_dialogues_by_hand(levels):
    x, y, dialogue = example(n_dialogues=20, levels=levels)
    result = correlations(x, y, dialogue)
    inside = [stats.spearmanr(x[dialogue == d], y[dialogue == d])[0] for d in range(20)]
    inside = np.array(inside)[~np.isnan(inside)]
    without = {
        "pearson": without_each(dialogue, lambda rows: stats.pearsonr(x[rows], y[rows])[0]),
        "spearman": without_each(dialogue, lambda rows: stats.spearmanr(x[rows], y[rows])[0]),
        "rank_spearman": np.array([np.delete(inside, d).mean() for d in range(len(inside))]),
    }
    for name, values in without.items():
        limits = student_limits(result[name].value, values)
        assert (result[name].low, result[name].high) == pytest.approx(limits, abs=1e-12)
        assert result[name].reason == ""


def test_many_dialogues_are_left_out_in_groups_that_the_seed_draws():
    x, y, dialogue = example(n_dialogues=400)
    each = correlations(x, y, dialogue)["spearman"]
    grouped = correlations(x, y, dialogue, resamples=80)["spearman"]
    assert grouped == correlations(x, y, dialogue, resamples=80)["spearman"]
    assert grouped != correlations(x, y, dialogue, resamples=80, seed=1)["spearman"]
    assert grouped.high - grouped.low == pytest.approx(each.high - each.low, rel=0.2)
    (weights,) = leave_out_weights(400, 80)
    assert weights.shape == (80, 400)
    assert ((weights == 0).sum(axis=0) == 1).all()  # each dialogue is left out once
    assert ((weights == 0).sum(axis=1) == 5).all()


def test_values_that_most_dialogues_share_have_no_interval():
    """Three of 40 dialogues differ: their variance is not known, and 0 would be wrong for 40 of 40."""
    values = np.array([0.9] * 37 + [0.2, 0.4, 0.6])
    few = mean_over_dialogues(values)
    assert np.isnan([few.low, few.high]).all()
    assert few.reason == "3 dialogues that differ from the others: no interval, which needs 5"
    assert np.isnan(mean_over_dialogues(np.full(40, 0.9)).low)
    assert not np.isnan(mean_over_dialogues(np.append(values, [0.1, 0.3])).low)


def test_an_interval_that_would_rest_on_a_certain_correlation_is_refused():
    """Without the one item that is out of order the correlation is 1."""
    x = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 30, 12])
    result = correlations(x, np.arange(12.0), np.arange(12), resamples=100)["spearman"]
    assert np.isnan(result.low)
    assert "no interval" in result.reason


@pytest.mark.parametrize("n_dialogues", [19, 20])
def test_intervals_of_few_dialogues_come_with_a_warning(n_dialogues):
    x, y, dialogue = example(n_dialogues=n_dialogues)
    result = correlations(x, y, dialogue)["pearson"]
    warning = "19 dialogues: the interval is approximate below 20"
    assert not np.isnan(result.low)
    assert result.reason == (warning if n_dialogues < MANY_CLUSTERS else "")


def test_dependence_inside_dialogues_widens_the_interval():
    """Ten copies of each dialogue's items add no knowledge, and the interval must say so."""
    x, y, dialogue = example(n_dialogues=20)
    alone = correlations(x, y, dialogue)["pearson"]
    copies = correlations(np.tile(x, 10), np.tile(y, 10), np.tile(dialogue, 10))["pearson"]
    assert (copies.low, copies.high) == pytest.approx((alone.low, alone.high), abs=1e-12)


@pytest.mark.parametrize("n_dialogues", others_nightly([20, 30], 20))
def test_intervals_of_high_correlations_cover_the_truth_as_often_as_they_say(n_dialogues):
    """Standard normal pairs of correlation 0.9, more or less spread in some dialogues than in others."""
    rng = np.random.default_rng(1)
    dialogue = np.repeat(np.arange(n_dialogues), 5)
    covered = 0
    for _ in range(600):
        x, noise = (
            rng.normal(size=(2, len(dialogue))) * np.exp(rng.normal(0, 0.3, n_dialogues))[dialogue]
        )
        result = correlations(x, x + noise * np.sqrt(1 / 0.9**2 - 1), dialogue)["pearson"]
        covered += result.low <= 0.9 <= result.high
    assert 0.925 <= covered / 600 <= 0.975


def nan_with(found, reason):
    return np.isnan([found.value, found.low, found.high]).all() and reason in found.reason


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([0.3], [0.5], "1 items; a correlation requires two"),
        ([], [], "0 items"),
        ([0.2, 0.2, 0.2], [0.1, 0.5, 0.9], "all predictions are equal"),
        ([0.1, 0.5, 0.9], [0.2, 0.2, 0.2], "all scores are equal"),
        ([0.1, np.nan, 0.9], [0.1, 0.2, 0.3], "1 predictions are NaN"),
        ([1e9, 1e9, 1e9 + 1e-7], [0.1, 0.5, 0.9], "all predictions are equal"),
    ],
)
def test_degenerate_cases_are_nan_with_a_reason(x, y, reason):
    result = correlations(np.array(x), np.array(y), np.arange(len(x)))
    assert nan_with(result["pearson"], reason)
    assert nan_with(result["spearman"], reason)
    assert nan_with(result["rank_spearman"], reason)


@pytest.mark.parametrize("n_dialogues", [1, 2, 4, 5])
def test_fewer_than_five_dialogues_have_a_value_but_no_interval(n_dialogues):
    x, y, dialogue = example(n_dialogues=n_dialogues)
    result = correlations(x, y, dialogue, resamples=50)
    assert result["spearman"].value == pytest.approx(stats.spearmanr(x, y).statistic)
    few = n_dialogues < MIN_CLUSTERS
    reason = (too_few_clusters_note if few else few_clusters_note)(n_dialogues, "dialogues")
    for name in ("pearson", "spearman", "rank_spearman"):
        assert np.isnan([result[name].low, result[name].high]).all() == few
    assert result["spearman"].reason == reason


def test_a_mean_over_dialogues_needs_five_dialogues_that_have_a_value():
    """Six dialogues, two of which have a rank correlation."""
    x, y = (
        np.array([1.0, 2] * 6),
        np.repeat([1.0, 2, 3, 2, 4, 1], 2) + np.array([0, 1, 0, 1] + [0] * 8),
    )
    result = correlations(x, y, np.repeat(np.arange(6), 2), resamples=50)
    assert not np.isnan(result["spearman"].low)
    assert np.isnan(result["rank_spearman"].low)
    assert "2 dialogues: no interval, which needs 5" in result["rank_spearman"].reason
    mean = mean_over_dialogues(np.array([0.1, 0.2, 0.4, 0.5, np.nan]))
    assert np.isnan(mean.low)
    assert mean.extra["stderr"] > 0


def test_dialogues_without_a_rank_correlation_are_counted():
    x = np.array([0.1, 0.2, 0.3, 0.3])
    y = np.array([0.1, 0.2, 0.3, 0.4])
    result = correlations(x, y, np.array([0, 0, 1, 1]))["rank_spearman"]
    assert (result.value, result.n) == (1.0, 1)
    assert result.reason.startswith("1 dialogues excluded")


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


def test_at_most_half_of_the_jackknife_is_too_much():
    """None of a mean; half of the square of a mean that is 0, which has no linear part; some between."""
    values = np.random.default_rng(0).normal(size=12)
    values -= values.mean()

    def excess(shift, power):
        def statistic(weights):
            return (weights @ values / weights.sum(axis=1) + shift) ** power

        return replicates(statistic, Clusters.single(12)).quadratic_excess

    assert excess(0, 1) == pytest.approx(0, abs=1e-9)
    assert excess(0, 2) == 0.5
    assert 0.005 < excess(1, 2) < 0.1


SCALES = [1e-300, 1e-14, 1e-3, 1e14, 1e300]


@pytest.mark.parametrize("scale", SCALES)
def test_the_unit_of_predictions_does_not_matter(scale):
    x, y, dialogue = example()
    one, other = (correlations(values, y, dialogue) for values in (x, scale * x))
    for name, estimate in one.items():
        numbers = estimate.value, estimate.low, estimate.high
        assert (other[name].value, other[name].low, other[name].high) == pytest.approx(
            numbers, abs=1e-12
        )
        assert other[name].reason == estimate.reason


def test_neither_does_a_constant_that_is_added_nor_single_precision():
    x, y, dialogue = example()
    single = x.astype(np.float32)
    expected = correlations(single.astype(np.float64), y, dialogue)
    for values in (single, single.astype(np.float64) + 1e3):
        for name, estimate in correlations(values, y, dialogue).items():
            assert estimate.value == pytest.approx(expected[name].value, abs=1e-9)
            assert estimate.low == pytest.approx(expected[name].low, abs=1e-9)


@pytest.mark.parametrize("increase", [np.exp, np.arctan, lambda x: x**3, lambda x: np.exp(60 * x)])
def test_rank_correlations_are_those_of_any_increasing_function(increase):
    x, y, dialogue = example(levels=4)
    one, other = (correlations(values, y, dialogue) for values in (x, increase(x)))
    assert one["spearman"] == other["spearman"]
    assert one["rank_spearman"] == other["rank_spearman"]


@pytest.mark.parametrize("scale", [1.0, *SCALES])
def test_constants_with_rounding_errors_are_constants(scale):
    x, y, dialogue = example()
    noise = scale * (0.7 + 1e-16 * np.random.default_rng(1).integers(-2, 3, size=len(x)))
    for result in correlations(noise, y, dialogue).values():
        assert np.isnan(result.value)
        assert result.reason == "all predictions are equal"
    partly = np.where(dialogue == 3, noise, scale * x)
    within = correlations(partly, y, dialogue)["rank_spearman"]
    assert within.n == 11
    assert within.reason.startswith("1 dialogues excluded")


def test_infinite_predictions_have_ranks_but_no_pearson():
    x, y, dialogue = example()
    x[[3, 17, 18]], x[40] = np.inf, -np.inf
    ids = [f"i{n}" for n in range(len(x))]
    result = correlations(x, y, dialogue, items=ids)
    finite = np.where(np.isinf(x), np.sign(x) * 1e9, x)
    assert result["spearman"].value == pytest.approx(
        stats.spearmanr(finite, y).statistic, abs=1e-12
    )
    inside = [stats.spearmanr(finite[dialogue == d], y[dialogue == d])[0] for d in range(12)]
    assert result["rank_spearman"].value == pytest.approx(np.mean(inside), abs=1e-12)
    expected = correlations(finite, y, dialogue)
    assert (result["spearman"], result["rank_spearman"]) == (
        expected["spearman"],
        expected["rank_spearman"],
    )
    assert np.isnan(result["pearson"].value)
    reason = "4 predictions are infinite (the first is that of item i3): Pearson's r is undefined"
    assert result["pearson"].reason == reason
    all_infinite = correlations(np.full(60, np.inf), y, dialogue)
    assert all_infinite["spearman"].reason == "all predictions are equal"
    orders = order_metrics(np.stack([x, finite], axis=1), y, dialogue)
    assert orders["order_difference"].value == 0
