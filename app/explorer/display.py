"""What pages show: tables and charts with their downloads, dialogues as chats, and messages.

A download is created when it is requested, not on each run of the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl
import streamlit as st

from app.explorer.labels import literal, say
from app.explorer.study import Study
from app.explorer.uploads import FOLDER_PREFIX
from bws.command import json_ready
from bws.problems import Problem
from bws.tables import Interval, ResultTable

__all__ = [
    "MOST_ROWS",
    "as_csv",
    "as_drawing",
    "as_json",
    "show_chart",
    "show_chat",
    "show_missing_package",
    "show_problems",
    "show_result",
    "show_table",
]

MOST_ROWS = 500
"""Rows of a table that are sent to the page; a download has all."""
AVATARS = {"user": ":material/person:", "system": ":material/support_agent:"}
PROBLEMS_SHOWN = 10
UPLOADED = re.compile(rf"\S*{FOLDER_PREFIX}\w+/\w+/")
"""The folder of an uploaded file: its own name says more."""


def show_result(table: ResultTable, name: str) -> None:
    """Show a table of results and its notes, and offer its numbers as CSV and JSON.

    name: of the files, and unique on the page.
    """
    frame, specs = table.frame(), {column.key: column.spec for column in table.columns}
    texts = [
        pl.Series(column.key, [column.text(cell, "–") for cell in cells])
        for column, *cells in zip(table.columns, *table.rows, strict=True)
        if any(isinstance(cell, Interval) for cell in cells)
    ]
    limits = [f"{text.name}_{limit}" for text in texts for limit in ("low", "high")]
    parts = [key for key in frame.columns if key not in (*specs, *limits)]
    whole = pl.col(parts).cast(pl.String).fill_null(say("page.all"))
    shown = frame.drop(limits).with_columns(whole, *texts)
    number, other = st.column_config.NumberColumn, st.column_config.Column
    config = {
        key: number(say(f"tables.{key}"), format=f"%{specs[key]}")
        if kind.is_float()
        else other(say(f"tables.{key}"))
        for key, kind in shown.schema.items()
    }
    show_table(shown, name, frame, column_config=config)
    for note in table.notes:
        st.caption(literal(note))


def show_table(
    frame: pl.DataFrame, name: str, offered: pl.DataFrame | None = None, **settings: Any
) -> None:
    """Show a table, its first 500 rows where it has more, and offer it whole as CSV and JSON.

    name: of the files, and unique on the page. offered: what the files have, where that is not `frame`.
    settings: those of ``st.dataframe``.
    """
    whole = frame if offered is None else offered
    st.dataframe(
        frame.head(MOST_ROWS).fill_nan(None), **{"hide_index": True, "placeholder": "–", **settings}
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        if len(frame) > MOST_ROWS:
            st.caption(say("page.rows_shown", shown=MOST_ROWS, total=len(frame)))
        _offer(name, {"csv": lambda: as_csv(whole), "json": lambda: as_json(whole)})


def show_chart(
    chart: alt.Chart | alt.LayerChart, name: str, frame: pl.DataFrame, **settings: Any
) -> None:
    """Show a chart, and offer it as PNG and SVG and what it shows as CSV.

    name: of the files, and unique on the page. settings: those of ``st.altair_chart``.
    """
    st.altair_chart(chart, **{"width": "stretch", **settings})
    forms = {
        "png": lambda: as_drawing(chart, "png"),
        "svg": lambda: as_drawing(chart, "svg"),
        "csv": lambda: as_csv(frame),
    }
    with st.container(horizontal=True):
        _offer(name, forms)


def as_csv(frame: pl.DataFrame) -> bytes:
    """Return a table as CSV; lists in a cell are joined by `` | ``.

    >>> as_csv(pl.DataFrame({"a": [1], "b": [["x", "y"]]}))
    b'a,b\\n1,x | y\\n'
    """
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    flat = frame.with_columns(pl.col(lists).cast(pl.List(pl.String)).list.join(" | "))
    return flat.write_csv().encode("utf-8")


def as_json(frame: pl.DataFrame) -> bytes:
    """Return a table as a JSON list of objects; a number that is none is null."""
    return json.dumps(json_ready(frame.to_dicts()), ensure_ascii=False, indent=2).encode("utf-8")


def as_drawing(chart: alt.Chart | alt.LayerChart, form: str) -> bytes:
    """Return a chart as ``svg``, or as ``png`` at twice its size; on white, without the network."""
    from giccs.description.figures import chart_bytes

    return chart_bytes(chart.properties(background="white"), f".{form}")


def _offer(name: str, forms: Mapping[str, Callable[[], bytes]]) -> None:
    mime = {
        "csv": "text/csv",
        "json": "application/json",
        "png": "image/png",
        "svg": "image/svg+xml",
    }
    file = re.sub(r"[^\w.-]+", "-", name)
    for form, make in forms.items():
        st.download_button(
            form.upper(),
            make,
            f"{file}.{form}",
            mime[form],
            key=f"download {name}.{form}",
            on_click="ignore",
            type="tertiary",
            icon=":material/download:",
            help=say("page.download", form=form.upper()),
        )


def show_chat(study: Study, dialogue: str, *about: str) -> None:
    """Show the turns of a dialogue as they are, nothing in them rendered; `about` stands above them."""
    turns = study.turns[dialogue]
    told = [literal(part) for part in (dialogue, *about) if part]
    st.caption(" · ".join([*told, say("dialogues.turns", n=len(turns))]))
    for place, turn in enumerate(turns, start=1):
        last = place == len(turns)
        avatar = AVATARS.get(turn.speaker, ":material/chat_bubble:")
        with st.container(border=last), st.chat_message(turn.speaker or "?", avatar=avatar):
            if last:
                st.caption(f":material/flag: **{say('dialogues.last_turn')}**")
            st.text(turn.text)


def show_problems(what: str, problems: Sequence[Problem]) -> None:
    """Show a sentence and the first problems below it, what they quote as it is."""
    lines = [literal(UPLOADED.sub("", str(problem))) for problem in problems[:PROBLEMS_SHOWN]]
    more = len(problems) - len(lines)
    st.error("\n\n".join([what, *lines, *([say("page.more_problems", n=more)] if more else [])]))


def show_missing_package(what: str, needs: str, extra: str) -> None:
    """Say that a part of the page needs a package that is not there: ``spaCy``, of the extra ``stats``."""
    command = literal(f"pip install 'giccs[{extra}]'")
    st.info(say("page.missing_extra", what=what, needs=needs, command=command))
