"""Ranks of the items of one dialogue by people and by a model, as slopes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from bws.base.problems import suggestion
from giccs.measures.results import Result
from giccs.report.figures.panels import (
    MissingFigureError,
    Panel,
    Titles,
    best_panels,
    nan_notes,
    results_by_data,
    with_titles,
)
from giccs.report.figures.subsets import best_first
from giccs.report.model_names import cut_end
from giccs.tasks import result_kind

if TYPE_CHECKING:
    import altair as alt

MAX_LABEL_CHARACTERS = 48
MAX_LABEL_WIDTH = 300
"""Width of the longest label in pixels."""
MARGIN = 0.1
"""Distance of the points from the sides, as a share of the distance between them."""
DIRECTIONS = ("higher", "lower", "same")
TITLES = {
    "people": "people",
    "model": "model",
    "rank": "rank (1: most similar)",
    "item": "item",
    "score": "score",
    "prediction": "prediction",
    "rank_score": "rank by people",
    "rank_prediction": "rank by the model",
    "direction": "the model ranks it",
    "higher": "higher",
    "lower": "lower",
    "same": "equally",
}


def rank_frame(
    predictions: pl.DataFrame, dialogue: str, texts: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Return one row per item of a dialogue, the most similar by the scores first.

    predictions: item_id, dialogue_id, score, prediction. texts: item id -> label, by default the id.
    Columns: item_id, item (label), score, prediction, rank_score, rank_prediction (1 for the highest value,
    equal values have their mean rank), and direction (higher, lower or same: the model against the people).
    Items with a prediction of NaN are left out. Empty for an unknown dialogue.
    """
    of_dialogue = predictions.filter(
        pl.col("dialogue_id") == dialogue, pl.col("prediction").is_not_nan()
    )
    names = [(texts or {}).get(item, item) for item in of_dialogue["item_id"]]
    return (
        of_dialogue.select(
            "item_id",
            pl.Series("item", names, pl.String),
            "score",
            "prediction",
            rank_score=pl.col("score").rank("average", descending=True),
            rank_prediction=pl.col("prediction").rank("average", descending=True),
        )
        .with_columns(
            direction=pl.when(pl.col("rank_prediction") < pl.col("rank_score"))
            .then(pl.lit("higher"))
            .when(pl.col("rank_prediction") > pl.col("rank_score"))
            .then(pl.lit("lower"))
            .otherwise(pl.lit("same"))
        )
        .sort("rank_score", maintain_order=True)
    )


def worst_ordered_dialogue(predictions: pl.DataFrame) -> str | None:
    """Return the dialogue with the largest sum of squared differences of ranks by people and by the model.

    predictions: as for `rank_frame`; undefined ones are left out. The first of several dialogues; None if all
    items are in the same order.
    """
    ranks = [
        pl.col(name).rank("average", descending=True).over("dialogue_id")
        for name in ("score", "prediction")
    ]
    sums = (
        predictions.filter(pl.col("prediction").is_not_nan())
        .select("dialogue_id", squares=(ranks[0] - ranks[1]) ** 2)
        .group_by("dialogue_id", maintain_order=True)
        .sum()
        .filter(pl.col("squares") > 0)
        .sort("squares", descending=True, maintain_order=True)
    )
    return None if sums.is_empty() else str(sums["dialogue_id"][0])


def rank_chart(frame: pl.DataFrame, titles: Titles | None = None) -> alt.LayerChart:
    """Return a line per item from its rank by people to its rank by a model.

    frame: as returned by `rank_frame`, with at least one row. Colour and dashes show the direction. The
    labels of items with equal scores are joined.
    """
    import altair as alt

    from bws.base.charts import BLUE, VERMILION, chart_rows
    from bws.study_charts import GREY

    labels = with_titles(TITLES, titles)
    rows = [
        {**row, "side": side, "rank": row[name], "direction": labels[row["direction"]]}
        for row in frame.to_dicts()
        for side, name in enumerate(("rank_score", "rank_prediction"))
    ]
    names = _labels_by_rank(frame)
    x = alt.X("side:Q", title=None).axis(
        values=[0, 1],
        labelExpr=f"datum.value ? {_quoted(labels['model'])} : {_quoted(labels['people'])}",
        grid=False,
        orient="top",
        domain=False,
        labelFontSize=12,
    )
    y = alt.Y("rank:Q", title=labels["rank"]).scale(
        domain=[len(frame) + 0.5, 0.5], nice=False, zero=False
    )
    y = y.axis(
        values=list(names),
        labelExpr=f"{json.dumps({f'{rank:g}': text for rank, text in names.items()})}[datum.value]",
        grid=False,
        labelLimit=MAX_LABEL_WIDTH,
        labelOverlap=False,
    )
    domain = [labels[name] for name in DIRECTIONS]
    legend = alt.Legend(
        orient="bottom",
        title=labels["direction"],
        labelLimit=200,
        symbolType="stroke",
        symbolSize=300,
        symbolStrokeWidth=3,
    )
    base = alt.Chart(chart_rows(rows)).encode(
        x=x.scale(domain=[-MARGIN, 1 + MARGIN], nice=False),
        y=y,
        detail="item_id:N",
        color=alt.Color("direction:N", legend=legend).scale(
            domain=domain, range=[BLUE, VERMILION, GREY]
        ),
        tooltip=[
            alt.Tooltip("item:N", title=labels["item"]),
            *(
                alt.Tooltip(f"{name}:Q", title=labels[name], format=".3~f")
                for name in ("score", "rank_score", "prediction", "rank_prediction")
            ),
        ],
    )
    dash = alt.StrokeDash("direction:N", legend=legend).scale(
        domain=domain, range=[[1, 0], [6, 3], [2, 2]]
    )
    layers = [
        base.mark_line(strokeWidth=2).encode(strokeDash=dash),
        base.mark_circle(size=60, opacity=1),
    ]
    return alt.LayerChart(layer=layers).properties(height=max(34 * len(frame), 120))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _labels_by_rank(frame: pl.DataFrame) -> dict[float, str]:
    """Return the label at each rank by people, with the rank: ``2.5 · first / second``."""
    labels: dict[float, str] = {}
    for rank, items in frame.group_by("rank_score", maintain_order=True).agg("item").iter_rows():
        text = f"{rank:g} · {' / '.join(' '.join(item.split()) for item in items)}"
        labels[rank] = cut_end(text, MAX_LABEL_CHARACTERS)
    return labels


def rank_panels(
    results: Sequence[Result], dialogue: str | None = None, texts: Mapping[str, str] | None = None
) -> list[Panel]:
    """Return a panel per pairwise result with predictions of a dialogue, the best model first."""
    if not dialogue:
        raise MissingFigureError("it is of one dialogue, which --dialogue specifies")
    pairwise = [result for result in results if result_kind(result.task).tables == "pairs"]
    known: set[str] = set()
    panels: list[Panel] = []
    missing: list[str] = []
    for title, of_data in results_by_data(pairwise):
        for name, result in best_first(of_data):
            if result.predictions is None:
                missing.append(f"{name}: its predictions are missing")
                continue
            known |= set(result.predictions["dialogue_id"])
            frame = rank_frame(result.predictions, dialogue, texts)
            missing += nan_notes(name, result.predictions)
            if len(frame) >= 2:
                heading = f"{title}, {dialogue}: people and {name}"
                panels.append(Panel(heading, rank_chart(frame), frame))
    if not panels:
        raise MissingFigureError(_reason(dialogue, known, missing))
    return best_panels(panels, missing)


def _reason(dialogue: str, known: set[str], missing: Sequence[str]) -> str:
    if dialogue in known:
        return f"dialogue {dialogue!r} has a single item"
    if known:
        return f"unknown dialogue {dialogue!r}{suggestion(dialogue, sorted(known))}"
    return "; ".join(missing) or "no results of pairs of utterances"
