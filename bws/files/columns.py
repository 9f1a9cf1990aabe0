"""Which column of a file plays which part, by the names that are in use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bws.files.rows import Answers, Rows
from bws.files.table import Table
from bws.problems import InputError, Problem

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "ANNOTATOR", "BEST", "GROUP", "TUPLE", "WORST",
    "column_of", "first_of", "missing", "numbered", "rows_of",
]  # fmt: skip

BEST = ("best", "bestitem", "most", "mostrelated", "bestpair")
WORST = ("worst", "worstitem", "least", "leastrelated", "worstpair")
PEOPLE = ("annotator", "worker", "participant", "user")
ANNOTATOR = tuple(f"{person}{suffix}" for person in PEOPLE for suffix in ("", "id"))
TUPLE = ("tupleid", "tuple")
GROUP = ("group", "dialogueid")


def plain(name: str) -> str:
    """Return a column's name without case, spaces and punctuation.

    >>> plain("Most_Related"), plain("best-pair")
    ('mostrelated', 'bestpair')
    """
    return re.sub(r"[\W_]+", "", name).lower()


def first_of(columns: Iterable[str], wanted: Sequence[str]) -> str | None:
    """Return the column whose plain name is wanted most; None where there is none.

    >>> first_of(["Worst", "BestItem"], BEST)
    'BestItem'
    """
    named = {plain(column): column for column in columns}
    return next((named[name] for name in wanted if name in named), None)


def numbered(columns: Iterable[str], prefix: str = r".*?") -> list[str]:
    """Return the columns named by the prefix (a pattern) and 1, 2, 3, ..., in this order.

    Empty where a number is missing or comes twice.

    >>> numbered(["item2", "item1", "best"], "item")
    ['item1', 'item2']
    >>> numbered(["SentPair1", "SemPair2", "Best"])
    ['SentPair1', 'SemPair2']
    """
    matches = [(re.fullmatch(rf"{prefix}[ _.-]?(\d{{1,3}})", name, re.I), name) for name in columns]
    found = sorted((int(match[1]), name) for match, name in matches if match)
    right = [number for number, _ in found] == list(range(1, len(found) + 1))
    return [name for _, name in found] if right else []


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


def missing(table: Table, form: str, expected: str) -> InputError:
    """Return the error of a file whose header is not that of the format asked for."""
    header = ", ".join(table.frame.columns[:20])
    message = f"is not of format {form}: it has the columns {header}; {expected} are expected"
    return InputError(Problem(table.file, None, message))
