"""Effects of settings: correlations of each model without and with history, and over its prompts.

The numbers are those of the tables of `giccs.report.setting_effects`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from bws.base.tables import ResultTable
from giccs.measures.results import Result
from giccs.report.figures.panels import (
    MissingFigureError,
    Panel,
    Titles,
    model_labels,
    results_by_data,
    with_titles,
)
from giccs.report.setting_effects import METRIC, history_table, prompt_table

if TYPE_CHECKING:
    import altair as alt

VERDICTS = ("better", "worse", "open")
HISTORY_TITLES = {
    "value": "Spearman ρ",
    "model": "model",
    "condition": "history",
    "with": "with history",
    "without": "without history",
    "difference": "difference of Spearman ρ",
    "low": "2.5 %",
    "high": "97.5 %",
    "verdict": "95 % interval",
    "better": "above 0",
    "worse": "below 0",
    "open": "contains 0",
}
PROMPT_TITLES = {
    "value": "Spearman ρ",
    "model": "model",
    "prompts": "prompts",
    "minimum": "minimum",
    "median": "median",
    "maximum": "maximum",
    "ranks": "possible ranks",
}


def history_frame(table: ResultTable, titles: Titles | None = None) -> pl.DataFrame:
    """Return the rows of `history_table`, best model without history first.

    Columns: model, label (short), without, with, difference, low, high and verdict (better, worse or
    open: its interval is above 0, below 0 or contains it). titles: as in `model_labels`.
    """
    frame: pl.DataFrame = table.to_frame("polars")
    names = list(frame.select("model", "history").iter_rows())
    return frame.select(
        "model",
        pl.Series("label", model_labels(names, titles), pl.String),
        "without",
        "with",
        "difference",
        low="difference_low",
        high="difference_high",
        verdict=pl.when(pl.col("difference_low") > 0)
        .then(pl.lit("better"))
        .when(pl.col("difference_high") < 0)
        .then(pl.lit("worse"))
        .otherwise(pl.lit("open")),
    )


def history_chart(frame: pl.DataFrame, titles: Titles | None = None) -> alt.LayerChart:
    """Return a row per model: its correlation without and with history, joined by a line."""
    import altair as alt

    from bws.base.charts import BLUE, ORANGE
    from bws.study_charts import GREY

    labels = with_titles(HISTORY_TITLES, titles)
    conditions = [labels["without"], labels["with"]]
    ends = frame.unpivot(
        ["without", "with"], index=["label", "model"], variable_name="condition"
    ).with_columns(
        pl.col("condition").replace({name: labels[name] for name in ("without", "with")})
    )
    y = _rows(frame)
    legend = alt.Legend(title=None, orient="top", columns=1)
    points = alt.Chart(ends).mark_point(filled=True, size=90, opacity=1)
    scales = {
        "color": alt.Color("condition:N", legend=legend).scale(
            domain=conditions, range=[BLUE, ORANGE]
        ),
        "shape": alt.Shape("condition:N", legend=legend).scale(
            domain=conditions, range=["circle", "diamond"]
        ),
    }
    tooltip = [
        alt.Tooltip("model:N", title=labels["model"]),
        alt.Tooltip("condition:N", title=labels["condition"]),
        alt.Tooltip("value:Q", title=labels["value"], format=".3f"),
    ]
    x = alt.X("value:Q", title=labels["value"]).scale(zero=False)
    layers = [
        alt.Chart(frame)
        .mark_rule(color=GREY, strokeWidth=2)
        .encode(x=alt.X("without:Q", title=labels["value"]), x2="with:Q", y=y),
        points.encode(x=x, y=y, tooltip=tooltip, **scales),
    ]
    return alt.LayerChart(layer=layers).properties(height=alt.Step(28))


def difference_of_history_chart(
    frame: pl.DataFrame, titles: Titles | None = None
) -> alt.LayerChart:
    """Return a row per model: the difference that the history makes, with its paired interval."""
    import altair as alt

    from bws.base.charts import BLUE, VERMILION
    from bws.study_charts import GREY

    labels = with_titles(HISTORY_TITLES, titles)
    domain = [labels[name] for name in VERDICTS]
    legend = alt.Legend(title=labels["verdict"], orient="top", columns=1)
    rows = frame.with_columns(pl.col("verdict").replace({name: labels[name] for name in VERDICTS}))
    base = alt.Chart(rows).encode(
        y=_rows(frame),
        color=alt.Color("verdict:N", legend=legend).scale(
            domain=domain, range=[BLUE, VERMILION, GREY]
        ),
        tooltip=[
            alt.Tooltip("model:N", title=labels["model"]),
            *(
                alt.Tooltip(f"{name}:Q", title=labels[name], format="+.3f")
                for name in ("difference", "low", "high")
            ),
        ],
    )
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(color=GREY).encode(x="zero:Q")
    x = alt.X("difference:Q", title=labels["difference"]).scale(zero=True)
    shape = alt.Shape("verdict:N", legend=legend).scale(
        domain=domain, range=["triangle-right", "triangle-left", "circle"]
    )
    layers = [
        zero,
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", title=labels["difference"]), x2="high:Q"
        ),
        base.mark_point(filled=True, size=80, opacity=1).encode(x=x, shape=shape),
    ]
    return alt.LayerChart(layer=layers).properties(height=alt.Step(28))


def _rows(frame: pl.DataFrame) -> alt.Y:
    import altair as alt

    labels: alt.Y = alt.Y("label:N", sort=frame["label"].to_list(), title=None).axis(
        grid=False, ticks=False, domain=False, labelLimit=300, labelOverlap=False
    )
    return labels


def prompt_frame(table: ResultTable, titles: Titles | None = None) -> pl.DataFrame:
    """Return the rows of `prompt_table` with the column label (short names with the number of prompts).

    titles: as in `model_labels`.
    """
    frame: pl.DataFrame = table.to_frame("polars")
    names = list(frame.select("model", "history").iter_rows())
    labels = pl.Series("label", model_labels(names, titles), pl.String)
    return frame.with_columns(pl.format("{} (n = {})", labels, "prompts").alias("label"))


def prompt_chart(frame: pl.DataFrame, titles: Titles | None = None) -> alt.LayerChart:
    """Return a row per model and history: the range of correlations over its prompts, and their median."""
    import altair as alt

    from bws.base.charts import BLUE

    labels = with_titles(PROMPT_TITLES, titles)
    numbers = ("minimum", "median", "maximum")
    base = alt.Chart(frame).encode(
        y=_rows(frame),
        tooltip=[
            alt.Tooltip("model:N", title=labels["model"]),
            alt.Tooltip("prompts:Q", title=labels["prompts"]),
            *(alt.Tooltip(f"{name}:Q", title=labels[name], format=".3f") for name in numbers),
            alt.Tooltip("ranks:N", title=labels["ranks"]),
        ],
    )
    title = labels["value"]
    layers = [
        base.mark_rule(color=BLUE, strokeWidth=3).encode(
            x=alt.X("minimum:Q", title=title).scale(zero=False), x2="maximum:Q"
        ),
        *(
            base.mark_tick(color=BLUE, thickness=3, size=14, opacity=1).encode(
                x=alt.X(f"{name}:Q", title=title)
            )
            for name in ("minimum", "maximum")
        ),
        base.mark_point(
            shape="diamond", filled=True, size=90, opacity=1, color="#FFFFFF", stroke=BLUE
        ).encode(x=alt.X("median:Q", title=title)),
    ]  # fmt: skip
    return alt.LayerChart(layer=layers).properties(height=alt.Step(28))


def history_panels(results: Sequence[Result]) -> list[Panel]:
    """Return two panels per task and data set: correlations without and with history, and differences."""
    panels = []
    for title, table in _tables(results, history_table):
        frame = history_frame(table)
        pair = history_chart(frame), difference_of_history_chart(frame)
        panels += [
            Panel(f"{title}: without and with history", pair[0], frame, table.notes[1:]),
            Panel("Difference with 95 % interval, paired by item", pair[1], frame),
        ]
    if not panels:
        reason = "no model has results with and without history whose difference has an interval"
        raise MissingFigureError(reason)
    return panels


def prompt_panels(results: Sequence[Result]) -> list[Panel]:
    """Return a panel per task and data set with a model that has several prompts."""
    panels = []
    for title, table in _tables(results, prompt_table):
        frame = prompt_frame(table)
        notes = ["Line: minimum to maximum over the prompts of a model; diamond: median."]
        notes += [f"{note}." for note in table.notes[1:]]
        panels.append(Panel(f"{title}: Spearman ρ by prompt", prompt_chart(frame), frame, notes))
    if not panels:
        raise MissingFigureError("no model of pairs of utterances has results with several prompts")
    return panels


def _tables(
    results: Sequence[Result], table_of: Callable[[Sequence[Result]], ResultTable | None]
) -> Iterator[tuple[str, ResultTable]]:
    """Yield the title and the table of each task and data set that has one."""
    with_metric = [result for result in results if METRIC in result.metrics]
    for title, of_data in results_by_data(with_metric):
        if table := table_of(of_data):
            yield title, table
