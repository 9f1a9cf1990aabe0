"""Kiritchenko and Mohammad's annotations: ``Item1..ItemK,BestItem,WorstItem``."""

from __future__ import annotations

from collections.abc import Sequence

from bws.files.columns import missing, numbered, rows_of
from bws.files.rows import Rows
from bws.files.table import Table

__all__ = ["EXPECTED", "fits", "rows"]

EXPECTED = "Item1, Item2, ..., BestItem, WorstItem"


def fits(columns: Sequence[str]) -> bool:
    """Tell whether a header is of this format."""
    lower = {column.lower() for column in columns}
    return bool(numbered(columns, "item")) and {"bestitem", "worstitem"} <= lower


def rows(table: Table) -> Rows:
    """Return the rows; InputError where the header is another."""
    columns = table.frame.columns
    if not fits(columns):
        raise missing(table, "km", EXPECTED)
    named = {column.lower(): column for column in columns}
    return rows_of(table, "km", numbered(columns, "item"), named["bestitem"], named["worstitem"])
