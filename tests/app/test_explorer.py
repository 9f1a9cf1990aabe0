"""The explorer's frame, Overview and Dialogues, run by Streamlit's own app tester on real data."""

import csv
import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from streamlit.testing.v1 import AppTest

from app.labels import LANGUAGES, text_of
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.models import open_model
from giccs.records import Item, Turn
from giccs.results import Store
from giccs.run import run
from giccs.tasks.pairwise import PairwiseSTS

CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
EXPLORER = str(Path(__file__).parents[2] / "app" / "explorer.py")
HOSTILE = (
    "<script>alert(1)</script>",
    "**bold** _italic_ `code`",
    "$x^2$ :smile: :material/home: :red[red]",
    "![](http://127.0.0.1:9/x.png) [link](http://127.0.0.1:9)",
)


@pytest.fixture
def opened(monkeypatch):
    def open_page(*arguments, **parameters):
        monkeypatch.setattr(sys, "argv", [EXPLORER, *map(str, arguments)])
        app = AppTest.from_file(EXPLORER, default_timeout=180)
        app.query_params = dict(parameters)
        app.run()
        assert not app.exception
        return app

    return open_page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return a benchmark and judgments in which every text is markup."""
    folder = tmp_path_factory.mktemp("hostile")
    dialogue, source, domain = (f"{what} {HOSTILE[n]}" for n, what in enumerate("dsx"))
    turns = tuple(Turn(f"<b>{n}</b>", text) for n, text in enumerate(HOSTILE))
    items = [
        Item(f"i{n}", dialogue, source, domain, turns, f"u{n}", text, 0.5)
        for n, text in enumerate(HOSTILE)
    ]
    other = [Item(f"o{n}", "other", "", "", turns[:2], f"u{n}", f"x{n}", 0.5) for n in range(2)]
    write_benchmark([*items, *other], folder / "benchmark.jsonl")
    with open(folder / "judgments.csv", "w", newline="", encoding="utf-8") as file:
        file.write("tuple_id,group,item1,item2,item3,best,worst,annotator,comment\n")
        rows = csv.writer(file)
        for n, third in enumerate(["u2", "u3"]):
            row = [f"t{n}", dialogue, "u0", "u1", third, "u0", third, HOSTILE[0], HOSTILE[1]]
            rows.writerow(row)
    return folder


def markdown_of(app):
    """Return all text of the page that Streamlit reads as Markdown."""
    kinds = ("markdown", "caption", "header", "subheader", "info", "warning", "error", "metric")
    return [element.value for kind in kinds for element in app.get(kind)]


def captions(app):
    return [caption.value for caption in app.caption]


# the frame


def test_it_opens_on_the_sample_and_says_that_it_is_simulated(opened):
    app = opened()
    assert "Simulated data" in captions(app)[0]
    assert [metric.value for metric in app.metric][:5] == ["300", "60", "6", "3\u202f000", "5"]
    assert app.query_params == {}
    assert not app.error
    assert not app.warning


@pytest.mark.parametrize("page", ["overview", "dialogues", "annotation", "models", "errors"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_opens_by_its_link_in_both_languages(opened, page, language):
    app = opened(page=page, lang=language)
    assert not app.error
    assert app.segmented_control(key="page").value == page
    assert app.sidebar.header[0].value == text_of("page.title", language)


def test_the_page_and_the_language_are_chosen_by_hand_and_stand_in_the_link(opened):
    app = opened()
    app.segmented_control(key="page").set_value("dialogues").run()
    app.segmented_control(key="lang").set_value("de").run()
    assert app.query_params == {"page": "dialogues", "lang": "de"}
    assert app.text_input(key="words").label == "Suche"


@pytest.mark.parametrize("asked", ["nowhere", "<script>", "**b** `c`", "../models", "x" * 5000])
def test_a_link_to_nowhere_shows_the_overview_and_says_so(opened, asked):
    app = opened(page=asked)
    assert app.segmented_control(key="page").value == "overview"
    (told,) = app.warning
    assert "`page`" in told.value
    assert len(told.value) < 150


@pytest.mark.parametrize("asked", ["fr", "<b>", "../de", ""])
def test_another_language_is_ignored(opened, asked):
    app = opened(lang=asked)
    assert app.sidebar.header[0].value == "giccs explorer"
    assert len(app.warning) == 1


@pytest.mark.parametrize("name", ["--data", "--judgments"])
@pytest.mark.parametrize(
    "content", [None, b"", b"\xff", b"{}\n", b"a,b\n1,2\n", b"[[[[\n", b"\0" * 9]
)
def test_broken_and_missing_files_are_sentences(opened, tmp_path, name, content):
    path = tmp_path / "it.jsonl"
    if content is not None:
        path.write_bytes(content)
    for page in ("overview", "dialogues"):
        assert "it.jsonl" in opened(name, path, page=page).error[0].value


def test_a_results_folder_that_is_a_file_is_a_sentence(opened, hostile):
    app = opened("--results", hostile / "benchmark.jsonl")
    assert "is a file" in app.error[0].value


def test_a_file_that_changes_is_read_anew(opened, hostile, tmp_path):
    path = tmp_path / "b.jsonl"
    lines = (hostile / "benchmark.jsonl").read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:4]), "utf-8")
    app = opened("--data", path)
    assert app.metric[0].value == "4"
    path.write_text("".join(lines), "utf-8")
    app.run()
    assert app.metric[0].value == "6"


# uploads


def test_an_uploaded_benchmark_and_its_judgments_are_shown(opened, hostile):
    app = opened()
    benchmark = (hostile / "benchmark.jsonl").read_bytes()
    app.file_uploader(key="upload benchmark").upload("mine.jsonl", benchmark).run()
    assert [metric.value for metric in app.metric] == ["6", "2", "2"]
    assert "Simulated" not in captions(app)[0]
    judgments = (hostile / "judgments.csv").read_bytes()
    app.file_uploader(key="upload judgments").upload("mine.csv", judgments).run()
    assert [metric.value for metric in app.metric] == ["6", "2", "2", "2", "1"]
    app.file_uploader(key="upload judgments").set_value(None)
    app.file_uploader(key="upload benchmark").set_value(None).run()
    assert app.metric[0].value == "300"


@pytest.mark.parametrize("kind", ["benchmark", "judgments", "results"])
def test_an_upload_that_cannot_be_read_is_a_sentence_with_its_own_name(opened, kind):
    app = opened()
    name = "mine.json" if kind == "results" else "mine.jsonl"
    app.file_uploader(key=f"upload {kind}").upload(name, b"\x80\x04}q\x00.").run()
    assert not app.exception
    assert f"`{name}" in app.error[0].value
    assert "giccs-explore-" not in app.error[0].value


def test_uploaded_results_are_shown(opened, tmp_path):
    store = Store(tmp_path)
    sample = read_benchmark("giccs-sample")
    list(run([open_model("baseline:char-ngram")], [PairwiseSTS(resamples=5)], sample, store))
    app = opened(page="models")
    assert app.info
    uploader = app.file_uploader(key="upload results")
    uploader.set_value([(f"r{path.suffix}", path.read_bytes(), "") for path in tmp_path.iterdir()])
    app.run()
    assert [*app.exception, *app.error, *app.info] == []
    assert any("char-ngram" in str(table.value.to_dict()) for table in app.dataframe)


# overview


def test_the_overview_has_its_charts_and_tables(opened):
    app = opened()
    headings = [heading.value for heading in app.subheader]
    assert headings[:4] == [
        text_of(f"overview.{key}", "en")
        for key in ("distribution", "sizes", "ceiling", "consistency")
    ]
    bins, sizes = (json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart"))
    assert bins["encoding"]["y"]["title"] == "Items"
    assert sizes["encoding"]["color"]["scale"]["domain"] == [3, 5]
    reliability, agreement = (table.value for table in app.dataframe)
    assert list(reliability["source"]) == ["all", "spoken", "spoken", "written", "written"]
    assert agreement["alpha_both"].between(0, 1).all()
    ceiling = [metric for metric in app.metric if metric.label in ("Pearson's r", "Spearman's ρ")]
    assert all(0.9 < float(metric.value) <= 1 for metric in ceiling)


def test_charts_are_titled_in_german(opened):
    bins, _ = opened(lang="de").get("vega_lite_chart")
    assert json.loads(bins.proto.spec)["encoding"]["x"]["title"] == "Ähnlichkeitswert"


def test_table_2_comes_when_it_is_asked_for(opened):
    pytest.importorskip("spacy", reason="the extra giccs[stats] is not installed")
    pytest.importorskip("simplemma", reason="the extra giccs[stats] is not installed")
    pytest.importorskip("lexicalrichness", reason="the extra giccs[stats] is not installed")
    app = opened()
    assert len(app.dataframe) == 2
    app.toggle(key="overview-description").set_value(True).run()
    assert app.query_params == {"overview-description": "yes"}
    table = app.dataframe[2].value
    assert table["dialogues"].iloc[-1] == table["dialogues"].iloc[:-1].sum() == 60


def test_table_2_names_what_is_missing(opened, monkeypatch):
    from app.pages import overview

    monkeypatch.setattr(overview, "find_spec", lambda name: None)
    app = opened(**{"overview-description": "yes"})
    assert "pip install 'giccs[stats]'" in app.info[0].value


def test_much_is_broken_down_only_when_asked_for(opened, monkeypatch):
    from app.pages import overview

    monkeypatch.setattr(overview, "MOST_JUDGMENTS", 100)
    app = opened()
    assert not app.dataframe
    app.toggle(key="overview-consistency").set_value(True).run()
    assert len(app.dataframe) == 2


def test_judgments_of_other_scores_have_no_ceiling_but_say_why(opened, hostile):
    files = ("--data", hostile / "benchmark.jsonl", "--judgments", hostile / "judgments.csv")
    app = opened(*files)
    assert "noise ceiling" in app.error[0].value
    assert text_of("page.other_scores", "en") in captions(app)


def test_without_judgments_the_overview_says_how_to_name_them(opened, hostile):
    app = opened("--data", hostile / "benchmark.jsonl")
    assert any("--judgments" in caption for caption in captions(app))
    assert not app.dataframe


# dialogues


def counter(app):
    return next(text.value for text in app.markdown if " of " in text.value).strip("*")


def test_a_dialogue_is_a_chat_with_its_last_turn_marked(opened):
    app = opened(page="dialogues", dialogue="restaurant-01")
    turns = [text.value for message in app.chat_message for text in message.text]
    assert len(turns) == 3
    assert turns[0] == "Guten Tag, womit kann ich Ihnen helfen?"
    marked = [message for message in app.chat_message if message.caption]
    assert [message.text[0].value for message in marked] == [turns[-1]]


def test_candidates_and_judgments_are_shown(opened):
    app = opened(page="dialogues", dialogue="restaurant-01")
    candidates, judgments = (table.value for table in app.dataframe)
    assert list(candidates["letter"]) == ["D", "E", "A", "B", "C"]
    assert (candidates["appearances"] == 30).all()
    assert candidates["best"].sum() == candidates["worst"].sum() == len(judgments) == 50
    assert len(app.get("vega_lite_chart")) == 1


def test_next_and_previous_lead_through_what_is_found(opened):
    app = opened(page="dialogues")
    assert counter(app) == "1 of 60"
    assert app.button(key="previous").disabled
    app.button(key="next").click().run()
    app.button(key="next").click().run()
    assert (counter(app), app.query_params["dialogue"]) == ("3 of 60", "restaurant-03")
    app.button(key="previous").click().run()
    assert counter(app) == "2 of 60"
    last = opened(page="dialogues", dialogue="tv-08")
    assert (counter(last), last.button(key="next").disabled) == ("60 of 60", True)


def test_filters_narrow_what_is_found_and_the_link_restores_them(opened):
    app = opened(page="dialogues")
    app.multiselect(key="domain").select("find_hotel").run()
    app.multiselect(key="n_turns").select(5).run()
    app.slider(key="disagreement").set_value((0.1, 1.0)).run()
    app.selectbox(key="order").select("disagreement").run()
    app.selectbox(key="dialogue").select(app.selectbox(key="dialogue").options[1][:8]).run()
    again = opened(**app.query_params)
    assert again.query_params == app.query_params
    assert again.selectbox(key="dialogue").value == app.selectbox(key="dialogue").value
    assert counter(again) == counter(app) == "2 of 3"


def test_search_finds_turns_and_candidates(opened):
    app = opened(page="dialogues")
    app.text_input(key="words").set_value("ROLLSTUHL").run()
    assert 0 < len(app.selectbox(key="dialogue").options) < 60
    app.text_input(key="words").set_value("no such words anywhere").run()
    assert app.info[0].value == text_of("dialogues.none", "en")
    app.button(key="show all").click().run()
    assert (counter(app), app.query_params) == ("1 of 60", {"page": "dialogues"})


def test_a_dialogue_that_the_filters_leave_out_gives_way_to_the_first(opened):
    app = opened(page="dialogues", dialogue="tv-08", domain="find_hotel")
    assert app.selectbox(key="dialogue").value.startswith("hotel-")
    assert not app.warning


@pytest.mark.parametrize(
    "asked", [{"dialogue": "nowhere"}, {"domain": "<b>"}, {"score": "nan..1"}, {"order": "x"}]
)
def test_what_is_not_there_is_ignored_with_a_word(opened, asked):
    app = opened(page="dialogues", **asked)
    assert counter(app) == "1 of 60"
    assert len(app.warning) == 1


def test_why_intervals_are_approximate_or_missing_is_below_the_scores(opened, hostile):
    app = opened(page="dialogues", dialogue="restaurant-01")
    assert app.dataframe[0].value["low"].notna().all()
    assert any("5 annotators: the interval is approximate" in text for text in captions(app))
    files = ("--data", hostile / "benchmark.jsonl", "--judgments", hostile / "judgments.csv")
    app = opened(*files, page="dialogues")
    assert any("all judgments are of one annotator" in text for text in captions(app))


def test_many_dialogues_are_leafed_through_and_not_listed(opened, monkeypatch):
    from app.pages import dialogues

    monkeypatch.setattr(dialogues, "MOST_OPTIONS", 10)
    app = opened(page="dialogues")
    assert "dialogue" not in [box.key for box in app.selectbox]
    assert any("More than 10" in caption for caption in captions(app))
    app.button(key="next").click().run()
    assert counter(app) == "2 of 60"


def test_without_judgments_there_are_candidates_only(opened, hostile):
    app = opened("--data", hostile / "benchmark.jsonl", page="dialogues")
    assert list(app.dataframe[0].value.columns) == ["letter", "utterance", "score"]
    assert len(app.dataframe) == 1
    assert "disagreement" not in [slider.key for slider in app.slider]


@pytest.mark.parametrize("page", ["overview", "dialogues"])
def test_markup_in_data_stays_data(opened, hostile, page):
    files = ("--data", hostile / "benchmark.jsonl", "--judgments", hostile / "judgments.csv")
    app = opened(*files, page=page)
    for text in markdown_of(app):
        outside = CODE_SPAN.sub("", str(text))
        assert not any(part in outside for part in ("<script", "**bold", "$x", ":smile", "![]"))
    if page == "dialogues":
        shown = [text.value for message in app.chat_message for text in message.text]
        assert shown == list(HOSTILE)
        assert set(app.dataframe[0].value["utterance"]) == set(HOSTILE)
        assert set(app.dataframe[1].value["comment"]) == {HOSTILE[1]}
