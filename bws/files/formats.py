"""Table of the judgment formats, from which reading, detection and options are derived.

To add a format, define a `Format` here or in its own module and add it to `FORMATS`. Other packages add
formats by entry points of the group ``bws.formats``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bws.file_kinds import BEST, WORST, first_of, numbered, remark
from bws.files import label_studio, mturk, potato, qualtrics
from bws.files.columns import quoted, series
from bws.files.controls import name_list, with_named_controls
from bws.files.judgments import (
    OnInvalid,
    judgments_from_records,
    judgments_of,
    right_answers,
)
from bws.files.pairs import pair_id, pair_of_list
from bws.files.rows import Format, Rows, rows_of
from bws.files.table import Table, table_of, text_bytes
from bws.frames import Source, check_source, is_path
from bws.problems import InputError, Problem
from bws.records import Judgment, Judgments
from bws.textio import display_name, read_bytes

if TYPE_CHECKING:
    import polars as pl

__all__ = ["as_judgments", "format_names", "formats", "read_judgments"]

GROUP_OF_FORMATS = "bws.formats"
SAMPLE = 200
"""Number of rows used to distinguish formats with similar headers."""
LONG_PARTS = ("id", "block", "item", "value")
LONG_VALUES = {
    "1": "best", "+1": "best", "1.0": "best", "-1": "worst", "-1.0": "worst", "0": "", "0.0": "",
}  # fmt: skip


def as_judgments(
    judgments: Judgments | Iterable[Judgment] | Source, control: Iterable[str] = ()
) -> Judgments:
    """Return judgments as they are, or read them from a path, a data frame or records.

    control: control items, as in `read_judgments`; for judgments that were read, in addition to theirs.
    """
    if isinstance(judgments, Judgments):
        return with_controls(judgments, control)
    if isinstance(judgments, Sequence) and any(isinstance(row, Judgment) for row in judgments):
        if not all(isinstance(row, Judgment) for row in judgments):
            raise TypeError("expected records of one type; got dicts and bws.Judgment")
        return judgments_from_records(judgments, control=control)
    check_source(judgments, "bws.Judgments")
    return read_judgments(judgments, control=control)


def with_controls(judgments: Judgments, names: Iterable[str]) -> Judgments:
    """Return the judgments with further control items, by id or as ``ID=best`` or ``ID=worst``."""
    names = name_list(names)
    if not names:
        return judgments
    tuples = with_named_controls(judgments.tuples, names, judgments.source or "judgments")
    if not tuples.n_scored:
        raise ValueError("all items are control items; expected others")
    return replace(judgments, tuples=tuples)


def read_judgments(
    path: Source,
    form: str = "auto",
    *,
    on_invalid: OnInvalid = "error",
    parts: Mapping[str, str] | None = None,
    merge_variants: bool = False,
    control: Iterable[str] = (),
    control_optional: bool = False,
    allow_copies: bool = False,
) -> Judgments:
    """Read and validate judgments in any format.

    path: a file (``-`` is standard input, ``.gz`` is decompressed); for Potato also a folder. A pandas or
        Polars data frame or a list of dicts is read like the CSV file of its rows (`bws.frames`).
    form: one of `format_names`; ``auto`` detects the format, which is stored in `Judgments.source`.
    on_invalid: ``error`` raises InputError with every fault. ``skip`` skips rows with faults and lists these
    in
        `Judgments.left_out`; items that occur only in skipped rows are omitted.
    parts: column names for ``mturk-batch``, see `bws.files.mturk.rows`.
    merge_variants: merge items that differ only in white space, case and punctuation under the most frequent
        spelling, or the first of equally frequent ones. Otherwise they stay separate and are listed in
        `Judgments.variants`; see `bws.variants`.
    control: ids of control items, in addition to those of a column ``control``, optionally with the answer
        expected: ``ID=best`` or ``ID=worst``. Control items may occur several times in a row. They are in no
        result on items; the other items of their tuples are scored from all rows.
    control_optional: whether control items may be in no row, as in an earlier batch of a study
        (`bws.anchor`); otherwise an error.
    allow_copies: whether reliability, agreement and noise ceilings accept judgments that occur again under
        other ids (`Judgments.copies`), which they otherwise refuse; see `bws.copies`.

    Rows belong to the same tuple if they have the same tuple id or, in files without tuple ids, the same
    group and set of items. Ids are compared as Unicode NFC without surrounding white space.
    """
    if form not in format_names():
        raise ValueError(f"unknown form {form!r}; expected one of {', '.join(format_names())}")
    if parts and form != mturk.FORMAT.name:
        raise ValueError(
            f"parts are not supported for form {form!r}, only for {mturk.FORMAT.name!r}"
        )
    rows = _rows(path, form, parts)
    judgments = judgments_of(
        rows, on_invalid, merge_variants=merge_variants, control=control, control_optional=control_optional
    )  # fmt: skip
    return replace(judgments, allow_copies=allow_copies)


def format_names() -> tuple[str, ...]:
    """Return the possible values of `form` in `read_judgments`."""
    return ("auto", *sorted((*formats(), potato.NAME)))


@cache
def formats() -> dict[str, Format]:
    """Return the tabular formats by name; formats with more specific headers come first."""
    external_formats = [point.load() for point in entry_points(group=GROUP_OF_FORMATS)]
    return {form.name: form for form in (*external_formats, *FORMATS)}


def _rows(path: Source, form: str, parts: Mapping[str, str] | None) -> Rows:
    name = display_name(path)
    if form == potato.NAME or (form in ("auto", label_studio.FORMAT.name) and _is_json(path)):
        documents = potato.read_documents(path)
        content = documents[0].content if len(documents) == 1 else None
        if form != potato.NAME and label_studio.is_export(content):
            return label_studio.rows(content, name)
        if form != label_studio.FORMAT.name:
            return potato.rows(documents, name)
    table = table_of(text_bytes(read_bytes(path), name), name)
    if form == "auto":
        return _detected_rows(table)
    formats()[form].check(table)
    return mturk.rows(table, parts) if parts else formats()[form].rows(table)


def _is_json(path: Source) -> bool:
    return is_path(path) and (
        Path(path).is_dir() or os.fspath(path).removesuffix(".gz").endswith((".json", ".jsonl"))
    )


def _detected_rows(table: Table) -> Rows:
    """Return the rows in the format that matches the header.

    If several formats match, it is the one in which most of the first rows are valid. Raises InputError with
    the candidates if this is ambiguous, and with all known formats if none matches.
    """
    import polars as pl

    fitting = [form for form in formats().values() if form.fits(table.frame.columns)]
    if not fitting:
        header = ", ".join(table.frame.columns[:20])
        known_formats = "; ".join(f"{name}: {form.expected}" for name, form in formats().items())
        message = (
            f"the columns {header} match no format of judgments; known formats are {known_formats}"
        )
        message += remark(table.frame.columns)
        raise InputError(Problem(table.file, None, message))
    if len(fitting) > 1:
        # An answer 1.0 can be the item 1 as well as the first position.
        first_rows = table.frame.head(SAMPLE).select(pl.all().str.replace(r"^([0-9]+)\.0*$", "$1"))
        head = Table(table.file, first_rows, table.lines[:SAMPLE])
        right = {form.name: right_answers(form.rows(head)) for form in fitting}
        fitting = [form for form in fitting if right[form.name] == max(right.values())]
        if len(fitting) > 1 and max(right.values()) > 0:
            names = " or ".join(form.name for form in fitting)
            raise InputError(
                Problem(table.file, None, f"ambiguous format: {names}; specify one with --from")
            )
    return fitting[0].rows(table)  # If no row is valid, the most specific header has priority.


def _with_items(name: str, item: str, best: str, worst: str, expected: str) -> Format:
    """Return a format with item columns numbered 1, 2, ..., and a column each for the best and the worst
    item."""

    def rows(table: Table) -> Rows:
        columns = table.frame.columns
        column_by_name = {column.lower(): column for column in columns}
        return rows_of(
            table, name, numbered(columns, item), column_by_name[best], column_by_name[worst]
        )

    return Format(
        name,
        expected,
        lambda columns: bool(numbered(columns, item)) and {best, worst} <= _lower(columns),
        rows,
    )


def _lower(columns: Sequence[str]) -> set[str]:
    return {column.lower() for column in columns}


def _semeval_rows(table: Table) -> Rows:
    """Return the rows; column names vary and contain typos, and items are pairs written as Python lists."""
    columns = table.frame.columns
    best, worst = (first_of(columns, names) or "" for names in (BEST, WORST))
    rows = rows_of(table, "semeval", numbered(columns), best, worst, "position")
    return replace(rows, items=[_pairs(column) for column in rows.items])


def _pairs(column: pl.Series) -> pl.Series:
    import polars as pl

    distinct = column.unique()
    ids = [pair_of_list(text) for text in distinct]
    return column.replace_strict(distinct, pl.Series(ids, dtype=pl.String))


def _semrel_rows(table: Table) -> Rows:
    column_by_name = {column.lower(): column for column in table.frame.columns}
    halves = _halves(table.frame.columns)
    first = [name for name, _ in halves]
    rows = rows_of(
        table, "semrel", first, column_by_name["best-pair"], column_by_name["worst-pair"], "letter"
    )
    second = {name for _, name in halves}
    other_columns = {name: column for name, column in rows.columns.items() if name not in second}
    half_pairs = [zip(table.frame[a], table.frame[b], strict=True) for a, b in halves]
    return replace(
        rows,
        items=[series(pair_id(*pair) for pair in pairs) for pairs in half_pairs],
        columns=other_columns,
    )


def _halves(columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns of each pair: (pair1a, pair1b), (pair2a, pair2b), ..."""
    column_by_name = {column.lower(): column for column in columns}
    bare = [name[:-1] for name in column_by_name if name.startswith("pair") and name.endswith("a")]
    pairs = numbered(bare, "pair")
    if not all(f"{pair}b" in column_by_name for pair in pairs):
        return []
    return [(column_by_name[f"{pair}a"], column_by_name[f"{pair}b"]) for pair in pairs]


def _long_rows(table: Table) -> Rows:
    """Return one row per id and block of the long form of bwsTools, which has one row per item.

    Blocks with several best or worst items, or with another number of items than the first block, are
    problems.
    """
    column_by_name = {column.lower(): column for column in table.frame.columns}
    part_columns = [table.frame[column_by_name[part]].str.strip_chars() for part in LONG_PARTS]
    blocks: dict[tuple[str, str], _Block] = {}
    problems = list(table.problems)
    for line, person, block, item, value in zip(table.lines.tolist(), *part_columns, strict=True):
        person_block = blocks.setdefault((person, block), _Block(line, person))
        if value in LONG_VALUES:
            person_block.add(item, LONG_VALUES[value])
        else:
            message = f"value is {quoted(value)}; it must be 1 (best), -1 (worst) or 0"
            problems.append(Problem(table.file, line, message))
            person_block.broken = True
    return _of_blocks(table.file, list(blocks.values()), problems)


class _Block:
    """The items shown to a person together."""

    def __init__(self, line: int, annotator: str) -> None:
        self.line, self.annotator, self.broken = line, annotator, False
        self.items: list[str] = []
        self.chosen: dict[str, list[str]] = {"best": [], "worst": [], "": []}

    def add(self, item: str, role: str) -> None:
        self.items.append(item)
        self.chosen[role].append(item)

    def faults(self, k: int) -> list[str]:
        block_faults = []
        if len(self.items) != k:
            block_faults.append(f"{len(self.items)} items in this block; the first block has {k}")
        for role in ("best", "worst"):
            if len(self.chosen[role]) > 1:
                block_faults.append(
                    f"{len(self.chosen[role])} items of this block are {role}; expected one"
                )
        return block_faults


def _of_blocks(file: str, blocks: Sequence[_Block], problems: list[Problem]) -> Rows:
    if not blocks:
        raise InputError(Problem(file, None, "no judgments"))
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
        items=[series([block.items[index] for block in right]) for index in range(k)],
        best=series(["".join(block.chosen["best"]) for block in right]),
        worst=series(["".join(block.chosen["worst"]) for block in right]),
        annotator=series([block.annotator for block in right]),
        problems=tuple(problems),
    )


FORMATS = (
    mturk.FORMAT,
    qualtrics.FORMAT,
    label_studio.FORMAT,
    Format(  # Label Studio's export of SemRel, with answers A to D.
        "semrel",
        "pair1a, pair1b, pair2a, ..., best-pair, worst-pair",
        lambda columns: bool(_halves(columns)) and {"best-pair", "worst-pair"} <= _lower(columns),
        _semrel_rows,
    ),
    Format(  # bwsTools: 1 best, -1 worst, 0 neither.
        "long",
        ", ".join(LONG_PARTS),
        lambda columns: set(LONG_PARTS) <= _lower(columns),
        _long_rows,
    ),
    _with_items("hollis", "option", "best", "worst", "best, worst, option1, option2, ..."),
    _with_items("km", "item", "bestitem", "worstitem", "Item1, Item2, ..., BestItem, WorstItem"),
    _with_items("csv", "item", "best", "worst", "item1, item2, ..., best, worst"),
    Format(  # Positions from 1.
        "semeval",
        "columns numbered 1, 2, ..., and Best, Worst or Most_Related, Least_Related",
        lambda columns: bool(
            numbered(columns) and first_of(columns, BEST) and first_of(columns, WORST)
        ),
        _semeval_rows,
    ),
)
"""The tabular formats; more specific headers first, preceded by those of other packages."""
