"""Filters and further columns of leaderboards; their state is in the link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import polars as pl
import streamlit as st

from giccs.measures.results import Result
from giccs.report.comparison_tables import TIE_MARK
from giccs.tasks import result_kind
from giccs_app.explorer import links
from giccs_app.explorer.display import number_column, show_table
from giccs_app.explorer.labels import local_numbers, plain, say
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.models.comparisons import compare_results
from giccs_app.explorer.models.data import key, kind_of, names
from giccs_app.explorer.models.selection import history_names, titles
from giccs_app.explorer.study import Study

MAX_RESULTS_AT_ONCE = 40
"""Number of results above which all pairs are compared on request only."""
MAX_PREDICTIONS_AT_ONCE = 50_000
"""The same for the number of predictions of all results."""
SIZES = ((10**8, "≤ 100 M"), (10**9, "100 M–1 B"), (10**10, "1–10 B"))
"""Largest number of parameters of a class -> its name."""
LARGEST_SIZE = "> 10 B"
ROW = ("key", "history")
"""Columns that identify a row of a leaderboard."""


def filter_results(results: Sequence[Result], all_results: Sequence[Result]) -> list[Result]:
    """Show the filters, and return the results that they select.

    A result is selected if its name contains all words, in any case, and its kind, size and licence are among
    the selected ones. The filters of sizes and licences are shown if results state them. all_results: those
    of all tasks, for the lists.
    """
    stated = {
        name: sorted({value_of(result) for result in all_results} - {""}, key=_order(name))
        for name, value_of in PROPERTIES.items()
    }
    is_active = any(map(links.value, ("model_name", *PROPERTIES)))
    with st.expander(say("filters.filter"), icon=":material/filter_list:", expanded=is_active):
        places = st.columns(2) * len(PROPERTIES)
        with places[0]:
            text = links.text("model_name", say("filters.name"), help=say("filters.name_help"))
        filters: dict[str, list[str]] = {}
        for place, (name, values) in zip(
            places[1:], ((name, values) for name, values in stated.items() if values), strict=False
        ):
            with place:
                filters[name] = links.multiselect(
                    name, say(f"filters.{name}"), values, placeholder=say("page.all")
                )
    result_names = names(results)
    selected = [
        result
        for result in results
        if all(word in result_names[key(result)].casefold() for word in text.casefold().split())
        and all(PROPERTIES[name](result) in kept for name, kept in filters.items() if kept)
    ]
    if text.strip() or any(filters.values()):
        st.caption(say("page.counted", n=len(selected), total=len(results)))
    if not selected:
        st.info(say("filters.nothing"))
    return selected


def size_of(result: Result) -> str:
    """Return the class of the number of parameters; empty if it is not stated.

    >>> class Stated:
    ...     environment = {"parameters": 7_240_000_000}
    >>> size_of(Stated())
    '1–10 B'
    """
    n = result.environment.get("parameters")
    if not isinstance(n, int):
        return ""
    return next((name for most, name in SIZES if n <= most), LARGEST_SIZE)


def licence_of(result: Result) -> str:
    """Return the licence of the model; empty if it is not stated."""
    return str(result.environment.get("license", ""))


PROPERTIES: Mapping[str, Callable[[Result], str]] = {
    "model_kind": kind_of,
    "model_size": size_of,
    "model_license": licence_of,
}
"""Parameter of the link -> property of a result by which results are selected."""


def _order(name: str) -> Callable[[str], int | str]:
    sizes = [*(size for _, size in SIZES), LARGEST_SIZE]
    return sizes.index if name == "model_size" else str


def choose_metrics(
    parameter: str, metrics: Sequence[str], metric_titles: Mapping[str, str]
) -> list[str]:
    """Show a widget to select the metrics that are shown beside the main one."""
    return links.multiselect(
        parameter,
        say("filters.metrics"),
        metrics,
        format_option=metric_titles.__getitem__,
        placeholder=say("filters.no_metrics"),
    )


def show_leaderboard_table(
    study: Study,
    results: Sequence[Result],
    metric: str,
    frames: Mapping[str, pl.DataFrame],
    metric_titles: Mapping[str, str],
    columns: Mapping[str, object],
    select: Mapping[str, str] | None = None,
) -> None:
    """Show the rows of a leaderboard with their ranks and other metrics, and offer all numbers.

    frames: metric -> its rows: key, history, value, low, high, and for the main metric further columns, whose
    titles are `columns`. In the files each other metric has three columns: ``pearson``, ``pearson_low``,
    ``pearson_high``. select: see `display.show_table`.
    """
    ties = _ties(study, results, metric)
    offered = frames[metric] if ties is None else _joined(frames[metric], ties)
    displayed = offered
    for name, frame in frames.items():
        if name == metric:
            continue
        numbers = frame.select(
            *ROW,
            pl.col("value").alias(name),
            *(pl.col(limit).alias(f"{name}_{limit}") for limit in ("low", "high")),
        )
        offered = _joined(offered, numbers)
        displayed = _joined(displayed, numbers.select(*ROW, _interval_text(numbers, name)))
    config = {
        **columns,
        "value": number_column(metric_titles[metric], format="%.3f"),
        **titles("kind", "ranks", "ties"),
        **{name: f"{metric_titles[name]} [95 %]" for name in frames if name != metric},
    }
    if not (offered["reason"] != "").any():
        displayed, offered = displayed.drop("reason"), offered.drop("reason")
    displayed, offered = (
        table.with_columns(pl.col("history").replace(history_names()))
        for table in (displayed, offered)
    )
    order = ["model", "ties", "history", "value", "low", "high", "ranks", *frames]
    first = [column for column in order if column in displayed.columns]
    show_table(
        displayed.select(*first, pl.exclude(*first)),
        f"leaderboard {metric} table",
        offered,
        select=select,
        column_config={"key": None, **config},
    )
    if ties is not None:
        st.caption(say("filters.ties"))


def _joined(left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    return left.join(right, on=ROW, how="left", maintain_order="left")


def _interval_text(numbers: pl.DataFrame, name: str) -> pl.Series:
    """Return values with their intervals as texts; empty for undefined values."""

    def text(value: float | None, low: float, high: float) -> str:
        if value is None or value != value:
            return ""
        interval = "" if low != low else f" [{low:.3f}, {high:.3f}]"
        return local_numbers(f"{value:.3f}{interval}")

    columns = (name, f"{name}_low", f"{name}_high")
    return pl.Series(name, [text(*row) for row in numbers.select(columns).iter_rows()])


def _ties(study: Study, results: Sequence[Result], metric: str) -> pl.DataFrame | None:
    """Return key, history, ties (a mark of models that do not differ from the first) and ranks, by history.

    None if the metric or the results cannot be compared, or if there are many results and the comparison is
    not requested.
    """
    if metric not in result_kind(results[0].task).comparison_metrics or len(results) < 2:
        return None
    n_predictions = len(results) * len(study.items)
    is_slow = len(results) > MAX_RESULTS_AT_ONCE or n_predictions > MAX_PREDICTIONS_AT_ONCE
    if is_slow and not links.toggle(
        "compare", say("filters.compare"), help=say("models.interval_help")
    ):
        return None
    with st.spinner(say("models.working")):
        comparison, _ = compare_results(study, results)
    reasons = Counter(
        result.reason for result in comparison.skipped if result.metric in ("", metric)
    )
    for reason, n in reasons.items():
        st.caption(say("filters.not_compared", n=n, reason=plain(local_remark(reason))))
    boards = [board for board in comparison.leaderboards if board.metric == metric]
    if not boards:
        return None
    rows = [
        {
            "key": model.key,
            "history": model.history,
            "ties": TIE_MARK if index in board.tied else "",
            "ranks": f"{model.rank_low}–{model.rank_high}",
        }
        for board in boards
        for index, model in enumerate(board.models)
    ]
    return pl.DataFrame(rows)
