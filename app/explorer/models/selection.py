"""Widgets that select results: those of this benchmark, one task, one or two models and their predictions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import streamlit as st

from app.explorer import links
from app.explorer.caching import cached
from app.explorer.display import show_problems
from app.explorer.labels import keys, language, literal, say
from app.explorer.models.data import key, names, read_predictions
from app.explorer.study import Study, results_of
from bws.problems import InputError
from giccs.measures.results import Result, history_of
from giccs.tasks import result_kind, task_modules

__all__ = [
    "Predicted",
    "choose",
    "choose_task",
    "choose_two",
    "condition",
    "numbers",
    "predicted",
    "results_found",
    "table_of",
    "text_or",
    "texts",
    "titles",
]


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a result predicts, as it was read."""

    table: pl.DataFrame
    stamp: str
    """Path and time of change: what is computed of the table is cached by it."""


def results_found(study: Study, kinds: Collection[str]) -> list[Result]:
    """Return the results that a page can show; say what of the folder it cannot.

    kinds: the `giccs.tasks.ResultKind.tables` that the page has views of.
    """
    if study.store is None:
        st.info(say("models.no_folder"))
        return []
    folder = study.store.folder
    results, problems = results_of(study)
    if problems:
        show_problems(say("models.broken", n=len(problems)), problems)
    shown = [result for result in results if result_kind(result.task).tables in kinds]
    files = sum(1 for _ in folder.glob("*--*--*.json")) if folder.is_dir() else 0
    said = {
        "models.elsewhere": files - len(results) - len(problems),
        "models.other_tasks": len(results) - len(shown),
    }
    for sentence, n in said.items():
        if n > 0:
            st.caption(say(sentence, n=n))
    if not shown and not problems:
        st.info(say("models.none", folder=literal(folder), data=literal(study.benchmark.name)))
    return shown


def choose_task(results: Sequence[Result]) -> str:
    """Return the task whose results are looked at; let it be chosen where there are several."""
    tasks = {result.task for result in results}
    there = [task for task in task_modules() if task in tasks]
    there += sorted(tasks.difference(there))
    if len(there) == 1 and links.value("task") is None:
        return there[0]
    return links.segmented(
        "task", say("models.task"), there, shown=lambda one: text_or("task", one, literal(one))
    )


def text_or(prefix: str, name: str, otherwise: str) -> str:
    """Return what a task or metric is called in the language that is shown, if the labels have it."""
    known = f"models.{prefix}_{name}" in keys(language())
    return say(f"models.{prefix}_{name}") if known else otherwise


def choose(parameter: str, label: str, results: Sequence[Result], place: int = 0) -> Result:
    """Let one of the results be chosen; the one at `place` until somebody does."""
    by_key = {key(result): result for result in results}
    named = names(results)
    options = list(by_key)

    def shown(one: str) -> str:
        is_pairwise = result_kind(by_key[one].task).tables == "pairs"
        how = f" · {condition(history_of(by_key[one]))}" if is_pairwise else ""
        return f"{named[one]}{how}"

    return by_key[
        links.selectbox(
            parameter, label, options, options[min(place, len(options) - 1)], shown=shown
        )
    ]


def choose_two(
    study: Study, results: Sequence[Result], suffix: str = ""
) -> tuple[Result, Result, Predicted, Predicted] | None:
    """Let two results be chosen, and return them with what they predict.

    None, after saying why, where there are not two, the same is chosen twice, or one cannot be read. The
    parameters of the link are ``first`` and ``second``, with the suffix.
    """
    if len(results) < 2:
        st.info(say("models.only_one"))
        return None
    left, right = st.columns(2)
    with left:
        first = choose(f"first{suffix}", say("models.first"), results)
    with right:
        second = choose(f"second{suffix}", say("models.second"), results, place=1)
    if first is second:
        st.info(say("models.same"))
        return None
    one, other = predicted(study, first), predicted(study, second)
    return None if one is None or other is None else (first, second, one, other)


def condition(name: str) -> str:
    """Return a history condition in words."""
    return say(f"models.{name}_history") if name in ("with", "without") else name


def predicted(study: Study, result: Result) -> Predicted | None:
    """Return what a result predicts; None, after saying why, where they cannot be read."""
    path = table_of(study, result)
    changed = path.stat().st_mtime_ns if path.exists() else 0
    try:
        kind = result_kind(result.task).tables
        return Predicted(_read(str(path), changed, kind), f"{path} {changed}")
    except InputError as error:
        show_problems(say("models.no_predictions"), error.problems)
        return None


def table_of(study: Study, result: Result) -> Path:
    """Return where a result's predictions stand."""
    assert study.store is not None
    path = study.store.path(result.model, result.task, result.signature)
    return path.with_suffix(".parquet")


@cached
def _read(path: str, changed: int, kind: str) -> pl.DataFrame:
    return read_predictions(path, kind)


def titles(*columns: str) -> dict[str, str]:
    """Return what columns are called."""
    return {column: say(f"models.title_{column}") for column in columns}


def texts(*columns: str) -> dict[str, object]:
    """Return how columns of utterances are shown in a table: not wider than they may be."""
    return {
        column: st.column_config.TextColumn(say(f"models.title_{column}"), width=260)
        for column in columns
    }


def numbers(*columns: str, form: str = "%.3f") -> dict[str, object]:
    """Return how columns of numbers are shown in a table."""
    return {
        column: st.column_config.NumberColumn(say(f"models.title_{column}"), format=form)
        for column in columns
    }
