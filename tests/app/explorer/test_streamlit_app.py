"""What all pages have in common, run by Streamlit's own app tester: links, languages, files, uploads."""

import re

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer.labels import LANGUAGES, text_of

CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")

CHECKS_CHARTS = True


def markdown_of(app):
    """Return all text of the page that Streamlit reads as Markdown."""
    kinds = ("markdown", "caption", "header", "subheader", "info", "warning", "error", "metric")
    return [element.value for kind in kinds for element in app.get(kind)]


def captions(app):
    return [caption.value for caption in app.caption]


def test_it_opens_on_the_sample_and_says_that_it_is_simulated(seen):
    app = seen()
    assert "Simulated data" in captions(app)[0]
    assert [metric.value for metric in app.metric][:5] == ["300", "60", "6", "3,000", "5"]
    assert app.query_params == {}
    assert not app.error
    assert not app.warning


@pytest.mark.parametrize("page", ["overview", "dialogues", "annotation", "models", "errors"])
@pytest.mark.parametrize(
    "language",
    [pytest.param("en", marks=pytest.mark.nightly), *(name for name in LANGUAGES if name != "en")],
)  # other tests open all pages in English
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
    app = opened(lang=asked, page="models")
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
    assert "giccs-explorer-" not in app.error[0].value


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


@pytest.mark.parametrize("page", ["overview", "dialogues"])
def test_markup_in_data_stays_data(opened, hostile, hostile_texts, text_table, page):
    files = ("--data", hostile / "benchmark.jsonl", "--judgments", hostile / "judgments.csv")
    app = opened(*files, page=page)
    for text in markdown_of(app):
        outside = CODE_SPAN.sub("", str(text))
        assert not any(part in outside for part in ("<script", "**bold", "$x", ":smile", "![]"))
    if page == "dialogues":
        shown = [text.value for message in app.chat_message for text in message.text]
        assert shown == list(hostile_texts)
        assert {row[1] for row in text_table(app)[1:]} == set(hostile_texts)
        assert set(app.dataframe[0].value["comment"]) == {hostile_texts[1]}
