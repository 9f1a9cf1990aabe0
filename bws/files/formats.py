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

from bws.base.file_kinds import BEST, WORST, first_of, numbered, plain, remark
from bws.base.frames import Source, are_paths, check_source, is_path
from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_bytes
from bws.files import hollis, label_studio, long, mturk, potato, qualtrics
from bws.files.columns import listed_lines
from bws.files.controls import name_list, with_named_controls
from bws.files.judgments import (
    OnInvalid,
    judgments_from_records,
    judgments_of,
    right_answers,
)
from bws.files.named_columns import (
    UnknownColumnsError,
    marked_items,
    proposal,
    with_named_columns,
)
from bws.files.pairs import pair_id, pair_of_list
from bws.files.rows import Format, Rows, rows_of
from bws.files.several import joined
from bws.files.table import Table, table_of, text_bytes
from bws.files.tuples import ROUND_COLUMNS
from bws.model_annotators import RUN_COLUMNS
from bws.record_columns import COLUMN, series
from bws.records import Judgment, Judgments

if TYPE_CHECKING:
    import polars as pl

GROUP_OF_FORMATS = "bws.formats"
OWN_COLUMNS = (COLUMN, *ROUND_COLUMNS, *RUN_COLUMNS, "seconds", "comment")
"""Columns of judgments of giccs that have a meaning besides the roles."""
PAIR_ANSWERS = ("bestpair", "worstpair")
SAMPLE = 200
"""Number of rows used to distinguish formats with similar headers."""


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
        Polars data frame or a list of dicts is read like the CSV file of its rows (`base.frames`). Several
        files in a list are read as one, see `bws.files.several`.
    form: one of `format_names`; ``auto`` detects the format, which is stored in `Judgments.source`.
    on_invalid: ``error`` raises InputError with every fault. ``skip`` skips rows with faults and lists these
    in
        `Judgments.left_out`; items that occur only in skipped rows are omitted.
    parts: role -> column, for other names than those of the format: items (several separated by commas),
        best, worst, tuple_id, group, annotator and, in the long form, value. For ``mturk-batch`` see
        `bws.files.mturk.rows`.
    merge_variants: merge items that differ only in white space, case and punctuation under the most frequent
        spelling, or the first of equally frequent ones. Otherwise they stay separate and are listed in
        `Judgments.variants`; see `bws.files.variants`.
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
    if are_paths(path) and len(path) > 1:
        check_distinct(path)
        rows = joined(_rows_of_files(path, form, parts), on_invalid)
    else:
        rows = _rows(path[0] if are_paths(path) else path, form, parts)
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


def _rows_of_files(
    paths: Sequence[str | os.PathLike[str]], form: str, parts: Mapping[str, str] | None
) -> list[Rows]:
    """Return the rows of each file; an error says that the named columns are those of all files."""
    parsed_rows: list[Rows] = []
    for path in paths:
        try:
            parsed_rows.append(_rows(path, form, parts))
        except UnknownColumnsError as error:
            message = (
                "--column names the columns of all files; "
                "if they differ, give the columns the same names"
            )
            raise InputError(
                [*error.problems, Problem(display_name(path), None, message)]
            ) from None
    return parsed_rows


def _rows(path: Source, form: str, parts: Mapping[str, str] | None) -> Rows:
    name = display_name(path)
    if form == potato.NAME or (form in ("auto", label_studio.FORMAT.name) and _is_json(path)):
        if parts:
            raise InputError(
                Problem(name, None, "is JSON, not a table; --column names columns of tables")
            )
        documents = potato.read_documents(path)
        content = documents[0].content if len(documents) == 1 else None
        if form != potato.NAME and label_studio.is_export(content):
            return label_studio.rows(content, name)
        if form != label_studio.FORMAT.name:
            return potato.rows(documents, name)
    table = table_of(text_bytes(read_bytes(path), name), name).named(OWN_COLUMNS)
    is_batch = form == mturk.FORMAT.name or (
        form == "auto" and mturk.FORMAT.fits(table.frame.columns)
    )
    if parts and is_batch:
        return mturk.rows(table, parts)
    chosen = None if form == "auto" else formats()[form]
    original = table
    table = with_named_columns(table, parts, chosen) if parts else table
    if chosen is not None:
        chosen.check(table)
    rows = _detected_rows(table, original) if chosen is None else chosen.rows(table)
    return replace(rows, notes=(*rows.notes, *_notes(table)))


def _notes(table: Table) -> list[str]:
    lines = table.repeated_headers
    n_lines = "1 line repeats" if len(lines) == 1 else f"{len(lines)} lines repeat"
    were = "was" if len(lines) == 1 else "were"
    return [f"{n_lines} the header and {were} skipped ({listed_lines(lines)})"] if lines else []


def check_distinct(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Raise InputError for a file that is given twice."""
    first: set[str] = set()
    for path in paths:
        name = os.path.realpath(path)
        if name in first:
            raise InputError(
                Problem(display_name(path), None, "is given twice; expected other files")
            )
        first.add(name)


def _is_json(path: Source) -> bool:
    return is_path(path) and (
        Path(path).is_dir() or os.fspath(path).removesuffix(".gz").endswith((".json", ".jsonl"))
    )


def _detected_rows(table: Table, original: Table) -> Rows:
    """Return the rows in the format that matches the header.

    original: the table with the names in the file, for messages.

    If several formats match, it is the one in which most of the first rows are valid. Raises InputError with
    the candidates if this is ambiguous, and with all known formats if none matches.
    """
    import polars as pl

    fitting = [form for form in formats().values() if form.fits(table.frame.columns)]
    if not fitting:
        header = ", ".join(original.frame.columns[:20])
        known_formats = "; ".join(f"{name}: {form.expected}" for name, form in formats().items())
        message = f"the columns {header} match no format of judgments; "
        other_kind = remark(original.frame.columns)
        if not other_kind and (marks := marked_items(original)):
            message += marks
        elif not other_kind and (command := proposal(original)):
            message += f"if these are judgments, read them with: {command}"
            raise UnknownColumnsError(Problem(table.file, None, message))
        else:
            message += f"known formats are {known_formats}{other_kind}"
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


def _with_items(name: str, answers: tuple[str, str], expected: str) -> Format:
    """Return a format with the columns item1, item2, ... and those of the best and the worst item."""

    def columns_of(columns: Sequence[str]) -> tuple[list[str], list[str]]:
        found = [first_of(columns, [answer]) for answer in answers]
        return numbered(columns, "item"), [column for column in found if column]

    def rows(table: Table) -> Rows:
        items, (best, worst) = columns_of(table.frame.columns)
        return rows_of(table, name, items, best, worst)

    return Format(
        name,
        expected,
        lambda columns: all(len(found) > 1 for found in columns_of(columns)),
        rows,
        column_names=dict(zip(("best", "worst"), answers, strict=True)),
    )


def _has_numbered_items(columns: Sequence[str]) -> bool:
    return bool(numbered(columns) and first_of(columns, BEST) and first_of(columns, WORST))


def _is_wide(columns: Sequence[str]) -> bool:
    """Return whether only the format of any names of numbered items fits."""
    others = (form for form in FORMATS if form.name not in ("wide", "semeval"))
    return _has_numbered_items(columns) and not any(form.fits(columns) for form in others)


def _wide_rows(table: Table) -> Rows:
    columns = table.frame.columns
    best, worst = (first_of(columns, names) or "" for names in (BEST, WORST))
    return rows_of(table, "wide", numbered(columns), best, worst)


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
    best, worst = (first_of(table.frame.columns, [name]) or "" for name in PAIR_ANSWERS)
    halves = _halves(table.frame.columns)
    first = [name for name, _ in halves]
    rows = rows_of(table, "semrel", first, best, worst, "letter")
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
    column_by_name = {plain(column): column for column in columns}
    bare = [name[:-1] for name in column_by_name if name.startswith("pair") and name.endswith("a")]
    pairs = numbered(bare, "pair")
    if not all(f"{pair}b" in column_by_name for pair in pairs):
        return []
    return [(column_by_name[f"{pair}a"], column_by_name[f"{pair}b"]) for pair in pairs]


FORMATS = (
    mturk.FORMAT,
    qualtrics.FORMAT,
    label_studio.FORMAT,
    Format(  # Label Studio's export of SemRel, with answers A to D.
        "semrel",
        "pair1a, pair1b, pair2a, ..., best-pair, worst-pair",
        lambda columns: (
            bool(_halves(columns)) and all(first_of(columns, [name]) for name in PAIR_ANSWERS)
        ),
        _semrel_rows,
        column_names=dict(zip(("best", "worst"), PAIR_ANSWERS, strict=True)),
        item_name=lambda index: f"pair{index // 2 + 1}{'ab'[index % 2]}",
    ),
    long.FORMAT,
    hollis.FORMAT,
    _with_items("km", ("bestitem", "worstitem"), "Item1, Item2, ..., BestItem, WorstItem"),
    _with_items("csv", ("best", "worst"), "item1, item2, ..., best, worst"),
    Format(
        "wide",
        "columns numbered 1, 2, ... of any name with items, and Best, Worst, Most or Least with one of them",
        _is_wide,
        _wide_rows,
        item_name=lambda index: f"text{index + 1}",
    ),
    Format(  # Positions from 1.
        "semeval",
        "columns numbered 1, 2, ..., and Best, Worst or Most_Related, Least_Related",
        _has_numbered_items,
        _semeval_rows,
    ),
)
"""The tabular formats; more specific headers first, preceded by those of other packages."""
