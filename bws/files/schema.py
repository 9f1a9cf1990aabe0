"""Rows of tables and JSON Lines as validated records: fields, unique keys, and problems with locations."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

from bws.base.file_kinds import KINDS, check_is_json_lines, json_keys, remark
from bws.base.ids import normal_id
from bws.base.problems import InputError, Location, Problem
from bws.base.text import display_name, read_text
from bws.files.columns import quoted, shortened
from bws.files.table import Table

LINE = re.compile("^.*", re.MULTILINE)
INVISIBLY = "they differ only in Unicode normalisation or surrounding white space"

R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Field(Generic[T_co]):
    """A column of a table, or a key of JSON objects."""

    parse: Callable[[Any], T_co]
    """Converts the raw value; its ValueError describes the expectation."""
    fallback: T_co
    """Value if the field is absent or invalid."""
    required: bool = True
    """Whether absence (including JSON null) is a problem."""


class Row:
    """Named values of a row; problems are collected in `problems`."""

    def __init__(self, location: Location, values: Mapping[str, Any]) -> None:
        self.location, self.values = location, values
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def wrong(self, message: str) -> None:
        """Add a problem of this row."""
        self.problems.append(self.location.problem(message))

    def get(self, name: str, field: Field[T]) -> T:
        """Return the parsed value of a field, or its fallback if it is absent or invalid."""
        value = self.values.get(name)
        if value is None:
            if field.required:
                self.wrong(f"{name} is missing")
            return field.fallback
        try:
            return field.parse(value)
        except ValueError as error:
            self.wrong(f"{name} is {message_text(value)}; {error}")
            return field.fallback

    def warn_of_unknown(self, known_keys: frozenset[str]) -> None:
        """Add a warning for unknown keys."""
        if unknown := sorted(self.values.keys() - known_keys):
            message = f"unknown keys are ignored: {', '.join(unknown)}"
            self.warnings.append(self.location.problem(message))


class LocatedRecord(NamedTuple, Generic[R]):
    """A record and its location."""

    record: R
    location: Location


@dataclass(frozen=True)
class Unique(Generic[R]):
    """A key that must be unique among records."""

    name: str
    """Name of the key in messages."""
    key: Callable[[R], str | tuple[str, ...]]
    """The raw key; empty text is not compared."""
    normal: Callable[[Any], Hashable] = lambda key: key
    """Normalises equivalent keys, for example `normal_ids`."""

    def problems(self, rows: Iterable[LocatedRecord[R]]) -> Iterator[Problem]:
        """Yield a problem for each record whose key occurs earlier.

        >>> rows = [LocatedRecord(uid, Location("a.csv", line)) for line, uid in enumerate("xyx", start=2)]
        >>> print(*Unique[str]("uid", str).problems(rows))
        a.csv:4: repeats the uid 'x' of line 2; each must be unique
        """
        first: dict[Hashable, LocatedRecord[R]] = {}
        for row in rows:
            raw_key = self.key(row.record)
            earlier = first.setdefault(self.normal(raw_key), row)
            if earlier is row or raw_key == "":
                continue
            parts = (raw_key,) if isinstance(raw_key, str) else raw_key
            key = ", ".join(quoted(str(part)) for part in parts if part)
            location = earlier.location.as_seen_from(row.location)
            note = "" if self.key(earlier.record) == raw_key else f" ({INVISIBLY})"
            yield row.location.problem(
                f"repeats the {self.name} {key} of {location}; each must be unique{note}"
            )


@dataclass(frozen=True)
class Records(Generic[R]):
    """The records of a file, and its problems."""

    file: str
    rows: Sequence[LocatedRecord[R]]
    problems: list[Problem]
    warnings: list[Problem] = field(default_factory=list)

    def checked(self, plural: str = "") -> tuple[R, ...]:
        """Return the records; raise InputError with every problem, by line.

        plural: what the file must contain at least one of; empty if it may be empty.
        """
        if plural and not self.rows and not self.problems:
            raise InputError(Problem(self.file, None, f"no {plural}"))
        if self.problems:
            raise InputError(sorted(self.problems, key=lambda problem: problem.line or 0))
        return tuple(row.record for row in self.rows)


def records(
    file: str,
    rows: Iterable[Row],
    make: Callable[[Row], R],
    unique: Sequence[Unique[R]] = (),
    problems: Iterable[Problem] = (),
) -> Records[R]:
    """Build a record from each row that has values, including rows with problems; `problems` come first."""
    result = Records[R](file, located_records := [], [*problems])
    for row in rows:
        if row.values:
            located_records.append(LocatedRecord(make(row), row.location))
        result.problems.extend(row.problems)
        result.warnings.extend(row.warnings)
    for key in unique:
        result.problems.extend(key.problems(located_records))
    return result


@dataclass(frozen=True)
class Schema(Generic[R]):
    """Conversion of the rows of a table to records; other columns are ignored.

    >>> from bws.files.table import table_of
    >>> colours = Schema(dict, {"kite": NAME, "colour": choice({"r": "red"}, "", "r")})
    >>> print(colours.read(table_of(b"kite,colour\\nA,r\\nB,x\\n", "a.csv")).problems[0])
    a.csv:3: colour is 'x'; it must be r
    """

    make: Callable[..., R]
    """Builds a record from the fields, given by name."""
    fields: Mapping[str, Field[Any]]
    """By column; required columns must exist."""
    unique: Sequence[Unique[R]] = ()
    check: Callable[[R], Iterable[str]] = lambda record: ()
    """Yields problems of a whole record."""
    located: bool = False
    """Whether `make` also receives the ``line``."""

    def read(self, table: Table) -> Records[R]:
        """Read a table; raise InputError if a required column is missing."""
        table = table.named(self.fields)
        table.need(name for name, field in self.fields.items() if field.required)
        rows = table_rows(table, self.fields)
        return records(table.file, rows, self._record, self.unique, table.problems)

    def _record(self, row: Row) -> R:
        values: dict[str, Any] = {name: row.get(name, field) for name, field in self.fields.items()}
        if self.located:
            values["line"] = row.location.line
        record = self.make(**values)
        for message in self.check(record):
            row.wrong(message)
        return record


def table_rows(table: Table, names: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of a table with those of the named columns that exist."""
    frame = table.frame.select(name for name in names if name in table.frame.columns)
    for line, values in zip(table.lines.tolist(), frame.iter_rows(named=True), strict=True):
        yield Row(Location(table.file, line), values)


def json_rows(path: str | os.PathLike[str], kind: str = "") -> Iterator[Row]:
    """Yield a row per non-blank line; a line that is not a JSON object yields an empty row.

    kind: the expected kind of file, see `bws.base.file_kinds`.

    Raises InputError if no line is a JSON object, or if the first one is of another kind of file.
    """
    file, content = display_name(path), read_text(path)
    check_is_json_lines(content, file)
    first = True
    # Not splitlines(), because U+2028 and similar characters may occur in JSON strings.
    for line, match in enumerate(LINE.finditer(content), start=1):
        text = match.group()
        if not text.strip():
            continue
        values, reason = _json_object(text)
        if first and kind and (other_kind := remark(values or json_keys(text) or (), kind)):
            raise InputError(Problem(file, line, f"expected {KINDS[kind].title}{other_kind}"))
        first = False
        row = Row(Location(file, line), values)
        if reason:
            row.wrong(f"not a JSON object ({reason}); expected one per line")
        yield row


def json_values(path: str | os.PathLike[str]) -> Iterator[tuple[Location, Any, str]]:
    """Yield the value of each line of JSON Lines or of each element of a JSON array, or a JSON document.

    Each has its location, and the reason if it is not valid JSON. Raises InputError for other text.
    """
    file, text = display_name(path), read_text(path)
    lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(lines) == 1 or (lines and _json_value(lines[0][1])[1]):
        if text.lstrip().startswith("["):
            yield from _array_elements(file, text)
            return
        value, reason = _json_value(text)
        if not reason:
            yield Location(file, lines[0][0]), value, ""
            return
        check_is_json_lines(text, file)
    for line, line_text in lines:
        yield Location(file, line), *_json_value(line_text)


def _array_elements(file: str, text: str) -> Iterator[tuple[Location, Any, str]]:
    """Yield the elements of a JSON array with their lines, up to the first invalid one."""
    decoder = json.JSONDecoder()
    position, line, counted = text.index("[") + 1, 1, 0
    for number in count(1):
        position = _skip(text, position, " \t\r\n" + ("," if number > 1 else ""))
        line, counted = line + text.count("\n", counted, position), position
        location = Location(file, line, number)
        if text[position : position + 1] == "]":
            if text[position + 1 :].strip():
                yield location, None, "text after the end of the array"
            return
        try:
            _, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            yield location, None, str(error).split(":")[0]
            return
        yield location, *_json_value(text[position:end])
        position = end


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position


def json_objects(path: str | os.PathLike[str]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return (line, object) for each non-blank line; raise InputError with every invalid line."""
    rows = [*json_rows(path)]
    if problems := [problem for row in rows for problem in row.problems]:
        raise InputError(problems)
    if not rows:
        raise InputError(
            Problem(display_name(path), None, "empty; expected one JSON object per line")
        )
    return [(row.location.line or 0, row.values) for row in rows]


def _json_object(text: str) -> tuple[dict[str, Any], str]:
    """Return the JSON object of a line, or an empty one with the reason why it is invalid."""
    value, reason = _json_value(text)
    if reason or isinstance(value, dict):
        return (value or {}), reason
    return {}, f"it is {message_text(value)}"


def _json_value(text: str) -> tuple[Any, str]:
    """Return the value of JSON text, or None with the reason why it is invalid."""
    try:
        value = json.loads(text)
        if "\\u" in text:  # An unpaired surrogate escape.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return None, "it contains an unpaired surrogate escape"
    except (ValueError, RecursionError) as error:
        return None, str(error).split(":")[0]
    return value, ""


def message_text(value: Any) -> str:
    """Return a shortened value for a message; a blank text is ``empty``.

    >>> message_text("a"), message_text(" "), message_text({"a": None})
    ("'a'", 'empty', '{"a": null}')
    """
    if isinstance(value, str):
        return quoted(value) if value.strip() else "empty"
    return shortened(json.dumps(value, ensure_ascii=False))


def normal_ids(key: Any) -> Hashable:
    """Normalise an id, or a tuple of ids, as `bws.records.normal_id` does."""
    return normal_id(key) if isinstance(key, str) else tuple(map(normal_id, key))


def choice(values: Mapping[str, T], fallback: T, expected: str) -> Field[T]:
    """Return a field whose stripped text is a key of `values`."""

    def parse(text: str) -> T:
        if text.strip() not in values:
            raise ValueError(f"it must be {expected}")
        return values[text.strip()]

    return Field(parse, fallback)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("it must be a string")
    return value


def _text(value: Any) -> str:
    if not _string(value).strip():
        raise ValueError("expected text")
    return str(value)


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(inner, dict) for inner in value):
        raise ValueError("expected a list of objects")
    return value


TEXT = Field(_text, "")
"""Text that is not blank, unchanged."""
NAME = Field(lambda value: _text(value).strip(), "")
"""Text without surrounding white space."""
ANY_TEXT = Field(_string, "")
"""Text that may be blank."""
OPTIONAL_TEXT = Field(_string, "", required=False)
OBJECTS: Field[list[dict[str, Any]]] = Field(_objects, [])
"""A list of JSON objects."""
