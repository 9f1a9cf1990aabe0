"""Every task on the page "Models": results of small models, and of tasks that are not installed."""

import itertools
import json
import math
import shutil

import numpy as np
import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from bws.base.tables import part_name
from bws.stats.estimates import Estimate
from giccs.evaluation.run import run
from giccs.measures.results import Group, Result, Store
from giccs.models import open_model
from giccs.report.measured import metric_tables
from giccs.tasks import TASKS, TaskOptions, open_tasks, result_kind
from giccs_app.explorer.models import metrics_page
from giccs_app.explorer.models.data import key

OTHERS = [task for task in TASKS if result_kind(task).tables == "metrics"]

CHECKS_CHARTS = True


class Letters:
    """Counts of letters as vectors; answers prompts with the number of their words."""

    identity = {"kind": "letters"}  # noqa: RUF012

    def __init__(self, name, letters):
        self.name, self.letters = name, letters

    def vectors(self, texts, progress):
        return np.array(
            [[1 + text.count(letter) for letter in self.letters] for text in texts], "f4"
        )

    def pair_scores(self, left, right, progress):
        return np.array([-abs(len(a) - len(b)) for a, b in zip(left, right, strict=True)], float)

    def generate(self, prompts, max_tokens, progress):
        return [str(1 + len(prompt) % 5) for prompt in prompts]

    def environment(self):
        return {}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Data for the tasks that have none of their own."""
    folder = tmp_path_factory.mktemp("data")
    words = ["".join(pair) for pair in itertools.product("abcdef", "ghij")]
    rated = [f"{a} {b} {n % 6}\n" for n, (a, b) in enumerate(itertools.combinations(words, 2))]
    (folder / "rated").mkdir()
    for name, rows in (("one", rated), ("two", rated[::-1])):
        (folder / "rated" / f"{name}.txt").write_text("".join(rows))
    (folder / "ranked").mkdir()
    (folder / "ranked" / "basic_vocab.txt").write_text("\n".join(words) + "\n")
    pairs = "".join(f"{a}\t{b}\n" for a, b in itertools.pairwise(words))
    (folder / "ranked" / "pos_pair.txt").write_text(pairs)
    return {
        "word-similarity": folder / "rated",
        "sentence-similarity": folder / "rated",
        "evalrank-word": folder / "ranked",
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory, data):
    """Two models before every task without views of its own, and a made-up task and classification."""
    folder = tmp_path_factory.mktemp("results")
    store = Store(folder)
    models = [Letters("few", "aeiou"), Letters("many", "abcdefghijkl")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GICCS_CACHE", str(tmp_path_factory.mktemp("cache")))
        for name in OTHERS:
            if name == "classification":  # its learner takes long
                continue
            (task,) = open_tasks(name, TaskOptions())
            read = task.read(str(data.get(name, task.default_data)))
            list(run(models, [task], read if name in data else read.first(6), store))
    (answered,) = open_tasks("csts", TaskOptions(condition=False))
    list(run(models[:1], [answered], answered.read("csts-sample").first(6), store))
    for n, model in enumerate(("few", "many")):
        accuracy = [Estimate(0.5 + n / 4, 0.4, 0.8, 20), Estimate(0.7, 0.6, 0.8, 30)]
        groups = tuple(
            Group({"set": name}, {"accuracy": one})
            for name, one in zip("AB", accuracy, strict=True)
        )
        mean = {"accuracy": Estimate(0.6 + n / 10, 0.5, 0.7, 2)}
        store.add(made_up("classification", model, mean, groups))
    return folder


def made_up(task, model, metrics, groups=(), **signature):
    said = {"task": task, "model": model, "data": "d" * 64, **signature}
    return Result(model, task, metrics, groups, said, {"data": "sets"}, 1.0)


def tables(app):
    return [pl.from_pandas(one.value) for one in app.dataframe]


def displayed(app):
    """Return the tables with the texts that are displayed."""
    return [displayed_table(one) for one in app.dataframe]


def displayed_table(one):
    texts = one.proto.arrow_data.styler.display_values
    return pl.read_ipc_stream(texts) if texts else pl.from_pandas(one.value)


def said(app):
    kinds = ("caption", "markdown", "info", "error", "warning")
    return "\n".join(str(one.value) for kind in kinds for one in getattr(app, kind))


def open_task(opened, folder, task, **link):
    link = {"page": "models", "task": task} | link
    return opened("--results", folder, **link)


def of_task(folder, task):
    return [result for result in Store(folder).results() if result.task == task]


@pytest.mark.parametrize("task", OTHERS)
def test_every_task_has_the_tables_of_the_report(opened, results, task):
    app = open_task(opened, results, task)
    assert not app.warning
    expected = metric_tables(of_task(results, task))
    for shown, table in zip(displayed(app), expected, strict=False):
        assert shown.columns == [column.key for column in table.columns]
        assert [[str(cell) for cell in row] for row in shown.rows()] == table.text_rows(missing="–")
    assert len(app.get("vega_lite_chart")) >= 1
    assert "All" not in said(app)


@pytest.mark.parametrize(
    "task", ["csts", *(pytest.param(t, marks=pytest.mark.nightly) for t in OTHERS if t != "csts")]
)
def test_in_german(opened, results, task):
    app = open_task(opened, results, task, lang="de")
    cells = [cell for cell in displayed(app)[0].row(0) if isinstance(cell, str) and "[" in cell]
    assert cells
    assert not any("." in cell for cell in cells)
    (metric,) = [one for one in app.selectbox if one.key == "any_metric"]
    assert metric.label == "Maß"


COLUMNS_OF_ITEMS = {
    "csts": ["error", "uid", "prediction", "label", "sentence1", "sentence2", "condition"],
    "csts-prompt": ["error", "uid", "prompt", "answer", "value", "valid", "label"],
    "evalrank-sentence": ["error", "anchor", "positive", "rank", "rank_pessimistic", "similarity"],
    "sentence-similarity": ["error", "set", "text1", "text2", "prediction", "score"],
}


@pytest.mark.parametrize("task", COLUMNS_OF_ITEMS)
def test_the_items_with_the_largest_errors_of_a_model(opened, results, task):
    (result, *_) = of_task(results, task)
    app = open_task(opened, results, task, model=key(result))
    items = tables(app)[-1]
    assert items.columns == COLUMNS_OF_ITEMS[task]
    assert items["error"].abs().is_sorted(descending=True)
    assert len(items) <= len(Store(results).predictions(result))
    assert "Items with the largest errors" in [one.value for one in app.subheader]


def test_missing_predictions_are_named(opened, results, tmp_path):
    folder = shutil.copytree(results, tmp_path / "results")
    for path in folder.glob("csts--*.parquet"):
        path.unlink()
    app = open_task(opened, folder, "csts")
    assert ".parquet" in app.error[0].value
    assert tables(app)[0].columns[0] == "model"


def test_all_tasks_can_be_chosen(opened, results):
    app = opened("--results", results, page="models")
    (task,) = [one for one in app.get("button_group") if one.key == "task"]
    assert [option.strip("`") for option in task.options] == OTHERS


def test_less_can_be_better(opened, results):
    app = open_task(opened, results, "uniformity", any_metric="uniformity")
    values = tables(app)[0]["uniformity"].to_list()
    assert values == sorted(values)
    assert "Lower is better" in said(app)


def test_settings_tell_results_of_one_model_apart(opened, results):
    table = tables(open_task(opened, results, "csts"))[0]
    rows = sorted(table.select("model", "setting").rows())
    assert rows == [("few", "bi"), ("few", "bi, no condition"), ("many", "bi")]


def test_the_chart_of_subsets_is_of_one_model_and_division(opened, results):
    (few,) = [one for one in of_task(results, "sentence-similarity") if one.model == "few"]
    app = open_task(opened, results, "sentence-similarity", division="set × level", model=key(few))
    expected = {
        part_name(group.by): group.metrics["spearman"].value
        for group in few.groups
        if set(group.by) == {"set", "level"}
    }
    charts = [json.loads(one.proto.spec) for one in app.get("vega_lite_chart")]
    assert [*expected] == charts[-1]["layer"][-1]["encoding"]["y"]["sort"]


def test_one_data_set_at_a_time(opened, tmp_path):
    store = Store(tmp_path)
    for n, content in enumerate("ab"):
        metrics = {"f1": Estimate(n / 2, n / 2, 1.0, 10)}
        store.add(made_up("of another package", "m", metrics, data=content * 64))
    app = open_task(opened, tmp_path, "of another package", data_set="b" * 12)
    assert displayed(app)[0]["f1"].to_list() == ["0.500 [0.500, 1.000]"]
    (data_set,) = [one for one in app.selectbox if one.key == "data_set"]
    assert data_set.options == ["sets (aaaaaa)", "sets (bbbbbb)"]
    table = displayed(open_task(opened, tmp_path, "of another package"))[0]
    assert table["f1"].to_list() == ["0.000 [0.000, 1.000]"]


def test_a_task_that_is_not_installed_has_names_as_they_are(opened, tmp_path, hostile_texts):
    task, model = hostile_texts[0], hostile_texts[2]
    metrics = {hostile_texts[1]: Estimate(0.5, 0.25, 0.75, 10, hostile_texts[3])}
    Store(tmp_path).add(made_up(task, model, metrics))
    app = open_task(opened, tmp_path, task)
    assert tables(app)[0]["model"].to_list() == [model]
    for text in (one.value for one in app.caption):
        if hostile_texts[3] in text:
            assert text.startswith("`` ")
            assert text.endswith(" ``")


def test_without_numbers_there_is_no_chart(opened, tmp_path):
    hidden = {"spearman": Estimate(math.nan, math.nan, math.nan, 0, "labels are hidden")}
    Store(tmp_path).add(made_up("csts", "m", hidden))
    app = open_task(opened, tmp_path, "csts")
    assert "labels are hidden" in said(app)
    assert not app.get("vega_lite_chart")


def test_the_page_of_errors_leaves_them_out_and_says_so(opened, results):
    app = opened("--results", results, page="errors")
    n = len(list(Store(results).results()))
    assert f"Results of tasks with data of their own, shown on the page Models only: {n}" in said(
        app
    )


def test_frames_by_hand():
    groups = (
        Group({"set": "A"}, {"f1": Estimate(0.25, 0.0, 0.5, 5)}),
        Group({"set": "A", "level": 1}, {"f1": Estimate(0.5, 0.0, 1.0, 2)}),
        Group({"set": "B"}, {"other": Estimate(0.5, 0.0, 1.0, 2)}),
    )
    one = made_up("t", "m", {"f1": Estimate(0.75, 0.5, 1.0, 10)}, groups, setting="fast")
    assert metrics_page.subset_metrics([one], "f1", ("set",)).rows() == [
        (key(one), "m", "set=A", 0.25, 0.0, 0.5, 5, "")
    ]
    frame = metrics_page.long_frame([one])
    assert frame.filter(pl.col("part") == "set=A;level=1").select(
        "value", "low", "high"
    ).rows() == [(0.5, 0.0, 1.0)]


def test_results_of_one_task_may_have_different_metrics(opened, tmp_path):
    store = Store(tmp_path)
    store.add(made_up("t", "m", {"f1": Estimate(0.75, 0.5, 1.0, 10)}, setting="fast"))
    store.add(made_up("t", "n", {"f2": Estimate(0.25, 0.125, 0.5, 10)}))
    table = displayed(open_task(opened, tmp_path, "t", any_metric="f2"))[0]
    assert table["model"].to_list() == ["n", "m"]
    assert table["f2"].to_list() == ["0.250 [0.125, 0.500]", "–"]


def test_a_baseline_of_the_sample_is_among_them(opened, tmp_path):
    (task,) = open_tasks("csts")
    model = open_model("baseline:char-ngram")
    list(run([model], [task], task.read("csts-sample").first(6), Store(tmp_path)))
    app = open_task(opened, tmp_path, "csts")
    assert tables(app)[0]["model"].to_list() == [model.name]
    assert "Data set: `csts-sample (validation)`" in said(app)
