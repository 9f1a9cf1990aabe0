"""A sweep: which models do which tasks on which data, in every combination? A short way to write recipes."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from bws.options import declarations, problem_with
from bws.problems import InputError, Problem
from bws.textio import display_name, read_toml
from giccs.evaluation.recipe import Recipe, Run
from giccs.tasks import TaskOptions, task_modules

__all__ = ["read_sweep"]

log = logging.getLogger(__name__)

GRID = ("models", "tasks", "data", "options")


def read_sweep(path: str | os.PathLike[str]) -> list[Recipe]:
    """Read a sweep (TOML) as a recipe for each data set of each grid, without published numbers.

    Keys: ``title``, ``source``, and one or more ``[[grid]]`` with ``models`` (names, or tables of
    ``name`` and ``revision``), ``tasks``, ``data`` (as ``giccs-eval --data`` takes it; each task's sample
    where it is missing) and ``options``, a table of `TaskOptions` in which a list is one more dimension.
    InputError with everything that is wrong in it, by key.
    """
    file = display_name(path)
    document = read_toml(path)
    if faults := list(_faults(document)):
        raise InputError([Problem(file, None, fault) for fault in faults])
    title, source = document.get("title", ""), document.get("source", "")
    recipes = [
        Recipe(file, title, source, data, tuple(_runs(grid)))
        for grid in document["grid"]
        for data in grid.get("data", [""])
    ]
    runs = sum(len(one.runs) for one in recipes)
    log.debug("%s: %d grids, %d recipes, %d runs", file, len(document["grid"]), len(recipes), runs)
    return recipes


def _runs(grid: Mapping[str, Any]) -> Iterator[Run]:
    """Yield every combination, all of a model together."""
    options = grid.get("options", {})
    dimensions = [value if isinstance(value, list) else [value] for value in options.values()]
    for model, task, *values in product(grid["models"], grid["tasks"], *dimensions):
        named = {"name": model} if isinstance(model, str) else model
        ask = dict(zip(options, values, strict=True))
        yield Run(named["name"], named.get("revision"), task, ask, ())


def _faults(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown(document, ("title", "source", "grid"))
    for key in ("title", "source"):
        if not isinstance(document.get(key, ""), str):
            yield f"{key} is {document[key]!r}; it must be a text"
    grids = document.get("grid")
    if not isinstance(grids, list) or not grids or not all(isinstance(one, dict) for one in grids):
        yield "has no [[grid]]; a sweep needs at least one"
        return
    for number, grid in enumerate(grids, 1):
        yield from (f"grid {number}: {fault}" for fault in _faults_of(grid))


def _faults_of(grid: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown(grid, GRID)
    for key in ("models", "tasks", "data"):
        values = grid.get(key)
        if isinstance(values, list) and values:
            yield from _wrong_names(key, values)
        elif key in grid or key != "data":
            shown = repr(values) if key in grid else "missing"
            yield f"{key} is {shown}; it must be a list of names"
    options = grid.get("options", {})
    if not isinstance(options, dict):
        yield f"options is {options!r}; it must be a table"
        return
    for name, value in options.items():
        yield from _wrong_option(name, value if isinstance(value, list) else [value])


def _wrong_names(key: str, values: Sequence[Any]) -> Iterator[str]:
    for value in values:
        named = value
        if key == "models" and isinstance(value, dict) and value.keys() <= {"name", "revision"}:
            named = value.get("name") if isinstance(value.get("revision", ""), str) else None
        if not isinstance(named, str) or not named:
            also = ", or a table of name and revision" if key == "models" else ""
            yield f"{key} has {value!r}; it must be a text{also}"
        elif key == "tasks" and named not in task_modules():
            yield f"tasks has {named!r}; {', '.join(task_modules())} are allowed"
    if key == "models":  # a name alone is one without a revision
        values = [{"name": one} if isinstance(one, str) else one for one in values]
    if _repeat(values):
        yield f"{key} has one of its values twice"


def _wrong_option(name: str, values: Sequence[Any]) -> Iterator[str]:
    known = name in declarations(TaskOptions)
    if known and not values:
        yield f"options has {name} = []; it must be a value or a list of some"
    for value in values if known else [None]:
        if problem := problem_with(TaskOptions, name, value):
            yield f"options: {problem}"
    if _repeat(values):
        yield f"options has {name} with one of its values twice"


def _repeat(values: Sequence[Any]) -> bool:
    return len({repr(value) for value in values}) < len(values)


def _unknown(table: Mapping[str, Any], known: Sequence[str]) -> Iterator[str]:
    for key in sorted(table.keys() - set(known)):
        yield f"{key} is not known; {', '.join(known)} are"
