"""Rows of tables and JSON Lines as checked records: fields, unique keys, every problem with its location."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from bws.file_kinds import KINDS, check_is_json_lines, remark
from bws.files.columns import quoted, shortened
from bws.files.table import Table
from bws.problems import InputError, Location, Problem
from bws.records import normal_id
from bws.textio import display_name, read_text

__all__ = [
    "ANY_TEXT",
    "NAME",
    "OBJECTS",
    "OPTIONAL_TEXT",
    "TEXT",
    "Field",
    "LocatedRecord",
    "Records",
    "Row",
    "Schema",
    "Unique",
    "choice",
    "json_objects",
    "json_rows",
    "message_text",
    "normal_ids",
    "records",
    "table_rows",
]

INVISIBLY = "they differ only in Unicode normalisation or outer white space"

R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Field(Generic[T_co]):
    """A column of a table, or a key of JSON objects."""

    parse: Callable[[Any], T_co]
    """From the value as written; ValueError says what is expected."""
    fallback: T_co
    """Value where the field is absent or wrong."""
    required: bool = True
    """Whether a row without it (JSON null is absent) has a problem."""


class Row:
    """Named values of a row; one pass over the row notes everything that is wrong in `problems`."""

    def __init__(self, location: Location, values: Mapping[str, Any]) -> None:
        self.location, self.values = location, values
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def wrong(self, message: str) -> None:
        """Note a problem of this row."""
        self.problems.append(self.location.problem(message))

    def get(self, name: str, field: Field[T]) -> T:
        """Return a value of the field's type, its fallback where the value is absent or wrong."""
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

    def warn_of_unknown(self, known: frozenset[str]) -> None:
        """Warn of keys that nothing reads."""
        if unknown := sorted(self.values.keys() - known):
            message = f"unknown keys are ignored: {', '.join(unknown)}"
            self.warnings.append(self.location.problem(message))


class LocatedRecord(NamedTuple, Generic[R]):
    """A record and where it was read."""

    record: R
    location: Location


@dataclass(frozen=True)
class Unique(Generic[R]):
    """A key that no two records may share."""

    what: str
    """What messages call it."""
    key: Callable[[R], str | tuple[str, ...]]
    """The key as written; an empty text is not compared."""
    normal: Callable[[Any], Hashable] = lambda key: key
    """Makes keys equal that count as the same, such as `normal_ids`."""

    def problems(self, rows: Iterable[LocatedRecord[R]]) -> Iterator[Problem]:
        """Yield a problem for each record whose key an earlier one has.

        >>> rows = [LocatedRecord(uid, Location("a.csv", line)) for line, uid in enumerate("xyx", start=2)]
        >>> print(*Unique[str]("uid", str).problems(rows))
        a.csv:4: repeats the uid 'x' of line 2; each must be unique
        """
        first: dict[Hashable, LocatedRecord[R]] = {}
        for row in rows:
            written = self.key(row.record)
            earlier = first.setdefault(self.normal(written), row)
            if earlier is row or written == "":
                continue
            parts = (written,) if isinstance(written, str) else written
            key = ", ".join(quoted(str(part)) for part in parts if part)
            where = earlier.location.as_seen_from(row.location)
            note = "" if self.key(earlier.record) == written else f" ({INVISIBLY})"
            yield row.location.problem(
                f"repeats the {self.what} {key} of {where}; each must be unique{note}"
            )


@dataclass(frozen=True)
class Records(Generic[R]):
    """The records of a file, and what is wrong with it."""

    file: str
    rows: Sequence[LocatedRecord[R]]
    problems: list[Problem]
    warnings: list[Problem] = field(default_factory=list)

    def checked(self, what: str = "") -> tuple[R, ...]:
        """Return the records; InputError with every problem, by line.

        what: of what there must be one, in the plural; empty: there may be no record.
        """
        if what and not self.rows and not self.problems:
            raise InputError(Problem(self.file, None, f"holds no {what}"))
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
    """Make a record of each row that has values, also of one with problems; `problems` come first."""
    found = Records[R](file, placed := [], [*problems])
    for row in rows:
        if row.values:
            placed.append(LocatedRecord(make(row), row.location))
        found.problems.extend(row.problems)
        found.warnings.extend(row.warnings)
    for key in unique:
        found.problems.extend(key.problems(placed))
    return found


@dataclass(frozen=True)
class Schema(Generic[R]):
    """How the rows of a table become records; other columns are ignored.

    >>> from bws.files.table import table_of
    >>> colours = Schema(dict, {"kite": NAME, "colour": choice({"r": "red"}, "", "r")})
    >>> print(colours.read(table_of(b"kite,colour\\nA,r\\nB,x\\n", "a.csv")).problems[0])
    a.csv:3: colour is 'x'; it must be r
    """

    make: Callable[..., R]
    """Makes a record of the fields, given by name."""
    fields: Mapping[str, Field[Any]]
    """By column; a column that is required must exist."""
    unique: Sequence[Unique[R]] = ()
    check: Callable[[R], Iterable[str]] = lambda record: ()
    """Yields what is wrong with a record as a whole."""
    located: bool = False
    """Whether `make` is given the ``line`` too."""

    def read(self, table: Table) -> Records[R]:
        """Read a table; InputError where a required column is missing."""
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
    """Yield a row per line that is not blank; a line that is not a JSON object yields one without values.

    kind: the kind of file that is expected, see `bws.file_kinds`.

    Raises InputError where no line is a JSON object, and where the first one is of another kind of file.
    """
    file, lines = display_name(path), read_text(path)
    check_is_json_lines(lines, file)
    first = True
    # not splitlines(): U+2028 and its like may stand inside a JSON string
    for line, text in enumerate(lines.split("\n"), start=1):
        if not text.strip():
            continue
        values, reason = _json_object(text)
        if first and kind and (other := remark(values, kind)):
            raise InputError(Problem(file, line, f"{KINDS[kind].title} is expected{other}"))
        first = False
        row = Row(Location(file, line), values)
        if reason:
            row.wrong(f"not a JSON object ({reason}); each line must be one")
        yield row


def json_objects(path: str | os.PathLike[str]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return (line, object) for each line that is not blank; InputError names every other line."""
    rows = [*json_rows(path)]
    if problems := [problem for row in rows for problem in row.problems]:
        raise InputError(problems)
    if not rows:
        raise InputError(
            Problem(display_name(path), None, "is empty; a JSON object a line is expected")
        )
    return [(row.location.line or 0, row.values) for row in rows]


def _json_object(text: str) -> tuple[dict[str, Any], str]:
    """Return the JSON object that a line holds; or an empty one, and what it is instead."""
    try:
        values = json.loads(text)
        if "\\u" in text:  # an escape may be half a character
            json.dumps(values, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return {}, "it escapes half a character"
    except (ValueError, RecursionError) as error:
        return {}, str(error).split(":")[0]
    return (values, "") if isinstance(values, dict) else ({}, f"it is {message_text(values)}")


def message_text(value: Any) -> str:
    """Return a value for a message, not too long; a blank text is ``empty``.

    >>> message_text("a"), message_text(" "), message_text({"a": None})
    ("'a'", 'empty', '{"a": null}')
    """
    if isinstance(value, str):
        return quoted(value) if value.strip() else "empty"
    return shortened(json.dumps(value, ensure_ascii=False))


def normal_ids(key: Any) -> Hashable:
    """Return an id, or a tuple of ids, as `bws.records.normal_id` does."""
    return normal_id(key) if isinstance(key, str) else tuple(map(normal_id, key))


def choice(values: Mapping[str, T], fallback: T, expected: str) -> Field[T]:
    """Return a field whose text, without outer white space, is a key of `values`."""

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
        raise ValueError("it must hold text")
    return str(value)


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(inner, dict) for inner in value):
        raise ValueError("it must be a list of objects")
    return value


TEXT = Field(_text, "")
"""Text as written that is not blank."""
NAME = Field(lambda value: _text(value).strip(), "")
"""Text without outer white space."""
ANY_TEXT = Field(_string, "")
"""Text that may be blank."""
OPTIONAL_TEXT = Field(_string, "", required=False)
OBJECTS: Field[list[dict[str, Any]]] = Field(_objects, [])
"""A list of JSON objects."""
