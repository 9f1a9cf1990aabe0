"""What a simulated study promises."""

import math

import numpy as np
import pytest

from bws.design import make_tuples
from bws.power_analysis import power
from bws.simulation import simulate


def test_without_noise_the_halves_are_the_same():
    result = power(20, 4, annotators=2, noise=0, repeats=2)
    assert result.pearson.mean == pytest.approx(1)
    assert result.spearman.mean == pytest.approx(1)
    assert (result.tuples, result.annotations) == (40, 80)


def test_two_annotators_are_two_halves():
    """With two annotations a tuple each half is one of them: counted here by hand."""
    result = power(12, 3, 2.0, 2, noise=0.5, repeats=3, seed=4)
    tuples = make_tuples([f"i{n}" for n in range(12)], 3, factor=2.0, seed=4)
    truth = np.linspace(-1, 1, 12)
    seeds = np.random.Generator(np.random.PCG64(4)).integers(2**31, size=3).tolist()
    expected = []
    for seed in seeds:
        said = simulate(tuples, truth, 2, noise=0.5, seed=seed)
        score = np.zeros(12)
        np.add.at(score, said.best_item, 1)
        np.add.at(score, said.worst_item, -1)
        expected.append(np.corrcoef(score, truth)[0, 1])  # every item appears 2 * 6 times
    np.testing.assert_allclose(result.truth_pearson.trials, expected)


def test_more_annotators_and_less_noise_are_better():
    def truth(annotators, noise):
        return power(30, 4, annotators=annotators, noise=noise, repeats=4).truth_pearson.mean

    assert truth(8, 0.5) > truth(2, 0.5) > truth(2, 1.5)


def test_one_annotator_has_no_split_half_reliability():
    result = power(10, 4, annotators=1, repeats=2)
    assert math.isnan(result.pearson.mean)
    assert math.isnan(result.spearman.mean)
    assert result.truth_pearson.mean > 0.5


def test_the_same_seed_gives_the_same_numbers():
    one, other = (power(10, 3, repeats=2, seed=7).document() for _ in range(2))
    assert one == other
    assert one.keys() == {
        "tuples", "annotations", "reliability", "spearman_brown", "scores", "truth"
    }  # fmt: skip
    assert one["truth"]["spearman"].keys() == {"mean", "sd"}


def test_tastes_and_carelessness_cost_truth():
    plain = power(40, 3, annotators=4, repeats=3)
    tastes = power(40, 3, annotators=4, repeats=3, disagreement=0.6)
    careless = power(40, 3, annotators=4, repeats=3, careless=0.3)
    for worse in (tastes, careless):
        assert worse.truth_pearson.mean < plain.truth_pearson.mean - 0.01
        assert worse.scores.mean < plain.scores.mean - 0.02


def test_the_scores_have_the_reliability_of_their_correlation_with_the_truth():
    result = power(60, 3, factor=2, annotators=4, repeats=8, disagreement=0.3)
    # true counting scores are nearly linear in the even truth
    assert math.sqrt(result.scores.mean) == pytest.approx(result.truth_pearson.mean, abs=0.015)
    assert result.pearson.spearman_brown > result.scores.mean + 0.03  # halves share the tuples


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"repeats": 0}, "repeats is 0; expected at least 1"),
        ({"k": 13}, "k is 13"),
        ({"n_items": 2}, "there are 2 items; tuples of 4 need 4 or more"),
        ({"noise": -1}, "noise is -1; it must be 0 or more"),
    ],
)
def test_arguments_out_of_range_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        power(**({"n_items": 10, "k": 4} | wrong))
