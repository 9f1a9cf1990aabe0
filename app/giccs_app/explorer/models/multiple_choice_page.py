"""The views of multiple choice: accuracies, one question, position bias, comparison of two models."""

from __future__ import annotations

import math

import polars as pl
import streamlit as st

from bws.base.notes import p_text
from bws.base.problems import InputError
from giccs.measures.results import Result
from giccs_app.explorer import links
from giccs_app.explorer.caching import cached_table
from giccs_app.explorer.display import (
    show_chart,
    show_missing_values,
    show_problems,
    show_selected_item,
    show_table,
    show_text_table,
)
from giccs_app.explorer.labels import format_number, local_numbers, plain, say
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.models import charts as views
from giccs_app.explorer.models import data as frames
from giccs_app.explorer.models.data import MEASURES, read_prompts
from giccs_app.explorer.models.filters import choose_metrics, show_leaderboard_table
from giccs_app.explorer.models.selection import (
    BY_CHOOSER,
    PredictionTable,
    choose,
    choose_two,
    history_name,
    history_names,
    load_predictions,
    local_metric_title,
    numbers,
    predictions_path,
    titles,
)
from giccs_app.explorer.study import Study

MARKS = {True: "✓", False: "✗", None: "–"}
MAX_QUESTIONS_LISTED = 500
"""Maximum length of the list of questions."""
ROLES = {
    (True, True): "both",
    (True, False): "chosen",
    (False, True): "right",
    (False, False): "neither",
}
"""(chosen, gold) -> role of an option."""


def show_accuracies(study: Study, results: list[Result]) -> None:
    """Show the accuracy of each model and the chance level."""
    measure = choose_measure()
    accuracy = local_metric_title("accuracy")
    metric_titles = {name: f"{accuracy}, {say(f'models.{name}')}" for name in MEASURES}
    further = choose_metrics("measures", list(MEASURES), metric_titles)
    by_measure = {
        name: frames.accuracies(results, name) for name in dict.fromkeys([measure, *further])
    }
    frame = by_measure[measure]
    labels = titles("model", "history", "n", "low", "high", "chance") | history_names()
    labels["value"] = accuracy
    show_chart(views.accuracies(frame, labels), measure, frame.drop("key"), select=BY_CHOOSER)
    show_missing_values(frame, "model", history_names())
    st.caption(say("models.accuracies_said"))
    for reason in filter(None, frame["reason"].unique(maintain_order=True)):
        st.caption(plain(local_remark(reason)))
    config = titles("model", "history", "reason") | {"n": say("models.title_questions")}
    columns = {**config, **numbers("low", "high", "chance")}
    show_leaderboard_table(
        study,
        results,
        measure,
        by_measure,
        metric_titles | {measure: accuracy},
        columns,
        select=BY_CHOOSER,
    )


def show_question(study: Study, results: list[Result]) -> None:
    """Show the prompt of a question, and the likelihood of each option."""
    result = choose("chooser", say("models.model"), results)
    predictions = load_predictions(study, result)
    if predictions is None:
        return
    measure = choose_measure(predictions)
    all_options = option_table(predictions.stamp, measure, predictions)
    dialogue = _choose_dialogue(all_options)
    history = choose_history(all_options)
    question_options = all_options.filter(
        pl.col("dialogue_id") == dialogue, pl.col("history") == history
    )
    utterances = study.items.select("dialogue_id", "utterance_id", "utterance", "item_id")
    labelled = question_options.join(
        utterances, on=["dialogue_id", "utterance_id"], maintain_order="left"
    ).select(pl.all(), role=_role())
    labels = titles("letter", "utterance", "role", "score") | {
        "likelihood": likelihood_title(measure, predictions),
        "roles": "|".join(say(f"models.role_{role}") for role in ROLES.values()),
    }
    chart, name = views.likelihoods(labelled, labels), f"options {dialogue} {history}"
    show_chart(chart, name, labelled.drop("item_id"), select={"item": "item_id"})
    show_selected_item(study, links.value("item"))
    formats = dict.fromkeys(("likelihood", "score", "logprob"), ".3f")
    formats |= dict.fromkeys(("tokens", "bytes"), ",.6g")
    if measure == "accuracy":
        del formats["logprob"]
    if frames.are_generated(predictions.table):
        del formats["tokens"], formats["bytes"]
    table = labelled.select("letter", "role", "utterance", *formats)
    labels |= titles("logprob", "tokens", "bytes")
    show_text_table(table, f"options {dialogue} {history} table", labels, formats)
    _show_prompts(study, result, dialogue, history)


def show_letters(study: Study, results: list[Result]) -> None:
    """Show the position bias of a model."""
    result = choose("chooser", say("models.model"), results)
    predictions = load_predictions(study, result)
    if predictions is None:
        return
    history = choose_history(predictions.table)
    letter_counts = frames.count_letters(predictions.table, history)
    labels = titles("letter", "count", "chosen", "gold")
    show_chart(
        views.positions(letter_counts.frame, labels), f"letters {history}", letter_counts.frame
    )
    if math.isnan(letter_counts.p):
        st.markdown(say(f"models.letters_{letter_counts.reason}", n=letter_counts.questions))
    else:
        label = "models.letters_uneven" if letter_counts.p < 0.05 else "models.letters_even"
        st.markdown(say(label, n=letter_counts.questions, p=local_numbers(p_text(letter_counts.p))))
    if letter_counts.unanswered:
        n, total = letter_counts.unanswered, letter_counts.answers
        st.caption(say("models.letters_unanswered", n=n, total=total))
    columns = titles("letter", "chosen") | numbers("gold", "expected", form="%.1f")
    show_table(letter_counts.frame, f"letters {history} table", column_config=columns)


def show_duel(study: Study, results: list[Result]) -> None:
    """Show the comparison of two models: exact McNemar test, and questions that only one answers
    correctly."""
    selection = choose_two(study, results, "_chooser")
    if selection is None:
        return
    _, _, first_predictions, second_predictions = selection
    measure = choose_measure()
    history = choose_history(option_table(first_predictions.stamp, measure, first_predictions))
    difference, differing, left_out = frames.compare_accuracies(
        first_predictions.table, second_predictions.table, history, measure
    )
    if not difference.n:
        st.info(say("models.no_shared_questions"))
        return
    label = "models.duel_apart" if difference.extra["p"] < 0.05 else "models.duel_not_apart"
    st.markdown(
        say(
            "models.duel",
            value=format_number(difference.value, "+.3f"),
            low=format_number(difference.low, "+.3f"),
            high=format_number(difference.high, "+.3f"),
            n=difference.n,
            first=difference.extra["only_first"],
            second=difference.extra["only_second"],
            p=local_numbers(p_text(difference.extra["p"])),
            test=say(f"models.test_{difference.extra['test']}"),
        )
        + " "
        + say(label)
    )
    if left_out:
        st.caption(say("models.questions_left_out", n=left_out))
    winners = {model: say(f"models.only_{model}") for model in ("first", "second")}
    show_table(
        differing.with_columns(pl.col("right").replace(winners)),
        f"duel {history}",
        column_config=titles("dialogue_id") | {"right": say("models.title_right_only")},
    )


def likelihood_title(measure: str, predictions: PredictionTable) -> str:
    """Return the title of the likelihoods by a measure; of generated answers, of the share of orders."""
    name = "generated" if frames.are_generated(predictions.table) else measure
    return say(f"models.likelihood_{name}")


def choose_measure(predictions: PredictionTable | None = None) -> str:
    """Show a widget to select an accuracy; generated answers have only one."""
    if predictions is not None and frames.are_generated(predictions.table):
        return "accuracy"
    return links.segmented(
        "measure",
        say("models.measure"),
        list(MEASURES),
        format_option=lambda measure: say(f"models.{measure}"),
        help=say("models.measure_help"),
    )


def choose_history(frame: pl.DataFrame) -> str:
    """Return the history condition; show a widget if the table has both."""
    histories = [name for name in ("with", "without") if frame["history"].eq(name).any()]
    if len(histories) == 1:
        return histories[0]
    return links.segmented(
        "history", say("models.view_histories"), histories, format_option=history_name
    )


def _choose_dialogue(all_options: pl.DataFrame) -> str:
    """Show a widget to select a question; marks show whether it was answered correctly."""
    questions = frames.answers_by_question(all_options)
    ids = list(questions)[:MAX_QUESTIONS_LISTED]
    linked = links.value("question")
    if linked in questions and linked not in ids:
        ids.append(linked)
    if len(questions) > MAX_QUESTIONS_LISTED:
        st.caption(say("models.first_questions", shown=MAX_QUESTIONS_LISTED, total=len(questions)))

    def describe(label: str) -> str:
        marks = [
            f"{MARKS[right]} {history_name(history)}" for history, right in questions[label].items()
        ]
        return f"{label} · {', '.join(marks)}"

    return links.selectbox("question", say("models.question"), ids, format_option=describe)


def _role() -> pl.Expr:
    """Return the label of the role of an option: chosen, gold, both or neither."""
    role = pl.lit(say("models.role_neither"))
    for (is_chosen, right), name in ROLES.items():
        applies = (pl.col("chosen").fill_null(False) == is_chosen) & (pl.col("gold") == right)
        role = pl.when(applies).then(pl.lit(say(f"models.role_{name}"))).otherwise(role)
    return role


def _show_prompts(study: Study, result: Result, dialogue: str, history: str) -> None:
    """Show the full prompts."""
    with st.expander(say("models.prompt"), icon=":material/description:"):
        try:
            prompts = read_prompts(predictions_path(study, result), dialogue)
        except InputError as error:
            show_problems(say("models.no_predictions"), error.problems)
            return
        shown_prompts = prompts.filter(pl.col("history") == history).sort("order")
        orders = shown_prompts["order"].to_list()
        order = orders[0]
        if len(orders) > 1:
            order = links.selectbox(
                "order_shown",
                say("models.order"),
                orders,
                format_option=lambda index: str(index + 1),
            )
        row = shown_prompts.row(by_predicate=pl.col("order") == order, named=True)
        st.code(row["prompt"], language=None, wrap_lines=True)
        st.caption(say("models.prompt_alone"))
        st.code(row["prompt_alone"], language=None, wrap_lines=True)


@cached_table
def option_table(stamp: str, measure: str, _predictions: PredictionTable) -> pl.DataFrame:
    """Return the cached `data.option_likelihoods` of a table and a measure."""
    return frames.option_likelihoods(_predictions.table, measure)
