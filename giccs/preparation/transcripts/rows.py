"""Readers for tables (comma, semicolon or tab) and JSON with one turn or one dialogue per row or object.

Corpora such as CROWDSS (Frommherz and Zarcone 2021) are tables with text and dialogue acts. If a turn has
several rows, one per act, the rows have the same turn number and speaker. Tables with one row per dialogue
are spreadsheets with a column for the context and one per candidate. JSON Lines or the elements of a JSON
array are dialogues (``turns`` of strings or objects), conversations of chat logs
(`giccs.preparation.transcripts.chats`), or turns.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import filterfalse, islice
from typing import Any

from bws.base.problems import InputError, Location, Problem
from bws.base.text import display_name
from bws.files.schema import Row, json_values, message_text, table_rows
from bws.files.table import Table, read_table
from giccs.preparation.transcripts.chats import find_chat, is_message, join_replies
from giccs.preparation.transcripts.names import ACT_COLUMN, PART_NAMES, assign_columns, find_columns
from giccs.preparation.transcripts.objects import (
    DialogueColumns,
    Line,
    ObjectReader,
    Transcript,
    stem,
)


def read_json(
    path: str | os.PathLike[str],
    columns: Mapping[str, str],
    layout: DialogueColumns | None = None,
) -> Transcript:
    """Read JSON Lines or a JSON array; dialogues without an id are named after the file and their position.

    columns: names of keys that differ from the usual ones, by part ("text", "speaker", ...).
    layout: the keys of a dialogue's parts; None: an object with ``turns`` is a dialogue, its candidates
        are in ``candidates``, and any other object is a conversation of a chat log or a turn.
    """
    file = display_name(path)
    reader = ObjectReader(file, columns, layout)
    rows = [_json_row(*entry) for entry in json_values(path)]
    broken = [problem for row in rows for problem in row.problems]
    rows = [row for row in rows if not row.problems]
    messages: dict[str, list[Row]] = {}
    for position, row in enumerate(_with_trees(rows, reader), start=1):
        name = f"{stem(file)}-{position}"
        if layout or "turns" in row.values:
            reader.add_dialogue(row, name)
        elif chat := find_chat(row.values):
            reader.add_chat(row, chat, name)
        elif is_message(row.values):
            named = {part: key for part, key in columns.items() if key in row.values}
            dialogue = assign_columns(row.values, named).get("dialogue", "")
            messages.setdefault(str(row.values.get(dialogue, "")), []).append(row)
        else:
            reader.add_turn(row, stem(file))
    for dialogue_rows in messages.values():
        reader.add_messages(dialogue_rows, stem(file))
    unused = [
        Problem(file, None, f"key {key!r} ignored in {times} objects")
        for key, times in sorted(reader.unused.items())
    ]
    return reader.transcript(unused, reader.unused, broken)


def _json_row(location: Location, value: Any, reason: str) -> Row:
    """Return the row of a JSON value; a list of messages is a conversation."""
    if isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value):
        value = {"messages": value}
    row = Row(location, value if isinstance(value, dict) else {})
    if not row.values:
        reason = reason or f"it is {message_text(value)}"
        row.wrong(f"not a JSON object ({reason}); expected one per line or element")
    return row


def _with_trees(rows: Sequence[Row], reader: ObjectReader) -> list[Row]:
    """Return the rows with a tree in place of the messages that belong to it by ``parent_id``."""

    def is_node(row: Row) -> bool:
        return {"message_id", "parent_id"} <= row.values.keys()

    nodes = list(filter(is_node, rows))
    trees, n_lost = join_replies(row.values for row in nodes)
    reader.notes.update({"messages without their tree left out": n_lost} if n_lost else {})
    locations = {row.values["message_id"]: row.location for row in nodes}
    tree_rows = [Row(locations[tree["message_tree_id"]], tree) for tree in trees]
    return [*tree_rows, *filterfalse(is_node, rows)]


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
