"""Heat map of models and subsets of the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from bws.base.notes import note
from bws.base.tables import part_name
from bws.stats.estimates import Estimate
from bws.study_charts import MISSING_COLOUR, RAMP, TEXT_SWITCH
from giccs.measures.metrics import LOWER_IS_BETTER_METRICS
from giccs.measures.results import Result, history_of, setting_of, variant_of
from giccs.report.figures.panels import (
    PAGE_LABEL_CHARACTERS,
    MissingFigureError,
    Panel,
    Titles,
    full_name,
    model_and_prompt,
    model_labels,
    results_by_data,
    with_titles,
)
from giccs.report.metric_titles import metric_title
from giccs.report.model_names import WRAPPED_LABELS, wrap_name
from giccs.tasks import result_kind

if TYPE_CHECKING:
    import altair as alt

DARK_TEXT, LIGHT_TEXT = "#000000", "#FFFFFF"
NO_VALUE = "–"
FITTED_TEXT_SIZE = "bandwidth('x') < 16 ? 0 : min(11, bandwidth('x') / 2.4)"
"""Size of the numbers of a stretched chart in pixels: none in cells too narrow to read them."""
MAX_LEVEL_CHARACTERS = 5
"""Longest name of a subset below its column; longer names are tilted."""
TITLES = {
    "value": "value",
    "model": "model",
    "subset": "subset",
    "low": "2.5 %",
    "high": "97.5 %",
    "n": "n",
    "reason": "reason",
}
SCHEMA = {
    "model": pl.String,
    "label": pl.String,
    "division": pl.String,
    "subset": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
}


def main_metric_of(results: Sequence[Result]) -> str:
    """Return the metric that ranks the results of a task."""
    return result_kind(results[0].task).main_metric or next(iter(results[0].metrics))


def best_first(results: Sequence[Result]) -> list[tuple[str, Result]]:
    """Return the label and the result of pairwise results of one data set, the best model first."""
    metric = main_metric_of(results)
    ordered = sorted(results, key=lambda each: _sort_value(-each.metrics[metric].value))
    labels = model_labels([(variant_of(result), history_of(result)) for result in ordered])
    return list(zip(labels, ordered, strict=True))


def subset_frame(
    results: Sequence[Result], metric: str, titles: Titles | None = None
) -> pl.DataFrame:
    """Return one row per model and subset, best model first; missing numbers are null, with a reason.

    results: of one task and data set; a multiple-choice result is one model per history. Columns: model (full
    name with history), label (short), division (``domain``), subset (``domain=find_hotel``), value, low, high
    (95 %), n and reason. titles: of the histories ``with`` and ``without``.
    """
    cells: dict[tuple[str, str], dict[tuple[str, str], Estimate]] = {}
    overall: dict[tuple[str, str], float] = {}
    for result in results:
        for model, by, estimate in _estimates(result, metric):
            if by:
                subset = ", ".join(by), part_name(by)
                cells.setdefault(subset, {})[model] = estimate
            overall.setdefault(model, math.nan)
            if not by:
                overall[model] = estimate.value
    sign = 1 if metric in LOWER_IS_BETTER_METRICS else -1
    models = sorted(overall, key=lambda model: _sort_value(sign * overall[model]))
    labels = model_labels(models, titles)
    missing = Estimate(math.nan, math.nan, math.nan, 0, note("not computed"))
    rows = [
        {
            "model": full_name(*model, titles),
            "label": label,
            "division": division,
            "subset": subset,
            **{name: getattr(estimate, name) for name in ("value", "low", "high", "n", "reason")},
        }
        for model, label in zip(models, labels, strict=True)
        for (division, subset), estimates in cells.items()
        for estimate in [estimates.get(model, missing)]
    ]
    return pl.DataFrame(rows, schema=SCHEMA).fill_nan(None)


def _sort_value(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _estimates(
    result: Result, metric: str
) -> Iterator[tuple[tuple[str, str], dict[str, Any], Estimate]]:
    """Yield (model, history), the subset (empty for all data) and the metric."""
    kind = result_kind(result.task).tables
    name = model_and_prompt(result)
    if kind == "metrics":
        setting = setting_of(result)
        name = f"{name} ({setting})" if setting else name
    history = "" if kind == "metrics" else history_of(result)
    if metric in result.metrics and kind != "choices":
        yield (name, history), {}, result.metrics[metric]
    for group in result.groups:
        by = dict(group.by)
        group_history = str(by.pop("history", "")) if kind == "choices" else history
        if metric in group.metrics and (group_history or kind != "choices"):
            yield (name, group_history), by, group.metrics[metric]


def subset_chart(
    frame: pl.DataFrame, titles: Titles | None = None, *, is_stretched: bool = False
) -> alt.LayerChart:
    """Return a heat map with the value in each cell; cells without a value are grey, with a dash.

    The colours of correlations and shares range from 0, or less, to 1, whatever the values.

    frame: as returned by `subset_frame`, with at least one row. is_stretched: the width of the chart is
    that of a page, to which the size of the numbers is adapted.
    """
    import altair as alt

    labels = with_titles(TITLES, titles)
    low, high = _domain(frame["value"].drop_nulls().to_list())
    switch = low + TEXT_SWITCH * (high - low)
    axis: dict[str, Any] = {"grid": False, "ticks": False, "domain": False, "labelLimit": 300}
    axis |= {"labelFlush": False, "labelBound": False, "labelOverlap": False}
    if is_stretched:
        lines = [wrap_name(label, PAGE_LABEL_CHARACTERS) for label in frame["label"]]
        frame = frame.with_columns(label=pl.Series(lines))
    longest = max(map(len, frame["subset"]))
    base = alt.Chart(frame).encode(
        x=alt.X("subset:N", sort=None, title=labels["subset"]).axis(
            labelAngle=-45 if longest > MAX_LEVEL_CHARACTERS else 0, **axis
        ),
        y=alt.Y("label:N", sort=None, title=None).axis(**{**axis, **WRAPPED_LABELS}),
        tooltip=[
            *(alt.Tooltip(f"{name}:N", title=labels[name]) for name in ("model", "subset")),
            *(
                alt.Tooltip(f"{name}:Q", title=labels[name], format=".3f")
                for name in ("value", "low", "high")
            ),
            alt.Tooltip("n:Q", title=labels["n"]),
            alt.Tooltip("reason:N", title=labels["reason"]),
        ],
    )
    defined = base.transform_filter("isValid(datum.value)")
    legend = alt.Legend(title=labels["value"], orient="top", gradientLength=120, titleLimit=300)
    colour = alt.Color("value:Q", legend=legend).scale(
        domain=[low, high], range=list(RAMP), interpolate="rgb", clamp=True
    )
    text_colour = alt.condition(
        f"datum.value > {switch}", alt.value(LIGHT_TEXT), alt.value(DARK_TEXT)
    )
    missing = base.transform_filter("!isValid(datum.value)")
    layers = [
        defined.mark_rect(stroke="#FFFFFF").encode(color=colour),
        defined.mark_text(fontSize=alt.ExprRef(FITTED_TEXT_SIZE) if is_stretched else 11).encode(
            text=alt.Text("value:Q", format=".2f"), color=text_colour
        ),
        missing.mark_rect(color=MISSING_COLOUR, stroke="#FFFFFF"),
        missing.mark_text(text=NO_VALUE, fontSize=11, color=DARK_TEXT),
    ]
    row_height = 28 if frame["label"].str.contains("\n", literal=True).any() else 20
    used = layers[:2] if frame["value"].null_count() == 0 else layers
    return alt.LayerChart(layer=used).properties(width=alt.Step(44), height=alt.Step(row_height))


def _domain(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of the colours: 0 to 1, for metrics with values beyond ±1 from 0 to the farthest."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (0.0, 1.0) if low >= -1 and high <= 1 else (min(low, 0.0), max(high, 0.0))


def subset_panels(results: Sequence[Result]) -> list[Panel]:
    """Return a panel per task and data set whose results have subsets."""
    panels = []
    for title, of_data in results_by_data(results):
        metric = main_metric_of(of_data)
        frame = subset_frame(of_data, metric)
        if len(frame):
            name = metric_title(metric)
            panels.append(
                Panel(
                    f"{title}: {name} by subset",
                    subset_chart(frame, {"value": name}),
                    frame,
                    list(_notes(frame)),
                )
            )
    if not panels:
        raise MissingFigureError("the results have no subsets")
    return panels


def _notes(frame: pl.DataFrame) -> Iterator[str]:
    yield "Best model first."
    if n_missing := frame["value"].null_count():
        yield f"Grey cells have no value: {n_missing}."
