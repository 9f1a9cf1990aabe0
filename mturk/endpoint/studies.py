"""The file that says which studies are recruited for: their links, limits and completion codes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from bws.problems import InputError, Problem
from bws.textio import read_text
from mturk.endpoint.site import Study

__all__ = ["read_studies"]

TYPES: Mapping[str, type] = {
    "completion_code": str,
    "title": str,
    "group_id": str,
    "hits": int,
    "return_url": str,
    "information": dict,
}


def read_studies(path: str) -> list[Study]:
    """Read studies from TOML, a table each: ``[pilot]`` with ``completion_code = "C1"`` and so on.

    InputError names every fault.
    """
    try:
        tables = tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(path, None, f"is not TOML: {error}")) from None
    found: list[Study] = []
    problems: list[Problem] = []
    for name, table in tables.items():
        try:
            found.append(_study(name, table))
        except ValueError as error:
            problems.append(Problem(path, None, str(error)))
    if problems:
        raise InputError(problems)
    return found


def _study(name: str, table: Any) -> Study:
    if not isinstance(table, dict):
        raise ValueError(f"{name} stands outside a study; write it below a line such as [pilot]")
    allowed = [field.name for field in fields(Study) if field.name != "name"]
    for key, value in table.items():
        if key not in allowed:
            raise ValueError(f"study {name!r}: {key} is no setting; allowed: {', '.join(allowed)}")
        if not isinstance(value, TYPES[key]) or isinstance(value, bool):
            raise ValueError(
                f"study {name!r}: {key} is {value!r}; {TYPES[key].__name__} is allowed"
            )
    return Study(name, **{"completion_code": "", **table})
