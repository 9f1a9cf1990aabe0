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
from bws.files.judgments import OnInvalid, count_valid_answers, judgments_of
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
DETECTION_ROWS = 200
"""Rows that tell formats apart whose headers are alike."""
LONG_COLUMNS = ("id", "block", "item", "value")
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
    plugin_formats = [point.load() for point in entry_points(group=GROUP_OF_FORMATS)]
    return {form.name: form for form in (*plugin_formats, *FORMATS)}


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
    candidates = [form for form in formats().values() if form.fits(table.frame.columns)]
    if not candidates:
        header = ", ".join(table.frame.columns[:20])
        format_list = "; ".join(f"{name}: {form.expected}" for name, form in formats().items())
        message = (
            f"has the columns {header}, which is no format of judgments; known are {format_list}"
        )
        message += remark(table.frame.columns)
        raise InputError(Problem(table.file, None, message))
    if len(candidates) > 1:
        head = Table(table.file, table.frame.head(DETECTION_ROWS), table.lines[:DETECTION_ROWS])
        n_valid = {form.name: count_valid_answers(form.rows(head)) for form in candidates}
        candidates = [form for form in candidates if n_valid[form.name] == max(n_valid.values())]
        if len(candidates) > 1 and max(n_valid.values()) > 0:
            names = " or ".join(form.name for form in candidates)
            raise InputError(Problem(table.file, None, f"may be of format {names}; say which"))
    return candidates[0].rows(table)  # where nothing is right, the most special header counts


def _numbered_format(name: str, item: str, best: str, worst: str, expected: str) -> Format:
    """Return a format with columns of items that end in 1, 2, ..., and two that name one of these."""

    def rows(table: Table) -> Rows:
        columns = table.frame.columns
        column_of_name = {column.lower(): column for column in columns}
        return rows_of(
            table, name, numbered(columns, item), column_of_name[best], column_of_name[worst]
        )

    return Format(
        name,
        expected,
        lambda columns: bool(numbered(columns, item)) and {best, worst} <= _lowercase(columns),
        rows,
    )


def _lowercase(columns: Sequence[str]) -> set[str]:
    return {column.lower() for column in columns}


def _semeval_rows(table: Table) -> Rows:
    """Return the rows; the names of the columns vary and have typos, items are pairs as Python lists."""
    columns = table.frame.columns
    best, worst = (first_of(columns, names) or "" for names in (BEST, WORST))
    rows = rows_of(table, "semeval", numbered(columns), best, worst, "position")
    return replace(rows, items=[_pair_ids(column) for column in rows.items])


def _pair_ids(column: pl.Series) -> pl.Series:
    import polars as pl

    distinct = column.unique()
    ids = [pair_of_list(text) for text in distinct]
    return column.replace_strict(distinct, pl.Series(ids, dtype=pl.String))


def _semrel_rows(table: Table) -> Rows:
    column_of_name = {column.lower(): column for column in table.frame.columns}
    pair_columns = _pair_columns(table.frame.columns)
    first = [name for name, _ in pair_columns]
    rows = rows_of(
        table, "semrel", first, column_of_name["best-pair"], column_of_name["worst-pair"], "letter"
    )
    second = {name for _, name in pair_columns}
    columns = {name: column for name, column in rows.columns.items() if name not in second}
    sentence_pairs = [zip(table.frame[a], table.frame[b], strict=True) for a, b in pair_columns]
    return replace(
        rows,
        items=[series(pair_id(*pair) for pair in pairs) for pairs in sentence_pairs],
        columns=columns,
    )


def _pair_columns(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns of each pair: (pair1a, pair1b), (pair2a, pair2b), ..."""
    column_of_name = {column.lower(): column for column in columns}
    bare = [name[:-1] for name in column_of_name if name.startswith("pair") and name.endswith("a")]
    pairs = numbered(bare, "pair")
    if not all(f"{pair}b" in column_of_name for pair in pairs):
        return []
    return [(column_of_name[f"{pair}a"], column_of_name[f"{pair}b"]) for pair in pairs]


def _long_rows(table: Table) -> Rows:
    """Return a row for each id and block: bwsTools' long form has one for each item.

    A block in which more than one item is best or worst, or which has not as many items as the first, is a
    problem.
    """
    column_of_name = {column.lower(): column for column in table.frame.columns}
    columns = [table.frame[column_of_name[part]].str.strip_chars() for part in LONG_COLUMNS]
    blocks: dict[tuple[str, str], _Block] = {}
    problems = list(table.problems)
    for line, person, block, item, value in zip(table.lines.tolist(), *columns, strict=True):
        rows_of_block = blocks.setdefault((person, block), _Block(line, person))
        if value in LONG_VALUES:
            rows_of_block.add(item, LONG_VALUES[value])
        else:
            message = f"value is {quoted(value)}; it must be 1 (best), -1 (worst) or 0"
            problems.append(Problem(table.file, line, message))
            rows_of_block.is_invalid = True
    return _rows_of_blocks(table.file, list(blocks.values()), problems)


class _Block:
    """The items that one person saw together."""

    def __init__(self, line: int, annotator: str) -> None:
        self.line, self.annotator, self.is_invalid = line, annotator, False
        self.items: list[str] = []
        self.items_of_role: dict[str, list[str]] = {"best": [], "worst": [], "": []}

    def add(self, item: str, role: str) -> None:
        self.items.append(item)
        self.items_of_role[role].append(item)

    def faults(self, k: int) -> list[str]:
        found = []
        if len(self.items) != k:
            found.append(f"{len(self.items)} items in this block; the first block has {k}")
        for role in ("best", "worst"):
            if len(self.items_of_role[role]) > 1:
                found.append(
                    f"{len(self.items_of_role[role])} items of this block are {role}; one is allowed"
                )
        return found


def _rows_of_blocks(file: str, blocks: Sequence[_Block], problems: list[Problem]) -> Rows:
    if not blocks:
        raise InputError(Problem(file, None, "holds no judgments"))
    k = len(blocks[0].items)
    valid = []
    for block in blocks:
        block_faults = block.faults(k) if not block.is_invalid else []
        problems += [Problem(file, block.line, fault) for fault in block_faults]
        if not block_faults and not block.is_invalid:
            valid.append(block)

    return Rows(
        file=file,
        form="long",
        lines=np.array([block.line for block in valid], np.int64),
        items=[series([block.items[position] for block in valid]) for position in range(k)],
        best=series(["".join(block.items_of_role["best"]) for block in valid]),
        worst=series(["".join(block.items_of_role["worst"]) for block in valid]),
        annotator=series([block.annotator for block in valid]),
        problems=tuple(problems),
    )


FORMATS = (
    mturk.FORMAT,
    Format(  # Label Studio's export of SemRel, answers A to D
        "semrel",
        "pair1a, pair1b, pair2a, ..., best-pair, worst-pair",
        lambda columns: (
            bool(_pair_columns(columns)) and {"best-pair", "worst-pair"} <= _lowercase(columns)
        ),
        _semrel_rows,
    ),
    Format(  # bwsTools: 1 best, -1 worst, 0 neither
        "long",
        ", ".join(LONG_COLUMNS),
        lambda columns: set(LONG_COLUMNS) <= _lowercase(columns),
        _long_rows,
    ),
    _numbered_format("hollis", "option", "best", "worst", "best, worst, option1, option2, ..."),
    _numbered_format(
        "km", "item", "bestitem", "worstitem", "Item1, Item2, ..., BestItem, WorstItem"
    ),
    _numbered_format("csv", "item", "best", "worst", "item1, item2, ..., best, worst"),
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
