"""Correlations with ratings by level of similarity, and their chart (EvalRank's Figure 2)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bws.base.charts import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, chart_rows
from giccs.evalrank.agreement import LEVELS, level_name
from giccs.measures.results import Result

if TYPE_CHECKING:
    import altair as alt

TASK = "sentence-similarity"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
"""Colours of models, which are also distinguished by shape."""
GREY = "#8C8C8C"


def level_rows(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return one row per model, data set and level.

    The keys are ``model`` (with its setting), ``data``, ``level``, ``spearman``, ``low``, ``high`` and
    ``pairs``. Levels without a correlation are omitted.
    """
    rows = []
    for result in (result for result in results if result.task == TASK):
        for group in (group for group in result.groups if "level" in group.by):
            correlation = group.metrics["spearman"]
            row = {
                "model": f"{result.model} ({result.signature['setting']})",
                "data": " · ".join(filter(None, [_data(result), group.by.get("set", "")])),
                "level": str(group.by["level"]),
                "spearman": correlation.value,
                "low": correlation.low,
                "high": correlation.high,
                "pairs": correlation.n,
            }
            rows += [] if math.isnan(correlation.value) else [row]
    return rows


def _data(result: Result) -> str:
    return str(result.environment["data"]).rstrip("/").rpartition("/")[2]


def level_chart(rows: list[dict[str, Any]]) -> alt.TopLevelMixin:
    """Return the chart of Figure 2 for rows of `level_rows`: one line per model, one panel per data set."""
    import altair as alt

    json_rows = [
        {name: None if value != value else value for name, value in row.items()} for row in rows
    ]
    levels = [level_name(*level) for level in LEVELS]
    models = sorted({row["model"] for row in rows})
    base = alt.Chart().encode(
        x=alt.X("level:N", sort=levels, title="similarity level", axis=alt.Axis(labelAngle=0))
    )
    points = base.mark_line(point={"size": 60}).encode(
        y=alt.Y("spearman:Q", title="Spearman's rho"),
        color=alt.Color("model:N", sort=models, scale=alt.Scale(domain=models, range=COLOURS)),
        shape=alt.Shape("model:N", sort=models, scale=alt.Scale(domain=models)),
        tooltip=["model:N", "data:N", "level:N", "spearman:Q", "low:Q", "high:Q", "pairs:Q"],
    )
    intervals = base.mark_rule(color=GREY).encode(y="low:Q", y2="high:Q", detail="model:N")
    layers: alt.FacetChart = (
        alt.layer(intervals, points, data=chart_rows(json_rows))
        .properties(width=360, height=260)
        .facet(column=alt.Column("data:N", title=None))
    )
    return layers
