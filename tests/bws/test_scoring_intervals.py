"""Intervals of scores, and scores of several batches on one scale."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from scipy.stats import t as student

from bws.base.notes import pattern
from bws.cli import score as score_command
from bws.components import finite_population_correction
from bws.design import make_tuples
from bws.files import judgments_from_records
from bws.records import Judgment, Scores
from bws.scoring import METHODS, anchor, score, utilities
from bws.scoring.clustering import CONSERVATIVE_NOTE, Clusters, cluster_judgments
from bws.scoring.counting import SMOOTHED_COUNTING, pseudo_variance, squared_cluster_sums
from bws.scoring.intervals import EXTENDED, _resample_weights, bootstrap_errors
from bws.simulation import simulate


def random_judgments(n=8, k=3, judgments=40, annotators=5, seed=0):
    rng = np.random.default_rng(seed)
    records = {}
    for _ in range(judgments):
        items = tuple(rng.permutation([f"i{i}" for i in range(n)])[:k].tolist())
        best, worst = rng.permutation(items)[:2].tolist()
        annotator = f"w{rng.integers(annotators)}"
        records[annotator, frozenset(items)] = Judgment(items, best, worst, annotator)
    return judgments_from_records(records.values())


def values_of(answers):
    """(J, N) 1, -1 or 0 for shown items, NaN for others."""
    table = np.full((len(answers), len(answers.items)), np.nan)
    for row, (t, b, w) in enumerate(
        zip(answers.tuple_of, answers.best, answers.worst, strict=True)
    ):
        table[row, answers.members[t]] = 0
        table[row, answers.members[t][b]] = 1
        table[row, answers.members[t][w]] = -1
    return table


def slow_variance(answers, labels):
    """The squared influence of clusters on (B - W) / (n + 1), on the logit scale, and their number."""
    table = values_of(answers)
    n = (~np.isnan(table)).sum(axis=0)
    s = np.nansum(table, axis=0) / (n + 1)
    influence = (table - s) / (n + 1) * 2 / (1 - s**2)
    variance, count = np.zeros(len(s)), np.zeros(len(s))
    for label in set(labels):
        shown = ~np.isnan(table[labels == label]).all(axis=0)
        variance += np.nansum(influence[labels == label], axis=0) ** 2
        count += shown
    known = (1 + s**2) / 2 / (n + 1) ** 2 * (2 / (1 - s**2)) ** 2
    return variance * count / (count - 1), count, known, 2 * np.arctanh(s)


@pytest.mark.parametrize("cluster", ["both", "annotator", "tuple", "judgment"])
def test_intervals_of_counts_are_those_of_a_slow_computation(cluster):
    judged = random_judgments(judgments=60, annotators=6)
    answers = judged.canonical
    result = score(judged, interval="model", cluster=cluster)
    cells = answers.annotator_of * 1000 + answers.tuple_of
    rows = {"tuple": cells, "judgment": np.arange(len(answers))}.get(cluster, answers.annotator_of)
    first, count, known, logit = slow_variance(answers, rows)
    second, tuples = np.zeros(len(first)), np.full(len(first), 2.0)
    if cluster in ("both", "tuple"):
        between, tuples, *_ = slow_variance(answers, answers.tuple_of)
        within, *_ = slow_variance(answers, cells)
        second = finite_population_correction(answers) * np.maximum(between - within, 0)
    variance = first + second + known
    df = variance**2 / (first**2 / (count - 1) + second**2 / (tuples - 1))
    reach = student.ppf(0.975, df) * np.sqrt(variance)
    enough = ~np.isnan(result.low[answers.origin])
    assert enough.any()
    expected = np.tanh((logit + np.array([[-1], [1]]) * reach) / 2)
    n = answers.counts.appearances
    s = np.tanh(logit / 2)
    for item, near in enumerate(np.sign(s).astype(int)):
        # Jeffreys' interval of p, the score on [0, 1], for the number of answers that has its variance
        p = (1 + s[item] * (n[item] + 1) / n[item]) / 2
        slope = 4 / (1 - s[item] ** 2) * n[item] / (n[item] + 1)
        size = p * (1 - p) * slope**2 / (variance - known)[item]
        size *= (student.ppf(0.975, np.inf) / student.ppf(0.975, df[item])) ** 2
        jeffreys = beta.ppf([0.025, 0.975], size * p + 0.5, size * (1 - p) + 0.5) * 2 - 1
        column = int(near > 0)
        worst = min if near < 0 else max
        expected[column, item] = worst(expected[column, item], jeffreys[column])
    expected = expected[:, enough]
    np.testing.assert_allclose(result.low[answers.origin][enough], expected[0], atol=1e-9)
    np.testing.assert_allclose(result.high[answers.origin][enough], expected[1], atol=1e-9)
    assert (result.signature["cluster"], result.signature["standard_error"]) == (
        cluster,
        "clustered counts",
    )


@pytest.mark.parametrize("cluster", ["annotator", "tuple"])
def test_resampled_variance_is_that_of_a_slow_bootstrap(cluster):
    judged = random_judgments()
    answers = judged.canonical
    clusters = cluster_judgments(judged, "annotator")
    index = answers.annotator_of if cluster == "annotator" else answers.tuple_of
    clusters = replace(clusters, rows=index)
    estimate = SMOOTHED_COUNTING.fit(answers, clusters=None, seed=0)
    result = bootstrap_errors(SMOOTHED_COUNTING, estimate, answers, clusters, 50, 7)
    logits = []
    for times in np.hstack(list(_resample_weights(index.max() + 1, 50, 7))).T:
        shown, balance = np.zeros(8), np.zeros(8)
        for t, b, w, c in zip(answers.tuple_of, answers.best, answers.worst, index, strict=True):
            shown[answers.members[t]] += times[c]
            balance[answers.members[t][b]] += times[c]
            balance[answers.members[t][w]] -= times[c]
        s = np.where(shown > 0, balance / (shown + 1), np.nan)
        logits.append(2 * np.arctanh(s))
    _, count, known, _ = slow_variance(answers, index)
    expected = np.nanvar(logits, axis=0) * count / (count - 1) + known
    np.testing.assert_allclose(result.stderr, np.sqrt(expected), atol=1e-9)


@pytest.mark.parametrize("method", ["counting", "analytical", "abw"])
def test_methods_with_a_formula_share_their_intervals(method):
    judged = random_judgments()
    for options in ({"interval": "model"}, {"bootstrap": 40}):
        result, counting = score(judged, method, **options), score(judged, **options)
        inner = np.abs(counting.score) < 1
        assert inner.any()
        np.testing.assert_allclose(result.low[inner], counting.low[inner], atol=1e-9)
        np.testing.assert_allclose(result.high[inner], counting.high[inner], atol=1e-9)


def test_counts_give_the_variances_that_fitting_anew_gives():
    judged = random_judgments(judgments=15)
    answers = judged.canonical
    clusters = cluster_judgments(judged, "both")
    estimate = SMOOTHED_COUNTING.fit(answers, clusters=None, seed=0)
    slow = replace(SMOOTHED_COUNTING, formula=None)
    fast, refitted = (
        bootstrap_errors(method, estimate, answers, clusters, 40, 3)
        for method in (SMOOTHED_COUNTING, slow)
    )
    count = answers.counts
    known = pseudo_variance(count.appearances, count.best, count.worst)
    np.testing.assert_allclose(fast.stderr**2 - known, refitted.stderr**2, atol=1e-9)
    assert fast.notes == refitted.notes


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 99))
def test_every_resample_draws_as_many_clusters_as_there_are(clusters, resamples, seed):
    times = np.hstack(list(_resample_weights(clusters, resamples, seed)))
    assert times.shape == (clusters, resamples)
    assert (times.sum(axis=0) == clusters).all()


def test_width_is_that_of_the_normal_approximation_for_independent_answers():
    # One pair of items, judged by 400 people once each: the score is the mean of 400 numbers ±1 with
    # variance 1 - s². A bootstrap over people has ends near s ± 1.96 sqrt((1 - s²) / 400).
    records = [
        Judgment(("a", "b"), *(("a", "b") if w % 10 < 7 else ("b", "a")), annotator=f"w{w}")
        for w in range(400)
    ]
    result = score(judgments_from_records(records), bootstrap=4000)
    s = 0.7 - 0.3
    reach = 1.96 * np.sqrt((1 - s**2) / 400)
    np.testing.assert_allclose(result.low, [s - reach, -s - reach], atol=0.01)
    np.testing.assert_allclose(result.high, [s + reach, -s + reach], atol=0.01)
    # The model's utility is half the logit of 0.7, as is its standard error.
    model = score(judgments_from_records(records), "bradley-terry", interval="model", prior=100.0)
    logit, stderr = np.log(0.7 / 0.3) / 2, 1 / np.sqrt(400 * 0.7 * 0.3) / 2
    ends = np.tanh((logit + np.array([-1.96, 1.96]) * stderr) / 2)
    np.testing.assert_allclose([model.low[0], model.high[0]], ends, atol=1e-3)


@pytest.mark.parametrize("method", ["counting", "bradley-terry"])
def test_answers_that_hang_together_count_once(method):
    # Every annotator gives each answer three times over (to copies of a tuple, as it were): drawing
    # whole annotators, that adds nothing to what is known.
    judged = random_judgments(annotators=6)
    tripled = judged.select(np.repeat(np.arange(len(judged)), 3))
    once, thrice = (
        score(
            j,
            method,
            bootstrap=20,
            cluster="annotator",
            **({} if method == "counting" else {"prior": 1e3}),
        )
        for j in (judged, tripled)
    )
    atol = (
        0.06 if method == "counting" else 0.02
    )  # the pseudo-judgment, or the prior, weighs a third
    np.testing.assert_allclose(once.low, thrice.low, atol=atol)
    np.testing.assert_allclose(once.high, thrice.high, atol=atol)


def test_the_end_near_1_is_not_inside_jeffreys_interval():
    """119 of 120 times best, by as many annotators: the logit interval ended at 0.996."""
    records = [
        Judgment(("a", "b", "c"), "b" if n == 0 else "a", "c", f"w{n:03}") for n in range(120)
    ]
    scores = score(judgments_from_records(records), interval="model", cluster="judgment")
    a = scores.items.tolist().index("a")
    assert 0.9 < scores.low[a] < scores.score[a] < 0.998 < scores.high[a] < 1


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_bootstrap_intervals_on_the_scale_of_its_scores(method):
    judged = random_judgments(judgments=30)
    passes = {"passes": 3} if "passes" in METHODS[method].options else {}
    signed, unit = (
        score(judged, method, scale=scale, bootstrap=30, **passes) for scale in ("signed", "unit")
    )
    assert ((signed.low <= signed.high) | np.isnan(signed.low)).all()
    assert (signed.low < signed.high).any()
    np.testing.assert_allclose(unit.low, (signed.low + 1) / 2)
    np.testing.assert_allclose(unit.high, (signed.high + 1) / 2)


@pytest.mark.parametrize(
    "method", ["bradley-terry", "plackett-luce", "best-worst-logit", "maxdiff"]
)
def test_model_intervals_are_t_standard_errors_either_way(method):
    judged = random_judgments()
    result = score(judged, method, interval="model", cluster="tuple", prior=3.0)
    known = utilities(judged, method, cluster="tuple", prior=3.0)
    reach = student.ppf(0.975, known.df) * known.stderr
    assert (known.df < 100).all()
    low, high = (np.tanh((known.utility + sign * reach) / 2) for sign in (-1, 1))
    np.testing.assert_allclose(result.low, low, atol=1e-6)
    np.testing.assert_allclose(result.high, high, atol=1e-6)
    assert result.signature["interval"] == "model"


@pytest.mark.parametrize("n_tuples", [1, 6])
def test_judgments_without_annotators_have_intervals_and_a_note(n_tuples):
    records = [
        Judgment(pair, *pair)
        for n in range(n_tuples) for pair in [("a", f"b{n}")] * 4 + [(f"b{n}", "a")] * 2
    ]  # fmt: skip
    result = score(judgments_from_records(records), interval="model")
    assert result.signature["cluster"] == ("tuple" if n_tuples > 1 else "judgment")
    assert (
        f"{len(records)} of {len(records)} judgments have no annotator: the intervals do not apply to "
        "other annotators" in result.notes
    )
    assert result.low[0] < result.score[0] < result.high[0]


def test_an_item_that_all_judge_best_has_an_interval_with_a_width():
    records = [
        Judgment(("a", f"b{n}", f"c{n}"), "a", f"c{n}", f"w{w}") for n in range(6) for w in range(5)
    ]
    for options in ({"interval": "model"}, {"bootstrap": 20}):
        result = score(judgments_from_records(records), **options)
        assert (result.score[0], result.high[0]) == (1, 1)
        assert 0.5 < result.low[0] < 0.95


@pytest.mark.parametrize(
    ("annotators", "per_tuple", "is_noted"), [(100, 5, True), (100, 1, True), (20, 20, False)]
)
def test_intervals_of_annotators_who_saw_other_tuples_are_said_to_be_conservative(
    annotators, per_tuple, is_noted
):
    # Groups of five items, all ten 3-tuples of each: only annotators are random.
    items = [f"i{n}" for n in range(40)]
    tuples = make_tuples(items, 3, groups=[f"g{n // 5}" for n in range(40)], count=10)
    utility = 2.75 * np.random.default_rng(0).normal(size=40)
    judged = simulate(tuples, utility, annotators, noise=1.0, per_tuple=per_tuple)
    for options in ({"interval": "model"}, {"bootstrap": 20}):
        assert (CONSERVATIVE_NOTE in score(judged, **options).notes) == is_noted


def test_an_item_that_won_all_its_tuples_may_lose_in_another():
    # Eight tuples of 101 items; a better item may be among the 76 that the item did not meet.
    opponents = [f"i{n}" for n in range(100)]
    sets = [("top", *opponents[3 * n : 3 * n + 3]) for n in range(8)]
    sets += [tuple(opponents[n : n + 4]) for n in range(24, 97)]
    records = [Judgment(each, each[0], each[-1], f"w{w}") for each in sets for w in range(20)]
    judged = judgments_from_records(records)
    result = score(judged, interval="model")
    top = list(result.items).index("top")
    correction = finite_population_correction(judged.canonical)[
        list(judged.canonical.items).index("top")
    ]
    assert (result.score[top], result.high[top]) == (1, 1)
    expected = 2 * beta.ppf(0.025, 8 / correction + 0.5, 0.5) - 1
    assert result.low[top] == pytest.approx(expected)
    # Exact tests: with so small a share of tuples won, eight wins have a probability of 1 to 5 %.
    assert 0.01 < ((1 + expected) / 2) ** (8 / correction) < 0.1
    assert any(pattern(EXTENDED).fullmatch(note) for note in result.notes)
    alone = score(judged, interval="model", cluster="annotator")
    assert alone.low[top] > result.low[top]  # in the same tuples


def test_the_overestimated_share_of_a_variance_is_that_between_tuples():
    # One item in 40 tuples with means ±a, judged by 5 of 100 annotators each with errors ±b.
    a, b, n_tuples, per_tuple = 0.6, 0.3, 40, 5
    rng = np.random.default_rng(0)
    tuple_of = np.repeat(np.arange(n_tuples), per_tuple)
    value = a * (-1.0) ** tuple_of + b * rng.choice([-1, 1], size=len(tuple_of))
    annotator = np.concatenate([rng.permutation(100)[:per_tuple] for _ in range(n_tuples)])
    items = np.zeros((len(tuple_of), 1), dtype=np.int64)
    cells = np.arange(len(tuple_of))
    clusters = Clusters("both", items, annotator, tuple_of, cells, np.zeros(1))
    variance = squared_cluster_sums(items, (value - value.mean())[:, None] / len(value))
    share_of_tuples = a**2 / (a**2 + b**2)  # of the variance of a value
    assert clusters.overestimate(variance, tuple_of) == pytest.approx(share_of_tuples, abs=0.1)


def test_annotators_count_by_default():
    # Six annotators, three of whom prefer a in all of 20 tuples, the others the other item: one answer each.
    records = [
        Judgment(pair, *(pair if w % 2 else pair[::-1]), f"w{w}")
        for w in range(6) for pair in [("a", f"b{n}") for n in range(20)]
    ]  # fmt: skip
    judged = judgments_from_records(records)
    result, tuples = (score(judged, interval="model", cluster=c) for c in (None, "tuple"))
    assert result.signature["cluster"] == "both"
    assert result.high[0] - result.low[0] > 1.5 > 0.5 > tuples.high[0] - tuples.low[0]
    few = "6 annotators: the interval is approximate below 20"
    assert few in result.notes


def test_items_of_few_clusters_or_absent_from_resamples_are_counted():
    records = [Judgment(("a", "b"), *(("a", "b"), ("b", "a"))[n % 2], f"w{n}") for n in range(10)]
    records += [Judgment(("c", "d"), "c", "d", f"w{n}") for n in range(4)]
    records += [Judgment(("e", "f"), "e", "f", f"w{n}") for n in range(5)]
    judged = judgments_from_records(records)
    result = score(judged, bootstrap=4000, cluster="annotator", seed=1)
    low = dict(zip(result.items, result.low, strict=True))
    assert np.isnan([low["c"], low["d"]]).all()
    assert -1 < low["a"] < 0 < low["e"] < 1
    # e and f are absent where only w5 to w9 are drawn: 1 resample in 1024.
    answers = judged.canonical
    judged_both = [answers.annotators.index(f"w{n}") for n in range(5)]
    absent = np.hstack(list(_resample_weights(10, 4000, 1)))[judged_both].sum(axis=0) == 0
    assert absent.any()
    assert result.notes == [
        f"2 items are absent from some of the 4000 resamples (at most {absent.sum()}); their "
        "intervals are based on the others",
        "2 items have no interval: fewer than 5 clusters per item",
        "10 annotators: the interval is approximate below 20",
    ]


@pytest.mark.parametrize(
    ("cluster", "options", "remedy"),
    [
        (
            "annotator",
            {"bootstrap": 20},
            "cluster by tuple, or collect judgments of more annotators",
        ),
        ("tuple", {"bootstrap": 20}, "cluster by annotator, or judge more tuples"),
        ("annotator", {"method": "maxdiff", "interval": "model"}, "cluster by tuple, or collect"),
    ],
)
def test_fewer_than_five_clusters_have_no_interval(cluster, options, remedy):
    tuples = [("a", "b", "c"), ("b", "c", "d"), ("c", "d", "a"), ("d", "a", "b")]
    records = [Judgment(t, t[0], t[n % 2 + 1], f"w{n}") for n in range(4) for t in tuples]
    result = score(judgments_from_records(records), cluster=cluster, **options)
    assert np.isnan(result.low).all()
    assert np.isnan(result.high).all()
    assert not np.isnan(result.score).any()
    assert any(
        note.startswith(f"4 {cluster}s: no interval, which needs 5; {remedy}")
        for note in result.notes
    )


def test_a_score_without_interval_is_shown_with_a_dash(tmp_path):
    rows = [f"t{t},x,y,z,x,z,w{a}\n" for t in range(6) for a in range(3)]
    (tmp_path / "j.csv").write_text(
        "tuple_id,item1,item2,item3,best,worst,annotator\n" + "".join(rows)
    )
    output = tmp_path / "s.csv"
    call = [str(tmp_path / "j.csv"), "--bootstrap", "10", "-o", str(output)]
    result = CliRunner().invoke(score_command, call)
    assert result.exit_code == 0, result.output
    assert "3 annotators: no interval, which needs 5; cluster by tuple" in result.stderr
    assert result.stdout.splitlines()[2].split() == ["x", "1.000", "–", "–", "18", "18", "0"]
    assert output.read_text("utf-8").splitlines()[1] == "x,,1.0,18,18,0,,"
    document = json.loads(CliRunner().invoke(score_command, [*call[:-2], "--json"]).stdout)
    assert document["scores"][0]["low"] is None


def test_resamples_that_do_not_converge_are_counted(monkeypatch):
    monkeypatch.setattr("bws.scoring.posterior.MAX_STEPS", 1)
    result = score(random_judgments(), "maxdiff", bootstrap=4, prior=3.0)
    assert "4 of 4 resamples did not converge" in result.notes


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
    same, result = anchor([first, second])
    # 0 -> -0.5 and 0.5 -> 0.5: x -> 2x - 0.5.
    assert same is first
    np.testing.assert_allclose(result.score, [-0.5, 0.5, 1.5, np.nan])
    np.testing.assert_allclose(result.low, [-0.7, 0.3, 1.3, np.nan])
    np.testing.assert_allclose(result.high, [-0.3, 0.7, 1.5, np.nan])
    assert result.signature["anchor"] == pytest.approx({"slope": 2, "offset": -0.5, "shared": 2})
    assert result.notes == [
        "1 of 4 items were never judged and have no score: d",
        "1 anchored scores are outside [-1, 1], the range of the scale",
    ]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            batch({"b": 0.1, "x": 0.4}),
            "batch 2 shares 1 scored items .* 1 different scores in this batch",
        ),
        (
            batch({"a": 0.1, "b": 0.1, "x": 1}),
            "shares 2 .* 1 different scores in this batch and 2 ",
        ),
        (batch({"b": 0.1, "c": 0.2}), "shares 2 .* 2 different scores in this batch and 1 "),
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
    first = score(judgments_from_records(judge(names, 2000)))
    second = score(judgments_from_records(judge(names[20:], 2000)))
    assert second.score.mean() == pytest.approx(0, abs=0.01)
    _, anchored = anchor([first, second])
    there = dict(zip(first.items, first.score, strict=True))
    expected = np.array([there[item] for item in anchored.items])
    assert np.abs(second.score - expected).mean() > 0.3
    assert np.abs(anchored.score - expected).mean() < 0.05
