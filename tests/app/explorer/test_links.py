"""Widgets that take their values from the address, and write them there; run by Streamlit's app tester."""

import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from urllib.parse import parse_qs


def script():
    import streamlit as st

    from giccs_app.explorer import links

    links.begin()
    result = {
        "one": links.selectbox("one", "One", ["a", "b", "c"], format_option=str.upper),
        "few": links.segmented("few", "Few", ["x", "y"]),
        "some": links.multiselect("some", "Some", [3, 5, 7]),
        "words": links.text("words", "Words"),
        "on": links.toggle("on", "On"),
        "n": links.number("n", "N", 1, 9, 5),
        "range": links.score_range("range", "Range"),
        "quiet": links.selectbox("quiet", "Quiet", ["a"], quiet=True),
    }
    st.session_state["found"] = result
    st.session_state["was ignored"] = links.ignored()
    st.session_state["other view"] = links.link(one="c", words=None)
    st.button("Go", on_click=links.go, kwargs={"one": "b", "n": None})
    st.button("Stay")


DEFAULTS = {
    "one": "a",
    "few": "x",
    "some": [],
    "words": "",
    "on": False,
    "n": 5,
    "range": (0.0, 1.0),
    "quiet": "a",
}


@pytest.fixture
def opened(app_tester):
    def open_script(**parameters):
        app = app_tester.from_function(script, default_timeout=180)
        app.query_params = dict(parameters)
        app.run()
        assert not app.exception
        return app

    return open_script


def found(app):
    return app.session_state["found"]


def changed(**new):
    return DEFAULTS | new


def test_without_parameters_all_is_default_and_the_address_stays_bare(opened):
    app = opened()
    assert found(app) == DEFAULTS
    assert app.query_params == {}


def test_a_link_restores_all_values(opened):
    app = opened(
        one="c", few="y", some=["7", "3"], words="Zug & Bus", on="yes", n="9", range="0.2..0.8"
    )
    assert found(app) == changed(
        one="c", few="y", some=[7, 3], words="Zug & Bus", on=True, n=9, range=(0.2, 0.8)
    )
    assert app.session_state["was ignored"] == {}


HOSTILE = [
    "",
    "z",
    "<script>",
    "nan..1",
    "0.8..0.2",
    "..",
    "1" * 500,
    "0..1..2",
    "inf..inf",
    "-1..2",
    "\0",
]


@pytest.mark.parametrize("asked", HOSTILE)
def test_what_is_not_allowed_is_ignored_and_counted(opened, asked):
    link = dict.fromkeys(["one", "few", "some", "on", "n", "range"], asked)
    app = opened(**link)
    assert found(app) == DEFAULTS
    assert app.session_state["was ignored"] == link


def test_a_text_may_be_anything_but_long(opened):
    assert found(opened(words="<script>"))["words"] == "<script>"
    app = opened(words="x" * 201)
    assert found(app)["words"] == ""
    assert set(app.session_state["was ignored"]) == {"words"}


def test_one_unknown_option_of_several_is_ignored_with_the_rest(opened):
    assert found(opened(some=["3", "4"]))["some"] == []


def test_a_quiet_box_counts_an_unknown_option_as_none(opened):
    app = opened(quiet="gone")
    assert found(app)["quiet"] == "a"
    assert app.session_state["was ignored"] == {}


def test_what_is_chosen_stands_in_the_address_and_a_default_does_not(opened):
    app = opened()
    app.selectbox(key="one").select("c").run()
    app.multiselect(key="some").select(5).select(3).run()
    app.text_input(key="words").set_value("Zug").run()
    app.toggle(key="on").set_value(True).run()
    app.number_input(key="n").set_value(2).run()
    app.slider(key="range").set_value((0.25, 1.0)).run()
    app.segmented_control(key="few").set_value("y").run()
    assert app.query_params == {
        "one": "c",
        "some": ["5", "3"],
        "words": "Zug",
        "on": "yes",
        "n": "2",
        "range": "0.25..1",
        "few": "y",
    }
    restored = opened(**app.query_params)
    assert found(restored) == found(app)
    app.selectbox(key="one").select("a").run()
    app.multiselect(key="some").set_value([]).run()
    assert not {"one", "some"} & set(app.query_params)


def test_going_back_in_the_browser_restores_the_older_view(opened):
    app = opened()
    app.selectbox(key="one").select("c").run()
    app.query_params = {}  # the browser's back button: another address, and no widget has changed
    app.run()
    assert found(app)["one"] == "a"


def test_an_address_that_is_older_than_a_choice_does_not_undo_it(opened):
    app = opened()
    app.selectbox(key="one").select("c").run()
    app.query_params = {}  # the browser does not know of it yet when the next widget changes
    app.text_input(key="words").set_value("Zug").run()
    assert found(app) == changed(one="c", words="Zug")
    assert app.query_params == {"one": "c", "words": "Zug"}


def test_lowest_values_that_a_browser_sends_when_it_goes_back_are_no_choice(opened):
    """It has not received the values of these widgets before the user went back."""
    app = opened(page="annotation")
    app.query_params = {}
    app.number_input(key="n").set_value(1)
    app.slider(key="range").set_value((0.0, 0.5)).run()
    assert app.query_params == {}
    assert found(app) == DEFAULTS


def test_a_button_goes_to_another_view(opened):
    app = opened(n="2", words="Zug")
    app.button[0].click().run()
    assert found(app) == changed(one="b", words="Zug")
    assert app.query_params == {"words": "Zug", "one": "b"}


def test_parameters_of_other_pages_are_kept(opened):
    app = opened(elsewhere=["1", "2"])
    app.selectbox(key="one").select("c").run()
    assert app.query_params == {"elsewhere": ["1", "2"], "one": "c"}


def test_the_address_of_another_view(opened):
    app = opened(words="Zug", some=["3", "5"])
    address = app.session_state["other view"]
    assert parse_qs(address.removeprefix("?")) == {"one": ["c"], "some": ["3", "5"]}
