"""What the content of a text file is, whatever its name says."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterable

from bws.column_names import plain
from bws.file_kinds import kind_of, kind_of_header
from bws.problems import InputError, Problem

__all__ = [
    "check_is_json_lines",
    "check_is_no_markup",
    "is_header",
    "json_keys",
    "table_separator",
]

MARKUP = re.compile(r"\s*<(?:!doctype|html|head|body|table|\?xml)\b", re.I)
SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars"}
KNOWN_COLUMNS = frozenset({
    "item", "itemid", "utteranceid", "id", "group", "dialogueid", "tupleid",
    "text", "sentence", "utterance", "context", "candidates", "score",
})  # fmt: skip
"""Plain names of columns that the first line of a table often has."""


def check_is_no_markup(text: str, name: str) -> None:
    """Raise InputError where a text begins as HTML or XML, such as a page saved in place of a file."""
    if MARKUP.match(text):
        message = (
            "is an HTML or XML page; download the data itself, or save the table as CSV (UTF-8)"
        )
        raise InputError(Problem(name, None, message))


def json_keys(text: str) -> list[str] | None:
    """Return the keys of a JSON object, none for a list of other values; None where a text is neither.

    Of a list, the keys are those of its first object.

    >>> json_keys('{"item": "a"}'), json_keys("[1, 2]"), json_keys("item,score")
    (['item'], [], None)
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = value[0] if isinstance(value, list) and value else value
    return list(value) if isinstance(value, dict) else []


def check_is_json_lines(text: str, name: str) -> None:
    """Raise InputError where several lines are there and none begins a JSON object."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2 or any(line.lstrip().startswith("{") for line in lines):
        return
    check_is_no_markup(text, name)
    message = f"{len(lines)} lines are not JSON; expected JSON Lines, an object per line"
    if kind := kind_of_header(lines[0]):
        message = f"{len(lines)} lines are not JSON; this is {kind.title} (CSV); {kind.readers}"
    elif json_keys(text) is not None:
        message = "is one JSON document; expected JSON Lines, an object per line"
    raise InputError(Problem(name, None, message))


def table_separator(text: str) -> str | None:
    """Return what separates the fields, in words, of a text that is a table; None where it is a list.

    A table has tabs in its first line, or a header: two or more distinct fields with no white space around
    them, of which one is a usual name of a column or as many of which are in every row.

    >>> table_separator("id,context\\nd1,Hello, you"), table_separator("yes, please\\nno, thanks")
    ('commas', None)
    """
    lines = [line for line in text.split("\n") if line.strip()]
    for separator, words in SEPARATORS.items():
        fields = _fields(lines[:1], separator)
        if not fields or len(fields[0]) < 2:
            continue
        if separator == "\t" or (
            _may_be_header(fields[0]) and _is_table(fields[0], lines, separator)
        ):
            return words
    return None


def is_header(fields: Collection[str], others: Iterable[str]) -> bool:
    """Tell whether the first row of a table without a header is one: usual names that no other row has.

    others: the fields of the other rows. Where there are none, a usual name alone does not make a header.
    """
    if KNOWN_COLUMNS.isdisjoint(map(plain, fields)):
        return False
    rest = set(others)
    return bool(rest) and rest.isdisjoint(fields)


def _fields(lines: list[str], separator: str) -> list[list[str]]:
    """Return the rows of delimited lines; none where they cannot be read so."""
    try:
        return [
            row for row in csv.reader((f"{line}\n" for line in lines), delimiter=separator) if row
        ]
    except csv.Error:
        return []


def _may_be_header(fields: Collection[str]) -> bool:
    return len(set(fields)) == len(fields) and all(name and name == name.strip() for name in fields)


def _is_table(header: Collection[str], lines: list[str], separator: str) -> bool:
    if kind_of(header) or not KNOWN_COLUMNS.isdisjoint(map(plain, header)):
        return True
    rows = _fields(lines, separator)
    return len(rows) > 1 and all(len(row) == len(header) for row in rows)
