"""Ranks of models by several scores, and their chart (EvalRank's Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.base.charts import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW, chart_rows
from giccs.evalrank.score_correlations import keep_complete_models
from giccs.evalrank.scores import ScoreColumn

if TYPE_CHECKING:
    import altair as alt

COLOURS = (BLACK, VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY, YELLOW)
"""Colours of scores, the first orders the models; scores are also distinguished by shape."""


def rank_rows(columns: Sequence[ScoreColumn]) -> list[dict[str, Any]]:
    """Return one row per score and model with all scores: ``model``, ``score`` and ``rank`` (1 is the best).

    Rows of a score are in the order of the ranks by the first one. Tied models have their average rank.
    """
    ranks = {
        f"{column.task} {column.label}": _ranks(column) for column in keep_complete_models(columns)
    }
    first = next(iter(ranks.values()))
    order = sorted(first, key=lambda model: (first[model], model))
    return [
        {"model": model, "score": score, "rank": of_model[model]}
        for score, of_model in ranks.items()
        for model in order
    ]


def _ranks(column: ScoreColumn) -> dict[str, float]:
    from scipy.stats import rankdata

    ranks = rankdata(-np.array([*column.scores.values()]))
    return dict(zip(column.scores, map(float, ranks), strict=True))


def rank_chart(columns: Sequence[ScoreColumn]) -> alt.Chart:
    """Return the chart of `rank_rows`: a point per score for each model.

    Raises ValueError for more scores than colours, and if no model has all scores.
    """
    import altair as alt

    if len(columns) > len(COLOURS):
        message = f"{len(columns)} scores; it shows at most {len(COLOURS)}"
        raise ValueError(f"{message}: select with --intrinsic and --downstream")
    rows = rank_rows(columns)
    if not rows:
        raise ValueError("no model has all scores")
    models = list(dict.fromkeys(row["model"] for row in rows))
    names = list(dict.fromkeys(row["score"] for row in rows))
    chart: alt.Chart = (
        alt.Chart(chart_rows(rows))
        .mark_point(filled=True, size=50, opacity=0.85)
        .encode(
            x=alt.X(
                "model:N",
                sort=models,
                title=f"models, by rank on {names[0]}",
                axis=alt.Axis(labelAngle=-90, labelLimit=240, labelOverlap=False),
            ),
            y=alt.Y(
                "rank:Q",
                scale=alt.Scale(reverse=True, zero=False),
                axis=alt.Axis(tickMinStep=1, format="d"),
            ),
            color=alt.Color(
                "score:N",
                sort=names,
                scale=alt.Scale(domain=names, range=COLOURS),
                legend=alt.Legend(labelLimit=480),
            ),
            shape=alt.Shape("score:N", sort=names, scale=alt.Scale(domain=names)),
        )
        .properties(width=max(240, 14 * len(models)), height=320)
    )
    return chart
