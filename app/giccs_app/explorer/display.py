"""Elements shared by the pages: tables and charts with downloads, dialogues as chats, and messages.

Downloads are created on request, not on each run of the page.

The argument `select` of tables and charts links views: it maps parameters of the link to columns. A row or
point that is selected sets these parameters, and the link selects the row or point of its values, so that
several tables and charts show the same selection, and the browser's *back* undoes it. The selection of a
widget is set from the link in each run and only read when it changes, so it cannot survive a navigation.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import streamlit as st

from bws.base.commands import json_ready
from bws.base.problems import Problem
from bws.base.tables import Interval, NumberText, ResultTable
from giccs_app.explorer import links
from giccs_app.explorer.labels import (
    current_language,
    format_number,
    keys,
    literal,
    local_numbers,
    plain,
    say,
)
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.search import hits, mark_hits
from giccs_app.explorer.study import Study
from giccs_app.explorer.uploads import without_folder

MAX_TURN_LENGTH = 1500
"""Number of characters above which the rest of a turn is shown on request, unless it has a searched word."""
DIALOGUE_FILTERS = ("words", "domain", "source", "n_turns", "score", "disagreement")
"""The parameters that filter dialogues."""
MAX_ROWS_SHOWN = 500
"""Maximum number of rows sent to the browser; downloads contain all rows."""
BY_JUDGMENT = {"tuple": "tuple", "annotator": "annotator"}
"""Parameters of the link -> columns by which a judgment is selected."""
SECTIONS = ("scores", "items", "annotators")
"""Names of the sections to which buttons of the verdict lead."""
TEXT_COLUMNS = ("utterance",)
"""Columns of tables with complete texts that have long texts."""
SELECTION = "selected"
"""Name of the selection of a point in charts."""
POINTS = ("point", "circle", "square")
"""Types of marks of which the selected one is enlarged."""
DEFAULT_POINT_SIZE, ENLARGEMENT = 60, 4
"""Area of a point without a size in pixels, and factor of the area of the selected point."""
OUTLINE_WIDTH = 2.5
"""Width of the outline of the selected cell in pixels."""
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
TEXT = "currentColor"
"""Colour of all texts of charts: that of the texts of the page, in each theme (in files: black)."""
TEXT_COLOURS: Mapping[str, Any] = {
    "axis": {"labelColor": TEXT, "titleColor": TEXT},
    "legend": {"labelColor": TEXT, "titleColor": TEXT},
    "header": {"labelColor": TEXT, "titleColor": TEXT},
    "title": {"color": TEXT, "subtitleColor": TEXT},
    "text": {"color": TEXT},
}
SVG = {"embedOptions": {"renderer": "svg"}}
"""`TEXT` is defined in SVG only; by default charts of many points are drawn on a canvas."""
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
    the titles in the table for other keys. Cells that are words have the labels ``tables.KEY_WORD``. offered:
    content of the files, by default that of the table.
    """
    frame, specs = table.to_frame("polars"), {column.key: column.spec for column in table.columns}
    known = keys(current_language())
    texts = {
        column.key: [local_numbers(column.text(cell, "–")) for cell in cells]
        for column, *cells in zip(table.columns, *table.rows, strict=True)
        if any(isinstance(cell, Interval | NumberText) for cell in cells)
    }
    limits = [f"{key}_{limit}" for key in texts for limit in ("low", "high")]
    subset_columns = [key for key in frame.columns if key not in (*specs, *limits)]
    filled = pl.col(subset_columns).cast(pl.String).fill_null(say("page.all"))
    table_frame = frame.drop(limits, strict=False).with_columns(filled)
    for key in table_frame.select(pl.col(pl.String)).columns:
        names = {name: f"tables.{key}_{name}" for name in table_frame[key].drop_nulls().unique()}
        local_names = {name: say(label) for name, label in names.items() if label in known}
        table_frame = table_frame.with_columns(pl.col(key).replace(local_names))
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
    download_frame = frame if offered is None else offered
    show_table(table_frame, name, download_frame, texts=texts, column_config=config)
    texts_of_rows = (
        cell
        for row in table.rows
        for column, cell in zip(table.columns, row, strict=True)
        if isinstance(cell, str) and not column.is_detail
    )
    long_texts = [text for text in texts_of_rows if len(text) > MAX_TEXT_LENGTH]
    for text in (*long_texts, *table.notes):
        st.caption(plain(local_remark(text)))


def number_column(title: str, format: str | None = None, **settings: Any) -> object:  # noqa: A002
    """Return a column configuration of numbers.

    format: printf format; `show_table` writes the numbers in the current language.
    """
    return st.column_config.NumberColumn(title, format=format, **settings)


def show_table(
    frame: pl.DataFrame,
    name: str,
    offered: pl.DataFrame | None = None,
    *,
    select: Mapping[str, str] | None = None,
    texts: Mapping[str, Sequence[str]] | None = None,
    **settings: Any,
) -> None:
    """Show a table (at most 500 rows), and offer all rows as CSV and JSON.

    name: name of the files; unique on the page. offered: content of the files, by default the visible columns
    of `frame`. select: parameter of the link -> column; rows can be selected, see above. texts: column ->
    texts shown instead of its values, by which it is sorted. settings: passed to ``st.dataframe``; a column
    with the configuration None is not visible.
    """
    config = settings.get("column_config", {})
    visible = frame.drop([column for column in frame.columns if config.get(column, "") is None])
    download_frame = visible if offered is None else offered
    if select:
        settings |= _row_selection(frame.head(MAX_ROWS_SHOWN), name, select)
    rows = visible.head(MAX_ROWS_SHOWN).fill_nan(None)
    if current_language() == "en" and not texts:
        data: object = rows
    else:
        data, columns = _styled(rows, config, texts or {})
        settings = {**settings, "column_config": columns}
    st.dataframe(data, **{"hide_index": True, "placeholder": "–", **settings})
    with st.container(horizontal=True, vertical_alignment="center"):
        if len(frame) > MAX_ROWS_SHOWN:
            st.caption(say("page.rows_shown", shown=MAX_ROWS_SHOWN, total=len(frame)))
        offer_files(
            name, {"csv": lambda: as_csv(download_frame), "json": lambda: as_json(download_frame)}
        )


def _styled(
    frame: pl.DataFrame, config: Mapping[str, Any], texts: Mapping[str, Sequence[str]]
) -> tuple[object, Mapping[str, object]]:
    """Return a pandas Styler with texts, and numbers and reasons in the current language; and the other
    configuration.

    The printf formats of Streamlit always have a decimal point. The values remain numbers, by which columns
    are sorted.
    """
    columns: dict[str, object] = dict(config)
    integers = [name for name, kind in frame.schema.items() if kind.is_integer()]
    formats: dict[str, Callable[[Any], str]] = dict.fromkeys(integers, partial(_format_value, ","))
    for name in (name for name, kind in frame.schema.items() if kind.is_float()):
        column: Any = columns.get(name)
        form = column["type_config"].get("format") if isinstance(column, dict) else None
        formats[name] = partial(_format_value, form or "%.4f")
        if form:
            columns[name] = {**column, "type_config": {**column["type_config"], "format": None}}
    for name in {"reason", "reasons"} & {*frame.columns}:
        reasons = [reason and local_remark(reason) for reason in frame[name]]
        frame = frame.with_columns(pl.Series(name, reasons, dtype=pl.String))
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    table: Any = frame.drop(lists).to_pandas(use_pyarrow_extension_array=True)  # with null integers
    for name in lists:
        table[name] = frame[name].to_list()
    for name, column_texts in texts.items():
        cells = map(_TextNumber, frame[name].fill_null(math.nan), column_texts[: len(frame)])
        table[name] = np.fromiter(cells, dtype=object, count=len(frame))
        formats[name] = attrgetter("text")
    return table[frame.columns].style.format(formats, na_rep="–"), columns


class _TextNumber(float):
    """A number of a table that is shown as a text."""

    text: str

    def __new__(cls, value: float, text: str) -> _TextNumber:
        number = super().__new__(cls, value)
        number.text = text
        return number


def _format_value(form: str, value: float) -> str:
    """Return a number by a printf format.

    >>> _format_value("%+.2f", 0.125)
    '+0.12'
    """
    return format_number(value, form.removeprefix("%"))


def show_text_table(
    frame: pl.DataFrame,
    name: str,
    titles: Mapping[str, str],
    formats: Mapping[str, str],
    words: str = "",
) -> None:
    """Show a table with complete texts (at most 500 rows), and offer all rows as CSV and JSON.

    name: name of the files; unique on the page. titles: of all columns. formats: of the columns of numbers,
    as of `format`. words: marked in the columns `TEXT_COLUMNS`. Each text is displayed in its own direction;
    its characters are escaped.
    """
    st.html(_text_table(frame.head(MAX_ROWS_SHOWN), titles, formats, words))
    with st.container(horizontal=True, vertical_alignment="center"):
        if len(frame) > MAX_ROWS_SHOWN:
            st.caption(say("page.rows_shown", shown=MAX_ROWS_SHOWN, total=len(frame)))
        offer_files(name, {"csv": lambda: as_csv(frame), "json": lambda: as_json(frame)})


def _text_table(
    frame: pl.DataFrame, titles: Mapping[str, str], formats: Mapping[str, str], words: str
) -> str:
    head = "".join(
        f'<th scope="col"{_class(name, formats)}>{html.escape(titles[name])}</th>'
        if titles[name]
        else "<td></td>"
        for name in frame.columns
    )
    rows = "".join(
        "<tr>"
        + "".join(_text_cell(name, row[name], titles, formats, words) for name in row)
        + "</tr>"
        for row in frame.iter_rows(named=True)
    )
    return (
        f'<div class="giccs-texts"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _text_cell(
    name: str, value: Any, titles: Mapping[str, str], formats: Mapping[str, str], words: str
) -> str:
    attributes = f'{_class(name, formats)} data-title="{html.escape(titles[name])}"'
    if name not in formats:
        text = mark_hits(str(value), words if name in TEXT_COLUMNS else "")
        return f'<td{attributes} dir="auto">{text}</td>'
    is_number = isinstance(value, (int, float)) and value == value
    return f"<td{attributes}>{format_number(value, formats[name]) if is_number else '–'}</td>"


def _class(name: str, formats: Mapping[str, str]) -> str:
    """Return the class of the cells of a column; columns of marks and letters have none."""
    if name in formats:
        return ' class="number"'
    return ' class="text"' if name in TEXT_COLUMNS else ""


def _row_selection(rows: pl.DataFrame, name: str, select: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of a table whose selected row is that of the link."""
    key = f"select {name}"
    texts = {
        parameter: pl.col(column).cast(pl.String).replace("", None)
        for parameter, column in select.items()
    }
    choices = rows.select(**texts).to_dicts()
    linked = _linked(select)
    selected = [choices.index(linked)] if linked in choices else []
    state = st.session_state.get(key)
    if (state["selection"]["rows"] if state else []) != selected:
        st.session_state[key] = {"selection": {"rows": selected, "columns": [], "cells": []}}
    return {
        "key": key,
        "on_select": partial(_go_to_row, key, choices),
        "selection_mode": "single-row",
    }


def _linked(select: Mapping[str, str]) -> dict[str, str | None] | None:
    """Return the parameters of a selection from the link; None if it has none of them."""
    values = {parameter: links.value(parameter) for parameter in select}
    return values if any(values.values()) else None


def _go_to_row(key: str, choices: Sequence[Mapping[str, str | None]]) -> None:
    """Store the selected row in the link; called by Streamlit when the selection has changed."""
    if links.navigated():
        return
    rows = st.session_state[key]["selection"]["rows"]
    links.go(**(choices[rows[0]] if rows else dict.fromkeys(choices[0])))


def show_chart(
    chart: alt.Chart | alt.LayerChart,
    name: str,
    frame: pl.DataFrame,
    *,
    select: Mapping[str, str] | None = None,
    files: bool = True,
    **settings: Any,
) -> None:
    """Show a chart, and offer it as PNG and SVG and its data as CSV, unless `files` is False.

    name: name of the files; unique on the page. select: parameter of the link -> field of the chart; points
    can be selected, see above. settings: passed to ``st.altair_chart``.
    """
    selectable = chart
    if select and not (isinstance(chart, alt.LayerChart) and not chart.layer):  # nothing is drawn
        linked = _linked(select)
        selectable = _with_selection(chart, select, linked)
        settings |= _point_selection(f"select {name} {linked}", select)
    localized = chart.configure(**LOCALES[current_language()])
    coloured = selectable.configure(**LOCALES[current_language()], **TEXT_COLOURS)
    drawn: Any = _Unchecked(coloured.properties(usermeta=SVG))
    st.altair_chart(drawn, **{"width": "stretch", **settings})
    if not files:
        return
    forms = {
        "png": lambda: as_drawing(localized, "png"),
        "svg": lambda: as_drawing(localized, "svg"),
        "csv": lambda: as_csv(frame),
    }
    with st.container(horizontal=True):
        offer_files(name, forms)


class _Unchecked:
    """A chart for Streamlit that is not validated again as a whole: its parts were when they were made."""

    def __init__(self, chart: alt.Chart | alt.LayerChart) -> None:
        self._chart = chart

    def to_dict(self) -> dict[str, Any]:
        """Return the chart in Vega-Lite."""
        return self._chart.to_dict(validate=False)


def _with_selection(
    chart: alt.Chart | alt.LayerChart,
    select: Mapping[str, str],
    linked: Mapping[str, str | None] | None,
) -> alt.Chart | alt.LayerChart:
    """Return a chart whose points can be clicked; the selected one is drawn larger."""
    fields = list(select.values())
    value = [{select[key]: text for key, text in linked.items()}] if linked else alt.Undefined
    point = alt.selection_point(SELECTION, fields=fields, value=value, toggle=False)
    if not isinstance(chart, alt.LayerChart):
        return _enlarge(chart, point).add_params(point)
    selectable = chart.copy(deep=False)
    selectable.layer = [
        _enlarge(layer, point) if isinstance(layer, alt.Chart) else layer for layer in chart.layer
    ]
    return selectable.add_params(point)


def _enlarge(layer: alt.Chart, point: alt.Parameter) -> alt.Chart:
    """Return a layer of points with the selected one enlarged; other layers unchanged.

    Filled points also have an outline, in the colour of texts, and cells of a matrix only this.
    """
    mark = layer.mark.to_dict() if isinstance(layer.mark, alt.MarkDef) else {"type": layer.mark}
    is_cell = mark["type"] == "rect" and layer.encoding.x2 is alt.Undefined
    if mark["type"] not in POINTS and not is_cell:
        return layer
    encoding: dict[str, tuple[Any, Any]] = {}
    if not is_cell:
        size = mark.setdefault("size", DEFAULT_POINT_SIZE)
        encoding["size"] = (size * ENLARGEMENT, size)
    else:
        encoding["strokeWidth"] = (OUTLINE_WIDTH, mark.get("strokeWidth", 1))
    if mark.get("filled", mark["type"] != "point"):
        encoding["stroke"] = (TEXT, mark.get("stroke", "transparent"))
    clickable = layer.copy(deep=False)
    clickable.mark = alt.MarkDef(**{**mark, "cursor": "pointer"})
    return clickable.encode(
        **{
            channel: alt.condition(point, alt.value(selected), alt.value(other), empty=False)
            for channel, (selected, other) in encoding.items()
        }
    )


def _point_selection(key: str, select: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of a chart whose points can be selected.

    key: contains the selection of the link. The selection of a chart cannot be set, so another selection
    needs another widget.
    """
    return {
        "key": key,
        "on_select": partial(_go_to_point, key, select),
        "selection_mode": [SELECTION],
    }


def _go_to_point(key: str, select: Mapping[str, str]) -> None:
    """Store the selected point in the link; called by Streamlit when the selection has changed."""
    if links.navigated():
        return
    points = st.session_state[key]["selection"].get(SELECTION) or [{}]
    links.go(**{parameter: points[0].get(field) for parameter, field in select.items()})


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
    from bws.base.charts import chart_bytes

    return chart_bytes(chart.properties(background="white"), f".{form}")


def offer_files(name: str, forms: Mapping[str, Callable[[], bytes]]) -> None:
    """Show a button per form to download a file, which is created on request."""
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


def show_chat(study: Study, dialogue: str, *details: str, words: str = "") -> None:
    """Show the turns of a dialogue without rendering their text, below a line with its id and `details`.

    words: marked in the turns.
    """
    turns = study.turns[dialogue]
    caption = [literal(part) for part in (dialogue, *details) if part]
    st.caption(" · ".join([*caption, say("dialogues.turns", n=len(turns))]))
    for index, turn in enumerate(turns, start=1):
        last = index == len(turns)
        avatar = AVATARS.get(turn.speaker, ":material/chat_bubble:")
        with st.container(border=last), st.chat_message(turn.speaker or "?", avatar=avatar):
            if last:
                st.caption(f":material/flag: **{say('dialogues.last_turn')}**")
            if hits(turn.text, words):
                st.html(f'<div class="giccs-text" dir="auto">{mark_hits(turn.text, words)}</div>')
            elif len(turn.text) > MAX_TURN_LENGTH:
                end = turn.text.rfind(" ", 0, MAX_TURN_LENGTH)
                end = MAX_TURN_LENGTH if end < 0 else end
                st.text(f"{turn.text[:end]} …")
                with st.expander(say("dialogues.more", n=len(turn.text) - end)):
                    st.text(turn.text[end:])
            else:
                st.text(turn.text)


def show_selected_item(study: Study, item: str | None, place: str = "") -> None:
    """Show an item and, if it has a dialogue, a button that opens it; without an item, how to select one.

    place: see `offer_view`.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        rows = study.items.filter(pl.col("item_id") == item) if item else study.items.head(0)
        for row in rows.iter_rows(named=True):
            st.text(f"▶ {item}: {row['utterance']}", width="content")
            if not study.is_plain:
                offer_view(
                    "page.open_dialogue",
                    place,
                    page="dialogues",
                    dialogue=row["dialogue_id"],
                    item=item,
                )
        if rows.is_empty():
            st.caption(say("page.select_plain_item" if study.is_plain else "page.select_item"))


def section(name: str, title: str, help_text: str | None = None) -> None:
    """Show the title of a section that `offer_view` can open, one of `SECTIONS`."""
    with st.container(key=f"section-{name}"):
        st.subheader(title, anchor=False, help=help_text)


def offer_view(label: str, place: str = "", /, **parameters: str | None) -> None:
    """Show a button that opens another view, at the `section` named `place` if it has one.

    label: key of its label, with `place` also the key of the button.
    """
    st.button(
        say(label),
        key=f"{label} {place}".rstrip(),
        type="tertiary",
        icon=":material/open_in_new:",
        on_click=links.go_to,
        args=(place,),
        kwargs=parameters,
    )


def offer_dialogue(dialogue: str, item: str | None = None, place: str = "") -> None:
    """Show a button that opens a dialogue without filters; place: see `offer_view`."""
    filters = dict.fromkeys(DIALOGUE_FILTERS)
    label = "page.open_dialogue"
    offer_view(label, place, page="dialogues", dialogue=dialogue, item=item, **filters)


def show_item(
    study: Study,
    item: str | None,
    candidates: pl.DataFrame,
    titles: Mapping[str, str],
    formats: Mapping[str, str],
) -> None:
    """Show the dialogue of an item beside a table of its candidates, in which the item is marked.

    item: nothing is shown for None or an item that is not in `candidates`. candidates: item_id,
    dialogue_id, utterance, score and the columns of `formats`, of this and other dialogues. titles, formats:
    see `show_text_table`.
    """
    for dialogue in candidates.filter(pl.col("item_id") == (item or ""))["dialogue_id"]:
        mark = pl.when(pl.col("item_id") == item).then(pl.lit("▶")).otherwise(pl.lit(""))
        rows = candidates.filter(pl.col("dialogue_id") == dialogue).sort("score", descending=True)
        chat, ranked = st.columns([2, 3], gap="large")
        with chat:
            show_chat(study, dialogue)
        with ranked:
            st.markdown(f"**{say('page.candidates')}**")
            table = rows.select(mark.alias("this"), "utterance", *formats)
            show_text_table(table, f"candidates {dialogue}", {"this": "", **titles}, formats)


def show_problems(headline: str, problems: Sequence[Problem]) -> None:
    """Show a headline and the first problems, without rendering their text."""
    lines = [
        literal(local_remark(without_folder(problem))) for problem in problems[:MAX_PROBLEMS_SHOWN]
    ]
    more = len(problems) - len(lines)
    st.error(
        "\n\n".join([headline, *lines, *([say("page.more_problems", n=more)] if more else [])])
    )


def show_missing_values(frame: pl.DataFrame, name: str, histories: Mapping[str, str]) -> None:
    """Show the names of the rows without a value, which are not in the chart, with the reason.

    frame: the column `name`, value (NaN or null if missing), reason, and optionally history. histories: names
    of the history conditions.
    """
    missing = frame.filter(pl.col("value").fill_nan(None).is_null())
    if missing.is_empty():
        return
    lines = [say("page.no_value", n=len(missing))]
    for row in missing.iter_rows(named=True):
        history = histories.get(row.get("history") or "", row.get("history"))
        names = ", ".join(literal(part) for part in (row[name], history) if part)
        lines.append(f"{names}: {plain(local_remark(row['reason']))}" if row["reason"] else names)
    st.caption("  \n".join(lines))


def show_missing_package(feature: str, packages: str, extra: str) -> None:
    """Show that a feature requires packages of an extra that are not installed."""
    command = literal(f"pip install 'giccs[{extra}]'")
    st.info(say("page.missing_extra", what=feature, needs=packages, command=command))
