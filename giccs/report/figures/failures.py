"""Items on which people agree and a model fails: low disagreement and a large difference of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

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
from giccs.tasks import result_kind

if TYPE_CHECKING:
    import altair as alt

MAX_DISAGREEMENT = 0.2
"""Largest share of judgments that differ from the majority with which people are said to agree."""
MIN_RANK_DIFFERENCE = 0.5
"""Smallest difference of ranks, as a share of all items, with which a model is said to fail."""
MAX_POINTS = 3000
"""Largest number of failures, and of other items, in a chart; of more, a part at equal distances is drawn."""
GROUPS = ("failure", "other")
TITLES = {
    "disagreement": "disagreement of the annotators",
    "residual": "rank by the model − rank by people",
    "item_id": "item",
    "group": "item",
    "failure": "people agree, the model fails",
    "other": "other items",
}


def failure_frame(predictions: pl.DataFrame, disagreement: Mapping[str, float]) -> pl.DataFrame:
    """Return one row per item, failures with the largest difference of ranks first.

    predictions: item_id, dialogue_id, score, prediction. disagreement: item id -> share of judgments that
    differ from the majority; items without it, or with a prediction of NaN, are omitted. Columns: item_id,
    dialogue_id, disagreement, rank_score and rank_prediction (0 for the lowest value, 1 for the highest, mean
    ranks of equal values), residual (rank_prediction - rank_score) and group (failure or other).
    """
    disagreements = pl.DataFrame(
        {"item_id": list(disagreement), "disagreement": list(disagreement.values())},
        schema={"item_id": pl.String, "disagreement": pl.Float64},
    ).filter(pl.col("disagreement").is_not_nan())
    predictions = predictions.filter(pl.col("prediction").is_not_nan())
    divisor = max(len(predictions) - 1, 1)
    ranked = predictions.select(
        "item_id",
        "dialogue_id",
        rank_score=(pl.col("score").rank("average") - 1) / divisor,
        rank_prediction=(pl.col("prediction").rank("average") - 1) / divisor,
    ).with_columns(residual=pl.col("rank_prediction") - pl.col("rank_score"))
    joined = ranked.join(disagreements, on="item_id", maintain_order="left")
    return with_groups(joined).select(
        "item_id",
        "dialogue_id",
        "disagreement",
        "rank_score",
        "rank_prediction",
        "residual",
        "group",
    )


def with_groups(items: pl.DataFrame) -> pl.DataFrame:
    """Return items (disagreement, residual) with the column group, failures and large residuals first."""
    is_failure = (pl.col("disagreement") <= MAX_DISAGREEMENT) & (
        pl.col("residual").abs() >= MIN_RANK_DIFFERENCE
    )
    grouped = items.with_columns(
        group=pl.when(is_failure).then(pl.lit("failure")).otherwise(pl.lit("other"))
    )
    size = pl.col("residual").abs()
    return grouped.sort("group", size, descending=[False, True], maintain_order=True)


def failure_chart(
    frame: pl.DataFrame, titles: Titles | None = None, texts: Sequence[str] = ()
) -> alt.LayerChart:
    """Return a scatter plot of the difference of ranks against the disagreement, with marked failures.

    frame: as returned by `failure_frame` or `with_groups`; `texts` are further columns in the tooltip, with
    titles. Dashed lines show the limits of failures.
    """
    import altair as alt

    from bws.base.charts import BLUE, VERMILION
    from bws.study_charts import GREY

    labels = with_titles(TITLES, titles)
    drawn = pl.concat(
        [_thinned(frame.filter(pl.col("group") == name)) for name in ("other", "failure")]
    )
    columns = ["item_id", *texts, "disagreement", "residual", "group"]
    rows = drawn.select(columns).with_columns(
        pl.col("group").replace({name: labels[name] for name in GROUPS})
    )
    domain = [labels[name] for name in GROUPS]
    legend = alt.Legend(title=None, orient="top", columns=1, labelLimit=320)
    x = alt.X("disagreement:Q", title=labels["disagreement"])
    y = alt.Y("residual:Q", title=labels["residual"]).scale(domain=[-1, 1])
    points = alt.Chart(rows).mark_point(filled=True, size=45, opacity=0.75)
    limits = pl.DataFrame({"residual": [-MIN_RANK_DIFFERENCE, MIN_RANK_DIFFERENCE]})
    vertical = pl.DataFrame({"disagreement": [MAX_DISAGREEMENT]})
    layers = [
        alt.Chart(limits).mark_rule(color=GREY, strokeDash=[4, 4]).encode(y=y),
        alt.Chart(vertical).mark_rule(color=GREY, strokeDash=[4, 4]).encode(x=x),
        points.encode(
            x=x,
            y=y,
            color=alt.Color("group:N", legend=legend).scale(domain=domain, range=[VERMILION, BLUE]),
            shape=alt.Shape("group:N", legend=legend).scale(
                domain=domain, range=["triangle-up", "circle"]
            ),
            tooltip=[
                *(alt.Tooltip(f"{name}:N", title=labels[name]) for name in ("item_id", *texts)),
                *(
                    alt.Tooltip(f"{name}:Q", title=labels[name], format=".3f")
                    for name in ("disagreement", "residual")
                ),
            ],
        ),
    ]
    return alt.LayerChart(layer=layers).properties(height=400)


def _thinned(items: pl.DataFrame) -> pl.DataFrame:
    return items.gather_every(max(1, -(-len(items) // MAX_POINTS)))


def failure_panels(
    results: Sequence[Result], disagreement: Mapping[str, float] | None = None
) -> list[Panel]:
    """Return a panel per pairwise result with judged items, the best model first.

    disagreement: item id -> share of judgments that differ from the majority.
    """
    if disagreement is None:
        raise MissingFigureError("it requires the judgments, which --judgments specifies")
    panels: list[Panel] = []
    missing: list[str] = []
    pairwise = [result for result in results if result_kind(result.task).tables == "pairs"]
    for title, of_data in results_by_data(pairwise):
        for name, result in best_first(of_data):
            if result.predictions is None:
                missing.append(f"{name}: its predictions are missing")
            elif len(frame := failure_frame(result.predictions, disagreement)):
                heading = f"{title}: errors of {name} by disagreement of people"
                panels.append(Panel(heading, failure_chart(frame), frame, _notes(frame)))
                missing += nan_notes(name, result.predictions)
    if not panels:
        reason = "; ".join(missing) or "no result of pairs of utterances has judged items"
        raise MissingFigureError(reason)
    return best_panels(panels, missing)


def _notes(frame: pl.DataFrame) -> list[str]:
    failures = frame.filter(pl.col("group") == "failure")
    notes = [
        f"People agree (at most {MAX_DISAGREEMENT:.0%} of the judgments differ from the majority) and the "
        f"ranks differ by {MIN_RANK_DIFFERENCE:.0%} or more: {len(failures)} of {len(frame)} items."
    ]
    if len(failures):
        notes.append(f"Largest first: {', '.join(failures['item_id'].head(5))}.")
    for n, name in ((len(failures), "failures"), (len(frame) - len(failures), "other items")):
        if n > MAX_POINTS:
            notes.append(f"Of the {n} {name}, a part at equal distances is drawn.")
    return notes
