"""Pairwise differences of models with intervals, and marks adjusted for the number of pairs (Holm)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from giccs.measures.detectable import ALPHA
from giccs.measures.results import Result
from giccs.report.figures.panels import (
    PAGE_LABEL_CHARACTERS,
    Panel,
    Titles,
    full_name,
    model_labels,
    titled_leaderboards,
    with_titles,
)
from giccs.report.metric_titles import metric_title
from giccs.report.model_comparison import Leaderboard
from giccs.report.model_names import WRAPPED_LABELS, fit_names, wrap_name, wrap_names

if TYPE_CHECKING:
    import altair as alt

MAX_LISTED_PAIRS = 28
"""Largest number of pairs (of eight models) that are listed with intervals; more are a matrix."""
MAX_MODELS_WITH_TEXT = 12
"""Largest number of models with numbers in the cells of the matrix."""
MAX_MATRIX_MODELS = 120
"""Largest number of models of the matrix in a file, the best ones: 1,200 pixels."""
DARK = "#1A1A1A"
"""Colour of texts and marks in cells."""
MAX_LABEL_WIDTH = 400
"""Largest width of labels in pixels beside which the title of the axis is drawn; it overlaps longer ones."""
LINE_HEIGHT = 14
"""Height of a line of a label in pixels."""
PAGE_COLUMN_CHARACTERS = 40
"""Longest label of a column of a stretched matrix, for small screens."""
NARROW = "bandwidth('x') < 48"
"""Whether the cells of a stretched matrix are too narrow for numbers."""
VERDICTS = ("significant", "not_significant", "untested")
TITLES = {
    "value": "difference",
    "first": "first model",
    "second": "second model",
    "low": "2.5 %",
    "high": "97.5 %",
    "p": "p",
    "p_holm": "p, adjusted (Holm)",
    "n": "dialogues",
    "verdict": "after adjustment",
    "reason": "reason",
    "significant": "differ (5 %)",
    "not_significant": "not significant",
    "untested": "not tested",
    "matrix_first": "higher",
    "matrix_second": "lower",
}
SCHEMA = {
    "first": pl.String,
    "second": pl.String,
    "first_label": pl.String,
    "second_label": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_holm": pl.Float64,
    "n": pl.Int64,
    "verdict": pl.String,
    "reason": pl.String,
}


def difference_frame(board: Leaderboard, titles: Titles | None = None) -> pl.DataFrame:
    """Return one row per pair, in the order of the leaderboard.

    Columns: first and second (full names with history; the first has the higher metric), first_label and
    second_label (short), value (first - second), low and high (95 %, not adjusted), p, p_holm (adjusted for
    all pairs), n (dialogues), verdict (significant, not_significant or untested) and reason. Undefined
    numbers are null, with a reason. titles: of the histories ``with`` and ``without``.
    """
    labels = model_labels([(model.model, model.history) for model in board.models], titles)
    names = [full_name(model.model, model.history, titles) for model in board.models]
    rows = [
        {
            "first": names[pair.first],
            "second": names[pair.second],
            "first_label": labels[pair.first],
            "second_label": labels[pair.second],
            **{name: getattr(pair, name) for name in ("value", "low", "high", "p", "p_holm", "n")},
            "verdict": "untested"
            if math.isnan(pair.p)
            else VERDICTS[0 if pair.is_significant else 1],
            "reason": pair.reason,
        }
        for pair in board.pairs
    ]
    return pl.DataFrame(rows, schema=SCHEMA).fill_nan(None)


def difference_chart(
    frame: pl.DataFrame, titles: Titles | None = None, *, is_stretched: bool = False
) -> alt.LayerChart:
    """Return a row per pair: the difference, its interval, and by colour and shape whether it is significant.

    frame: as returned by `difference_frame`. Undefined differences have a row with a question mark.
    is_stretched: the width of the chart is that of a page, for which labels are wrapped.
    """
    import altair as alt

    from bws.base.charts import BLUE, VERMILION

    labels = with_titles(TITLES, titles)
    width = PAGE_LABEL_CHARACTERS if is_stretched else max(PAGE_LABEL_CHARACTERS, *_lengths(frame))
    pairs = [
        f"{wrap_name(first, width)}\n− {wrap_name(second, width)}"
        for first, second in frame.select("first_label", "second_label").iter_rows()
    ]
    rows = _with_verdicts(frame, labels).with_columns(pair=pl.Series(pairs, dtype=pl.String))
    lines = 1 + max((pair.count("\n") for pair in pairs), default=1)
    base = alt.Chart(rows).encode(
        y=alt.Y("pair:N", sort=None, title=None).axis(
            labelExpr="split(datum.label, '\\n')",
            labelLineHeight=LINE_HEIGHT,
            grid=False,
            labelLimit=400,
            labelFlush=False,
        ),
        tooltip=_tooltip(labels),
    )
    colour, shape = _verdict_scales(labels, [BLUE, VERMILION, "#6B6B6B"])
    x = alt.X("value:Q", title=labels["value"]).scale(zero=True)
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(color="#8C8C8C").encode(x="zero:Q")
    layers = [
        zero,
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", title=labels["value"]), x2="high:Q", color=colour
        ),
        base.transform_filter("isValid(datum.value)").mark_point(
            filled=True, size=70, opacity=1
        ).encode(x=x, color=colour, shape=shape),
        base.transform_filter("!isValid(datum.value)").mark_text(text="?", fontSize=13).encode(
            x=alt.datum(0)
        ),
    ]  # fmt: skip
    return alt.LayerChart(layer=layers).properties(height=alt.Step(LINE_HEIGHT * lines + 8))


def _lengths(frame: pl.DataFrame) -> list[int]:
    """Return the numbers of characters of all labels."""
    return [len(label) for name in ("first_label", "second_label") for label in frame[name]]


def difference_matrix(
    frame: pl.DataFrame, titles: Titles | None = None, *, is_stretched: bool = False
) -> alt.LayerChart:
    """Return a matrix of models: the row's metric minus the column's, a dot if they differ significantly.

    frame: as returned by `difference_frame`. Cells of up to `MAX_MODELS_WITH_TEXT` models contain the number;
    cells of undefined differences are crossed out. is_stretched: the width of the chart is that of a page;
    cells that are too narrow have no numbers, and labels are wrapped or shortened.
    """
    import altair as alt

    labels = with_titles(TITLES, titles)
    models = list(dict.fromkeys([*frame["first_label"], *frame["second_label"]]))
    has_text, size = _cell_size(len(models))
    row_names, column_names = _matrix_labels(models, has_text=has_text, is_stretched=is_stretched)
    axis: dict[str, Any] = {
        "labelFontSize": 12 if has_text else max(8, min(12, size - 2)),
        "grid": False,
        "labelOverlap": False,
        "maxExtent": MAX_LABEL_WIDTH,
        **WRAPPED_LABELS,
    }
    rows = _with_verdicts(frame, labels).with_columns(
        pl.col("first_label").replace(row_names),
        pl.col("second_label").replace(column_names),
        is_marked=frame["verdict"] == VERDICTS[0],
    )
    x = alt.X("second_label:N", sort=[column_names[model] for model in models[1:]])
    y = alt.Y("first_label:N", sort=[row_names[model] for model in models[:-1]])
    angle = -90 if is_stretched or not has_text else -45
    encoding: dict[str, Any] = {
        "x": x.title(labels["matrix_second"]).axis(labelAngle=angle, **axis),
        "y": y.title(labels["matrix_first"]).axis(**axis),
        "tooltip": _tooltip(labels),
    }
    defined, undefined = (
        alt.Chart(rows.filter(is_null)).encode(**encoding)
        for is_null in (pl.col("value").is_not_null(), pl.col("value").is_null())
    )
    legend = alt.Legend(title=labels["value"], orient="top", gradientLength=120, titleLimit=300)
    colour = alt.Color("value:Q", legend=legend).scale(
        type="sqrt", domain=[0, 1], range=["#FFFFFF", "#56B4E9"], interpolate="rgb", clamp=True
    )
    layers = [defined.mark_rect(stroke="#8C8C8C", strokeWidth=0.5).encode(color=colour)]
    if frame["value"].null_count():
        layers.append(
            undefined.mark_point(
                shape="cross", angle=45, filled=True, color="#6B6B6B", size=size**2 / 6, opacity=1
            )
        )
    if has_text:
        text = "format(datum.value, '+.2f') + (datum.is_marked ? ' ●' : '')"
        font = alt.expr(f"{NARROW} ? 0 : 11") if is_stretched else 11
        numbers = defined.transform_calculate(text=text).mark_text(color=DARK, fontSize=font)
        layers.append(numbers.encode(text="text:N"))
    if rows["is_marked"].any() and (is_stretched or not has_text):
        area = alt.expr(f"{NARROW} ? 36 : 0") if has_text else size**2 / 8
        marked = alt.Chart(rows.filter("is_marked")).encode(**encoding)
        layers.append(marked.mark_circle(color=DARK, size=area, opacity=1))
    return alt.LayerChart(layer=layers).properties(
        width=alt.Step(size), height=alt.Step(min(size, 30))
    )


def _matrix_labels(
    models: Sequence[str], *, has_text: bool, is_stretched: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels of rows and of columns; those of a stretched matrix are wrapped or shortened."""
    names = {model: model for model in models}
    if not is_stretched:
        return names, names
    shorten = wrap_names if has_text else fit_names
    return shorten(names, PAGE_LABEL_CHARACTERS), fit_names(names, PAGE_COLUMN_CHARACTERS)


def _cell_size(n_models: int) -> tuple[bool, int]:
    """Return whether the cells contain numbers, and their width in pixels."""
    if n_models <= MAX_MODELS_WITH_TEXT:
        return True, 58
    return False, 18 if n_models <= 40 else 10


def _with_verdicts(frame: pl.DataFrame, labels: Titles) -> pl.DataFrame:
    return frame.with_columns(pl.col("verdict").replace({name: labels[name] for name in VERDICTS}))


def _verdict_scales(labels: Titles, colours: list[str]) -> tuple[alt.Color, alt.Shape]:
    import altair as alt

    domain = [labels[name] for name in VERDICTS]
    legend = alt.Legend(title=labels["verdict"], orient="top", labelLimit=300, columns=1)
    return (
        alt.Color("verdict:N", legend=legend).scale(domain=domain, range=colours),
        alt.Shape("verdict:N", legend=legend).scale(
            domain=domain, range=["circle", "diamond", "triangle-up"]
        ),
    )


def _tooltip(labels: Titles) -> list[alt.Tooltip]:
    import altair as alt

    texts = ("verdict", "reason")
    numbers = ("value", "low", "high", "p", "p_holm")
    return [
        *(alt.Tooltip(f"{name}:N", title=labels[name]) for name in ("first", "second")),
        *(alt.Tooltip(f"{name}:Q", title=labels[name], format=".3f") for name in numbers),
        alt.Tooltip("n:Q", title=labels["n"]),
        *(alt.Tooltip(f"{name}:N", title=labels[name]) for name in texts),
    ]


def difference_panels(results: Sequence[Result]) -> list[Panel]:
    """Return a panel per leaderboard of `giccs.report.model_comparison.compare`."""
    return [_panel(board, title) for board, title in titled_leaderboards(results)]


def _panel(board: Leaderboard, title: str) -> Panel:
    frame = difference_frame(board)
    is_listed = len(frame) <= MAX_LISTED_PAIRS
    draw = difference_chart if is_listed else difference_matrix
    metric = metric_title(board.metric)
    titles = {"value": f"difference of {metric}"}
    notes = [_note(board)]
    if is_listed:
        notes.append("Intervals: 95 %, not adjusted.")
    if n_skipped := frame["value"].null_count():
        notes.append(f"Undefined differences: {n_skipped}.")
    drawn = frame.filter([pair.second < MAX_MATRIX_MODELS for pair in board.pairs])
    if len(drawn) < len(frame):
        notes.append(f"Drawn: the best {MAX_MATRIX_MODELS} of {len(board.models)} models.")
    return Panel(f"{title}: pairwise differences of {metric}", draw(drawn, titles), frame, notes)


def _note(board: Leaderboard) -> str:
    unit = "questions" if board.metric == "accuracy" else "items"
    return (
        f"Marks: p < {ALPHA:g} after Holm's adjustment (pairs: {len(board.pairs)}). Number of "
        f"{unit}, the same for all models: {board.items}."
    )
