"""Charts about models: which rows are drawn, in which order, by which channels."""

import json
import math

import polars as pl
import pytest

pytest.importorskip("altair", reason="the extra giccs[charts] is not installed")

from bws.base.charts import chart_svg
from giccs_app.explorer.models import charts
from giccs_app.explorer.theme import BLUE, ORANGE

FRAME = pl.DataFrame(
    {
        "model": ["a", "a", "b", "c"],
        "history": ["with", "without", "with", "with"],
        "baseline": [False, False, True, False],
        "value": [0.2, 0.3, 0.4, math.nan],
        "low": [0.1, 0.2, math.nan, math.nan],
        "high": [0.3, 0.4, math.nan, math.nan],
    }
)


def layers(chart, mark):
    return [one for one in chart.to_dict()["layer"] if one["mark"]["type"] == mark]


def drawn(chart):
    """Return the rows that stand in the chart, NaN and null told apart from numbers."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_the_leaderboard_is_best_first_without_what_has_no_value():
    chart = charts.leaderboard(FRAME)
    full, hollow = layers(chart, "point")
    assert full["encoding"]["y"]["sort"] == ["b", "a"]
    assert {row["model"] for row in drawn(chart)} == {"a", "b"}
    assert full["mark"]["filled"]
    assert not hollow["mark"]["filled"]
    assert "datum.baseline" in json.dumps(hollow["transform"])
    (ends,) = layers(chart, "rule")
    assert ends["transform"] == [{"filter": "isValid(datum.low)"}]
    assert [row["low"] for row in drawn(chart) if row["model"] == "b"] == [None]


def test_histories_are_told_apart_by_colour_and_shape_in_the_words_given():
    words = {"with": "mit", "without": "ohne", "value": "r"}
    chart = charts.leaderboard(FRAME, titles=words)
    encoding = layers(chart, "point")[0]["encoding"]
    assert encoding["color"]["scale"] == {"domain": ["mit", "ohne"], "range": [ORANGE, BLUE]}
    assert encoding["shape"]["scale"]["domain"] == ["mit", "ohne"]
    assert encoding["x"]["title"] == "r"
    one = charts.leaderboard(FRAME.filter(pl.col("history") == "without"))
    encoding = layers(one, "point")[0]["encoding"]
    assert encoding["color"]["scale"]["range"] == [BLUE]  # as beside the other
    assert "yOffset" not in encoding


def test_a_plain_frame_and_an_empty_one_are_drawn():
    plain = FRAME.drop("history", "baseline")
    assert len(layers(charts.leaderboard(plain), "point")) == 1
    for frame in (plain, plain.head(0), FRAME.head(0)):
        assert "<svg" in chart_svg(charts.leaderboard(frame))


def test_the_ceiling_is_a_line_with_a_band_where_it_has_an_interval():
    chart = charts.leaderboard(FRAME, (0.9, 0.8, 0.95))
    (band,) = layers(chart, "rect")
    assert (band["encoding"]["x"]["field"], band["encoding"]["x2"]["field"]) == ("low", "high")
    assert [row["value"] for row in drawn(chart) if "ceiling" in row] == [0.9]
    assert not layers(charts.leaderboard(FRAME, (0.9, math.nan, math.nan)), "rect")
    without = charts.leaderboard(FRAME, (math.nan, math.nan, math.nan))
    assert not any("ceiling" in row for row in drawn(without))


def test_parts_keep_the_order_of_the_frame_and_nought_is_marked():
    frame = FRAME.drop("baseline").rename({"model": "part"})
    chart = charts.dot_plot(frame, "part", {"part": "domain"}, mark_zero=True)
    assert layers(chart, "point")[0]["encoding"]["y"]["sort"] == ["a", "b"]
    assert {"zero": 0.0} in drawn(chart)


POINTS = pl.DataFrame(
    {"x": [0.0, 1.0], "y": [0.2, 0.1], "text": ["<b>bold</b>", "*star*"], "kind": ["p", "q"]}
)
TITLES = {"x": "ex", "y": "why", "text": "said", "kind": "kind", "items": "items"}


def test_points_show_their_texts_as_they_are():
    chart = charts.scatter(POINTS, "x", "y", TITLES, ["text"])
    (points,) = layers(chart, "point")
    assert [one["field"] for one in points["encoding"]["tooltip"]] == ["text", "x", "y"]
    assert {row["text"] for row in drawn(chart)} == {"<b>bold</b>", "*star*"}
    assert points["encoding"]["color"] == {"value": BLUE}


def test_kinds_of_points_and_the_diagonal():
    chart = charts.scatter(POINTS, "x", "y", TITLES, (), ("kind", ["p", "q"]), diagonal=True)
    (points,), (line,) = layers(chart, "point"), layers(chart, "line")
    assert points["encoding"]["color"]["scale"] == {"domain": ["p", "q"], "range": [ORANGE, BLUE]}
    assert points["encoding"]["shape"]["scale"]["domain"] == ["p", "q"]
    ends = chart.to_dict()["datasets"][line["data"]["name"]]
    assert ends == [{"x": 0.1, "y": 0.1}, {"x": 0.2, "y": 0.2}]  # where both have values


def test_cells_are_drawn_from_edge_to_edge():
    from giccs_app.explorer.models.data import bin_counts

    chart = charts.heatmap(bin_counts(POINTS, "x", "y"), "x", "y", TITLES)
    encoding = chart.to_dict()["encoding"]
    assert (encoding["x"]["field"], encoding["x2"]["field"]) == ("x", "x_to")
    assert encoding["color"]["field"] == "items"
    assert "<svg" in chart_svg(chart)


def test_accuracies_have_a_line_for_guessing():
    frame = FRAME.drop("baseline").with_columns(chance=pl.lit(0.2))
    chart = charts.accuracies(frame, {"chance": "guessing", "value": "accuracy"})
    assert [row["chance"] for row in drawn(chart) if "line" in row] == [0.2]


def test_options_are_ordered_by_likelihood_and_told_apart_by_shape_too():
    frame = pl.DataFrame(
        {
            "letter": ["A", "B"],
            "utterance": ["<i>", "$x$"],
            "role": ["right", "chosen"],
            "likelihood": [-2.0, -1.0],
            "score": [1.0, 0.5],
        }
    )
    titles = {name: name for name in ("letter", "utterance", "role", "likelihood", "score")}
    chart = charts.likelihoods(frame, {**titles, "roles": "both|chosen|right|neither"})
    (points,) = layers(chart, "point")
    assert points["encoding"]["y"]["sort"] == ["B", "A"]
    for channel in ("color", "shape"):
        scale = points["encoding"][channel]["scale"]
        assert scale["domain"] == ["both", "chosen", "right", "neither"]
        assert len(set(scale["range"])) == 4


def test_letters_are_bars_with_a_tick_where_they_were_right():
    frame = pl.DataFrame({"letter": ["A"], "chosen": [3], "gold": [1.5], "expected": [1.0]})
    titles = {"letter": "letter", "count": "times", "chosen": "chosen", "gold": "right"}
    chart = charts.positions(frame, titles)
    (bar,), (tick,) = layers(chart, "bar"), layers(chart, "tick")
    assert (bar["encoding"]["y"]["field"], tick["encoding"]["y"]["field"]) == ("chosen", "gold")


def rows_of(n, prefix="org/" + "m" * 60):
    names = [f"{prefix}-{index:03}" for index in range(n)]
    return pl.DataFrame(
        {"model": names, "value": [1 - index / n for index in range(n)]}
    ).with_columns(low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64))


def test_a_hundred_long_names_have_different_labels_of_two_lines_and_full_tooltips():
    frame = rows_of(100)
    chart = charts.leaderboard(frame)
    (points,) = layers(chart, "point")
    labels = points["encoding"]["y"]["scale"]["domain"]
    assert len(set(labels)) == 100
    assert all(len(label.split("\n")) <= 2 for label in labels)
    assert max(len(line) for label in labels for line in label.split("\n")) <= charts.NAME_WIDTH
    assert points["encoding"]["y"]["axis"]["labelLimit"] == 0  # Vega cuts nothing, in files, too
    assert points["encoding"]["tooltip"][0]["field"] == "model"
    assert {row["model"] for row in drawn(chart)} == set(frame["model"])
    svg = chart_svg(chart)
    assert all(line in svg for label in labels for line in label.split("\n"))


def test_two_charts_with_the_same_rows_are_aligned():
    rows = ["c", "a", "b"]
    both = charts.dot_plot(FRAME, "model", rows=rows, domain=(-1, 1))
    change = charts.dot_plot(FRAME.drop("history"), "model", rows=rows, domain=(-1, 1))
    first, second = (layers(chart, "point")[0]["encoding"] for chart in (both, change))
    assert first["y"]["scale"] == second["y"]["scale"]
    assert first["y"]["scale"]["domain"] == rows  # c has no value
    assert first["y"]["scale"]["type"] == "band"
    assert first["x"]["scale"] == second["x"]["scale"] == {"domain": [-1, 1]}
    assert first["color"]["legend"]["orient"] == "bottom"
    assert both.to_dict()["height"] == change.to_dict()["height"]
