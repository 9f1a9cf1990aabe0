"""The texts of items: from a table or JSON Lines of items, dialogues with candidates, or a benchmark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bws.base.file_kinds import ITEM, first_of
from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_bytes
from bws.files.columns import quoted
from bws.files.schema import json_objects
from bws.files.table import table_of, text_bytes

TEXT = ("text", "utterance", "sentence", "word", "content")
"""Names of the column of texts, the first existing one is used."""
GROUP = ("group", "dialogueid")
MAX_PROBLEMS = 5


class _Row(NamedTuple):
    line: int
    group: str
    item: str
    text: str


def read_item_texts(path: str | os.PathLike[str]) -> dict[tuple[str, str], str]:
    """Return (group, item) -> text; the group is empty without groups.

    A table (.csv, .tsv) or JSON Lines have a row per item with its id (item, item_id or utterance_id), its
    text (the first of `TEXT`) and perhaps its group; JSON Lines may also be dialogues with candidates.

    Raises InputError without these columns, and for an item with two texts.
    """
    name = display_name(path)
    is_json = name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    texts: dict[tuple[str, str], str] = {}
    problems = []
    for row in _of_objects(path, name) if is_json else _of_table(path, name):
        key = normal_id(row.group), normal_id(row.item)
        if texts.setdefault(key, row.text) != row.text:
            message = f"item {quoted(row.item)} has another text in an earlier line; expected one"
            problems.append(Problem(name, row.line, message))
    if problems:
        raise InputError(problems[:MAX_PROBLEMS])
    return texts


def _of_table(path: str | os.PathLike[str], name: str) -> Iterator[_Row]:
    separator = "\t" if name.removesuffix(".gz").endswith(".tsv") else None
    table = table_of(text_bytes(read_bytes(path), name), name, separator=separator)
    if table.problems:
        raise InputError(table.problems)
    item, text, group = _columns(table.frame.columns, name)
    groups = table.frame[group].to_list() if group else [""] * len(table.frame)
    columns = table.lines.tolist(), groups, table.frame[item].to_list(), table.frame[text].to_list()
    yield from map(_Row, *columns)


def _of_objects(path: str | os.PathLike[str], name: str) -> Iterator[_Row]:
    for line, values in json_objects(path):
        candidates = values.get("candidates")
        for row in candidates if isinstance(candidates, list) else [values]:
            fields: Mapping[str, Any] = row if isinstance(row, Mapping) else {}
            item, text, _ = _columns([*fields], name, line)
            group = first_of(values, GROUP)
            group_id = str(values[group]) if group else ""
            yield _Row(line, group_id, str(fields[item]), str(fields[text]))


def _columns(columns: list[str], name: str, line: int | None = None) -> tuple[str, str, str | None]:
    """Return the columns of the item, its text, and its group; InputError without one of the first two."""
    item, text = first_of(columns, ITEM), first_of(columns, TEXT)
    if item is None or text is None:
        named = ", ".join(columns) or "none"
        message = f"no texts of items; expected the columns item and text, found {named}"
        raise InputError(Problem(name, line, message))
    return item, text, first_of(columns, GROUP)
