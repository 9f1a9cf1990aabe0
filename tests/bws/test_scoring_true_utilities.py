"""Draws of the true utilities, against exact posteriors and simulated annotators."""

import itertools
import math

import numpy as np
import pytest

from bws.design import make_tuples
from bws.files import judgments_from_records
from bws.records import Judgment
from bws.scoring import utilities
from bws.scoring.choice import best_worst_logit
from bws.scoring.expected import expected_counting, expected_of_draws
from bws.scoring.true_utilities import estimate_taste_variance, true_utilities
from bws.simulation import simulate
from tests.nightly import nightly


def drawn(judgments, prior, draws=400, blocks=1, seed=0):
    answers = judgments.canonical
    utility = utilities(judgments, "best-worst-logit", prior=prior).utility[answers.origin]
    block_of = np.arange(len(answers.annotators)) % blocks
    return true_utilities(answers, best_worst_logit, utility, prior, draws, block_of, seed)


def study(tastes, annotators=8, n=60, seed=0):
    tuples = make_tuples([f"i{number:03}" for number in range(n)], 4, factor=3)
    utility = 1.5 * np.random.default_rng(seed).standard_normal(n)
    return simulate(tuples, utility, annotators, noise=1, disagreement=tastes, seed=seed)


def test_draws_have_the_moments_of_the_exact_posterior():
    """Two items, a wins all six judgments: with d = u_a - u_b the posterior is N(d; 0, 2) / (1 + exp(-d))^12.

    The best is a, then the worst among b alone: one choice a judgment, P = 1 / (1 + exp(-d)).
    """
    said = judgments_from_records(
        Judgment(("a", "b"), "a", "b", annotator) for annotator in ("w1", "w2", "w3")
    )
    d = np.linspace(-10, 15, 20_001)
    density = np.exp(-(d**2) / (4 * 2.0**2)) / (1 + np.exp(-d)) ** 3
    density /= density.sum()
    mean = float(density @ d)
    sd = math.sqrt(float(density @ (d - mean) ** 2))
    alike = drawn(said, 2.0, draws=8000).without_tastes
    difference = alike[:, 0] - alike[:, 1]
    assert difference.mean() == pytest.approx(mean, abs=0.1)
    assert difference.std() == pytest.approx(sd, rel=0.05)
    assert np.abs(alike.sum(axis=1)).max() < 1e-9


@pytest.mark.parametrize("tastes", [0.0, 1.0, nightly(0.5)])
def test_the_variance_of_tastes_is_found(tastes):
    """Tastes enter before the answer's noise, so that logits shrink: by 1 / sqrt(1 + tastes²/1.7²)."""
    result = np.mean([drawn(study(tastes, seed=seed), 1.5, 20).taste_variance for seed in range(8)])
    expected = tastes**2 / (1 + tastes**2 / 1.7**2)
    assert result == pytest.approx(expected, abs=0.06 + 0.15 * expected)


def test_tastes_pull_true_utilities_towards_the_mean_and_spread_them():
    result = drawn(study(1.0), 1.5)
    shift, noise = result.with_tastes.mean(axis=0), result.with_tastes.std(axis=0)
    kept = 1 - result.assumed_variance / 8 / 1.5**2  # eight annotators judged every tuple
    assert np.polyfit(result.without_tastes.mean(axis=0), shift, 1)[0] == pytest.approx(
        kept, abs=0.01
    )
    assert (noise > result.without_tastes.std(axis=0)).all()
    assert result.assumed_variance == pytest.approx(result.taste_variance)


def test_the_excess_without_a_block_is_that_of_the_others():
    judgments = study(1.0, annotators=6)
    result = drawn(judgments, 1.5, 20, blocks=6)
    assert result.excess_without_block.shape == (6, 60)
    every = [
        estimate_taste_variance(one, result.excess_per_unit) for one in result.excess_without_block
    ]
    assert np.mean(every) == pytest.approx(result.taste_variance, abs=1e-9)
    assert np.ptp(every) > 0
    alone = judgments_from_records(
        Judgment(items, items[0], items[-1], name)
        for items, name in ((("a", "b", "c"), "w1"), (("d", "e", "f"), "w2"))
    )
    unknown = drawn(alone, 1.5, 4)
    assert np.isnan(unknown.excess).all()
    assert math.isnan(unknown.taste_variance)


def test_judgments_without_names_are_of_one_annotator_each():
    judgments = study(0.0, annotators=4)
    records = judgments.records()
    nameless = judgments_from_records(
        Judgment(record.items, record.best, record.worst) for record in records
    )
    result = drawn(nameless, 1.5, 20)
    assert result.excess_without_block.shape == (0, 60)
    assert abs(result.taste_variance) < 2.0


def test_expected_scores_of_draws_are_those_of_each_draw():
    """Exactly in small groups; within 0.02 in a large one, where they are interpolated."""
    random = np.random.default_rng(0)
    draws, groups = random.standard_normal((5, 12)), np.repeat(np.arange(3), [4, 5, 3])
    result = expected_of_draws(draws, groups, 3, best_worst_logit)
    for row, utility in zip(result, draws, strict=True):
        assert row == pytest.approx(expected_counting(utility, groups, 3, best_worst_logit))
    large, one_group = random.standard_normal((3, 150)), np.zeros(150, dtype=np.int64)
    result = expected_of_draws(large, one_group, 4, best_worst_logit)
    for row, utility in itertools.islice(zip(result, large, strict=True), 1, None):
        there = expected_counting(utility, one_group, 4, best_worst_logit)
        assert np.abs(row - there).max() < 0.05
        assert np.sqrt(np.mean((row - there) ** 2)) < 0.03
