"""SemEval's judgments: items in numbered columns, answers as positions from 1.

The names of the columns vary and have typos; items are often pairs written as Python lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bws.files.columns import BEST, WORST, first_of, missing, numbered, rows_of
from bws.files.pairs import pair_of_list
from bws.files.rows import Rows
from bws.files.table import Table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EXPECTED", "fits", "rows"]

EXPECTED = "columns that end in 1, 2, ..., and Best, Worst or Most_Related, Least_Related"


def fits(columns: Sequence[str]) -> bool:
    """Tell whether a header is of this format."""
    return bool(numbered(columns) and first_of(columns, BEST) and first_of(columns, WORST))


def rows(table: Table) -> Rows:
    """Return the rows; InputError where the header is another."""
    columns = table.frame.columns
    best, worst = first_of(columns, BEST), first_of(columns, WORST)
    if not (numbered(columns) and best and worst):
        raise missing(table, "semeval", EXPECTED)
    found = rows_of(table, "semeval", numbered(columns), best, worst, "position")
    return replace(found, items=[_pairs(column) for column in found.items])


def _pairs(column: pl.Series) -> pl.Series:
    import polars as pl

    distinct = column.unique()
    ids = [pair_of_list(text) for text in distinct]
    return column.replace_strict(distinct, pl.Series(ids, dtype=pl.String))
