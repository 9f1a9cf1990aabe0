"""Pages with a study at the limits: long and right-to-left texts, many models, some without a value."""

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

DIALOGUES = (
    *("long", "arabic", "emoji"),
    *(pytest.param(name, marks=pytest.mark.nightly) for name in ("hebrew", "persian", "urdu")),
)


@pytest.fixture
def opened(opened, extreme_study):
    return lambda **link: opened(*extreme_study, **link)


@pytest.mark.parametrize("dialogue", DIALOGUES)
def test_all_texts_of_a_dialogue_are_complete(opened, text_table, extremes, dialogue):
    app = opened(page="dialogues", dialogue=dialogue, lang="de")
    turns, candidates = extremes.dialogues()[dialogue]
    shown = iter([text.value for text in app.text])
    for turn in turns:
        text = next(shown)
        if text.endswith(" …") and not turn.endswith(" …"):  # the rest is behind a click
            text = f"{text.removesuffix(' …')} {next(shown)}"
        assert text == turn
    assert not [*shown]
    assert sorted(row[1] for row in text_table(app)[1:]) == sorted(candidates)


@pytest.mark.parametrize("page", ["overview", "dialogues", "annotation", "models", "errors"])
def test_every_page_opens(opened, page):
    assert opened(page=page, lang="de").get("html")


def test_models_without_a_value_are_named_with_the_reason(opened, extremes):
    app = opened(page="models")
    (text,) = (each.value for each in app.caption if "not in the chart" in each.value)
    undefined = extremes.model_names()[-extremes.N_UNDEFINED :]
    for name in undefined:
        assert f"`{name}`, `without history`: all predictions are equal" in text
    assert text.count("\n") == 2 * extremes.N_UNDEFINED
