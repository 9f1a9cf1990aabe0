"""The ranks of all models that tests of all pairs permit: a bar per model from its best to its worst rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

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
from giccs.report.model_names import fit_names

if TYPE_CHECKING:
    import altair as alt

MAX_MODELS = 20
"""Number of models that are drawn, the best ones."""
ROW_HEIGHT = 18
"""Height of a row in pixels."""
TITLES = {
    "rank": "rank",
    "model": "model",
    "value": "value",
    "low": "2.5 %",
    "high": "97.5 %",
    "rank_low": "best rank",
    "rank_high": "worst rank",
    "ties": "not significantly worse than the best",
    "worse": "significantly worse than the best",
}


def leaderboard_frame(board: Leaderboard, titles: Titles | None = None) -> pl.DataFrame:
    """Return one row per model, the best first.

    Columns: row, model (full name with history), label (short), value, low and high (95 %), rank_low,
    rank_high, ties (whether the model is the first or not significantly worse). titles: of the histories
    ``with`` and ``without``.
    """
    labels = model_labels([(model.model, model.history) for model in board.models], titles)
    rows = [
        {
            "row": row,
            "model": full_name(model.model, model.history, titles),
            "label": label,
            "value": model.estimate.value,
            "low": model.estimate.low,
            "high": model.estimate.high,
            "rank_low": model.rank_low,
            "rank_high": model.rank_high,
            "ties": model.ties_first,
        }
        for row, (model, label) in enumerate(zip(board.models, labels, strict=True), start=1)
    ]
    return pl.DataFrame(rows).with_columns(pl.col("low", "high").fill_nan(None))


def leaderboard_chart(
    frame: pl.DataFrame, titles: Titles | None = None, *, is_stretched: bool = False
) -> alt.LayerChart:
    """Return a row per model: a bar over the permitted ranks, and a point at its place by the metric.

    frame: as returned by `leaderboard_frame`, or some of its rows. Bars of models that tie with the best have
    its colour. is_stretched: the width of the chart is that of a page, for which labels are shortened.
    """
    import altair as alt

    from bws.base.charts import BLUE

    texts = with_titles(TITLES, titles)
    labels = {str(row): label for row, label in frame.select("row", "label").iter_rows()}
    if is_stretched:
        labels = fit_names(labels, PAGE_LABEL_CHARACTERS)
    names = [f"{row}  {label}" for row, label in labels.items()]
    states = [texts["ties"], texts["worse"]]
    drawn = frame.with_columns(
        name=pl.Series(names, dtype=pl.String),
        state=pl.when("ties").then(pl.lit(states[0])).otherwise(pl.lit(states[1])),
        start=pl.col("rank_low") - 0.5,
        end=pl.col("rank_high") + 0.5,
    )
    last = int(max(*frame["rank_high"], *frame["row"]))
    scale = alt.Scale(domain=[0.5, last + 0.5], nice=False)
    axis = alt.Axis(values=list(range(1, last + 1)), format="d", labelOverlap=True)
    tooltip = [
        alt.Tooltip("model:N", title=texts["model"]),
        *(
            alt.Tooltip(f"{name}:Q", title=texts[name], format=".3f")
            for name in ("value", "low", "high")
        ),
        *(alt.Tooltip(f"{name}:Q", title=texts[name]) for name in ("rank_low", "rank_high")),
    ]
    base = alt.Chart(drawn).encode(
        y=alt.Y(
            "name:N", sort=names, title=None, axis=alt.Axis(labelOverlap=False, labelLimit=400)
        ),
        tooltip=tooltip,
    )
    colour = alt.Color("state:N", title=None).scale(domain=states, range=[BLUE, "#8C8C8C"])
    legend = alt.Legend(orient="top", columns=1, labelLimit=400)
    bars = base.mark_bar(opacity=0.45, height={"band": 0.7}).encode(
        x=alt.X("start:Q", title=texts["rank"], scale=scale, axis=axis),
        x2="end:Q",
        color=colour.legend(legend),
    )
    points = base.mark_point(filled=True, opacity=1, size=40).encode(
        x=alt.X("row:Q", scale=scale), color=colour.legend(legend)
    )
    return alt.LayerChart(layer=[bars, points]).properties(height=alt.Step(ROW_HEIGHT))


def leaderboard_panels(results: Sequence[Result]) -> list[Panel]:
    """Return a panel per leaderboard of `giccs.report.model_comparison.compare`."""
    return [_panel(board, title) for board, title in titled_leaderboards(results)]


def _panel(board: Leaderboard, title: str) -> Panel:
    frame = leaderboard_frame(board)
    notes = [
        "Bars: ranks that tests of all pairs permit, with 95 % for all models at once (Holm). Points: ranks "
        "by the metric."
    ]
    if len(frame) > MAX_MODELS:
        notes.append(f"Drawn: the best {MAX_MODELS} of {len(frame)} models.")
    chart = leaderboard_chart(frame.head(MAX_MODELS))
    return Panel(f"{title}: ranks by {metric_title(board.metric)}", chart, frame, notes)
