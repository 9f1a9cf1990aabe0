"""Reading of items for a design."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bws.base.file_kinds import check_is_no_markup, json_keys, remark, table_separator
from bws.base.frames import Source, is_path
from bws.base.ids import normal_id
from bws.base.problems import InputError, Location, Problem
from bws.base.text import display_name, read_bytes, read_text
from bws.files.columns import MAX_ID, Faults, quoted
from bws.files.schema import LocatedRecord, Unique, json_objects, normal_ids
from bws.files.table import Table, table_of, text_bytes

ITEM_COLUMNS = ("item", "item_id", "utterance_id", "id")
GROUP_COLUMNS = ("group", "dialogue_id")
SCORE_COLUMNS = frozenset({"item", "group", "score", "appearances", "best", "worst", "low", "high"})
OTHER_NAMES = ("xlsx", "xls", "ods", "json", "parquet", "html", "htm")
"""Endings of column names that never contain items."""


class Items(NamedTuple):
    """Items and their groups in the same order; `groups` is None without groups."""

    items: list[str]
    groups: list[str] | None


class _ItemRow(NamedTuple):
    line: int
    item: str
    group: str


ITEM = Unique[_ItemRow]("item", lambda row: (row.item, row.group), normal_ids)


def read_items(
    path: Source,
    item_column: str | None = None,
    group_column: str | None = None,
) -> Items:
    """Read items: .csv, .tsv or .jsonl with columns, dialogues with candidates, or a list of items.

    item_column, group_column: columns of a table or keys of JSON Lines. The item column is optional for a
    single
        column; for one of item, item_id, utterance_id and id with one of group and dialogue_id; for tables
        with both item and group; and for scores written by giccs score. It is required for any other table,
        which could be misread. The default group column is group or else dialogue_id. Items of dialogues are
        the utterance_id of their candidates, grouped by dialogue_id.

    Data frames and records are read like .csv.

    A file with any other name is a list. It is rejected if its content is JSON, HTML or a table, or if its
    name is that of another format, so that no row of a table becomes an item.

    Raises InputError with every empty item and every repeated item of a group, including repetitions that
    differ only in Unicode normalisation (NFC) or surrounding white space.
    """
    name = display_name(path)
    kind = name.removesuffix(".gz").rpartition(".")[2].lower() if is_path(path) else "csv"
    if kind in ("jsonl", "ndjson"):
        rows, grouped = _of_objects(path, name, item_column, group_column)
    elif kind in ("csv", "tsv"):
        data = text_bytes(read_bytes(path), name)
        table = table_of(data, name, separator="\t" if kind == "tsv" else None)
        if len(table.frame.columns) == 1:
            _check_is_no_table(data.decode("utf-8"), name)
        table = table.named([item_column or "", group_column or "", *ITEM_COLUMNS, *GROUP_COLUMNS])
        rows, grouped = _of_table(table, item_column, group_column)
    else:
        if item_column or group_column:
            message = "has no columns: a list of items has one per line; .csv, .tsv and .jsonl have columns"
            raise InputError(Problem(name, None, message))
        text = text_bytes(read_bytes(path), name).decode("utf-8")
        _check_is_list(text, name, kind)
        rows = [_ItemRow(n, line, "") for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        grouped = False
    items = [normal_id(row.item) for row in rows]
    groups = [normal_id(row.group) for row in rows] if grouped else None
    problems = _problems(name, rows, Items(items, groups))
    if problems:
        raise InputError(problems)
    return Items(items, groups)


def read_item_sets(path: str | os.PathLike[str]) -> list[list[str]]:
    """Read sets of items for the rules of a design: one tab- or comma-separated set per line.

    A line is parsed as CSV, so ids may contain commas in quotes. Raises InputError with every line that has
    an empty item, a repeated one, or only one.
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
                message = f"{quoted(', '.join(items))}; expected at least two distinct items"
                problems.append(Problem(name, reader.line_num, message))
            elif row:
                sets.append(items)
    except csv.Error as error:
        problems.append(Problem(name, reader.line_num, f"cannot be read ({error})"))
    if problems or not sets:
        raise InputError(problems or Problem(name, None, "no sets of items"))
    return sets


def _check_is_list(text: str, name: str, kind: str) -> None:
    """Raise InputError if a file is not a list of items with one per line; see `read_items`."""
    check_is_no_markup(text, name)
    first = text.lstrip().partition("\n")[0]
    keys = json_keys(first)
    if (keys if keys is not None else json_keys(text)) is not None:
        message = (
            "is JSON, not a list of items; names of JSON Lines must end in "
            f".jsonl{remark(keys or [], 'dialogues')}"
        )
        raise InputError(Problem(name, None, message))
    _check_is_no_table(text, name)
    if kind in OTHER_NAMES:
        message = (
            f"is named .{kind} but contains text; expected .txt for a list and .csv for a table"
        )
        raise InputError(Problem(name, None, message))


def _check_is_no_table(text: str, name: str) -> None:
    if words := table_separator(text):
        remedy = {"tabs": "name it .tsv", "vertical bars": "save it with commas as .csv"}
        message = (
            f"is a table, not a list of items: its first line has {words}; "
            f"{remedy.get(words, 'name it .csv')} and specify the item column (--item-column)"
        )
        raise InputError(Problem(name, None, message))


def _of_table(table: Table, item: str | None, group: str | None) -> tuple[list[_ItemRow], bool]:
    if table.problems:
        raise InputError(table.problems)
    columns = table.frame.columns
    item = _item_column(table.file, columns, item)
    group = _group_column(table.file, columns, group)
    groups = table.frame[group].to_list() if group else [""] * len(table.frame)
    rows = zip(table.lines.tolist(), table.frame[item].to_list(), groups, strict=True)
    return [_ItemRow(*row) for row in rows], group is not None


def _item_column(name: str, columns: Sequence[str], requested: str | None) -> str:
    """Return the item column; raise InputError if it is missing or ambiguous, see `read_items`."""
    if requested is not None:
        return _present(name, columns, requested)
    if len(columns) == 1:
        return columns[0]
    items = [column for column in columns if column in ITEM_COLUMNS]
    groups = [column for column in columns if column in GROUP_COLUMNS]
    if len(columns) == 2 and len(items) == len(groups) == 1:
        return items[0]
    if {"item", "group"} <= set(columns) or {"item", "score"} <= set(columns) <= SCORE_COLUMNS:
        return "item"
    message = (
        f"ambiguous item column; specify one of {', '.join(columns)} "
        f"(--item-column){remark(columns, 'scores')}"
    )
    raise InputError(Problem(name, None, message))


def _group_column(name: str, columns: Sequence[str], requested: str | None) -> str | None:
    if requested is not None:
        return _present(name, columns, requested)
    return next((column for column in GROUP_COLUMNS if column in columns), None)


def _present(name: str, columns: Sequence[str], column: str) -> str:
    if column not in columns:
        message = f"no column {column!r}; expected one of {', '.join(columns)}"
        raise InputError(Problem(name, None, message))
    return column


def _of_objects(
    path: str | os.PathLike[str], name: str, item: str | None, group: str | None
) -> tuple[list[_ItemRow], bool]:
    objects = json_objects(path)
    if item is None and any("candidates" in value for _, value in objects):
        if group is not None:
            message = (
                "contains dialogues, which are the groups; a group column requires an item column"
            )
            raise InputError(Problem(name, None, message))
        return _of_dialogues(objects, name), True
    columns = list(dict.fromkeys(key for _, value in objects for key in value))
    item = _item_column(name, columns, item)
    group = _group_column(name, columns, group)
    rows = [
        _ItemRow(line, _text(value.get(item)), _text(value.get(group)) if group else "")
        for line, value in objects
    ]
    return rows, group is not None


def _of_dialogues(objects: Iterable[tuple[int, Mapping[str, Any]]], name: str) -> list[_ItemRow]:
    rows, problems = [], []
    for line, value in objects:
        dialogue, candidates = value.get("dialogue_id"), value.get("candidates")
        right = isinstance(candidates, list) and all(isinstance(c, dict) for c in candidates)
        if not _text(dialogue).strip() or not right:
            message = "expected dialogue_id and candidates, a list of objects with utterance_id"
            problems.append(Problem(name, line, message))
            continue
        ids = [_text(candidate.get("utterance_id")) for candidate in value["candidates"]]
        rows += [_ItemRow(line, identity, _text(dialogue)) for identity in ids]
    if problems:
        raise InputError(problems)
    return rows


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _problems(name: str, rows: Sequence[_ItemRow], read: Items) -> list[Problem]:
    problems = []
    if not rows:
        problems.append(Problem(name, None, "no items"))
    for row in rows:
        if not row.item.strip():
            problems.append(Problem(name, row.line, "the item is empty; expected an id"))
        elif len(row.item) > MAX_ID and (length := len(normal_id(row.item))) > MAX_ID:
            message = f"the item has {length} characters; expected at most {MAX_ID}"
            problems.append(Problem(name, row.line, message))
    keys = zip(read.items, read.groups, strict=True) if read.groups else read.items
    if len(set(keys)) < len(rows):
        nonempty_rows = (row for row in rows if row.item.strip())
        problems += ITEM.problems(
            LocatedRecord(row, Location(name, row.line)) for row in nonempty_rows
        )
    if read.groups and "" in read.groups:
        ids, codes = np.unique(read.items, return_inverse=True)
        groups, group_of = np.unique(read.groups, return_inverse=True)
        faults = Faults(name, np.array([row.line for row in rows]))
        faults.add_missing_groups(
            codes[np.newaxis].astype(np.int32), ids, group_of.astype(np.int32), groups
        )
        problems += faults.problems
    return sorted(problems, key=lambda problem: problem.line or 0)
