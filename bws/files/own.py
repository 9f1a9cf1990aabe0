"""Our own judgments: ``tuple_id,group,item1..itemK,best,worst,annotator`` and further columns."""

from __future__ import annotations

from collections.abc import Sequence

from bws.files.columns import missing, numbered, rows_of
from bws.files.rows import Rows
from bws.files.table import Table

__all__ = ["EXPECTED", "fits", "rows"]

EXPECTED = "item1, item2, ..., best, worst"


def fits(columns: Sequence[str]) -> bool:
    """Tell whether a header is of this format."""
    return bool(numbered(columns, "item")) and {"best", "worst"} <= {c.lower() for c in columns}


def rows(table: Table) -> Rows:
    """Return the rows; InputError where the header is another."""
    columns = table.frame.columns
    if not fits(columns):
        raise missing(table, "csv", EXPECTED)
    named = {column.lower(): column for column in columns}
    return rows_of(table, "csv", numbered(columns, "item"), named["best"], named["worst"])
