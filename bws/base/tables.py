"""Tables of results, rendered as text, Markdown, LaTeX, CSV, or a data frame."""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise, zip_longest
from typing import Any, Literal, Protocol, runtime_checkable

from bws.base.frames import FrameLibrary, data_frame
from bws.base.latex import (
    comment,
    filled_lines,
    fitted_tabular,
    latex_text,
    long_table,
    table_environment,
    tabular,
)
from bws.base.problems import suggestion
from bws.base.rows import csv_text

FORMATS = ("table", "markdown", "latex", "csv")
"""Formats of commands; in Python also ``html``."""
TABULATE_FORMATS = {"table": "simple", "markdown": "github", "html": "html"}
ALL_GROUPS = "all"
MAX_PAGE_ROWS = 45
"""Number of rows of a LaTeX table on one page."""
MAX_ROWS_SHOWN = 20
"""Number of rows of a table on the terminal of which only the first ones are of interest."""
WIDTH = 100
"""Number of characters in a line of text if the output is not a terminal, and at least of a table."""


@runtime_checkable
class Interval(Protocol):
    """A number with the limits of its interval; the limits are NaN without an interval."""

    @property
    def value(self) -> float: ...  # noqa: D102
    @property
    def low(self) -> float: ...  # noqa: D102
    @property
    def high(self) -> float: ...  # noqa: D102


Emphasis = Literal["", "bold", "underline"]
"""Emphasis of a number, the text up to its first space."""
EMPHASIS = {
    "table": {"bold": "«{}»", "underline": "‹{}›"},
    "markdown": {"bold": "**{}**", "underline": "<u>{}</u>"},
    "latex": {"bold": r"\textbf{{{}}}", "underline": r"\underline{{{}}}"},
}
"""Format -> emphasis -> number with it."""


@dataclass(frozen=True, slots=True)
class NumberText:
    """A number with a text of its own, which starts with the number."""

    text: str
    value: float
    emphasis: Emphasis = ""


Cell = str | int | float | Interval | NumberText | Mapping[str, Any] | None
"""Text, a number, a number with its interval or text, column values of a group, or nothing."""


@dataclass(frozen=True, slots=True)
class TableStyle:
    """Format of printed tables."""

    form: str = "table"
    """One of `FORMATS`."""
    columns: Sequence[str] = ()
    """Keys of the columns, in order; empty for all. Only the tables with the most of them are printed."""
    caption: str = ""
    """LaTeX: caption of a floating table; those of further tables end with their titles."""
    label: str = ""
    """LaTeX: label of a floating table; those of further tables end with their numbers."""
    bold_best: bool = False
    """LaTeX: whether the best values of columns with an order are in bold."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    key: str
    """Name of the column in CSV files and data frames."""
    title: str = ""
    spec: str = ""
    """Format specification of its numbers, such as ``.3f``."""
    unit: str = ""
    """Suffix of its numbers, such as `` %``."""
    group: str = ""
    """Title shared by adjacent columns."""
    source: str = ""
    """JSON Pointer of its numbers relative to the source of their row, without the first ``/``."""
    limits: str = ""
    """The same of the object with the limits ``low`` and ``high``, if `source` is a number without them."""
    error: str = ""
    """Name of the standard error in `extra` of its numbers, which is shown as ``value ± error``."""
    has_limits: bool = True
    """Whether the limits of an interval are shown."""
    align: Literal["left", "right", "decimal"] = "left"
    is_detail: bool = False
    """Whether it occurs only in CSV files and data frames."""
    best: Literal["", "max", "min"] = ""
    """Whether the highest or the lowest number is the best one."""
    family: str = ""
    """The best number of a row is that of the columns of a family."""
    parts: Sequence[Column] = ()
    """For a column of groups, the names of its columns; without them, texts have one column with the group's
    name."""

    @property
    def header(self) -> str:
        """Title including that of the group."""
        return " ".join(filter(None, (self.group, self.title)))

    def text(self, cell: Cell, missing: str) -> str:
        """Return a cell as text; `missing` for NaN.

        >>> Column("share", spec=".1f", unit=" %").text(12.34, "–")
        '12.3 %'
        """
        if cell is None or isinstance(cell, str):
            return cell or ""
        if isinstance(cell, Mapping):
            return part_name(cell)
        if isinstance(cell, NumberText):
            return cell.text
        if isinstance(cell, Interval):
            value = self.text(cell.value, missing)
            if math.isnan(cell.value):
                return value
            error = getattr(cell, "extra", {}).get(self.error, math.nan)
            value += "" if math.isnan(error) else f" ± {number_text(error, self.spec)}"
            return f"{value} {limits_text(cell, self.spec)}" if self.has_limits else value
        return missing if math.isnan(cell) else f"{number_text(cell, self.spec)}{self.unit}"


def keyed_columns(
    titles: Iterable[str], spec: str = "", best: Literal["", "max", "min"] = ""
) -> list[Column]:
    """Return columns with their titles as keys, without commas and numbered if equal.

    >>> [column.key for column in keyed_columns(["a, 4 bits", "b", "b"])]
    ['a 4 bits', 'b', 'b #2']
    """
    columns: list[Column] = []
    for title in titles:
        count = sum(column.title == title for column in columns) + 1
        key = title.replace(",", "")
        columns.append(Column(key if count == 1 else f"{key} #{count}", title, spec, best=best))
    return columns


def limits_text(interval: Interval, spec: str) -> str:
    """Return ``[low, high]``, or a dash in brackets without an interval."""
    if math.isnan(interval.low):
        return "[–]"
    return f"[{number_text(interval.low, spec)}, {number_text(interval.high, spec)}]"


def number_text(value: float, spec: str) -> str:
    """Return a formatted number, as `format`; a number that is rounded to 0 has no minus sign.

    >>> number_text(-0.0001, ".3f"), number_text(-0.0001, "+.3f"), number_text(-0.2, ".1f")
    ('0.000', '+0.000', '-0.2')
    """
    if not spec.endswith(("f", "%")):
        return format(value, spec)
    sign = spec[:1] if spec[:1] in "+- " else ""
    return format(value, f"{sign}z{spec.removeprefix(sign)}")


def part_name(values: Mapping[str, Any]) -> str:
    """Return the name of a group in tables and notes: ``source=CROWDSS, n_turns=3``, or ``all``."""
    return ", ".join(f"{name}={value}" for name, value in values.items()) or ALL_GROUPS


class Explanation(str):
    """A note that explains the numbers of several tables."""

    __slots__ = ()


@dataclass(frozen=True)
class ResultTable:
    """A table of results.

    >>> table = ResultTable([Column("item", "item"), Column("score", "score", ".2f")], [("a", 0.5)])
    >>> print(table)
    item    score
    ------  -------
    a       0.50
    >>> print(table.csv(), end="")
    item,score
    a,0.5
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    """One cell per column."""
    notes: Sequence[str] = ()
    """Notes below the table."""
    title: str = ""
    missing: str = "undefined"
    """Text for NaN."""
    sources: Sequence[str | Sequence[str]] = ()
    """JSON Pointer of each row's numbers in the ``--json`` output of the command, or of each of its cells."""
    reference_rows: int = 0
    """Number of last rows that are no candidates for the best value."""
    compares_rows: bool = False
    """Whether the best value is that of each row, not of each column."""
    families: Sequence[str] = ()
    """Family of each row; the best values are those of the rows of a family. By default, all are one."""
    introduction: Sequence[str] = ()
    """Lines between title and table."""

    def __str__(self) -> str:
        """Return the table and its notes for the terminal."""
        text = [self.text()] if self.rows else []
        return "\n".join([*text, *remarks(self.notes, "table")])

    def text(self, form: str = "table") -> str:
        """Return the table in a format of `FORMATS` or as ``html``, without title and notes.

        A title shared by several columns is above the first of them.
        """
        if form == "csv":
            return self.csv()
        if form == "latex":
            return self.latex()
        align = [column.align for column in self.text_columns()]
        return tabulated(self.text_rows(form=form), self._headers(), form, align)

    def _headers(self) -> list[str]:
        columns = self.text_columns()
        groups = ["", *(column.group for column in columns)]
        return [
            column.title if column.group and column.group == before else column.header
            for before, column in zip(groups, columns, strict=False)
        ]

    def latex(self, caption: str = "", label: str = "", *, bold_best: bool = False) -> str:
        """Return the table as a ``tabular``, in a ``table`` with caption or label if they are given.

        A table of more than `MAX_PAGE_ROWS` rows is a ``longtable``.

        bold_best: whether the best numbers of columns with an order are in bold, all of several equal ones.
        """
        columns = self.text_columns()
        groups = [latex_text(column.group) for column in columns]
        shared = [group for group, other in pairwise(groups) if group and group == other]
        headers = [
            latex_text(column.title if group in shared else column.header)
            for group, column in zip(groups, columns, strict=True)
        ]
        table = self.with_best() if bold_best else self
        rows = table.text_rows(form="latex")
        text = fitted_tabular(rows, headers, groups, [column.align for column in columns])
        enclose = long_table if len(rows) > MAX_PAGE_ROWS else table_environment
        return enclose(text, caption, label)

    def with_best(self) -> ResultTable:
        """Return the table with the best numbers in bold, and those that look equal."""
        rows = [list(row) for row in self.rows]
        for line in self._compared_cells():
            values = {(i, n): _value(rows[i][n]) for i, n in line}
            defined = [cell for cell in line if not math.isnan(values[cell])]
            texts = {(i, n): self.columns[n].text(rows[i][n], "") for i, n in defined}
            if defined:
                best = min if self.columns[line[0][1]].best == "min" else max
                best_number = texts[best(defined, key=values.__getitem__)].partition(" ")[0]
                for i, n in defined:
                    if texts[i, n].partition(" ")[0] == best_number:
                        rows[i][n] = NumberText(texts[i, n], values[i, n], "bold")
        return replace(self, rows=rows)

    def _compared_cells(self) -> Iterable[list[tuple[int, int]]]:
        """Return the lists of cells (row, column) each of which has a best number."""
        lines: dict[tuple[int, str], list[tuple[int, int]]] = {}
        for n, column in enumerate(self.columns):
            for i in range(len(self.rows) - self.reference_rows) if column.best else ():
                of_row = self.families[i] if self.families else ""
                line = (i, column.family) if self.compares_rows else (n, of_row)
                lines.setdefault(line, []).append((i, n))
        return lines.values()

    def column_keys(self) -> list[str]:
        """Return the keys of the columns."""
        return [column.key for column in self.columns]

    def text_columns(self) -> list[Column]:
        """Return the columns for texts: without details, and with one column per name of a group."""
        visible_columns = (column for column in self.columns if not column.is_detail)
        return [each for column in visible_columns for each in column.parts or [column]]

    def text_rows(self, missing: str | None = None, form: str = "") -> list[list[str]]:
        """Return the cells of `text_columns` as texts, with the emphasis and the escapes of a format."""
        blank = self.missing if missing is None else missing
        return [
            [
                _formatted(text, cell, form)
                for column, cell in zip(self.columns, row, strict=True)
                if not column.is_detail
                for text in _cell_texts(column, cell, blank)
            ]
            for row in self.rows
        ]

    def select(self, *keys: str) -> ResultTable:
        """Return a table of some columns, in the given order."""
        index = {column.key: n for n, column in enumerate(self.columns)}
        columns = [self.columns[index[key]] for key in keys]
        rows = [[row[index[key]] for key in keys] for row in self.rows]
        return replace(self, columns=columns, rows=rows)

    def csv(self) -> str:
        """Return the table as CSV with full precision; NaN and missing group values are empty."""
        values = self._values()
        rows = zip(*values.values(), strict=True)
        return csv_text((["" if cell != cell else cell for cell in row] for row in rows), [*values])

    def to_frame(self, library: FrameLibrary = "pandas") -> Any:
        """Return the table as a data frame of pandas or Polars, with full precision.

        A number with an interval has two additional columns, its key with ``_low`` and ``_high``.
        """
        return data_frame(self._values(), library)

    def html(self) -> str:
        """Return the table as HTML; texts are escaped."""
        return "\n".join([self.text("html"), *(f"<p>{escape(note)}</p>" for note in self.notes)])

    def width(self) -> int:
        """Return the number of characters in a line of the table as text, without wrapping."""
        columns = zip(self._headers(), *self.text_rows(), strict=True)
        widths = [max(map(len, column)) for column in columns]
        return sum(widths) + 2 * (len(widths) - 1)

    def head(self, count: int) -> ResultTable:
        """Return the table with its first rows, and a note on the number of all rows."""
        if len(self.rows) <= count:
            return self
        notes = [f"{count} of {len(self.rows)} rows", *self.notes]
        return replace(self, rows=self.rows[:count], notes=notes, sources=self.sources[:count])

    def _values(self) -> dict[str, list[Any]]:
        """Return names and plain values of the columns."""
        values: dict[str, list[Any]] = {}
        for n, column in enumerate(self.columns):
            values.update(_plain_values(column, [row[n] for row in self.rows]))
        return values


def _value(cell: Cell) -> float:
    """Return the number in a cell; NaN without one."""
    if isinstance(cell, (NumberText, Interval)):
        return cell.value
    return float(cell) if isinstance(cell, (int, float)) else math.nan


def _formatted(text: str, cell: Cell, form: str) -> str:
    """Return the text of a cell in a format; an emphasis is on the number at its start."""
    escaped = latex_text if form == "latex" else str
    if not isinstance(cell, NumberText) or not cell.emphasis or form not in EMPHASIS:
        return escaped(text)
    number, space, interval = text.partition(" ")
    return EMPHASIS[form][cell.emphasis].format(escaped(number)) + escaped(space + interval)


def _cell_texts(column: Column, cell: Cell, missing: str) -> Iterator[str]:
    if not column.parts or not isinstance(cell, Mapping):
        yield column.text(cell, missing)
    elif not cell:
        yield from (ALL_GROUPS, *[""] * (len(column.parts) - 1))
    else:
        yield from (f"{cell[part.key] or '(none)'}{part.unit}" for part in column.parts)


def _plain_values(column: Column, cells: Sequence[Cell]) -> Iterator[tuple[str, list[Any]]]:
    """Yield name and values of each plain column derived from a column."""
    mappings = [cell for cell in cells if isinstance(cell, Mapping)]
    if mappings or column.parts:
        names = [
            *(part.key for part in column.parts),
            *(name for cell in mappings for name in cell),
        ]
        yield from ((name, [cell.get(name) for cell in mappings]) for name in dict.fromkeys(names))
    elif any(isinstance(cell, NumberText) for cell in cells):
        yield column.key, [cell.value if isinstance(cell, NumberText) else cell for cell in cells]
    elif any(isinstance(cell, Interval) for cell in cells):
        yield column.key, [cell.value if isinstance(cell, Interval) else cell for cell in cells]
        for limit in ("low", "high"):
            yield f"{column.key}_{limit}", [getattr(cell, limit, None) for cell in cells]
    else:
        yield column.key, list(cells)


def rendered(tables: Sequence[ResultTable], style: TableStyle, *, titles: bool = True) -> str:
    """Return tables with their titles and notes in a format.

    Notes that are the same list for adjacent tables are below the last of them, and so are explanations that
    both have. titles: whether tables for
    the terminal have titles. Raises ValueError for unknown columns, and for several tables as CSV.
    """
    tables = _with_columns(tables, style.columns) if style.columns else tables
    if style.form == "csv":
        if len(tables) > 1:
            raise ValueError(
                f"CSV has a single table, not {len(tables)}; omit some, or select columns"
            )
        return tables[0].csv() if tables else ""
    return "\n\n".join(
        _rendered(
            replace(table, notes=_own_notes(table, after)) if after else table,
            style,
            number,
            titles=titles,
        )
        for number, (table, after) in enumerate(zip_longest(tables, tables[1:]), start=1)
    )


def _own_notes(table: ResultTable, after: ResultTable) -> list[str]:
    """Return the notes of a table that the next table does not repeat."""
    if table.notes is after.notes:
        return []
    return [
        line for line in table.notes if not (isinstance(line, Explanation) and line in after.notes)
    ]


def _with_columns(tables: Sequence[ResultTable], keys: Sequence[str]) -> list[ResultTable]:
    """Return the tables with the most of these columns, each with only those."""
    known_keys = dict.fromkeys(key for table in tables for key in table.column_keys())
    for key in keys:
        if key not in known_keys:
            names = ", ".join(known_keys)
            raise ValueError(
                f"there is no column {key!r}{suggestion(key, known_keys)}; expected {names}"
            )
    present = [[key for key in keys if key in table.column_keys()] for table in tables]
    most = max(map(len, present))
    pairs = zip(tables, present, strict=True)
    return [table.select(*selected) for table, selected in pairs if len(selected) == most]


def _rendered(table: ResultTable, style: TableStyle, number: int, *, titles: bool) -> str:
    title = [f"{heading(table.title, style.form)}\n"] if table.title and titles else []
    title += [*remarks(table.introduction, style.form), ""] if table.introduction else []
    notes = (
        ["", *remarks(table.notes, style.form)]
        if table.notes and titles
        else remarks(table.notes, style.form)
    )
    if not table.rows and notes:
        return "\n".join([*title, *remarks(table.notes, style.form)])
    if style.form != "latex":
        return "\n".join([*title, table.text(style.form), *notes])
    is_first = number == 1 or not table.title
    caption = style.caption if is_first or not style.caption else f"{style.caption}: {table.title}"
    label = f"{style.label}-{number}" if style.label and number > 1 else style.label
    content = table.latex(caption, label, bold_best=style.bold_best)
    return "\n".join([*title, content, *notes])


def heading(text: str, form: str) -> str:
    """Return a heading in a format."""
    return {"markdown": f"### {text}", "latex": f"% {text}"}.get(form, text)


def remarks(lines: Sequence[str], form: str) -> list[str]:
    """Return lines below a table; comments in LaTeX, wrapped for the terminal."""
    if form == "latex":
        return comment(lines)
    return [wrapped(line) for line in lines] if form == "table" else list(lines)


def wrapped(line: str, indent: str = "  ") -> str:
    """Return a line wrapped to the width of the terminal; continuation lines are indented."""
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return (
        textwrap.fill(line, _line_width(), subsequent_indent=indent, **options)
        if line.strip()
        else line
    )


def _line_width() -> int:
    """Return the width of the terminal, or `WIDTH` if the output is none."""
    return shutil.get_terminal_size((WIDTH, 24)).columns


def tabulated(
    rows: Sequence[Sequence[Any]],
    headers: Sequence[str],
    form: str = "table",
    align: Sequence[str] | None = None,
) -> str:
    """Return a table in a format of `FORMATS`; cells are written unchanged, left-aligned by default.

    A table that is too wide for the terminal has wrapped cells.
    """
    from tabulate import tabulate

    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if form == "latex":
        cells = [[latex_text(text) for text in row] for row in texts]
        return tabular(cells, [latex_text(title) for title in headers], (), align)
    style = TABULATE_FORMATS.get(form, form)
    if form == "table" and (widths := _wrapped_widths(texts, headers)):
        texts = [[_folded(text, widths[n]) for n, text in enumerate(row)] for row in texts]
        headers = [_folded_title(title, widths[n]) for n, title in enumerate(headers)]
        with _narrow_headers():
            return str(
                tabulate(texts, headers, tablefmt=style, disable_numparse=True, colalign=align)
            )
    return str(tabulate(texts, headers, tablefmt=style, disable_numparse=True, colalign=align))


@contextmanager
def _narrow_headers() -> Iterator[None]:
    """Let tabulate make columns as narrow as their headers."""
    import tabulate

    padding = tabulate.MIN_PADDING
    tabulate.MIN_PADDING = 0
    try:
        yield
    finally:
        tabulate.MIN_PADDING = padding


def _wrapped_widths(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> list[int]:
    """Return widths of columns with which a table fits the terminal; empty if it fits without wrapping.

    The widest columns are wrapped first: cells at spaces outside brackets, headers also at hyphens; then
    cells also at spaces in brackets. Names and numbers are not divided, so that a table of very many columns
    may be wider.
    """
    import tabulate

    count = max(map(len, [*rows, headers]), default=0)
    cells = [[row[n] for row in rows if n < len(row)] for n in range(count)]
    titles = [[headers[n]] if headers else [] for n in range(count)]
    widths = [max(map(len, [*a, *b]), default=0) for a, b in zip(cells, titles, strict=True)]
    padded = [
        max([width, *(len(title) + tabulate.MIN_PADDING for title in texts)])
        for width, texts in zip(widths, titles, strict=True)
    ]
    room = max(_line_width(), WIDTH) - 2 * (count - 1)
    if sum(padded) <= room:
        return []
    for cell_break in (CELL_BREAK, SPACE):
        words = [
            [*_split(cell_break, texts), *_split(HEADER_BREAK, headers)]
            for texts, headers in zip(cells, titles, strict=True)
        ]
        least = [max(map(len, column), default=0) for column in words]
        while sum(widths) > room and widths != least:
            n = max(range(count), key=lambda n: (widths[n] > least[n], widths[n]))
            widths[n] -= 1
    return widths


def _split(pattern: re.Pattern[str], texts: Iterable[str]) -> Iterator[str]:
    return (word for text in texts for word in pattern.split(text))


CELL_BREAK = re.compile(r" (?![^\[]*\])")
"""Spaces outside brackets."""
SPACE = re.compile(" ")
HEADER_BREAK = re.compile(r" (?![^\[]*\])|(?<=[-/])")
"""Spaces outside brackets, and places after hyphens and slashes."""


def _folded_title(title: str, width: int) -> str:
    """Return a header with line breaks as `_folded`, or also after hyphens and slashes if a line is wider."""
    folded = _folded(title, width)
    if max(map(len, folded.split("\n"))) <= width:
        return folded
    return "\n".join(filter(None, filled_lines(re.split(r"(?= )|(?<=[-/])", title), width)))


def _folded(text: str, width: int) -> str:
    """Return a text with line breaks at spaces, outside brackets if possible, so that no line is wider."""
    if len(text) <= width:
        return text
    pieces = CELL_BREAK.split(text)
    if max(map(len, pieces)) <= width:
        text = " ".join(piece.replace(" ", "\N{NO-BREAK SPACE}") for piece in pieces)
    folded = textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False)
    return folded.replace("\N{NO-BREAK SPACE}", " ")
