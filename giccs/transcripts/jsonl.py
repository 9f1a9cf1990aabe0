"""JSON Lines: a dialogue a line (``turns`` of strings or objects), or a turn a line."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

from bws.problems import InputError, Problem
from bws.textio import display_name
from giccs.fields import Fields, json_lines
from giccs.transcripts.lines import Line, Transcript, stem
from giccs.transcripts.names import assign

__all__ = ["read"]


def read(path: str | os.PathLike[str], columns: Mapping[str, str]) -> Transcript:
    """Read a file; a dialogue without a name is called by the file and its place in it.

    columns: the names of keys that are not found by themselves, by part ("text", "speaker", ...).
    """
    file = display_name(path)
    lines: list[Line] = []
    problems: list[Problem] = []
    rest: Counter[str] = Counter()
    first: dict[str, int] = {}
    for place, fields in enumerate(json_lines(path), start=1):
        if fields.values:
            name = f"{stem(file)}-{place}" if "turns" in fields.values else stem(file)
            found = _lines(fields, name, columns, rest)
            whole = found and "turns" in fields.values
            earlier = first.setdefault(found[0].dialogue, fields.line) if whole else fields.line
            if earlier != fields.line:
                fields.wrong(f"repeats the dialogue of line {earlier}; each has a name of its own")
            lines += found
        problems += fields.problems
    if problems:
        raise InputError(problems)
    warnings = [
        Problem(file, None, f"key {key!r} left out of {times} objects")
        for key, times in sorted(rest.items())
    ]
    return Transcript(tuple(lines), tuple(warnings))


def _lines(fields: Fields, name: str, columns: Mapping[str, str], rest: Counter[str]) -> list[Line]:
    """Return the turns of one line of the file; none of a line that has problems."""
    whole = fields.values
    if "turns" not in whole:
        return [_line(fields, whole, name, {}, columns, rest)]
    if not isinstance(whole["turns"], list):
        fields.wrong("turns is not a list; it must be one of strings or of objects with text")
        return []
    about = {key: value for key, value in whole.items() if key != "turns"}
    known = _parts(fields, about, columns, rest, ignore=("turn", "text", "speaker"))
    named = known.pop("dialogue", "") or name
    return [
        _line(fields, turn, named, known, columns, rest, str(number))
        for number, turn in enumerate(whole["turns"], start=1)
    ]


def _line(
    fields: Fields,
    turn: Any,
    dialogue: str,
    about: Mapping[str, str],
    columns: Mapping[str, str],
    rest: Counter[str],
    number: str = "",
) -> Line:
    found: dict[str, str] = {}
    if isinstance(turn, str):
        found = {"text": turn}
    elif isinstance(turn, dict):
        found = _parts(fields, turn, columns, rest)
    if "text" not in found:
        fields.wrong(f"turn {number or 'here'} has no text; it must be a string or have one")
    return Line(
        fields.file,
        fields.line,
        found.get("dialogue") or dialogue,
        number or found.get("turn", ""),
        found.get("speaker", "").strip(),
        found.get("text", "").strip(),
        found.get("source") or about.get("source", ""),
        found.get("domain") or about.get("domain", ""),
    )


def _parts(
    fields: Fields,
    values: Mapping[str, Any],
    columns: Mapping[str, str],
    rest: Counter[str],
    ignore: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return the parts that an object has as text; what it has besides is counted in `rest`."""
    wanted = {part: name for part, name in columns.items() if name in values}
    found = {part: key for part, key in assign(values, wanted).items() if part not in ignore}
    rest.update(key for key in values if key not in found.values())
    parts = {part: values[key] for part, key in found.items() if values[key] is not None}
    for part, value in parts.items():
        if not isinstance(value, str | int):
            fields.wrong(f"{found[part]} is {type(value).__name__}; it must be a string")
    return {part: str(value) for part, value in parts.items()}
