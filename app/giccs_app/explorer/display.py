"""Elements shared by the pages: tables and charts with downloads, dialogues as chats, and messages.

Downloads are created on request, not on each run of the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl
import streamlit as st

from bws.command import json_ready
from bws.problems import Problem
from bws.tables import Interval, NumberText, ResultTable
from giccs_app.explorer.labels import current_language, keys, literal, local_numbers, say
from giccs_app.explorer.study import Study
from giccs_app.explorer.uploads import without_folder

__all__ = [
    "MAX_ROWS_SHOWN",
    "as_csv",
    "as_drawing",
    "as_json",
    "number_column",
    "show_chart",
    "show_chat",
    "show_missing_package",
    "show_problems",
    "show_result",
    "show_table",
]

MAX_ROWS_SHOWN = 500
"""Maximum number of rows sent to the browser; downloads contain all rows."""
MAX_TEXT_LENGTH = 80
"""Number of characters above which a cell of a table of results is cut, and repeated below the table."""
LOCALES: Mapping[str, Mapping[str, Any]] = {
    "en": {},
    "de": {
        "locale": {
            "number": {
                "decimal": ",", "thousands": ".", "grouping": [3], "percent": "\u00a0%",
                "currency": ["", "\u00a0€"],
            },
            "time": {
                "dateTime": "%A, %e. %B %Y, %X", "date": "%d.%m.%Y", "time": "%H:%M:%S",
                "periods": ["", ""],
                "days": [
                    "Sonntag", "Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag"
                ],
                "shortDays": ["So", "Mo", "Di", "Mi", "Do", "Fr", "Sa"],
                "months": [
                    "Januar", "Februar", "März", "April", "Mai", "Juni",
                    "Juli", "August", "September", "Oktober", "November", "Dezember",
                ],
                "shortMonths": [
                    "Jan", "Feb", "Mär", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"
                ],
            },
        }
    },
}  # fmt: skip
"""Language -> configuration of the formats of numbers and times in charts."""
AVATARS = {"user": ":material/person:", "system": ":material/support_agent:"}
MAX_PROBLEMS_SHOWN = 10


def show_result(
    table: ResultTable,
    name: str,
    titles: Mapping[str, str] | None = None,
    offered: pl.DataFrame | None = None,
) -> None:
    """Show a table of results with its notes, and offer the numbers as CSV and JSON.

    name: name of the files; unique on the page. titles: of columns, by default the labels ``tables.KEY``, or
    the titles in the table for other keys. offered: content of the files, by default that of the table.
    """
    frame, specs = table.to_frame("polars"), {column.key: column.spec for column in table.columns}
    texts = [
        pl.Series(column.key, [local_numbers(column.text(cell, "–")) for cell in cells])
        for column, *cells in zip(table.columns, *table.rows, strict=True)
        if any(isinstance(cell, Interval | NumberText) for cell in cells)
    ]
    limits = [f"{text.name}_{limit}" for text in texts for limit in ("low", "high")]
    subset_columns = [key for key in frame.columns if key not in (*specs, *limits)]
    filled = pl.col(subset_columns).cast(pl.String).fill_null(say("page.all"))
    table_frame = frame.drop(limits, strict=False).with_columns(filled, *texts)
    known = keys(current_language())
    headers = {column.key: column.header for column in table.columns}
    headers |= {
        key: say(f"tables.{key}") for key in table_frame.columns if f"tables.{key}" in known
    }
    headers |= titles or {}
    config = {
        key: number_column(headers[key], format=f"%{specs[key]}")
        if kind.is_float()
        else st.column_config.Column(headers[key])
        for key, kind in table_frame.schema.items()
    }
    show_table(table_frame, name, frame if offered is None else offered, column_config=config)
    cells = (cell for row in table.rows for cell in row)
    long_texts = [cell for cell in cells if isinstance(cell, str) and len(cell) > MAX_TEXT_LENGTH]
    for text in (*long_texts, *table.notes):
        st.caption(literal(text))


def number_column(title: str, format: str | None = None, **settings: Any) -> object:  # noqa: A002
    """Return a column configuration of numbers.

    format: printf format. It always has a decimal point; in German the format of the browser's locale is
    used.
    """
    if format is not None and current_language() != "en":
        format = "localized"  # noqa: A001
    return st.column_config.NumberColumn(title, format=format, **settings)


def show_table(
    frame: pl.DataFrame, name: str, offered: pl.DataFrame | None = None, **settings: Any
) -> None:
    """Show a table (at most 500 rows), and offer all rows as CSV and JSON.

    name: name of the files; unique on the page. offered: content of the files, by default `frame`.
    settings: passed to ``st.dataframe``.
    """
    download_frame = frame if offered is None else offered
    st.dataframe(
        frame.head(MAX_ROWS_SHOWN).fill_nan(None),
        **{"hide_index": True, "placeholder": "–", **settings},
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        if len(frame) > MAX_ROWS_SHOWN:
            st.caption(say("page.rows_shown", shown=MAX_ROWS_SHOWN, total=len(frame)))
        _offer(
            name, {"csv": lambda: as_csv(download_frame), "json": lambda: as_json(download_frame)}
        )


def show_chart(
    chart: alt.Chart | alt.LayerChart, name: str, frame: pl.DataFrame, **settings: Any
) -> None:
    """Show a chart, and offer it as PNG and SVG and its data as CSV.

    name: name of the files; unique on the page. settings: passed to ``st.altair_chart``.
    """
    st.altair_chart(
        chart.configure(**LOCALES[current_language()]), **{"width": "stretch", **settings}
    )
    forms = {
        "png": lambda: as_drawing(chart, "png"),
        "svg": lambda: as_drawing(chart, "svg"),
        "csv": lambda: as_csv(frame),
    }
    with st.container(horizontal=True):
        _offer(name, forms)


def as_csv(frame: pl.DataFrame) -> bytes:
    """Return a table as CSV; the elements of a list are joined by `` | ``.

    >>> as_csv(pl.DataFrame({"a": [1], "b": [["x", "y"]]}))
    b'a,b\\n1,x | y\\n'
    """
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    flat = frame.with_columns(pl.col(lists).cast(pl.List(pl.String)).list.join(" | "))
    return flat.write_csv().encode("utf-8")


def as_json(frame: pl.DataFrame) -> bytes:
    """Return a table as a JSON list of objects; NaN becomes null."""
    return json.dumps(json_ready(frame.to_dicts()), ensure_ascii=False, indent=2).encode("utf-8")


def as_drawing(chart: alt.Chart | alt.LayerChart, form: str) -> bytes:
    """Return a chart as ``svg``, or as ``png`` at twice its size, on a white background."""
    from bws.figures import chart_bytes

    return chart_bytes(chart.properties(background="white"), f".{form}")


def _offer(name: str, forms: Mapping[str, Callable[[], bytes]]) -> None:
    mime = {
        "csv": "text/csv",
        "json": "application/json",
        "png": "image/png",
        "svg": "image/svg+xml",
    }
    file = re.sub(r"[^\w.-]+", "-", name)
    for form, content in forms.items():
        st.download_button(
            form.upper(),
            content,
            f"{file}.{form}",
            mime[form],
            key=f"download {name}.{form}",
            on_click="ignore",
            type="tertiary",
            icon=":material/download:",
            help=say("page.download", form=form.upper()),
        )


def show_chat(study: Study, dialogue: str, *details: str) -> None:
    """Show the turns of a dialogue without rendering their text, below a line with its id and `details`."""
    turns = study.turns[dialogue]
    caption = [literal(part) for part in (dialogue, *details) if part]
    st.caption(" · ".join([*caption, say("dialogues.turns", n=len(turns))]))
    for index, turn in enumerate(turns, start=1):
        last = index == len(turns)
        avatar = AVATARS.get(turn.speaker, ":material/chat_bubble:")
        with st.container(border=last), st.chat_message(turn.speaker or "?", avatar=avatar):
            if last:
                st.caption(f":material/flag: **{say('dialogues.last_turn')}**")
            st.text(turn.text)


def show_problems(headline: str, problems: Sequence[Problem]) -> None:
    """Show a headline and the first problems, without rendering their text."""
    lines = [literal(without_folder(problem)) for problem in problems[:MAX_PROBLEMS_SHOWN]]
    more = len(problems) - len(lines)
    st.error(
        "\n\n".join([headline, *lines, *([say("page.more_problems", n=more)] if more else [])])
    )


def show_missing_package(feature: str, packages: str, extra: str) -> None:
    """Show that a feature requires packages of an extra that are not installed."""
    command = literal(f"pip install 'giccs[{extra}]'")
    st.info(say("page.missing_extra", what=feature, needs=packages, command=command))
