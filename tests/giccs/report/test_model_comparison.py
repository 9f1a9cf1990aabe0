"""All pairs of models: against scipy and a naive jackknife, and what is not compared."""

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import polars
import pytest
from scipy import stats

from giccs.measures.all_pairs import (
    PairDifference,
    accuracy_pairs,
    spearman_pairs,
    within_dialogue_pairs,
)
from giccs.measures.comparison import mcnemar
from giccs.measures.detectable import mcnemar_detectable, t_detectable
from giccs.measures.metrics import Estimate, correlations
from giccs.measures.results import Group, Result, Store
from giccs.report.leaderboards import comparison_tables
from giccs.report.model_comparison import Leaderboard, compare


def leaderboard(dialogues=20, items=4, qualities=(2.0, 0.7, 0.7, 0.0), seed=0):
    rng = np.random.default_rng(seed)
    dialogue = np.repeat(np.arange(dialogues), items)
    score = rng.normal(size=len(dialogue)).round(1)
    noise = rng.normal(size=(len(qualities), len(dialogue)))
    return np.array(qualities)[:, None] * score + noise, score, dialogue


def pairwise(model, prediction, score, dialogue, data="sha", **signature):
    frame = polars.DataFrame(
        {
            "item_id": [f"i{n:03}" for n in range(len(score))],
            "dialogue_id": [f"d{d}" for d in dialogue],
            "prediction": prediction,
            "score": score,
        }
    )
    return Result(
        model, "pairwise-sts", correlations(prediction, score, dialogue, resamples=20), (),
        {"history": "without", "data": data, "model": model, **signature}, {"data": "made-up"}, 0.0, frame,
    )  # fmt: skip


@pytest.fixture
def results():
    predictions, score, dialogue = leaderboard()
    return [pairwise(f"m{n}", p, score, dialogue) for n, p in enumerate(predictions)]


def test_the_test_is_a_t_test_with_the_jackknife_over_dialogues():
    predictions, score, dialogue = leaderboard(dialogues=12, qualities=(1.0, 0.5, 0.5))
    rho = lambda model, kept: stats.spearmanr(predictions[model][kept], score[kept])[0]  # noqa: E731
    for pair in spearman_pairs(100.0 * predictions, score, dialogue, 0.1):
        difference = lambda kept, pair=pair: rho(pair.first, kept) - rho(pair.second, kept)  # noqa: E731
        value = difference(np.full(len(score), True))
        without = np.array([difference(dialogue != d) for d in range(12)])
        stderr = math.sqrt(11 / 12 * np.sum((without - without.mean()) ** 2))
        assert (pair.value, pair.stderr, pair.n) == pytest.approx((value, stderr, 12))
        assert pair.p == pytest.approx(2 * stats.t.sf(abs(value) / stderr, 11))
        assert [pair.low, pair.high] == pytest.approx(stats.t.interval(0.95, 11, value, stderr))
        assert pair.detectable == t_detectable(pair.stderr, 12)
        assert (pair.p < 0.05) == (pair.low > 0 or pair.high < 0)  # p and interval agree


def test_within_dialogues_it_is_scipys_paired_t_test():
    predictions, score, dialogue = leaderboard()
    predictions[1, dialogue == 3] = 7.0  # no rho: this dialogue is not compared with model 1
    rho = np.array(
        [
            [stats.spearmanr(p[dialogue == d], score[dialogue == d])[0] for d in range(20)]
            for p in np.where(predictions == 7.0, predictions + 1e-9 * np.arange(80), predictions)
        ]
    )
    for pair in within_dialogue_pairs(predictions, score, dialogue, 0.1):
        used = [d for d in range(20) if d != 3 or 1 not in (pair.first, pair.second)]
        test = stats.ttest_rel(rho[pair.first, used], rho[pair.second, used])
        assert (pair.n, pair.p) == (len(used), pytest.approx(test.pvalue))
        limits = test.confidence_interval()
        assert [pair.low, pair.high] == pytest.approx([limits.low, limits.high])


def test_accuracies_are_compared_by_the_exact_test():
    correct = np.zeros((2, 30))
    correct[0, :15], correct[1, 12:18] = 1, 1  # 12 only by the first, 3 only by the second
    (pair,) = accuracy_pairs(correct, np.zeros(30), np.arange(30), 0.1)
    assert (pair.value, pair.p, pair.p_holm) == (
        pytest.approx(9 / 30),
        mcnemar(12, 3),
        mcnemar(12, 3),
    )
    assert pair.detectable == mcnemar_detectable(30, 0.5)
    (same,) = accuracy_pairs(correct[[0, 0]], np.zeros(30), np.arange(30), 0.1)
    assert (same.value, same.p) == (0, 1)
    assert math.isnan(same.detectable)
    assert same.reason == "both are correct on the same questions: power is unknown"


def test_models_that_rank_alike_are_not_tested():
    predictions, score, dialogue = leaderboard()
    for pairs in (spearman_pairs, within_dialogue_pairs):
        (pair,) = pairs(np.array([predictions[0], 3 * predictions[0]]), score, dialogue, 0.1)
        assert (pair.value, math.isnan(pair.p), math.isnan(pair.low)) == (0, True, True)
        assert "no standard error" in pair.reason
        assert not pair.is_significant
        few = pairs(predictions[:2, :16], score[:16], dialogue[:16], 0.1)
        assert few[0].reason == "4 dialogues: no interval, which needs 5"


def test_the_best_model_comes_first_and_ranks_follow_from_the_pairs(results):
    comparison = compare(results[::-1], target=0.1)
    assert [board.metric for board in comparison.leaderboards] == ["spearman", "rank_spearman"]
    board = comparison.leaderboards[0]
    assert (board.items, board.dialogues, len(board.pairs)) == (80, 20, 6)
    values = [model.estimate.value for model in board.models]
    assert values == sorted(values, reverse=True)
    assert (board.models[0].model, board.models[-1].model) == ("m0", "m3")
    for index, model in enumerate(board.models):
        apart = [
            pair
            for pair in board.pairs
            if pair.is_significant and index in (pair.first, pair.second)
        ]
        assert model.rank_low == 1 + sum(pair.second == index for pair in apart)
        assert model.rank_high == 4 - sum(pair.first == index for pair in apart)
        assert model.ties_first == (index == 0 or not board.pair(0, index).is_significant)
    assert [model.ties_first for model in board.models] == [True, False, False, False]
    assert (board.models[1].rank_low, board.models[1].rank_high) == (2, 3)
    assert board.pair(1, 2).needed < board.pair(1, 2).needed_all_pairs
    stricter = compare(results, target=0.05).leaderboards[0]
    assert stricter.pair(0, 1).needed > board.pair(0, 1).needed


def test_the_order_of_rows_of_predictions_does_not_matter(results):
    shuffled = [replace(r, predictions=r.predictions.sample(fraction=1, shuffle=True, seed=n))
                for n, r in enumerate(results)]  # fmt: skip
    assert compare(shuffled) == compare(results)


def test_what_is_not_compared_has_a_reason(results):
    predictions, score, dialogue = leaderboard()
    constant = pairwise("constant", np.ones(80), score, dialogue)
    lost = replace(results[0], model="lost", predictions=None)
    old = replace(results[0], model="old", predictions=results[0].predictions.drop("dialogue_id"))
    other = pairwise("other", predictions[0], score + 1, dialogue)
    part = pairwise("part", predictions[0][:40], score[:40], dialogue[:40], data="limited")
    csts = replace(results[0], model="c", task="csts")
    comparison = compare([*results, constant, lost, old, other, part, csts])
    reasons = {(s.model, s.metric): s.reason for s in comparison.skipped}
    assert reasons.pop(("old", "")).startswith("its predictions have no column dialogue_id")
    assert reasons == {
        ("constant", "spearman"): "all predictions are equal",
        ("constant", "rank_spearman"): "all predictions are equal",
        ("lost", ""): "its predictions are missing",
        ("other", ""): "the items of its predictions differ from those of m0",
        ("part", ""): "no other result of this task on the same items",
        ("c", ""): "only results of pairwise-sts and multiple-choice-sts are compared",
    }
    assert all(len(board.models) == 4 for board in comparison.leaderboards)
    for form in ("table", "markdown", "latex", "csv"):
        text = comparison_tables(comparison, form)
        assert all(reason in " ".join(text.split()) for reason in reasons.values()), form


def test_few_dialogues_are_refused():
    predictions, score, dialogue = leaderboard(dialogues=4)
    results = [pairwise(f"m{n}", p, score, dialogue) for n, p in enumerate(predictions)]
    comparison = compare(results)
    assert comparison.leaderboards == ()
    assert {s.reason for s in comparison.skipped} == {"4 dialogues: a comparison requires 5"}


def test_results_called_alike_are_told_apart_by_their_signature(results):
    again = replace(results[0], signature={**results[0].signature, "revision": "v2"})
    models = compare([results[0], again, results[1]]).leaderboards[0].models
    names = [model.model for model in models]
    assert len(set(names)) == 3
    assert sum(name.startswith("m0 #") for name in names) == 2


def choice(model, correct_with, correct_without, orders=1):
    """Results of 30 questions of two options; the right option is the second one."""
    rows = [
        {
            "dialogue_id": f"d{q:02}", "utterance_id": f"d{q:02}-{option}", "history": history,
            "order": order, "logprob": -1.0 if (option == 1) == right else -2.0,
            "gold": option == 1, "score": float(option),
        }
        for history, corrects in (("with", correct_with), ("without", correct_without))
        for order in range(orders)
        for q, right in enumerate(corrects)
        for option in (0, 1)
    ]  # fmt: skip
    groups = tuple(
        Group({"history": history}, {"accuracy": Estimate(float(np.mean(corrects)), 0.0, 1.0, 30)})
        for history, corrects in (("with", correct_with), ("without", correct_without))
    )
    signature = {
        "history": "both", "data": "sha", "model": model, "template": {"name": "t"},
        "answer": "sentence", "chat_template": False, "permutations": orders,
    }  # fmt: skip
    return Result(
        model,
        "multiple-choice-sts",
        {},
        groups,
        signature,
        {"data": "made-up"},
        0.0,
        polars.DataFrame(rows),
    )


def test_of_multiple_choice_each_history_is_a_row():
    n = np.arange(30)
    results = [choice("good", n < 28, n < 25), choice("poor", n < 8, n >= 28, orders=2)]
    (board,) = compare(results).leaderboards
    assert (board.metric, board.items, board.dialogues) == ("accuracy", 30, 30)
    assert [(m.model, m.history) for m in board.models] == [
        ("good (t)", "with"), ("good (t)", "without"), ("poor (t, 2 orders)", "with"),
        ("poor (t, 2 orders)", "without"),
    ]  # fmt: skip
    pair = board.pair(0, 1)  # right only with history: questions 25, 26 and 27
    assert (pair.value, pair.p) == (pytest.approx(3 / 30), mcnemar(3, 0))
    assert board.pair(0, 3).p == mcnemar(28, 2)
    assert [m.ties_first for m in board.models] == [True, True, False, False]


def test_only_tested_or_equal_models_are_tied_with_the_first():
    pairs = [
        PairDifference(0, 1, 0.3, 9, p=0.001, p_holm=0.01),
        PairDifference(0, 2, 0.2, 9, p=0.02, p_holm=0.06),
        PairDifference(0, 3, 0.0, 9, reason="the difference is the same in every dialogue"),
        PairDifference(0, 4, 0.1, 4, reason="4 dialogues"),
        PairDifference(1, 2, 0.0, 9, p=1.0, p_holm=1.0),
    ]
    board = Leaderboard("t", "d", "c", "spearman", 9, 9, 0.02, (), tuple(pairs))
    assert board.tied == {2, 3}


@pytest.mark.parametrize("form", ["table", "markdown", "latex"])
def test_the_mark_stands_in_every_format(results, form):
    boards = compare([results[1], results[2], results[3]])
    text = comparison_tables(boards, form)
    text = text.replace(r"$^\dagger$", " †")
    (board, *_) = boards.leaderboards
    assert [m.model for m in board.models] == ["m2", "m1", "m3"]
    assert [board.pair(0, n).is_significant for n in (1, 2)] == [False, True]
    marked = [line for line in text.splitlines() if "†" in line and "without" in line]
    assert marked
    assert all("m1 †" in line for line in marked)
    assert "†: not significantly different from the best model (Holm, 5 %)" in text
    assert "not significant" in text
    assert "Dialogues to detect a difference of 0.02" in text
    for line in text.splitlines():
        if "Holm, BH" in line:
            assert line.startswith("%") == (form == "latex")


def test_csv_has_every_number_of_the_document(results):
    comparison = compare(results)
    rows = list(csv.DictReader(io.StringIO(comparison_tables(comparison, "csv"))))
    boards = comparison.document()["comparisons"]
    assert sum(row["kind"] == "model" for row in rows) == sum(len(b["models"]) for b in boards)
    pairs = [row for row in rows if row["kind"] == "pair"]
    expected = [(b, pair) for b in boards for pair in b["pairs"]]
    assert len(pairs) == len(expected) == 12
    for row, (board, pair) in zip(pairs, expected, strict=True):
        assert row["metric"] == board["metric"]
        assert row["model"] == board["models"][pair["first"]]["model"]
        assert row["second_model"] == board["models"][pair["second"]]["model"]
        for name in (
            "value",
            "low",
            "high",
            "stderr",
            "p",
            "p_holm",
            "p_bh",
            "detectable",
            "needed",
        ):
            assert float(row[name]) == pair[name]


def test_predictions_are_read_back_with_a_result(results, tmp_path):
    store = Store(tmp_path)
    for result in results:
        store.add(result)
    read = [store.with_predictions(result) for result in store.results()]
    assert json.dumps(compare(read).document()) == json.dumps(compare(results).document())
    for path in tmp_path.glob("*m0*.parquet"):
        path.unlink()
    read = [store.with_predictions(result) for result in store.results()]
    assert [s.reason for s in compare(read).skipped] == ["its predictions are missing"]


def test_results_that_are_all_unusable_are_skipped_with_their_reasons():
    estimates = {name: Estimate(0.5, 0.4, 0.6, 9) for name in ("spearman", "rank_spearman")}
    results = [
        Result(model, "pairwise-sts", estimates, (), {"data": "d", "model": model}, {}, 1.0)
        for model in "ab"
    ]
    comparison = compare(results)
    assert comparison.leaderboards == ()
    assert [each.reason for each in comparison.skipped] == ["its predictions are missing"] * 2
