"""Results of a folder: on the benchmark, on a part of it, on other data, and damaged files."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from bws.base.problems import InputError
from bws.stats.estimates import Estimate
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.evaluation.run import run
from giccs.measures.results import Result, Store
from giccs.models import open_model
from giccs.prompts import open_template
from giccs.tasks import open_tasks
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer.results import on_subset, results_of
from giccs_app.explorer.space import write_space
from giccs_app.explorer.study import load

SAMPLE = read_benchmark("giccs-sample")
OTHER = replace(
    SAMPLE,
    name="other.jsonl",
    items=tuple(
        Item(f"x{d}-{n}", f"x{d}", "s", "tv", (Turn("", "Ja?"), Turn("", "Hallo")), f"x{d}-{n}",
             f"Tag {n}", n / 4)
        for d in range(5) for n in range(5)
    ),
)  # fmt: skip


def some(name, ids):
    """Return the dialogues of the sample with these ids."""
    items = tuple(item for item in SAMPLE.items if item.dialogue_id in ids)
    return replace(SAMPLE, name=name, items=items)


def changed(name, dialogues, **changes):
    """Return the first dialogues of the sample, with changes to each item."""
    items = [
        replace(item, **{key: change(item) for key, change in changes.items()})
        for item in SAMPLE.first(dialogues).items
    ]
    return replace(SAMPLE, name=name, items=tuple(items))


def pairwise(data, folder, model="baseline:char-ngram"):
    list(run([open_model(model)], [PairwiseSTS(resamples=0)], data, Store(folder)))


def said(app):
    kinds = ("caption", "markdown", "info", "error", "warning")
    return "\n".join(str(element.value) for kind in kinds for element in getattr(app, kind))


def test_new_results_appear(tmp_path):
    study = load(results=str(tmp_path))
    assert results_of(study).results == ()
    pairwise(SAMPLE, tmp_path)
    found = results_of(study)
    assert [result.model for result in found.results] == ["baseline:char-ngram"]
    assert (found.problems, found.hidden, found.subsets) == ((), (), {})
    assert study.store.predictions(found.results[0]).height == 300


@pytest.mark.parametrize("task", ["pairs", "choices"])
def test_results_on_some_dialogues_are_shown_with_their_items(tmp_path, formula, task):
    few = some("few.jsonl", SAMPLE.dialogue_ids[3::9])
    study = load(results=str(tmp_path))
    if task == "pairs":
        pairwise(few, tmp_path)
    else:
        mc = MultipleChoice(open_template("figure2-de-1"), resamples=0)
        list(run([formula("short", lambda option: -len(option) / 9)], [mc], few, Store(tmp_path)))
    found = results_of(study)
    (result,) = found.results
    part = found.subsets[result.signature["data"]]
    assert part.items == few.items
    partial = on_subset(study, part)
    assert partial.items["item_id"].to_list() == [item.item_id for item in few.items]
    assert partial.key != study.key
    assert set(partial.turns) == set(few.dialogue_ids)


@pytest.mark.parametrize(
    ("data", "reason", "shared", "total"),
    [
        (OTHER, "other_data", 0, 25),
        (changed("v0", 60, score=lambda item: 1 - item.score), "other_version", 300, 300),
        (changed("v1", 7, utterance=lambda item: f"{item.utterance}!"), "other_version", 35, 35),
        (replace(OTHER, items=(*OTHER.items, *SAMPLE.items[:10])), "partly_other", 10, 35),
    ],
    ids=["other", "scores", "texts", "partly"],
)  # fmt: skip
def test_the_reason_for_hiding_a_result(tmp_path, data, reason, shared, total):
    pairwise(data, tmp_path)
    found = results_of(load(results=str(tmp_path)))
    assert (found.results, found.problems) == ((), ())
    (hidden,) = found.hidden
    assert (hidden.reason, hidden.shared, hidden.total) == (reason, shared, total)
    for path in tmp_path.glob("*.parquet"):
        path.unlink()
    (hidden,) = results_of(load(results=str(tmp_path))).hidden
    assert hidden.reason == "no_ids"


def test_a_changed_file_of_predictions_is_compared_again(tmp_path):
    pairwise(OTHER, tmp_path)
    study = load(results=str(tmp_path))
    assert results_of(study).hidden[0].reason == "other_data"
    (path,) = tmp_path.glob("*.parquet")
    path.unlink()
    assert results_of(study).hidden[0].reason == "no_ids"


def test_both_data_are_named_on_the_page(opened, tmp_path):
    pairwise(OTHER, tmp_path)
    for link, sentence in (
        ({}, "Other data: computed on other.jsonl, shown is giccs-sample. No item is in both."),
        ({"lang": "de"}, "Andere Daten: berechnet auf other.jsonl, gezeigt wird giccs-sample."),
    ):
        app = opened("--results", tmp_path, page="models", **link)
        assert sentence in app.dataframe[0].value["reason"][0]
        assert app.dataframe[0].value["model"][0] == "baseline:char-ngram"


def test_a_part_is_shown_beside_the_whole_benchmark(opened, tmp_path):
    write_benchmark(SAMPLE.items, tmp_path / "all.jsonl")
    few = some("few.jsonl", SAMPLE.dialogue_ids[:12])
    results = tmp_path / "results"
    pairwise(few, results)
    app = opened("--results", results, page="models")
    assert "for 12 of the 60 dialogues of the benchmark (`few.jsonl`)" in said(app)
    assert len(app.dataframe[0].value) == 1
    for model in ("baseline:char-ngram", "baseline:chance"):
        pairwise(SAMPLE, results, model)
    app = opened("--results", results, page="models")
    assert "of the 60 dialogues" not in said(app)
    assert len(app.dataframe[0].value) == 2
    (widget,) = [each for each in app.selectbox if each.key == "data_set"]
    assert widget.options == ["giccs-sample", "few.jsonl (12 of 60 dialogues)"]
    app = opened(
        "--results", results, page="models", view="predictions", data_set=few.fingerprint[:12]
    )
    assert "for 12 of the 60 dialogues" in said(app)
    assert "without a valid prediction" not in said(app)
    app = opened("--results", results, page="errors", data_set=few.fingerprint[:12])
    assert "60 of 60" in said(app)  # items


NO_SIGNATURE = {
    "model": "m", "task": "t", "metrics": {}, "groups": [], "signature": [], "environment": {},
    "seconds": 1,
}  # fmt: skip
NO_ENVIRONMENT = {**NO_SIGNATURE, "signature": {}, "environment": "x"}
WRONG_NAME = {**NO_SIGNATURE, "signature": {}}
DOCUMENTS = [*map(json.dumps, (NO_SIGNATURE, NO_ENVIRONMENT, WRONG_NAME))]


@pytest.mark.parametrize("content", ["", "[]", *DOCUMENTS, '{"model": 1}', "[" * 100_000, "\xff"])
def test_a_broken_result_is_named_and_the_others_are_shown(tmp_path, content):
    pairwise(SAMPLE, tmp_path)
    (tmp_path / "pairwise-sts--m--0.json").write_bytes(content.encode("latin-1"))
    found = results_of(load(results=str(tmp_path)))
    assert [result.model for result in found.results] == ["baseline:char-ngram"]
    assert "pairwise-sts--m--0.json" in found.problems[0].file


def test_a_result_without_metrics_is_named(opened, tmp_path):
    signature = {"task": "t", "model": "m", "data": "d"}
    Store(tmp_path).add(Result("m", "t", {}, (), signature, {}, 1.0))
    estimate = {"f1": Estimate(0.5, 0.25, 0.75, 9)}
    Store(tmp_path).add(Result("n", "t", estimate, (), signature | {"model": "n"}, {}, 1.0))
    app = opened("--results", tmp_path, page="models")
    assert "has no metrics" in app.error[0].value
    assert "n" in app.dataframe[0].value["model"].to_list()


def test_messages_do_not_show_the_folder_of_uploads(opened, tmp_path):
    folder = tmp_path / "giccs-explorer-a1" / "x7"
    pairwise(SAMPLE, folder)
    (folder / "pairwise-sts--broken--0.json").write_text("{")
    data = folder / "mine.jsonl"
    write_benchmark(SAMPLE.items[:5], data)
    for page in ("models", "errors", "overview"):
        app = opened("--data", data, "--results", folder, page=page)
        assert "giccs-explorer-a1" not in said(app)
        for table in app.dataframe:
            assert not table.value.astype(str).stack().str.contains("giccs-explorer-a1").any()
    assert "mine.jsonl" in said(app)
    for path in folder.iterdir():
        path.unlink()
    app = opened("--results", folder, page="models")
    assert "The uploaded files contain no results for this benchmark (`giccs-sample`)." in said(app)


def test_data_of_another_task_are_explained_and_their_results_shown(opened, tmp_path):
    (csts,) = open_tasks("csts")
    model = open_model("baseline:char-ngram")
    for data in (csts.read("csts-sample").first(9), csts.read("csts-sample")):
        list(run([model], [csts], data, Store(tmp_path)))
    pairwise(SAMPLE, tmp_path)
    arguments = ("--data", "csts-sample", "--results", tmp_path)
    for page in ("overview", "dialogues", "annotation", "errors"):
        app = opened(*arguments, page=page)
        assert (
            "`csts-sample` has no dialogues: it is data of the tasks `csts`, `csts-prompt`"
            in said(app)
        )
        assert not app.error
        assert not app.dataframe
    app = opened(*arguments, page="models", task="csts")
    assert "shown is csts-sample" in app.dataframe[0].value["reason"][0]
    (widget,) = [each for each in app.selectbox if each.key == "data_set"]
    assert widget.value == csts.read("csts-sample").fingerprint[:12]
    assert app.dataframe[1].value["n"].to_list() == [120]
    assert "keine Dialoge" in said(opened(*arguments, lang="de"))


@pytest.mark.parametrize("content", ["", "{}", "sentence1,sentence2\na,b\n"])
def test_a_broken_benchmark_is_not_data_of_another_task(opened, tmp_path, content):
    data = tmp_path / "broken.jsonl"
    data.write_text(content)
    app = opened("--data", data)
    assert "broken.jsonl" in app.error[0].value
    assert "has no dialogues" not in said(app)


def test_a_space_needs_a_benchmark(tmp_path):
    with pytest.raises(InputError, match="data of csts, csts-prompt; expected a benchmark"):
        write_space(tmp_path / "space", "csts-sample")
    assert not (tmp_path / "space").exists()


def test_a_missing_folder_of_results_is_named(tmp_path):
    (problem,) = results_of(load(results=str(tmp_path / "nowhere"))).problems
    assert "no such folder" in problem.message
