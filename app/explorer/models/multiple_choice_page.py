"""The views of multiple choice: accuracies and chance, one question, letters, two models compared."""

from __future__ import annotations

import math

import polars as pl
import streamlit as st

from app.explorer import links
from app.explorer.caching import cached
from app.explorer.display import show_chart, show_problems, show_table
from app.explorer.labels import literal, say
from app.explorer.models import charts as views
from app.explorer.models import data as frames
from app.explorer.models.data import MEASURES, read_prompts
from app.explorer.models.selection import (
    Predicted,
    choose,
    choose_two,
    condition,
    numbers,
    predicted,
    table_of,
    titles,
)
from app.explorer.study import Study
from bws.problems import InputError
from giccs.measures.results import Result

__all__ = [
    "choose_history",
    "choose_measure",
    "option_table",
    "show_accuracies",
    "show_duel",
    "show_letters",
    "show_question",
]

MARKS = {True: "✓", False: "✗", None: "–"}
MOST_OPTIONS = 500
"""Questions that a list offers."""
ROLES = {
    (True, True): "both",
    (True, False): "chosen",
    (False, True): "right",
    (False, False): "neither",
}
"""(chosen, right) -> what an option is."""


def show_accuracies(study: Study, results: list[Result]) -> None:
    """Show how often each model is right, beside guessing."""
    measure = choose_measure()
    frame = frames.accuracies(results, measure)
    words = {name: condition(name) for name in ("with", "without")}
    said = titles("model", "history", "n", "low", "high", "chance") | words
    said["value"] = say("models.title_accuracy")
    show_chart(views.accuracies(frame, said), measure, frame)
    st.caption(say("models.accuracies_said"))
    for reason in filter(None, frame["reason"].unique(maintain_order=True)):
        st.caption(literal(reason))
    value = {"value": st.column_config.NumberColumn(said["value"], format="%.3f")}
    config = titles("model", "history", "reason") | {"n": say("models.title_questions")}
    table = frame if (frame["reason"] != "").any() else frame.drop("reason")
    show_table(
        table.with_columns(pl.col("history").replace(words)),
        f"{measure} table",
        column_config={**config, **numbers("low", "high", "chance"), **value},
    )


def show_question(study: Study, results: list[Result]) -> None:
    """Show what a model was asked about a dialogue, and how likely it finds each option."""
    result = choose("chooser", say("models.model"), results)
    found = predicted(study, result)
    if found is None:
        return
    measure = choose_measure()
    every = option_table(found.stamp, measure, found)
    dialogue = _dialogue(every)
    history = choose_history(every)
    own = every.filter(pl.col("dialogue_id") == dialogue, pl.col("history") == history)
    texts_of = study.items.select("dialogue_id", "utterance_id", "utterance")
    named = own.join(texts_of, on=["dialogue_id", "utterance_id"], maintain_order="left").select(
        pl.all(), role=_role()
    )
    said = titles("letter", "utterance", "role", "score") | {
        "likelihood": say(f"models.likelihood_{measure}"),
        "roles": "|".join(say(f"models.role_{role}") for role in ROLES.values()),
    }
    show_chart(views.likelihoods(named, said), f"options {dialogue} {history}", named)
    columns = titles("letter", "role", "utterance") | numbers("likelihood", "score", "logprob")
    columns |= {"likelihood": st.column_config.NumberColumn(said["likelihood"], format="%.3f")}
    columns |= titles("tokens", "bytes")
    if measure == "accuracy":
        del columns["logprob"]
    show_table(named.select(*columns), f"options {dialogue} {history} table", column_config=columns)
    _show_prompts(study, result, dialogue, history)


def show_letters(study: Study, results: list[Result]) -> None:
    """Show whether a model prefers options for where they stand."""
    result = choose("chooser", say("models.model"), results)
    found = predicted(study, result)
    if found is None:
        return
    history = choose_history(found.table)
    counted = frames.letters(found.table, history)
    said = titles("letter", "count", "chosen", "gold")
    show_chart(views.positions(counted.frame, said), f"letters {history}", counted.frame)
    if math.isnan(counted.p):
        st.markdown(say(f"models.letters_{counted.reason}", n=counted.questions))
    else:
        sentence = "models.letters_uneven" if counted.p < 0.05 else "models.letters_even"
        st.markdown(say(sentence, n=counted.questions, p=_p(counted.p)))
    columns = titles("letter", "chosen") | numbers("gold", "expected", form="%.1f")
    show_table(counted.frame, f"letters {history} table", column_config=columns)


def show_duel(study: Study, results: list[Result]) -> None:
    """Show two models on the same questions: the exact McNemar test, and where only one is right."""
    two = choose_two(study, results, "_chooser")
    if two is None:
        return
    _, _, one, other = two
    measure = choose_measure()
    chosen, chosen_too = (option_table(table.stamp, measure, table) for table in (one, other))
    history = choose_history(chosen)
    found, differing, left_out = frames.paired(chosen, chosen_too, history)
    if not found.n:
        st.info(say("models.no_shared_questions"))
        return
    sentence = "models.duel_apart" if found.extra["p"] < 0.05 else "models.duel_not_apart"
    st.markdown(
        say(
            "models.duel",
            value=f"{found.value:+.3f}",
            low=f"{found.low:+.3f}",
            high=f"{found.high:+.3f}",
            n=found.n,
            first=found.extra["only_first"],
            second=found.extra["only_second"],
            p=_p(found.extra["p"]),
        )
        + " "
        + say(sentence)
    )
    if left_out:
        st.caption(say("models.questions_left_out", n=left_out))
    who = {which: say(f"models.only_{which}") for which in ("first", "second")}
    show_table(
        differing.with_columns(pl.col("right").replace(who)),
        f"duel {history}",
        column_config=titles("dialogue_id") | {"right": say("models.title_right_only")},
    )


def _p(p: float) -> str:
    """Return a p as it is written.

    >>> _p(0.0312), _p(2e-9)
    ('= 0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def choose_measure() -> str:
    """Let one of the accuracies be chosen."""
    return links.segmented(
        "measure",
        say("models.measure"),
        list(MEASURES),
        shown=lambda one: say(f"models.{one}"),
        help=say("models.measure_help"),
    )


def choose_history(frame: pl.DataFrame) -> str:
    """Return the history condition of the questions; let it be chosen where a table has both."""
    there = [name for name in ("with", "without") if frame["history"].eq(name).any()]
    if len(there) == 1:
        return there[0]
    return links.segmented("history", say("models.view_histories"), there, shown=condition)


def _dialogue(every: pl.DataFrame) -> str:
    """Let a question be chosen; a mark says for each history whether it was answered rightly."""
    asked = frames.questions(every)
    ids = list(asked)[:MOST_OPTIONS]
    linked = links.value("question")
    if linked in asked and linked not in ids:
        ids.append(linked)
    if len(asked) > MOST_OPTIONS:
        st.caption(say("models.first_questions", shown=MOST_OPTIONS, total=len(asked)))

    def shown(one: str) -> str:
        marks = [f"{MARKS[right]} {condition(history)}" for history, right in asked[one].items()]
        return f"{one} · {', '.join(marks)}"

    return links.selectbox("question", say("models.question"), ids, shown=shown)


def _role() -> pl.Expr:
    """Return what an option is: chosen, right, both or neither, in words."""
    role = pl.lit(say("models.role_neither"))
    for (chosen, right), name in ROLES.items():
        own = (pl.col("chosen").fill_null(False) == chosen) & (pl.col("gold") == right)
        role = pl.when(own).then(pl.lit(say(f"models.role_{name}"))).otherwise(role)
    return role


def _show_prompts(study: Study, result: Result, dialogue: str, history: str) -> None:
    """Show what the model was asked, letter by letter."""
    with st.expander(say("models.prompt"), icon=":material/description:"):
        try:
            prompts = read_prompts(table_of(study, result), dialogue)
        except InputError as error:
            show_problems(say("models.no_predictions"), error.problems)
            return
        asked = prompts.filter(pl.col("history") == history).sort("order")
        orders = asked["order"].to_list()
        order = orders[0]
        if len(orders) > 1:
            order = links.selectbox(
                "order_shown", say("models.order"), orders, shown=lambda one: str(one + 1)
            )
        row = asked.row(by_predicate=pl.col("order") == order, named=True)
        st.code(row["prompt"], language=None, wrap_lines=True)
        st.caption(say("models.prompt_alone"))
        st.code(row["prompt_alone"], language=None, wrap_lines=True)


@cached
def option_table(stamp: str, measure: str, _found: Predicted) -> pl.DataFrame:
    """Return what `data.options` returns, computed once per table and measure."""
    return frames.options(_found.table, measure)
