"""The page "Dialogues": a dialogue as a chat, its candidates by score, and their judgments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from giccs.tasks import result_kind
from giccs_app.explorer import links
from giccs_app.explorer.caching import cached
from giccs_app.explorer.dialogues import data as frames
from giccs_app.explorer.dialogues.charts import candidates_chart
from giccs_app.explorer.dialogues.data import ORDERS, DialogueFilter
from giccs_app.explorer.display import show_chart, show_chat, show_table, show_text_table
from giccs_app.explorer.labels import format_number, literal, say
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.models.data import best_first, join_predictions, key
from giccs_app.explorer.models.selection import choose, load_predictions
from giccs_app.explorer.results import results_of
from giccs_app.explorer.study import Study

__all__ = ["prepare", "show"]

MAX_OPTIONS = 300
"""Maximum length of the list of dialogues; of more dialogues no list is shown."""
MAX_CANDIDATES_SHOWN = 50
RANK_HEIGHT, LEGEND_HEIGHT = 34, 120
"""Heights in pixels of a rank, and of the axis with the legend."""
FILTERS = ("words", "domain", "source", "n_turns", "score", "disagreement")
"""The parameters that filter dialogues."""


def show(study: Study) -> None:
    """Show the filters, the selected dialogue and its judgments."""
    all_dialogues = _dialogues(study)
    matches = frames.matching(all_dialogues, study.items, _choose_filter(study, all_dialogues))
    if len(matches) < len(all_dialogues):
        _offer_all(len(all_dialogues))
    if matches.is_empty():
        st.info(say("dialogues.none"))
        return
    dialogue = _choose_dialogue(matches, all_dialogues)
    chat, ranked = st.columns([2, 3], gap="large")
    with chat:
        row = matches.row(by_predicate=pl.col("dialogue_id") == dialogue, named=True)
        show_chat(study, dialogue, row["source"], row["domain"])
    with ranked:
        candidates = _show_candidates(study, dialogue)
    _show_candidate_table(candidates, dialogue, study.interval_notes)
    _show_ranks(study, dialogue, candidates)
    _show_judgments(study, dialogue)


def prepare(study: Study) -> None:
    """Compute what takes long in advance."""
    _dialogues(study)
    _ = study.turns, study.index_in_judgments


@cached
def _dialogues(study: Study) -> pl.DataFrame:
    return frames.dialogues(study)


def _choose_filter(study: Study, all_dialogues: pl.DataFrame) -> DialogueFilter:
    """Show the filter widgets."""
    words = links.text(
        "words",
        say("dialogues.words"),
        placeholder=say("dialogues.words_hint"),
        icon=":material/search:",
    )
    with st.expander(say("dialogues.filters"), icon=":material/filter_alt:"):
        left, middle, right = st.columns(3)
        with left:
            domains = _choose_values(all_dialogues, "domain")
            sources = _choose_values(all_dialogues, "source")
        with middle:
            lengths = _choose_values(all_dialogues, "n_turns")
            order = links.selectbox(
                "order",
                say("dialogues.order"),
                _orders(study),
                format_option=lambda o: say(f"dialogues.order_{o}"),
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
    """Show that filters are active (possibly set by a link), and a button to remove them."""
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


def _choose_values(all_dialogues: pl.DataFrame, column: str) -> list[Any]:
    """Show a widget to select values of a column; hidden if there is only one value."""
    options = all_dialogues[column].unique().sort().to_list()
    if len(options) < 2:
        return []
    return links.multiselect(
        column, say(f"dialogues.{column}"), options, placeholder=say("page.all")
    )


def _orders(study: Study) -> list[str]:
    return [order for order in ORDERS if order != "disagreement" or study.judgments is not None]


def _choose_dialogue(matches: pl.DataFrame, all_dialogues: pl.DataFrame) -> str:
    """Return the dialogue given by the link, by default the first; show widgets to choose another one."""
    ids = matches["dialogue_id"]
    linked = links.value("dialogue")
    if linked is not None and not all_dialogues["dialogue_id"].eq(linked).any():
        links.ignore("dialogue", linked)
    index = _index_of(ids, linked)
    selected_id: str = ids[index]
    with st.container(horizontal=True, vertical_alignment="center"):
        _show_step_button("previous", "P", ids, index, -1)
        st.markdown(f"**{say('page.counted', n=index + 1, total=len(ids))}**", width="content")
        _show_step_button("next", "N", ids, index, 1)
        if len(ids) <= MAX_OPTIONS:
            titles = dict(zip(ids, matches["last_turn"].str.head(70), strict=True))
            selected_id = links.selectbox(
                "dialogue",
                say("dialogues.dialogue"),
                ids.to_list(),
                format_option=lambda dialogue: f"{dialogue} · {titles[dialogue]}",
                label_visibility="collapsed",
                quiet=True,
            )
        else:
            st.caption(say("dialogues.too_many", most=MAX_OPTIONS))
    return selected_id


def _show_step_button(label: str, key: str, ids: pl.Series, index: int, step: int) -> None:
    is_back = step < 0
    st.button(
        say(f"dialogues.{label}"),
        key=label,
        shortcut=key,
        disabled=not 0 <= index + step < len(ids),
        icon=f":material/chevron_{'left' if is_back else 'right'}:",
        icon_position="left" if is_back else "right",
        on_click=_go_by,
        args=(ids, step),
    )


def _go_by(ids: pl.Series, step: int) -> None:
    """Step from the current dialogue of the link: keys can be pressed faster than the page is drawn."""
    index = _index_of(ids, links.value("dialogue"))
    links.go(dialogue=ids[min(max(index + step, 0), len(ids) - 1)])


def _index_of(ids: pl.Series, dialogue: str | None) -> int:
    """Return the index of a dialogue among the matches, 0 if it is not one of them."""
    return (ids.index_of(dialogue) or 0) if dialogue is not None else 0


def _show_candidates(study: Study, dialogue: str) -> pl.DataFrame:
    """Show the chart of the candidates, and return them."""
    candidates = frames.candidates(study.items, dialogue)
    if len(candidates) > MAX_CANDIDATES_SHOWN:
        st.caption(
            say("dialogues.most_candidates", most=MAX_CANDIDATES_SHOWN, total=len(candidates))
        )
    titles = {name: say(f"dialogues.{name}") for name in CHART_FIELDS}
    titles["score"] = say("dialogues.chart_score")
    chart = candidates_chart(
        candidates.head(MAX_CANDIDATES_SHOWN),
        titles,
        format_score=lambda score: format_number(score, ".2f"),
    )
    alt = f"{say('dialogues.candidate')}: {titles['score']}"
    show_chart(chart, f"candidates {dialogue}", _table_columns(candidates), alt=alt)
    return candidates


CHART_FIELDS = ("interval", "candidate", "best", "worst", "appearances")
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


def _table_columns(candidates: pl.DataFrame) -> pl.DataFrame:
    return candidates.select(name for name in COLUMNS if name in candidates.columns)


def _show_candidate_table(candidates: pl.DataFrame, dialogue: str, notes: Sequence[str]) -> None:
    table = _table_columns(candidates)
    titles = {
        name: say(f"dialogues.{name}") for name in COLUMNS if name not in ("letter", "utterance")
    }
    titles |= {"letter": "", "utterance": say("dialogues.candidate")}
    formats = {
        name: "," if table.schema[name].is_integer() else ".2f" for name in table.columns[2:]
    }
    show_text_table(table, f"candidates {dialogue} table", titles, formats)
    for note in notes:
        st.caption(literal(local_remark(note)))


def _show_ranks(study: Study, dialogue: str, candidates: pl.DataFrame) -> None:
    """Show the ranks of the candidates by people and by a model, if there are results."""
    from giccs.report.figures.ranks import TITLES, rank_chart, rank_frame

    if study.store is None:
        return
    results = results_of(study).results
    pairwise = [result for result in results if result_kind(result.task).tables == "pairs"]
    if not pairwise or len(candidates) < 2:
        return
    st.subheader(say("dialogues.ranks"), anchor=False)
    result = choose("model", say("models.model"), best_first(pairwise))
    predictions = load_predictions(study, result)
    if predictions is None:
        return
    letters = dict(candidates.select("item_id", "letter").iter_rows())
    predicted = join_predictions(candidates, predictions.table)
    frame = rank_frame(predicted, dialogue, letters)
    if len(frame) < 2:
        st.info(say("dialogues.no_ranks"))
        return
    titles = {name: say(f"dialogues.ranks_{name}") for name in TITLES}
    chart = rank_chart(frame, titles).properties(height=RANK_HEIGHT * len(frame) + LEGEND_HEIGHT)
    show_chart(chart, f"ranks {dialogue} {key(result)}", frame)
    st.caption(say("dialogues.ranks_said"))


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
    columns = {
        name: text(say(f"dialogues.{name}"))
        for name in ("tuple", "annotator", "items", "best", "worst", "comment", "seconds")
    }
    single_annotator = st.column_config.CheckboxColumn(
        say("dialogues.alone"), help=say("dialogues.alone_help")
    )
    show_table(rows, f"judgments {dialogue}", column_config={**columns, "alone": single_annotator})
