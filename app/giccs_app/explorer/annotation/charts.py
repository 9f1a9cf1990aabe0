"""The charts of the page "Annotation": progress, annotators, times, positions on the screen.

Each chart is a function of a data frame of `giccs_app.explorer.annotation.data` and of titles: column ->
title of the axis in the current language.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import altair as alt
import polars as pl

from bws.base.charts import BLUE, ORANGE, VERMILION
from giccs.report.model_names import WRAPPED_LABELS, wrap_names
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.theme import GREY

Titles = Mapping[str, str]
MIN_SECONDS = 0.1
"""Position of shorter times on a log scale; ledgers store times in tenths of seconds."""
MAX_TICKS = 8
MANTISSAS = ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
"""Candidates for the leading digits of the ticks of a log scale, finest first."""
PLAIN_NUMBER = ",.6~f"
"""Format of ticks: without exponent and trailing zeros."""
SIZES = ((30, 100), (100, 60), (math.inf, 35))
"""Up to so many annotators, the area of a mark in square pixels."""
NAME_WIDTH, ROW_HEIGHT = 26, 30
"""Longest line of an annotator's name in characters, and height of a row in pixels."""
MAX_BARS = 25
"""With more bars, numbers of judgments that do not occur are omitted."""


def tuples_chart(counts: pl.DataFrame, requested: int, titles: Titles) -> alt.LayerChart:
    """Return a bar chart of the tuples per number of judgments; incomplete tuples have another colour.

    counts: judgments, tuples, share. titles: also of ``complete`` and ``behind``.
    """
    state = (
        pl.when(pl.col("judgments") < requested)
        .then(pl.lit("behind"))
        .otherwise(pl.lit("complete"))
    )
    names = {name: titles[name] for name in ("complete", "behind")}
    max_judgments = max(requested, *counts["judgments"].to_list())
    domain = (
        list(range(max_judgments + 1))
        if max_judgments < MAX_BARS
        else counts["judgments"].to_list()
    )
    base = alt.Chart(counts.with_columns(state=state.replace(names))).encode(
        x=alt.X(
            "judgments:O",
            title=titles["judgments"],
            axis=alt.Axis(labelAngle=0),
            scale=alt.Scale(domain=domain),
        ),
        y=alt.Y("tuples:Q", title=titles["tuples"], axis=alt.Axis(tickMinStep=1)),
        tooltip=[
            alt.Tooltip("judgments:O", title=titles["judgments"]),
            alt.Tooltip("tuples:Q", title=titles["tuples"], format=","),
            alt.Tooltip("share:Q", title=titles["share"], format=".1%"),
        ],
    )
    colour = alt.Color(
        "state:N",
        title=None,
        scale=alt.Scale(domain=list(names.values()), range=[BLUE, ORANGE]),
        legend=alt.Legend(orient="top"),
    )
    labels = base.mark_text(dy=-8).encode(text=alt.Text("tuples:Q", format=","))
    return (base.mark_bar(width={"band": 0.8}).encode(color=colour) + labels).properties(height=260)


def time_chart(frame: pl.DataFrame, titles: Titles) -> alt.Chart:
    """Return the cumulative number of judgments over time. frame: time, judgments."""
    return (
        alt.Chart(frame)
        .mark_area(
            interpolate="step-after",
            color=BLUE,
            opacity=0.25,
            line={"color": BLUE, "strokeWidth": 2},
        )
        .encode(
            x=alt.X("time:T", title=titles["time"]),
            y=alt.Y("judgments:Q", title=titles["judgments"], axis=alt.Axis(tickMinStep=1)),
            tooltip=[
                alt.Tooltip("time:T", title=titles["time"], format="%Y-%m-%d %H:%M:%S"),
                alt.Tooltip("judgments:Q", title=titles["judgments"], format=","),
            ],
        )
        .properties(height=260)
    )


def annotators_chart(frame: pl.DataFrame, titles: Titles) -> alt.LayerChart:
    """Return a scatter plot of compliance against time per annotator, or in its own order without times.

    In this order each annotator has a place, where the same number of judgments would be one mark for all.
    Flagged annotators are triangles in another colour. The line at 0.5 is the chance level.
    titles: also of ``look``, ``fine`` and ``by_compliance``.
    """
    has_times = frame["seconds"].count() > 0
    states = [titles["fine"], titles["look"]]
    is_flagged = pl.col("flags").list.len() > 0
    drawn = frame.with_columns(
        state=pl.when(is_flagged).then(pl.lit(states[1])).otherwise(pl.lit(states[0])),
        position=pl.col("seconds").clip(MIN_SECONDS)
        if has_times
        else pl.col("compliance").rank("ordinal"),
        reasons=pl.Series([*map(local_remark, frame["reasons"])], dtype=pl.String),
    )
    drawn = drawn.sort(is_flagged, maintain_order=True).drop("flags")  # flagged ones are drawn last
    scale, axis = alt.Scale(zero=True), alt.Axis(tickMinStep=1, format=",d")
    if has_times:
        scale, axis = _log_axis(drawn["position"].drop_nulls().to_list())
    columns = ["annotator", "judgments", "compliance", "majority", "seconds", "shortest", "reasons"]
    colours = alt.Scale(domain=states, range=[BLUE, VERMILION])
    legend = alt.Legend(orient="top")
    size = next(area for most, area in SIZES if len(frame) <= most)
    dots = (
        alt.Chart(drawn)
        .mark_point(size=size, fillOpacity=0.35, strokeOpacity=1, strokeWidth=1.5)
        .encode(
            x=alt.X(
                "position:Q",
                title=titles["seconds" if has_times else "by_compliance"],
                scale=scale,
                axis=axis,
            ),
            y=alt.Y(
                "compliance:Q", title=titles["compliance"], scale=alt.Scale(zero=False, padding=12)
            ),
            color=alt.Color("state:N", title=None, scale=colours, legend=legend),
            fill=alt.Fill("state:N", title=None, scale=colours, legend=legend),
            shape=alt.Shape(
                "state:N", scale=alt.Scale(domain=states, range=["circle", "triangle-up"])
            ),
            tooltip=[_tooltip(column, titles) for column in columns],
        )
    )
    chance = alt.Chart(pl.DataFrame({"compliance": [0.5]})).mark_rule(color=GREY, strokeDash=[4, 4])
    return (chance.encode(y="compliance:Q") + dots).properties(height=300)


def agreement_chart(frame: pl.DataFrame, chance: float, titles: Titles) -> alt.LayerChart:
    """Return a dot plot of the agreement with people per annotator, in the order of the frame.

    frame: annotator, kind (titles of ``people`` and ``model``, by colour and shape), value, low, high; rows
    without a value are not drawn. chance: agreement of random answers, a dashed line. titles: also of these.
    """
    drawn = frame.filter(pl.col("value").is_not_nan())
    labels = wrap_names({name: name for name in drawn["annotator"]}, NAME_WIDTH)
    rows = list(labels.values())
    kinds = [titles["people"], titles["model"]]
    axis = alt.Axis(title=None, grid=False, ticks=False, labelOverlap=False, **WRAPPED_LABELS)
    legend = alt.Legend(orient="top")
    base = alt.Chart(
        drawn.with_columns(label=pl.col("annotator").replace_strict(labels, return_dtype=pl.String))
    ).encode(
        y=alt.Y("label:N", sort=rows, scale=alt.Scale(domain=rows), axis=axis),
        color=alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=kinds, range=[BLUE, VERMILION]),
            legend=legend,
        ),
        tooltip=[
            *(alt.Tooltip(f"{name}:N", title=titles[name]) for name in ("annotator", "kind")),
            *(
                alt.Tooltip(f"{name}:Q", title=titles[name], format=".3f")
                for name in ("value", "low", "high")
            ),
        ],
    )
    x = alt.X("value:Q", title=titles["value"], scale=alt.Scale(zero=False))
    line = alt.Chart(pl.DataFrame({"value": [chance]})).mark_rule(color=GREY, strokeDash=[4, 4])
    layers: list[alt.Chart] = [line.encode(x=x)]
    with_interval = drawn.filter(pl.col("low").is_not_nan())
    if len(with_interval):  # an empty layer would be an image without an accessible name
        intervals = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
        layers.append(intervals.encode(x=alt.X("low:Q", title=titles["value"]), x2="high:Q"))
    shapes = alt.Scale(domain=kinds, range=["circle", "diamond"])
    points = base.mark_point(filled=True, size=80, opacity=1)
    layers.append(points.encode(x=x, shape=alt.Shape("kind:N", scale=shapes, legend=legend)))
    return alt.LayerChart(layer=layers).properties(height=alt.Step(ROW_HEIGHT))


def _log_axis(values: list[float]) -> tuple[alt.Scale, alt.Axis]:
    """Return a log scale over the values (> 0) and an axis with plain numbers."""
    low, high = min(values), max(values)
    if high < 2 * low:
        low, high = low / 2, high * 2
    ticks = log_ticks(low, high)
    return (
        alt.Scale(type="log", domain=[low, high], nice=False, padding=12),
        alt.Axis(values=ticks, format=PLAIN_NUMBER, labelOverlap="greedy"),
    )


def log_ticks(low: float, high: float) -> list[float]:
    """Return at most `MAX_TICKS` round numbers between two positive numbers, for a log scale.

    >>> log_ticks(3.2, 640), log_ticks(0.1, 0.11), log_ticks(1, 1e4)
    ([5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0], [0.1], [1.0, 10.0, 100.0, 1000.0, 10000.0])
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for mantissas in MANTISSAS:
        all_ticks = [float(f"{digits}e{decade}") for decade in decades for digits in mantissas]
        ticks = [tick for tick in all_ticks if low <= tick <= high]
        if len(ticks) <= MAX_TICKS:
            return ticks
    return ticks[:: math.ceil(len(ticks) / MAX_TICKS)]


def _tooltip(column: str, titles: Titles) -> alt.Tooltip:
    numbers = {"compliance": ".3f", "majority": ".3f", "seconds": ",.1f", "shortest": ",.1f"}
    kind = "N" if column in ("annotator", "reasons") else "Q"
    if column in numbers:
        return alt.Tooltip(f"{column}:{kind}", title=titles[column], format=numbers[column])
    return alt.Tooltip(f"{column}:{kind}", title=titles[column])


def seconds_chart(frame: pl.DataFrame, titles: Titles) -> alt.Chart:
    """Return a histogram of the times on a log scale. frame: low, high, judgments; at least one row."""
    ticks = log_ticks(*frame.select(pl.min("low"), pl.max("high")).row(0))
    return (
        alt.Chart(frame)
        .mark_bar(color=BLUE, binSpacing=1)
        .encode(
            x=alt.X(
                "low:Q",
                bin="binned",
                title=titles["seconds"],
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=ticks, format=PLAIN_NUMBER, labelOverlap="greedy"),
            ),
            x2="high:Q",
            y=alt.Y("judgments:Q", title=titles["judgments"], axis=alt.Axis(tickMinStep=1)),
            tooltip=[
                alt.Tooltip("low:Q", title=titles["from"], format=",.2~f"),
                alt.Tooltip("high:Q", title=titles["to"], format=",.2~f"),
                alt.Tooltip("judgments:Q", title=titles["judgments"], format=","),
            ],
        )
        .properties(height=240)
    )


def positions_chart(frame: pl.DataFrame, titles: Titles) -> alt.LayerChart:
    """Return the shares of best and worst answers per position, with intervals and 1 / K (dashed).

    frame: answer, place, count, share, low, high, expected.
    """
    answers = [titles["best"], titles["worst"]]
    translated = frame.with_columns(
        pl.col("answer").replace({n: titles[n] for n in ("best", "worst")})
    )
    base = alt.Chart(translated).encode(
        x=alt.X("place:O", title=titles["place"], axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("answer:N", scale=alt.Scale(domain=answers, paddingOuter=0.6)),
        color=alt.Color(
            "answer:N",
            title=None,
            scale=alt.Scale(domain=answers, range=[BLUE, ORANGE]),
            legend=alt.Legend(orient="top"),
        ),
        tooltip=[
            alt.Tooltip("answer:N", title=titles["answer"]),
            alt.Tooltip("place:O", title=titles["place"]),
            alt.Tooltip("count:Q", title=titles["count"], format=","),
            *(
                alt.Tooltip(f"{name}:Q", title=titles[name], format=".1%")
                for name in ("share", "low", "high", "expected")
            ),
        ],
    )
    percent = alt.Axis(format="%")
    interval = alt.Y("low:Q", title=titles["share"], scale=alt.Scale(zero=False), axis=percent)
    intervals = base.mark_rule(strokeWidth=2).encode(y=interval, y2="high:Q")
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(
        y="share:Q",
        shape=alt.Shape("answer:N", scale=alt.Scale(domain=answers, range=["circle", "diamond"])),
    )
    expected = (
        alt.Chart(translated.select("expected").head(1))
        .mark_rule(color=GREY, strokeDash=[4, 4])
        .encode(y="expected:Q")
    )
    return (expected + intervals + dots).properties(height=260)
