"""Unvalidated judgments of a file as columns of text; the common result of all formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.file_kinds import ANNOTATOR, GROUP, TUPLE, first_of, remark
from bws.base.ids import normal_id
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.files.columns import listed_lines, quoted
from bws.files.table import Table
from bws.record_columns import series

if TYPE_CHECKING:
    import polars as pl

ID_SEPARATOR = re.compile("[,;|]")
"""Separates ids that were joined, as by an aggregation of a table."""

Answers = Literal["item", "position", "letter"]


@dataclass(frozen=True, eq=False)
class Rows:
    """J rows, each a judgment of K items; missing values are empty text."""

    file: str
    form: str
    """The format of the file."""
    lines: NDArray[np.int64]
    """(J,) line on which each row begins."""
    items: Sequence[pl.Series]
    """K columns of J item ids."""
    best: pl.Series
    worst: pl.Series
    answers: Answers = "item"
    """Notation of `best` and `worst`: an item id, a position, or a letter from A."""
    start: int = 1
    """Number of the first position, 1 or 0."""
    tuple_id: pl.Series | None = None
    group: pl.Series | None = None
    annotator: pl.Series | None = None
    shown: pl.Series | None = None
    """The display order: item ids separated by ``;``."""
    as_shown: bool = False
    """Whether the order of `items` is the display order."""
    columns: Mapping[str, pl.Series] = field(default_factory=dict)
    """Further columns of the file."""
    problems: tuple[Problem, ...] = ()
    """Rows that could not be parsed."""
    names: Sequence[str] = ()
    """The name of each row in a file without lines, such as ``task 7, annotation 12``."""
    notes: tuple[str, ...] = ()
    """What was skipped or decided when the file was parsed."""
    files: NDArray[np.object_] | None = None
    """(J,) file of each row, if there are several."""


@dataclass(frozen=True)
class Format:
    """A tabular format of judgments."""

    name: str
    expected: str
    """The required columns, for messages."""
    fits: Callable[[Sequence[str]], bool]
    """Whether a header has this format."""
    rows: Callable[[Table], Rows]
    """Returns the rows of a table with such a header."""
    column_names: Mapping[str, str] = field(default_factory=dict)
    """Role -> name of its column, if it is not the name of the role."""
    item_name: Callable[[int], str] = lambda index: f"item{index + 1}"
    """Returns the name of an item column by its index from 0."""

    def check(self, table: Table) -> None:
        """Raise InputError if the header does not have this format."""
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
    """Return the rows of a table, given its columns; other columns are kept unchanged.

    `roles` may contain the columns `tuple_id`, `group`, `annotator` and `shown`; the defaults are the usual
    names.
    """
    frame = table.frame
    usual = {"tuple_id": TUPLE, "group": GROUP, "annotator": ANNOTATOR, "shown": ("shown",)}
    columns = {
        part: roles[part] if part in roles else first_of(frame.columns, names)
        for part, names in usual.items()
    }
    used = {*items, best, worst, *columns.values()}

    def column(part: str) -> pl.Series | None:
        name = columns[part]
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


def skipped_rows(lines: Sequence[int], noun: str, reason: str) -> tuple[str, ...]:
    """Return a note on skipped rows; none without such rows.

    >>> skipped_rows([4, 7], "response", "without answers")
    ('2 responses without answers were skipped (lines 4, 7)',)
    """
    if not lines:
        return ()
    if len(lines) == 1:
        return (f"1 {noun} {reason} was skipped (line {lines[0]})",)
    return (f"{len(lines)} {noun}s {reason} were skipped (lines {listed_lines(lines)})",)


def with_single_annotators(rows: Rows) -> tuple[Rows, list[str]]:
    """Return the rows with an id that is joined with itself (``W1,W1``) as this id, and notes.

    A note also names ids that join several annotators of the file: they stay annotators of their own.
    """
    if rows.annotator is None:
        return rows, []
    ids = [text for text in rows.annotator.unique(maintain_order=True) if text]
    parts = {text: [part.strip() for part in ID_SEPARATOR.split(text)] for text in ids}
    repeated = {text: p[0] for text, p in parts.items() if len(p) > 1 and p[0] and len({*p}) == 1}
    known = {text.strip() for text in ids} | {*repeated.values()}
    joined = [text for text, p in parts.items() if len({*p}) > 1 and known.issuperset(p)]
    notes = []
    if repeated:
        notes.append(
            note(
                "{n:d} annotators are an id joined with itself ({example}), read as this id",
                n=len(repeated),
                example=quoted(next(iter(repeated))),
            )
        )
    if joined:
        notes.append(
            note(
                "{n:d} annotators join the ids of others ({example}), read as one annotator each",
                n=len(joined),
                example=quoted(joined[0]),
            )
        )
    return replace(rows, annotator=rows.annotator.replace(repeated)), notes


def column_of(table: Table, names: Sequence[str]) -> pl.Series | None:
    """Return the column with the first matching plain name, or None."""
    name = first_of(table.frame.columns, names)
    return None if name is None else table.frame[name]


def missing(table: Table, form: str, expected: str, kind: str = "judgments") -> InputError:
    """Return the error for a file whose header does not have the requested format.

    kind: the expected kind of file, see `bws.base.file_kinds`.
    """
    columns = table.frame.columns
    message = (
        f"not in format {form}: it has the columns {', '.join(columns[:20])}; expected "
        f"{expected}{remark(columns, kind)}"
    )
    return InputError(Problem(table.file, None, message))


def respelled_order(
    order_texts: pl.Series, before: Sequence[pl.Series], after: Sequence[pl.Series]
) -> pl.Series:
    """Return the display orders in the new spellings of the items; unreadable ones stay unchanged."""
    changed = np.any([(b != a).to_numpy() for b, a in zip(before, after, strict=True)], axis=0)
    texts = order_texts.to_list()
    for row in np.flatnonzero(changed & (order_texts != "").to_numpy()).tolist():
        positions = order_of(normal_id(texts[row]), [normal_id(column[row]) for column in before])
        if positions:
            texts[row] = ";".join(after[position][row] for position in positions)
    return series(texts)


def order_of(text: str, items: Sequence[str]) -> list[int] | None:
    """Return the positions in `items` in the order of the semicolon-separated `text`.

    >>> order_of("b;a; c", ["a", "b", "c"]), order_of("y;x;y", ["y", "x;y"]), order_of("a", ["b"])
    ([1, 0, 2], [0, 1], None)
    """

    def remaining_positions(text: str, left: Sequence[int]) -> list[int] | None:
        if not left:
            return [] if text == "" else None
        for position in left:
            after = text.strip().removeprefix(items[position]).lstrip()
            if text.strip().startswith(items[position]) and after[:1] in (";", ""):
                remaining = remaining_positions(
                    after[1:], [index for index in left if index != position]
                )
                if remaining is not None:
                    return [position, *remaining]
        return None

    return remaining_positions(text, range(len(items)))
