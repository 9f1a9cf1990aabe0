"""Trials of Hollis's tools: best, worst, option1, option2, ...

The options are all items of the trial, as described by the manual of the tools, or only those that were not
chosen, as in their sample data. Source: best-worst-tools, README and ``samples/aoa_raw_data``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.base.file_kinds import ANNOTATOR, first_of, numbered
from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.files.rows import Format, Rows, rows_of
from bws.files.table import Table
from bws.record_columns import series

if TYPE_CHECKING:
    import polars as pl

NAME = "hollis"
PERSON, NUMBER = ("id", "uuid"), ("trial",)
"""Columns of the sample data: the person, whose trials are numbered."""


def _fits(columns: Sequence[str]) -> bool:
    answers = first_of(columns, ("best",)), first_of(columns, ("worst",))
    return bool(numbered(columns, "option")) and None not in answers


def _rows(table: Table) -> Rows:
    columns = table.frame.columns
    best, worst = first_of(columns, ("best",)) or "", first_of(columns, ("worst",)) or ""
    annotator = first_of(columns, ANNOTATOR)
    if annotator is None and first_of(columns, NUMBER):
        annotator = first_of(columns, PERSON)
    options = numbered(columns, "option")
    rows = rows_of(table, NAME, options, best, worst, annotator=annotator)
    if not _are_without_chosen(rows):
        return rows
    items = np.sort([_normal(column) for column in (rows.best, rows.worst, *rows.items)], axis=0)
    return replace(rows, items=[series(column) for column in items])  # Their order is unknown.


def _are_without_chosen(rows: Rows) -> bool:
    """Return whether the options are only the items that were not chosen, decided for the whole file.

    Raises InputError if this is so in some rows, and in others an answer is among the options.
    """
    options = np.array([_normal(column) for column in rows.items])
    answers = [_normal(column) for column in (rows.best, rows.worst)]
    n_found = sum((options == answer).any(axis=0).astype(int) for answer in answers)
    is_answered = np.all([answer != "" for answer in answers], axis=0)
    without, within = (np.flatnonzero(is_answered & mask) for mask in (n_found == 0, n_found > 0))
    if len(without) and len(within):
        message = (
            f"best or worst is one of the options in {len(within)} rows (first line "
            f"{rows.lines[within[0]]}), but neither is in {len(without)} (first line "
            f"{rows.lines[without[0]]}); expected as options all items of the trial, or only those not chosen"
        )
        raise InputError(Problem(rows.file, int(rows.lines[min(without[0], within[0])]), message))
    return bool(len(without))


def _normal(column: pl.Series) -> NDArray[np.object_]:
    return np.array([normal_id(text) for text in column], dtype=object)


FORMAT = Format(
    NAME,
    "best, worst, option1, option2, ...",
    _fits,
    _rows,
    item_name=lambda index: f"option{index + 1}",
)
