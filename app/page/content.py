"""What a page is made of, before it is a page: sections with text, tables and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.page.found import Cell

__all__ = ["Figure", "Section", "Table", "part_label"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column heads the rows."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


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
