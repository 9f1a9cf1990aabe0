"""Sweeps: all combinations of models, tasks, data and options, as a compact form of recipes."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from bws.base.options import declarations
from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_toml
from giccs.evaluation.recipe import Recipe, Run, option_problem
from giccs.models import ENCODER_OPTIONS
from giccs.recipes import locate
from giccs.tasks import TaskOptions, task_names

log = logging.getLogger(__name__)

GRID = ("models", "tasks", "data", "options")


def read_sweep(path: str | os.PathLike[str]) -> list[Recipe]:
    """Read a sweep (TOML) as one recipe per data set of each grid, without published numbers.

    Keys: ``title``, ``source``, and one or more ``[[grid]]`` with ``models`` (names, or tables of ``name``
    and ``revision``), ``tasks``, ``data`` (as for ``giccs eval --data``; by default the sample of each task)
    and ``options``, a table of `TaskOptions` and `giccs.models.ENCODER_OPTIONS` in which lists are further
    dimensions. Raises InputError with
    every problem, by key.
    """
    file = display_name(path)
    document = read_toml(locate(path))
    if faults := list(_document_problems(document)):
        raise InputError([Problem(file, None, fault) for fault in faults])
    title, source = document.get("title", ""), document.get("source", "")
    recipes = [
        Recipe(file, title, source, data, tuple(_grid_runs(grid)))
        for grid in document["grid"]
        for data in grid.get("data", [""])
    ]
    runs = sum(len(recipe.runs) for recipe in recipes)
    log.debug("%s: %d grids, %d recipes, %d runs", file, len(document["grid"]), len(recipes), runs)
    return recipes


def _grid_runs(grid: Mapping[str, Any]) -> Iterator[Run]:
    """Yield every combination, those of one model consecutively."""
    options = grid.get("options", {})
    dimensions = [value if isinstance(value, list) else [value] for value in options.values()]
    for model, task, *values in product(grid["models"], grid["tasks"], *dimensions):
        model_table = {"name": model} if isinstance(model, str) else model
        task_options = dict(zip(options, values, strict=True))
        yield Run(model_table["name"], model_table.get("revision"), task, task_options, ())


def _document_problems(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown_keys(document, ("title", "source", "grid"))
    for key in ("title", "source"):
        if not isinstance(document.get(key, ""), str):
            yield f"{key} is {document[key]!r}; expected text"
    grids = document.get("grid")
    if (
        not isinstance(grids, list)
        or not grids
        or not all(isinstance(grid, dict) for grid in grids)
    ):
        yield "no [[grid]]; expected at least one"
        return
    for number, grid in enumerate(grids, 1):
        yield from (f"grid {number}: {problem}" for problem in _grid_problems(grid))


def _grid_problems(grid: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown_keys(grid, GRID)
    for key in ("models", "tasks", "data"):
        values = grid.get(key)
        if isinstance(values, list) and values:
            yield from _name_problems(key, values)
        elif key in grid or key != "data":
            found_value = repr(values) if key in grid else "missing"
            yield f"{key} is {found_value}; expected a list of names"
    options = grid.get("options", {})
    if not isinstance(options, dict):
        yield f"options is {options!r}; expected a table"
        return
    for name, value in options.items():
        yield from _option_problems(name, value if isinstance(value, list) else [value])


def _name_problems(key: str, values: Sequence[Any]) -> Iterator[str]:
    for value in values:
        name = value
        if key == "models" and isinstance(value, dict) and value.keys() <= {"name", "revision"}:
            name = value.get("name") if isinstance(value.get("revision", ""), str) else None
        if not isinstance(name, str) or not name:
            alternative = ", or a table of name and revision" if key == "models" else ""
            yield f"{key} has {value!r}; expected text{alternative}"
        elif key == "tasks" and name not in task_names():
            yield f"tasks has {name!r}; expected one of {', '.join(task_names())}"
    if key == "models":  # A name alone has no revision.
        values = [{"name": value} if isinstance(value, str) else value for value in values]
    if _has_duplicates(values):
        yield f"{key} has a repeated value"


def _option_problems(name: str, values: Sequence[Any]) -> Iterator[str]:
    is_declared = name in ENCODER_OPTIONS or name in declarations(TaskOptions)
    if is_declared and not values:
        yield f"options has {name} = []; expected a value or a nonempty list"
    for value in values if is_declared else [None]:
        if problem := option_problem(name, value):
            yield f"options: {problem}"
    if _has_duplicates(values):
        yield f"options has a repeated value for {name}"


def _has_duplicates(values: Sequence[Any]) -> bool:
    return len({repr(value) for value in values}) < len(values)


def _unknown_keys(table: Mapping[str, Any], expected: Sequence[str]) -> Iterator[str]:
    for key in sorted(table.keys() - set(expected)):
        yield f"{key} is unknown; expected one of {', '.join(expected)}"
