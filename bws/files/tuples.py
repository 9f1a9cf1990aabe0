"""Tuples in and out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import numpy as np

from bws.file_kinds import GROUP, TUPLE, is_header, kind_of, numbered
from bws.files.assemble import assemble_tuples, check_k
from bws.files.columns import Faults, delimited, quoted, series, tabbed
from bws.files.rows import column_of, missing
from bws.files.table import Table, tabbed_first_line, table_of, text_bytes
from bws.records import Ints, Tuples
from bws.textio import display_name, read_bytes, write_atomic

if TYPE_CHECKING:
    import polars as pl

__all__ = ["TupleForm", "item_columns", "read_tuples", "write_tuples"]

TupleForm = Literal["csv", "km"]


def read_tuples(path: str | os.PathLike[str]) -> Tuples:
    """Read tuples: ours (``tuple_id,group,item1..itemK``) or K&M's (tabs between the items, no header).

    Where there are no tuple ids, the tuples are called t1, t2, ... Raises InputError with every fault:
    rows of another width, items that are empty or come twice in a tuple, tuple ids that are empty or
    come twice; and for tab-separated tables that begin with a header of other columns.
    """
    name = display_name(path)
    data = text_bytes(read_bytes(path), name)
    first = tabbed_first_line(data)
    if first and not numbered(first, "item") and not kind_of(first):
        table = table_of(data, name, separator="\t", header=False)
        others = (field for row in table.frame[1:].iter_rows() for field in row)
        if not is_header(first, others):
            return _tuples(table)
    return _tuples(table_of(data, name))


def _tuples(table: Table) -> Tuples:
    columns = numbered(table.frame.columns, "item")
    kind = kind_of(table.frame.columns)
    if not columns or (kind and kind.name == "judgments"):
        raise missing(table, "csv", "tuple_id, group, item1, item2, ...", "tuples")
    check_k(table.file, len(columns))
    faults = Faults(table.file, table.lines, table.problems)
    faults.stop("tuples", always=False)
    ids = _ids(table)
    present = (ids != "").to_numpy()
    faults.add_repeats(ids, lambda row: f"the tuple_id {quoted(ids[row])}", present)
    items = [table.frame[column] for column in columns]
    found = assemble_tuples(faults, items, column_of(table, GROUP), ids)
    faults.stop("tuples", always=True)
    return found.tuples


def _ids(table: Table) -> pl.Series:
    written = column_of(table, TUPLE)
    if written is not None and (written != "").any():
        return written.str.strip_chars()
    count = len(table.frame)
    return series(f"t{n:0{len(str(count))}}" for n in range(1, count + 1))


def write_tuples(tuples: Tuples, path: str | os.PathLike[str], form: TupleForm = "csv") -> None:
    """Write tuples as ours or as K&M's, whole or not at all (``-`` is standard output)."""
    items = item_columns(tuples, np.arange(len(tuples), dtype=np.int32))
    if form == "km":
        text = tabbed(items, display_name(path))
    elif form == "csv":
        groups = series(tuples.groups).gather(tuples.group_of_tuple)
        text = delimited({"tuple_id": series(tuples.ids), "group": groups} | items)
    else:
        raise ValueError(f"form is {form!r}; 'csv' and 'km' are allowed")
    write_atomic(path, text)


def item_columns(tuples: Tuples, tuple_of: Ints) -> dict[str, pl.Series]:
    """Return the columns item1, item2, ... of rows that are of these tuples."""
    items = series(tuples.items)
    members = tuples.members[tuple_of]
    return {f"item{place + 1}": items.gather(members[:, place]) for place in range(tuples.k)}
