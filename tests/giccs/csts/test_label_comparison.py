"""One model's predictions against two kinds of labels, beside scipy and a plain jackknife."""

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import stats

from giccs.cli.evaluation import evaluate
from giccs.csts.cli import main
from giccs.csts.data import Instance, write_csts
from giccs.csts.label_comparison import compare_labels
from giccs.csts.measures import csts_metrics
from giccs.measures.results import Result, Store

PAIRS = 90
"""More than `MAX_CORRECTED_CLUSTERS`, so that the jackknife has no correction."""


@pytest.fixture
def made():
    """Rows with original labels, reannotated labels, and predictions that fit the latter better."""
    rng = np.random.default_rng(5)
    truth = rng.integers(1, 6, 2 * PAIRS)
    original = np.where(rng.random(2 * PAIRS) < 0.5, rng.integers(1, 6, 2 * PAIRS), truth)
    second = np.where(rng.random(2 * PAIRS) < 0.1, -1, truth)
    rows = {
        str(n): Instance(
            str(n), f"A {n // 2}.", f"B {n // 2}.", "the"[: 2 + n % 2], int(label), n // 2
        )
        for n, label in enumerate(original)
    }
    labels = {str(n): int(label) for n, label in enumerate(second)}
    return rows, labels, truth + rng.normal(size=2 * PAIRS)


def table_of(rows, prediction, **more):
    columns = {"prediction": prediction} if not isinstance(prediction, dict) else prediction
    labels = [row.label for row in rows.values()]
    return pl.DataFrame({"uid": [*rows], **columns, "label": labels, **more})


def result(model="m", task="csts"):
    signature = {"task": task, "model": model, "setting": "bi", "data": "0"}
    return Result(model, task, {}, (), signature, {"data": "c-sts (validation)"}, 0.0)


def rho(prediction, labels):
    return stats.spearmanr(prediction, labels).statistic


def test_the_difference_is_that_of_a_jackknife_over_sentence_pairs(made):
    rows, second, prediction = made
    found = compare_labels(result(), table_of(rows, prediction), rows, second)
    kept = np.array([label != -1 for label in second.values()])
    first = np.array([row.label for row in rows.values()])[kept]
    other = np.array([*second.values()])[kept]
    pair = np.array([row.pair for row in rows.values()])[kept]
    predicted = prediction[kept]
    assert found.rows == kept.sum() == found.difference.n
    assert found.original.value == pytest.approx(rho(predicted, first))
    assert found.reannotated.value == pytest.approx(rho(predicted, other))
    full = rho(predicted, other) - rho(predicted, first)
    assert found.difference.value == pytest.approx(full)
    without = [
        rho(predicted[pair != p], other[pair != p]) - rho(predicted[pair != p], first[pair != p])
        for p in np.unique(pair)
    ]
    n = len(without)
    stderr = math.sqrt((n - 1) / n * np.sum((np.array(without) - np.mean(without)) ** 2))
    assert found.difference.extra["stderr"] == pytest.approx(stderr)
    half = stats.t.ppf(0.975, n - 1) * stderr
    assert found.difference.low == pytest.approx(full - half)
    assert found.difference.high == pytest.approx(full + half)
    assert found.difference.low > 0


def test_correlations_are_those_of_the_results_on_the_same_rows(made):
    rows, second, prediction = made
    found = compare_labels(result(), table_of(rows, prediction), rows, second)
    valid = [n for n, label in enumerate(second.values()) if label != -1]
    instances = [*rows.values()]
    original = csts_metrics(prediction[valid], [instances[n] for n in valid])["spearman"]
    relabelled = [replace(instances[n], label=second[str(n)]) for n in valid]
    reannotated = csts_metrics(prediction[valid], relabelled)["spearman"]
    for ours, expected in ((found.original, original), (found.reannotated, reannotated)):
        assert (ours.value, ours.low, ours.high) == pytest.approx(
            (expected.value, expected.low, expected.high)
        )


def test_several_trainings_are_a_mean_and_equal_labels_no_difference(made):
    rows, second, prediction = made
    noise = np.random.default_rng(1).normal(size=len(prediction))
    seeds = {
        "prediction": prediction + noise / 2,
        "seed_1": prediction,
        "seed_2": prediction + noise,
    }
    found = compare_labels(result(), table_of(rows, seeds), rows, second)
    singles = [
        compare_labels(result(), table_of(rows, seeds[name]), rows, second)
        for name in ("seed_1", "seed_2")
    ]
    assert found.reannotated.value == pytest.approx(
        np.mean([single.reannotated.value for single in singles])
    )
    same = {uid: int(row.label) for uid, row in rows.items()}
    assert compare_labels(result(), table_of(rows, prediction), rows, same).difference.value == 0


def test_generated_answers_of_relabelled_rows_and_missing_predictions(made):
    """The column is `value`; the stored labels are the reannotated ones."""
    rows, second, prediction = made
    predicted = prediction.copy()
    predicted[0] = np.nan
    table = table_of(rows, {"value": predicted}).with_columns(label=pl.Series([*second.values()]))
    second["0"] = 3
    table = table.with_columns(
        label=pl.when(pl.col("uid") == "0").then(3).otherwise(pl.col("label"))
    )
    found = compare_labels(result(task="csts-prompt"), table, rows, second)
    assert found.without_prediction == 1
    assert found.rows == sum(label != -1 for label in second.values()) - 1


def test_constant_predictions_have_a_reason(made):
    rows, second, prediction = made
    found = compare_labels(result(), table_of(rows, np.ones(len(prediction))), rows, second)
    assert math.isnan(found.difference.value)
    assert "equal" in found.difference.reason or "constant" in found.difference.reason


def test_predictions_of_other_rows_are_refused(made):
    rows, second, prediction = made
    table = table_of(rows, prediction)
    with pytest.raises(ValueError, match="1 of 180 uids are unknown"):
        compare_labels(
            result(), table.with_columns(uid=pl.col("uid").replace("7", "x")), rows, second
        )
    with pytest.raises(ValueError, match="neither the original nor the reannotated"):
        compare_labels(result(), table.with_columns(label=6 - pl.col("label")), rows, second)


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    rows, second, prediction = made
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c-sts").mkdir()
    write_csts(rows.values(), tmp_path / "c-sts" / "csts_validation.csv")
    lines = [f"{uid}\t{label}" for uid, label in second.items()]
    (tmp_path / "labels.tsv").write_text("\n".join(["uid\treannotated-label", *lines]), "utf-8")
    store = Store("results")
    for model, predicted in (("good", prediction), ("poor", -prediction)):
        store.add(replace(result(model), predictions=table_of(rows, predicted)))
    strange = table_of(rows, prediction).with_columns(uid=pl.lit("no such row"))
    store.add(replace(result("strange"), predictions=strange))
    store.add(result("lost"))
    store.add(result("elsewhere", "pairwise-sts"))
    return tmp_path


def call(*arguments, code=0):
    done = CliRunner().invoke(main, ["compare-labels", *arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done


ARGUMENTS = ("results", "--data", "c-sts", "--labels", "labels.tsv")


def test_the_command_prints_models_best_first_and_says_what_it_skips(place):
    done = call(*ARGUMENTS, "--json", "--figure", "labels.svg")
    document = json.loads(done.stdout)
    assert [one["model"] for one in document["comparisons"]] == ["good", "poor"]
    assert document["skipped"] == [
        {"model": "lost", "reason": "its predictions are missing"},
        {"model": "strange", "reason": "180 of 180 uids are unknown"},
    ]
    assert "Figure 5 written to labels.svg" in done.stderr
    chart = (place / "labels.svg").read_text("utf-8")
    assert all(word in chart for word in ("reannotated", "original", "good (bi)"))
    table = call(*ARGUMENTS).stdout
    assert "reannotated minus original" in table
    rows = call(*ARGUMENTS, "--format", "csv").stdout.splitlines()
    good = document["comparisons"][0]["difference"]
    assert float(rows[1].split(",")[-2]) == pytest.approx(good["low"])


def test_results_of_giccs_eval_are_compared(place):
    done = CliRunner().invoke(
        evaluate,
        ["baseline:char-ngram", "--task", "csts", "--data", "c-sts", "-o", "own", "--quiet"],
    )
    assert done.exit_code == 0, done.output
    document = json.loads(call("own", *ARGUMENTS[1:], "--json").stdout)
    (one,) = document["comparisons"]
    assert (one["model"], one["setting"]) == ("baseline:char-ngram", "bi")


def test_nothing_to_compare_is_an_error(place):
    done = CliRunner().invoke(
        evaluate, ["baseline:chance", "--data", "giccs-sample", "-o", "others"]
    )
    assert done.exit_code == 0
    assert "no results on the rows" in call("others", *ARGUMENTS[1:], code=2).stderr
