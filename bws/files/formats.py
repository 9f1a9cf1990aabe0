"""The formats of judgments that can be read: one table, from which reading, detection and options come.

To add a format, define a `Format` here or in a module of its own, and put it into `FORMATS`; another package
names its formats as entry points of the group ``bws.formats``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bws.file_kinds import BEST, WORST, first_of, numbered, remark
from bws.files import mturk, potato
from bws.files.columns import quoted, series
from bws.files.judgments import OnInvalid, judgments_of, right_answers
from bws.files.pairs import pair_id, pair_of_list
from bws.files.rows import Format, Rows, rows_of
from bws.files.table import Table, table_of, text_bytes
from bws.problems import InputError, Problem
from bws.records import Judgments
from bws.textio import display_name, read_bytes

if TYPE_CHECKING:
    import polars as pl

__all__ = ["format_names", "formats", "read_judgments"]

GROUP_OF_FORMATS = "bws.formats"
SAMPLE = 200
"""Rows that tell formats apart whose headers are alike."""
LONG_PARTS = ("id", "block", "item", "value")
LONG_VALUES = {
    "1": "best", "+1": "best", "1.0": "best", "-1": "worst", "-1.0": "worst", "0": "", "0.0": "",
}  # fmt: skip


def read_judgments(
    path: str | os.PathLike[str],
    form: str = "auto",
    *,
    on_invalid: OnInvalid = "error",
    parts: Mapping[str, str] | None = None,
    merge_variants: bool = False,
) -> Judgments:
    """Read judgments of any format and check them.

    path: a file (``-`` is standard input, ``.gz`` is unpacked); for Potato also a folder.
    form: one of `format_names`; ``auto`` finds out which format it is, and `Judgments.source` says which.
    on_invalid: ``error`` raises InputError with every fault; ``skip`` leaves the rows that have one out and
        lists them in `Judgments.left_out`; items that are in these rows only are not there.
    parts: only for ``mturk-batch``: the names of its columns, see `bws.files.mturk.rows`.
    merge_variants: whether items that differ in white space, case and punctuation only are one item, called
        by the most frequent spelling, of equally frequent ones by the first. Without it they stay apart, and
        `Judgments.variants` tells of them; see `bws.variants`.

    Rows are of one tuple when they have the same tuple id or, in files without tuple ids, the same group
    and set of items. An id is compared as Unicode NFC without outer white space.
    """
    if form not in format_names():
        raise ValueError(f"form is {form!r}; allowed are {', '.join(format_names())}")
    if parts and form != mturk.FORMAT.name:
        raise ValueError(f"parts are given for form {form!r}; only {mturk.FORMAT.name!r} has some")
    return judgments_of(_rows(path, form, parts), on_invalid, merge_variants=merge_variants)


def format_names() -> tuple[str, ...]:
    """Return the values that `read_judgments` takes as `form`."""
    return ("auto", *sorted((*formats(), potato.NAME)))


@cache
def formats() -> dict[str, Format]:
    """Return the formats that are tables, by name; the more special a header, the earlier it stands."""
    others = [point.load() for point in entry_points(group=GROUP_OF_FORMATS)]
    return {form.name: form for form in (*others, *FORMATS)}


def _rows(path: str | os.PathLike[str], form: str, parts: Mapping[str, str] | None) -> Rows:
    name = display_name(path)
    if form == potato.NAME or (form == "auto" and _is_json(path)):
        return potato.rows(path)
    table = table_of(text_bytes(read_bytes(path), name), name)
    if form == "auto":
        return _detected_rows(table)
    formats()[form].check(table)
    return mturk.rows(table, parts) if parts else formats()[form].rows(table)


def _is_json(path: str | os.PathLike[str]) -> bool:
    return Path(path).is_dir() or os.fspath(path).removesuffix(".gz").endswith((".json", ".jsonl"))


def _detected_rows(table: Table) -> Rows:
    """Return the rows in the format that the header fits.

    Where it fits several, the one in which most of the first rows are right. Raises InputError that lists
    the candidates where that leaves more than one, and the known formats where none fits.
    """
    fitting = [form for form in formats().values() if form.fits(table.frame.columns)]
    if not fitting:
        header = ", ".join(table.frame.columns[:20])
        known = "; ".join(f"{name}: {form.expected}" for name, form in formats().items())
        message = f"has the columns {header}, which is no format of judgments; known are {known}"
        message += remark(table.frame.columns)
        raise InputError(Problem(table.file, None, message))
    if len(fitting) > 1:
        head = Table(table.file, table.frame.head(SAMPLE), table.lines[:SAMPLE])
        right = {form.name: right_answers(form.rows(head)) for form in fitting}
        fitting = [form for form in fitting if right[form.name] == max(right.values())]
        if len(fitting) > 1 and max(right.values()) > 0:
            names = " or ".join(form.name for form in fitting)
            raise InputError(Problem(table.file, None, f"may be of format {names}; say which"))
    return fitting[0].rows(table)  # where nothing is right, the most special header counts


def _with_items(name: str, item: str, best: str, worst: str, expected: str) -> Format:
    """Return a format with columns of items that end in 1, 2, ..., and two that name one of these."""

    def rows(table: Table) -> Rows:
        columns = table.frame.columns
        named = {column.lower(): column for column in columns}
        return rows_of(table, name, numbered(columns, item), named[best], named[worst])

    return Format(
        name,
        expected,
        lambda columns: bool(numbered(columns, item)) and {best, worst} <= _lower(columns),
        rows,
    )


def _lower(columns: Sequence[str]) -> set[str]:
    return {column.lower() for column in columns}


def _semeval_rows(table: Table) -> Rows:
    """Return the rows; the names of the columns vary and have typos, items are pairs as Python lists."""
    columns = table.frame.columns
    best, worst = (first_of(columns, names) or "" for names in (BEST, WORST))
    found = rows_of(table, "semeval", numbered(columns), best, worst, "position")
    return replace(found, items=[_pairs(column) for column in found.items])


def _pairs(column: pl.Series) -> pl.Series:
    import polars as pl

    distinct = column.unique()
    ids = [pair_of_list(text) for text in distinct]
    return column.replace_strict(distinct, pl.Series(ids, dtype=pl.String))


def _semrel_rows(table: Table) -> Rows:
    named = {column.lower(): column for column in table.frame.columns}
    halves = _halves(table.frame.columns)
    first = [name for name, _ in halves]
    found = rows_of(table, "semrel", first, named["best-pair"], named["worst-pair"], "letter")
    second = {name for _, name in halves}
    rest = {name: column for name, column in found.columns.items() if name not in second}
    both = [zip(table.frame[a], table.frame[b], strict=True) for a, b in halves]
    return replace(
        found, items=[series(pair_id(*pair) for pair in pairs) for pairs in both], columns=rest
    )


def _halves(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns of each pair: (pair1a, pair1b), (pair2a, pair2b), ..."""
    named = {column.lower(): column for column in columns}
    bare = [name[:-1] for name in named if name.startswith("pair") and name.endswith("a")]
    pairs = numbered(bare, "pair")
    if not all(f"{pair}b" in named for pair in pairs):
        return []
    return [(named[f"{pair}a"], named[f"{pair}b"]) for pair in pairs]


def _long_rows(table: Table) -> Rows:
    """Return a row for each id and block: bwsTools' long form has one for each item.

    A block in which more than one item is best or worst, or which has not as many items as the first, is a
    problem.
    """
    named = {column.lower(): column for column in table.frame.columns}
    written = [table.frame[named[part]].str.strip_chars() for part in LONG_PARTS]
    blocks: dict[tuple[str, str], _Block] = {}
    problems = list(table.problems)
    for line, person, block, item, value in zip(table.lines.tolist(), *written, strict=True):
        found = blocks.setdefault((person, block), _Block(line, person))
        if value in LONG_VALUES:
            found.add(item, LONG_VALUES[value])
        else:
            message = f"value is {quoted(value)}; it must be 1 (best), -1 (worst) or 0"
            problems.append(Problem(table.file, line, message))
            found.broken = True
    return _of_blocks(table.file, list(blocks.values()), problems)


class _Block:
    """The items that one person saw together."""

    def __init__(self, line: int, annotator: str) -> None:
        self.line, self.annotator, self.broken = line, annotator, False
        self.items: list[str] = []
        self.chosen: dict[str, list[str]] = {"best": [], "worst": [], "": []}

    def add(self, item: str, role: str) -> None:
        self.items.append(item)
        self.chosen[role].append(item)

    def faults(self, k: int) -> list[str]:
        found = []
        if len(self.items) != k:
            found.append(f"{len(self.items)} items in this block; the first block has {k}")
        for role in ("best", "worst"):
            if len(self.chosen[role]) > 1:
                found.append(
                    f"{len(self.chosen[role])} items of this block are {role}; one is allowed"
                )
        return found


def _of_blocks(file: str, blocks: Sequence[_Block], problems: list[Problem]) -> Rows:
    if not blocks:
        raise InputError(Problem(file, None, "holds no judgments"))
    k = len(blocks[0].items)
    right = []
    for block in blocks:
        faults = block.faults(k) if not block.broken else []
        problems += [Problem(file, block.line, fault) for fault in faults]
        if not faults and not block.broken:
            right.append(block)

    return Rows(
        file=file,
        form="long",
        lines=np.array([block.line for block in right], np.int64),
        items=[series([block.items[place] for block in right]) for place in range(k)],
        best=series(["".join(block.chosen["best"]) for block in right]),
        worst=series(["".join(block.chosen["worst"]) for block in right]),
        annotator=series([block.annotator for block in right]),
        problems=tuple(problems),
    )


FORMATS = (
    mturk.FORMAT,
    Format(  # Label Studio's export of SemRel, answers A to D
        "semrel",
        "pair1a, pair1b, pair2a, ..., best-pair, worst-pair",
        lambda columns: bool(_halves(columns)) and {"best-pair", "worst-pair"} <= _lower(columns),
        _semrel_rows,
    ),
    Format(  # bwsTools: 1 best, -1 worst, 0 neither
        "long",
        ", ".join(LONG_PARTS),
        lambda columns: set(LONG_PARTS) <= _lower(columns),
        _long_rows,
    ),
    _with_items("hollis", "option", "best", "worst", "best, worst, option1, option2, ..."),
    _with_items("km", "item", "bestitem", "worstitem", "Item1, Item2, ..., BestItem, WorstItem"),
    _with_items("csv", "item", "best", "worst", "item1, item2, ..., best, worst"),
    Format(  # positions from 1
        "semeval",
        "columns that end in 1, 2, ..., and Best, Worst or Most_Related, Least_Related",
        lambda columns: bool(
            numbered(columns) and first_of(columns, BEST) and first_of(columns, WORST)
        ),
        _semeval_rows,
    ),
)
"""The formats that are tables, more special headers first; those of other packages come before them."""
