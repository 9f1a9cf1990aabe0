"""All pairs of models: against scipy and a naive jackknife, and what is not compared."""

import csv
import io
import json
import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from bws.stats.estimates import Estimate
from giccs.measures.all_pairs import (
    PairDifference,
    accuracy_pairs,
    spearman_pairs,
    within_dialogue_pairs,
)
from giccs.measures.comparison import mcnemar
from giccs.measures.detectable import mcnemar_detectable, t_detectable
from giccs.measures.metrics import correlations
from giccs.measures.results import Group, Result, Store
from giccs.report.comparison_tables import comparison_tables
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
        variance = 11 / 12 * np.sum((without - without.mean()) ** 2)
        quadratic = [
            12 * value
            - 11 * (without[a] + without[b])
            + 10 * difference((dialogue != a) & (dialogue != b))
            for a, b in combinations(range(12), 2)
        ]
        stderr = math.sqrt(
            variance - np.var(quadratic) / 2
        )  # 66 pairs / (12 · 11): Efron and Stein
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
        assert pair.reason.startswith("0 dialogues that differ from the others")
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
        ("part", ""): "no other result of this task and history on the same items",
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


def test_of_multiple_choice_each_history_is_a_family():
    n = np.arange(30)
    results = [choice("good", n < 28, n < 25), choice("poor", n < 8, n >= 28, orders=2)]
    comparison = compare(results)
    without, with_history = comparison.leaderboards
    assert [without.history, with_history.history] == ["without", "with"]
    for board in (without, with_history):
        assert (board.metric, board.items, board.dialogues) == ("accuracy", 30, 30)
        assert [m.model for m in board.models] == ["good (t)", "poor (t, 2 orders)"]
        assert [m.ties_first for m in board.models] == [True, False]
    assert with_history.pair(0, 1).p == mcnemar(20, 0)
    assert without.pair(0, 1).p == mcnemar(25, 2)
    (family,) = comparison.history_effects
    good, poor = (effect.difference for effect in family.effects)
    assert (good.value, good.p) == (pytest.approx(3 / 30), mcnemar(3, 0))  # questions 25, 26 and 27
    assert (poor.value, poor.p) == (pytest.approx(6 / 30), mcnemar(8, 2))
    assert [good.p_holm, poor.p_holm] == multipletests([good.p, poor.p], method="holm")[1].tolist()


def test_only_tested_or_equal_models_are_tied_with_the_first():
    pairs = [
        PairDifference(0, 1, 0.3, 9, p=0.001, p_holm=0.01),
        PairDifference(0, 2, 0.2, 9, p=0.02, p_holm=0.06),
        PairDifference(0, 3, 0.0, 9, reason="the difference is the same in every dialogue"),
        PairDifference(0, 4, 0.1, 4, reason="4 dialogues"),
        PairDifference(1, 2, 0.0, 9, p=1.0, p_holm=1.0),
    ]
    board = Leaderboard(
        "t", "d", "c", "spearman", 9, 9, 0.02, "dialogues", "", (), (), tuple(pairs)
    )
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


def with_histories(n_models=5, dialogues=20, seed=1):
    """Results of models with and without history, of which half have the history in two encodings."""
    predictions, score, dialogue = leaderboard(
        dialogues=dialogues, qualities=np.linspace(0.3, 2, n_models), seed=seed
    )
    noise = np.random.default_rng(seed + 1).normal(size=(n_models, 2, len(score)))
    results = []
    for n, prediction in enumerate(predictions):
        results.append(pairwise(f"m{n}", prediction, score, dialogue, template="{utterance}"))
        for encoding in range(1 + n % 2):
            settings = {"history": "with", "template": f"t{encoding}"}
            settings |= {"history_encoding": "speakers"} if encoding else {}
            changed = prediction + (0.8 + 0.3 * n) * noise[n, encoding]
            results.append(pairwise(f"m{n}", changed, score, dialogue, **settings))
    return results


def test_each_history_condition_is_a_family_and_its_effect_another():
    """Five models with and without history are 10 pairs each, not 45 pairs of ten rivals."""
    results = [r for r in with_histories() if "history_encoding" not in r.signature]
    comparison = compare(results)
    assert [(b.metric, b.history) for b in comparison.leaderboards] == [
        ("spearman", "without"), ("spearman", "with"),
        ("rank_spearman", "without"), ("rank_spearman", "with"),
    ]  # fmt: skip
    for board in comparison.leaderboards:
        alone = compare([r for r in results if r.signature["history"] == board.history])
        assert {m.history for m in board.models} == {board.history}
        assert len(board.pairs) == 10
        assert [b for b in alone.leaderboards if b.metric == board.metric] == [board]
        p = np.array([pair.p for pair in board.pairs])
        np.testing.assert_allclose(
            [pair.p_holm for pair in board.pairs], multipletests(p, method="holm")[1]
        )
        np.testing.assert_allclose(
            [pair.p_bh for pair in board.pairs], multipletests(p, method="fdr_bh")[1]
        )
        assert max(model.rank_high for model in board.models) <= 5
    assert [family.metric for family in comparison.history_effects] == ["spearman", "rank_spearman"]
    for family in comparison.history_effects:
        assert len(family.effects) == 5
        p = [effect.difference.p for effect in family.effects]
        holm = multipletests(p, method="holm")[1]
        np.testing.assert_allclose([effect.difference.p_holm for effect in family.effects], holm)
        for effect in family.effects:
            one = next(r for r in results if r.model == effect.model and history(r) == "with")
            other = next(r for r in results if r.model == effect.model and history(r) == "without")
            assert effect.with_history == one.metrics[family.metric]
            assert effect.without_history == other.metrics[family.metric]
            value = one.metrics[family.metric].value - other.metrics[family.metric].value
            assert effect.difference.value == pytest.approx(value)


def history(result):
    return result.signature["history"]


def test_variants_of_a_model_are_rivals_unless_a_condition_differs():
    results = with_histories()
    comparison = compare(results)
    (board,) = [b for b in comparison.leaderboards if (b.metric, b.history) == ("spearman", "with")]
    assert len(board.models) == 7  # of which two with the history in another encoding
    assert sum(model.history == "with (speakers)" for model in board.models) == 2
    (effects,) = [f for f in comparison.history_effects if f.metric == "spearman"]
    assert len(effects.effects) == 7
    variants = [
        replace(r, signature={**r.signature, "prompt": {"name": name}})
        for r in results[:2] for name in ("a", "b")
    ]  # fmt: skip
    (first, second), *_ = [b.models for b in compare(variants[:2]).leaderboards]
    assert {first.model, second.model} == {"m0, prompt a", "m0, prompt b"}
    assert {e.model for e in compare(variants).history_effects[0].effects} == {
        "m0, prompt a", "m0, prompt b",
    }  # fmt: skip


def test_a_result_that_occurs_twice_is_compared_once(results):
    comparison = compare([*results, results[0]])
    assert comparison.leaderboards == compare(results).leaderboards
    (skipped,) = comparison.skipped
    assert skipped.reason == "another result has the same model, settings and history"
    n = np.arange(30)
    both = choice("good", n < 28, n < 25)
    groups = tuple(group for group in both.groups if group.by["history"] == "with")
    alone = replace(both, groups=groups, signature={**both.signature, "history": "with"})
    comparison = compare([both, choice("poor", n < 8, n < 9), alone])
    assert all(len(board.models) == 2 for board in comparison.leaderboards)
    assert [s.history for s in comparison.skipped] == ["with"]


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "csv"])
def test_effects_of_the_history_are_in_every_format(form):
    comparison = compare(with_histories(n_models=3))
    text = comparison_tables(comparison, form)
    document = comparison.document()["history_effects"]
    assert [family["metric"] for family in document] == ["spearman", "rank_spearman"]
    if form != "csv":
        assert "without history: Spearman ρ" in text.replace(r"Spearman $\rho$", "Spearman ρ")
        assert text.count("effect of the history") == 2
        return
    rows = [r for r in csv.DictReader(io.StringIO(text)) if r["kind"] == "history"]
    effects = [effect for family in document for effect in family["effects"]]
    for row, effect in zip(rows, effects, strict=True):
        assert (row["model"], row["history"]) == (effect["model"], effect["history"])
        assert (row["second_model"], row["second_history"]) == (effect["model"], "without")
        for name in ("value", "low", "high", "stderr", "p", "p_holm", "p_bh"):
            assert float(row[name]) == effect[name]
