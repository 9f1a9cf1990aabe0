"""JSON Lines as objects with their lines."""

from __future__ import annotations

import json
import os
from typing import Any

from bws.file_content import check_is_json_lines
from bws.problems import InputError, Problem
from bws.textio import display_name, read_text

__all__ = ["json_objects", "read_json_lines"]


def read_json_lines(path: str | os.PathLike[str]) -> list[tuple[int, dict[str, Any]]]:
    """Return (line, object) for each line that is not blank; InputError names every other line."""
    return json_objects(read_text(path), display_name(path))


def json_objects(text: str, name: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of JSON Lines text; see `read_json_lines`."""
    check_is_json_lines(text, name)
    found: list[tuple[int, dict[str, Any]]] = []
    problems: list[Problem] = []
    # not splitlines(): U+2028 and its like may stand inside a JSON string
    for line, written in enumerate(text.split("\n"), start=1):
        if not written.strip():
            continue
        try:
            value = json.loads(written)
        except (ValueError, RecursionError) as error:
            value, reason = None, str(error).split(":")[0]
        else:
            reason = f"it is a {type(value).__name__}"
        if isinstance(value, dict):
            found.append((line, value))
        else:
            message = f"not a JSON object ({reason}); each line must be one"
            problems.append(Problem(name, line, message))
    if problems:
        raise InputError(problems)
    if not found:
        raise InputError(Problem(name, None, "is empty; a JSON object a line is expected"))
    return found
