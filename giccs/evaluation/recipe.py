"""Recipes: models, tasks, data, and the corresponding published numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import Any

from bws.options import checked_value, declarations, problem_with
from bws.problems import InputError, Problem
from bws.textio import display_name, read_toml
from giccs.models import ENCODER_OPTIONS, ModelOptions
from giccs.recipes import locate
from giccs.tasks import TaskOptions, task_names

__all__ = [
    "TRAINING",
    "PublishedNumber",
    "Recipe",
    "Run",
    "option_problem",
    "read_recipe",
    "split_options",
]

TRAINING = "csts-train"
"""The task executed by `giccs-csts train`; all others are executed by `giccs-eval`."""
TRAINING_SETTINGS_MODULE = "giccs.csts.encoders.settings"
"""Module of the ``Settings`` of trainings, imported on demand."""


@dataclass(frozen=True)
class PublishedNumber:
    """A published number."""

    metric: str
    """Name in results: ``pearson``, ``accuracy`` …"""
    value: float
    by: Mapping[str, Any] = field(default_factory=dict)
    """Group of the data: ``{"n_turns": 3}``; empty for all data."""
    stderr: float | None = None
    """The number after ±, if any."""
    n: int | None = None
    """Number of items or questions."""


@dataclass(frozen=True)
class Run:
    """A model with a task and its options."""

    model: str
    revision: str | None
    """Commit of a hub id; None if the model has none."""
    task: str
    options: Mapping[str, Any]
    """Fields of `TaskOptions` and `giccs.models.ENCODER_OPTIONS`, or of the `Settings` of a training; others
    have their defaults."""
    published: tuple[PublishedNumber, ...]

    @property
    def settings(self) -> Any:
        """Return all settings of a training; raise ValueError for invalid values."""
        return _training_settings_class()(self.model, self.revision, **self.options).canonical()

    def all_options(self) -> Mapping[str, Any]:
        """Return the options, including defaults."""
        if self.task == TRAINING:
            document: Mapping[str, Any] = self.settings.document()
            return document
        of_model, of_task = split_options(self.options)
        return asdict(TaskOptions(**of_task)) | of_model


@dataclass(frozen=True)
class Recipe:
    """Models, tasks, data and published numbers."""

    file: str
    title: str
    source: str
    """The publication of the numbers."""
    data: str
    """The benchmark, as for ``giccs-eval --data``."""
    runs: tuple[Run, ...]

    def select(self, models: Sequence[str] = (), tasks: Sequence[str] = ()) -> Recipe:
        """Return the runs of some models or tasks, or all if none are named.

        Raises InputError for models and tasks that are not in the recipe.
        """
        available = {run.model for run in self.runs}, {run.task for run in self.runs}
        problems = [
            Problem(
                self.file,
                None,
                f"does not contain {name}; expected one of {', '.join(sorted(names))}",
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


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the model and of the task, parsed.

    >>> split_options({"history": "both", "prompt": "query"})
    ({'prompt': ('query',)}, {'history': 'both'})
    """
    of_model: dict[str, Any] = {}
    of_task: dict[str, Any] = {}
    for name, value in options.items():
        owner, values = _owner_and_value(name, value)
        parsed = of_model if owner is ModelOptions else of_task
        parsed[name] = checked_value(owner, name, values)
    return of_model, of_task


def option_problem(name: str, value: Any) -> str:
    """Return the problem with an option of an evaluation in a recipe or sweep, or an empty string."""
    owner, value = _owner_and_value(name, value)
    return problem_with(owner, name, value)


def _owner_and_value(name: str, value: Any) -> tuple[type, Any]:
    """Return the class of an option and its value; one of several values may be without a list."""
    owner: type = ModelOptions if name in ENCODER_OPTIONS else TaskOptions
    is_several = isinstance(getattr(owner(), name, None), tuple)
    return owner, [value] if is_several and isinstance(value, str) else value


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Read a recipe (TOML); raise InputError with every problem, by key.

    Keys: ``title``, ``source``, ``data``, and for each ``[[model]]`` ``name``, ``revision``, ``task``,
    ``history``, ``ask``, a table of `TaskOptions` (or of the `Settings` of a training), and ``published``, a
    list of ``{metric, value, by, stderr, n}``. Required are ``data``, ``name`` and ``task`` of each model,
    and ``metric`` and ``value`` of each number. Unknown keys are errors.
    """
    file = display_name(path)
    document = read_toml(locate(path))
    problems: list[str] = []
    recipe = _parse_recipe(file, _TomlTable(document, "", problems))
    if problems:
        raise InputError([Problem(file, None, problem) for problem in problems])
    return recipe


@dataclass(frozen=True)
class _TomlTable:
    """A table of the file; problems of its values are added to `faults`, with the path of the key."""

    values: Mapping[str, Any]
    prefix: str
    problems: list[str]

    def add_problem(self, key: str, message: str) -> None:
        self.problems.append(f"{self.prefix}{key} {message}")

    def check_keys(self, *allowed: str) -> None:
        for key in sorted(self.values.keys() - set(allowed)):
            self.add_problem(key, f"is unknown; expected one of {', '.join(allowed)}")

    def text(self, key: str, *, required: bool = False, allowed: Sequence[str] = ()) -> str:
        """Return a text, empty if it is missing."""
        value = self.values.get(key)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or not value or (allowed and value not in allowed):
            expected = f"one of {', '.join(allowed)}" if allowed else "text"
            self.add_problem(key, f"is {self._value_text(key)}; expected {expected}")
            return ""
        return value

    def number(self, key: str, *, required: bool = False) -> float | None:
        value = self.values.get(key)
        if value is None and not required:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= sys.float_info.max  # Larger integers cannot be converted to float.
        ):
            self.add_problem(key, f"is {self._value_text(key)}; expected a number")
            return None
        return float(value)

    def tables(self, key: str) -> Iterator[_TomlTable]:
        """Yield the tables of a list; their indices count from 1."""
        values = self.values.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            self.add_problem(key, "must be a list of tables")
            return
        for number, value in enumerate(values, 1):
            yield _TomlTable(value, f"{self.prefix}{key} {number}: ", self.problems)

    def table(self, key: str) -> Mapping[str, Any]:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.add_problem(key, f"is {self._value_text(key)}; expected a table")
            return {}
        return value

    def _value_text(self, key: str) -> str:
        return repr(self.values[key]) if key in self.values else "missing"


def _parse_recipe(file: str, table: _TomlTable) -> Recipe:
    table.check_keys("title", "source", "data", "model")
    runs = tuple(map(_parse_run, table.tables("model")))
    if not runs and not table.problems:
        table.add_problem("model", "is missing; expected at least one [[model]]")
    data = table.text("data", required=True)
    return Recipe(file, table.text("title"), table.text("source"), data, runs)


def _parse_run(table: _TomlTable) -> Run:
    table.check_keys("name", "revision", "task", "history", "ask", "published")
    task = table.text("task", required=True, allowed=[*task_names(), TRAINING])
    name, revision = table.text("name", required=True), table.text("revision") or None
    options = _parse_options(table, task)
    run = Run(
        name, revision, task, options, tuple(map(_parse_published, table.tables("published")))
    )
    if task == TRAINING and not table.problems:
        try:
            _ = run.settings
        except ValueError as error:
            table.add_problem("ask", f"is invalid: {error}")
    return run


def _training_settings_class() -> Any:
    return import_module(TRAINING_SETTINGS_MODULE).Settings


def _parse_options(table: _TomlTable, task: str) -> dict[str, Any]:
    options = dict(table.table("ask"))
    for key, value in options.items():
        if problem := (
            problem_with(_training_settings_class(), key, value)
            if task == TRAINING
            else option_problem(key, value)
        ):
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
