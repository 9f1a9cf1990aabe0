"""Models that choose: accuracies beside guessing, one question, letters, two models."""

from __future__ import annotations

import math

import polars as pl
import streamlit as st

from app import links
from app.caching import cached
from app.downloads import show_chart, show_table
from app.frames import choices as frames
from app.frames.choices import MEASURES
from app.frames.models import key
from app.frames.predictions import read_prompts
from app.labels import literal, say
from app.pages.chosen import (
    Predicted,
    choose,
    choose_two,
    condition,
    numbers,
    predicted,
    table_of,
    texts,
    titles,
)
from app.study import Study
from app.telling import tell_problems
from app.views import choices as views
from bws.problems import InputError
from giccs.results import Result

__all__ = ["show_accuracies", "show_duel", "show_letters", "show_question", "show_wrong"]

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
    measure = _measure()
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
    measure = _measure()
    every = _options(found.stamp, measure, found)
    dialogue = _dialogue(every)
    history = _history(every)
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
    history = _history(found.table)
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
    measure = _measure()
    chosen, chosen_too = (_options(table.stamp, measure, table) for table in (one, other))
    history = _history(chosen)
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


def show_wrong(study: Study, results: list[Result]) -> None:
    """Show the questions that a model answers wrongly, the surest mistakes first."""
    result = choose("chooser", say("models.model"), results)
    found = predicted(study, result)
    if found is None:
        return
    measure = _measure()
    every = _options(found.stamp, measure, found)
    history = _history(every)
    mistakes = frames.wrong(every, history, study.items)
    asked = every.filter(pl.col("history") == history)["dialogue_id"].n_unique()
    st.caption(say("errors.wrong_said", n=len(mistakes), total=asked))
    if mistakes.is_empty():
        return
    margin = st.column_config.NumberColumn(
        say("errors.margin"), format="%.3f", help=say("errors.margin_help")
    )
    columns = {
        "margin": margin,
        **titles("dialogue_id"),
        **texts("last_turn", "chosen", "right"),
        **numbers("score_chosen", "score_right"),
    }
    show_table(mistakes.select(*columns), f"wrong {key(result)} {history}", column_config=columns)


def _p(p: float) -> str:
    """Return a p as it is written.

    >>> _p(0.0312), _p(2e-9)
    ('= 0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def _measure() -> str:
    return links.segmented(
        "measure",
        say("models.measure"),
        list(MEASURES),
        shown=lambda one: say(f"models.{one}"),
        help=say("models.measure_help"),
    )


def _history(frame: pl.DataFrame) -> str:
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
            tell_problems(say("models.no_predictions"), error.problems)
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
def _options(stamp: str, measure: str, _found: Predicted) -> pl.DataFrame:
    return frames.options(_found.table, measure)
