"""The section on the pairs of candidates: a chart of arcs, and the judgments of the selected pair."""

from __future__ import annotations

import polars as pl
import streamlit as st

from giccs_app.explorer import links
from giccs_app.explorer.dialogues.pairs import MAX_CANDIDATES, around, pair_frame, pair_judgments
from giccs_app.explorer.dialogues.pairs_chart import TITLES, pairs_chart
from giccs_app.explorer.display import BY_JUDGMENT, show_chart, show_table
from giccs_app.explorer.labels import format_number, say
from giccs_app.explorer.models.selection import PredictionTable
from giccs_app.explorer.study import Study

BY_PAIR = {"pair": "pair", "item": "item_id"}
"""Parameters of the link -> fields by which a pair or a candidate is selected."""
AXES_HEIGHT = 120
"""Height of the axis and the legend in pixels, which are part of the height of a chart on a page."""
FILE_COLUMNS = (
    "pair", "first", "second", "first_score", "second_score", "first_wins", "second_wins",
    "state", "first_prediction", "second_prediction", "is_reversed",
)  # fmt: skip


def show_pairs(
    study: Study,
    dialogue: str,
    all_candidates: pl.DataFrame,
    predictions: PredictionTable | None = None,
) -> None:
    """Show the comparisons of all pairs of candidates by people, and their order by a model.

    all_candidates: of the dialogue, by descending score; of more than `MAX_CANDIDATES`, neighbours are shown.
    """
    st.subheader(say("dialogues.pairs"), anchor=False)
    selected = _selected_pair(all_candidates)
    candidates = around(all_candidates, links.value("item"), selected)
    if len(candidates) < 2:
        st.caption(say("dialogues.no_pairs"))
        return
    pairs = pair_frame(study, candidates, None if predictions is None else predictions.table)
    if selected is not None and selected not in pairs["pair"]:
        links.ignore("pair", selected)  # Its candidates are too far apart for one chart.
        selected = None
    titles = {name: say(f"dialogues.pairs_{name}") for name in TITLES}
    chart = pairs_chart(
        pairs, candidates, titles, selected, lambda value: format_number(value, ".3g")
    )
    chart = chart.properties(height=chart.height + AXES_HEIGHT)
    name = f"pairs {dialogue} {'' if predictions is None else predictions.key}".strip()
    columns = [column for column in FILE_COLUMNS if pairs[column].null_count() < len(pairs)]
    show_chart(chart, name, pairs.select(columns), select=BY_PAIR, alt=say("dialogues.pairs"))
    if len(all_candidates) > MAX_CANDIDATES:
        st.caption(say("dialogues.pairs_around", n=MAX_CANDIDATES, total=len(all_candidates)))
    st.caption(say("dialogues.pairs_said"))
    if pairs["first_prediction"].count():
        st.caption(say("dialogues.pairs_model_said", n=int(pairs["is_reversed"].sum())))
    _show_pair(study, dialogue, pairs, selected)


def _selected_pair(candidates: pl.DataFrame) -> str | None:
    """Return the pair of the link, in the order of the scores; an unknown pair is ignored and reported."""
    linked = links.value("pair")
    if linked is None:
        return None
    letters = linked.split("-")
    known = candidates.filter(pl.col("letter").is_in(letters))["letter"].to_list()
    if sorted(known) == sorted(letters) and len(letters) == 2:
        return "-".join(known)
    links.ignore("pair", linked)
    return None


def _show_pair(study: Study, dialogue: str, pairs: pl.DataFrame, selected: str | None) -> None:
    """Show the judgments of the selected pair, or how to select one."""
    rows = pairs.filter(pl.col("pair") == (selected or ""))
    if rows.is_empty():
        st.caption(say("dialogues.select_pair"))
        return
    row = rows.row(0, named=True)
    st.markdown(f"**{say('dialogues.pair_judgments')}**")
    for name in ("first", "second"):
        text = f"{row[name]} · {row[f'{name}_text']}"
        st.text(say("dialogues.pair_wins", candidate=text, n=row[f"{name}_wins"]))
    judgments = pair_judgments(study, dialogue, row["pair"])
    if judgments.is_empty():
        st.caption(say("dialogues.pair_missing"))
        return
    show_judgments(judgments, f"judgments {dialogue} {row['pair']}")


def show_judgments(rows: pl.DataFrame, name: str) -> None:
    """Show individual judgments; the selected one is that of the link."""
    titles = ("winner", "tuple", "annotator", "items", "best", "worst", "comment", "seconds")
    columns: dict[str, object] = {
        column: st.column_config.TextColumn(say(f"dialogues.{column}")) for column in titles
    }
    columns["alone"] = st.column_config.CheckboxColumn(
        say("dialogues.alone"), help=say("dialogues.alone_help")
    )
    show_table(rows, name, select=BY_JUDGMENT, column_config=columns)
