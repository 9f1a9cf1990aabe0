"""A recipe: which models do which task on which data, and the numbers that were published of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import Any

from bws.options import declarations, problem_with
from bws.problems import InputError, Problem
from bws.textio import display_name, read_toml
from giccs.tasks import TaskOptions, task_modules

__all__ = [
    "TRAINING",
    "PublishedNumber",
    "Recipe",
    "Run",
    "read_recipe",
]

TRAINING = "csts-train"
"""What `giccs-csts train` follows of a recipe; all other tasks are those of `giccs-eval`."""
TRAINING_SETTINGS_MODULE = "giccs.csts.encoders.settings"
"""Module whose ``Settings`` a training has; imported when a recipe names one."""


@dataclass(frozen=True)
class PublishedNumber:
    """A number in print."""

    metric: str
    """As results call it: ``pearson``, ``accuracy`` …"""
    value: float
    by: Mapping[str, Any] = field(default_factory=dict)
    """Of which part of the data: ``{"n_turns": 3}``; empty for the whole."""
    stderr: float | None = None
    """What stands behind the ±, where there is one."""
    n: int | None = None
    """Items or questions that it rests on."""


@dataclass(frozen=True)
class Run:
    """One model and what it is asked."""

    model: str
    revision: str | None
    """Commit of a hub id; None where the model has none."""
    task: str
    options: Mapping[str, Any]
    """How, as `TaskOptions` has it, or the `Settings` of a training; what is not named is the default."""
    published: tuple[PublishedNumber, ...]

    @property
    def settings(self) -> Any:
        """Of a training: all of them. ValueError where one is not allowed."""
        return _training_settings_class()(self.model, self.revision, **self.options).canonical()

    def all_options(self) -> Mapping[str, Any]:
        """Return how it is asked, with the defaults of what the recipe does not say."""
        if self.task == TRAINING:
            document: Mapping[str, Any] = self.settings.document()
            return document
        return asdict(TaskOptions(**self.options))


@dataclass(frozen=True)
class Recipe:
    """Models, tasks, data and published numbers."""

    file: str
    title: str
    source: str
    """Where the numbers were published."""
    data: str
    """The benchmark, as ``giccs-eval --data`` takes it."""
    runs: tuple[Run, ...]

    def select(self, models: Sequence[str] = (), tasks: Sequence[str] = ()) -> Recipe:
        """Return the runs of some models or tasks; all where none are named.

        InputError names the models and tasks of which the recipe says nothing.
        """
        available = {run.model for run in self.runs}, {run.task for run in self.runs}
        problems = [
            Problem(
                self.file, None, f"says nothing of {name}; {', '.join(sorted(names))} are in it"
            )
            for requested, names in zip((models, tasks), available, strict=True)
            for name in requested
            if name not in names
        ]
        if problems:
            raise InputError(problems)
        runs = [
            run
            for run in self.runs
            if (not models or run.model in models) and (not tasks or run.task in tasks)
        ]
        return replace(self, runs=tuple(runs))


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Read a recipe (TOML); InputError with everything that is wrong in it, by key.

    Keys: ``title``, ``source``, ``data``, and for each ``[[model]]`` ``name``, ``revision``, ``task``,
    ``history``, ``ask``, a table of `TaskOptions` (of a training, of its `Settings`), and ``published``, a
    list of ``{metric, value, by, stderr, n}``. Needed are ``data``, and each model's ``name`` and ``task``,
    each number's ``metric`` and ``value``; other keys are faults.
    """
    file = display_name(path)
    document = read_toml(path)
    problems: list[str] = []
    recipe = _parse_recipe(file, _TomlTable(document, "", problems))
    if problems:
        raise InputError([Problem(file, None, problem) for problem in problems])
    return recipe


@dataclass(frozen=True)
class _TomlTable:
    """A table of the file; what is wrong with its values is added to `faults`, with the key's place."""

    values: Mapping[str, Any]
    prefix: str
    problems: list[str]

    def add_problem(self, key: str, message: str) -> None:
        self.problems.append(f"{self.prefix}{key} {message}")

    def check_keys(self, *allowed: str) -> None:
        for key in sorted(self.values.keys() - set(allowed)):
            self.add_problem(key, f"is not known; {', '.join(allowed)} are")

    def text(self, key: str, *, required: bool = False, allowed: Sequence[str] = ()) -> str:
        """Return a text, empty where it is missing."""
        value = self.values.get(key)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or not value or (allowed and value not in allowed):
            expected = f"one of {', '.join(allowed)}" if allowed else "a text"
            self.add_problem(key, f"is {self._value_text(key)}; it must be {expected}")
            return ""
        return value

    def number(self, key: str, *, required: bool = False) -> float | None:
        value = self.values.get(key)
        if value is None and not required:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= sys.float_info.max  # larger integers are no floats
        ):
            self.add_problem(key, f"is {self._value_text(key)}; it must be a number")
            return None
        return float(value)

    def tables(self, key: str) -> Iterator[_TomlTable]:
        """Yield the tables of a list; their places count from 1."""
        values = self.values.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            self.add_problem(key, "must be a list of tables")
            return
        for number, value in enumerate(values, 1):
            yield _TomlTable(value, f"{self.prefix}{key} {number}: ", self.problems)

    def table(self, key: str) -> Mapping[str, Any]:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.add_problem(key, f"is {self._value_text(key)}; it must be a table")
            return {}
        return value

    def _value_text(self, key: str) -> str:
        return repr(self.values[key]) if key in self.values else "missing"


def _parse_recipe(file: str, table: _TomlTable) -> Recipe:
    table.check_keys("title", "source", "data", "model")
    runs = tuple(map(_parse_run, table.tables("model")))
    if not runs and not table.problems:
        table.add_problem("model", "is missing; a recipe needs at least one [[model]]")
    data = table.text("data", required=True)
    return Recipe(file, table.text("title"), table.text("source"), data, runs)


def _parse_run(table: _TomlTable) -> Run:
    table.check_keys("name", "revision", "task", "history", "ask", "published")
    task = table.text("task", required=True, allowed=[*task_modules(), TRAINING])
    name, revision = table.text("name", required=True), table.text("revision") or None
    options = _parse_options(table, _training_settings_class() if task == TRAINING else TaskOptions)
    run = Run(
        name, revision, task, options, tuple(map(_parse_published, table.tables("published")))
    )
    if task == TRAINING and not table.problems:
        try:
            _ = run.settings
        except ValueError as error:
            table.add_problem("ask", f"cannot be: {error}")
    return run


def _training_settings_class() -> Any:
    return import_module(TRAINING_SETTINGS_MODULE).Settings


def _parse_options(table: _TomlTable, kind: type) -> dict[str, Any]:
    options = dict(table.table("ask"))
    for key, value in options.items():
        if problem := problem_with(kind, key, value):
            table.add_problem("ask:", problem)
    history = table.text("history", allowed=declarations(TaskOptions)["history"].words())
    return options | ({"history": history} if history else {})


def _parse_published(table: _TomlTable) -> PublishedNumber:
    table.check_keys("metric", "value", "by", "stderr", "n")
    value, n = table.number("value", required=True), table.number("n")
    return PublishedNumber(
        table.text("metric", required=True),
        0.0 if value is None else value,
        table.table("by"),
        table.number("stderr"),
        None if n is None else int(n),
    )
