"""Judgments as a file writes them: columns of text, not yet checked. Every format ends here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bws.file_kinds import ANNOTATOR, GROUP, TUPLE, first_of, remark
from bws.files.table import Table
from bws.problems import InputError, Problem

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Answers", "Format", "Rows", "column_of", "missing", "rows_of"]

Answers = Literal["item", "position", "letter"]


@dataclass(frozen=True, eq=False)
class Rows:
    """J rows, each a judgment of K items; empty text where the source says nothing."""

    file: str
    form: str
    """The format the file was taken for."""
    lines: NDArray[np.int64]
    """(J,) the line on which a row begins."""
    items: Sequence[pl.Series]
    """K columns of J item ids."""
    best: pl.Series
    worst: pl.Series
    answers: Answers = "item"
    """What `best` and `worst` hold: an item's id, its place from 1, or a letter from A."""
    tuple_id: pl.Series | None = None
    group: pl.Series | None = None
    annotator: pl.Series | None = None
    shown: pl.Series | None = None
    """The order on the screen, item ids with ``;`` between them."""
    as_shown: bool = False
    """Whether the order of `items` is the order on the screen."""
    columns: Mapping[str, pl.Series] = field(default_factory=dict)
    """What else the file tells of each row."""
    problems: tuple[Problem, ...] = ()
    """Rows that could not be read at all."""


@dataclass(frozen=True)
class Format:
    """A format of judgments that is a table."""

    name: str
    expected: str
    """The columns that a file must have, for messages."""
    fits: Callable[[Sequence[str]], bool]
    """Whether a header is of this format."""
    rows: Callable[[Table], Rows]
    """The rows of a table with such a header."""

    def check(self, table: Table) -> None:
        """Raise InputError where the header is not of this format."""
        if not self.fits(table.frame.columns):
            raise missing(table, self.name, self.expected)


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
