"""The section on the history of a study: scores, reliability and agreement after the first judgments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import streamlit as st
from numpy.typing import NDArray

from bws.analysis import pictures
from bws.analysis.analysis import Drawing, MissingPictureError
from bws.base.charts import chart_bytes, chart_rows
from bws.base.notes import sentence
from bws.history import Frame, StudyHistory, study_history
from bws.history_charts import frame_rows
from bws.records import Judgments
from bws.stats.estimates import Estimate
from bws.study_charts import MAX_NAMED_ITEMS, RANKED_TITLES, ranked_chart
from giccs_app.explorer import links
from giccs_app.explorer.display import as_csv, offer_files, show_chart, show_selected_item
from giccs_app.explorer.labels import format_number, plain, say
from giccs_app.explorer.labels.remarks import local_remark, local_title
from giccs_app.explorer.study import Study, index_in_judgments
from giccs_app.explorer.theme import GREY

AFTER = "after"
"""Parameter of the link: number of judgments."""
BY_ITEM = {"item": "item_id"}
CURVE_HEIGHT, AXES_HEIGHT = 400, 60
"""Height of charts in pixels, and of the axis, which is part of the height of a chart on a page."""


def show_history(
    study: Study,
    judgments: Judgments,
    key: str,
    target: float,
    times: NDArray[np.float64] | None = None,
) -> None:
    """Show the history of a study, of which only this section is drawn again when its slider is moved.

    key: changes with the judgments. times: (J,) of their submission.
    """
    st.subheader(say("annotation.history"), anchor=False)
    try:
        with st.spinner(say("annotation.computing")):
            history = history_of(key, judgments, times)
            items = items_by_index(key, study.key, study, judgments)
    except ValueError as error:
        st.info(plain(local_remark(str(error))))
        return
    st.fragment(_show_frames)(study, judgments, replace(history, target=target), items)


@st.cache_resource(show_spinner=False, max_entries=8)
def history_of(key: str, _judgments: Judgments, _times: NDArray[np.float64] | None) -> StudyHistory:
    """Return the history of a study; key, times: see `show_history`."""
    return study_history(_judgments, times=_times)


@st.cache_resource(show_spinner=False, max_entries=8)
def items_by_index(
    key: str, study_key: str, _study: Study, _judgments: Judgments
) -> dict[int, dict[str, Any]]:
    """Return item_id and utterance of the items of the study by their indices in the judgments."""
    rows = _study.items.select("item_id", "utterance").to_dicts()
    indices = index_in_judgments(_study.benchmark, _judgments.tuples).tolist()
    return {index: row for index, row in zip(indices, rows, strict=True) if index >= 0}


def _show_frames(
    study: Study, judgments: Judgments, history: StudyHistory, items: dict[int, dict[str, Any]]
) -> None:
    links.leave_fragment(AFTER, *BY_ITEM)
    reached, *remarks = history.notes
    st.markdown(plain(sentence(local_remark(reached))))
    st.caption("  \n".join(plain(sentence(local_remark(remark))) for remark in remarks))
    frame = _choose_frame(history)
    _show_numbers(frame)
    left, right = st.columns(2, gap="large")
    with left:
        _show_scores(history, frame, items)
        show_selected_item(study, links.value("item"))
    with right:
        _show_curve(history, frame)
        st.caption(say("annotation.history_strip"))
        _offer_strip(history, judgments)


def _choose_frame(history: StudyHistory) -> Frame:
    by_number = {frame.n: frame for frame in history.frames}
    numbers = list(by_number)
    if len(numbers) < 2:
        return history.frames[-1]
    number = links.select_slider(
        AFTER,
        say("annotation.history_after"),
        numbers,
        numbers[-1],
        format_option=lambda n: format_number(n, ","),
    )
    return by_number[number]


def _show_numbers(frame: Frame) -> None:
    n_scored = int(np.count_nonzero(~np.isnan(frame.scores.score)))
    with st.container(horizontal=True, gap="large"):
        st.metric(say("annotation.history_scored"), format_number(n_scored, ","), width="content")
        for name in ("reliability", "agreement"):
            estimate: Estimate = getattr(frame, name)
            text = format_number(estimate.value, ".3f") if estimate.value == estimate.value else "–"
            st.metric(say(f"annotation.history_{name}"), text, width="content")
        if (width := _mean_width(frame)) == width:
            st.metric(say("annotation.history_width"), format_number(width, ".3f"), width="content")


def _mean_width(frame: Frame) -> float:
    """Return the mean width of the intervals of the scores; NaN if there are none."""
    if frame.scores.low is None or frame.scores.high is None:
        return float("nan")
    widths = frame.scores.high - frame.scores.low
    return float(widths[~np.isnan(widths)].mean()) if (~np.isnan(widths)).any() else float("nan")


def _show_scores(history: StudyHistory, frame: Frame, items: dict[int, dict[str, Any]]) -> None:
    """Show the scores of a frame, in the final order of the items."""
    rows = [{**row, **items.get(row["index"], {})} for row in frame_rows(history, frame)]
    titles = {name: say(f"overview.ranked_{name}") for name in (*RANKED_TITLES, "utterance")}
    titles["rank"] = say("annotation.history_rank")
    chart = ranked_chart(rows, (), titles)
    for layer in chart.layer:
        layer.encoding.x.scale = alt.Scale(domain=[0, 1], nice=False, padding=10)
        layer.encoding.x.axis = alt.Axis(tickCount=5)
    height = chart.height if len(rows) <= MAX_NAMED_ITEMS else CURVE_HEIGHT
    taller = chart.properties(height=height + AXES_HEIGHT)
    table = pl.DataFrame(rows, infer_schema_length=None).drop("index")
    show_chart(taller, f"scores-after-{frame.n}", table, select=BY_ITEM)


def _show_curve(history: StudyHistory, frame: Frame) -> None:
    """Show reliability and agreement, with a line at the selected frame."""
    try:
        drawing = pictures.history(history, local_title)
    except MissingPictureError:
        return  # the reason is above
    data = chart_rows([{"judgments": frame.n}])
    line = alt.Chart(data).mark_rule(color=GREY).encode(x="judgments:Q")
    chart = alt.LayerChart(layer=[line, *drawing.chart.layer]).properties(height=CURVE_HEIGHT)
    table = pl.DataFrame(drawing.rows, infer_schema_length=None)
    show_chart(chart, "history-figure", table, select={AFTER: "judgments"})


def _offer_strip(history: StudyHistory, judgments: Judgments) -> None:
    """Offer all frames side by side as a file, as of ``giccs reliability --figure frames=FILE``."""

    def drawing() -> Drawing:
        return pictures.frames(history, str)

    def picture(suffix: str) -> bytes:
        return chart_bytes(pictures.finished(drawing(), judgments), suffix)

    forms = {
        "png": lambda: picture(".png"),
        "svg": lambda: picture(".svg"),
        "csv": lambda: as_csv(pl.DataFrame(drawing().rows, infer_schema_length=None)),
    }
    with st.container(horizontal=True):
        offer_files("scores-strip", forms)
