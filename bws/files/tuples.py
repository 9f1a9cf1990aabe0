"""Reading and writing of tuples."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.file_kinds import GROUP, TUPLE, is_header, kind_of, numbered
from bws.base.frames import Source, check_source
from bws.base.text import display_name, read_bytes, write_atomic
from bws.files.assemble import assemble_tuples, check_k
from bws.files.columns import Faults, delimited, quoted, tabbed, texts
from bws.files.controls import with_named_controls
from bws.files.rows import column_of, missing
from bws.files.table import Table, tabbed_first_line, table_of, text_bytes
from bws.record_columns import COLUMN, item_columns, series, tuple_columns
from bws.records import Tuples

if TYPE_CHECKING:
    import polars as pl

TupleForm = Literal["csv", "km"]
ROUND_COLUMNS = ("round", "purpose", "seed")
"""Columns of the tuples of studies in rounds."""
PURPOSES = ("warmup", "adaptive", "audit")
ROUND_CELLS: Mapping[str, tuple[str, str]] = {
    "round": ("[1-9][0-9]{0,5}", "a number from 1"),
    "purpose": ("|".join(PURPOSES), ", ".join(PURPOSES)),
}
"""Column of a study in rounds -> pattern of its cells, and the expectation in messages."""


def as_tuples(tuples: Tuples | Source, control: Iterable[str] = ()) -> Tuples:
    """Return tuples as they are, or read them from a path, a data frame or records.

    control: as in `read_tuples`; for tuples that were read, in addition to theirs.
    """
    if isinstance(tuples, Tuples):
        return with_named_controls(tuples, control, "tuples", optional=True)
    check_source(tuples, "bws.Tuples")
    return read_tuples(tuples, control=control)


def read_tuples(path: Source, *, control: Iterable[str] = ()) -> Tuples:
    """Read tuples: ``tuple_id,group,item1..itemK``, or K&M's format (tab-separated items, no header).

    Without tuple ids, tuples are named t1, t2, ... The column ``control`` has the control items of a tuple
    (`bws.files.controls`), which may be repeated. Raises InputError with every fault: rows of another width,
    empty or repeated items of a tuple, empty or repeated tuple ids, and tab-separated tables with a header of
    other columns.
    control: further control items, as in `read_judgments`, which may be in no tuple.
    """
    name = display_name(path)
    data = text_bytes(read_bytes(path), name)
    first = tabbed_first_line(data)
    if first and not numbered(first, "item") and not kind_of(first):
        table = table_of(data, name, separator="\t", header=False)
        other_fields = (field for row in table.frame[1:].iter_rows() for field in row)
        if not is_header(first, other_fields):
            return _tuples(table, control)
    return _tuples(table_of(data, name).named((COLUMN, *ROUND_COLUMNS)), control)


def _tuples(table: Table, names: Iterable[str]) -> Tuples:
    columns = numbered(table.frame.columns, "item")
    kind = kind_of(table.frame.columns)
    if not columns or (kind and kind.name in ("judgments", "anchor-plan")):
        raise missing(table, "csv", "tuple_id, group, item1, item2, ...", "tuples")
    check_k(table.file, len(columns))
    faults = Faults(table.file, table.lines, table.problems)
    faults.stop("tuples", always=False)
    ids = _ids(table)
    present = (ids != "").to_numpy()
    faults.add_repeats(ids, lambda row: f"the tuple_id {quoted(ids[row])}", present)
    items = [table.frame[column] for column in columns]
    control = table.frame[COLUMN] if COLUMN in table.frame.columns else None
    assembled = assemble_tuples(
        faults, items, column_of(table, GROUP), ids, names, control, control_optional=True
    )
    round_columns = _round_columns(table, faults)
    faults.stop("tuples", always=True)
    return replace(
        assembled.tuples,
        columns=round_columns,
        control_column=None if control is None else texts(control),
    )


def _round_columns(table: Table, faults: Faults) -> dict[str, NDArray[np.object_]]:
    """Return the columns of studies in rounds; all of them, or none."""
    names = [name for name in ROUND_COLUMNS if name in table.frame.columns]
    if not names:
        return {}
    columns = {
        name: texts(table.frame[name])
        if name in names
        else np.full(len(table.frame), "", dtype=object)
        for name in ROUND_COLUMNS
    }
    for name, (pattern, expected) in ROUND_CELLS.items():
        faults.add(
            np.array([not re.fullmatch(pattern, text) for text in columns[name]], bool),
            lambda row, name=name, expected=expected: (  # type: ignore[misc]
                f"{name} is {columns[name][row]!r}; expected {expected}"
            ),
        )
    return columns


def _ids(table: Table) -> pl.Series:
    id_column = column_of(table, TUPLE)
    if id_column is not None and (id_column != "").any():
        return id_column.str.strip_chars()
    count = len(table.frame)
    return series(f"t{n:0{len(str(count))}}" for n in range(1, count + 1))


def write_tuples(tuples: Tuples, path: str | os.PathLike[str], form: TupleForm = "csv") -> None:
    """Write tuples in the format of giccs or of K&M, atomically (``-`` is standard output)."""
    if form == "km":
        items = item_columns(tuples, np.arange(len(tuples), dtype=np.int32))
        text = tabbed(items, display_name(path))
    elif form == "csv":
        text = delimited(tuple_columns(tuples))
    else:
        raise ValueError(f"form is {form!r}; expected 'csv' or 'km'")
    write_atomic(path, text)


def round_columns(columns: Mapping[str, pl.Series]) -> dict[str, pl.Series]:
    """Return the columns of studies in rounds that have a value."""
    return {
        name: columns[name]
        for name in ROUND_COLUMNS
        if name in columns and (columns[name] != "").any()
    }
