"""Results on disk: whole or not at all, found again by signature."""

import json
import math
import os
from dataclasses import replace

import numpy as np
import polars
import pytest

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.evaluation.task_results import evaluate_task
from giccs.measures.results import Store, digest
from giccs.models import open_model
from giccs.models.abilities import OrderedPairModel
from giccs.report import report
from giccs.tasks.pairwise import ORDERS, PairwiseSTS


@pytest.fixture
def benchmark(benchmark_file):
    return read_benchmark(benchmark_file)


def evaluated(benchmark, store, model="baseline:char-ngram", **options):
    tasks = [PairwiseSTS(resamples=5)]
    return list(run([open_model(model)], tasks, benchmark, store, **options))


def test_a_result_is_read_back_as_it_was(benchmark, tmp_path):
    store = Store(tmp_path / "r")
    (result,) = evaluated(benchmark, store)
    (back,) = store.results()
    assert back == result
    assert store.predictions(back).equals(result.predictions)


def test_nan_is_null_in_json_and_nan_when_read(benchmark, tmp_path):
    store = Store(tmp_path / "r")
    (result,) = evaluated(benchmark.first(1), store)
    assert math.isnan(result.metrics["pearson"].low)
    (path,) = (tmp_path / "r").glob("*.json")
    assert json.loads(path.read_text())["metrics"]["pearson"]["low"] is None
    (back,) = store.results()
    assert math.isnan(back.metrics["pearson"].low)
    assert back.metrics["pearson"].reason == "1 dialogues: no interval, which needs 5"


def test_what_stands_is_not_computed_again_unless_forced(benchmark, tmp_path):
    store = Store(tmp_path / "r")
    notes = []
    evaluated(benchmark, store, note=notes.append)
    evaluated(benchmark, store, note=notes.append)
    evaluated(benchmark, store, note=notes.append, force=True)
    evaluated(benchmark.first(3), store, note=notes.append)
    kept = ["existing result" in note for note in notes]
    assert kept == [False, True, False, False]
    assert len(list(store.results())) == 2


class Reversing(OrderedPairModel):
    """A model whose similarity depends on the order of the texts, which counts its pairs."""

    name = "reversing"

    def __init__(self, revision="1"):
        self.identity = {"kind": "test", "revision": revision}
        self.pairs = 0

    def environment(self):
        return {}

    def order_scores(self, left, right, progress):
        self.pairs += len(left)
        lengths = [(len(a) % 17, len(b) % 13) for a, b in zip(left, right, strict=True)]
        return np.array([(a / (1 + b), b / (1 + a)) for a, b in lengths])


def rescored(benchmark, add=0.0):
    """Return a benchmark with its items in another order and with other scores."""
    items = [replace(item, score=1 - item.score / 2 + add) for item in reversed(benchmark.items)]
    return replace(benchmark, name="rescored", items=tuple(items))


def test_predictions_are_compared_with_other_scores_without_the_model(benchmark, tmp_path):
    store, model, notes = Store(tmp_path / "r"), Reversing(), []
    tasks = [PairwiseSTS(resamples=5), PairwiseSTS("with", resamples=5)]
    list(run([model], tasks, benchmark, store))
    n_pairs = model.pairs
    assert n_pairs
    reused = list(run([model], tasks, rescored(benchmark), store, note=notes.append))
    assert model.pairs == n_pairs
    assert all("existing predictions" in note for note in notes)
    for task, result in zip(tasks, reused, strict=True):
        computed = evaluate_task(task, Reversing(), rescored(benchmark))
        assert result.document()["sha256"] == computed.document()["sha256"]
        assert store.predictions(result).equals(computed.predictions)
        assert result.environment["data"] == "rescored"
        assert store.find(result.model, result.task, result.signature) == result
    notes.clear()
    list(run([model], tasks, rescored(benchmark), store, note=notes.append))
    assert all("existing result" in note for note in notes)


def test_predictions_of_other_inputs_models_and_settings_are_not_used(benchmark, tmp_path):
    store, task = Store(tmp_path / "r"), PairwiseSTS(resamples=5)
    list(run([Reversing()], [task], benchmark, store))
    other = rescored(benchmark)
    first = other.items[0]
    other_text = replace(other, items=(replace(first, utterance="x"), *other.items[1:]))
    cases = {
        "text": (Reversing(), task, other_text),
        "items": (Reversing(), task, other.first(2)),
        "model": (Reversing("2"), task, other),
        "unknown content": (Reversing(None), task, other),
        "history": (Reversing(), PairwiseSTS("with", resamples=5), other),
        "force": (Reversing(), task, rescored(benchmark, add=-0.1)),
    }
    for name, (model, asked, data) in cases.items():
        list(run([model], [asked], data, store, force=name == "force"))
        assert model.pairs, name


def test_damaged_or_incomplete_predictions_are_computed_again(benchmark, tmp_path):
    store, model, task = Store(tmp_path / "r"), Reversing(), PairwiseSTS(resamples=5)
    (result,) = run([model], [task], benchmark, store)
    (table,) = (tmp_path / "r").glob("*.parquet")
    content = table.read_bytes()
    table.write_bytes(content[:-9])
    n_pairs = model.pairs
    list(run([model], [task], rescored(benchmark), store))
    assert model.pairs > n_pairs
    incomplete = result.predictions.with_columns(**dict.fromkeys(ORDERS, polars.lit(math.nan)))
    assert task.compare_again(incomplete, benchmark) is None


def test_a_result_whose_predictions_were_deleted_is_computed_again(benchmark, tmp_path):
    store = Store(tmp_path / "r")
    notes = []
    (result,) = evaluated(benchmark, store)
    (table,) = (tmp_path / "r").glob("*.parquet")
    table.unlink()
    assert store.find(result.model, result.task, result.signature) is None
    (again,) = evaluated(benchmark, store, note=notes.append)
    assert again.metrics == result.metrics
    assert notes == ["baseline:char-ngram: pairwise-sts ..."]
    assert store.predictions(again).equals(result.predictions)
    (path,) = (tmp_path / "r").glob("*.json")
    document = json.loads(path.read_text())
    del document["predictions_sha256"]  # as older results and those of other programs
    path.write_text(json.dumps(document))
    table.unlink()
    assert store.find(result.model, result.task, result.signature) is not None


def test_signature_does_not_depend_on_the_order_of_its_keys():
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": (1, 2), "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})


def test_a_crash_before_the_last_write_leaves_nothing_that_counts(benchmark, tmp_path, monkeypatch):
    store = Store(tmp_path / "r")
    replace = os.replace

    def crash(source, target):
        if str(target).endswith(".json"):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        evaluated(benchmark, store)
    monkeypatch.undo()
    assert [path.suffix for path in store.folder.iterdir()] == [".parquet"]
    assert list(store.results()) == []
    assert len(evaluated(benchmark, store)) == 1


@pytest.mark.parametrize("content", ["{", "[]", '{"model": "x"}', "null"])
def test_a_file_that_is_no_result_is_named(tmp_path, content):
    path = tmp_path / "a--b--c.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"a--b--c\.json: is not a result of giccs eval"):
        list(Store(tmp_path).results())


def test_a_number_that_was_changed_is_seen(benchmark, tmp_path):
    store = Store(tmp_path / "r")
    (result,) = evaluated(benchmark, store)
    (path,) = store.folder.glob("*.json")
    document = json.loads(path.read_text())
    document["metrics"]["pearson"]["value"] += 0.1
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="is not a result of giccs eval, or damaged"):
        evaluated(benchmark, store)
    del document["sha256"]  # as results of older versions have none
    path.write_text(json.dumps(document))
    (back,) = store.results()
    assert back.metrics["pearson"].value == pytest.approx(result.metrics["pearson"].value + 0.1)


def test_predictions_that_were_changed_are_seen(benchmark, tmp_path):
    store = Store(tmp_path / "r")
    (result,) = evaluated(benchmark, store)
    (path,) = store.folder.glob("*.parquet")
    whole = path.read_bytes()
    for place in range(0, len(whole), 41):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        with pytest.raises(
            InputError, match=r"\.parquet: contains no readable predictions .*--force"
        ):
            store.predictions(result)
    path.write_bytes(whole)
    assert store.predictions(result).equals(result.predictions)


def test_predictions_of_older_versions_are_read_without_a_digest(benchmark, tmp_path):
    store = Store(tmp_path / "r")
    (result,) = evaluated(benchmark, store)
    (path,) = store.folder.glob("*.json")
    document = json.loads(path.read_text())
    del document["predictions_sha256"], document["sha256"]
    path.write_text(json.dumps(document))
    assert store.predictions(result).equals(result.predictions)
    path.with_suffix(".parquet").write_bytes(b"no table")
    with pytest.raises(InputError, match="contains no readable predictions"):
        store.predictions(result)


def test_a_result_under_the_name_of_another_is_named(benchmark, tmp_path):
    store = Store(tmp_path / "r")
    evaluated(benchmark, store)
    evaluated(benchmark, store, "baseline:chance")
    first, second = sorted(store.folder.glob("*.json"))
    first.write_bytes(second.read_bytes())
    with pytest.raises(InputError, match=r"chance.*its content does not match its name"):
        list(store.results())


def test_folders_that_cannot_be(tmp_path, benchmark_file):
    with pytest.raises(InputError, match="is a file; expected a folder for results"):
        Store(benchmark_file)
    with pytest.raises(InputError, match="no such folder of results"):
        list(Store(tmp_path / "nowhere").results())


def test_every_format_shows_every_result(benchmark, tmp_path):
    store = Store(tmp_path / "r")
    results = evaluated(benchmark, store) + evaluated(benchmark, store, "baseline:chance")
    for form, mark in {
        "table": "-----", "markdown": "|-----", "latex": r"\toprule", "csv": "model,task",
    }.items():  # fmt: skip
        text = report(results, form)
        assert mark in text
        for result in results:
            assert result.model in text
    lines = report(results, "csv").splitlines()
    assert (
        len(lines) == 1 + 2 * 3 * 8
    )  # models × metrics × (whole + 2 lengths + 2 sources + 3 domains)
    value = results[0].metrics["pearson"].value
    assert f"{value!r}" in lines[1]
    assert f"{value:.3f}" in report(results, "table")


def test_results_on_different_data_never_share_a_table(benchmark, tmp_path):
    store = Store(tmp_path / "r")
    evaluated(benchmark, store)
    evaluated(benchmark.first(4), store)
    text = report(list(store.results()), "table")
    assert text.count(f"pairwise-sts on {benchmark.name}") == 2
    rows = [
        line.split()
        for line in text.splitlines()
        if line.startswith("baseline:") and "without" in line
    ]
    assert sorted(row[-1] for row in rows) == ["20", "30"]


def test_what_a_stranger_calls_model_and_task_stays_inside_the_folder(tmp_path):
    store = Store(tmp_path / "r")
    path = store.path("../../model", "../../etc/task", {})
    assert path.parent == tmp_path / "r"
    assert path.name.startswith("etc-task--model--")
