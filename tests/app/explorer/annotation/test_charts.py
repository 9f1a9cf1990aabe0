"""Charts of an annotation: what they show of hand-made frames, drawn for real."""

import io
import re
from datetime import UTC, datetime

import polars as pl
import pytest

pytest.importorskip("altair", reason="the extra giccs[charts] is not installed")
pytest.importorskip("vl_convert", reason="the extra giccs[charts] is not installed")

from giccs_app.explorer.annotation.charts import (
    annotators_chart,
    positions_chart,
    seconds_chart,
    time_chart,
    tuples_chart,
)
from giccs_app.explorer.annotation.page import TITLES
from giccs_app.explorer.labels import text_of
from giccs_app.explorer.theme import BLUE, ORANGE, VERMILION

ENGLISH = {name: text_of(f"annotation.title_{name}", "en") for name in TITLES}
GERMAN = {name: text_of(f"annotation.title_{name}", "de") for name in TITLES}
COUNTS = pl.DataFrame({"judgments": [3, 5, 6], "tuples": [4, 90, 6], "share": [0.04, 0.9, 0.06]})
TIMES = pl.DataFrame(
    {"time": [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (1, 2)], "judgments": [1, 7]}
)
SECONDS = pl.DataFrame({"low": [1.0, 10.0], "high": [10.0, 100.0], "judgments": [2, 5]})
PLACES = pl.DataFrame(
    {
        "answer": ["best", "best", "worst", "worst"], "place": [1, 2, 1, 2], "count": [6, 4, 5, 5],
        "share": [0.6, 0.4, 0.5, 0.5], "low": [0.3, 0.2, 0.2, 0.2], "high": [0.8, 0.7, 0.8, 0.8],
        "expected": [0.5] * 4,
    }
)  # fmt: skip


def annotators(seconds=(9.0, 1.0)):
    return pl.DataFrame(
        {
            "annotator": ["w-1", "<b>w-2"], "judgments": [10, 20], "flags": [[], ["fast"]],
            "reasons": ["", "1 seconds"], "compliance": [0.9, 0.4], "majority": [0.8, 0.3],
            "seconds": pl.Series(seconds, dtype=pl.Float64), "shortest": [3.0, 0.5],
        },
        schema_overrides={"flags": pl.List(pl.String)},
    )  # fmt: skip


def drawn(chart):
    file = io.StringIO()
    chart.save(file, format="svg")
    return file.getvalue()


@pytest.mark.parametrize("titles", [ENGLISH, GERMAN], ids=["en", "de"])
@pytest.mark.parametrize(
    ("make", "title"),
    [
        (lambda titles: tuples_chart(COUNTS, 5, titles), "tuples"),
        (lambda titles: time_chart(TIMES, titles), "time"),
        (lambda titles: annotators_chart(annotators(), titles), "compliance"),
        (lambda titles: seconds_chart(SECONDS, titles), "seconds"),
        (lambda titles: positions_chart(PLACES, titles), "place"),
    ],
    ids=["tuples", "time", "annotators", "seconds", "places"],
)
def test_every_chart_is_drawn_with_its_titles(make, title, titles):
    assert titles[title] in drawn(make(titles))


def test_tuples_with_too_few_judgments_stand_out():
    svg = drawn(tuples_chart(COUNTS, 5, ENGLISH))
    bars = [part for part in svg.split("<path") if 'aria-roledescription="bar"' in part]
    assert [BLUE in bar for bar in bars] == [False, True, True]
    assert [ORANGE in bar for bar in bars] == [True, False, False]
    assert all(f">{n}<" in svg for n in (0, 1, 2, 4))  # nobody's numbers have places, too


def test_whom_to_look_at_has_a_colour_and_a_shape():
    chart = annotators_chart(annotators(), ENGLISH)
    points = chart.to_dict()["layer"][1]["encoding"]
    assert points["color"]["scale"]["range"] == [BLUE, VERMILION]
    assert points["shape"]["scale"]["range"] == ["circle", "triangle-up"]
    svg = drawn(chart)
    assert svg.count('aria-roledescription="point"') == 2
    assert "<b>" not in svg


@pytest.mark.parametrize(
    ("seconds", "title", "positions"),
    [((9.0, 0.0), "seconds", {9.0, 0.1}), ((None, None), "by_compliance", {1, 2})],
)
def test_without_times_each_annotator_has_a_place(seconds, title, positions):
    chart = annotators_chart(annotators(seconds), ENGLISH)
    document = chart.to_dict()
    assert document["layer"][1]["encoding"]["x"]["title"] == ENGLISH[title]
    rows = [row for rows in document["datasets"].values() for row in rows if "position" in row]
    assert {row["position"] for row in rows} == positions
    drawn(chart)


@pytest.mark.parametrize("n", [3, 200])
def test_few_and_many_annotators_have_plain_ticks_and_marks_that_show_overlap(n):
    frame = pl.concat([annotators().head(1)] * n).with_columns(
        seconds=pl.Series([1.7 * 1.03**index for index in range(n)]),
        annotator=pl.int_range(n).cast(str),
    )
    chart = annotators_chart(frame, ENGLISH)
    mark = chart.to_dict()["layer"][1]["mark"]
    assert mark["fillOpacity"] < 0.5
    assert mark["size"] == {3: 100, 200: 35}[n]
    svg = drawn(chart)
    assert svg.count('aria-roledescription="point"') == n
    ticks = horizontal_labels(svg)
    assert 2 <= len(ticks) <= 8
    assert all(re.fullmatch(r"[\d,.]+", tick) for tick in ticks)


def horizontal_labels(svg):
    """Return the labels of the horizontal axis."""
    axis = svg.split("X-axis titled")[1].split("role-axis-title")[0]
    return re.findall(r"<text[^>]*>([^<]*)</text>", axis)


def test_times_are_on_a_log_scale_from_edge_to_edge():
    encoding = seconds_chart(SECONDS, ENGLISH).to_dict()["encoding"]
    assert encoding["x"]["scale"]["type"] == "log"
    assert (encoding["x"]["field"], encoding["x2"]["field"]) == ("low", "high")
    assert drawn(seconds_chart(SECONDS, ENGLISH)).count('aria-roledescription="bar"') == 2


def test_every_place_has_both_answers_and_an_interval():
    svg = drawn(positions_chart(PLACES, ENGLISH))
    assert svg.count('aria-roledescription="point"') == 4
    rules = re.findall(r'class="mark-rule role-mark.*?</g>', svg, re.DOTALL)
    assert [group.count("<line") for group in rules] == [1, 4]  # 1 / K, and intervals
