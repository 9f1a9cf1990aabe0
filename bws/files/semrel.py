"""SemRel's Label Studio export: ``pair1a,pair1b,..,pair4b,best-pair,worst-pair``, answers A to D."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bws.files.columns import missing, numbered, rows_of
from bws.files.pairs import pair_id
from bws.files.rows import Rows
from bws.files.table import Table
from bws.files.writing import series

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EXPECTED", "fits", "rows"]

EXPECTED = "pair1a, pair1b, pair2a, ..., best-pair, worst-pair"


def fits(columns: Sequence[str]) -> bool:
    """Tell whether a header is of this format."""
    halves = _halves(columns)
    return bool(halves) and {"best-pair", "worst-pair"} <= {c.lower() for c in columns}


def rows(table: Table) -> Rows:
    """Return the rows; InputError where the header is another."""
    columns = table.frame.columns
    if not fits(columns):
        raise missing(table, "semrel", EXPECTED)
    named = {column.lower(): column for column in columns}
    halves = _halves(columns)
    first = [name for name, _ in halves]
    found = rows_of(table, "semrel", first, named["best-pair"], named["worst-pair"], "letter")
    second = {name for _, name in halves}
    rest = {name: column for name, column in found.columns.items() if name not in second}
    return replace(found, items=[_joined(table, *pair) for pair in halves], columns=rest)


def _halves(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns of each pair: (pair1a, pair1b), (pair2a, pair2b), ..."""
    named = {column.lower(): column for column in columns}
    bare = [name[:-1] for name in named if name.startswith("pair") and name.endswith("a")]
    pairs = numbered(bare, "pair")
    if not all(f"{pair}b" in named for pair in pairs):
        return []
    return [(named[f"{pair}a"], named[f"{pair}b"]) for pair in pairs]


def _joined(table: Table, first: str, second: str) -> pl.Series:
    both = zip(table.frame[first], table.frame[second], strict=True)
    ids = [pair_id(*pair) for pair in both]
    return series(ids)
