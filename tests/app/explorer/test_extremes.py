"""Pages with a study at the limits: long and right-to-left texts, many models, some without a value."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

specification = importlib.util.spec_from_file_location(
    "extremes", Path(__file__).with_name("extremes.py")
)
extremes = importlib.util.module_from_spec(specification)
specification.loader.exec_module(extremes)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extremes")
    extremes.write_study(folder)
    return folder


@pytest.fixture
def opened(opened, study):
    names = {"data": "benchmark.jsonl", "judgments": "judgments.csv", "results": "results"}
    arguments = [part for name, file in names.items() for part in (f"--{name}", study / file)]
    return lambda **link: opened(*arguments, **link)


@pytest.mark.parametrize("dialogue", extremes.dialogues())
def test_all_texts_of_a_dialogue_are_complete(opened, text_table, dialogue):
    app = opened(page="dialogues", dialogue=dialogue, lang="de")
    turns, candidates = extremes.dialogues()[dialogue]
    assert [text.value for text in app.text] == turns
    assert sorted(row[1] for row in text_table(app)[1:]) == sorted(candidates)


@pytest.mark.parametrize("page", ["overview", "dialogues", "annotation", "models", "errors"])
def test_every_page_opens(opened, page):
    assert opened(page=page, lang="de").get("html")


def test_models_without_a_value_are_named_with_the_reason(opened):
    app = opened(page="models")
    (text,) = (each.value for each in app.caption if "not in the chart" in each.value)
    undefined = extremes.model_names()[-extremes.N_UNDEFINED :]
    for name in undefined:
        assert f"`{name}`, `without history`: `all predictions are equal`" in text
    assert text.count("\n") == 2 * extremes.N_UNDEFINED
