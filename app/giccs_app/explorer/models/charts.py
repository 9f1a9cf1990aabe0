"""The charts of the page "Models": metrics with intervals, predictions, options of a question, letters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import polars as pl

from bws.base.charts import BLUE, GREEN, ORANGE
from giccs.report.metric_titles import metric_title
from giccs.report.model_names import WRAPPED_LABELS, chart_names, wrap_names
from giccs_app.explorer.theme import GREY

Titles = Mapping[str, str]
ROW_HEIGHT, TWO_HISTORIES_HEIGHT = 30, 46
"""Heights in pixels of a row of a dot plot, and of one with both history conditions."""
TICK_COUNT = 8
NAME_WIDTH = 26
"""Longest line of a name in characters, for small screens; names have at most two lines."""
MAX_LEGEND_WIDTH = 340
"""Maximum width of the names of categories in pixels."""
HISTORIES = ("with", "without")
COLOURS, SHAPES = (ORANGE, BLUE), ("diamond", "circle")
"""Colours and shapes of the history conditions."""


def leaderboard(
    frame: pl.DataFrame,
    ceiling: tuple[float, float, float] | None = None,
    titles: Titles | None = None,
) -> alt.LayerChart:
    """Return a dot plot of models with 95 % intervals, best first, and the noise ceiling as a band.

    frame: model, value, low, high; optionally `history` (with, without: colour and shape) and `baseline`
    (true: hollow mark). Rows with a NaN value and NaN intervals are not drawn. ceiling: value, low and high;
    not drawn if NaN. titles: of value, model, history, with, without and ceiling, by default in English.
    """
    labels = {
        "value": metric_title("spearman"),
        "model": "model",
        "ceiling": "noise ceiling",
    } | dict(titles or {})
    best_first = frame.fill_nan(None).sort("value", descending=True, nulls_last=True)
    ceiling_layers = (
        [] if ceiling is None or math.isnan(ceiling[0]) else _ceiling_layers(ceiling, labels)
    )
    return _dot_plot(best_first, "model", labels, ceiling_layers)


def dot_plot(
    frame: pl.DataFrame,
    name: str,
    titles: Titles | None = None,
    mark_zero: bool = False,
    background_layers: Sequence[alt.Chart] = (),
    rows: Sequence[str] = (),
    domain: tuple[float, float] | None = None,
) -> alt.LayerChart:
    """Return a dot plot of values and intervals, in the order of the frame.

    frame: the column `name`, value, low, high; optionally `history` and `baseline` as in `leaderboard`, and
    `n` for the tooltip. titles: of columns, and of ``with`` and ``without``. mark_zero: draw a line at 0.
    background_layers: layers drawn first, with a legend at the bottom. rows, domain: the names of all rows in
    order, and the range of the values, by default those of the frame; charts with the same rows and domain
    can be placed side by side, since their legends are at the bottom.
    """
    return _dot_plot(
        frame.fill_nan(None), name, titles or {}, background_layers, mark_zero, rows, domain
    )


def scatter(
    frame: pl.DataFrame,
    x: str,
    y: str,
    titles: Titles,
    texts: Sequence[str] = (),
    categories: tuple[str, Sequence[str]] | None = None,
    diagonal: bool = False,
) -> alt.LayerChart:
    """Return a scatter plot with one point per item and `texts` in the tooltip.

    titles: of all columns. categories: a column and its values (at most three), shown by colour and shape.
    diagonal: draw the line x = y. For thousands of points use `heatmap`.
    """
    tooltip = [alt.Tooltip(f"{text}:N", title=titles[text]) for text in texts]
    tooltip += [_tooltip_field(frame, column, titles) for column in (x, y)]
    encoding: dict[str, Any] = {
        "x": alt.X(f"{x}:Q", title=titles[x]),
        "y": alt.Y(f"{y}:Q", title=titles[y]),
        "tooltip": tooltip,
        "color": alt.value(BLUE),
    }
    if categories:
        column, values = categories
        legend = alt.Legend(title=None, labelLimit=MAX_LEGEND_WIDTH, columns=1, orient="top")
        for channel, channel_type, channel_range in (
            ("color", alt.Color, (*COLOURS, GREY)),
            ("shape", alt.Shape, (*SHAPES, "cross")),
        ):
            scale = alt.Scale(domain=list(values), range=list(channel_range[: len(values)]))
            encoding[channel] = channel_type(f"{column}:N", scale=scale, legend=legend)
    points = alt.Chart(frame).mark_point(filled=True, size=45, opacity=0.85).encode(**encoding)
    line = _diagonal(frame, x, y) if diagonal and len(frame) else []
    return alt.LayerChart(layer=[*line, points]).properties(height=420)


def heatmap(frame: pl.DataFrame, x: str, y: str, titles: Titles) -> alt.Chart:
    """Return a heat map of the number of items per cell of a grid.

    frame: as returned by `data.bin_counts`: `x`, `x` + "_to", the same for `y`, and items.
    """
    most = max(frame["items"], default=1)
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
                scale=alt.Scale(scheme="viridis", type="sqrt", domain=[0, most]),
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
    """Return a dot plot of accuracies with 95 % intervals, best first, and the chance level as a dashed line.

    frame: as returned by `data.accuracies`. titles: of value, model, history, n and chance.
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
    return dot_plot(frame, "model", titles, background_layers=[line])


def likelihoods(frame: pl.DataFrame, titles: Titles) -> alt.LayerChart:
    """Return a dot plot of the likelihoods of the options of a question, the most likely first.

    frame: the rows of `data.option_likelihoods` for one question and history, with `utterance` and `role`
    (the label of the role in the legend). titles: of letter, utterance, likelihood, role and score;
    ``roles``: labels of both, chosen, right and neither, joined by ``|``.
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
    """Return a bar chart of chosen letters with ticks for gold letters.

    frame: `data.LetterCounts.frame`. titles: of letter, count, chosen and gold.
    """
    positions_frame = frame.select(
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
    base = alt.Chart(positions_frame).encode(
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
    frame: pl.DataFrame,
    name: str,
    titles: Titles,
    background_layers: Sequence[alt.Chart],
    mark_zero: bool = False,
    rows: Sequence[str] = (),
    domain: tuple[float, float] | None = None,
) -> alt.LayerChart:
    texts = {"value": "value", "low": "2.5 %", "high": "97.5 %", "history": "history"} | dict(
        titles
    )
    visible = _translate_histories(frame.filter(pl.col("value").is_not_null()), texts)
    labels = _row_labels(rows or visible[name].unique(maintain_order=True).to_list(), name)
    visible = visible.with_columns(
        label=pl.col(name).replace_strict(labels, return_dtype=pl.String)
    )
    base = _rows(visible, list(labels.values()), texts)
    scale = alt.Undefined if domain is None else alt.Scale(domain=domain)
    layers = [*background_layers, *([_zero_line()] if mark_zero else [])]
    styles = _history_encoding(visible, texts, "bottom" if rows else "top")
    colour = {key: encoding for key, encoding in styles.items() if key == "color"}
    if visible["low"].count():  # an empty layer would be an image without an accessible name
        interval = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2)
        layers.append(interval.encode(x=alt.X("low:Q", scale=scale), x2="high:Q", **colour))
    x = alt.X("value:Q", title=texts["value"], axis=alt.Axis(tickCount=TICK_COUNT), scale=scale)
    points = _points(base.encode(x=x, tooltip=_tooltip(visible, name, texts), **styles), visible)
    step = TWO_HISTORIES_HEIGHT if rows or _has_two_histories(visible) else ROW_HEIGHT
    return alt.LayerChart(layer=[*layers, *points]).properties(
        height=alt.Step(step, **{"for": "position"})
    )


def _zero_line() -> alt.Chart:
    return alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(color=GREY).encode(x="zero:Q")


def _row_labels(names: Sequence[str], column: str) -> dict[str, str]:
    """Return a unique label of one or two lines for each name; those of models are shortened."""
    is_model = column == "model"
    shorten = chart_names(names, 2 * NAME_WIDTH) if is_model else {name: name for name in names}
    return wrap_names(shorten, NAME_WIDTH)


def _translate_histories(frame: pl.DataFrame, titles: Titles) -> pl.DataFrame:
    """Return the frame with the titles of the history conditions."""
    if "history" not in frame.columns:
        return frame
    return frame.with_columns(pl.col("history").replace(_history_titles(titles)))


def _history_titles(titles: Titles) -> dict[str, str]:
    return {name: titles.get(name, name) for name in HISTORIES}


def _rows(frame: pl.DataFrame, labels: Sequence[str], titles: Titles) -> alt.Chart:
    axis = alt.Axis(
        title=None, grid=False, ticks=False, domain=False, labelPadding=6, labelOverlap=False,
        **WRAPPED_LABELS,
    )  # fmt: skip
    scale = alt.Scale(type="band", domain=list(labels), padding=0.2)
    base = alt.Chart(frame).encode(y=alt.Y("label:N", scale=scale, sort=list(labels), axis=axis))
    offset = alt.YOffset("history:N", sort=list(_history_titles(titles).values()))
    return base.encode(yOffset=offset) if _has_two_histories(frame) else base


def _has_two_histories(frame: pl.DataFrame) -> bool:
    return "history" in frame.columns and frame["history"].n_unique() > 1


def _points(base: alt.Chart, frame: pl.DataFrame) -> list[alt.Chart]:
    if "baseline" not in frame.columns:
        return [_marks(base, filled=True)]
    baseline_values = set(
        frame["baseline"].to_list()
    )  # an empty layer would be an image without an accessible name
    return [
        _marks(base.transform_filter(condition), filled)
        for baseline, condition, filled in (
            (False, "!datum.baseline", True),
            (True, "datum.baseline", False),
        )
        if baseline in baseline_values
    ]


def _marks(base: alt.Chart, filled: bool) -> alt.Chart:
    return base.mark_point(filled=filled, size=90, opacity=1, strokeWidth=2)


def _history_encoding(
    frame: pl.DataFrame, titles: Titles, orient: Literal["top", "bottom"]
) -> dict[str, Any]:
    """Return colour and shape by history condition, if the frame has this column."""
    if frame.is_empty() or "history" not in frame.columns:
        return {"color": alt.value(BLUE)}
    histories = set(frame["history"].to_list())
    styles = zip(_history_titles(titles).values(), COLOURS, SHAPES, strict=True)
    domain, colours, shapes = zip(
        *[style for style in styles if style[0] in histories], strict=True
    )
    channels = {"color": (alt.Color, colours), "shape": (alt.Shape, shapes)}
    return {
        channel: channel_type(
            "history:N",
            scale=alt.Scale(domain=domain, range=values),
            legend=alt.Legend(title=None, orient=orient, columns=1),
        )
        for channel, (channel_type, values) in channels.items()
    }


def _tooltip(frame: pl.DataFrame, name: str, titles: Titles) -> list[alt.Tooltip]:
    columns = [name, *(c for c in ("history", "value", "low", "high", "n") if c in frame.columns)]
    return [_tooltip_field(frame, column, titles) for column in columns]


def _tooltip_field(frame: pl.DataFrame, column: str, titles: Titles) -> alt.Tooltip:
    title = titles.get(column, column)
    if frame.schema[column].is_float():
        return alt.Tooltip(f"{column}:Q", title=title, format=".3f")
    return alt.Tooltip(f"{column}:N", title=title)


def _ceiling_layers(ceiling: tuple[float, float, float], titles: Titles) -> list[alt.Chart]:
    value, low, high = ceiling
    frame = pl.DataFrame(
        {"ceiling": [titles["ceiling"]], "value": [value], "low": [low], "high": [high]}
    )
    tooltip = [
        alt.Tooltip("ceiling:N", title=" "),
        *(
            _tooltip_field(frame, column, {"low": "2.5 %", "high": "97.5 %", **titles})
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
    limits = frame.select(
        pl.max_horizontal(pl.min(x), pl.min(y)).append(pl.min_horizontal(pl.max(x), pl.max(y)))
    ).to_series()
    line = alt.Chart(pl.DataFrame({x: limits, y: limits})).mark_line(color=GREY, strokeDash=[5, 3])
    return [line.encode(x=f"{x}:Q", y=f"{y}:Q")]
