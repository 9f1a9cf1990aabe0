"""Delimited text (CSV, TSV) as columns of text, with the line on which each row begins."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bws.file_kinds import check_is_no_markup, json_keys, remark
from bws.problems import InputError, Problem
from bws.records import normal_id
from bws.textio import check_is_text, display_name, read_bytes

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Table", "read_table", "tabbed_first_line", "table_of", "text_bytes"]

MAX_COLUMNS = 1000
SEPARATORS = (",", "\t", ";")
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
    path: str | os.PathLike[str], *, separator: str | None = None, header: bool = True
) -> Table:
    """Read a delimited file (standard input, ``.gz``, byte order mark, CRLF and quotes are supported).

    separator: None selects the most frequent one of comma, tab and semicolon in the first line.
    header: without a header, columns are named item1, item2, ... and quotes have no special meaning.

    Raises InputError if the file is not UTF-8 text, is empty, or has an invalid header. Rows with a wrong
    number of fields are listed in `problems`.
    """
    name = display_name(path)
    return table_of(text_bytes(read_bytes(path), name), name, separator=separator, header=header)


def text_bytes(data: bytes, name: str) -> bytes:
    """Return UTF-8 text with line feeds only; raise InputError if it is not text."""
    check_is_text(data, name)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data


def table_of(data: bytes, name: str, *, separator: str | None = None, header: bool = True) -> Table:
    """Build a table from the text returned by `text_bytes`; see `read_table`."""
    body = data.lstrip(b"\n")
    if not body or body.isspace():
        raise InputError(Problem(name, None, "empty; expected rows"))
    line = len(data) - len(body) + 1
    if not body.endswith(b"\n"):
        body += b"\n"  # Polars ignores an additional empty field at the very end.
    first = body[: body.index(b"\n")].decode("utf-8")
    check_is_no_markup(first, name)
    keys = json_keys(first)
    if keys is None and first.startswith(("[", "{")):  # A document of several lines.
        keys = json_keys(body.decode("utf-8"))
    if keys is not None:
        message = f"is JSON, not a table; names of JSON Lines must end in .jsonl{remark(keys)}"
        raise InputError(Problem(name, line, message))
    separator = separator or max(SEPARATORS, key=first.count)
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
    return _fast(name, body, line, separator, names, header=header, quoted=quoted) or _careful(
        name, body, line, separator, names, header=header
    )


def tabbed_first_line(data: bytes) -> list[str]:
    """Return the fields of the first non-empty line if it has tabs; otherwise an empty list."""
    first = data.lstrip(b"\n").partition(b"\n")[0].decode("utf-8")
    return first.split("\t") if "\t" in first else []


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
    """Return the table of any text, row by row; rows of another width are problems."""
    import polars as pl

    field_rows: list[list[str]] = []
    lines: list[int] = []
    problems: list[Problem] = []
    rows = _rows(name, body, line, separator, csv.QUOTE_MINIMAL if header else csv.QUOTE_NONE)
    for start, row in islice(rows, int(header), None):
        if len(row) == len(names):
            field_rows.append(row)
            lines.append(start)
        else:
            message = f"{len(row)} fields; expected {len(names)}, as in the first row"
            problems.append(Problem(name, start, message))
    columns = list(zip(*field_rows, strict=True)) or [()] * len(names)
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
