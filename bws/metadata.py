"""What is known of tuples besides their judgments (source, domain, number of turns), and breakdowns by it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.file_kinds import remark
from bws.files.columns import quoted
from bws.problems import InputError, Problem
from bws.records import Ints, Judgments, Tuples, normal_id
from bws.textio import display_name

__all__ = ["By", "Metadata", "breakdown", "read_metadata"]

KEYS = ("tuple_id", "group", "dialogue_id", "item", "utterance_id")
SHOWN = 10

Texts = NDArray[np.object_]
By = Mapping[str, NDArray[np.object_]]
"""A column's name to (T,) values, one for each of `Judgments.tuples`."""


@dataclass(frozen=True)
class Metadata:
    """Columns of text about tuples, groups or items.

    >>> about = Metadata("dialogues.jsonl", "dialogue_id", (1, 2), {
    ...     "dialogue_id": ("d1", "d2"), "source": ("spoken", "written")})
    >>> about.column_names
    ('source',)
    """

    file: str
    key: str
    """The column that says what a row is about: tuple_id, group, dialogue_id, item or utterance_id."""
    lines: Sequence[int]
    """The line of each row."""
    columns: Mapping[str, Sequence[str]]
    """Each column's text, a value a row, the key among them."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that a tuple can be described by."""
        return tuple(name for name in self.columns if name != self.key)

    def of_tuples(self, tuples: Tuples, columns: Sequence[str]) -> dict[str, Texts]:
        """Return each column's value for every tuple, (T,) text each.

        A tuple is found by its id, by its group, or through its items, whichever the key column names;
        all items of a tuple must then have the same value. Raises InputError that names unknown columns,
        keys with more than one value of a column, and tuples without a value.
        """
        unknown = [name for name in columns if name not in self.columns]
        if unknown:
            message = f"no column {', '.join(unknown)}; there are {', '.join(self.column_names)}"
            raise InputError(Problem(self.file, None, message))
        values = {name: self._value_of_key(name) for name in columns}
        return {name: self._of_tuples(tuples, name, found) for name, found in values.items()}

    def _value_of_key(self, name: str) -> dict[str, str]:
        """Return the column as a dictionary; a key may come again only with the same value."""
        values: dict[str, str] = {}
        problems = []
        for line, key, value in zip(
            self.lines, self.columns[self.key], self.columns[name], strict=True
        ):
            if values.setdefault(key, value) != value:
                both = f"{quoted(value)} here and {quoted(values[key])} above"
                message = f"{self.key} {quoted(key)} has {name} {both}; it must have one"
                problems.append(Problem(self.file, line, message))
        if problems:
            raise InputError(problems)
        return values

    def _of_tuples(self, tuples: Tuples, name: str, values: Mapping[str, str]) -> Texts:
        keys, index = self._keys(tuples)
        self._check_known(keys[np.unique(index)], values)
        found = np.array([values.get(key) for key in keys], dtype=object)[index]
        mixed = np.flatnonzero((found != found[:, :1]).any(axis=1))
        if len(mixed):
            message = (
                f"the items of {_some(tuples.ids[mixed], 'tuple')} differ in {name}; "
                "describe tuples or groups, or choose a column that their items share"
            )
            raise InputError(Problem(self.file, None, message))
        return found[:, 0]

    def _keys(self, tuples: Tuples) -> tuple[Texts, Ints]:
        """Return what the key column may name, and (T, n) which of these describe each tuple."""
        if self.key == "tuple_id":
            return tuples.ids, np.arange(len(tuples), dtype=np.int32)[:, np.newaxis]
        if self.key in ("group", "dialogue_id"):
            return tuples.groups, tuples.group_of_tuple[:, np.newaxis]
        return tuples.items, tuples.members

    def _check_known(self, keys: Texts, values: Mapping[str, str]) -> None:
        missing = [key for key in keys if key not in values]
        if missing:
            what = {"dialogue_id": "group", "utterance_id": "item", "tuple_id": "tuple"}
            message = (
                f"no row for {_some(missing, what.get(self.key, self.key))} of the judgments; "
                f"the rows are found by the column {self.key}"
            )
            raise InputError(Problem(self.file, None, message))


def _some(names: Sequence[str] | Texts, what: str) -> str:
    """Return a list for a message: the first few names and how many more there are."""
    shown = ", ".join(map(quoted, names[:SHOWN]))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{what}{'s' if len(names) > 1 else ''} {shown}{more}"


def read_metadata(path: str | os.PathLike[str]) -> Metadata:
    """Read a description of tuples, groups or items from CSV, TSV or JSONL.

    Each row is about what its first key column says: tuple_id, group, dialogue_id, item or utterance_id, in
    this order. A benchmark and a dialogues file will do. A column whose values are lists, such as the
    dialogues' ``turns``, can also be asked for its length, as ``n_turns``. Rows may repeat a key as long
    as what is asked for agrees.

    Raises InputError where the file cannot be read or has no key column.
    """
    from bws.files.table import read_table

    name = display_name(path)
    if name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return _of_objects(path, name)
    table = read_table(path)
    if table.problems:
        raise InputError(table.problems)
    columns = {column: table.frame[column].to_list() for column in table.frame.columns}
    return _with_key(name, table.lines.tolist(), columns)


def _of_objects(path: str | os.PathLike[str], name: str) -> Metadata:
    from bws.files.schema import json_objects

    placed = json_objects(path)
    objects = [_with_lengths(value) for _, value in placed]
    keys = dict.fromkeys(key for value in objects for key in value)
    columns = {key: [_as_text(value.get(key)) for value in objects] for key in keys}
    return _with_key(name, [line for line, _ in placed], columns)


def _with_lengths(value: Mapping[str, Any]) -> dict[str, Any]:
    lengths = {f"n_{key}": len(inner) for key, inner in value.items() if isinstance(inner, list)}
    return lengths | dict(value)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _with_key(name: str, lines: Sequence[int], columns: dict[str, list[str]]) -> Metadata:
    key = next((key for key in KEYS if key in columns), None)
    if key is None:
        message = f"no column says what a row is about; one of {', '.join(KEYS)} is needed"
        message += remark(columns)
        raise InputError(Problem(name, None, message))
    columns[key] = [normal_id(value) for value in columns[key]]
    return Metadata(name, key, lines, columns)


def breakdown(judgments: Judgments, by: By | None) -> Iterator[tuple[dict[str, Any], Judgments]]:
    """Yield the whole, then the judgments of each combination of values that occurs, sorted.

    ValueError where a column has not a value for each tuple.

    >>> from bws.records import Judgment, Judgments
    >>> rows = [Judgment(("a", "b"), "a", "b"), Judgment(("c", "d"), "d", "c")]
    >>> turns = np.array(["5", "3"], dtype=object)
    >>> for values, part in breakdown(Judgments.from_records(rows), {"turns": turns}):
    ...     print(values, part.tuples.items[part.best_item].tolist())
    {} ['a', 'd']
    {'turns': '3'} ['d']
    {'turns': '5'} ['a']
    """
    n_tuples = len(judgments.tuples)
    for name, column in (by or {}).items():
        if len(column) != n_tuples:
            message = f"by: {name} has {len(column)} values; give one for each of {n_tuples} tuples"
            raise ValueError(message)
    yield {}, judgments
    if by:
        judged = np.unique(judgments.tuple_of)
        found = list(zip(*(column[judged] for column in by.values()), strict=True))
        number = {combination: n for n, combination in enumerate(sorted(set(found)))}
        part_of = np.full(n_tuples, -1)
        part_of[judged] = [number[combination] for combination in found]
        for combination, n in number.items():
            rows = part_of[judgments.tuple_of] == n
            yield dict(zip(by, combination, strict=True)), judgments.take(rows)
