"""The page "Dialogues": a dialogue as a chat, its candidates by score, and their judgments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import streamlit as st

from bws.base.ids import normal_id
from giccs.measures.results import Result
from giccs.tasks import result_kind
from giccs_app.explorer import links
from giccs_app.explorer.caching import cached, cached_table
from giccs_app.explorer.dialogues import data as frames
from giccs_app.explorer.dialogues.charts import candidates_chart
from giccs_app.explorer.dialogues.data import ORDERS, DialogueFilter
from giccs_app.explorer.dialogues.pairs_section import show_judgments, show_pairs
from giccs_app.explorer.display import (
    DIALOGUE_FILTERS,
    offer_view,
    show_chart,
    show_chat,
    show_text_table,
)
from giccs_app.explorer.labels import format_number, literal, plain, say
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.models.data import best_first, join_predictions
from giccs_app.explorer.models.selection import (
    PredictionTable,
    choose,
    choose_data,
    load_predictions,
)
from giccs_app.explorer.results import StudyResults, results_of
from giccs_app.explorer.study import Study

MAX_OPTIONS = 300
"""Maximum length of the list of dialogues; of more dialogues no list is shown."""
MAX_CANDIDATES_SHOWN = 50
RANK_HEIGHT, LEGEND_HEIGHT = 34, 120
"""Heights in pixels of a rank, and of the axis with the legend."""


def show(study: Study) -> None:
    """Show the filters, the selected dialogue and its judgments."""
    all_dialogues = _dialogues(study)
    criteria = _choose_filter(study, all_dialogues)
    result, errors = _choose_errors(study) if criteria.order == "errors" else (None, None)
    if errors is not None:
        all_dialogues = frames.with_errors(all_dialogues, errors)
    matches = frames.matching(all_dialogues, study.items, criteria)
    if len(matches) < len(all_dialogues):
        _offer_all(len(all_dialogues))
    if matches.is_empty():
        st.info(say("dialogues.none"))
        return
    dialogue = _choose_dialogue(matches, all_dialogues)
    row = matches.row(by_predicate=pl.col("dialogue_id") == dialogue, named=True)
    _show_position(row, matches, criteria)
    _show_mean(study, row)
    is_reading = links.toggle(
        "reading", say("dialogues.reading"), help=say("dialogues.reading_help")
    )
    candidates = frames.candidates(study.items, dialogue, errors)
    chat, ranked = st.columns([2, 3], gap="large")
    with chat:
        show_chat(study, dialogue, row["source"], row["domain"], words=criteria.words)
    with ranked:
        if not is_reading:
            _show_candidates(candidates, dialogue)
        else:
            _show_candidate_table(candidates, dialogue, criteria.words, READING_COLUMNS)
    if not is_reading:
        _show_candidate_table(candidates, dialogue, criteria.words)
        for note in study.interval_notes:
            st.caption(plain(local_remark(note)))
        predictions = _choose_predictions(study, candidates, result)
        if study.judgments is not None:
            show_pairs(study, dialogue, candidates, predictions)
        if predictions is not None:
            _show_ranks(dialogue, candidates, predictions)
        _show_judgments(study, dialogue)


def _choose_errors(study: Study) -> tuple[Result, pl.DataFrame | None]:
    """Show a widget to select a result; return it and its errors, None if they cannot be read."""
    scored = _scored_results(study)
    study_of_data, results = choose_data(study, scored, scored.results)
    result = choose("model", say("models.model"), best_first(results))
    predictions = load_predictions(study, result)
    if predictions is None:
        return result, None
    return result, _residuals(study_of_data, predictions.stamp, predictions.table)


def _scored_results(study: Study) -> StudyResults:
    """Return the results with a prediction per item."""
    study_results = results_of(study)
    scored = [
        result for result in study_results.results if result_kind(result.task).tables == "pairs"
    ]
    return replace(study_results, results=tuple(scored))


@cached_table
def _residuals(study: Study, stamp: str, _predictions: pl.DataFrame) -> pl.DataFrame:
    from giccs_app.explorer.errors.data import residuals

    return residuals(study.items, _predictions)


def _show_position(row: dict[str, Any], matches: pl.DataFrame, criteria: DialogueFilter) -> None:
    """Show the number of hits, and the error by which the dialogues are ordered."""
    if criteria.words:
        total, n = int(matches["hits"].sum()), len(matches)
        st.caption(say("dialogues.hits", n=row["hits"], total=total, dialogues=n))
    if "errors" in row and row["errors"] is None:
        st.caption(say("dialogues.no_error"))
    elif "errors" in row:
        st.caption(say("dialogues.error", value=format_number(row["errors"], ".2f")))


def _show_mean(study: Study, row: dict[str, Any]) -> None:
    """Show the mean absolute score of a dialogue, with its interval if there are draws."""
    if study.published is None:
        return
    text = format_number(row["mean"], ".2f")
    if study.scale is not None:
        mean = study.scale.groups[normal_id(row["dialogue_id"])]
        text += f" [{format_number(mean.low, '.2f')}, {format_number(mean.high, '.2f')}]"
    st.caption(say("dialogues.mean", value=text))


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
            kwargs=dict.fromkeys(DIALOGUE_FILTERS),
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
    is_available = {
        "disagreement": study.judgments is not None,
        "mean": study.published is not None,
        "errors": len(_scored_results(study).results) > 0,
    }
    return [order for order in ORDERS if is_available.get(order, True)]


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
    links.go(
        dialogue=ids[min(max(index + step, 0), len(ids) - 1)], item=None, tuple=None, pair=None
    )


def _index_of(ids: pl.Series, dialogue: str | None) -> int:
    """Return the index of a dialogue among the matches, 0 if it is not one of them."""
    return (ids.index_of(dialogue) or 0) if dialogue is not None else 0


def _show_candidates(candidates: pl.DataFrame, dialogue: str) -> None:
    """Show the chart of the candidates."""
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
    name = f"candidates {dialogue}"
    show_chart(chart, name, _table_columns(candidates), select=BY_ITEM, alt=alt)


BY_ITEM = {"item": "item_id"}
"""Parameters of the link -> columns by which a candidate is selected."""
CHART_FIELDS = ("interval", "rank_set", "candidate", "best", "worst", "appearances")
COLUMNS = (
    "letter",
    "utterance",
    "score",
    "low",
    "high",
    "rank_set",
    "best",
    "worst",
    "appearances",
    "disagreement",
    "residual",
)
READING_COLUMNS = ("letter", "utterance", "score", "residual")
"""The columns of the reading mode."""


def _table_columns(candidates: pl.DataFrame) -> pl.DataFrame:
    return candidates.select(name for name in COLUMNS if name in candidates.columns)


def _show_candidate_table(
    candidates: pl.DataFrame, dialogue: str, words: str, columns: Sequence[str] = COLUMNS
) -> None:
    """Show the candidates with their complete texts; the selected one has a mark."""
    table = candidates.select(name for name in columns if name in candidates.columns)
    is_selected = candidates["item_id"] == (links.value("item") or "")
    if is_selected.any():
        mark = pl.when(is_selected).then(pl.lit("▶")).otherwise(pl.lit(""))
        table = table.select(mark.alias("this"), pl.all())
    titles = {name: say(f"dialogues.{name}") for name in COLUMNS[2:-1]}
    titles |= {"this": "", "letter": "", "utterance": say("dialogues.candidate")}
    titles["residual"] = say("errors.residual")
    formats = {
        name: "," if kind.is_integer() else "+.2f" if name == "residual" else ".2f"
        for name, kind in table.schema.items()
        if kind.is_numeric()
    }
    show_text_table(table, f"candidates {dialogue} table", titles, formats, words)


def _choose_predictions(
    study: Study, candidates: pl.DataFrame, result: Result | None
) -> PredictionTable | None:
    """Return the predictions of a model, None without results or if they cannot be read.

    result: by default, a widget to select it is shown.
    """
    scored = _scored_results(study)
    if not scored.results or len(candidates) < 2:
        return None
    if result is None:
        result = choose("model", say("models.model"), best_first(scored.results))
    return load_predictions(study, result)


def _show_ranks(dialogue: str, candidates: pl.DataFrame, predictions: PredictionTable) -> None:
    """Show the ranks of the candidates by people and by a model."""
    from giccs.report.figures.ranks import TITLES, rank_chart, rank_frame

    st.subheader(say("dialogues.ranks"), anchor=False)
    letters = dict(candidates.select("item_id", "letter").iter_rows())
    predicted = join_predictions(candidates, predictions.table)
    frame = rank_frame(predicted, dialogue, letters)
    if len(frame) < 2:
        st.info(say("dialogues.no_ranks"))
        return
    titles = {name: say(f"dialogues.ranks_{name}") for name in TITLES}
    chart = rank_chart(frame, titles).properties(height=RANK_HEIGHT * len(frame) + LEGEND_HEIGHT)
    show_chart(chart, f"ranks {dialogue} {predictions.key}", frame, select=BY_ITEM)
    st.caption(say("dialogues.ranks_said"))


def _show_judgments(study: Study, dialogue: str) -> None:
    if study.judgments is None and not study.model_judgments:
        st.caption(say("dialogues.no_judgments"))
        return
    rows = frames.single_judgments(study, dialogue)
    st.subheader(say("dialogues.judgments"), anchor=False)
    if rows.is_empty():
        st.caption(say("dialogues.not_judged"))
        return
    show_judgments(rows, f"judgments {dialogue}")
    _offer_annotator(study, rows)


def _offer_annotator(study: Study, rows: pl.DataFrame) -> None:
    """Show a button that opens the annotator of the selected judgment."""
    annotator = links.value("annotator")
    if annotator and annotator in rows["annotator"]:
        st.caption(literal(annotator))
        source = "file" if study.ledger else None
        offer_view("page.open_annotator", page="annotation", annotator=annotator, source=source)
    else:
        st.caption(say("page.select_judgment"))
