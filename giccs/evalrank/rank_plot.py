"""Plot of the ranks of models by several scores (EvalRank's Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.figures import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from giccs.evalrank.score_correlations import keep_complete_models
from giccs.evalrank.scores import ScoreColumn

if TYPE_CHECKING:
    import altair as alt

__all__ = ["COLOURS", "rank_plot", "rank_rows"]

COLOURS = (BLACK, VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY, YELLOW)
"""Colours of scores, the pivot first; scores are also distinguished by shape."""


def rank_rows(columns: Sequence[ScoreColumn]) -> list[dict[str, Any]]:
    """Return one row per model and score, with the keys ``model``, ``score`` and ``rank`` (1 is the best).

    Only models with all scores are included. Rows are ordered by the rank in the first column, the pivot.
    Tied models have their average rank.
    """
    shared = keep_complete_models(columns)
    ranks = {_column_name(column): _rank_models(column) for column in shared}
    pivot = ranks[_column_name(shared[0])]
    order = sorted(pivot, key=lambda model: (pivot[model], model))
    return [
        {"model": model, "score": score, "rank": of_model[model]}
        for score, of_model in ranks.items()
        for model in order
    ]


def rank_plot(columns: Sequence[ScoreColumn]) -> alt.Chart:
    """Return a plot of the models, ordered by rank in the first column, with one point per column."""
    import altair as alt

    rows = rank_rows(columns)
    models = list(dict.fromkeys(row["model"] for row in rows))
    names = list(dict.fromkeys(row["score"] for row in rows))
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(filled=True, size=50, opacity=0.85)
        .encode(
            x=alt.X(
                "model:N",
                sort=models,
                title=f"models, by rank on {names[0]}",
                axis=alt.Axis(labelAngle=-90, labelLimit=240, labelOverlap=False),
            ),
            y=alt.Y("rank:Q", scale=alt.Scale(reverse=True, zero=False)),
            color=alt.Color("score:N", sort=names, scale=alt.Scale(domain=names, range=COLOURS)),
            shape=alt.Shape("score:N", sort=names, scale=alt.Scale(domain=names)),
            tooltip=["model:N", "score:N", "rank:Q"],
        )
        .properties(width=max(240, 14 * len(models)), height=320)
    )
    return chart


def _column_name(column: ScoreColumn) -> str:
    return f"{column.task} {column.label}"


def _rank_models(column: ScoreColumn) -> dict[str, float]:
    from scipy.stats import rankdata

    models = list(column.scores)
    ranks = rankdata(-np.array([column.scores[model] for model in models]))
    return dict(zip(models, map(float, ranks), strict=True))
