"""The page about errors, run by Streamlit's own app tester on results of real baselines."""

import json

import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs.benchmark import read_benchmark, write_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.prompts import open_template
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer.errors.data import residuals
from giccs_app.explorer.labels import text_of
from giccs_app.explorer.models.data import key
from giccs_app.explorer.study import load

CHECKS_CHARTS = True


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("results"))
    models = [open_model("baseline:char-ngram"), open_model("baseline:chance")]
    list(run(models, [PairwiseSTS(resamples=20)], read_benchmark("giccs-sample"), store))
    return store


@pytest.fixture
def opened(opened):
    def open_page(folder, *, data="giccs-sample", **link):
        results = ["--results", folder] if folder else []
        return opened("--data", data, *results, **{"page": "errors"} | link)

    return open_page


def widget(app, name):
    kinds = ("selectbox", "button_group", "multiselect")
    (result,) = [one for kind in kinds for one in app.get(kind) if one.key == name]
    return result


def chosen(app, name, value):
    widget(app, name).set_value(value).run()
    assert not app.exception


def shown(app, place):
    return pl.from_pandas(app.dataframe[place].value)


def expected(store, model):
    (result,) = [result for result in store.results() if result.model == model]
    return residuals(load().items, store.predictions(result))


def test_the_largest_errors_come_first_and_follow_the_filters(opened, results):
    app = opened(results.folder)
    errors = expected(results, "baseline:char-ngram")
    assert shown(app, 1)["item_id"].to_list() == errors["item_id"].to_list()
    chosen(app, "direction", "high")
    assert shown(app, 1)["residual"].min() > 0
    chosen(app, "direction", "low")
    assert shown(app, 1)["residual"].max() < 0
    chosen(app, "domain", ["find_hotel"])
    assert set(shown(app, 1)["domain"]) == {"find_hotel"}
    chosen(app, "n_turns", [5])
    assert set(shown(app, 1)["n_turns"]) == {5}
    assert app.query_params["domain"] == "find_hotel"


def test_each_part_has_its_mean(opened, results):
    app = opened(results.folder)
    errors = expected(results, "baseline:char-ngram")
    for by in ("n_turns", "source", "domain"):
        chosen(app, "by", by)
        table = shown(app, 0)
        bias = dict(
            errors.group_by(pl.col(by).cast(pl.String)).agg(pl.mean("residual")).iter_rows()
        )
        assert dict(zip(table["part"], table["bias"], strict=True)) == pytest.approx(bias)
        assert table["value"].is_sorted(descending=True)


def test_an_item_is_shown_in_its_dialogue(opened, results, text_table):
    app = opened(results.folder, item="hotel-02-c")
    dialogue = [
        item for item in read_benchmark("giccs-sample").items if item.dialogue_id == "hotel-02"
    ]
    turns = [text.value for message in app.chat_message for text in message.text]
    assert turns == [turn.text for turn in dialogue[0].turns]
    _, *own = text_table(app)
    assert sorted(row[1] for row in own) == sorted(item.utterance for item in dialogue)
    (marked,) = (row[1] for row in own if row[0])
    assert marked == next(item.utterance for item in dialogue if item.item_id == "hotel-02-c")
    offered = widget(app, "item").options
    assert len(offered) in (200, 201)  # the link's own item is among them in any case
    assert sum("hotel-02-c" in option for option in offered) == 1


def test_another_model_has_other_errors(opened, results):
    app = opened(results.folder)
    (chance,) = [result for result in results.results() if result.model == "baseline:chance"]
    chosen(app, "model", key(chance))
    wanted = expected(results, "baseline:chance")
    assert shown(app, 1)["residual"].to_list() == wanted["residual"].to_list()


def test_texts_are_shown_as_they_are(opened, tmp_path, text_table):
    data, wild = tmp_path / "wild.jsonl", "<b>fett</b> **fett** $x$ [a](b) :red[c]"
    lines = [
        {"item_id": f"{d}-{n}", "dialogue_id": d, "source": "s", "domain": "tv", "n_turns": 2,
         "turns": [{"speaker": "<i>", "text": text} for text in (f"{wild} {d}", wild)],
         "utterance_id": f"{d}-{n}",
         "utterance": f"{wild} {n}", "score": n / 4}
        for d in ("<u>d</u>", "e") for n in range(5)
    ]  # fmt: skip
    data.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    store = Store(tmp_path / "results")
    list(run([open_model("baseline:chance")], [PairwiseSTS()], read_benchmark(data), store))
    app = opened(store.folder, data=data, item="<u>d</u>-1")
    assert app.chat_message[0].text[0].value == f"{wild} <u>d</u>"  # st.text renders no Markdown
    assert f"{wild} 1" in [row[1] for row in text_table(app)]
    markdown = [one.value for kind in (app.markdown, app.caption) for one in kind]
    assert not any(wild in text for text in markdown)
    assert "`<u>d</u>` · 2 turns" in markdown


def test_nothing_to_show_is_a_sentence(opened, results, tmp_path):
    assert "No results directory was given" in opened(None).info[0].value
    assert "has no results for this benchmark" in opened(tmp_path).info[0].value


def test_predictions_that_are_no_numbers_are_counted(opened, results, tmp_path):
    import shutil

    folder = shutil.copytree(results.folder, tmp_path / "results")
    store = Store(folder)
    (result,) = [result for result in store.results() if result.model == "baseline:char-ngram"]
    path = store.path(result.model, result.task, result.signature).with_suffix(".parquet")
    table = pl.read_parquet(path)
    nan = pl.lit(float("nan"))
    table.with_columns(
        prediction=pl.when(pl.int_range(pl.len()) < 7).then(nan).otherwise("prediction")
    ).write_parquet(path)
    app = opened(folder)
    assert any("not shown: 7" in caption.value for caption in app.caption)
    table.with_columns(prediction="score").write_parquet(path)
    chosen(app, "direction", "high")
    assert "No item has an error of this kind" in app.info[0].value
    table.with_columns(prediction=nan).write_parquet(path)
    app.run()
    assert not app.exception
    assert "no predictions that can be compared" in app.info[0].value
    path.write_bytes(b"no table")
    app.run()
    assert path.name in app.error[0].value


def test_wrong_choices_come_with_what_would_have_been_right(
    opened, select, text_table, formula, tmp_path
):
    sample, store = read_benchmark("giccs-sample"), Store(tmp_path)
    task = MultipleChoice(open_template("figure2-de-1"), resamples=5)
    (result,) = run([formula("shortest", lambda option: -len(option) / 9)], [task], sample, store)
    app = opened(tmp_path)
    (group,) = [group for group in result.groups if group.by == {"history": "with"}]
    wrong = round(60 * (1 - group.metrics["accuracy"].value))
    table = shown(app, 0)
    assert any(f"{wrong} of 60 questions" in caption.value for caption in app.caption)
    assert len(table) == wrong
    assert table["margin"].is_sorted(descending=True)
    top = table.row(0, named=True)
    assert len(top["chosen"]) < len(top["right"])
    assert (len(top["right"]) - len(top["chosen"])) / 9 == pytest.approx(top["margin"])
    assert top["score_right"] > top["score_chosen"]
    select(app, app.dataframe[0], 0)
    assert [row[1] for row in text_table(app) if row[0] == "▶"] == [top["chosen"]]
    chosen(app, "history", "without")
    chosen(app, "measure", "accuracy_bytes")
    assert not app.exception


def test_items_on_which_people_agree_and_the_model_fails(opened, results):
    app = opened(results.folder, lang="de")
    errors = expected(results, "baseline:char-ngram")
    found = errors.filter((pl.col("disagreement") <= 0.2) & (pl.col("residual").abs() >= 0.5))
    assert len(found) > 5
    table = shown(app, 2)
    assert table["item_id"].to_list() == found["item_id"].to_list()
    assert table["residual"].to_list() == found["residual"].to_list()
    assert f"**{len(found)}** von 300 Items" in "".join(text.value for text in app.markdown)


def test_a_part_of_many_items_is_drawn_and_the_page_says_so(opened, results, monkeypatch):
    text = text_of("errors.failures_thinned", "en", n=10)
    assert text not in [caption.value for caption in opened(results.folder).caption]
    monkeypatch.setattr("giccs.report.figures.failures.MAX_POINTS", 10)
    assert text in [caption.value for caption in opened(results.folder).caption]


def test_failures_need_judgments(opened, results, tmp_path):
    path = tmp_path / "benchmark.jsonl"
    write_benchmark(read_benchmark("giccs-sample").items, path)
    app = opened(results.folder, data=path)
    assert text_of("dialogues.no_judgments", "en") in [text.value for text in app.caption]
    assert len(app.dataframe) == 2
