"""Delimited text (CSV, TSV) as columns of text, with the line on which each row begins."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bws.base.file_kinds import (
    BEST,
    check_is_no_markup,
    column_roles,
    first_of,
    json_keys,
    plain,
    remark,
)
from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_bytes, utf8_text

if TYPE_CHECKING:
    import polars as pl

MAX_COLUMNS = 1000
SEPARATORS = (",", "\t", ";")
SEPARATOR_LINE = re.compile(rb'"?sep=([^\w"]|\\t)"?[,;\t]*\n', re.I)
"""First line of Excel, which declares the separator of the other lines."""
MAX_HEADER = 2**20
"""Size in bytes of the text in which the separator is searched."""
QUOTED_FIELD = re.compile(r'(?:(?<=[,;\t\n])|\A)"(?:[^"]|"")*"(?=[,;\t\n])')
DECIMAL_COMMA = r"^(\s*[+-]?[0-9]*),([0-9]+\s*)$"
LINE_FEED, QUOTE = ord("\n"), ord('"')
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Table:
    """R rows of text in named columns; empty lines are ignored."""

    file: str
    """The name of the file in messages."""
    frame: pl.DataFrame
    """R rows; all columns are text, and missing values are empty strings."""
    lines: NDArray[np.int64]
    """(R,) line on which a row begins, from 1."""
    problems: tuple[Problem, ...] = ()
    """Rows with a wrong number of fields, which are not in `frame`."""
    separator: str = ","
    repeated_headers: tuple[int, ...] = ()
    """Lines that repeat the header, as in files that were joined; they are not in `frame`."""

    def named(self, names: Iterable[str]) -> Table:
        """Return the table with these names for columns that differ in case, spaces and punctuation.

        A name that exists, or that several columns match, changes nothing.

        >>> table_of(b"Item ID,SCORE\\na,1\\n", "a.csv").named(["item_id", "score"]).frame.columns
        ['item_id', 'score']
        """
        columns = self.frame.columns
        plain_names = [plain(column) for column in columns]
        matches = {
            columns[plain_names.index(plain(name))]: name
            for name in names
            if name and name not in columns and plain_names.count(plain(name)) == 1
        }
        return replace(self, frame=self.frame.rename(matches)) if matches else self

    def with_decimal_points(self, names: Iterable[str]) -> Table:
        """Return the table with points for the decimal commas of these columns, if they exist.

        Commas are decimal only where semicolons separate fields, as in spreadsheets of many languages.
        """
        import polars as pl

        if self.separator != ";":
            return self
        columns = [name for name in names if name in self.frame.columns]
        points = pl.col(columns).str.replace(DECIMAL_COMMA, "$1.$2")
        return replace(self, frame=self.frame.with_columns(points)) if columns else self

    def need(self, columns: Iterable[str]) -> None:
        """Raise InputError if a column is missing, with all other problems."""
        existing_columns = self.frame.columns
        if missing := [name for name in columns if name not in existing_columns]:
            message = (
                f"no column {', '.join(missing)}; existing columns are "
                f"{', '.join(existing_columns)}{remark(existing_columns)}"
            )
            raise InputError([Problem(self.file, 1, message), *self.problems])


def read_table(
    path: str | os.PathLike[str],
    names: Iterable[str] = (),
    *,
    separator: str | None = None,
    header: bool = True,
) -> Table:
    """Read a delimited file (standard input, ``.gz``, UTF-16, byte order marks, CRLF and quotes are valid).

    names: see `Table.named`.
    separator: None selects that of Excel's first line ``sep=;``, or else the most frequent one of comma, tab
        and semicolon outside quotes in the header, preferably one that is as frequent in the next row.
    header: without a header, columns are named item1, item2, ... and quotes have no special meaning.

    Raises InputError if the file is not text, is empty, or has an invalid header. Rows with a wrong number
    of fields are listed in `problems`, and rows that repeat the header are skipped.
    """
    name = display_name(path)
    data = text_bytes(read_bytes(path), name)
    return table_of(data, name, separator=separator, header=header).named(names)


def text_bytes(data: bytes, name: str) -> bytes:
    """Return UTF-8 text with line feeds only; raise InputError if it is not text, see `utf8_text`."""
    data = utf8_text(data, name)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data


def table_of(data: bytes, name: str, *, separator: str | None = None, header: bool = True) -> Table:
    """Build a table from the text returned by `text_bytes`; see `read_table`."""
    body = data.lstrip(b"\n")
    if not body or body.isspace():
        raise InputError(Problem(name, None, "empty; expected rows"))
    line = len(data) - len(body) + 1
    if declared := SEPARATOR_LINE.match(body):
        separator = separator or declared[1].decode().replace("\\t", "\t")
        body, line = body[declared.end() :] or b"\n", line + 1
    if not body.endswith(b"\n"):
        body += b"\n"  # Polars ignores an additional empty field at the very end.
    first = body[: body.index(b"\n")].decode("utf-8")
    check_is_no_markup(first, name)
    keys = json_keys(first)
    if keys is None and first.startswith(("[", "{")):  # A document of several lines.
        keys = json_keys(body.decode("utf-8"))
    if keys is not None:
        hint = "" if ".jsonl" in name else "; names of JSON Lines must end in .jsonl"
        message = f"is JSON, not a table{hint}{remark(keys)}"
        raise InputError(Problem(name, line, message))
    separator = separator or _separator_of(body, name, line, header=header)
    width = first.count(separator) + 1
    if width > MAX_COLUMNS:
        message = f"{width} columns; expected at most {MAX_COLUMNS}"
        raise InputError(Problem(name, line, message))
    quoted = header and b'"' in body
    if not header:
        names = [f"item{number}" for number in range(1, width + 1)]
    else:
        rows = _rows(name, body, line, separator, csv.QUOTE_MINIMAL)
        names = _column_names(name, *next(rows))
    table = _fast(name, body, line, separator, names, header=header, quoted=quoted) or _careful(
        name, body, line, separator, names, header=header
    )
    table = replace(table, separator=separator)
    return _without_repeated_headers(table) if header else table


def _separator_of(body: bytes, name: str, line: int, *, header: bool) -> str:
    """Return the most frequent separator of the first row, preferably one as frequent in the second row.

    In tables with a header, separators in quoted fields do not count. Raises InputError for vertical bars.
    """
    text = body[:MAX_HEADER].decode("utf-8", "ignore")
    if header:
        text = QUOTED_FIELD.sub("", text)
    first, *others = [row for row in text.split("\n") if row.strip()][:2] or [""]
    separator = max(
        SEPARATORS,
        key=lambda mark: (
            mark in first and all(row.count(mark) == first.count(mark) for row in others),
            first.count(mark),
        ),
    )
    if header and first.count("|") > max(1, first.count(separator)):
        message = "separator | is not supported; expected commas, semicolons or tabs"
        raise InputError(Problem(name, line, message))
    return separator


def tabbed_first_line(data: bytes) -> list[str]:
    """Return the fields of the first non-empty line if it has tabs; otherwise an empty list.

    A line that declares the separator does not count.
    """
    body = data.lstrip(b"\n")
    declared = SEPARATOR_LINE.match(body)
    first = body[declared.end() if declared else 0 :].partition(b"\n")[0].decode("utf-8")
    return first.split("\t") if "\t" in first else []


def _without_repeated_headers(table: Table) -> Table:
    """Return the table without rows that are headers, as in files that were joined.

    These are rows equal to the header, or with other names of the same columns, such as ``Most related`` for
    ``Best``. A header with the columns in another order is a problem, since its rows would be misread.
    """
    import polars as pl

    names = table.frame.columns
    if len(names) < 2 or not len(table.frame):
        return table
    may_be = pl.col(names[0]).str.contains(names[0], literal=True)
    if best := first_of(names, BEST):
        may_be |= pl.col(best).str.contains("(?i)best|most|worst|least")
    candidates = table.frame.select(may_be.arg_true()).to_series().to_list()
    roles, set_of_names = column_roles(names), {*names}
    same, other = [], []
    for row in candidates:
        cells = [normal_id(cell.removeprefix("\ufeff")) for cell in table.frame.row(row)]
        found = column_roles(cells)
        if cells == names or (roles and found == roles):
            same.append(row)
        elif {*cells} == set_of_names or (roles and sorted(found) == sorted(roles)):
            other.append(row)
    if not same and not other:
        return table
    keep = np.ones(len(table.frame), bool)
    keep[[*same, *other]] = False
    message = (
        "repeats the header with the columns in another order; expected the order of the first line"
    )
    problems = [Problem(table.file, line, message) for line in table.lines[other].tolist()]
    return replace(
        table,
        frame=table.frame.filter(keep),
        lines=table.lines[keep],
        problems=(*table.problems, *problems),
        repeated_headers=tuple(table.lines[same].tolist()),
    )


def _column_names(name: str, line: int, cells: list[str]) -> list[str]:
    """Return the names in the header; an empty one is named by its number."""
    names = [normal_id(cell) or f"column {number}" for number, cell in enumerate(cells, start=1)]
    repeated_names = sorted({column for column in names if names.count(column) > 1})
    if repeated_names:
        message = f"the header repeats {', '.join(repeated_names)}; expected unique names"
        raise InputError(Problem(name, line, message))
    return names


def _fast(
    name: str,
    body: bytes,
    line: int,
    separator: str,
    names: list[str],
    *,
    header: bool,
    quoted: bool,
) -> Table | None:
    """Return the table of regular text, or None if a row has too few or too many fields."""
    import polars as pl

    schema = dict.fromkeys(names, pl.String)
    try:
        frame = pl.read_csv(
            body,
            has_header=False,
            skip_rows=int(header),
            schema=schema,
            separator=separator,
            quote_char='"' if quoted else None,
        ).with_columns(pl.all().fill_null(""))
    except pl.exceptions.NoDataError:
        return Table(name, pl.DataFrame(schema=schema), np.empty(0, np.int64))
    except pl.exceptions.PolarsError:
        return None
    lines = np.arange(line + header, line + header + len(frame), dtype=np.int64)
    # Short rows end like this, as do empty lines and possibly valid rows.
    if not quoted and not (frame[names[-1]] == "").any():
        return Table(name, frame, lines)
    layout = _layout_of(body, separator, quoted=quoted)
    if layout is None or len(layout.lines) != len(frame) + header:
        return None
    blank = frame.select(pl.all_horizontal(pl.all() == "")).to_series().to_numpy()
    if (layout.widths[header:][~blank] != len(names)).any():
        return None
    return Table(name, frame.filter(~blank), line + layout.lines[header:][~blank])


def _careful(
    name: str, body: bytes, line: int, separator: str, names: list[str], *, header: bool
) -> Table:
    """Return the table of any text, row by row; rows of another width are problems.

    If two or more rows below the header are all longer by the same number of empty fields, these are ignored.
    """
    import polars as pl

    width = len(names)
    field_rows: list[list[str]] = []
    lines: list[int] = []
    problems: list[Problem] = []
    rows = _rows(name, body, line, separator, csv.QUOTE_MINIMAL if header else csv.QUOTE_NONE)
    parsed_rows = list(islice(rows, int(header), None))
    has_one_width = len(parsed_rows) > 1 and len({len(row) for _, row in parsed_rows}) == 1
    if has_one_width and not any(any(row[width:]) for _, row in parsed_rows):
        parsed_rows = [(start, row[:width]) for start, row in parsed_rows]
    for start, row in parsed_rows:
        if len(row) == width:
            field_rows.append(row)
            lines.append(start)
        else:
            message = f"{len(row)} fields; expected {width}, as in the first row"
            if separator == "," and width > 1 and any(row[width:]):
                message += "; put texts with commas in double quotes"
            problems.append(Problem(name, start, message))
    columns = list(zip(*field_rows, strict=True)) or [()] * width
    schema = dict.fromkeys(names, pl.String)
    frame = pl.DataFrame(dict(zip(names, columns, strict=True)), schema=schema)
    return Table(name, frame, np.array(lines, np.int64), tuple(problems))


def _rows(
    name: str, body: bytes, line: int, separator: str, quoting: Literal[0, 3]
) -> Iterator[tuple[int, list[str]]]:
    """Yield every non-empty row with the line on which it begins."""
    text = io.TextIOWrapper(io.BytesIO(body), "utf-8", newline="")
    reader = csv.reader(text, delimiter=separator, strict=True, quoting=quoting)
    while True:
        start = line + reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            message = f"cannot parse the row ({error}); check its quotes"
            raise InputError(Problem(name, start, message)) from None
        if any(row) and (len(row) > 1 or row[0].strip()):
            yield start, row


class _Layout(NamedTuple):
    """The rows of a text, including empty lines."""

    lines: NDArray[np.int64]
    """(R,) line on which each row begins, from 0."""
    widths: NDArray[np.int64]
    """(R,) number of fields; 1 for an empty line."""


def _layout_of(body: bytes, separator: str, *, quoted: bool) -> _Layout | None:
    """Return the layout of a text that ends with a line feed, or None if quotes do not enclose whole fields.

    quoted: whether a line feed or separator between quotes is part of a field, that is, if the number of
    preceding quotes is odd. A quote inside a field is doubled.

    >>> layout = _layout_of(b'a,"b,1"\\n"c\\n2",d\\n\\ne,f\\n', ",", quoted=True)
    >>> layout.lines.tolist(), layout.widths.tolist()
    ([0, 1, 3, 4], [2, 2, 1, 2])
    >>> _layout_of(b'5" pipe, 6" pipe\\n', ",", quoted=True) is None
    True
    """
    text = np.frombuffer(body, np.uint8)
    breaks, marks = text == LINE_FEED, text == ord(separator)
    line_ends = row_ends = np.flatnonzero(breaks)
    if quoted:
        if not _around_fields(text, breaks | marks):
            return None
        outside = np.bitwise_and(np.cumsum(text == QUOTE, dtype=np.uint8), 1) == 0
        marks &= outside
        row_ends = np.flatnonzero(breaks & outside)
    before = np.searchsorted(np.flatnonzero(marks), row_ends)
    lines = np.searchsorted(line_ends, row_ends) + 1
    return _Layout(np.append(0, lines[:-1]), np.diff(before, prepend=0) + 1)


def _around_fields(text: Bytes, limits: NDArray[np.bool_]) -> bool:
    """Return whether all quotes are in pairs that begin and end a field, or are doubled inside one."""
    quotes = np.flatnonzero(text == QUOTE)
    if len(quotes) % 2:
        return False
    limits = limits | (text == QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    return bool((limits[opening - 1] | (opening == 0)).all() and limits[closing + 1].all())
