"""Widgets to select results: a task, one or two models and their predictions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import streamlit as st

from bws.problems import InputError
from giccs.measures.results import Result
from giccs.tasks import result_kind, task_names
from giccs_app.explorer import links
from giccs_app.explorer.caching import cached
from giccs_app.explorer.display import number_column, show_problems
from giccs_app.explorer.labels import current_language, keys, literal, say
from giccs_app.explorer.models.data import key, names, read_predictions
from giccs_app.explorer.study import Study, results_of

__all__ = [
    "PredictionTable",
    "choose",
    "choose_task",
    "choose_two",
    "history_name",
    "load_predictions",
    "numbers",
    "predictions_path",
    "text_or",
    "texts",
    "titles",
    "visible_results",
]


@dataclass(frozen=True, eq=False)
class PredictionTable:
    """The predictions of a result."""

    table: pl.DataFrame
    stamp: str
    """Cache key: path and modification time."""


def visible_results(study: Study, kinds: Collection[str]) -> list[Result]:
    """Return the results that a page can show; show the numbers of unreadable and unsupported ones.

    kinds: the values of `giccs.tasks.ResultKind.tables` that the page supports.
    """
    if study.store is None:
        st.info(say("models.no_folder"))
        return []
    folder = study.store.folder
    results, problems = results_of(study)
    if problems:
        show_problems(say("models.broken", n=len(problems)), problems)
    visible = [result for result in results if result_kind(result.task).tables in kinds]
    files = sum(1 for _ in folder.glob("*--*--*.json")) if folder.is_dir() else 0
    n_hidden = {
        "models.elsewhere": files - len(results) - len(problems),
        "models.other_tasks": len(results) - len(visible),
    }
    for label, n in n_hidden.items():
        if n > 0:
            st.caption(say(label, n=n))
    if not visible and not problems:
        st.info(say("models.none", folder=literal(folder), data=literal(study.benchmark.name)))
    return visible


def choose_task(results: Sequence[Result]) -> str:
    """Return the selected task; show a widget if there are several."""
    tasks = {result.task for result in results}
    available = [task for task in task_names() if task in tasks]
    available += sorted(tasks.difference(available))
    if len(available) == 1 and links.value("task") is None:
        return available[0]
    return links.segmented(
        "task",
        say("models.task"),
        available,
        format_option=lambda task: text_or("task", task, literal(task)),
    )


def text_or(prefix: str, name: str, default: str) -> str:
    """Return the label of a task or metric in the current language, or a default."""
    is_translated = f"models.{prefix}_{name}" in keys(current_language())
    return say(f"models.{prefix}_{name}") if is_translated else default


def choose(parameter: str, label: str, results: Sequence[Result], index: int = 0) -> Result:
    """Show a widget to select a result; by default the result at `index`."""
    by_key = {key(result): result for result in results}
    result_names = names(results)
    options = list(by_key)

    def describe(result_key: str) -> str:
        is_pairwise = result_kind(by_key[result_key].task).tables == "pairs"
        history = (
            f" · {history_name(str(by_key[result_key].signature.get('history', '')))}"
            if is_pairwise
            else ""
        )
        return f"{result_names[result_key]}{history}"

    return by_key[
        links.selectbox(
            parameter, label, options, options[min(index, len(options) - 1)], format_option=describe
        )
    ]


def choose_two(
    study: Study, results: Sequence[Result], suffix: str = ""
) -> tuple[Result, Result, PredictionTable, PredictionTable] | None:
    """Show widgets to select two results, and return them with their predictions.

    If there are not two results, the same one is selected twice, or one is unreadable: show the reason and
    return None. The parameters of the link are ``first`` and ``second``, with the suffix.
    """
    if len(results) < 2:
        st.info(say("models.only_one"))
        return None
    left, right = st.columns(2)
    with left:
        first = choose(f"first{suffix}", say("models.first"), results)
    with right:
        second = choose(f"second{suffix}", say("models.second"), results, index=1)
    if first is second:
        st.info(say("models.same"))
        return None
    first_predictions, second_predictions = (
        load_predictions(study, first),
        load_predictions(study, second),
    )
    return (
        None
        if first_predictions is None or second_predictions is None
        else (first, second, first_predictions, second_predictions)
    )


def history_name(name: str) -> str:
    """Return the label of a history condition."""
    return say(f"models.{name}_history") if name in ("with", "without") else name


def load_predictions(study: Study, result: Result) -> PredictionTable | None:
    """Return the predictions of a result; if they are unreadable, show the reason and return None."""
    path = predictions_path(study, result)
    modified_at = path.stat().st_mtime_ns if path.exists() else 0
    try:
        kind = result_kind(result.task).tables
        return PredictionTable(_read(str(path), modified_at, kind), f"{path} {modified_at}")
    except InputError as error:
        show_problems(say("models.no_predictions"), error.problems)
        return None


def predictions_path(study: Study, result: Result) -> Path:
    """Return the path of the predictions of a result."""
    assert study.store is not None
    path = study.store.path(result.model, result.task, result.signature)
    return path.with_suffix(".parquet")


@cached
def _read(path: str, modified_at: int, kind: str) -> pl.DataFrame:
    return read_predictions(path, kind)


def titles(*columns: str) -> dict[str, str]:
    """Return the titles of columns."""
    return {column: say(f"models.title_{column}") for column in columns}


def texts(*columns: str) -> dict[str, object]:
    """Return column configurations of utterances, with limited width."""
    return {
        column: st.column_config.TextColumn(say(f"models.title_{column}"), width=260)
        for column in columns
    }


def numbers(*columns: str, form: str = "%.3f") -> dict[str, object]:
    """Return column configurations of numbers."""
    return {column: number_column(say(f"models.title_{column}"), format=form) for column in columns}
