"""The charts of the page "Annotation": progress, annotators, times, positions on the screen.

Each chart is a function of a data frame of `giccs_app.explorer.annotation.data` and of titles: column ->
title of the axis in the current language.
"""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import polars as pl

from giccs_app.explorer.theme import BLUE, GREY, ORANGE, VERMILION

__all__ = ["annotators_chart", "positions_chart", "seconds_chart", "time_chart", "tuples_chart"]

Titles = Mapping[str, str]
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
    labels = base.mark_text(dy=-8, color=GREY).encode(text=alt.Text("tuples:Q", format=","))
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
    """Return a scatter plot of compliance against time per annotator, or against judgments without times.

    Flagged annotators are triangles in another colour. The line at 0.5 is the chance level.
    titles: also of ``look`` and ``fine``.
    """
    has_times = frame["seconds"].count() > 0
    frame_with_state = frame.with_columns(
        state=pl.when(pl.col("flags").list.len() > 0)
        .then(pl.lit(titles["look"]))
        .otherwise(pl.lit(titles["fine"]))
    ).drop("flags")
    states = [titles["fine"], titles["look"]]
    name = "seconds" if has_times else "judgments"
    scale, axis = alt.Scale(zero=True), alt.Axis(tickMinStep=1, format=",")
    if has_times:
        scale, axis = alt.Scale(type="log", nice=False, padding=12), alt.Axis(format=",~r")
    columns = ["annotator", "judgments", "compliance", "majority", "seconds", "shortest", "reasons"]
    dots = (
        alt.Chart(frame_with_state)
        .mark_point(filled=True, size=90, opacity=0.85)
        .encode(
            x=alt.X(f"{name}:Q", title=titles[name], scale=scale, axis=axis),
            y=alt.Y(
                "compliance:Q", title=titles["compliance"], scale=alt.Scale(zero=False, padding=12)
            ),
            color=alt.Color(
                "state:N",
                title=None,
                scale=alt.Scale(domain=states, range=[BLUE, VERMILION]),
                legend=alt.Legend(orient="top"),
            ),
            shape=alt.Shape(
                "state:N", scale=alt.Scale(domain=states, range=["circle", "triangle-up"])
            ),
            tooltip=[_tooltip(column, titles) for column in columns],
        )
    )
    chance = alt.Chart(pl.DataFrame({"compliance": [0.5]})).mark_rule(color=GREY, strokeDash=[4, 4])
    return (chance.encode(y="compliance:Q") + dots).properties(height=300)


def _tooltip(column: str, titles: Titles) -> alt.Tooltip:
    numbers = {"compliance": ".3f", "majority": ".3f", "seconds": ".3~g", "shortest": ".3~g"}
    kind = "N" if column in ("annotator", "reasons") else "Q"
    if column in numbers:
        return alt.Tooltip(f"{column}:{kind}", title=titles[column], format=numbers[column])
    return alt.Tooltip(f"{column}:{kind}", title=titles[column])


def seconds_chart(frame: pl.DataFrame, titles: Titles) -> alt.Chart:
    """Return a histogram of the times on a log scale. frame: low, high, judgments."""
    return (
        alt.Chart(frame)
        .mark_bar(color=BLUE, binSpacing=1)
        .encode(
            x=alt.X(
                "low:Q",
                bin="binned",
                title=titles["seconds"],
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(format=",~r"),
            ),
            x2="high:Q",
            y=alt.Y("judgments:Q", title=titles["judgments"], axis=alt.Axis(tickMinStep=1)),
            tooltip=[
                alt.Tooltip("low:Q", title=titles["from"], format=".3~g"),
                alt.Tooltip("high:Q", title=titles["to"], format=".3~g"),
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
