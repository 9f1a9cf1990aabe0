"""Intervals of scores, and scores of several batches on one scale."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bws.records import Judgment, Judgments, Scores
from bws.scoring import METHODS, anchor, score, utilities
from bws.scoring.answers import in_order
from bws.scoring.bootstrap import MOST_VALUES, _quantiles, _weights, percentile_interval


def random_judgments(n=8, k=3, judgments=40, annotators=5, seed=0):
    rng = np.random.default_rng(seed)
    records = {}
    for _ in range(judgments):
        items = tuple(rng.permutation([f"i{i}" for i in range(n)])[:k].tolist())
        best, worst = rng.permutation(items)[:2].tolist()
        annotator = f"w{rng.integers(annotators)}"
        records[annotator, frozenset(items)] = Judgment(items, best, worst, annotator)
    return Judgments.from_records(records.values())


@pytest.mark.parametrize("cluster", ["annotator", "tuple"])
def test_percentiles_are_those_of_a_slow_bootstrap(cluster):
    judged = random_judgments()
    found = score(judged, bootstrap=50, cluster=cluster, seed=7)
    answers = in_order(judged)
    index = answers.annotator_of if cluster == "annotator" else answers.tuple_of
    scores = []
    for times in np.hstack(list(_weights(index.max() + 1, 50, 7))).T:
        shown, balance = np.zeros(8), np.zeros(8)
        for t, b, w, c in zip(answers.tuple_of, answers.best, answers.worst, index, strict=True):
            shown[answers.members[t]] += times[c]
            balance[answers.members[t][b]] += times[c]
            balance[answers.members[t][w]] -= times[c]
        scores.append([b / s if s else np.nan for b, s in zip(balance, shown, strict=True)])
    expected = np.nanquantile(scores, [0.025, 0.975], axis=0)
    np.testing.assert_allclose(found.low[answers.origin], expected[0], atol=1e-12)
    np.testing.assert_allclose(found.high[answers.origin], expected[1], atol=1e-12)


@pytest.mark.parametrize("method", ["counting", "analytical", "abw"])
def test_counts_give_the_intervals_that_fitting_anew_gives(method):
    answers = in_order(random_judgments(judgments=15))
    fast = METHODS[method]
    slow = replace(fast, formula=None)
    for clusters in (answers.annotator_of, answers.tuple_of):
        one, two = (percentile_interval(m, answers, clusters, 40, 3) for m in (fast, slow))
        np.testing.assert_allclose(one.low, two.low, atol=1e-12)
        np.testing.assert_allclose(one.high, two.high, atol=1e-12)
        assert one.notes == two.notes


def test_intervals_do_not_depend_on_how_many_items_are_held_at_once(monkeypatch):
    judged = random_judgments()
    first = score(judged, bootstrap=40)
    monkeypatch.setattr("bws.scoring.bootstrap.MOST_VALUES", 3 * 40)
    again = score(judged, bootstrap=40)
    assert MOST_VALUES > 8 * 40
    np.testing.assert_array_equal(first.low, again.low)
    np.testing.assert_array_equal(first.high, again.high)


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 99))
def test_every_resample_draws_as_many_clusters_as_there_are(clusters, resamples, seed):
    times = np.hstack(list(_weights(clusters, resamples, seed)))
    assert times.shape == (clusters, resamples)
    assert (times.sum(axis=0) == clusters).all()


@given(st.lists(st.lists(st.floats(-1, 1) | st.just(float("nan")), min_size=4, max_size=4)))
def test_quantiles_leave_out_what_is_absent(rows):
    table = np.array(rows).reshape(-1, 4)
    low, high, present = _quantiles(table.copy())
    for row, *found in zip(table, low, high, present, strict=True):
        numbers = row[~np.isnan(row)]
        ends = np.quantile(numbers, [0.025, 0.975]) if len(numbers) else [np.nan] * 2
        np.testing.assert_allclose(found, [*ends, len(numbers)], atol=1e-12)


def test_width_is_that_of_the_normal_approximation_for_independent_answers():
    # One pair of items, judged by 400 people once each: the score is the mean of 400 numbers ±1 with
    # variance 1 - s². A bootstrap over people has ends near s ± 1.96 sqrt((1 - s²) / 400).
    records = [
        Judgment(("a", "b"), *(("a", "b") if w % 10 < 7 else ("b", "a")), annotator=f"w{w}")
        for w in range(400)
    ]
    found = score(Judgments.from_records(records), bootstrap=4000)
    s = 0.7 - 0.3
    reach = 1.96 * np.sqrt((1 - s**2) / 400)
    np.testing.assert_allclose(found.low, [s - reach, -s - reach], atol=0.01)
    np.testing.assert_allclose(found.high, [s + reach, -s + reach], atol=0.01)
    # The model's utility is half the logit of 0.7, as is its standard error.
    model = score(Judgments.from_records(records), "bradley-terry", interval="model", prior=100.0)
    logit, stderr = np.log(0.7 / 0.3) / 2, 1 / np.sqrt(400 * 0.7 * 0.3) / 2
    ends = np.tanh((logit + np.array([-1.96, 1.96]) * stderr) / 2)
    np.testing.assert_allclose([model.low[0], model.high[0]], ends, atol=1e-3)


@pytest.mark.parametrize("method", ["counting", "bradley-terry"])
def test_answers_that_hang_together_count_once(method):
    # Every annotator gives each answer three times over (to copies of a tuple, as it were): drawing
    # whole annotators, that adds nothing to what is known.
    judged = random_judgments(annotators=6)
    tripled = judged.take(np.repeat(np.arange(len(judged)), 3))
    once, thrice = (
        score(j, method, bootstrap=20, **({} if method == "counting" else {"prior": 1e3}))
        for j in (judged, tripled)
    )
    atol = 1e-12 if method == "counting" else 0.02  # the prior weighs a third
    np.testing.assert_allclose(once.low, thrice.low, atol=atol)
    np.testing.assert_allclose(once.high, thrice.high, atol=atol)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_bootstrap_intervals_on_the_scale_of_its_scores(method):
    judged = random_judgments(judgments=30)
    passes = {"passes": 3} if "passes" in METHODS[method].options else {}
    signed, unit = (
        score(judged, method, scale=scale, bootstrap=30, **passes) for scale in ("signed", "unit")
    )
    assert (signed.low <= signed.high).all()
    assert (signed.low < signed.high).any()
    np.testing.assert_allclose(unit.low, (signed.low + 1) / 2)
    np.testing.assert_allclose(unit.high, (signed.high + 1) / 2)


@pytest.mark.parametrize("method", [m for m in METHODS if METHODS[m].has_stderr])
def test_model_intervals_are_two_standard_errors_either_way(method):
    judged = random_judgments()
    found = score(judged, method, interval="model", cluster="tuple")
    known = utilities(judged, method, cluster="tuple")
    low, high = (np.tanh((known.utility + z * known.stderr) / 2) for z in (-1.959964, 1.959964))
    np.testing.assert_allclose(found.low, low, atol=1e-6)
    np.testing.assert_allclose(found.high, high, atol=1e-6)
    assert found.signature["interval"] == "model"


def test_intervals_from_a_formula_need_no_clusters():
    records = [Judgment(("a", "b"), "a", "b")] * 3 + [Judgment(("a", "b"), "b", "a")]
    found = score(Judgments.from_records(records), "analytical", interval="model")
    # n = 4, B = 3, W = 1: p = 6 / 8, b = ln 3, standard error 1 / sqrt(8 * 3/16) = sqrt(2/3).
    ends = np.log(3) + np.array([-1.96, 1.96]) * np.sqrt(2 / 3)
    np.testing.assert_allclose([found.low[0], found.high[0]], np.tanh(ends / 2), atol=1e-4)
    assert found.signature["cluster"] is None


def test_items_of_one_cluster_or_absent_from_resamples_are_counted():
    records = [
        Judgment(("a", "b"), "a", "b", "w1"),
        Judgment(("a", "b"), "b", "a", "w2"),
        Judgment(("c", "d"), "c", "d", "w2"),
        Judgment(("e", "f"), "e", "f", "w1"),
        Judgment(("e", "f"), "e", "f", "w2"),
        Judgment(("a", "b"), "a", "b", "w3"),
    ]
    judged = Judgments.from_records(records)
    found = score(judged, bootstrap=200, seed=1)
    low = dict(zip(found.items, found.low, strict=True))
    assert np.isnan([low["c"], low["d"]]).all()
    assert low["a"] == -1
    # e and f are absent where w3 is drawn three times: 1 resample in 27.
    answers = in_order(judged)
    times = np.hstack(list(_weights(3, 200, 1)))[answers.annotators.index("w3")]
    assert found.notes == [
        "2 items have no interval: a single cluster judged them, which says nothing of how their "
        "scores vary",
        f"2 items are absent from some of the 200 resamples (at most {(times == 3).sum()}); their "
        "intervals rest on the others",
        "the intervals of 2 items have no width, as the items score the same in every resample; "
        "that is not certainty",
    ]


def test_resamples_that_do_not_converge_are_counted(monkeypatch):
    monkeypatch.setattr("bws.scoring.likelihood.MOST_STEPS", 1)
    found = score(random_judgments(), "maxdiff", bootstrap=4)
    assert "4 of 4 resamples did not converge" in found.notes


# Anchoring


def batch(values, group="", **more):
    n = len(values)
    nothing = np.zeros(n, dtype=np.int64)
    return Scores(
        np.array([*values], dtype=object),
        np.array([group] * n, dtype=object),
        np.array([*values.values()], dtype=float),
        nothing, nothing, nothing, **more,
    )  # fmt: skip


@settings(max_examples=50)
@given(st.floats(0.1, 3), st.floats(-1, 1), st.integers(0, 99))
def test_a_batch_on_another_linear_scale_comes_back(slope, offset, seed):
    rng = np.random.default_rng(seed)
    truth = dict(zip("abcdefgh", rng.uniform(-1, 1, 8), strict=True))
    first = {item: truth[item] for item in "abcde"}
    second = {item: offset + slope * truth[item] for item in "defgh"}
    third = {item: (truth[item] - offset) / slope for item in "ghab"}
    anchored = anchor([batch(first), batch(second), batch(third)])
    for scores in anchored:
        for item, value in zip(scores.items, scores.score, strict=True):
            assert value == pytest.approx(truth[item], abs=1e-9)


def test_anchoring_maps_intervals_and_says_how():
    first = batch({"a": -0.5, "b": 0.5}, signature={"method": "counting", "scale": "signed"})
    second = batch(
        {"a": 0.0, "b": 0.5, "c": 1.0, "d": np.nan},
        low=np.array([-0.1, 0.4, 0.9, np.nan]),
        high=np.array([0.1, 0.6, 1.0, np.nan]),
        notes=["1 of 4 items were never judged and have no score: d"],
        signature={"method": "counting", "scale": "signed"},
    )
    same, found = anchor([first, second])
    # 0 -> -0.5 and 0.5 -> 0.5: x -> 2x - 0.5.
    assert same is first
    np.testing.assert_allclose(found.score, [-0.5, 0.5, 1.5, np.nan])
    np.testing.assert_allclose(found.low, [-0.7, 0.3, 1.3, np.nan])
    np.testing.assert_allclose(found.high, [-0.3, 0.7, 1.5, np.nan])
    assert found.signature["anchor"] == pytest.approx({"slope": 2, "offset": -0.5, "shared": 2})
    assert found.notes == [
        "1 of 4 items were never judged and have no score: d",
        "1 anchored scores lie outside [-1, 1], the scale of the first batch",
    ]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (batch({"b": 0.1, "x": 0.4}), "batch 2 shares 1 scored items .* 1 different scores here"),
        (batch({"a": 0.1, "b": 0.1, "x": 1}), "shares 2 .* 1 different scores here and 2 there"),
        (batch({"b": 0.1, "c": 0.2}), "shares 2 .* 2 different scores here and 1 there"),
        (batch({"a": np.nan, "b": 0.2, "x": 1}), "batch 2 shares 1 scored items"),
        (batch({"a": 0.1, "b": 0.2}, group="g"), "batch 2 shares 0 scored items"),
        (batch({"a": 0.1, "b": 0.2}, signature={"method": "elo"}), "different methods"),
        (batch({"a": 0.1, "b": 0.2}, signature={"scale": "unit"}), "different scales"),
    ],
)
def test_batches_that_cannot_be_linked(second, message):
    first = batch({"a": -0.5, "b": 0.5, "c": 0.5})
    with pytest.raises(ValueError, match=message):
        anchor([first, second])


def test_batches_of_real_judgments_compare_after_anchoring():
    # The second batch lacks the low half of the items, so that its scores are too low beside the
    # first's: an item has better company there.
    rng = np.random.default_rng(0)
    truth = {f"i{i:02}": i / 10 for i in range(40)}

    def judge(names, tuples):
        for number in range(tuples):
            items = tuple(rng.permutation(names)[:4].tolist())
            noisy = {item: truth[item] + rng.gumbel() for item in items}
            yield Judgment(
                items, max(noisy, key=noisy.get), min(noisy, key=noisy.get), f"w{number}"
            )

    names = [*truth]
    first = score(Judgments.from_records(judge(names, 2000)))
    second = score(Judgments.from_records(judge(names[20:], 2000)))
    assert second.score.mean() == pytest.approx(0, abs=0.01)
    _, anchored = anchor([first, second])
    there = dict(zip(first.items, first.score, strict=True))
    expected = np.array([there[item] for item in anchored.items])
    assert np.abs(second.score - expected).mean() > 0.3
    assert np.abs(anchored.score - expected).mean() < 0.05
