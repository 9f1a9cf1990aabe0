"""The chart of the pairs of candidates: arcs above a line of scores, and below one of predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from bws.base.charts import BLUE, PURPLE, VERMILION
from giccs_app.explorer.theme import GREY

TITLES = {
    "people": "people",
    "model": "model",
    "score": "score",
    "prediction": "prediction",
    "candidate": "item",
    "first": "higher score",
    "second": "lower score",
    "wins": "comparisons won",
    "predictions": "predictions",
    "state": "pair",
    "unanimous": "same order in all judgments",
    "contradicted": "both orders occur",
    "missing": "never compared",
    "comparisons": "comparisons",
    "opposite": "comparisons in the less frequent order",
    "reversed": "model orders against the scores",
}
"""Default titles."""
KINDS = ("comparisons", "opposite", "missing", "reversed")
"""Kinds of arcs: all comparisons of a pair, those in its less frequent order, none, and those of a model."""
COLOURS = (BLUE, VERMILION, GREY, PURPLE)
SHAPES = ("circle", "diamond", "square", "triangle-down")
DASHES = ([1, 0], [1, 0], [4, 4], [1, 0])
MIN_ARC, MAX_ARC = 24, 170
"""Heights in pixels of the arcs of neighbours and of the most distant candidates by people."""
MODEL_ARC_SHARE = 0.6
"""Height of the arcs of a model as a share of those of people."""
MODEL_LINE = -88
"""Vertical position of the model's line in pixels; that of people is at 0."""
LETTER_DISTANCE, MARGIN = 22, 12
"""Distance of letters from their line and margin at the top and bottom, in pixels."""
MIN_LETTER_GAP = 1 / 14
"""Minimum distance of the letters of neighbours as a share of the range of scores."""
MIN_HALF_WIDTH = 1 / 60
"""Minimum half width of an arc as a share of the range of scores."""
MAX_STROKE, MIN_STROKE, THIN_STROKE = 7.0, 1.0, 1.5
"""Maximum and minimum width in pixels of arcs of comparisons, and the width of other arcs."""
MAX_THICK_ARCS = 28
"""With more pairs, `MAX_STROKE` is halved."""
OPACITY, FADED = 0.85, 0.12
"""Opacity of arcs, and of those of other pairs than the selected one."""
LEGEND = alt.Legend(
    orient="bottom",
    direction="vertical",
    title=None,
    labelLimit=320,
    symbolType="circle",
    symbolOpacity=1,
    symbolStrokeWidth=0,
)
STEPS = 24
"""Number of segments of an arc."""


def pairs_chart(
    pairs: pl.DataFrame,
    candidates: pl.DataFrame,
    titles: Mapping[str, str] | None = None,
    selected: str | None = None,
    format_number: Callable[[float], str] = "{:.3g}".format,
) -> alt.LayerChart:
    """Return the candidates on a line at their scores, with an arc above it for each pair.

    The width of an arc is the number of comparisons, that of the arc on it the number of those in the less
    frequent order. If a model has predictions of two candidates, a
    second line has the candidates at their predictions, stretched to the range of the scores, with an arc
    below it for each pair that the model orders against the scores.

    pairs: as returned by `pair_frame`; at least one. candidates: letter, item_id, utterance, score.
    selected: a pair; all others are faded.
    """
    texts = {**TITLES, **(titles or {})}
    points = _points(pairs, candidates, format_number)
    arcs = _arcs(pairs, points, selected, texts, format_number)
    has_model = "model" in points["side"]
    low = MODEL_LINE - MODEL_ARC_SHARE * MAX_ARC if has_model else -LETTER_DISTANCE
    domain = [low - MARGIN, MAX_ARC + MARGIN]
    x = alt.X("x:Q", title=texts["score"]).scale(domain=_x_domain(points), nice=False, zero=False)
    x = x.axis(orient="top", tickCount=5, grid=False)
    y = (
        alt.Y("y:Q", title=None)
        .scale(domain=domain, nice=False)
        .axis(**_line_axis(texts, has_model))
    )
    return alt.LayerChart(
        layer=[
            _lines(arcs, x, y, texts),
            _apices(arcs, x, y, texts),
            *_candidate_layers(points, x, y, texts),
        ]
    ).properties(height=domain[1] - domain[0])


def _line_axis(texts: Mapping[str, str], has_model: bool) -> dict[str, Any]:
    people, model = (json.dumps(texts[name], ensure_ascii=False) for name in ("people", "model"))
    return {
        "values": [0, MODEL_LINE] if has_model else [0],
        "labelExpr": f"datum.value ? {model} : {people}",
        "grid": True,
        "domain": False,
        "ticks": False,
        "labelLimit": 90,
    }


def _points(
    pairs: pl.DataFrame, candidates: pl.DataFrame, format_number: Callable[[float], str]
) -> pl.DataFrame:
    """Return the points of both lines: side, letter, item_id, texts, x, y, and the position of the letter."""
    predictions = {
        row[name]: row[f"{name}_prediction"]
        for row in pairs.iter_rows(named=True)
        for name in ("first", "second")
        if row[f"{name}_prediction"] is not None
    }
    rows = [
        {
            "letter": row["letter"],
            "item_id": row["item_id"],
            "candidate_text": f"{row['letter']} · {row['utterance']}",
            "score_text": format_number(row["score"]),
            "prediction_text": _number_or_dash(predictions.get(row["letter"]), format_number),
        }
        for row in candidates.iter_rows(named=True)
    ]
    scores = candidates["score"].to_list()
    people = _side("people", rows, scores, 0, -LETTER_DISTANCE)
    predicted = [row for row in rows if row["letter"] in predictions]
    if len(predicted) < 2:
        return pl.DataFrame(people)
    values = [predictions[row["letter"]] for row in predicted]
    positions = _stretched(values, min(scores), max(scores))
    letter_y = MODEL_LINE + LETTER_DISTANCE
    return pl.DataFrame([*people, *_side("model", predicted, positions, MODEL_LINE, letter_y)])


def _number_or_dash(value: float | None, format_number: Callable[[float], str]) -> str:
    return "–" if value is None else format_number(value)


def _side(
    side: str,
    rows: Sequence[dict[str, Any]],
    positions: Sequence[float],
    y: float,
    letter_y: float,
) -> list[dict[str, Any]]:
    letters_x = spread(positions, MIN_LETTER_GAP * _span(positions))
    return [
        {**row, "side": side, "pair": None, "x": x, "y": y, "letter_x": letter_x, "letter_y": letter_y}
        for row, x, letter_x in zip(rows, positions, letters_x, strict=True)
    ]  # fmt: skip


def _span(positions: Sequence[float]) -> float:
    return (max(positions) - min(positions)) or 1.0


def _stretched(values: Sequence[float], low: float, high: float) -> list[float]:
    """Return values scaled linearly to a range; all in its middle if they are equal.

    >>> _stretched([2.0, 4.0, 3.0], 0.0, 1.0), _stretched([2.0, 2.0], 0.0, 1.0)
    ([0.0, 1.0, 0.5], [0.5, 0.5])
    """
    least, most = min(values), max(values)
    if least == most:
        return [(low + high) / 2] * len(values)
    return [low + (value - least) / (most - least) * (high - low) for value in values]


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Return the positions closest to the given ones (least squares, same order) with at least this gap.

    >>> spread([0.5, 0.5, 2.0], 1.0)
    [0.0, 1.0, 2.0]
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(positions, kind="stable")
    steps = gap * np.arange(len(order))
    result = np.empty(len(order))
    result[order] = isotonic_regression(np.asarray(positions)[order] - steps).x + steps
    return [float(x) for x in result]


def _x_domain(points: pl.DataFrame) -> list[float]:
    positions = [*points["x"], *points["letter_x"]]
    margin = MIN_LETTER_GAP / 2 * _span(positions)
    return [min(positions) - margin, max(positions) + margin]


def _arcs(
    pairs: pl.DataFrame,
    points: pl.DataFrame,
    selected: str | None,
    texts: Mapping[str, str],
    format_number: Callable[[float], str],
) -> pl.DataFrame:
    """Return the arcs: the pair and its texts, kind, width, middle, half width, base and signed height.

    Only one arc of a pair and a side has an apex. Arcs that are drawn on others are last.
    """
    x_of = {(row["side"], row["letter"]): row["x"] for row in points.to_dicts()}
    span = _span(points["x"].to_list())
    has_model = "model" in points["side"]
    max_stroke = MAX_STROKE if len(pairs) <= MAX_THICK_ARCS else MAX_STROKE / 2
    unit = max_stroke / max(1, *pairs["comparisons"].to_list())
    rows: list[dict[str, Any]] = []
    for pair in pairs.sort(pl.col("state") == "contradicted").iter_rows(named=True):
        row = {
            "pair": pair["pair"],
            "item_id": None,
            "opacity": OPACITY if selected in (None, pair["pair"]) else FADED,
            **_pair_texts(pair, texts, format_number),
        }
        for kind, width, has_apex in _arc_kinds(pair, unit, has_model):
            side = "model" if kind == "reversed" else "people"
            ends = [x_of[side, pair[name]] for name in ("first", "second")]
            rows.append(
                row
                | {"side": side, "kind": texts[kind], "width": width, "has_apex": has_apex}
                | _shape_of_arc(ends, side, span)
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def _arc_kinds(
    pair: Mapping[str, Any], unit: float, has_model: bool
) -> Iterator[tuple[str, float, bool]]:
    """Yield the kind and width of each arc of a pair, and whether it has an apex."""
    if pair["state"] == "missing":
        yield "missing", THIN_STROKE, True
    else:
        is_contradicted = pair["state"] == "contradicted"
        yield "comparisons", max(unit * pair["comparisons"], MIN_STROKE), not is_contradicted
        if is_contradicted:
            n_opposite = min(pair["first_wins"], pair["second_wins"])
            yield "opposite", max(unit * n_opposite, MIN_STROKE), True
    if has_model and pair["is_reversed"]:
        yield "reversed", THIN_STROKE, True


def _shape_of_arc(ends: Sequence[float], side: str, span: float) -> dict[str, float]:
    distance = abs(ends[0] - ends[1])
    height = MIN_ARC + (MAX_ARC - MIN_ARC) * distance / span
    return {
        "middle": sum(ends) / 2,
        "half": max(distance / 2, MIN_HALF_WIDTH * span),
        "base": MODEL_LINE if side == "model" else 0,
        "height": -MODEL_ARC_SHARE * height if side == "model" else height,
    }


def _pair_texts(
    pair: Mapping[str, Any], texts: Mapping[str, str], format_number: Callable[[float], str]
) -> dict[str, str]:
    """Return the texts of the tooltip of a pair."""
    names = ("first", "second")
    labels = {f"{name}_label": f"{pair[name]} · {pair[f'{name}_text']}" for name in names}
    labels["state"] = texts[pair["state"]]
    labels["wins"] = ", ".join(f"{pair[name]} {pair[f'{name}_wins']}" for name in names)
    values = {pair[name]: pair[f"{name}_prediction"] for name in names}
    labels["predictions"] = "; ".join(
        f"{letter} {_number_or_dash(value, format_number)}" for letter, value in values.items()
    )
    return labels


def _scales(texts: Mapping[str, str], kinds: set[str]) -> dict[str, alt.Scale]:
    """Return the scales of the kinds of arcs that occur."""
    used = [n for n, kind in enumerate(KINDS) if texts[kind] in kinds]
    domain = [texts[KINDS[n]] for n in used]
    ranges: dict[str, Sequence[Any]] = {"color": COLOURS, "shape": SHAPES, "strokeDash": DASHES}
    return {
        channel: alt.Scale(domain=domain, range=[values[n] for n in used])
        for channel, values in ranges.items()
    }


def _tooltip(texts: Mapping[str, str], has_model: bool) -> list[alt.Tooltip]:
    fields = {"first_label": "first", "second_label": "second", "wins": "wins", "state": "state"}
    if has_model:
        fields["predictions"] = "predictions"
    return [alt.Tooltip(f"{field}:N", title=texts[title]) for field, title in fields.items()]


def _lines(arcs: pl.DataFrame, x: alt.X, y: alt.Y, texts: Mapping[str, str]) -> alt.Chart:
    scales = _scales(texts, set(arcs["kind"]))
    return (
        alt.Chart(arcs)
        .transform_calculate(step=f"sequence(0, {STEPS + 1})")
        .transform_flatten(["step"])
        .transform_calculate(
            x=f"datum.middle - datum.half * cos(PI * datum.step / {STEPS})",
            y=f"datum.base + datum.height * sin(PI * datum.step / {STEPS})",
        )
        .mark_line(strokeCap="round", cursor="pointer", clip=False)
        .encode(
            x=x,
            y=y,
            order="step:Q",
            detail=["pair:N", "side:N"],
            color=alt.Color("kind:N", scale=scales["color"], legend=LEGEND),
            strokeDash=alt.StrokeDash("kind:N", scale=scales["strokeDash"], legend=None),
            strokeWidth=alt.StrokeWidth("width:Q", scale=None, legend=None),
            opacity=alt.Opacity("opacity:Q", scale=None, legend=None),
            tooltip=_tooltip(texts, "model" in arcs["side"]),
        )
    )


def _apices(arcs: pl.DataFrame, x: alt.X, y: alt.Y, texts: Mapping[str, str]) -> alt.Chart:
    """Return a mark at the top of each arc, whose shape repeats the colour; it is easily clicked."""
    scales = _scales(texts, set(arcs["kind"]))
    return (
        alt.Chart(arcs)
        .transform_filter("datum.has_apex")
        .transform_calculate(x="datum.middle", y="datum.base + datum.height")
        .mark_point(filled=True, size=60)
        .encode(
            x=x,
            y=y,
            color=alt.Color("kind:N", scale=scales["color"], legend=LEGEND),
            shape=alt.Shape("kind:N", scale=scales["shape"], legend=LEGEND),
            opacity=alt.Opacity("opacity:Q", scale=None, legend=None),
            tooltip=_tooltip(texts, "model" in arcs["side"]),
        )
    )


def _candidate_layers(
    points: pl.DataFrame, x: alt.X, y: alt.Y, texts: Mapping[str, str]
) -> list[alt.Chart]:
    """Return the candidates with their letters; lines join letters that are moved to the side."""
    base = alt.Chart(points)
    names = (
        ("candidate", "score", "prediction")
        if "model" in points["side"]
        else ("candidate", "score")
    )
    tooltip = [alt.Tooltip(f"{name}_text:N", title=texts[name]) for name in names]
    joins = base.mark_rule(color=GREY, strokeWidth=1).encode(
        x=x, y=y, x2="letter_x:Q", y2="letter_y:Q"
    )
    letters = base.mark_text(fontSize=13, fontWeight="bold", tooltip=None).encode(
        x=alt.X("letter_x:Q", title=texts["score"]), y="letter_y:Q", text="letter:N"
    )
    dots = base.mark_point(filled=True, size=90, opacity=1, color=GREY).encode(
        x=x, y=y, tooltip=tooltip
    )
    return [joins, dots, letters]
