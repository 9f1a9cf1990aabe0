"""Filters, further metrics and ties of leaderboards: compared with the comparison of the report."""

import math
import time

import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from bws.stats.estimates import Estimate
from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Result, Store
from giccs.models import open_model
from giccs.prompts import open_template
from giccs.report.model_comparison import compare
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer.models import filters
from giccs_app.explorer.models.data import key, kind_of


class Lengths:
    """Finds texts of similar length similar."""

    def __init__(self, name, kind, scale):
        self.name, self.scale, self.identity = name, scale, {"kind": kind}

    def pair_scores(self, left, right, progress):
        import numpy as np

        return np.array(
            [-(abs(len(a) - len(b)) ** self.scale) for a, b in zip(left, right, strict=True)], float
        )

    def environment(self):
        size = {"parameters": 7_000_000 if self.scale == 1 else 7_000_000_000}
        return size | ({"license": "mit"} if self.scale == 1 else {})


@pytest.fixture(scope="module")
def results(tmp_path_factory, formula):
    folder = tmp_path_factory.mktemp("results")
    sample, store = read_benchmark("giccs-sample"), Store(folder)
    models = [
        open_model("baseline:char-ngram"),
        open_model("baseline:chance"),
        Lengths("org/Lengths-large", "encoder", 1.0),
        Lengths("cross-encoder:org/lengths", "cross-encoder", 0.5),
    ]
    list(run(models, [PairwiseSTS(resamples=0)], sample, store))
    letters = [
        formula(f"causal:{letter}", lambda option, letter=letter: option.count(letter) - 9.0)
        for letter in "en"
    ]
    task = MultipleChoice(open_template("figure2-de-1"), resamples=0)
    list(run(letters, [task], sample, store))
    return folder


@pytest.fixture
def opened(opened):
    def open_view(folder, **link):
        return opened("--results", folder, **{"page": "models"} | link)

    return open_view


def table(app):
    return pl.from_pandas(app.dataframe[0].value)


def said(app):
    return "\n".join(str(each.value) for kind in ("caption", "info") for each in getattr(app, kind))


@pytest.mark.parametrize(
    ("link", "models"),
    [
        ({"model_name": "LENGTHS org"}, {"org/Lengths-large", "cross-encoder:org/lengths"}),
        ({"model_kind": "baseline"}, {"baseline:char-ngram", "baseline:chance"}),
        ({"model_kind": ["encoder", "cross-encoder"], "model_name": "large"}, {"org/Lengths-large"}),
        ({"model_size": "1–10 B"}, {"cross-encoder:org/lengths"}),
        ({"model_size": ["≤ 100 M", "1–10 B"], "model_license": "mit"}, {"org/Lengths-large"}),
    ],
    ids=["name", "kind", "both", "size", "licence"],
)  # fmt: skip
def test_the_filter_is_in_the_link(opened, results, link, models):
    app = opened(results, **link)
    assert set(table(app)["model"]) == models
    assert f"{len(models)} of 4" in said(app)
    assert not app.warning


def test_the_filter_is_written_to_the_link_and_holds_in_all_views(opened, results):
    app = opened(results)
    assert len(table(app)) == 4
    app.text_input(key="model_name").set_value("lengths").run()
    app.multiselect(key="model_kind").set_value(["encoder"]).run()
    assert app.query_params["model_name"] == "lengths"
    assert table(app)["model"].to_list() == ["org/Lengths-large"]
    app.button_group(key="view").set_value("predictions").run()
    assert app.selectbox(key="model").options == ["org/Lengths-large · without history"]


def test_sizes_and_licences_are_filters_where_results_state_them(opened, results, tmp_path):
    app = opened(results)
    options = {name: app.multiselect(key=name).options for name in ("model_size", "model_license")}
    assert options == {"model_size": ["≤ 100 M", "1–10 B"], "model_license": ["mit"]}
    sample = read_benchmark("giccs-sample")
    list(run([open_model("baseline:chance")], [PairwiseSTS(resamples=0)], sample, Store(tmp_path)))
    keys = {widget.key for widget in opened(tmp_path).multiselect}
    assert keys >= {"model_kind"}
    assert not keys & {"model_size", "model_license"}


def test_without_a_match_there_is_a_sentence(opened, results):
    app = opened(results, model_name="nothing", lang="de")
    assert "Kein Ergebnis entspricht dem Filter." in said(app)
    assert "0 von 4" in said(app)
    assert not app.dataframe


def test_kinds_of_the_other_task_are_valid_in_a_link(opened, results):
    app = opened(results, task="multiple-choice-sts", model_kind="baseline")
    assert not app.warning
    assert "0 of 2" in said(app)


@pytest.mark.parametrize("metric", ["spearman", "rank_spearman"])
def test_ties_and_ranks_are_those_of_the_report(opened, results, metric):
    store = Store(results)
    pairs = [store.with_predictions(each) for each in store.results() if each.task[0] == "p"]
    boards = [each for each in compare(pairs).leaderboards if each.metric == metric]
    app = opened(results, metric=metric)
    rows = table(app).select("model", "history", "ties", "ranks").rows()
    assert sorted(rows) == sorted(
        (
            each.model,
            f"{board.history} history",
            "†" if index and not board.pair(0, index).is_significant else "",
            f"{each.rank_low}–{each.rank_high}",
        )
        for board in boards
        for index, each in enumerate(board.models)
    )
    assert "not significantly different from the best model with the same history" in said(app)
    assert "ties" not in table(opened(results, metric="pearson")).columns


def test_ties_of_multiple_choice_are_by_history(opened, results):
    store = Store(results)
    choices = [store.with_predictions(each) for each in store.results() if each.task[0] == "m"]
    boards = compare(choices).leaderboards
    rows = table(opened(results, task="multiple-choice-sts"))
    expected = {(each.model, each.history): each for board in boards for each in board.models}
    best = [board.models[0] for board in boards]
    assert len(expected) == len(rows)
    for row in rows.rows(named=True):
        model = expected[f"{row['model']} (figure2-de-1)", row["history"].split()[0]]
        assert row["ranks"] == f"{model.rank_low}–{model.rank_high}"
        assert (row["ties"] == "†") == (model.ties_first and model not in best)


def test_further_metrics_are_beside_the_main_one(opened, results):
    app = opened(results, metrics=["pearson", "rank_spearman"])
    rows = table(app)
    by_key = {each.model: each for each in Store(results).results() if each.task[0] == "p"}
    for row in rows.rows(named=True):
        for name in ("pearson", "rank_spearman"):
            value = by_key[row["model"]].metrics[name].value
            assert row[name].split()[0] == ("" if math.isnan(value) else f"{value:.3f}")
    german = table(opened(results, metrics="pearson", lang="de"))
    assert not german["pearson"].str.contains(r"\.").any()
    measures = table(opened(results, task="multiple-choice-sts", measures="accuracy_bytes"))
    assert measures["accuracy_bytes"].str.contains(r"\[0\.\d{3}, 0\.\d{3}\]").all()


def test_files_have_the_rows_that_are_shown_with_all_limits(opened, results, monkeypatch):
    offered = {}
    monkeypatch.setattr(
        filters, "show_table", lambda frame, name, files, **settings: offered.update({name: files})
    )
    opened(results, metrics="pearson", model_kind="baseline")
    (frame,) = offered.values()
    assert len(frame) == 2
    assert {"value", "low", "high", "pearson", "pearson_low", "pearson_high", "ranks"} < set(
        frame.columns
    )


def test_many_results_are_compared_on_request(opened, results, monkeypatch):
    monkeypatch.setattr(filters, "MAX_RESULTS_AT_ONCE", 3)
    assert "ranks" not in table(opened(results)).columns
    assert "ranks" in table(opened(results, compare="yes")).columns
    assert "ranks" in table(opened(results, model_name="lengths")).columns


def test_results_without_predictions_are_listed_without_a_rank(opened, results, tmp_path):
    for path in results.glob("pairwise*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for path in [*results.glob("pairwise*.parquet")][1:]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    app = opened(tmp_path)
    assert table(app)["ranks"].null_count() == 1
    assert "Without a rank: 1 (its predictions are missing)." in said(app)


def test_the_kind_is_that_of_the_signature_or_of_the_name():
    def result(model, **signature):
        return Result(model, "t", {}, (), signature, {}, 1.0)

    assert kind_of(result("package:minilm", kind="encoder")) == "encoder"
    assert kind_of(result("chat:gpt")) == "chat"
    assert kind_of(result("org/model")) == ""


def test_a_hundred_results_are_shown_quickly(opened, tmp_path):
    estimate = {name: Estimate(0.5, 0.4, 0.6, 300) for name in ("spearman", "pearson")}
    data = read_benchmark("giccs-sample").fingerprint
    for n in range(100):
        signature = {"data": data, "kind": "encoder", "n": n, "history": "with"}
        Store(tmp_path).add(Result(f"m{n}", "pairwise-sts", estimate, (), signature, {}, 1.0))
    app = opened(tmp_path)
    assert len(table(app)) == 100
    start = time.process_time()  # unlike the elapsed time, the same on a busy machine
    app.text_input(key="model_name").set_value("m9").run()
    assert time.process_time() - start < 5  # 0.3 s
    assert len(table(app)) == 11


def test_rows_are_identified_by_their_keys(results):
    store = Store(results)
    pairs = [store.with_predictions(each) for each in store.results() if each.task[0] == "p"]
    for board in compare(pairs).leaderboards:
        keys = {key(each): each.model for each in pairs}
        assert all(keys[row.key] == row.model for row in board.models)
