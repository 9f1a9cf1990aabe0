"""The page "Errors": residuals per part of the data, the largest ones, and wrong answers."""

from __future__ import annotations

import polars as pl
import streamlit as st

from giccs.measures.results import Result
from giccs.tasks import result_kind
from giccs_app.explorer import links
from giccs_app.explorer.caching import cached, cached_table
from giccs_app.explorer.display import (
    number_column,
    show_chart,
    show_item,
    show_missing_values,
    show_selected_item,
    show_table,
)
from giccs_app.explorer.errors import data as frames
from giccs_app.explorer.labels import format_number, plain, say
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.models import charts as views
from giccs_app.explorer.models.data import (
    COLUMNS,
    DIVISIONS,
    answers_by_question,
    best_first,
    key,
)
from giccs_app.explorer.models.multiple_choice_page import (
    choose_history,
    choose_measure,
    option_table,
)
from giccs_app.explorer.models.selection import (
    PredictionTable,
    choose,
    choose_data,
    choose_task,
    load_predictions,
    numbers,
    texts,
    titles,
    visible_results,
)
from giccs_app.explorer.study import Study

MAX_OPTIONS = 200
"""Maximum length of the list of items, which contains the largest errors."""
MAX_UTTERANCE_LENGTH = 60
"""Maximum number of characters of an utterance in the list."""
METADATA_COLUMNS = ("item_id", "domain", "n_turns")


def show(study: Study) -> None:
    """Show the errors of a model: residuals, or wrong answers."""
    visible = visible_results(study, COLUMNS)
    if not visible.results:
        return
    task = choose_task(visible.results)
    of_task = [result for result in visible.results if result.task == task]
    data_study, results = choose_data(study, visible, of_task)
    (_show_residuals if result_kind(task).tables == "pairs" else _show_wrong)(data_study, results)


def _show_residuals(study: Study, results: list[Result]) -> None:
    """Show the residuals of a model: by subset, the largest ones, and one with its dialogue."""
    result = choose("model", say("models.model"), best_first(results))
    predictions = load_predictions(study, result)
    if predictions is None:
        return
    errors = _residuals(study, predictions.stamp, predictions)
    if missing := len(study.items) - len(errors):
        st.caption(say("models.missing", n=missing))
    if errors.is_empty():
        st.info(say("errors.nothing"))
        return
    st.caption(say("errors.residual_said"))
    _show_subsets(study, predictions, key(result))
    _show_largest(study, errors, key(result))
    _show_failures(study, predictions, key(result))


def _show_failures(study: Study, predictions: PredictionTable, name: str) -> None:
    """Show the items on which people agree and the model fails, if there are judgments."""
    from giccs.report.figures.failures import (
        MAX_DISAGREEMENT,
        MAX_POINTS,
        MIN_RANK_DIFFERENCE,
        TITLES,
        failure_chart,
    )

    st.subheader(say("errors.failures"), anchor=False)
    if "disagreement" not in study.items.columns:
        st.caption(say("dialogues.no_judgments"))
        return
    judged = _judged(study, predictions.stamp, predictions)
    if judged.is_empty():
        st.info(say("errors.not_judged"))
        return
    failures = judged.filter(pl.col("group") == "failure")
    limits = {
        "agree": format_number(MAX_DISAGREEMENT, ".0%"),
        "fail": format_number(MIN_RANK_DIFFERENCE, ".0%"),
    }
    st.markdown(say("errors.failures_said", n=len(failures), total=len(judged), **limits))
    labels = titles("utterance", "last_turn") | {
        title: say(f"errors.failures_{title}") for title in TITLES
    }
    chart = failure_chart(judged, labels, ("last_turn", "utterance"))
    columns = ["item_id", "disagreement", "residual", "group", "last_turn", "utterance"]
    by_item = {"item": "item_id"}
    show_chart(chart, f"failures {name}", judged.select(columns), select=by_item)
    if max(len(failures), len(judged) - len(failures)) > MAX_POINTS:
        st.caption(say("errors.failures_thinned", n=MAX_POINTS))
    if failures.is_empty():
        return
    config = {
        "residual": number_column(say("errors.residual"), format="%+.3f"),
        "disagreement": number_column(say("errors.failures_disagreement"), format="%.2f"),
        **texts("last_turn", "utterance"),
        **numbers("rank_prediction", "rank_score", "score", "prediction"),
        **titles(*METADATA_COLUMNS),
    }
    table = failures.select(*config)
    show_table(table, f"failures {name} table", select=by_item, column_config=config)


def _show_subsets(study: Study, predictions: PredictionTable, name: str) -> None:
    """Show the mean absolute residual per subset."""
    st.subheader(say("errors.parts"), anchor=False, help=say("errors.parts_help"))
    divisions = [division for division in DIVISIONS if study.items[division].n_unique() > 1]
    if not divisions:
        st.info(say("models.no_parts"))
        return
    by = links.segmented(
        "by", say("models.by"), divisions, format_option=lambda name: say(f"models.by_{name}")
    )
    frame = _by_subset(study, predictions.stamp, by, predictions)
    labels = titles("low", "high") | {
        "part": say(f"models.by_{by}"),
        "value": say("errors.size"),
        "n": say("models.title_dialogues"),
    }
    show_chart(
        views.dot_plot(frame, "part", labels, mark_zero=True), f"errors by {by} {name}", frame
    )
    show_missing_values(frame, "part", {})
    for reason in filter(None, frame["reason"].unique(maintain_order=True)):
        st.caption(plain(local_remark(reason)))
    decimals = {
        "value": number_column(labels["value"], format="%.3f"),
        "bias": number_column(say("errors.bias"), format="%+.3f", help=say("errors.bias_help")),
    }
    columns = {"part": labels["part"], "n": labels["n"], **titles("items", "reason")}
    show_table(
        frame if (frame["reason"] != "").any() else frame.drop("reason"),
        f"errors by {by} {name} table",
        column_config={**columns, **numbers("low", "high"), **decimals},
    )


def _show_largest(study: Study, errors: pl.DataFrame, name: str) -> None:
    """Show the largest errors, and one of them with its dialogue."""
    st.subheader(say("errors.largest"), anchor=False, help=say("errors.residual_help"))
    selected = frames.largest(errors, *_choose_filter(errors))
    st.caption(say("page.counted", n=len(selected), total=len(errors)))
    if selected.is_empty():
        st.info(say("errors.none"))
        return
    residual = number_column(
        say("errors.residual"), format="%+.3f", help=say("errors.residual_help")
    )
    decimals = numbers("rank_prediction", "rank_score", "score", "prediction")
    text_columns = texts("last_turn", "utterance")
    config = {"residual": residual, **text_columns, **decimals, **titles(*METADATA_COLUMNS)}
    table = selected.select(*config)
    show_table(table, f"errors {name}", select={"item": "item_id"}, column_config=config)
    is_linked = pl.col("item_id") == (links.value("item") or "")
    _show_item(study, errors, pl.concat([selected.head(MAX_OPTIONS), errors.filter(is_linked)]))


def _choose_filter(errors: pl.DataFrame) -> tuple[str, list[str], list[int]]:
    """Show the filter widgets."""
    direction = links.segmented(
        "direction",
        say("errors.direction"),
        frames.DIRECTIONS,
        format_option=lambda direction: say(f"errors.direction_{direction}"),
    )
    left, right = st.columns(2)
    with left:
        domains = links.multiselect(
            "domain",
            say("models.by_domain"),
            errors["domain"].unique().sort().to_list(),
            placeholder=say("page.all"),
        )
    with right:
        lengths = links.multiselect(
            "n_turns",
            say("models.by_n_turns"),
            errors["n_turns"].unique().sort().to_list(),
            placeholder=say("page.all"),
        )
    return direction, domains, lengths


def _show_item(study: Study, errors: pl.DataFrame, choices: pl.DataFrame) -> None:
    """Show the dialogue of one error, and the ranks of all its candidates."""
    labels = {
        item: f"{format_number(residual, '+.2f')} · {item} · {utterance[:MAX_UTTERANCE_LENGTH]}"
        for item, residual, utterance in choices.select(
            "item_id", "residual", "utterance"
        ).iter_rows()
    }
    item = links.selectbox(
        "item", say("errors.item"), list(labels), format_option=labels.__getitem__
    )
    show_selected_item(study, item)
    ranks = ("rank_prediction", "rank_score", "score")
    labels = {"residual": say("errors.residual"), **titles("utterance", *ranks)}
    show_item(study, item, errors, labels, {"residual": "+.3f", **dict.fromkeys(ranks, ".3f")})


def _show_wrong(study: Study, results: list[Result]) -> None:
    """Show the incorrectly answered questions of a model, the largest margin first."""
    result = choose("chooser", say("models.model"), results)
    predictions = load_predictions(study, result)
    if predictions is None:
        return
    measure = choose_measure(predictions)
    all_options = option_table(predictions.stamp, measure, predictions)
    history = choose_history(all_options)
    mistakes = frames.wrong_answers(all_options, history, study.items)
    n_questions = all_options.filter(pl.col("history") == history)["dialogue_id"].n_unique()
    st.caption(say("errors.wrong_said", n=len(mistakes), total=n_questions))
    if n_without := sum(
        answers.get(history, False) is None for answers in answers_by_question(all_options).values()
    ):
        st.caption(say("errors.without_choice", n=n_without))
    if mistakes.is_empty():
        return
    margin = number_column(say("errors.margin"), format="%.3f", help=say("errors.margin_help"))
    columns = {
        "margin": margin,
        **titles("dialogue_id"),
        **texts("last_turn", "chosen", "right"),
        **numbers("score_chosen", "score_right"),
    }
    table = mistakes.select("item_id", *columns)
    name = f"wrong {key(result)} {history}"
    select = {"item": "item_id"}
    show_table(table, name, select=select, column_config={"item_id": None, **columns})
    item = links.value("item")
    show_selected_item(study, item)
    show_item(study, item, study.items, titles("utterance", "score"), {"score": ".3f"})


@cached_table
def _residuals(study: Study, stamp: str, _predictions: PredictionTable) -> pl.DataFrame:
    return frames.residuals(study.items, _predictions.table)


@cached_table
def _judged(study: Study, stamp: str, _predictions: PredictionTable) -> pl.DataFrame:
    """Return the residuals of judged items with the column group."""
    from giccs.report.figures.failures import with_groups

    return with_groups(_residuals(study, stamp, _predictions).drop_nulls("disagreement"))


@cached
def _by_subset(
    study: Study, stamp: str, division: str, _predictions: PredictionTable
) -> pl.DataFrame:
    return frames.by_subset(_residuals(study, stamp, _predictions), division)
