"""Adjusted p-values and rank intervals, against definitions written out again."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from bws.stats.multiple_tests import benjamini_hochberg, holm
from giccs.measures.all_pairs import rank_intervals

NAN = float("nan")


def test_holm_multiplies_by_the_hypotheses_that_are_left():
    # sorted .01 .02 .03 .5: times 4, 3, 2, 1 = .04 .06 .06 .5
    assert holm(np.array([0.5, 0.01, 0.03, 0.02])).tolist() == pytest.approx(
        [0.5, 0.04, 0.06, 0.06]
    )
    assert holm(np.array([0.6, 0.7])).tolist() == [1.0, 1.0]


def test_holm_rejects_exactly_what_the_step_down_procedure_rejects():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.random(12) ** 4
        rejected = np.zeros(12, dtype=bool)
        for step, index in enumerate(np.argsort(p)):
            if p[index] > 0.05 / (12 - step):
                break
            rejected[index] = True
        assert (holm(p) <= 0.05).tolist() == rejected.tolist()


def test_benjamini_hochberg_is_scipys():
    rng = np.random.default_rng(1)
    for size in (1, 2, 30):
        p = rng.random(size) ** 3
        np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p))


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_a_test_that_was_not_possible_is_no_test(adjust):
    alone = adjust(np.array([0.01, 0.02]))
    with_nan = adjust(np.array([NAN, 0.01, NAN, 0.02]))
    assert np.isnan(with_nan[[0, 2]]).all()
    assert with_nan[[1, 3]].tolist() == alone.tolist()
    assert np.isnan(adjust(np.array([NAN]))).all()
    assert adjust(np.array([])).shape == (0,)


def test_ranks_count_the_models_that_are_better_and_worse():
    better = np.zeros((4, 4), dtype=bool)
    better[0, 2] = better[0, 3] = better[1, 3] = True
    low, high = rank_intervals(better)
    assert low.tolist() == [1, 1, 2, 3]  # none, none, 0, and 0 and 1 are better
    assert high.tolist() == [2, 3, 4, 4]  # 2 and 3, 3, none, none are worse
    low, high = rank_intervals(np.zeros((3, 3), dtype=bool))
    assert (low.tolist(), high.tolist()) == ([1, 1, 1], [3, 3, 3])
