"""Tables and charts with their downloads."""

import json
import math

import polars as pl
import pytest

pytest.importorskip("streamlit", reason="the extra giccs[app] is not installed")

from giccs_app.explorer.dialogues.charts import candidates_chart
from giccs_app.explorer.display import MAX_ROWS_SHOWN, as_csv, as_drawing, as_json

FRAME = pl.DataFrame({"text": ["=1+1", 'a "b"', "ü\n"], "score": [0.5, math.nan, None]})


def test_csv_holds_what_the_table_holds():
    again = pl.read_csv(as_csv(FRAME).replace(b"NaN", b""))
    assert again["text"].to_list() == ["=1+1", 'a "b"', "ü\n"]


def test_json_has_null_for_what_is_no_number():
    assert [row["score"] for row in json.loads(as_json(FRAME))] == [0.5, None, None]


@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG"), ("svg", b"<svg")])
def test_a_chart_becomes_a_picture_on_white(form, start):
    pytest.importorskip("vl_convert", reason="vl-convert is not installed")
    candidates = pl.DataFrame({"letter": ["A"], "utterance": ["<b>x</b>"], "score": [0.5]})
    picture = as_drawing(candidates_chart(candidates), form)
    assert picture.startswith(start)
    if form == "svg":
        assert b'fill="white"' in picture
        assert b"&lt;b&gt;" in picture


def script(rows, calls):
    import polars as pl

    from giccs_app.explorer import display

    display.as_csv = lambda frame: calls.append(len(frame)) or b""
    display.show_table(pl.DataFrame({"n": range(rows)}), "numbers/../x")


def test_a_long_table_is_cut_and_says_so_and_nothing_is_made_before_it_is_asked_for(
    app_tester, monkeypatch
):
    monkeypatch.setattr(
        "giccs_app.explorer.display.as_csv", as_csv
    )  # the script replaces it; this puts it back
    calls = []
    arguments = {"rows": MAX_ROWS_SHOWN + 1, "calls": calls}
    app = app_tester.from_function(script, kwargs=arguments, default_timeout=60).run()
    assert not app.exception
    assert len(app.dataframe[0].value) == MAX_ROWS_SHOWN
    assert app.caption[0].value == "The first 500 of 501 rows; downloads contain all."
    assert [button.label for button in app.download_button] == ["CSV", "JSON"]
    assert calls == []


def test_a_short_table_is_whole(app_tester):
    arguments = {"rows": 3, "calls": []}
    app = app_tester.from_function(script, kwargs=arguments, default_timeout=60).run()
    assert len(app.dataframe[0].value) == 3
    assert not app.caption


def result_script():
    from bws.base.tables import Column, ResultTable
    from bws.chance_agreement import Estimate
    from giccs_app.explorer.display import show_result

    columns = [
        Column("part"),
        Column("pearson", "Pearson", ".2f"),
        Column("alpha_both", "both", ".2f", group="alpha"),
    ]
    rows = [({}, 0.5, Estimate(0.5, 0.25, 0.75)), ({"n_turns": 3}, float("nan"), 0.125)]
    show_result(ResultTable(columns, rows, ["all: **a note**"]), "x")


def test_a_table_of_results_has_titles_texts_of_intervals_and_notes(app_tester):
    app = app_tester.from_function(result_script, default_timeout=60).run()
    assert not app.exception
    frame = app.dataframe[0].value
    assert frame.columns.tolist() == ["n_turns", "pearson", "alpha_both"]
    assert frame["n_turns"].tolist() == ["all", "3"]
    assert frame["alpha_both"].tolist() == [0.5, 0.125]  # by which the column is sorted
    shown = pl.read_ipc_stream(app.dataframe[0].proto.arrow_data.styler.display_values)
    assert shown["alpha_both"].to_list() == ["0.50 [0.25, 0.75]", "0.12"]
    config = json.loads(app.dataframe[0].proto.columns)
    assert config["pearson"]["label"] == "Pearson"
    assert shown["pearson"].to_list() == ["0.50", "–"]
    assert app.caption[0].value == r"all: \*\*a note\*\*"


def german_script():
    import polars as pl

    from giccs_app.explorer import links
    from giccs_app.explorer.display import number_column, show_table

    links.begin()
    frame = pl.DataFrame(
        {
            "share": [0.5, None], "n": [3000, None], "reason": ["not computed", ""],
            "on": [True, None], "names": [["a"], []],
        }
    )  # fmt: skip
    show_table(frame, "x", column_config={"share": number_column("Anteil", format="%+.2f")})


def test_german_tables_have_german_numbers_in_every_browser_and_remain_numbers(app_tester):
    app = app_tester.from_function(german_script, default_timeout=60)
    app.query_params["lang"] = "de"
    app.run()
    assert not app.exception
    table = app.dataframe[0]
    assert table.value["share"].tolist()[0] == 0.5
    shown = pl.read_ipc_stream(table.proto.arrow_data.styler.display_values)
    assert shown.columns == ["share", "n", "reason", "on", "names"]
    assert shown.rows()[0][:3] == ("+0,50", "3.000", "nicht berechnet")
    assert shown.rows()[1][:2] == ("–", "–")
    assert json.loads(table.proto.columns)["share"]["type_config"].get("format") is None
