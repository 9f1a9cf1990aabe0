"""The page about models, run by Streamlit's own app tester on results of real baselines.

A model that is a formula stands for a language model in multiple choice: what is tested is the page.
"""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

import giccs
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.evaluation.run import run
from giccs.measures.comparison import paired_correlations
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.prompts import open_template
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer.models import pairwise_page as models_scoring
from giccs_app.explorer.models.data import key

CHECKS_CHARTS = True


@pytest.fixture(scope="module")
def results(tmp_path_factory, formula):
    """Two baselines with and without history, and two formulas that choose."""
    folder = tmp_path_factory.mktemp("results")
    sample, store = read_benchmark("giccs-sample"), Store(folder)
    baselines = [open_model("baseline:char-ngram"), open_model("baseline:chance")]
    tasks = [PairwiseSTS(history, resamples=20) for history in ("without", "with")]
    list(run(baselines, tasks, sample, store))
    formulas = [
        formula(name, lambda option, sign=sign: sign * len(option) / 9 - 99)
        for name, sign in (("short", -1), ("long", 1))
    ]
    list(
        run(formulas, [MultipleChoice(open_template("figure2-de-1"), resamples=20)], sample, store)
    )
    return folder


@pytest.fixture
def opened(opened):
    def open_page(folder, *, data="giccs-sample", **link):
        results = ["--results", folder] if folder else []
        return opened("--data", data, *results, **{"page": "models"} | link)

    return open_page


def stored(folder, model, **signature):
    (found,) = [
        result
        for result in Store(folder).results()
        if result.model == model and signature.items() <= result.signature.items()
    ]
    return found


def chosen(app, name, value):
    """Choose in a widget of a name, whatever its kind."""
    (widget,) = [
        one
        for kind in ("selectbox", "button_group", "toggle")
        for one in app.get(kind)
        if one.key == name
    ]
    widget.set_value(value).run()
    assert not app.exception
    assert name not in [warning.value for warning in app.warning]


def test_models_without_a_value_and_ceiling_have_a_reason(tmp_path, opened):
    sample = read_benchmark("giccs-sample")
    items = [replace(item, score=round(item.score / 2, 3)) for item in sample.items[:50]]
    write_benchmark(items, tmp_path / "b.jsonl")
    giccs.evaluate(
        lambda left, right: np.full(len(left), 0.5), tmp_path / "b.jsonl", task="pairwise-sts",
        name="constant", folder=tmp_path / "results",
    )  # fmt: skip
    app = opened(tmp_path / "results", data=str(tmp_path / "b.jsonl"))
    assert not app.exception
    assert "constant" in said(app)


def said(app):
    kinds = ("caption", "markdown", "info", "error", "warning", "code")
    return "\n".join(str(one.value) for kind in kinds for one in getattr(app, kind))


def shown(app, place=0):
    return pl.from_pandas(app.dataframe[place].value)


def test_the_leaderboard_shows_what_is_stored_by_each_metric(opened, results):
    app = opened(results)
    ngram = stored(results, "baseline:char-ngram", history="without")
    for metric in ("spearman", "pearson", "rank_spearman"):
        chosen(app, "metric", metric)
        table = shown(app)
        assert len(table) == 4
        assert table["value"].is_sorted(descending=True)
        row = table.filter(model="baseline:char-ngram", history="without history")
        assert row["value"].item() == ngram.metrics[metric].value
    assert "No noise ceiling for the within-dialogue correlation" in said(app)
    assert app.query_params["metric"] == "rank_spearman"


def test_one_model_is_chosen_by_a_link_and_by_hand(opened, results):
    chance = stored(results, "baseline:chance", history="with")
    app = opened(results, view="predictions", model=key(chance))
    assert f"{chance.metrics['pearson'].value:.3f}" in said(app)
    ngram = stored(results, "baseline:char-ngram", history="with")
    chosen(app, "model", key(ngram))
    assert f"{ngram.metrics['pearson'].value:.3f}" in said(app)
    (widget,) = [one for one in app.selectbox if one.key == "model"]
    assert "baseline:chance · without history" in widget.options


def test_parts_are_shown_for_both_histories(opened, results):
    app = opened(results, view="parts")
    for by, parts in (("domain", 6), ("n_turns", 2), ("source", 2)):
        chosen(app, "by", by)
        assert len(shown(app)) == 2 * parts
        assert set(shown(app)["history"]) == {"with history", "without history"}


def test_histories_are_compared_on_the_same_items(opened, results):
    app = opened(results, view="histories", metric="pearson")
    table = shown(app)
    assert len(table) == 2
    row = table.filter(model="baseline:char-ngram").row(0, named=True)
    assert row["value"] == pytest.approx(row["with"] - row["without"], abs=1e-12)
    assert row["low"] < row["value"] < row["high"]


def test_two_models_are_compared_and_their_items_listed(opened, results):
    ngram = stored(results, "baseline:char-ngram", history="without")
    chance = stored(results, "baseline:chance", history="without")
    app = opened(results, view="against", first=key(ngram), second=key(chance))
    tables = [Store(results).predictions(one)["prediction"].to_numpy() for one in (ngram, chance)]
    sample = read_benchmark("giccs-sample")
    score = Store(results).predictions(ngram)["score"].to_numpy()
    ids = {name: place for place, name in enumerate(sorted(sample.dialogue_ids))}
    dialogue = pl.Series([ids[item.dialogue_id] for item in sample.items]).to_numpy()
    expected = paired_correlations(*tables, score, dialogue)["spearman"]
    assert f"**{expected.value:+.3f}** [{expected.low:+.3f}, {expected.high:+.3f}]" in said(app)
    assert "the first model is better" in said(app)
    table = shown(app)
    assert len(table) == 300
    assert table["difference"].abs().is_sorted(descending=True)
    chosen(app, "second", key(ngram))
    assert "Both selections are the same result" in said(app)


def test_accuracies_by_each_measure(opened, results):
    app = opened(results, task="multiple-choice-sts")
    for measure in ("accuracy", "accuracy_tokens", "accuracy_bytes", "accuracy_pmi"):
        chosen(app, "measure", measure)
        table = shown(app)
        assert len(table) == 4
        assert table["value"].is_sorted(descending=True)
    short = stored(results, "short").groups
    (group,) = [one for one in short if one.by == {"history": "with"}]
    chosen(app, "measure", "accuracy")
    row = shown(app).filter(model="short", history="with history").row(0, named=True)
    assert row["value"] == group.metrics["accuracy"].value
    assert row["chance"] == pytest.approx(0.2, abs=0.01)


def test_a_click_on_an_option_selects_its_item(opened, results, select):
    short = stored(results, "short")
    link = {"task": "multiple-choice-sts", "choices": "question", "question": "hotel-02"}
    app = opened(results, **link, chooser=key(short), history="without")
    (chart,) = [each for each in app.get("vega_lite_chart") if "select options" in (each.key or "")]
    select(app, chart, {"item_id": "hotel-02-c"})
    assert app.query_params["item"] in ("hotel-02-c", ["hotel-02-c"])
    app.button(key="page.open_dialogue").click().run()
    assert app.query_params["dialogue"] in ("hotel-02", ["hotel-02"])


def test_a_question_shows_every_option_and_the_prompt(opened, results, text_table):
    short = stored(results, "short")
    link = {"task": "multiple-choice-sts", "choices": "question"}
    app = opened(results, **link, chooser=key(short), question="hotel-02", history="without")
    _, *table = text_table(app)
    letters, roles, utterances, likelihoods = zip(*(row[:4] for row in table), strict=True)
    own = Store(results).predictions(short).filter(dialogue_id="hotel-02", history="without")
    assert sorted(utterances) == sorted(own["answer"].str.strip_chars())
    assert dict(zip(letters, map(float, likelihoods), strict=True)) == pytest.approx(
        dict(zip(own["letter"], own["logprob"], strict=True)), abs=0.0005
    )
    assert app.code[0].value == own["prompt"][0]
    assert sum("chosen" in role and "not chosen" not in role for role in roles) == 1
    chosen(app, "history", "with")
    assert app.code[0].value != own["prompt"][0]
    chosen(app, "question", "hotel-03")
    assert {row[2] for row in text_table(app)[1:]}.isdisjoint(utterances)
    (widget,) = [one for one in app.selectbox if one.key == "question"]
    assert len(widget.options) == 60


def test_letters_and_the_exact_test(opened, results):
    app = opened(results, task="multiple-choice-sts", choices="letters")
    table = shown(app)
    assert table["chosen"].sum() == 60
    assert table["gold"].sum() == pytest.approx(60)
    assert "χ² test of the chosen letters, p " in said(app)
    chosen(app, "history", "without")
    chosen(app, "choices", "duel")
    assert "exact McNemar test, p " in said(app)
    assert set(shown(app)["right"]) == {"first model", "second model"}
    first = next(one for one in app.selectbox if one.key == "first_chooser").value
    chosen(app, "second_chooser", first)
    assert "Both selections are the same result" in said(app)


def test_german(opened, results):
    app = opened(results, lang="de")
    assert "Rauschobergrenze" in said(app)
    assert "ohne Verlauf" in shown(app)["history"].to_list()


def test_no_folder_no_results_and_other_data_are_sentences(opened, results, tmp_path):
    assert "No results directory was given" in said(opened(None))
    assert "has no results for this benchmark" in said(opened(tmp_path))
    small = tmp_path / "small.jsonl"
    lines = [
        {"item_id": f"d-{n}", "dialogue_id": "d", "source": "s", "domain": "tv", "n_turns": 2,
         "turns": [{"speaker": "", "text": text} for text in ("Ja?", "Hallo")],
         "utterance_id": f"d-{n}",
         "utterance": f"Tag {n}", "score": n / 4}
        for n in range(5)
    ]  # fmt: skip
    small.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    app = opened(results, data=small)
    assert "Results for other data, not shown: 6" in [element.label for element in app.expander]
    assert shown(app)["reason"].str.starts_with("Other data: computed on giccs-sample").all()


def test_one_result_of_one_dialogue_has_no_partner_parts_or_interval(opened, tmp_path):
    small = tmp_path / "small.jsonl"
    lines = [
        {"item_id": f"d-{n}", "dialogue_id": "d", "source": "s", "domain": "tv", "n_turns": 2,
         "turns": [{"speaker": "", "text": text} for text in ("Ja?", "Hallo")],
         "utterance_id": f"d-{n}",
         "utterance": "Hallo"[:n + 1], "score": n / 4}
        for n in range(5)
    ]  # fmt: skip
    small.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    store = Store(tmp_path / "results")
    list(run([open_model("baseline:char-ngram")], [PairwiseSTS()], read_benchmark(small), store))
    app = opened(store.folder, data=small)
    assert "1 dialogues: no interval, which needs 5" in said(app)
    assert "judgments of this benchmark are not available" in said(app)
    for view, sentence in (
        ("parts", "no subsets to compare"),
        ("histories", "No model has results both with and without"),
        ("against", "There is only one result"),
    ):
        chosen(app, "view", view)
        assert sentence in said(app)


def test_broken_files_are_named_and_the_good_ones_shown(opened, results, tmp_path):
    folder = shutil.copytree(results, tmp_path / "results")
    store = Store(folder)
    ngram = stored(folder, "baseline:char-ngram", history="without")
    (folder / "pairwise-sts--broken--0123.json").write_text("{")
    table = store.path(ngram.model, ngram.task, ngram.signature).with_suffix(".parquet")
    table.unlink()
    app = opened(folder)
    assert "pairwise-sts--broken--0123.json" in app.error[0].value
    assert len(shown(app)) == 4
    chosen(app, "view", "predictions")
    chosen(app, "model", key(ngram))
    assert table.name in said(app)
    chosen(app, "view", "histories")  # one model's predictions are gone, the other's are there
    assert shown(app)["low"].fill_nan(None).null_count() == 1
    table.write_bytes(b"PAR1 no table")
    chosen(app, "view", "predictions")
    assert table.name in said(app)


def test_new_results_appear(opened, results, tmp_path):
    folder = shutil.copytree(results, tmp_path / "results")
    late = stored(folder, "baseline:chance", history="with")
    path = Store(folder).path(late.model, late.task, late.signature)
    kept = path.read_bytes()
    path.unlink()
    app = opened(folder)
    assert len(shown(app)) == 3
    path.write_bytes(kept)
    app.run()
    assert len(shown(app)) == 4


def test_very_many_points_are_counted_or_drawn_from(opened, results, monkeypatch):
    monkeypatch.setattr(models_scoring, "MAX_POINTS", 100)
    app = opened(results, view="predictions")
    assert "All 300 items, counted in bins" in said(app)
    chosen(app, "points", "sample")
    assert "100 of 300 items, drawn at random" in said(app)


def test_intervals_of_very_many_items_wait_until_they_are_wanted(opened, results, monkeypatch):
    monkeypatch.setattr(models_scoring, "MAX_ITEMS_AT_ONCE", 100)
    app = opened(results, view="histories")
    assert shown(app)["low"].fill_nan(None).null_count() == 2
    assert not math.isnan(shown(app)["value"][0])
    chosen(app, "interval", True)
    assert shown(app)["low"].fill_nan(None).null_count() == 0
    assert app.query_params["interval"] == "yes"


def test_the_ceiling_of_very_many_judgments_waits_too(opened, results, monkeypatch):
    monkeypatch.setattr(models_scoring, "MAX_JUDGMENTS_AT_ONCE", 100)
    app = opened(results)
    spec = lambda: app.get("vega_lite_chart")[0].proto.spec  # noqa: E731
    assert '"ceiling"' not in spec()
    chosen(app, "ceiling", True)
    assert '"ceiling"' in spec()


def test_a_link_to_what_there_is_not_is_told(opened, results):
    app = opened(results, view="predictions", model="nonsense", task="nonsense")
    assert "`nonsense`" in said(app)
    assert len(app.warning) == 2
