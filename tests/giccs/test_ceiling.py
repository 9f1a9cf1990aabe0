"""The noise ceiling, against models that know the true scores because the judgments are simulated."""

import math
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from scipy import stats

from bws.files import read_tuples
from bws.problems import InputError
from bws.records import Judgment, Judgments
from bws.reliability import reliability
from bws.scoring import score
from bws.simulate import simulate
from giccs.benchmark import Benchmark, read_benchmark
from giccs.ceiling import judgments_behind, noise_ceiling


@pytest.fixture(scope="module")
def sample():
    return read_benchmark("giccs-sample")


@pytest.fixture(scope="module")
def tuples():
    """The 600 tuples of giccs-sample: 60 dialogues of five candidates."""
    return read_tuples(resources.files("giccs.data") / "tuples.csv")


def scored_by(judgments, benchmark):
    """The benchmark with the counting scores of other judgments."""
    found = score(judgments, scale="unit")
    by_id = dict(zip(found.items, found.score.tolist(), strict=True))
    items = (replace(item, score=by_id[item.utterance_id]) for item in benchmark.items)
    return Benchmark("simulated", tuple(items))


def of_truth(tuples, truth, noise, seed):
    """What five annotators say, and the expected score of every item: what 500 others say on average."""
    observed = simulate(tuples, truth, 5, noise=noise, seed=seed)
    expected = score(simulate(tuples, truth, 500, noise=noise, seed=1000 + seed)).score
    return observed, expected


@pytest.mark.parametrize("noise", [0.1, 0.4, 0.8, 1.3])
@pytest.mark.parametrize("levels", [None, np.array([-1, -0.5, 0, 0.5, 1])])
def test_a_model_that_knows_the_expected_scores_reaches_the_ceiling(sample, tuples, noise, levels):
    """Means over four seeds agree to 0.012; the reliability itself, without the root, is far from them."""
    reached, ceilings, shares = [], [], []
    for seed in range(4):
        draw = np.random.default_rng(seed)
        n = len(tuples.items)
        truth = draw.uniform(-1, 1, n) if levels is None else draw.choice(levels, n)
        observed, expected = of_truth(tuples, truth, noise, seed)
        found = noise_ceiling(observed, scored_by(observed, sample), trials=20, resamples=0)
        given = score(observed).score
        reached.append([np.corrcoef(expected, given)[0, 1], stats.spearmanr(expected, given)[0]])
        ceilings.append([found[name].value for name in ("pearson", "spearman")])
        shares.append([found[name].extra["reliability"] for name in ("pearson", "spearman")])
    of_models, of_formula = np.mean(reached, axis=0), np.mean(ceilings, axis=0)
    assert of_formula == pytest.approx(of_models, abs=0.012)
    if noise >= 0.4:  # there the half-wrong formula is told apart
        assert (of_models - np.mean(shares, axis=0) > 0.012).all()


def test_reliability_is_the_one_that_bws_reliability_prints(sample):
    judgments = judgments_behind(sample)
    found = noise_ceiling(judgments, sample, trials=30, resamples=0, seed=4)
    whole = reliability(judgments, trials=30, seed=4).groups[0]
    for name in ("pearson", "spearman"):
        stepped_up = getattr(whole, name).spearman_brown
        assert found[name].extra["reliability"] == pytest.approx(stepped_up, abs=1e-12)
        assert found[name].value == pytest.approx(math.sqrt(stepped_up), abs=1e-12)
        assert found[name].extra["data"] == sample.fingerprint
        assert found[name].n == 300


def test_interval_holds_most_other_dialogues_ceilings(sample, tuples):
    """The ceiling of all 60 dialogues lies in the interval that 30 of them give, for most draws of 30."""
    observed, _ = of_truth(tuples, np.random.default_rng(9).uniform(-1, 1, 300), 0.8, 9)
    benchmark = scored_by(observed, sample)
    whole = noise_ceiling(observed, benchmark, trials=20, resamples=0)["pearson"].value
    inside = 0
    for seed in range(10):
        drawn = np.random.default_rng(seed).choice(benchmark.dialogue_ids, 30, replace=False)
        items = tuple(item for item in benchmark.items if item.dialogue_id in drawn)
        part = noise_ceiling(observed, Benchmark("half", items), trials=20, resamples=200)[
            "pearson"
        ]
        assert part.low < part.value < part.high
        inside += part.low <= whole <= part.high
    assert inside >= 8


def judged(*answers, group="d", annotators=("w1", "w2")):
    """Judgments of one dialogue's tuples: (items, best, worst) by each annotator."""
    return Judgments.from_records(
        Judgment(tuple(items), best, worst, annotator, group)
        for annotator in annotators
        for items, best, worst in answers
    )


def of_items(sample, judgments, group="d"):
    """Items with just the counting scores of the judgments."""
    found = score(judgments, scale="unit")
    like = sample.items[0]
    return Benchmark(
        "small",
        tuple(
            replace(like, item_id=name, utterance_id=name, dialogue_id=group, score=value)
            for name, value in zip(found.items, found.score.tolist(), strict=True)
        ),
    )


ONE_ORDER = [("abc", "a", "c"), ("abd", "a", "d"), ("bcd", "b", "d"), ("acd", "a", "d")]


def test_unanimous_annotators_leave_a_ceiling_of_one(sample):
    judgments = judged(*ONE_ORDER)
    found = noise_ceiling(judgments, of_items(sample, judgments), trials=5)
    for one in found.values():
        assert one.value == pytest.approx(1.0)
        assert math.isnan(one.low)
        assert one.reason == "one dialogue: no interval"


def test_one_annotator_leaves_none(sample):
    judgments = judged(*ONE_ORDER, annotators=("w1",))
    found = noise_ceiling(judgments, of_items(sample, judgments), trials=5)
    for one in found.values():
        assert math.isnan(one.value)
        assert one.reason == "no tuple has two judgments, so there are no halves to compare"


def test_halves_that_contradict_each_other_leave_none(sample):
    turned = [(items, worst, best) for items, best, worst in ONE_ORDER]
    # nearly the opposite; the exact opposite would leave all scores 0.5 in each benchmark
    records = [*judged(*ONE_ORDER, annotators=("w1",)).records()]
    records += [*judged(*turned, annotators=("w2",)).records()]
    judgments = Judgments.from_records(records)
    found = noise_ceiling(judgments, of_items(sample, judgments), trials=40, resamples=5)["pearson"]
    assert math.isnan(found.value)
    assert "halves of the judgments correlate by -" in found.reason


def test_halves_that_are_all_the_same_leave_none(sample):
    """One tuple of two items: whoever is best in a half has 1, the other -1; two items correlate nothing."""
    judgments = judged(("ab", "a", "b"))
    found = noise_ceiling(judgments, of_items(sample, judgments), trials=5)["spearman"]
    assert math.isnan(found.value)
    assert "fewer than three items" in found.reason


def test_judgments_of_other_scores_are_refused_and_counted(sample, tuples):
    other = simulate(tuples, np.random.default_rng(1).uniform(-1, 1, 300), 5, seed=1)
    with pytest.raises(InputError) as caught:
        noise_ceiling(other, sample)
    (problem,) = caught.value.problems
    found = score(other, scale="unit")
    by_id = dict(zip(found.items, found.score.tolist(), strict=True))
    differ = sum(abs(by_id[item.utterance_id] - item.score) > 0.005 for item in sample.items)
    assert f"{differ} of 300 items have another score than counting gives (" in str(problem)
    assert "needs the judgments behind its scores" in str(problem)


def test_items_that_nobody_judged_are_named(sample):
    judgments = judgments_behind(sample)
    kept = np.array([group != "restaurant-01" for group in judgments.tuples.groups])
    fewer = judgments.take(kept[judgments.tuples.group_of_tuple][judgments.tuple_of])
    with pytest.raises(
        InputError, match=r"5 of 300 items are not judged \(restaurant-01-a, .*\.\.\."
    ):
        noise_ceiling(fewer, sample)


def test_judgments_of_more_dialogues_than_the_benchmark_has_do(sample):
    judgments = judgments_behind(sample)
    part = sample.first(20)
    own = np.isin(judgments.tuples.groups, part.dialogue_ids)
    alone = judgments.take(own[judgments.tuples.group_of_tuple][judgments.tuple_of])
    found, expected = (
        noise_ceiling(one, part, trials=5, resamples=5) for one in (judgments, alone)
    )
    assert found == expected
    assert found["pearson"].n == 100


def test_scores_with_two_decimals_are_the_same_scores(sample):
    rounded = tuple(replace(item, score=round(item.score, 2)) for item in sample.items)
    benchmark = Benchmark("rounded", rounded)
    found = noise_ceiling(judgments_behind(sample), benchmark, trials=2, resamples=0)
    assert found["pearson"].value > 0.9


def test_judgments_without_groups_are_joined_by_item(sample):
    records = [replace(record, group="") for record in judgments_behind(sample).records()]
    nameless = Judgments.from_records(records)
    with_groups = noise_ceiling(judgments_behind(sample), sample, trials=20, resamples=0)
    found = noise_ceiling(nameless, sample, trials=20, resamples=0)
    assert found["pearson"].value == pytest.approx(with_groups["pearson"].value, abs=0.002)
    same_ids = tuple(replace(item, utterance_id=item.utterance_id[-1]) for item in sample.items)
    with pytest.raises(InputError, match="295 utterance ids occur in more than one dialogue"):
        noise_ceiling(nameless, Benchmark("clash", same_ids))


def test_judgments_come_from_a_file_or_with_the_sample(sample, tmp_path):
    path = resources.files("giccs.data") / "judgments.csv"
    assert len(judgments_behind(replace(sample, name="other"), path)) == 3000
    assert judgments_behind(replace(sample, name="other")) is None
    assert len(judgments_behind(sample.first(2))) == 3000
    with pytest.raises(InputError, match="no such file"):
        judgments_behind(sample, tmp_path / "none.csv")


def test_no_trials_are_refused(sample):
    with pytest.raises(ValueError, match="trials is 0; it must be at least 1"):
        noise_ceiling(judgments_behind(sample), sample, trials=0)
