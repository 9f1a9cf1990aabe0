"""The charts of the page "Models": metrics with intervals, predictions, options of a question, letters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from app.explorer.theme import BLUE, GREEN, GREY, ORANGE

__all__ = [
    "accuracies",
    "cells",
    "dots",
    "leaderboard",
    "likelihoods",
    "positions",
    "scatter",
]

Titles = Mapping[str, str]
ROW = 28
"""Pixels a row of a dot plot."""
AXIS, LEGEND, LINE = 75, 75, 50
"""Pixels for the axis with its title, the legend of the histories on top, and that of a line below."""
TICKS = 8
NAME = 170
"""Pixels that a name may take: on a phone the dots need the rest. The tooltip has it whole."""
HISTORIES = ("with", "without")
COLOURS, SHAPES = (ORANGE, BLUE), ("diamond", "circle")
"""Of the histories: colour and shape say the same."""


def leaderboard(
    frame: pl.DataFrame,
    ceiling: tuple[float, float, float] | None = None,
    titles: Titles | None = None,
) -> alt.LayerChart:
    """Return models with their 95 % intervals as a dot plot, best first; the noise ceiling as a band.

    frame: model, value, low, high; where they are there, `history` (with, without: colour and shape) and
    `baseline` (true: a hollow mark). A row whose value is NaN is not drawn; an interval that is NaN
    neither. ceiling: its value, low and high; not drawn where it is NaN. titles: of value, model,
    history, with, without and ceiling, where they are to be others than the English ones.
    """
    said = {"value": "Spearman's ρ", "model": "model", "ceiling": "noise ceiling"} | dict(
        titles or {}
    )
    best_first = frame.fill_nan(None).sort("value", descending=True, nulls_last=True)
    drawn = [] if ceiling is None or math.isnan(ceiling[0]) else _ceiling(ceiling, said)
    return _dot_plot(best_first, "model", said, drawn)


def dots(
    frame: pl.DataFrame,
    name: str,
    titles: Titles | None = None,
    zero: bool = False,
    line: Sequence[alt.Chart] = (),
) -> alt.LayerChart:
    """Return a value and its interval for each of some names, in the order of the frame.

    frame: a column called `name`, value, low, high; where they are there `history` and `baseline` as in
    `leaderboard`, and `n`, which the tooltip shows. titles: of columns, and of ``with`` and ``without``.
    zero: mark 0. line: layers to be drawn first, with a legend below.
    """
    return _dot_plot(frame.fill_nan(None), name, titles or {}, line, zero)


def scatter(
    frame: pl.DataFrame,
    x: str,
    y: str,
    titles: Titles,
    texts: Sequence[str] = (),
    kinds: tuple[str, Sequence[str]] | None = None,
    diagonal: bool = False,
) -> alt.LayerChart:
    """Return a point an item, `x` against `y`, with `texts` in the tooltip.

    titles: of all columns shown. kinds: a column and its values, at most three, told apart by colour and
    shape. diagonal: mark where x equals y. Thousands of points are too many: see `cells`.
    """
    tooltip = [alt.Tooltip(f"{text}:N", title=titles[text]) for text in texts]
    tooltip += [_in_tooltip(frame, column, titles) for column in (x, y)]
    encoding: dict[str, Any] = {
        "x": alt.X(f"{x}:Q", title=titles[x]),
        "y": alt.Y(f"{y}:Q", title=titles[y]),
        "tooltip": tooltip,
        "color": alt.value(BLUE),
    }
    if kinds:
        column, values = kinds
        legend = alt.Legend(title=None, labelLimit=2 * NAME, columns=1, orient="top")
        for channel, of, looks in (
            ("color", alt.Color, (*COLOURS, GREY)),
            ("shape", alt.Shape, (*SHAPES, "cross")),
        ):
            scale = alt.Scale(domain=list(values), range=list(looks[: len(values)]))
            encoding[channel] = of(f"{column}:N", scale=scale, legend=legend)
    points = alt.Chart(frame).mark_point(filled=True, size=45, opacity=0.85).encode(**encoding)
    line = _diagonal(frame, x, y) if diagonal and len(frame) else []
    return alt.LayerChart(layer=[*line, points]).properties(height=420)


def cells(frame: pl.DataFrame, x: str, y: str, titles: Titles) -> alt.Chart:
    """Return how many items lie in each cell of `x` against `y`.

    frame: what `data.in_cells` returns: `x`, `x` + "_to", the same of `y`, and items.
    """
    return (
        alt.Chart(frame)
        .mark_rect()
        .encode(
            x=alt.X(f"{x}:Q", title=titles[x], scale=alt.Scale(zero=False)),
            x2=f"{x}_to:Q",
            y=alt.Y(f"{y}:Q", title=titles[y], scale=alt.Scale(zero=False)),
            y2=f"{y}_to:Q",
            color=alt.Color(
                "items:Q",
                scale=alt.Scale(scheme="viridis", type="sqrt"),
                legend=alt.Legend(title=titles["items"], orient="top"),
            ),
            tooltip=[
                alt.Tooltip(f"{edge}:Q", title=title, format=".3f")
                for column in (x, y)
                for edge, title in (
                    (column, f"{titles[column]} ≥"),
                    (f"{column}_to", f"{titles[column]} <"),
                )
            ]
            + [alt.Tooltip("items:Q", title=titles["items"])],
        )
        .properties(height=420)
    )


def accuracies(frame: pl.DataFrame, titles: Titles) -> alt.LayerChart:
    """Return accuracies with their 95 % intervals, best first, and guessing as a dashed line.

    frame: what `data.accuracies` returns. titles: of value, model, history, n and chance.
    """
    chance = alt.Chart(
        frame.select(pl.lit(titles["chance"]).alias("line"), "chance").fill_nan(None).unique()
    )
    line = chance.mark_rule(color=GREY, strokeWidth=2).encode(
        x="chance:Q",
        strokeDash=alt.StrokeDash(
            "line:N",
            scale=alt.Scale(range=[[5, 3]]),
            legend=alt.Legend(title=None, orient="bottom", symbolSize=400),
        ),
        tooltip=[alt.Tooltip("chance:Q", title=titles["chance"], format=".3f")],
    )
    return dots(frame, "model", titles, line=[line])


def likelihoods(frame: pl.DataFrame, titles: Titles) -> alt.LayerChart:
    """Return how likely a model finds each option of a question, the likeliest first.

    frame: of what `data.options` returns the rows of a question under a history, with
    `utterance` and `role`: whether the option was chosen or is right, in the words of the legend. titles:
    of letter, utterance, likelihood, role and score; and as ``roles`` those of both, chosen, right and
    neither, joined by ``|``.
    """
    roles = titles["roles"].split("|")
    y = alt.Y(
        "letter:N",
        sort=frame.sort("likelihood", descending=True)["letter"].to_list(),
        title=None,
    )
    tooltip = [
        alt.Tooltip(f"{name}:N", title=titles[name]) for name in ("letter", "utterance", "role")
    ] + [
        alt.Tooltip(f"{name}:Q", title=titles[name], format=".3f")
        for name in ("likelihood", "score")
    ]
    base = alt.Chart(frame).encode(y=y, tooltip=tooltip)
    legend = alt.Legend(title=None, orient="top", columns=2, labelLimit=300)
    points = base.mark_point(filled=True, size=130, opacity=1).encode(
        x=alt.X("likelihood:Q", title=titles["likelihood"], scale=alt.Scale(zero=False)),
        color=alt.Color(
            "role:N",
            legend=legend,
            scale=alt.Scale(domain=roles, range=[BLUE, ORANGE, GREEN, GREY]),
        ),
        shape=alt.Shape(
            "role:N",
            legend=legend,
            scale=alt.Scale(domain=roles, range=["circle", "diamond", "square", "triangle-up"]),
        ),
    )
    return alt.LayerChart(layer=[points]).properties(height=130 + 26 * len(frame))


def positions(frame: pl.DataFrame, titles: Titles) -> alt.LayerChart:
    """Return how often each letter was chosen (bars) and was right (ticks).

    frame: `data.Letters.frame`. titles: of letter, count, chosen and gold.
    """
    named = frame.select(
        "letter",
        pl.col("chosen").cast(pl.Float64),
        "gold",
        chosen_name=pl.lit(titles["chosen"]),
        gold_name=pl.lit(titles["gold"]),
    )
    tooltip = [
        alt.Tooltip("letter:N", title=titles["letter"]),
        alt.Tooltip("chosen:Q", title=titles["chosen"]),
        alt.Tooltip("gold:Q", title=titles["gold"], format=".3~g"),
    ]
    base = alt.Chart(named).encode(
        x=alt.X("letter:N", title=titles["letter"], axis=alt.Axis(labelAngle=0)), tooltip=tooltip
    )
    colour = alt.Scale(domain=[titles["chosen"], titles["gold"]], range=[BLUE, ORANGE])
    legend = alt.Legend(title=None, symbolType="square", orient="top")
    bars = base.mark_bar().encode(
        y=alt.Y("chosen:Q", title=titles["count"]),
        color=alt.Color("chosen_name:N", scale=colour, legend=legend),
    )
    ticks = base.mark_tick(thickness=4, size=34, opacity=1).encode(
        y="gold:Q", color=alt.Color("gold_name:N", scale=colour, legend=legend)
    )
    return alt.LayerChart(layer=[bars, ticks]).properties(height=260)


def _dot_plot(
    frame: pl.DataFrame, name: str, titles: Titles, line: Sequence[alt.Chart], zero: bool = False
) -> alt.LayerChart:
    said = {"value": "value", "low": "2.5 %", "high": "97.5 %", "history": "history"} | dict(titles)
    drawn = _in_words(frame.filter(pl.col("value").is_not_null()), said)
    names = drawn[name].unique(maintain_order=True).to_list()
    base = _rows(drawn, name, names, said)
    interval = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
    colour = {key: how for key, how in _coloured(drawn, said).items() if key == "color"}
    ends = interval.encode(x="low:Q", x2="high:Q", **colour)
    points = _points(base, drawn, said, _tooltip(drawn, name, said))
    nought = alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(color=GREY).encode(x="zero:Q")
    rows = ROW * max(1, len(names)) * (1.6 if _two_histories(drawn) else 1)
    height = AXIS + rows + (LEGEND if "history" in drawn.columns else 0) + (LINE if line else 0)
    return alt.LayerChart(layer=[*line, *([nought] if zero else []), ends, *points]).properties(
        height=round(height)
    )


def _in_words(frame: pl.DataFrame, said: Titles) -> pl.DataFrame:
    """Return the frame with its histories as the legend calls them."""
    if "history" not in frame.columns:
        return frame
    return frame.with_columns(pl.col("history").replace(_words(said)))


def _words(said: Titles) -> dict[str, str]:
    return {name: said.get(name, name) for name in HISTORIES}


def _rows(frame: pl.DataFrame, name: str, names: Sequence[str], said: Titles) -> alt.Chart:
    axis = alt.Axis(
        labelLimit=NAME, title=None, grid=False, ticks=False, domain=False, labelPadding=6
    )
    base = alt.Chart(frame).encode(y=alt.Y(f"{name}:N", sort=names, axis=axis))
    offset = alt.YOffset("history:N", sort=list(_words(said).values()))
    return base.encode(yOffset=offset) if _two_histories(frame) else base


def _two_histories(frame: pl.DataFrame) -> bool:
    return "history" in frame.columns and frame["history"].n_unique() > 1


def _points(
    base: alt.Chart, frame: pl.DataFrame, said: Titles, tooltip: list[alt.Tooltip]
) -> list[alt.Chart]:
    encoding: dict[str, Any] = {
        "x": alt.X("value:Q", title=said["value"], axis=alt.Axis(tickCount=TICKS)),
        "tooltip": tooltip,
    }
    encoding |= _coloured(frame, said)
    if "baseline" not in frame.columns:
        return [_marks(base, filled=True).encode(**encoding)]
    there = set(frame["baseline"].to_list())  # a layer without marks is an image without a name
    return [
        _marks(base.transform_filter(which), filled).encode(**encoding)
        for baseline, which, filled in (
            (False, "!datum.baseline", True),
            (True, "datum.baseline", False),
        )
        if baseline in there
    ]


def _marks(base: alt.Chart, filled: bool) -> alt.Chart:
    return base.mark_point(filled=filled, size=90, opacity=1, strokeWidth=2)


def _coloured(frame: pl.DataFrame, said: Titles) -> dict[str, Any]:
    """Return colour and shape by history, where there is one."""
    if frame.is_empty() or "history" not in frame.columns:
        return {"color": alt.value(BLUE)}
    there = set(frame["history"].to_list())
    drawn = zip(_words(said).values(), COLOURS, SHAPES, strict=True)
    domain, colours, shapes = zip(*[one for one in drawn if one[0] in there], strict=True)
    channels = {"color": (alt.Color, colours), "shape": (alt.Shape, shapes)}
    return {
        channel: of(
            "history:N",
            scale=alt.Scale(domain=domain, range=values),
            legend=alt.Legend(title=None, orient="top", columns=1),
        )
        for channel, (of, values) in channels.items()
    }


def _tooltip(frame: pl.DataFrame, name: str, said: Titles) -> list[alt.Tooltip]:
    columns = [name, *(c for c in ("history", "value", "low", "high", "n") if c in frame.columns)]
    return [_in_tooltip(frame, column, said) for column in columns]


def _in_tooltip(frame: pl.DataFrame, column: str, said: Titles) -> alt.Tooltip:
    title = said.get(column, column)
    if frame.schema[column].is_float():
        return alt.Tooltip(f"{column}:Q", title=title, format=".3f")
    return alt.Tooltip(f"{column}:N", title=title)


def _ceiling(ceiling: tuple[float, float, float], said: Titles) -> list[alt.Chart]:
    value, low, high = ceiling
    frame = pl.DataFrame(
        {"ceiling": [said["ceiling"]], "value": [value], "low": [low], "high": [high]}
    )
    tooltip = [
        alt.Tooltip("ceiling:N", title=" "),
        *(
            _in_tooltip(frame, column, {"low": "2.5 %", "high": "97.5 %", **said})
            for column in ("value", "low", "high")
        ),
    ]
    base = alt.Chart(frame.fill_nan(None)).encode(tooltip=tooltip)
    legend = alt.StrokeDash(
        "ceiling:N",
        scale=alt.Scale(range=[[5, 3]]),
        legend=alt.Legend(title=None, orient="bottom", symbolSize=400),
    )
    line = base.mark_rule(color=GREY, strokeWidth=2).encode(x="value:Q", strokeDash=legend)
    band = base.mark_rect(color=GREY, opacity=0.25).encode(x="low:Q", x2="high:Q")
    return [line] if math.isnan(low) else [band, line]


def _diagonal(frame: pl.DataFrame, x: str, y: str) -> list[alt.Chart]:
    ends = frame.select(
        pl.max_horizontal(pl.min(x), pl.min(y)).append(pl.min_horizontal(pl.max(x), pl.max(y)))
    ).to_series()
    line = alt.Chart(pl.DataFrame({x: ends, y: ends})).mark_line(color=GREY, strokeDash=[5, 3])
    return [line.encode(x=f"{x}:Q", y=f"{y}:Q")]
