"""Metadata of tuples (source, domain, number of turns), and breakdowns of judgments by them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.file_kinds import remark
from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.base.text import display_name
from bws.files.columns import quoted
from bws.records import Ints, Judgments, Tuples

KEYS = ("tuple_id", "group", "dialogue_id", "item", "utterance_id")
MAX_LISTED_NAMES = 10

Texts = NDArray[np.object_]
By = Mapping[str, NDArray[np.object_]]
"""Column name -> (T,) values, one for each of `Judgments.tuples`."""


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
    """The column that identifies the subject of a row: tuple_id, group, dialogue_id, item or utterance_id."""
    lines: Sequence[int]
    """The line number of each row."""
    columns: Mapping[str, Sequence[str]]
    """The text of each column, one value per row, including the key."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that can describe a tuple."""
        return tuple(name for name in self.columns if name != self.key)

    def of_tuples(self, tuples: Tuples, columns: Sequence[str]) -> dict[str, Texts]:
        """Return the values of the columns for every tuple, each as (T,) texts.

        A tuple is matched by its id, its group, or its items, depending on the key column; all items of a
        tuple must then have the same value. Raises InputError for unknown columns, keys with several values
        of a column, and tuples without a value.
        """
        unknown = [name for name in columns if name not in self.columns]
        if unknown:
            message = (
                f"no column {', '.join(unknown)}; expected one of {', '.join(self.column_names)}"
            )
            raise InputError(Problem(self.file, None, message))
        values = {name: self._value_of_key(name) for name in columns}
        return {
            name: self._of_tuples(tuples, name, values_by_key)
            for name, values_by_key in values.items()
        }

    def _value_of_key(self, name: str) -> dict[str, str]:
        """Return the column as a dictionary; repeated keys must have equal values."""
        values: dict[str, str] = {}
        problems = []
        for line, key, value in zip(
            self.lines, self.columns[self.key], self.columns[name], strict=True
        ):
            if values.setdefault(key, value) != value:
                conflict = f"{quoted(value)} here and {quoted(values[key])} above"
                message = f"{self.key} {quoted(key)} has {name} {conflict}; expected one value"
                problems.append(Problem(self.file, line, message))
        if problems:
            raise InputError(problems)
        return values

    def _of_tuples(self, tuples: Tuples, name: str, values: Mapping[str, str]) -> Texts:
        keys, index = self._keys(tuples)
        self._check_known(keys[np.unique(index)], values)
        values_per_tuple = np.array([values.get(key) for key in keys], dtype=object)[index]
        mixed = np.flatnonzero((values_per_tuple != values_per_tuple[:, :1]).any(axis=1))
        if len(mixed):
            message = (
                f"the items of {_some(tuples.ids[mixed], 'tuple')} differ in {name}; describe tuples or "
                "groups, or choose a column that the items share"
            )
            raise InputError(Problem(self.file, None, message))
        return values_per_tuple[:, 0]

    def _keys(self, tuples: Tuples) -> tuple[Texts, Ints]:
        """Return the name of the described ids, and (T, n) the ids that describe each tuple."""
        if self.key == "tuple_id":
            return tuples.ids, np.arange(len(tuples), dtype=np.int32)[:, np.newaxis]
        if self.key in ("group", "dialogue_id"):
            return tuples.groups, tuples.group_of_tuple[:, np.newaxis]
        return tuples.items, tuples.members

    def _check_known(self, keys: Texts, values: Mapping[str, str]) -> None:
        missing = [key for key in keys if key not in values]
        if missing:
            key_column_of = {"dialogue_id": "group", "utterance_id": "item", "tuple_id": "tuple"}
            message = (
                f"no row for {_some(missing, key_column_of.get(self.key, self.key))} of the judgments; "
                f"rows are matched by the column {self.key}"
            )
            raise InputError(Problem(self.file, None, message))


def _some(names: Sequence[str] | Texts, plural: str) -> str:
    """Return a list for a message: the first few names and the number of further ones."""
    listed_names = ", ".join(map(quoted, names[:MAX_LISTED_NAMES]))
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return f"{plural}{'s' if len(names) > 1 else ''} {listed_names}{more}"


def read_metadata(path: str | os.PathLike[str]) -> Metadata:
    """Read a description of tuples, groups or items from CSV, TSV or JSONL.

    The key is the first existing column of tuple_id, group, dialogue_id, item and utterance_id. A benchmark
    or a dialogues file is also valid. For a column of lists, such as ``turns`` of dialogues, the length is
    available as ``n_turns``. Keys may be repeated if their values agree.

    Raises InputError if the file cannot be read or has no key column.
    """
    from bws.files.table import read_table

    name = display_name(path)
    if name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return _of_objects(path, name)
    table = read_table(path, KEYS)
    if table.problems:
        raise InputError(table.problems)
    columns = {column: table.frame[column].to_list() for column in table.frame.columns}
    return _with_key(name, table.lines.tolist(), columns)


def _of_objects(path: str | os.PathLike[str], name: str) -> Metadata:
    from bws.files.schema import json_objects

    entries = json_objects(path)
    objects = [_with_lengths(value) for _, value in entries]
    keys = dict.fromkeys(key for value in objects for key in value)
    columns = {key: [_as_text(value.get(key)) for value in objects] for key in keys}
    return _with_key(name, [line for line, _ in entries], columns)


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
        message = f"no key column; expected one of {', '.join(KEYS)}"
        message += remark(columns)
        raise InputError(Problem(name, None, message))
    columns[key] = [normal_id(value) for value in columns[key]]
    return Metadata(name, key, lines, columns)


def breakdown(judgments: Judgments, by: By | None) -> Iterator[tuple[dict[str, Any], Judgments]]:
    """Yield all judgments, then those of each combination of values, sorted.

    Raises ValueError if a column does not have one value per tuple.

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> rows = [Judgment(("a", "b"), "a", "b"), Judgment(("c", "d"), "d", "c")]
    >>> turns = np.array(["5", "3"], dtype=object)
    >>> for values, part in breakdown(judgments_from_records(rows), {"turns": turns}):
    ...     print(values, part.tuples.items[part.best_item].tolist())
    {} ['a', 'd']
    {'turns': '3'} ['d']
    {'turns': '5'} ['a']
    """
    n_tuples = len(judgments.tuples)
    for name, column in (by or {}).items():
        if len(column) != n_tuples:
            message = (
                f"by: {name} has {len(column)} values; expected one for each of {n_tuples} tuples"
            )
            raise ValueError(message)
    yield {}, judgments
    if by:
        tuple_indices = np.unique(judgments.tuple_of)
        value_tuples = list(zip(*(column[tuple_indices] for column in by.values()), strict=True))
        number = {combination: n for n, combination in enumerate(sorted(set(value_tuples)))}
        part_of = np.full(n_tuples, -1)
        part_of[tuple_indices] = [number[combination] for combination in value_tuples]
        for combination, n in number.items():
            rows = part_of[judgments.tuple_of] == n
            yield dict(zip(by, combination, strict=True)), judgments.select(rows)
