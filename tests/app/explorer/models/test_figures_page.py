"""The view "Figures": what it shows of results of baselines, and of a formula in multiple choice."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.prompts import open_template
from giccs.report.model_comparison import compare
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.pairwise import PairwiseSTS

CHECKS_CHARTS = True


@pytest.fixture(scope="module")
def results(tmp_path_factory, formula):
    folder = tmp_path_factory.mktemp("results")
    sample, store = read_benchmark("giccs-sample"), Store(folder)
    baselines = [open_model("baseline:char-ngram"), open_model("baseline:chance")]
    tasks = [PairwiseSTS(history, resamples=0) for history in ("without", "with")]
    list(run(baselines, tasks, sample, store))
    task = MultipleChoice(open_template("figure2-de-1"), resamples=0)
    list(run([formula("long", lambda option: len(option) / 30 - 9)], [task], sample, store))
    return folder


@pytest.fixture
def opened(opened):
    def open_view(folder, **link):
        return opened("--results", folder, **{"page": "models", "view": "figures"} | link)

    return open_view


def texts(app):
    kinds = ("caption", "markdown", "info", "error", "warning")
    return "\n".join(str(element.value) for kind in kinds for element in getattr(app, kind))


def table(app):
    return pl.from_pandas(app.dataframe[0].value)


@pytest.mark.parametrize(
    ("metric", "history"),
    [
        ("spearman", "with"),
        ("rank_spearman", "without"),
        pytest.param("spearman", "without", marks=pytest.mark.nightly),
        pytest.param("rank_spearman", "with", marks=pytest.mark.nightly),
    ],
)
def test_differences_are_those_of_the_command(opened, results, metric, history):
    store = Store(results)
    pairs = [store.with_predictions(each) for each in store.results() if each.task[0] == "p"]
    (board,) = [
        each
        for each in compare(pairs).leaderboards
        if (each.metric, each.history) == (metric, history)
    ]
    rows = table(opened(results, figure="differences", metric=metric, history=history)).rows(
        named=True
    )
    assert len(rows) == len(board.pairs) == 1
    for row, pair in zip(rows, board.pairs, strict=True):
        first = board.models[pair.first]
        assert row["first"] == f"{first.model} ({first.history} history)"
        assert row["verdict"] == ("differ (5 %)" if pair.is_significant else "not significant")
        for name in ("value", "low", "high", "p_holm"):
            assert row[name] == getattr(pair, name)


def test_the_first_figure_has_the_ranks_of_all_models(opened, results, monkeypatch):
    app = opened(results, lang="de")
    rows = table(app)
    assert rows["rank_low"].to_list() == [1, 2]
    assert rows["model"].str.ends_with("(ohne Verlauf)").all()
    (chart,) = app.get("vega_lite_chart")
    assert "nicht signifikant schlechter als das beste" in chart.proto.spec
    monkeypatch.setattr("giccs_app.explorer.models.figures_page.MAX_MODELS", 1)
    app = opened(results)
    assert "the best 1 of 2 models" in texts(app)
    assert app.multiselect("further").options == [table(app)["model"][1]]


def test_the_pairs_of_one_model_are_in_the_link(opened, results):
    app = opened(results, figure="differences", pairs_of="1", lang="de")
    rows = table(app)
    assert len(rows) == 1
    assert all(name.endswith("(ohne Verlauf)") for name in rows.row(0)[:2])
    assert set(rows["verdict"]) <= {"verschieden (5 %)", "nicht signifikant"}


def test_subsets_show_all_models(opened, results):
    app = opened(results, figure="subsets", by="source", metric="pearson")
    rows = table(app)
    (stored,) = [
        each
        for each in Store(results).results()
        if (each.model, each.signature.get("history")) == ("baseline:chance", "with")
    ]
    expected = {
        g.by["source"]: g.metrics["pearson"].value for g in stored.groups if "source" in g.by
    }
    chance = rows.filter(pl.col("model") == "baseline:chance (with history)")
    assert dict(zip(chance["subset"], chance["value"], strict=True)) == expected
    assert len(rows) == 4 * len(expected)


@pytest.mark.parametrize("history", ["with", "without"])
def test_calibration_is_that_of_a_plain_loop(opened, results, history):
    link = {"task": "multiple-choice-sts", "choices": "figures", "figure": "calibration"}
    app = opened(results, **link, history=history)
    (stored,) = [r for r in Store(results).results() if r.model == "long"]
    predictions = Store(results).predictions(stored).filter(pl.col("history") == history)
    confidence, correct = [], []
    for _, question in predictions.group_by("dialogue_id", maintain_order=True):
        options = question.group_by("utterance_id", maintain_order=True).agg(
            pl.mean("logprob"), pl.first("gold")
        )
        weights = np.exp(options["logprob"].to_numpy())
        confidence.append(weights.max() / weights.sum())
        correct.append(options["gold"][int(weights.argmax())])
    bins = np.minimum((np.array(confidence) * 10).astype(int), 9)
    gaps = [
        np.mean(bins == each)
        * abs(
            np.mean(np.array(correct)[bins == each]) - np.mean(np.array(confidence)[bins == each])
        )
        for each in set(bins)
    ]
    assert f"error **{sum(gaps):.3f}** over {len(bins)} questions" in texts(app)
    assert table(app)["n"].sum() == len(bins)


def test_a_missing_file_of_predictions_is_named(opened, results, tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    for path in results.glob("pairwise*"):
        (folder / path.name).write_bytes(path.read_bytes())
    _, *others = sorted(folder.glob("*.parquet"))
    for path in others:
        path.unlink()
    app = opened(folder)
    assert "its predictions are missing" in texts(app)
    assert "no two results on the same items" in texts(app)


def test_prompts_are_a_range_per_model(opened, results, tmp_path):
    assert "No model has results with several prompts" in texts(opened(results, figure="prompts"))
    store, source = Store(tmp_path / "results"), Store(results)
    values = []
    for name in ("q", "p"):
        for each in source.results():
            if each.task == "pairwise-sts" and each.signature["history"] == "without":
                prompt = {"prompt": {"name": f"{name}", "target": name, "candidate": name}}
                store.add(replace(source.with_predictions(each), signature=each.signature | prompt))
                values.append(each.metrics["spearman"].value)
    rows = table(opened(store.folder, figure="prompts", lang="de"))
    assert rows["prompts"].to_list() == [2, 2]
    assert set(rows["minimum"]) == set(values)
    assert rows["minimum"].to_list() == rows["maximum"].to_list()
