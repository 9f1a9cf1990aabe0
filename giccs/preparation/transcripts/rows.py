"""Readers for tables (comma, semicolon or tab) and JSON Lines with one turn or one dialogue per row.

Corpora such as CROWDSS (Frommherz and Zarcone 2021) are tables with text and dialogue acts. If a turn has
several rows, one per act, the rows have the same turn number and speaker. Tables with one row per dialogue
are spreadsheets with a column for the context and one per candidate. JSON Lines have one dialogue (``turns``
of strings or objects) or one turn per line.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from bws.files.schema import json_rows, table_rows
from bws.files.table import Table, read_table
from bws.problems import InputError, Problem
from bws.textio import display_name
from giccs.preparation.transcripts.names import ACT_COLUMN, PART_NAMES, assign_columns, find_columns
from giccs.preparation.transcripts.objects import (
    DialogueColumns,
    Line,
    ObjectReader,
    Transcript,
    stem,
)

__all__ = ["read_dialogue_table", "read_json_lines"]


def read_json_lines(
    path: str | os.PathLike[str],
    columns: Mapping[str, str],
    layout: DialogueColumns | None = None,
) -> Transcript:
    """Read a JSON Lines file; dialogues without an id are named after the file and their position.

    columns: names of keys that differ from the usual ones, by part ("text", "speaker", ...).
    layout: the keys of a dialogue's parts; None: an object with ``turns`` is a dialogue, its candidates
        are in ``candidates``, and any other object is a turn.
    """
    file = display_name(path)
    reader = ObjectReader(file, columns, layout)
    broken: list[Problem] = []
    for position, row in enumerate(json_rows(path), start=1):
        if not row.values:
            broken += row.problems
        elif layout or "turns" in row.values:
            reader.add_dialogue(row, f"{stem(file)}-{position}")
        else:
            reader.add_turn(row, stem(file))
    unused = [
        Problem(file, None, f"key {key!r} ignored in {times} objects")
        for key, times in sorted(reader.unused.items())
    ]
    return reader.transcript(unused, reader.unused, broken)


def read_dialogue_table(
    path: str | os.PathLike[str],
    columns: Mapping[str, str],
    layout: DialogueColumns | None = None,
) -> Transcript:
    """Read a table; a file without a dialogue column is a single dialogue named after the file.

    columns: names of columns with non-standard names, by part ("text", "speaker", ...).
    layout: columns of a table with one row per dialogue, in which rows without an id are named after the
        file and their position; None: a row is a turn.

    Raises InputError if a column is missing or rows have the wrong number of fields.
    """
    table = read_table(path, separator="\t" if str(path).endswith((".tsv", ".tsv.gz")) else None)
    if layout:
        return _read_dialogue_rows(table, columns, layout)
    try:
        column_by_part = assign_columns(table.frame.columns, columns)
    except ValueError as error:
        raise InputError(Problem(table.file, 1, str(error))) from None
    if "text" not in column_by_part:
        available = ", ".join(table.frame.columns)
        message = (
            "no text column; expected --columns text=NAME or, for one dialogue per row, --context, --target "
            f"and --candidates; existing columns are {available}"
        )
        raise InputError([Problem(table.file, 1, message), *table.problems])
    if table.problems:
        raise InputError(table.problems)
    parts = {part: table.frame[column].to_list() for part, column in column_by_part.items()}
    parts.setdefault("dialogue", [stem(table.file)] * len(table.frame))
    empty = [""] * len(table.frame)
    rows = zip(
        table.lines.tolist(), *(parts.get(part, empty) for part in _FIELDS.values()), strict=True
    )
    lines = tuple(
        Line(table.file, line, **dict(zip(_FIELDS, map(str.strip, cells), strict=True)))
        for line, *cells in rows
    )
    _check_dialogues(lines)
    unused = _unused_columns(table, column_by_part.values())
    warnings = _unused_column_warnings(table.file, unused)
    if unused and "dialogue" not in column_by_part:
        message = (
            f"no dialogue column; all {len(lines)} rows are one dialogue (--id sets the column)"
        )
        warnings.append(Problem(table.file, 1, message))
    return Transcript(lines, tuple(warnings), unused=unused)


_FIELDS = {"number" if part == "turn" else part: part for part in PART_NAMES}


def _check_dialogues(lines: Sequence[Line]) -> None:
    unnamed = [line for line in lines if not line.dialogue]
    message = "empty dialogue id; expected one per row"
    if unnamed:
        raise InputError(Problem(line.file, line.line, message) for line in unnamed)


def _read_dialogue_rows(
    table: Table, columns: Mapping[str, str], layout: DialogueColumns
) -> Transcript:
    """Return the turns and candidates of a table with one row per dialogue."""
    if table.problems:
        raise InputError(table.problems)
    names = table.frame.columns
    try:
        column_iterator = iter(find_columns(names, [*layout.names, *columns.values()]))
    except ValueError as error:
        raise InputError(Problem(table.file, 1, str(error))) from None
    layout = replace(
        layout,
        context=tuple(islice(column_iterator, len(layout.context))),
        target=next(column_iterator) if layout.target else "",
        candidates=tuple(islice(column_iterator, len(layout.candidates))),
    )
    reader = ObjectReader(table.file, dict(zip(columns, column_iterator, strict=True)), layout)
    for position, row in enumerate(table_rows(table, names), start=1):
        reader.add_dialogue(row, f"{stem(table.file)}-{position}")
    unused = Counter({name: reader.unused[name] for name in names if reader.unused[name]})
    return reader.transcript(_unused_column_warnings(table.file, unused), unused)


def _unused_columns(table: Table, used: Collection[str]) -> Counter[str]:
    """Return the number of non-empty cells of each unused column."""
    return Counter(
        {
            name: int((table.frame[name].str.strip_chars() != "").sum())
            for name in table.frame.columns
            if name not in used
        }
    )


def _unused_column_warnings(file: str, unused: Mapping[str, int]) -> list[Problem]:
    acts = [column for column in unused if ACT_COLUMN.search(column.strip().casefold())]
    other_columns = [column for column in unused if column not in acts]
    kinds = [(acts, "columns of dialogue acts or labels"), (other_columns, "columns")]
    return [
        Problem(file, None, f"{kind} ignored: {_with_counts(unused, names)}")
        for names, kind in kinds
        if names
    ]


def _with_counts(unused: Mapping[str, int], names: Sequence[str]) -> str:
    return ", ".join(f"{name} (cells: {unused[name]})" for name in names)
