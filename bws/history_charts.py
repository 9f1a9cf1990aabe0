"""The charts of the history of a study; `bws.analysis.pictures` adds titles and remarks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.base.charts import BLUE, ORANGE, chart_rows, limits
from bws.study_charts import GREY, ranked_rows

if TYPE_CHECKING:
    import altair as alt

    from bws.history import Frame, StudyHistory

HISTORY_TITLES = {
    "judgments": "Judgments",
    "value": "Value",
    "series": "Series",
    "reliability": "reliability",
    "agreement": "Krippendorff's alpha",
    "low": "2.5 %",
    "high": "97.5 %",
}
FRAMES_TITLES = {
    "rank": "Final rank of the item",
    "judgments": "Judgments",
    "item": "Item",
    "score": "Score",
    "low": "2.5 %",
    "high": "97.5 %",
    "columns": "Scores from 0 to 1 after the first judgments; below: reliability",
}
MAX_STRIP_ITEMS = 60
"""Maximum number of items of a strip; of more, items at equal distances of rank are drawn."""
COLUMN_WIDTH, STRIP_HEIGHT = 90, 420
COLUMN_SHARE = 0.8
"""Width of the scores from 0 to 1 as a share of the width of a column."""


def history_rows(history: StudyHistory) -> list[dict[str, Any]]:
    """Return a row per frame and series with a value: judgments, series, value, and defined limits."""
    return [
        {"judgments": frame.n, "series": name, "value": estimate.value}
        | limits(estimate.low, estimate.high)
        for frame in history.frames
        for name, estimate in (("reliability", frame.reliability), ("agreement", frame.agreement))
        if not math.isnan(estimate.value)
    ]


def history_chart(
    rows: Sequence[Mapping[str, Any]], target: float, labels: Mapping[str, str]
) -> alt.LayerChart:
    """Return reliability, with its intervals, and agreement against the number of judgments.

    rows: as returned by `history_rows`, at least one. labels: `HISTORY_TITLES` and ``target``.
    """
    import altair as alt

    translated = [{**row, "series": labels[row["series"]]} for row in rows]
    domain = [labels[name] for name in ("reliability", "agreement", "target")]
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=300)
    title = labels["series"]
    colour = alt.Color("series:N", title=title, legend=legend).scale(
        domain=domain, range=[BLUE, ORANGE, GREY]
    )
    dash = alt.StrokeDash("series:N", title=title, legend=legend).scale(
        domain=domain, range=[[1, 0], [6, 3], [2, 3]]
    )
    shape = alt.Shape("series:N", title=title, legend=legend).scale(
        domain=domain, range=["circle", "diamond", "stroke"]
    )
    x = alt.X("judgments:Q", title=labels["judgments"]).scale(zero=True, nice=False, padding=14)
    x = x.axis(tickMinStep=1, tickCount=6)
    y = alt.Y("value:Q", title=labels["value"])
    base = alt.Chart(chart_rows(translated)).encode(
        x=x,
        color=colour,
        tooltip=[
            alt.Tooltip("series:N", title=labels["series"]),
            alt.Tooltip("judgments:Q", title=labels["judgments"], format=","),
            *(
                alt.Tooltip(f"{name}:Q", title=labels[name], format=".3f")
                for name in ("value", "low", "high")
            ),
        ],
    )
    layers = [
        base.mark_line().encode(y=y, strokeDash=dash),
        base.mark_point(filled=True, opacity=1, size=60).encode(y=y, shape=shape),
    ]
    if any("low" in row for row in rows):  # an empty layer would be an image without a name
        rule = base.transform_filter("isValid(datum.low)").mark_rule()
        layers.insert(0, rule.encode(y=alt.Y("low:Q", title=labels["value"]), y2="high:Q"))
    line = alt.Chart(chart_rows([{"value": target, "series": labels["target"]}]))
    layers.append(line.mark_rule(strokeWidth=2).encode(y=y, color=colour, strokeDash=dash))
    return alt.LayerChart(layer=layers)


def frame_rows(
    history: StudyHistory, frame: Frame, max_items: int | None = None
) -> list[dict[str, Any]]:
    """Return the scores of a frame in the order of the last one: rank, item, score, limits and index.

    rank: in the last frame, 1 for the highest score. index: of the item in the scores. Of many items, those
    at equal distances of rank are returned (`bws.study_charts.ranked_rows`), at most `max_items`. Items
    without a score are left out.
    """
    final, scores = history.frames[-1].scores, frame.scores
    ranked, _ = ranked_rows([*map(str, range(len(final)))], final.score)
    if max_items and len(ranked) > max_items:
        ranked = [ranked[n] for n in np.linspace(0, len(ranked) - 1, max_items).round().astype(int)]
    rows = []
    for row in ranked:
        index = int(row["item"])
        if math.isnan(scores.score[index]):
            continue
        group, item = str(scores.groups[index]), str(scores.items[index])
        ends = {} if scores.low is None or scores.high is None else limits(
            float(scores.low[index]), float(scores.high[index])
        )  # fmt: skip
        name = f"{group}: {item}" if group else item
        rows.append(
            {"rank": row["rank"], "item": name, "score": float(scores.score[index]), "index": index}
            | ends
        )
    return rows


def strip_rows(history: StudyHistory) -> list[dict[str, Any]]:
    """Return the rows of all frames, with the number of judgments and the number of the column."""
    return [
        {"judgments": frame.n, "column": column, **row}
        for column, frame in enumerate(history.frames)
        for row in frame_rows(history, frame, MAX_STRIP_ITEMS)
    ]


def strip_chart(history: StudyHistory, labels: Mapping[str, str]) -> alt.LayerChart:
    """Return the scores of all frames side by side, each in a column with its judgments and reliability."""
    import altair as alt

    n_columns = len(history.frames)
    names = {
        str(column): [f"{frame.n:,}", _text_of(frame.reliability.value)]
        for column, frame in enumerate(history.frames)
    }
    axis = alt.Axis(
        values=[column + COLUMN_SHARE / 2 for column in range(n_columns)],
        labelExpr=f"{json.dumps(names)}[floor(datum.value)]",
        grid=False,
        labelOverlap=False,
    )
    scale = alt.Scale(domain=[0, n_columns - 1 + COLUMN_SHARE], nice=False, padding=10)
    x = alt.X("x:Q", title=labels["columns"], axis=axis, scale=scale)
    y = alt.Y("rank:Q", title=labels["rank"]).scale(reverse=True, zero=False, nice=False, padding=6)
    position = f"datum.column + {COLUMN_SHARE} * datum."
    base = (
        alt.Chart(chart_rows(strip_rows(history)))
        .transform_calculate(x=f"{position}score", from_x=f"{position}low", to_x=f"{position}high")
        .encode(
            y=y,
            tooltip=[
                alt.Tooltip("judgments:Q", title=labels["judgments"], format=","),
                alt.Tooltip("item:N", title=labels["item"]),
                *(
                    alt.Tooltip(f"{name}:Q", title=labels[name], format=".3f")
                    for name in ("score", "low", "high")
                ),
            ],
        )
    )
    rule = base.transform_filter("isValid(datum.low)").mark_rule(color=BLUE, opacity=0.5)
    points = base.mark_point(filled=True, opacity=1, color=BLUE, size=16)
    layers = [points.encode(x=x)]
    if any(
        frame.scores.low is not None and not np.isnan(frame.scores.low).all()
        for frame in history.frames
    ):
        layers.insert(0, rule.encode(x=alt.X("from_x:Q", title=labels["columns"]), x2="to_x:Q"))
    return alt.LayerChart(layer=layers).properties(
        width=COLUMN_WIDTH * n_columns, height=STRIP_HEIGHT
    )


def _text_of(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
