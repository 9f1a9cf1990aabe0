"""Tables of results, rendered as text, Markdown, LaTeX, CSV, or a data frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "FORMATS",
    "Cell",
    "Column",
    "Interval",
    "ResultTable",
    "heading",
    "limits_text",
    "part_name",
    "remarks",
    "tabulated",
]

FORMATS = {"table": "simple", "markdown": "github", "latex": "latex_booktabs"}
"""Name of a text format -> tabulate's name."""
ALL_GROUPS = "all"


@runtime_checkable
class Interval(Protocol):
    """A number with the limits of its interval; the limits are NaN without an interval."""

    @property
    def value(self) -> float: ...  # noqa: D102
    @property
    def low(self) -> float: ...  # noqa: D102
    @property
    def high(self) -> float: ...  # noqa: D102


Cell = str | int | float | Interval | Mapping[str, Any] | None
"""Text, a number, a number with its interval, column values of a group, or nothing."""


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
    align: Literal["left", "right", "decimal"] = "left"
    is_detail: bool = False
    """Whether it occurs only in CSV files and data frames."""
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
        if isinstance(cell, Interval):
            value = self.text(cell.value, missing)
            return value if math.isnan(cell.value) else f"{value} {limits_text(cell, self.spec)}"
        return missing if math.isnan(cell) else f"{cell:{self.spec}}{self.unit}"


def limits_text(interval: Interval, spec: str) -> str:
    """Return ``[low, high]``, or a dash in brackets without an interval."""
    if math.isnan(interval.low):
        return "[–]"
    return f"[{interval.low:{spec}}, {interval.high:{spec}}]"


def part_name(values: Mapping[str, Any]) -> str:
    """Return the name of a group in tables and notes: ``source=CROWDSS, n_turns=3``, or ``all``."""
    return ", ".join(f"{name}={value}" for name, value in values.items()) or ALL_GROUPS


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
    sources: Sequence[str] = ()
    """JSON Pointer of each row's numbers in the ``--json`` output of the command."""

    def __str__(self) -> str:
        """Return the table and its notes for the terminal."""
        return "\n".join([self.text(), *self.notes])

    def text(self, form: str = "table") -> str:
        """Return the table in a format of `FORMATS`, without title and notes.

        A title shared by several columns is above the first of them.
        """
        columns = self.text_columns()
        groups = ["", *(column.group for column in columns)]
        headers = [
            column.title if column.group and column.group == before else column.header
            for before, column in zip(groups, columns, strict=False)
        ]
        return tabulated(self.text_rows(), headers, form, [column.align for column in columns])

    def text_columns(self) -> list[Column]:
        """Return the columns for texts: without details, and with one column per name of a group."""
        visible_columns = (column for column in self.columns if not column.is_detail)
        return [each for column in visible_columns for each in column.parts or [column]]

    def text_rows(self, missing: str | None = None) -> list[list[str]]:
        """Return the cells of `text_columns` as texts."""
        blank = self.missing if missing is None else missing
        return [
            [
                text
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
        return ResultTable(columns, rows, self.notes, self.title, self.missing, self.sources)

    def csv(self) -> str:
        """Return the table as CSV with full precision; NaN and missing group values are empty."""
        from bws.textio import csv_text

        values = self._values()
        rows = zip(*values.values(), strict=True)
        return csv_text((["" if cell != cell else cell for cell in row] for row in rows), [*values])

    def frame(self) -> pl.DataFrame:
        """Return the table as a data frame, with null for NaN and missing group values.

        A number with an interval has two additional columns, its key with ``_low`` and ``_high``.
        """
        import polars as pl

        return pl.DataFrame(self._values(), strict=False).fill_nan(None)

    def _values(self) -> dict[str, list[Any]]:
        """Return names and plain values of the columns."""
        values: dict[str, list[Any]] = {}
        for n, column in enumerate(self.columns):
            values.update(_plain_values(column, [row[n] for row in self.rows]))
        return values


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
    elif any(isinstance(cell, Interval) for cell in cells):
        yield column.key, [cell.value if isinstance(cell, Interval) else cell for cell in cells]
        for limit in ("low", "high"):
            yield f"{column.key}_{limit}", [getattr(cell, limit, None) for cell in cells]
    else:
        yield column.key, list(cells)


def heading(text: str, form: str) -> str:
    """Return a heading in a format."""
    return {"markdown": f"### {text}", "latex": f"% {text}"}.get(form, text)


def remarks(lines: Sequence[str], form: str) -> list[str]:
    """Return lines below a table; comments in LaTeX."""
    return [f"% {line}" for line in lines] if form == "latex" else list(lines)


def tabulated(
    rows: Sequence[Sequence[Any]],
    headers: Sequence[str],
    form: str = "table",
    align: Sequence[str] | None = None,
) -> str:
    """Return a table in a format of `FORMATS`; cells are written unchanged, left-aligned by default."""
    from tabulate import tabulate

    style = FORMATS[form]
    return str(tabulate(rows, headers, tablefmt=style, disable_numparse=True, colalign=align))
