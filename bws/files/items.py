"""Lists of items to make tuples of."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bws.files.faults import quoted
from bws.files.jsonl import json_objects
from bws.files.table import Table, read_table
from bws.files.vocabulary import MAX_ID
from bws.problems import InputError, Problem
from bws.records import normal_id
from bws.textio import display_name, read_text

__all__ = ["Items", "read_item_sets", "read_items"]

ITEM_COLUMNS = ("item", "item_id", "utterance_id", "id")
GROUP_COLUMNS = ("group", "dialogue_id")


class Items(NamedTuple):
    """Items and, in the same order, the group of each; `groups` is None where there are none."""

    items: list[str]
    groups: list[str] | None


class _Written(NamedTuple):
    line: int
    item: str
    group: str


def read_items(
    path: str | os.PathLike[str],
    item_column: str | None = None,
    group_column: str | None = None,
) -> Items:
    """Read items: .txt (one a line), .csv, .tsv or .jsonl with columns, or dialogues with candidates.

    item_column, group_column: where they are not given, the first of item, item_id, utterance_id, id, or
        the only column there is; the first of group, dialogue_id, or no groups. The items of dialogues are
        their candidates' utterance_id, grouped by dialogue_id.

    Raises InputError that names every item that is empty, or comes twice in a group, also where the two
    differ only by Unicode form (NFC) or outer white space.
    """
    name = display_name(path)
    kind = name.removesuffix(".gz").rpartition(".")[2].lower()
    if kind in ("jsonl", "ndjson"):
        written, grouped = _of_objects(read_text(path), name, item_column, group_column)
    elif kind in ("csv", "tsv"):
        separator = "\t" if kind == "tsv" else None
        written, grouped = _of_table(
            read_table(path, separator=separator), item_column, group_column
        )
    else:
        lines = read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        written = [_Written(n, line, "") for n, line in enumerate(lines, 1) if line.strip()]
        grouped = False
    problems = _problems(name, written)
    if problems:
        raise InputError(problems)
    items = [normal_id(row.item) for row in written]
    return Items(items, [normal_id(row.group) for row in written] if grouped else None)


def read_item_sets(path: str | os.PathLike[str]) -> list[list[str]]:
    """Read sets of items, for the rules of a design: a set a line, tabs (or else commas) between the items.

    A line is read as CSV, so that an id may have commas in quotes. Raises InputError that names every line
    with an empty item, a repeated one, or only one.
    """
    name = display_name(path)
    text = read_text(path)
    reader = csv.reader(
        io.StringIO(text, newline=None), delimiter="\t" if "\t" in text else ",", strict=True
    )
    sets: list[list[str]] = []
    problems: list[Problem] = []
    try:
        for row in reader:
            items = [normal_id(item) for item in row]
            if row and ("" in items or len(set(items)) < max(2, len(items))):
                message = f"{quoted(', '.join(items))}; a set has two or more distinct items"
                problems.append(Problem(name, reader.line_num, message))
            elif row:
                sets.append(items)
    except csv.Error as error:
        problems.append(Problem(name, reader.line_num, f"cannot be read ({error})"))
    if problems or not sets:
        raise InputError(problems or Problem(name, None, "holds no sets of items"))
    return sets


def _of_table(table: Table, item: str | None, group: str | None) -> tuple[list[_Written], bool]:
    if table.problems:
        raise InputError(table.problems)
    columns = table.frame.columns
    item = _column(table.file, columns, item, ITEM_COLUMNS, "item") or columns[0]
    group = _column(table.file, columns, group, GROUP_COLUMNS, "group")
    groups = table.frame[group].to_list() if group else [""] * len(table.frame)
    rows = zip(table.lines.tolist(), table.frame[item].to_list(), groups, strict=True)
    return [_Written(*row) for row in rows], group is not None


def _column(
    name: str, columns: Sequence[str], wanted: str | None, usual: Sequence[str], part: str
) -> str | None:
    """Return the column asked for, else the first usual one; an item column there must be."""
    if wanted is not None:
        if wanted not in columns:
            message = f"no column {wanted!r}; there are {', '.join(columns)}"
            raise InputError(Problem(name, None, message))
        return wanted
    found = next((column for column in usual if column in columns), None)
    if found is None and part == "item" and len(columns) > 1:
        message = (
            f"which column holds the items? there are {', '.join(columns)}; "
            f"call it one of {', '.join(usual)}, or name it (--item-column)"
        )
        raise InputError(Problem(name, None, message))
    return found


def _of_objects(
    text: str, name: str, item: str | None, group: str | None
) -> tuple[list[_Written], bool]:
    placed = json_objects(text, name)
    if item is None and any("candidates" in value for _, value in placed):
        return _of_dialogues(placed, name), True
    columns = list(dict.fromkeys(key for _, value in placed for key in value))
    item = _column(name, columns, item, ITEM_COLUMNS, "item") or columns[0]
    group = _column(name, columns, group, GROUP_COLUMNS, "group")
    rows = [
        _Written(line, _text(value.get(item)), _text(value.get(group)) if group else "")
        for line, value in placed
    ]
    return rows, group is not None


def _of_dialogues(placed: Iterable[tuple[int, dict[str, Any]]], name: str) -> list[_Written]:
    written, problems = [], []
    for line, value in placed:
        dialogue, candidates = value.get("dialogue_id"), value.get("candidates")
        right = isinstance(candidates, list) and all(isinstance(c, dict) for c in candidates)
        if not _text(dialogue).strip() or not right:
            message = (
                "a dialogue needs dialogue_id and candidates, a list of objects with utterance_id"
            )
            problems.append(Problem(name, line, message))
            continue
        ids = [_text(candidate.get("utterance_id")) for candidate in value["candidates"]]
        written += [_Written(line, identity, _text(dialogue)) for identity in ids]
    if problems:
        raise InputError(problems)
    return written


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _problems(name: str, written: Sequence[_Written]) -> list[Problem]:
    problems = []
    first: dict[tuple[str, str], _Written] = {}
    if not written:
        problems.append(Problem(name, None, "holds no items"))
    for row in written:
        item = normal_id(row.item)
        earlier = first.setdefault((normal_id(row.group), item), row)
        if not item:
            problems.append(Problem(name, row.line, "the item is empty; each must have an id"))
        elif len(item) > MAX_ID:
            message = f"the item has {len(item)} characters; at most {MAX_ID} are allowed"
            problems.append(Problem(name, row.line, message))
        elif earlier is not row:
            alike = (
                "repeats"
                if earlier.item == row.item
                else "differs only by Unicode form or white space from"
            )
            message = f"{quoted(item)} {alike} the item of line {earlier.line}; each must be unique"
            problems.append(Problem(name, row.line, message))
    return problems
