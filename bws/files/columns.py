"""Which column of a file plays which part, by the names that are in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bws.column_names import ANNOTATOR, BEST, GROUP, TUPLE, WORST, first_of, numbered
from bws.file_kinds import remark
from bws.files.rows import Answers, Rows
from bws.files.table import Table
from bws.problems import InputError, Problem

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "ANNOTATOR", "BEST", "GROUP", "TUPLE", "WORST",
    "column_of", "first_of", "missing", "numbered", "rows_of",
]  # fmt: skip


def rows_of(
    table: Table,
    form: str,
    items: Sequence[str],
    best: str,
    worst: str,
    answers: Answers = "item",
    **roles: str | None,
) -> Rows:
    """Return the rows of a table given its columns' parts; what has no part is kept as it is.

    `roles` may name the columns `tuple_id`, `group`, `annotator` and `shown`; where it does not, the usual
    names are looked for.
    """
    frame = table.frame
    usual = {"tuple_id": TUPLE, "group": GROUP, "annotator": ANNOTATOR, "shown": ("shown",)}
    found = {
        part: roles[part] if part in roles else first_of(frame.columns, names)
        for part, names in usual.items()
    }
    used = {*items, best, worst, *found.values()}

    def column(part: str) -> pl.Series | None:
        name = found[part]
        return None if name is None else frame[name]

    return Rows(
        file=table.file,
        form=form,
        lines=table.lines,
        items=[frame[name] for name in items],
        best=frame[best],
        worst=frame[worst],
        answers=answers,
        columns={name: frame[name] for name in frame.columns if name not in used},
        problems=table.problems,
        tuple_id=column("tuple_id"),
        group=column("group"),
        annotator=column("annotator"),
        shown=column("shown"),
    )


def column_of(table: Table, wanted: Sequence[str]) -> pl.Series | None:
    """Return the column whose plain name is wanted most; None where there is none."""
    name = first_of(table.frame.columns, wanted)
    return None if name is None else table.frame[name]


def missing(table: Table, form: str, expected: str, kind: str = "judgments") -> InputError:
    """Return the error of a file whose header is not that of the format asked for.

    kind: the kind of file that is expected, see `bws.file_kinds`.
    """
    columns = table.frame.columns
    message = (
        f"is not of format {form}: it has the columns {', '.join(columns[:20])}; {expected} are expected"
        f"{remark(columns, kind)}"
    )
    return InputError(Problem(table.file, None, message))
