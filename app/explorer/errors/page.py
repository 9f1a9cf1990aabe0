"""The page "Errors": residuals per part of the data, the largest ones, and wrong answers."""

from __future__ import annotations

import polars as pl
import streamlit as st

from app.explorer import links
from app.explorer.caching import cached
from app.explorer.display import show_chart, show_chat, show_table
from app.explorer.errors import data as frames
from app.explorer.labels import literal, say
from app.explorer.models import charts as views
from app.explorer.models.data import COLUMNS, DIVISIONS, best_first, key
from app.explorer.models.multiple_choice_page import choose_history, choose_measure, option_table
from app.explorer.models.selection import (
    Predicted,
    choose,
    choose_task,
    numbers,
    predicted,
    results_found,
    texts,
    titles,
)
from app.explorer.study import Study
from giccs.measures.results import Result
from giccs.tasks import result_kind

__all__ = ["show"]

MOST_OPTIONS = 200
"""Items that a list offers: those with the largest errors."""
LONG = 60
"""Characters of an utterance in a list."""
ABOUT = ("item_id", "domain", "n_turns")
RESAMPLES = 1000
WORK = 5_000_000


def show(study: Study) -> None:
    """Show one model's errors: of scores, or of choices."""
    results = results_found(study, COLUMNS)
    if not results:
        return
    task = choose_task(results)
    own = [result for result in results if result.task == task]
    (_show_residuals if result_kind(task).tables == "pairs" else _show_wrong)(study, own)


def _show_residuals(study: Study, results: list[Result]) -> None:
    """Show where a model's residuals are, the largest, and one in its dialogue."""
    result = choose("model", say("models.model"), best_first(results))
    found = predicted(study, result)
    if found is None:
        return
    errors = _residuals(study, found.stamp, found)
    if missing := len(study.items) - len(errors):
        st.caption(say("models.missing", n=missing))
    if errors.is_empty():
        st.info(say("errors.nothing"))
        return
    st.caption(say("errors.residual_said"))
    _show_parts(study, found, key(result))
    _show_largest(study, errors, key(result))


def _show_parts(study: Study, found: Predicted, name: str) -> None:
    """Show how far off the model is in each part of the data."""
    st.subheader(say("errors.parts"), anchor=False, help=say("errors.parts_help"))
    there = [by for by in DIVISIONS if study.items[by].n_unique() > 1]
    if not there:
        st.info(say("models.no_parts"))
        return
    by = links.segmented("by", say("models.by"), there, shown=lambda one: say(f"models.by_{one}"))
    frame = _by_part(study, found.stamp, by, found)
    said = titles("low", "high") | {
        "part": say(f"models.by_{by}"),
        "value": say("errors.size"),
        "n": say("models.title_dialogues"),
    }
    show_chart(views.dots(frame, "part", said, zero=True), f"errors by {by} {name}", frame)
    for reason in filter(None, frame["reason"].unique(maintain_order=True)):
        st.caption(literal(reason))
    decimals = {
        "value": st.column_config.NumberColumn(said["value"], format="%.3f"),
        "bias": st.column_config.NumberColumn(
            say("errors.bias"), format="%+.3f", help=say("errors.bias_help")
        ),
    }
    columns = {"part": said["part"], "n": said["n"], **titles("items", "reason")}
    show_table(
        frame if (frame["reason"] != "").any() else frame.drop("reason"),
        f"errors by {by} {name} table",
        column_config={**columns, **numbers("low", "high"), **decimals},
    )


def _show_largest(study: Study, errors: pl.DataFrame, name: str) -> None:
    """Show the largest errors, and one of them in its dialogue."""
    st.subheader(say("errors.largest"), anchor=False, help=say("errors.residual_help"))
    shown = frames.largest(errors, *_wish(errors))
    st.caption(say("page.counted", n=len(shown), total=len(errors)))
    if shown.is_empty():
        st.info(say("errors.none"))
        return
    residual = st.column_config.NumberColumn(
        say("errors.residual"), format="%+.3f", help=say("errors.residual_help")
    )
    decimals = numbers("rank_prediction", "rank_score", "score", "prediction")
    read = texts("last_turn", "utterance")
    config = {"residual": residual, **read, **decimals, **titles(*ABOUT)}
    table = shown.select(*config)
    show_table(table, f"errors {name}", column_config=config)
    linked = pl.col("item_id") == (links.value("item") or "")
    _show_item(study, errors, pl.concat([shown.head(MOST_OPTIONS), errors.filter(linked)]))


def _wish(errors: pl.DataFrame) -> tuple[str, list[str], list[int]]:
    """Let a person say which errors they want."""
    direction = links.segmented(
        "direction",
        say("errors.direction"),
        frames.DIRECTIONS,
        shown=lambda one: say(f"errors.direction_{one}"),
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


def _show_item(study: Study, errors: pl.DataFrame, offered: pl.DataFrame) -> None:
    """Show the dialogue of one error, and how the model ranks all its candidates."""
    shown = {
        item: f"{residual:+.2f} · {item} · {utterance[:LONG]}"
        for item, residual, utterance in offered.select(
            "item_id", "residual", "utterance"
        ).iter_rows()
    }
    item = links.selectbox("item", say("errors.item"), list(shown), shown=shown.__getitem__)
    row = errors.row(by_predicate=pl.col("item_id") == item, named=True)
    chat, candidates = st.columns([2, 3], gap="large")
    with chat:
        show_chat(study, row["dialogue_id"])
    with candidates:
        own = errors.filter(pl.col("dialogue_id") == row["dialogue_id"])
        own = own.sort("score", descending=True).with_columns(
            this=pl.when(pl.col("item_id") == item).then(pl.lit("▶")).otherwise(pl.lit(""))
        )
        st.markdown(f"**{say('errors.candidates')}**")
        ranks = numbers("rank_prediction", "rank_score", "score")
        residual = st.column_config.NumberColumn(say("errors.residual"), format="%+.3f")
        this = {"this": st.column_config.TextColumn("", width=30)}
        config = {**this, **texts("utterance"), "residual": residual, **ranks}
        name = f"candidates {row['dialogue_id']}"
        show_table(own.select(*config), name, column_config=config)


def _show_wrong(study: Study, results: list[Result]) -> None:
    """Show the questions that a model answers wrongly, the surest mistakes first."""
    result = choose("chooser", say("models.model"), results)
    found = predicted(study, result)
    if found is None:
        return
    measure = choose_measure()
    every = option_table(found.stamp, measure, found)
    history = choose_history(every)
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


@cached
def _residuals(study: Study, stamp: str, _found: Predicted) -> pl.DataFrame:
    return frames.residuals(study.items, _found.table)


@cached
def _by_part(study: Study, stamp: str, by: str, _found: Predicted) -> pl.DataFrame:
    errors = _residuals(study, stamp, _found)
    resamples = max(100, min(RESAMPLES, WORK // len(errors)))
    return frames.by_part(errors, by, resamples)
