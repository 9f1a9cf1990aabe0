"""The view of tasks without specific views: metrics with intervals, by model and subset."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from bws.tables import part_name
from giccs.measures.metrics import LOWER_IS_BETTER_METRICS, SELECTED_KEY
from giccs.measures.results import Result, postprocess_warnings, setting_of
from giccs.report.measured import TITLES
from giccs.tasks import result_kind
from giccs_app.explorer import links
from giccs_app.explorer.display import number_column, show_chart, show_table
from giccs_app.explorer.labels import literal, say
from giccs_app.explorer.models import charts as views
from giccs_app.explorer.models.data import (
    NUMBERS,
    best_first,
    key,
    leaderboard,
    metric_of,
    names,
    numbers_of,
)
from giccs_app.explorer.models.selection import choose, numbers, text_or, titles
from giccs_app.explorer.study import Study

__all__ = ["metrics", "show_metrics", "subset_metrics"]


def show_metrics(study: Study, results: list[Result]) -> None:
    """Show all models on one data set: one metric, all metrics, and the metric by subset."""
    metric = _choose_metric(results)
    name = f"{results[0].task} {metric}"
    frame = leaderboard(results, metric).drop("history", "key")
    _show_dots(frame, "model", metric, name)
    if metric in LOWER_IS_BETTER_METRICS:
        st.caption(say("models.less_is_better"))
    ordered = best_first(results, metric)
    if any(SELECTED_KEY in metric_of(result, metric).extra for result in ordered):
        st.caption(say("models.selected"))
    result_names = names(ordered)
    for result in ordered:
        for step in postprocess_warnings(result):
            st.caption(f"{literal(result_names[key(result)])}: {literal(step)}")
    _show_estimates(frame.drop("baseline"), f"{name} table", metric)
    st.subheader(say("models.every_metric"), anchor=False)
    all_metrics = metrics(ordered)
    number_columns = {
        column: number_column(_title(column), format="%.3f") for column in all_metrics.columns[2:]
    }
    config = {**titles("model", "setting"), **number_columns}
    show_table(all_metrics, f"{results[0].task} metrics", column_config=config)
    _show_subsets(ordered, metric, name)


def metrics(results: Sequence[Result]) -> pl.DataFrame:
    """Return one row per result: model, setting, and the value of each metric."""
    result_names = names(results)
    columns = dict.fromkeys(metric for result in results for metric in result.metrics)
    rows = [
        [
            result_names[key(result)],
            setting_of(result),
            *(metric_of(result, metric).value for metric in columns),
        ]
        for result in results
    ]
    schema = {"model": pl.String, "setting": pl.String, **dict.fromkeys(columns, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def subset_metrics(results: Sequence[Result], metric: str, fields: tuple[str, ...]) -> pl.DataFrame:
    """Return one row per result and subset: key, model, part, value, low, high, n, reason.

    fields: names of the fields that define the subsets.
    """
    result_names = names(results)
    rows = [
        {
            "key": key(result),
            "model": result_names[key(result)],
            "part": part_name(group.by),
            **numbers_of(group.metrics[metric]),
        }
        for result in results
        for group in result.groups
        if tuple(group.by) == fields and metric in group.metrics
    ]
    key_columns = dict.fromkeys(("key", "model", "part"), pl.String)
    return pl.DataFrame(rows, schema={**key_columns, **NUMBERS})


def _choose_metric(results: Sequence[Result]) -> str:
    """Show a widget to select a metric; by default the main metric of the task."""
    main_metric = result_kind(results[0].task).main_metric
    all_metrics = list(dict.fromkeys(metric for result in results for metric in result.metrics))
    all_metrics.sort(key=lambda metric: metric != main_metric)
    label = say("models.any_metric")
    return links.selectbox("any_metric", label, all_metrics, format_option=_title, quiet=True)


def _show_subsets(results: Sequence[Result], metric: str, name: str) -> None:
    """Show a chart of one model by subset, and a table of all models."""
    groups = [group for result in results for group in result.groups if metric in group.metrics]
    divisions = {" × ".join(group.by): tuple(group.by) for group in groups}
    if not divisions:
        return
    st.subheader(say("models.view_parts"), anchor=False)
    division = next(iter(divisions))
    if len(divisions) > 1:
        division = links.selectbox("division", say("models.by"), list(divisions), quiet=True)
    frame = subset_metrics(results, metric, divisions[division])
    model = key(choose("model", say("models.model"), results))
    model_rows = frame.filter(pl.col("key") == model).drop("key", "model")
    _show_dots(model_rows, "part", metric, f"{name} by {division} {model}")
    _show_estimates(frame.drop("key"), f"{name} by {division} table", metric)


def _show_dots(frame: pl.DataFrame, column: str, metric: str, name: str) -> None:
    if frame["value"].is_not_nan().any():
        labels = titles(column, "n", "low", "high") | {"value": _title(metric)}
        show_chart(views.dot_plot(frame, column, labels), name, frame)


def _show_estimates(frame: pl.DataFrame, name: str, metric: str) -> None:
    """Show a table of estimates, and the reasons for missing values and intervals."""
    for reason in filter(None, frame["reason"].unique(maintain_order=True)):
        st.caption(literal(reason))
    value = {"value": number_column(_title(metric), format="%.3f")}
    config = {**titles("model", "part", "n", "reason"), **value, **numbers("low", "high")}
    has_reasons = (frame["reason"] != "").any()
    show_table(frame if has_reasons else frame.drop("reason"), name, column_config=config)


def _title(metric: str) -> str:
    return text_or("metric", metric, TITLES.get(metric, metric))
