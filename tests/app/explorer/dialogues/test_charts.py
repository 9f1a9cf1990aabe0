"""The chart of the page "Dialogues": what it draws of a data frame."""

import polars as pl
import pytest

pytest.importorskip("altair", reason="the extra giccs[charts] is not installed")

from giccs_app.explorer.dialogues.charts import candidates_chart

CANDIDATES = pl.DataFrame(
    {
        "letter": ["B", "A", "C"],
        "utterance": ["ja", "nein " * 12, "vielleicht " * 60],
        "score": [0.75, 0.5, 0.25],
    }
)
JUDGED = CANDIDATES.with_columns(
    low=pl.Series([0.6, 0.4, None]),
    high=pl.Series([0.9, 0.6, None]),
    rank_set=pl.Series(["1–2", "1–3", None]),
    best=3,
    worst=1,
    appearances=8,
)


def drawn(chart):
    """Return a chart's Vega-Lite and its rows."""
    document = chart.to_dict()
    (rows,) = document["datasets"].values()
    return document, rows


def test_candidates_without_judgments_are_dots_only():
    document, rows = drawn(candidates_chart(CANDIDATES))
    (dots,) = document["layer"]
    assert dots["encoding"]["x"]["field"] == "score"
    assert dots["encoding"]["x"]["scale"]["domain"] == [0, 1]
    assert dots["encoding"]["y"]["sort"] == [row["label"] for row in rows]
    assert [shown["field"] for shown in dots["encoding"]["tooltip"]] == ["utterance", "score"]


def test_intervals_are_drawn_where_there_are_some():
    document, rows = drawn(candidates_chart(JUDGED))
    rule, _ = document["layer"]
    assert rule["mark"]["type"] == "rule"
    assert (rule["encoding"]["x"]["field"], rule["encoding"]["x2"]["field"]) == ("low", "high")
    assert rule["transform"] == [{"filter": "isValid(datum.low) && isValid(datum.high)"}]
    assert [row["interval"] for row in rows] == ["0.60 – 0.90", "0.40 – 0.60", "–"]
    assert [row["rank_set"] for row in rows] == ["1–2", "1–3", "–"]


def test_texts_are_wrapped_and_short_ones_stand_in_the_middle():
    _, rows = drawn(candidates_chart(CANDIDATES.head(2), width=20))
    short, long = (row["label"] for row in rows)
    assert long.replace("\n", " ").split() == ["A", *["nein"] * 12]
    assert long.count("\n") == 3
    assert short == "\nB\u00a0 ja\n"  # of four lines: one above, and half a line that is missing


def test_where_a_text_is_long_the_labels_are_letters_and_no_text_is_cut():
    _, rows = drawn(candidates_chart(CANDIDATES, width=20))
    assert [row["label"] for row in rows] == ["B", "A", "C"]
    assert rows[2]["utterance"] == "vielleicht " * 60


def test_a_text_from_right_to_left_keeps_its_direction_in_each_line():
    texts = pl.Series("utterance", ["كم؟ " * 12, "כן!", "ok (كم)"])
    _, rows = drawn(candidates_chart(CANDIDATES.with_columns(texts)))
    lines = [row["label"].strip("\n").split("\n") for row in rows]
    start, end = "\u2067", "\u2069"
    assert len(lines[0]) > 1
    assert all(line.removeprefix("B\u00a0 ").startswith(start) for line in lines[0])
    assert all(line.endswith(end) for line in lines[0])
    assert lines[1:] == [[f"A\u00a0 {start}כן!{end}"], ["C\u00a0 ok (كم)"]]


def test_equal_texts_of_two_letters_stay_apart():
    twice = CANDIDATES.with_columns(utterance=pl.lit("x" * 500))
    _, rows = drawn(candidates_chart(twice))
    assert len({row["label"] for row in rows}) == 3


def test_markup_is_data_like_any_other():
    text = "<script>alert(1)</script> **b** $x$"
    one = pl.DataFrame({"letter": ["A"], "utterance": [text], "score": [1.0]})
    _, rows = drawn(candidates_chart(one, width=80))
    assert rows[0]["utterance"] == text
    assert rows[0]["label"] == f"A\u00a0 {text}"
    assert not {"title", "image"} & set(rows[0])  # fields that Vega's tooltip takes for HTML


def test_titles_can_be_given():
    document, _ = drawn(candidates_chart(JUDGED, {"score": "Ähnlichkeit", "best": "Beste"}))
    dots = document["layer"][1]["encoding"]
    assert dots["x"]["title"] == "Ähnlichkeit"
    assert "Beste" in [shown["title"] for shown in dots["tooltip"]]


def test_no_candidates_make_a_chart_all_the_same():
    assert candidates_chart(JUDGED.clear()).to_dict()["layer"]


@pytest.mark.parametrize("chart", [candidates_chart(JUDGED), candidates_chart(CANDIDATES.head(1))])
def test_vega_draws_it(chart):
    vl_convert = pytest.importorskip("vl_convert", reason="vl-convert is not installed")
    svg = vl_convert.vegalite_to_svg(chart.to_dict())
    assert svg.count('aria-roledescription="point"') == len(drawn(chart)[1])
