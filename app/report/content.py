"""What the report consists of: sections with text, tables and figures, and numbers with their source.

The source of a number is a command and a position in the JSON that it prints.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bws.command import json_ready
from bws.tables import Cell as TableCell
from bws.tables import Column, Interval, ResultTable

__all__ = ["Cell", "Figure", "Number", "Section", "Source", "Table", "at", "part_label", "svg_of"]

MISSING = "–"
WIDTH = 220
"""Of the plot itself, so that a telephone shows the chart at its own size."""
TAG = re.compile(r"<[^>]*>")
ARIA = re.compile(r'\s(?:role|aria-\w+)="[^"]*"')


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is shown."""

    text: str
    command: str
    """Run in the folder of the data, it prints a JSON document."""
    path: str
    """The number's place in it: a JSON Pointer (RFC 6901)."""


Cell = str | Number | Sequence[str | Number]
"""Text, a number, or a row of both."""


class Source:
    """A command and what it prints with --json."""

    def __init__(self, command: str, document: Mapping[str, Any]) -> None:
        self.command = command
        self.document = json_ready(document)

    def number(self, path: str, form: str = "") -> Number:
        """Return the number at a place, formatted; a dash where there is none.

        >>> Source("x --json", {"alpha": {"both": 0.6125}}).number("/alpha/both", ".2f").text
        '0.61'
        """
        value = at(self.document, path)
        text = MISSING if value is None else format(value, form)
        return Number(text, self.command, path)

    def interval(self, path: str, form: str = ".3f") -> Sequence[str | Number]:
        """Return value and interval of an estimate at a place; a dash for an interval that is missing."""
        value, low, high = (self.number(f"{path}/{end}", form) for end in ("value", "low", "high"))
        if value.text == MISSING:
            return [value]
        shown = [MISSING] if low.text == MISSING else [low, ", ", high]
        return [value, " [", *shown, "]"]

    def table(self, table: ResultTable) -> Table:
        """Return a table of results with the source of every number in it."""
        sources = table.sources or [""] * len(table.rows)
        rows = [
            [
                self._cell(column, cell, source)
                for column, cell in zip(table.columns, row, strict=True)
                if not column.is_detail
            ]
            for row, source in zip(table.rows, sources, strict=True)
        ]
        headers = [column.header for column in table.columns if not column.is_detail]
        return Table(table.title, headers, rows, "\n".join(table.notes))

    def _cell(self, column: Column, cell: TableCell, source: str) -> Cell:
        if isinstance(cell, Mapping):
            return part_label(cell)
        if cell is None or not column.source:
            return column.text(cell, MISSING)
        path = f"{source}/{column.source}"
        if isinstance(cell, Interval):
            return self.interval(path, column.spec)
        number = self.number(path, column.spec)
        return [number, column.unit] if column.unit else number


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column heads the rows."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    """What to know of the numbers; a paragraph per line."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart as SVG."""

    svg: str
    caption: str
    alternative: str
    """What the chart shows, for who does not see it."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with a heading."""

    name: str
    """For links into the page."""
    title: str
    text: Sequence[str] = ()
    commands: Sequence[str] = ()
    """What prints these numbers."""
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    about_scores: bool = True
    """Whether its numbers rest on the annotators' judgments."""


def part_label(by: Mapping[str, Any]) -> str:
    """Return how the page calls a part of the data.

    >>> part_label({"source": "spoken", "n_turns": 3}), part_label({})
    ('spoken, 3 turns', 'all')
    """
    shown = [f"{value} turns" if name == "n_turns" else str(value) for name, value in by.items()]
    return ", ".join(shown) or "all"


def at(document: Any, path: str) -> Any:
    """Return what a JSON Pointer points to; KeyError or IndexError where nothing is.

    >>> at({"groups": [{"by": {"a/b": 1}}]}, "/groups/0/by/a~1b")
    1
    """
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def svg_of(chart: Any, *, width: int = WIDTH, height: int | None = None) -> str:
    """Return a chart as SVG without a background, with ids that no other chart of the page has.

    Roles and labels of its parts are left out: the page shows the chart as one image with a label.
    """
    import altair as alt

    from giccs.description.figures import chart_svg

    shaped = chart.properties(width=width, **({"height": height} if height else {}))
    legend = alt.LegendConfig(orient="bottom", direction="vertical")
    svg = chart_svg(shaped.configure(background="transparent", legend=legend))
    own = f"c{hashlib.sha256(svg.encode()).hexdigest()[:8]}-"
    svg = TAG.sub(lambda tag: ARIA.sub("", tag[0]), svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{own}\1"', svg)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{own}", svg)
