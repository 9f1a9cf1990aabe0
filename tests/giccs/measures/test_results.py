"""Results on disk: whole or not at all, found again by signature."""

import json
import math
import os

import pytest

from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Store, digest
from giccs.models import open_model
from giccs.report import report
from giccs.tasks.pairwise import PairwiseSTS


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
