"""Widgets to select results: a task, one or two models and their predictions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
import streamlit as st

from bws.base.problems import InputError
from giccs.benchmark import Benchmark
from giccs.measures.results import Result, data_of, model_of
from giccs.report.metric_titles import metric_title
from giccs.tasks import result_kind, task_names
from giccs_app.explorer import links
from giccs_app.explorer.caching import cached_table
from giccs_app.explorer.display import number_column, offer_view, show_problems, show_table
from giccs_app.explorer.labels import current_language, keys, literal, say
from giccs_app.explorer.models.data import key, names, read_predictions
from giccs_app.explorer.results import HiddenResult, StudyResults, on_subset, results_of
from giccs_app.explorer.study import Study
from giccs_app.explorer.uploads import without_folder

BY_MODEL, BY_CHOOSER = {"model": "key"}, {"chooser": "key"}
"""Parameters of the link -> column by which a model is selected, of pairs and of multiple choice."""
DATA_KEY_LENGTH = 12
"""Number of digits of a fingerprint in a link."""


@dataclass(frozen=True, eq=False)
class PredictionTable:
    """The predictions of a result."""

    table: pl.DataFrame
    stamp: str
    """Cache key: path and modification time."""
    key: str
    """Key of the result in links."""


def visible_results(study: Study, kinds: Collection[str]) -> StudyResults:
    """Return the results that a page can show; show which others the folder has, and why they are not shown.

    kinds: the values of `giccs.tasks.ResultKind.tables` that the page supports.
    """
    if study.store is None:
        st.info(say("models.no_folder"))
        return StudyResults()
    study_results = results_of(study)
    if study_results.problems:
        show_problems(say("models.broken", n=len(study_results.problems)), study_results.problems)
    visible = tuple(
        result for result in study_results.results if result_kind(result.task).tables in kinds
    )
    if n_other := len(study_results.results) - len(visible):
        st.caption(say("models.other_tasks", n=n_other))
    hidden = [each for each in study_results.hidden if each.reason != "other_scale"]
    if n_on_other_scale := len(study_results.hidden) - len(hidden):
        st.caption(say("models.other_scale", n=n_on_other_scale))
    if hidden:
        _show_hidden(study, hidden)
    if not visible and not study_results.problems:
        data = literal(without_folder(study.benchmark.name))
        folder = without_folder(study.store.folder)
        st.info(
            say("models.none", folder=literal(folder), data=data)
            if folder
            else say("models.none_uploaded", data=data)
        )
    return replace(study_results, results=visible)


def _show_hidden(study: Study, hidden: Sequence[HiddenResult]) -> None:
    """Show the results on other data, each with the reason."""
    shown_data = without_folder(study.benchmark.name)
    rows = [
        {
            "model": model_of(each.result),
            "task": each.result.task,
            "data": data_of(each.result),
            "reason": say(
                f"models.hidden_{each.reason}",
                data=data_of(each.result),
                shown=shown_data,
                shared=each.shared,
                total=each.total,
            ),
        }
        for each in hidden
    ]
    with st.expander(say("models.hidden", n=len(hidden)), icon=":material/visibility_off:"):
        columns = titles("model", "reason") | {
            "task": say("models.task"),
            "data": say("models.data_set"),
        }
        show_table(pl.DataFrame(rows), "results not shown", column_config=columns)


def choose_data(
    study: Study, study_results: StudyResults, results: Sequence[Result]
) -> tuple[Study, list[Result]]:
    """Return the results on the selected data set, and the study of its items.

    results: of one task, on the benchmark, parts of it, or data of the task. By default the benchmark or the
    largest part is selected; a widget is shown if there are several data sets.
    """
    by_data: dict[str, list[Result]] = {}
    for result in results:
        by_data.setdefault(str(result.signature.get("data", "")), []).append(result)
    parts = {data: part for data, part in (study_results.subsets or {}).items() if data in by_data}
    labels = _data_labels(study, by_data, parts)
    ordered = sorted(
        by_data,
        key=lambda data: (
            data not in study.fingerprints,
            -len(parts[data].items) if data in parts else 0,
            labels[data],
        ),
    )
    by_key = {data[:DATA_KEY_LENGTH]: data for data in ordered}
    selected = ordered[0]
    if len(ordered) > 1:
        key = links.selectbox(
            "data_set",
            say("models.data_set"),
            list(by_key),
            format_option=lambda key: labels[by_key[key]],
            quiet=True,
        )
        selected = by_key[key]
    elif selected not in (*parts, study.benchmark.fingerprint):
        st.caption(f"{say('models.data_set')}: {literal(labels[selected])}")
    if selected not in parts:
        return study, by_data[selected]
    counts = {"n": len(parts[selected].dialogue_ids), "total": len(study.benchmark.dialogue_ids)}
    name = literal(data_of(by_data[selected][0]))
    st.caption(say("models.part_said", **counts, data=name))
    return on_subset(study, parts[selected]), by_data[selected]


def _data_labels(
    study: Study, by_data: Mapping[str, Sequence[Result]], parts: Mapping[str, Benchmark]
) -> dict[str, str]:
    """Return the names of data sets by their fingerprints; equal names with the first digits of these."""
    data_names = {data: data_of(results[0]) for data, results in by_data.items()}
    labels: dict[str, str] = {}
    for data, name in data_names.items():
        if data in parts:
            n, total = len(parts[data].dialogue_ids), len(study.benchmark.dialogue_ids)
            name = f"{name} ({say('models.part', n=n, total=total)})"
        elif [*data_names.values()].count(name) > 1:
            name = f"{name} ({data[:6]})"
        labels[data] = name
    return labels


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


def local_metric_title(metric: str) -> str:
    """Return the title of a metric in the current language."""
    return text_or("metric", metric, metric_title(metric))


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


def show_selected_model(results: list[Result]) -> None:
    """Show the model that is selected in the link, and buttons that open its views."""
    model, result_names = links.value("model"), names(results)
    with st.container(horizontal=True, vertical_alignment="center"):
        if model is None or model not in result_names:
            st.caption(say("models.select_model"))
            return
        st.markdown(literal(result_names[model]), width="content")
        offer_view("models.view_predictions", view="predictions")
        offer_view("models.view_parts", view="parts")
        offer_view("page.errors", page="errors")


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


def history_names() -> dict[str, str]:
    """Return the labels of the history conditions ``with`` and ``without``."""
    return {name: history_name(name) for name in ("with", "without")}


def load_predictions(study: Study, result: Result) -> PredictionTable | None:
    """Return the predictions of a result; if they are unreadable, show the reason and return None."""
    path = predictions_path(study, result)
    modified_at = path.stat().st_mtime_ns if path.exists() else 0
    try:
        kind = result_kind(result.task).tables
        table = _read(str(path), modified_at, kind)
        return PredictionTable(table, f"{path} {modified_at}", key(result))
    except InputError as error:
        show_problems(say("models.no_predictions"), error.problems)
        return None


def predictions_path(study: Study, result: Result) -> Path:
    """Return the path of the predictions of a result."""
    assert study.store is not None
    path = study.store.path(result.model, result.task, result.signature)
    return path.with_suffix(".parquet")


@cached_table
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
