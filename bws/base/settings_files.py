"""Settings files: TOML tables checked against dataclasses, with all problems and their lines.

A class declares keys, types and defaults of its table; constraints are metadata of its types, `Checked` and
those of annotated_types. Rules about several keys are in ``__post_init__``, which raises `TableError` or
ValueError. pydantic checks the types and is loaded when a file is read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, TypeVar, cast, get_args, get_type_hints

from bws.base.problems import InputError, Problem, suggestion
from bws.base.text import display_name, parse_toml, read_text

T = TypeVar("T")
KeyPath = tuple[str | int, ...]
"""Keys from the top of a file to a value; elements of lists count from 0."""
EXPECTED: Mapping[str, str] = {
    "bool_type": "true or false",
    "dataclass_type": "a table",
    "dict_type": "a table",
    "finite_number": "a number",
    "float_type": "a number",
    "greater_than_equal": "{ge} or more",
    "int_parsing": "an integer",
    "int_type": "an integer",
    "less_than_equal": "{le} or less",
    "list_type": "a list",
    "literal_error": "{expected}",
    "mapping_type": "a table",
    "missing": "a value",
    "string_too_short": "a text",
    "string_type": "a text",
    "too_long": "{max_length} or fewer entries",
    "too_short": "{min_length} or more entries",
    "tuple_type": "a list",
}
"""Type of an error of pydantic -> what was expected."""


class Table:
    """Base of the classes of tables: unknown keys and values of other types are errors."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"strict": True, "extra": "forbid"}


@dataclass(frozen=True)
class Checked:
    """Metadata of a type: a function that returns the value of a key, or raises ValueError."""

    check: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import AfterValidator

        return AfterValidator(self.check).__get_pydantic_core_schema__(source, handler)


@dataclass(frozen=True)
class Listed:
    """Metadata of a tuple: in the file, a value alone is a list of one."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import BeforeValidator

        return BeforeValidator(_listed).__get_pydantic_core_schema__(source, handler)


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else (value,)


def check_text(text: str) -> str:
    """Return a text that is not blank; else raise ValueError."""
    if not text.strip():
        raise ValueError("is blank; expected a text")
    return text


Text = Annotated[str, Checked(check_text)]
"""A text that is not blank."""


class TableError(ValueError):
    """What is wrong with the keys of a table, such as ``{"minimum": "is 3; expected at most 2"}``."""

    def __init__(self, messages: Mapping[str, str]) -> None:
        self.messages = messages
        super().__init__("; ".join(f"{key} {message}" for key, message in messages.items()))


@dataclass(frozen=True)
class SettingsText:
    """The tables of a settings file, and the lines of their keys."""

    name: str
    """Name of the file in messages."""
    values: Mapping[str, Any]
    lines: Mapping[KeyPath, int]

    def parsed(self, kind: type[T], values: Any = None, path: KeyPath = (), **given: Any) -> T:
        """Return a table as an instance of a dataclass; InputError with all problems.

        values: the table, with presets; by default the whole file. path: where it is in the file. given:
        fields that are no keys of the file.
        """
        from pydantic import ValidationError

        values = self.values if values is None else values
        problems = [
            self._unknown(path, key, kind, given) for key in given if key in _as_mapping(values)
        ]
        try:
            table = {**values, **given} if isinstance(values, Mapping) else values
            result: T = _adapter(cast(Any, kind)).validate_json(json.dumps(table, default=_plain))
        except ValidationError as error:
            problems += self._problems(error, kind, values, path, given)
        if problems:
            raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
        return result

    def problem(self, path: KeyPath, message: str) -> Problem:
        """Return a problem of a value, with its line or that of its first element or table."""
        places = [path, (*path, 0), *(path[:end] for end in range(len(path) - 1, 0, -1))]
        line = next((self.lines[place] for place in places if place in self.lines), None)
        return Problem(self.name, line, message)

    def _unknown(
        self, table: KeyPath, key: str, kind: Any, given: Container[str], within: KeyPath = ()
    ) -> Problem:
        names = [name for name in get_names(kind, within) if within or name not in given]
        expected = f"expected one of {', '.join(names)}{suggestion(key, names)}"
        place = (*table, *within, key)
        return self.problem(place, f"unknown key {_text(place)}; {expected}")

    def _problems(
        self, error: Any, kind: Any, values: Any, path: KeyPath, given: Container[str]
    ) -> Iterator[Problem]:
        for each in error.errors(include_url=False):
            location: KeyPath = each["loc"]
            if each["type"] == "unexpected_keyword_argument":
                yield self._unknown(path, str(location[-1]), kind, given, location[:-1])
            elif each["type"] == "value_error":
                cause = each["ctx"]["error"]
                place = path + location
                if not isinstance(cause, TableError):
                    yield self.problem(place, f"{_text(place)} {cause}")
                    continue
                for key, message in cause.messages.items():
                    yield self.problem((*place, key), f"{_text((*place, key))} {message}")
            elif location[-1:] == ("[key]",):
                place = path + location[:-1]
                expected = EXPECTED.get(each["type"], each["msg"]).format(**each.get("ctx", {}))
                yield self.problem(place, f"{_text(place)} is no key; expected {expected}")
            else:
                found = "missing" if each["type"] == "missing" else repr(_at(values, location))
                expected = EXPECTED.get(each["type"], each["msg"]).format(**each.get("ctx", {}))
                place = path + location
                yield self.problem(place, f"{_text(place)} is {found}; expected {expected}")


def read_settings_text(path: str | os.PathLike[str]) -> SettingsText:
    """Read a TOML file; InputError for a file that is none."""
    text, name = read_text(path), display_name(path)
    return SettingsText(name, parse_toml(text, name), key_lines(text))


def get_names(kind: Any, path: KeyPath) -> list[str]:
    """Return the keys of the table at a path below a dataclass."""
    for part in path:
        hints = get_type_hints(kind) if is_dataclass(kind) else {}
        kind = hints.get(str(part), kind) if isinstance(part, str) else kind
        while not is_dataclass(kind) and get_args(kind):
            kind = [each for each in get_args(kind) if each not in (NoneType, ...)][-1]
    return [each.name for each in fields(kind) if each.init] if is_dataclass(kind) else []


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the lines of tables and keys in a TOML text; keys of inline tables are in the line of these.

    >>> key_lines('a = 1\\n[b]\\n"c d" = \\'\\'\\'\\nx = 1\\'\\'\\'\\n[[e]]\\nf.g = 2\\n[[e]]\\n')
    {('a',): 1, ('b',): 2, ('b', 'c d'): 3, ('e', 0): 5, ('e', 0, 'f', 'g'): 6, ('e', 1): 7}
    """
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in _logical_lines(text):
        if header := HEADER.match(line):
            table = _numbered(_keys(header["keys"]), counts, is_list=line.lstrip().startswith("[["))
            lines.setdefault(table, number)
        elif key := KEY.match(line):
            lines.setdefault((*table, *_keys(key["keys"])), number)
    return lines


PART = r"""(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
KEYS = rf"(?P<keys>{PART}(?:\s*\.\s*{PART})*)"
HEADER = re.compile(rf"\s*\[\[?\s*{KEYS}\s*\]")
KEY = re.compile(rf"\s*{KEYS}\s*=")
QUOTED = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|' + r"'''.*?'''|" + r""""(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*""", re.S
)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines outside of texts and lists of several lines, with their numbers."""
    plain = QUOTED.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)
    depth = 0
    for number, (line, shown) in enumerate(
        zip(text.split("\n"), plain.split("\n"), strict=True), 1
    ):
        if not depth and not shown.startswith("x" * max(1, len(line))):
            yield number, line
        header = HEADER.match(line) if not depth else None
        if not header:
            depth += sum(shown.count(sign) for sign in "[{") - sum(map(shown.count, "]}"))


def _keys(text: str) -> KeyPath:
    return tuple(part.strip("\"'") if part[0] in "\"'" else part for part in re.findall(PART, text))


def _numbered(keys: KeyPath, counts: dict[KeyPath, int], *, is_list: bool) -> KeyPath:
    """Return the path of a table header, with the numbers of list elements."""
    path: KeyPath = ()
    for key in keys[:-1]:
        path = (*path, key)
        if path in counts:
            path = (*path, counts[path])
    path = (*path, keys[-1])
    if is_list:
        counts[path] = counts.get(path, -1) + 1
        return (*path, counts[path])
    return path


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _plain(value: Any) -> Any:
    """Return dates and times as what no setting is."""
    return {"date": str(value)}


def _as_mapping(values: Any) -> Mapping[str, Any]:
    return values if isinstance(values, Mapping) else {}


def _at(values: Any, path: Sequence[str | int]) -> Any:
    """Return the value at a path, None without one; a value alone is the first of its list (`Listed`)."""
    for part in path:
        if isinstance(values, str | int | float) and part == 0:
            return values
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return None
    return values


def _text(path: KeyPath) -> str:
    """Return a path as in TOML, with elements of lists counted from 1."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
