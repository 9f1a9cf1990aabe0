"""The tables and pictures of an analysis on a page of the explorer, from its declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl
import streamlit as st

from bws.analysis.analysis import MissingPictureError
from giccs_app.explorer.display import show_chart, show_result
from giccs_app.explorer.labels import plain
from giccs_app.explorer.labels.remarks import local_remark, local_title

if TYPE_CHECKING:
    from bws.analysis.analysis import Analysis, Answers, Drawing, Picture


def show_tables(answers: Answers, analysis: Analysis) -> None:
    """Show the tables of an analysis with their notes."""
    for number, table in enumerate(answers.tables(analysis), start=1):
        show_result(table, analysis.name if number == 1 else f"{analysis.name} {number}")


def show_picture(answers: Answers, analysis: Analysis, picture: Picture, **settings: Any) -> None:
    """Show a picture with title and remarks, or why there is none; settings: of the chart."""
    try:
        drawing = answers.drawing(analysis, picture, local_title)
    except MissingPictureError as error:
        st.info(plain(local_remark(str(error))))
        return
    st.markdown(f"**{local_title(drawing.title)}**")
    show_drawing(drawing, f"{picture.name}-figure", **settings)
    remarks = (local_remark(remark) for remark in drawing.remarks if remark)
    st.caption("  \n".join(map(plain, remarks)))


def show_drawing(drawing: Drawing, name: str, *, files: bool = True, **settings: Any) -> None:
    """Show the chart of a drawing; files: whether to offer it; settings: of the chart."""
    frame = pl.DataFrame(drawing.rows, infer_schema_length=None)
    chart = drawing.chart.properties(**settings)
    width = "stretch" if chart.width is alt.Undefined else "content"
    show_chart(chart, name, frame, select=drawing.opens, files=files, width=width)
