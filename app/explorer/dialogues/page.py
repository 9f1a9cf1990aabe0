"""The page "Dialogues": one dialogue as a chat, its candidates by score, and each judgment of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from app.explorer import links
from app.explorer.caching import cached
from app.explorer.dialogues import data as frames
from app.explorer.dialogues.charts import candidates_chart
from app.explorer.dialogues.data import ORDERS, DialogueFilter
from app.explorer.display import show_chart, show_chat, show_table
from app.explorer.labels import say
from app.explorer.study import Study

__all__ = ["show"]

MOST_OPTIONS = 300
"""Dialogues that a list offers; beyond it they are searched and leafed through."""
MOST_CANDIDATES = 50
FILTERS = ("words", "domain", "source", "n_turns", "score", "disagreement")
"""The parameters that leave dialogues out."""


def show(study: Study) -> None:
    """Show the filters, the dialogue that they and the link lead to, and what was judged of it."""
    every = _dialogues(study)
    found = frames.matching(every, study.items, _choose_filter(study, every))
    if len(found) < len(every):
        _offer_all(len(every))
    if found.is_empty():
        st.info(say("dialogues.none"))
        return
    dialogue = _choose(found, every)
    chat, ranked = st.columns([2, 3], gap="large")
    with chat:
        row = found.row(by_predicate=pl.col("dialogue_id") == dialogue, named=True)
        show_chat(study, dialogue, row["source"], row["domain"])
    with ranked:
        own = _show_candidates(study, dialogue)
    _show_counts(own, dialogue, study.interval_notes)
    _show_judgments(study, dialogue)


@cached
def _dialogues(study: Study) -> pl.DataFrame:
    return frames.dialogues(study)


def _choose_filter(study: Study, every: pl.DataFrame) -> DialogueFilter:
    """Let a person say which dialogues they want."""
    words = links.text(
        "words",
        say("dialogues.words"),
        placeholder=say("dialogues.words_hint"),
        icon=":material/search:",
    )
    with st.expander(say("dialogues.filters"), icon=":material/filter_alt:"):
        left, middle, right = st.columns(3)
        with left:
            domains = _values(every, "domain")
            sources = _values(every, "source")
        with middle:
            lengths = _values(every, "n_turns")
            order = links.selectbox(
                "order",
                say("dialogues.order"),
                _orders(study),
                shown=lambda o: say(f"dialogues.order_{o}"),
            )
        with right:
            score = links.score_range(
                "score", say("dialogues.score"), help=say("dialogues.score_help")
            )
            disagreement = (0.0, 1.0)
            if study.judgments is not None:
                disagreement = links.score_range(
                    "disagreement",
                    say("dialogues.disagreement"),
                    help=say("dialogues.disagreement_help"),
                )
    return DialogueFilter(
        tuple(domains), tuple(sources), tuple(lengths), score, disagreement, words, order
    )


def _offer_all(total: int) -> None:
    """Say that filters are set, which a link may have done, and offer to take them away."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(say("dialogues.filtered", total=total), width="content")
        st.button(
            say("dialogues.show_all"),
            key="show all",
            type="tertiary",
            icon=":material/filter_alt_off:",
            on_click=links.go,
            kwargs=dict.fromkeys(FILTERS),
        )


def _values(every: pl.DataFrame, column: str) -> list[Any]:
    """Let some of a column's values be chosen; nothing to choose from is not shown."""
    options = every[column].unique().sort().to_list()
    if len(options) < 2:
        return []
    return links.multiselect(
        column, say(f"dialogues.{column}"), options, placeholder=say("page.all")
    )


def _orders(study: Study) -> list[str]:
    return [order for order in ORDERS if order != "disagreement" or study.judgments is not None]


def _choose(found: pl.DataFrame, every: pl.DataFrame) -> str:
    """Return the dialogue that the link asks for, else the first; let others be chosen."""
    ids = found["dialogue_id"]
    asked = links.value("dialogue")
    if asked is not None and not every["dialogue_id"].eq(asked).any():
        links.ignore("dialogue", asked)
    place = _place(ids, asked)
    chosen: str = ids[place]
    with st.container(horizontal=True, vertical_alignment="center"):
        _step("previous", "P", ids, place, -1)
        st.markdown(f"**{say('page.counted', n=place + 1, total=len(ids))}**", width="content")
        _step("next", "N", ids, place, 1)
        if len(ids) <= MOST_OPTIONS:
            titles = dict(zip(ids, found["last_turn"].str.head(70), strict=True))
            chosen = links.selectbox(
                "dialogue",
                say("dialogues.dialogue"),
                ids.to_list(),
                shown=lambda one: f"{one} · {titles[one]}",
                label_visibility="collapsed",
                quiet=True,
            )
        else:
            st.caption(say("dialogues.too_many", most=MOST_OPTIONS))
    return chosen


def _step(which: str, key: str, ids: pl.Series, place: int, by: int) -> None:
    back = by < 0
    st.button(
        say(f"dialogues.{which}"),
        key=which,
        shortcut=key,
        disabled=not 0 <= place + by < len(ids),
        icon=f":material/chevron_{'left' if back else 'right'}:",
        icon_position="left" if back else "right",
        on_click=_go_by,
        args=(ids, by),
    )


def _go_by(ids: pl.Series, by: int) -> None:
    """Go on from where the link is by now: keys can be pressed faster than the page is drawn."""
    place = _place(ids, links.value("dialogue"))
    links.go(dialogue=ids[min(max(place + by, 0), len(ids) - 1)])


def _place(ids: pl.Series, dialogue: str | None) -> int:
    """Return where a dialogue stands among those found; the first place where it does not."""
    return (ids.index_of(dialogue) or 0) if dialogue is not None else 0


def _show_candidates(study: Study, dialogue: str) -> pl.DataFrame:
    """Draw the candidates, and return them."""
    own = frames.candidates(study.items, dialogue)
    if len(own) > MOST_CANDIDATES:
        st.caption(say("dialogues.most_candidates", most=MOST_CANDIDATES, total=len(own)))
    titles = {name: say(f"dialogues.{name}") for name in TITLED}
    titles["score"] = say("dialogues.chart_score")
    chart = candidates_chart(own.head(MOST_CANDIDATES), titles)
    alt = f"{say('dialogues.candidate')}: {titles['score']}"
    show_chart(chart, f"candidates {dialogue}", _plain(own), alt=alt)
    return own


TITLED = ("interval", "candidate", "best", "worst", "appearances")
COLUMNS = (
    "letter",
    "utterance",
    "score",
    "low",
    "high",
    "best",
    "worst",
    "appearances",
    "disagreement",
)


def _plain(own: pl.DataFrame) -> pl.DataFrame:
    return own.select(name for name in COLUMNS if name in own.columns)


def _show_counts(own: pl.DataFrame, dialogue: str, notes: Sequence[str]) -> None:
    number = st.column_config.NumberColumn
    decimals = {
        name: number(say(f"dialogues.{name}"), format="%.2f") for name in ("score", "low", "high")
    }
    counts = {name: number(say(f"dialogues.{name}")) for name in ("best", "worst", "appearances")}
    shown = {
        "letter": st.column_config.TextColumn("", width=30),
        "utterance": st.column_config.TextColumn(say("dialogues.candidate"), width=280),
        **decimals,
        **counts,
        "disagreement": number(
            say("dialogues.disagreement"), format="%.2f", help=say("dialogues.disagreement_help")
        ),
    }
    show_table(_plain(own), f"candidates {dialogue} table", column_config=shown)
    for note in notes:
        st.caption(note)


def _show_judgments(study: Study, dialogue: str) -> None:
    if study.judgments is None:
        st.caption(say("dialogues.no_judgments"))
        return
    rows = frames.single_judgments(study, dialogue)
    st.subheader(say("dialogues.judgments"), anchor=False)
    if rows.is_empty():
        st.caption(say("dialogues.not_judged"))
        return
    text = st.column_config.TextColumn
    shown = {
        name: text(say(f"dialogues.{name}"))
        for name in ("tuple", "annotator", "items", "best", "worst", "comment", "seconds")
    }
    alone = st.column_config.CheckboxColumn(
        say("dialogues.alone"), help=say("dialogues.alone_help")
    )
    show_table(rows, f"judgments {dialogue}", column_config={**shown, "alone": alone})
