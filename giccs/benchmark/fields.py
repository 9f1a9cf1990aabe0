"""Checked reading of JSON Lines: every problem of every line is kept, with its place."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bws.file_content import check_is_json_lines
from bws.file_kinds import KINDS, remark
from bws.problems import InputError, Problem
from bws.textio import display_name, read_text
from giccs.benchmark.items import Turn
from giccs.benchmark.languages import language_tag
from giccs.benchmark.parquet import read_table

__all__ = ["Fields", "json_lines", "parquet_rows"]


class Fields:
    """One JSON object of a file; what it lacks is noted in `problems`, what it has too many in `warnings`.

    Each getter returns a usable value of its type even where the field is wrong, so that one pass over
    a line finds everything that is wrong with it.
    """

    def __init__(self, file: str, line: int, values: dict[str, Any]) -> None:
        self.file, self.line, self.values = file, line, values
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def wrong(self, message: str) -> None:
        """Note a problem of this line."""
        self.problems.append(Problem(self.file, self.line, message))

    def text(self, key: str, *, empty: bool = False) -> str:
        """Return a string field; only with `empty` may it be blank."""
        value = self._present(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.wrong(f"{key} is {_shown(value)}; it must be a string")
            return ""
        if not empty and not value.strip():
            self.wrong(f"{key} is empty; it must hold text")
        return value

    def optional_text(self, key: str) -> str:
        """Return a string field that may be absent."""
        return self.text(key, empty=True) if self.values.get(key) is not None else ""

    def language(self) -> str | None:
        """Return the optional field ``language``, a BCP 47 tag."""
        value = self.values.get("language")
        if value is None:
            return None
        try:
            return language_tag(value if isinstance(value, str) else _shown(value))
        except ValueError as error:
            self.wrong(f"language: {error}")
            return None

    def share(self, key: str) -> float:
        """Return a number from 0 to 1."""
        value = self._present(key)
        if value is None:
            return math.nan
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1:
            self.wrong(f"{key} is {_shown(value)}; it must be a number from 0 to 1")
            return math.nan
        return float(value)

    def level(self, key: str) -> int | None:
        """Return an optional whole number from 1 to 5."""
        value = self.values.get(key)
        if value is not None and value not in (1, 2, 3, 4, 5):
            self.wrong(
                f"{key} is {_shown(value)}; it must be a whole number from 1 to 5, or absent"
            )
            return None
        return value

    def objects(self, key: str) -> list[dict[str, Any]]:
        """Return a list of JSON objects."""
        value = self._present(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(inner, dict) for inner in value):
            self.wrong(f"{key} is {_shown(value)}; it must be a list of objects")
            return []
        return value

    def turns(self) -> tuple[Turn, ...]:
        """Return the field ``turns``; a dialogue has two turns at least."""
        turns = []
        for place, inner in enumerate(objects := self.objects("turns"), start=1):
            speaker, text = inner.get("speaker", ""), inner.get("text")
            if not isinstance(text, str) or not text.strip() or not isinstance(speaker, str):
                self.wrong(
                    f'turn {place} is {_shown(inner)}; it must be {{"speaker", "text"}} with text'
                )
                continue
            turns.append(Turn(speaker, text))
        if len(objects) == 1:
            self.wrong("there is one turn; a dialogue has two or more, the last is the target")
        elif not objects and isinstance(self.values.get("turns"), list):
            self.wrong("there are no turns; a dialogue has two or more, the last is the target")
        return tuple(turns)

    def only(self, known: frozenset[str]) -> None:
        """Warn of keys that nothing reads."""
        unknown = sorted(self.values.keys() - known)
        if unknown:
            message = f"unknown keys are ignored: {', '.join(unknown)}"
            self.warnings.append(Problem(self.file, self.line, message))

    def _present(self, key: str) -> Any:
        value = self.values.get(key)
        if value is None:
            self.wrong(f"{key} is missing")
        return value


def json_lines(path: str | os.PathLike[str], kind: str = "") -> Iterator[Fields]:
    """Yield one `Fields` a line that is not blank; a line that is not a JSON object yields empty ones.

    kind: the kind of file that is expected, see `bws.file_kinds`.

    Raises InputError where no line is a JSON object, and where the first one is of another kind of file.
    """
    file = display_name(path)
    lines = read_text(path)
    check_is_json_lines(lines, file)
    first = True
    # not splitlines(): U+2028 and its like may stand inside a JSON string
    for line, text in enumerate(lines.split("\n"), start=1):
        if not text.strip():
            continue
        values, reason = _object(text)
        if first and kind and (other := remark(values, kind)):
            raise InputError(Problem(file, line, f"{KINDS[kind].title} is expected{other}"))
        first = False
        fields = Fields(file, line, values)
        if reason:
            fields.wrong(f"not a JSON object ({reason}); each line must be one")
        yield fields


def _object(text: str) -> tuple[dict[str, Any], str]:
    """Return the JSON object that a line holds; or an empty one, and what it is instead."""
    try:
        values = json.loads(text)
        if "\\u" in text:  # an escape may be half a character
            json.dumps(values, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return {}, "it escapes half a character"
    except (ValueError, RecursionError) as error:
        return {}, str(error).split(":")[0]
    return (values, "") if isinstance(values, dict) else ({}, f"it is {_shown(values)}")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def parquet_rows(path: str | os.PathLike[str]) -> Iterator[Fields]:
    """Yield each row of a Parquet file, counted from 1; InputError where it is none."""
    try:
        frame = read_table(Path(path))
    except (ValueError, OSError) as error:
        raise InputError(Problem(str(path), None, f"is no Parquet file ({error})")) from None
    for row, values in enumerate(frame.iter_rows(named=True), start=1):
        yield Fields(str(path), row, values)
