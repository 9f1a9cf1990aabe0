"""Elements of the report: sections with text, tables and figures, and numbers with their source.

The source of a number is a command and a position in its JSON output.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bws.base.commands import json_ready
from bws.base.tables import Cell as TableCell
from bws.base.tables import Column, Interval, NumberText, ResultTable, number_text

MISSING = "–"
WIDTH = 220
"""Width of the plot area in pixels, small enough for phones."""
SCALE = 1.2 / 16
"""Width of a pixel of a chart in rem."""
TAG = re.compile(r"<[^>]*>")
ARIA = re.compile(r'\s(?:role|aria-\w+)="[^"]*"')


@dataclass(frozen=True, slots=True)
class Number:
    """A formatted number and its source."""

    text: str
    command: str
    """Command that prints a JSON document, run in the folder of the data."""
    path: str
    """Position of the number in the document: a JSON Pointer (RFC 6901)."""


Cell = str | Number | Sequence[str | Number]
"""Text, a number, or a sequence of both."""


class Source:
    """A command and its JSON output."""

    def __init__(self, command: str, document: Mapping[str, Any]) -> None:
        self.command = command
        self.document = json_ready(document)

    def number(self, path: str, spec: str = "") -> Number:
        """Return the formatted number at a position; a dash if it is missing.

        >>> Source("x --json", {"alpha": {"both": 0.6125}}).number("/alpha/both", ".2f").text
        '0.61'
        """
        value = resolve_pointer(self.document, path)
        text = MISSING if value is None else number_text(value, spec)
        return Number(text, self.command, path)

    def interval(self, path: str, spec: str = ".3f") -> Sequence[str | Number]:
        """Return value and interval of an estimate at a position; a missing interval is a dash."""
        return self._interval(f"{path}/value", path, spec)

    def _interval(self, path: str, limits_path: str, spec: str) -> Sequence[str | Number]:
        value = self.number(path, spec)
        low, high = (self.number(f"{limits_path}/{name}", spec) for name in ("low", "high"))
        if value.text == MISSING:
            return [value]
        limits = [MISSING] if low.text == MISSING else [low, ", ", high]
        return [value, " [", *limits, "]"]

    def _with_error(self, path: str, column: Column) -> Sequence[str | Number]:
        """Return value, standard error and perhaps interval of an estimate at a position."""
        value, *limits = self.interval(path, column.spec)
        error = self.number(f"{path}/{column.error}", column.spec)
        cell = [value] if error.text == MISSING else [value, " ± ", error]
        return [*cell, *limits] if column.has_limits else cell

    def table(self, table: ResultTable) -> Table:
        """Return a table of results with the source of each number."""
        n_columns = len(table.columns)
        sources = [
            [source] * n_columns if isinstance(source, str) else source
            for source in table.sources or [""] * len(table.rows)
        ]
        rows = [
            [
                self._cell(column, cell, source)
                for column, cell, source in zip(table.columns, row, row_sources, strict=True)
                if not column.is_detail
            ]
            for row, row_sources in zip(table.rows, sources, strict=True)
        ]
        headers = [column.header for column in table.columns if not column.is_detail]
        return Table(table.title, headers, rows, "\n".join(table.notes))

    def _cell(self, column: Column, cell: TableCell, source: str) -> Cell:
        """Return a cell with its source; raise ValueError if the source has another number."""
        if isinstance(cell, Mapping):
            return part_label(cell)
        text = column.text(cell, MISSING)
        if cell is None or not column.source:
            return text
        found = self._number(column, cell, f"{source}/{column.source}".rstrip("/"), source)
        found_text = "".join(part if isinstance(part, str) else part.text for part in found)
        if found_text != text and not isinstance(cell, (str, NumberText)):
            raise ValueError(
                f"column {column.key}: the cell is {text}, and {source}/{column.source} in the output of "
                f"{self.command} is {found_text}; expected the same"
            )
        return found[0] if len(found) == 1 else found

    def _number(
        self, column: Column, cell: TableCell, path: str, source: str
    ) -> Sequence[str | Number]:
        if not isinstance(cell, Interval):
            return [self.number(path, column.spec), *filter(None, [column.unit])]
        if column.error or not column.has_limits:
            return self._with_error(path, column)
        if column.limits and math.isnan(cell.low):
            return [self.number(path, column.spec), f" [{MISSING}]"]
        if column.limits:
            return self._interval(path, f"{source}/{column.limits}", column.spec)
        return self.interval(path, column.spec)


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column contains the row headers."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    """Notes on the numbers; one paragraph per line."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart as SVG."""

    svg: str
    caption: str
    alternative: str
    """Alternative text for screen readers."""
    title: str = ""
    """Heading above `text` and the chart; empty for a chart without text."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A dialogue and its candidates."""

    title: str
    turns: Sequence[tuple[str, str]]
    """Speaker and text of each turn; the last one is the target utterance."""
    candidates: Sequence[tuple[str, str]]
    """Score and text of each candidate."""
    language: str = ""
    """BCP 47 tag of the language; empty if unknown."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page."""

    name: str
    """Anchor of the section."""
    title: str
    text: Sequence[str] = ()
    commands: Sequence[str] = ()
    """Commands that print the numbers."""
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    conversations: Sequence[Conversation] = ()
    about_scores: bool = True
    """Whether the numbers depend on judgments."""


def part_label(by: Mapping[str, Any]) -> str:
    """Return the label of a subset of the data.

    >>> part_label({"source": "spoken", "n_turns": 3}), part_label({})
    ('spoken, 3 turns', 'all')
    """
    texts = [f"{value} turns" if name == "n_turns" else str(value) for name, value in by.items()]
    return ", ".join(texts) or "all"


def resolve_pointer(document: Any, path: str) -> Any:
    """Return the value at a JSON Pointer; KeyError or IndexError if it is missing.

    >>> resolve_pointer({"groups": [{"by": {"a/b": 1}}]}, "/groups/0/by/a~1b")
    1
    """
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def chart_svg_for_page(chart: Any, *, width: int = WIDTH, height: int | None = None) -> str:
    """Return a chart as SVG without background, with ids that are unique on the page.

    Roles and labels of its elements are removed, because the page shows the chart as one image with a label.
    """
    import altair as alt

    from bws.base.charts import chart_svg

    sized = chart.properties(width=width, **({"height": height} if height else {}))
    legend = alt.LegendConfig(orient="bottom", direction="vertical")
    svg = chart_svg(sized.configure(background="transparent", legend=legend))
    prefix = f"c{hashlib.sha256(svg.encode()).hexdigest()[:8]}-"
    svg = TAG.sub(lambda tag: ARIA.sub("", tag[0]), svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}\1"', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}", svg)
    return re.sub(r'\bwidth="([\d.]+)"', _relative_width, svg, count=1)


def _relative_width(width: re.Match[str]) -> str:
    """Return the width of a chart in units of the font, so that all charts have letters of one size."""
    return f'{width[0]} style="width: {float(width[1]) * SCALE:.2f}rem"'
