"""Shares, paired differences and McNemar's test beside SciPy, Table 6 and simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from giccs.comparison import mcnemar, paired_shares, share, wilson


def answers(right, n):
    return np.arange(n) < right


@pytest.mark.parametrize(
    ("right", "printed", "stderr"),
    [(4, 0.133, 0.063), (5, 0.166, 0.069), (3, 0.100, 0.055), (2, 0.067, 0.046)],
)
def test_table_6_of_the_paper(right, printed, stderr):
    """30 questions a column; 5/30 (0.166) and the error of 3/30 (0.055) are cut off there, not rounded."""
    found = share(answers(right, 30))
    assert found.value == right / 30
    assert abs(found.value - printed) < 0.001
    assert abs(found.extra["stderr"] - stderr) < 0.001
    assert found.n == 30


def test_the_standard_error_is_that_of_the_mean_of_zeros_and_ones():
    right = answers(7, 19)
    expected = np.std(right, ddof=1) / math.sqrt(19)
    assert share(right).extra["stderr"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 30, 1000])
def test_wilson_is_scipys(n):
    for right in {0, 1, n // 3, n - 1, n}:
        interval = stats.binomtest(right, n).proportion_ci(0.95, method="wilson")
        assert wilson(right, n) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_one_question_and_none_have_reasons_not_numbers():
    assert math.isnan(share(answers(1, 1)).extra["stderr"])
    nothing = share(answers(0, 0))
    assert math.isnan(nothing.value)
    assert nothing.reason == "no questions"
    assert paired_shares(answers(0, 0), answers(0, 0)).reason == "no questions"


def test_mcnemar_by_hand():
    # 1 against 5: the smaller tail of 6 tosses is (C(6,0) + C(6,1)) / 64 = 7/64, twice that 14/64
    assert mcnemar(1, 5) == pytest.approx(14 / 64, rel=1e-12)
    # 0 against 3: 1/8, twice that 1/4
    assert mcnemar(3, 0) == pytest.approx(1 / 4, rel=1e-12)
    assert mcnemar(0, 0) == 1
    assert mcnemar(4, 4) == 1  # the tails overlap: never more than 1


def test_mcnemar_is_the_binomial_test_of_scipy():
    for first in range(12):
        for second in range(12):
            if first + second:
                expected = stats.binomtest(first, first + second, 0.5).pvalue
                assert mcnemar(first, second) == pytest.approx(expected, rel=1e-9)
    assert mcnemar(4900, 5100) == pytest.approx(stats.binomtest(4900, 10000).pvalue, rel=1e-9)


def test_a_paired_difference_is_the_mean_of_the_differences():
    rng = np.random.default_rng(0)
    first, second = rng.random(40) < 0.6, rng.random(40) < 0.4
    found = paired_shares(first, second)
    differences = first.astype(float) - second
    assert found.value == pytest.approx(differences.mean(), abs=1e-12)
    assert found.extra["stderr"] == pytest.approx(
        differences.std(ddof=1) / math.sqrt(40), rel=1e-12
    )
    assert found.extra["only_first"] - found.extra["only_second"] == round(40 * found.value)
    turned = paired_shares(second, first)
    assert (turned.value, turned.low, turned.high) == pytest.approx(
        (-found.value, -found.high, -found.low), abs=1e-12
    )


def test_agresti_and_min_by_hand():
    # 12 and 3 discordant of 50: half a question a cell makes 12.5 and 3.5 of 52
    found = paired_shares(answers(12, 50), np.roll(answers(3, 50), 20))
    middle = 9 / 52
    half = stats.norm.ppf(0.975) * math.sqrt((12.5 + 3.5) - 9**2 / 52) / 52
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half), rel=1e-12)


def test_answers_that_never_differ_still_have_an_interval():
    found = paired_shares(answers(3, 10), answers(3, 10))
    assert found.value == 0
    assert found.low < 0 < found.high
    assert found.extra["p"] == 1


def test_the_interval_of_a_difference_holds_the_truth_in_95_of_100():
    """30 questions; 35 % right only under the first condition, 15 % only under the second: 0.2 apart."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(2000):
        kind = rng.random(30)
        both = kind > 0.8
        found = paired_shares((kind < 0.35) | both, ((kind >= 0.35) & (kind < 0.5)) | both)
        held += found.low <= 0.2 <= found.high
    assert 0.93 <= held / 2000 <= 0.975
