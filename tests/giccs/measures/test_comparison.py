"""Shares, correlations, paired differences and McNemar's test beside SciPy, Table 6 and simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from giccs.measures.comparison import mcnemar, paired_correlations, paired_shares, share, wilson
from tests.nightly import others_nightly


def answers(right, n):
    return np.arange(n) < right


@pytest.mark.parametrize(
    ("right", "printed", "stderr"),
    [(4, 0.133, 0.063), (5, 0.166, 0.069), (3, 0.100, 0.055), (2, 0.067, 0.046)],
)
def test_table_6_of_the_paper(right, printed, stderr):
    """30 questions a column; 5/30 (0.166) and the error of 3/30 (0.055) are cut off there, not rounded."""
    result = share(answers(right, 30))
    assert result.value == right / 30
    assert abs(result.value - printed) < 0.001
    assert abs(result.extra["stderr"] - stderr) < 0.001
    assert result.n == 30


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
    result = paired_shares(first, second)
    differences = first.astype(float) - second
    assert result.value == pytest.approx(differences.mean(), abs=1e-12)
    assert result.extra["stderr"] == pytest.approx(
        differences.std(ddof=1) / math.sqrt(40), rel=1e-12
    )
    assert result.extra["only_first"] - result.extra["only_second"] == round(40 * result.value)
    turned = paired_shares(second, first)
    assert (turned.value, turned.low, turned.high) == pytest.approx(
        (-result.value, -result.high, -result.low), abs=1e-12
    )


def test_agresti_and_min_by_hand():
    # 12 and 3 discordant of 50: half a question a cell makes 12.5 and 3.5 of 52
    result = paired_shares(answers(12, 50), np.roll(answers(3, 50), 20))
    middle = 9 / 52
    half = stats.norm.ppf(0.975) * math.sqrt((12.5 + 3.5) - 9**2 / 52) / 52
    assert (result.low, result.high) == pytest.approx((middle - half, middle + half), rel=1e-12)


def test_answers_that_never_differ_still_have_an_interval():
    result = paired_shares(answers(3, 10), answers(3, 10))
    assert result.value == 0
    assert result.low < 0 < result.high
    assert result.extra["p"] == 1


def test_the_interval_of_a_difference_holds_the_truth_in_95_of_100():
    """30 questions; 35 % right only under the first condition, 15 % only under the second: 0.2 apart."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(2000):
        kind = rng.random(30)
        both = kind > 0.8
        result = paired_shares((kind < 0.35) | both, ((kind >= 0.35) & (kind < 0.5)) | both)
        held += result.low <= 0.2 <= result.high
    assert 0.93 <= held / 2000 <= 0.975


def predictions_of_three_dialogues():
    score = np.array([0.0, 0.5, 1.0, 0.1, 0.4, 0.9, 0.2, 0.6, 0.8])
    first = np.array([1.0, 2.0, 3.0, 3.0, 2.0, 4.0, 1.0, 1.5, 0.5])
    second = np.array([9.0, 7.0, 8.0, 1.0, 2.0, 2.5, 3.0, 5.0, 6.0])
    return first, second, score, np.repeat([0, 1, 2], 3)


def predictions_of_six_dialogues():
    first, second, score, dialogue = predictions_of_three_dialogues()
    more = [np.append(values, values[::-1] ** 2) for values in (first, second, score)]
    return *more, np.append(dialogue, dialogue + 3)


def test_paired_correlations_are_scipys_and_their_difference():
    first, second, score, dialogue = predictions_of_three_dialogues()
    result = paired_correlations(first, second, score, dialogue, resamples=10)
    pearson = stats.pearsonr(first, score)[0] - stats.pearsonr(second, score)[0]
    spearman = stats.spearmanr(first, score)[0] - stats.spearmanr(second, score)[0]
    assert result["pearson"].value == pytest.approx(pearson, abs=1e-12)
    assert result["spearman"].value == pytest.approx(spearman, abs=1e-12)
    # inside dialogues: 1, 0.5, -0.5 against -0.5, 1, 1: differences 1.5, -0.5, -1.5
    assert result["rank_spearman"].value == pytest.approx(-0.5 / 3, abs=1e-12)
    assert (result["spearman"].n, result["rank_spearman"].n) == (9, 3)


def test_paired_intervals_are_those_of_a_slow_loop_over_dialogues():
    first, second, score, dialogue = predictions_of_six_dialogues()
    result = paired_correlations(first, second, score, dialogue)
    for name, of in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        without = []
        for each in range(6):
            rows = dialogue != each
            ours, theirs = (of(model[rows], score[rows])[0] for model in (first, second))
            without.append(ours - theirs)
        variance = 5 * np.var(without)
        quadratic = []
        for a, b in itertools.combinations(range(6), 2):
            rows = (dialogue != a) & (dialogue != b)
            ours, theirs = (of(model[rows], score[rows])[0] for model in (first, second))
            quadratic.append(
                6 * result[name].value - 5 * (without[a] + without[b]) + 4 * (ours - theirs)
            )
        excess = 15 * np.var(quadratic) / 30
        error = np.sqrt(max(variance - excess, variance / 4))
        assert result[name].extra["stderr"] == pytest.approx(error, abs=1e-12)
        half = stats.t.ppf(0.975, 5) * error
        value = result[name].value
        assert [result[name].low, result[name].high] == pytest.approx([value - half, value + half])
    inside = [
        stats.spearmanr(first[dialogue == d], score[dialogue == d])[0]
        - stats.spearmanr(second[dialogue == d], score[dialogue == d])[0]
        for d in range(6)
    ]
    within = result["rank_spearman"]
    expected = stats.t.interval(0.95, 5, np.mean(inside), stats.sem(inside))
    assert (within.low, within.high) == pytest.approx(expected)


def test_the_same_predictions_do_not_differ_and_swapped_ones_differ_the_other_way():
    first, second, score, dialogue = predictions_of_six_dialogues()
    same = paired_correlations(first, 2 * first + 1, score, dialogue)
    for result in same.values():
        assert result.value == pytest.approx(0, abs=1e-12)
        assert math.isnan(result.low)
        assert (
            result.reason == "0 dialogues that differ from the others: no interval, which needs 5"
        )
    one = paired_correlations(first, second, score, dialogue)
    other = paired_correlations(second, first, score, dialogue)
    for name, result in one.items():
        swapped = (-other[name].value, -other[name].high, -other[name].low)
        assert (result.value, result.low, result.high) == pytest.approx(swapped, abs=1e-9)


@pytest.mark.parametrize("n_dialogues", others_nightly([20, 30], 20))
def test_paired_intervals_of_few_dialogues_cover(n_dialogues):
    rng = np.random.default_rng(4)
    dialogue = np.repeat(np.arange(n_dialogues), 5)
    covered = {"pearson": 0, "spearman": 0, "rank_spearman": 0}
    for _ in range(400):
        score = rng.normal(size=len(dialogue)) * np.exp(rng.normal(0, 0.5, n_dialogues))[dialogue]
        first, second = score + 0.7 * rng.normal(size=(2, len(dialogue)))
        for name, result in paired_correlations(first, second, score, dialogue).items():
            covered[name] += result.low <= 0 <= result.high
    for count in covered.values():
        assert 0.92 <= count / 400 <= 0.98


@pytest.mark.nightly
def test_intervals_hold_no_difference_in_95_of_100_where_there_is_none():
    """Two models that err alike much, each dialogue as a whole by 0.3 and each item by 0.3; 40 of 5."""
    rng = np.random.default_rng(3)
    dialogue = np.repeat(np.arange(40), 5)
    held = 0
    for _ in range(200):
        score = rng.random(200)
        first, second = (
            score + 0.3 * rng.normal(size=40)[dialogue] + 0.3 * rng.normal(size=200) for _ in "ab"
        )
        result = paired_correlations(first, second, score, dialogue, resamples=200)["spearman"]
        held += result.low <= 0 <= result.high
    assert 0.91 <= held / 200 <= 0.985
    worse = score + 2 * rng.normal(size=200)
    assert paired_correlations(first, worse, score, dialogue)["spearman"].low > 0.1


def test_paired_correlations_that_are_not_defined_have_reasons():
    first, second, score, dialogue = predictions_of_three_dialogues()
    constant = paired_correlations(first, np.ones(9), score, dialogue)
    assert all(math.isnan(result.value) for result in constant.values())
    assert constant["spearman"].reason == "all predictions are equal"
    one = paired_correlations(first, second, score, np.zeros(9, dtype=int))
    assert one["pearson"].reason == "1 dialogues: no interval, which needs 5"
    partly = paired_correlations(
        first, np.where(dialogue == 0, 1.0, second), score, dialogue, resamples=50
    )
    assert partly["rank_spearman"].n == 2
    assert partly["rank_spearman"].reason.startswith("1 dialogues excluded: predictions of one")
