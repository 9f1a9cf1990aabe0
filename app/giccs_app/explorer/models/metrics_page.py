"""The view of tasks without specific views: the tables of the report, and the largest errors of a model."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from bws.base.problems import InputError
from bws.base.tables import ResultTable, part_name
from giccs.measures.metrics import LOWER_IS_BETTER_METRICS, SELECTED_KEY
from giccs.measures.results import Result
from giccs.report.item_errors import ItemErrors, item_errors
from giccs.report.measured import metric_tables
from giccs.report.rows import HEADER, long_rows
from giccs.tasks import result_kind
from giccs_app.explorer import links
from giccs_app.explorer.caching import cached
from giccs_app.explorer.display import (
    number_column,
    show_chart,
    show_missing_values,
    show_problems,
    show_result,
    show_table,
)
from giccs_app.explorer.labels import say
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
from giccs_app.explorer.models.selection import choose, local_metric_title, predictions_path, titles
from giccs_app.explorer.study import Study

MAX_TEXT_LENGTH, MAX_TEXT_WIDTH = 30, 260
"""Number of characters above which a column of texts has a limited width, and this width in pixels."""


def show_metrics(study: Study, results: list[Result]) -> None:
    """Show all models on one data set by one metric, the tables of the report, and one model."""
    metric = _choose_metric(results)
    name = f"{results[0].task} {metric}"
    _show_dots(leaderboard(results, metric).drop("history", "key"), "model", metric, name)
    if metric in LOWER_IS_BETTER_METRICS:
        st.caption(say("models.less_is_better"))
    if any(SELECTED_KEY in metric_of(result, metric).extra for result in results):
        st.caption(say("models.selected"))
    all_metrics, *by_subset = metric_tables(results, metric)
    _show_table(all_metrics, f"{results[0].task} metrics", long_frame(results))
    _show_model(study, best_first(results, metric), metric, by_subset)


def long_frame(results: Sequence[Result]) -> pl.DataFrame:
    """Return one row per number of the results, as ``giccs report --format csv``."""
    return pl.DataFrame(long_rows(results), HEADER, orient="row", infer_schema_length=None)


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
    return links.selectbox(
        "any_metric", label, all_metrics, format_option=local_metric_title, quiet=True
    )


def _show_model(
    study: Study, results: Sequence[Result], metric: str, by_subset: Sequence[ResultTable]
) -> None:
    """Show the table of all models by subset; of one model, the subsets as a chart and the largest errors."""
    name = f"{results[0].task} {metric}"
    groups = [group for result in results for group in result.groups if metric in group.metrics]
    divisions = {" × ".join(group.by): tuple(group.by) for group in groups}
    with_predictions = [result for result in results if _has_predictions(study, result)]
    for table in by_subset:
        st.subheader(say("models.view_parts"), anchor=False)
        _show_table(table, f"{name} by subset", long_frame(results))
    if not divisions and not with_predictions:
        return
    result = choose("model", say("models.model"), results)
    if divisions:
        division = next(iter(divisions))
        if len(divisions) > 1:
            division = links.selectbox("division", say("models.by"), list(divisions), quiet=True)
        frame = subset_metrics(results, metric, divisions[division])
        rows = frame.filter(pl.col("key") == key(result)).drop("key", "model")
        _show_dots(rows, "part", metric, f"{name} by {division} {key(result)}")
    if result in with_predictions:
        _show_item_errors(study, result)


def _show_table(table: ResultTable, name: str, numbers: pl.DataFrame) -> None:
    """Show a table of the report; `numbers` are the content of the files."""
    metrics = {
        column.key: f"{local_metric_title(column.key)} [95 %]"
        for column in table.columns
        if column.title.endswith("[95 %]")
    }
    sizes = {"n": say("models.title_n"), "sets": say("models.title_sets")}
    labels = titles("model", "setting") | {"subset": say("models.title_part")} | sizes | metrics
    show_result(table, name, labels, numbers)


def _has_predictions(study: Study, result: Result) -> bool:
    return bool(result.predictions_sha256) or predictions_path(study, result).exists()


def _show_item_errors(study: Study, result: Result) -> None:
    """Show the items of a model by decreasing error."""
    path = predictions_path(study, result)
    try:
        modified_at = path.stat().st_mtime_ns if path.exists() else 0
        errors = _item_errors(study, f"{path} {modified_at}", result)
    except InputError as error:
        show_problems(say("models.no_predictions"), error.problems)
        return
    if errors is None or errors.table.is_empty():
        return
    st.subheader(say("models.item_errors"), anchor=False)
    st.caption(say(f"models.items_{errors.measure}"))
    if errors.n_missing:
        st.caption(say("models.items_missing", n=errors.n_missing))
    number_format = "%+.3f" if errors.measure == "rank_difference" else "%d"
    columns: dict[str, object] = {
        name: number_column(name, format="%.3f")
        for name, kind in errors.table.schema.items()
        if kind.is_float()
    }
    columns |= {
        column.name: st.column_config.TextColumn(column.name, width=MAX_TEXT_WIDTH)
        for column in errors.table.select(pl.col(pl.String))
        if (column.str.len_chars() > MAX_TEXT_LENGTH).any()
    }
    columns["error"] = number_column(say("models.title_error"), format=number_format)
    show_table(errors.table, f"errors {key(result)}", column_config=columns)


@cached
def _item_errors(study: Study, stamp: str, _result: Result) -> ItemErrors | None:
    assert study.store is not None
    return item_errors(study.store.predictions(_result), result_kind(_result.task))


def _show_dots(frame: pl.DataFrame, column: str, metric: str, name: str) -> None:
    if frame["value"].is_not_nan().any():
        labels = titles(column, "n", "low", "high") | {"value": local_metric_title(metric)}
        show_chart(views.dot_plot(frame, column, labels), name, frame)
    show_missing_values(frame, column, {})
