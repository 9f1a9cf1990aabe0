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
    "Published",
    "Recipe",
    "Run",
    "read_recipe",
]

TRAINING = "csts-train"
"""What `giccs-csts train` follows of a recipe; all other tasks are those of `giccs-eval`."""
SETTINGS = "giccs.csts.encoders.settings"
"""Module whose ``Settings`` a training has; imported when a recipe names one."""


@dataclass(frozen=True)
class Published:
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
    ask: Mapping[str, Any]
    """How, as `TaskOptions` has it, or the `Settings` of a training; what is not named is the default."""
    published: tuple[Published, ...]

    @property
    def settings(self) -> Any:
        """Of a training: all of them. ValueError where one is not allowed."""
        return _training_settings()(self.model, self.revision, **self.ask).canonical()

    def asked(self) -> Mapping[str, Any]:
        """Return how it is asked, with the defaults of what the recipe does not say."""
        if self.task == TRAINING:
            document: Mapping[str, Any] = self.settings.document()
            return document
        return asdict(TaskOptions(**self.ask))


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

    def only(self, models: Sequence[str] = (), tasks: Sequence[str] = ()) -> Recipe:
        """Return the runs of some models or tasks; all where none are named.

        InputError names the models and tasks of which the recipe says nothing.
        """
        known = {run.model for run in self.runs}, {run.task for run in self.runs}
        problems = [
            Problem(self.file, None, f"says nothing of {name}; {', '.join(sorted(of))} are in it")
            for wanted, of in zip((models, tasks), known, strict=True)
            for name in wanted
            if name not in of
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
    faults: list[str] = []
    recipe = _recipe(file, _Table(document, "", faults))
    if faults:
        raise InputError([Problem(file, None, fault) for fault in faults])
    return recipe


@dataclass(frozen=True)
class _Table:
    """A table of the file; what is wrong with its values is added to `faults`, with the key's place."""

    values: Mapping[str, Any]
    place: str
    faults: list[str]

    def wrong(self, key: str, message: str) -> None:
        self.faults.append(f"{self.place}{key} {message}")

    def only(self, *allowed: str) -> None:
        for key in sorted(self.values.keys() - set(allowed)):
            self.wrong(key, f"is not known; {', '.join(allowed)} are")

    def text(self, key: str, *, needed: bool = False, allowed: Sequence[str] = ()) -> str:
        """Return a text, empty where it is missing."""
        value = self.values.get(key)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or not value or (allowed and value not in allowed):
            what = f"one of {', '.join(allowed)}" if allowed else "a text"
            self.wrong(key, f"is {self._shown(key)}; it must be {what}")
            return ""
        return value

    def number(self, key: str, *, needed: bool = False) -> float | None:
        value = self.values.get(key)
        if value is None and not needed:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= sys.float_info.max  # larger integers are no floats
        ):
            self.wrong(key, f"is {self._shown(key)}; it must be a number")
            return None
        return float(value)

    def tables(self, key: str) -> Iterator[_Table]:
        """Yield the tables of a list; their places count from 1."""
        values = self.values.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            self.wrong(key, "must be a list of tables")
            return
        for number, value in enumerate(values, 1):
            yield _Table(value, f"{self.place}{key} {number}: ", self.faults)

    def table(self, key: str) -> Mapping[str, Any]:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.wrong(key, f"is {self._shown(key)}; it must be a table")
            return {}
        return value

    def _shown(self, key: str) -> str:
        return repr(self.values[key]) if key in self.values else "missing"


def _recipe(file: str, table: _Table) -> Recipe:
    table.only("title", "source", "data", "model")
    runs = tuple(map(_run, table.tables("model")))
    if not runs and not table.faults:
        table.wrong("model", "is missing; a recipe needs at least one [[model]]")
    data = table.text("data", needed=True)
    return Recipe(file, table.text("title"), table.text("source"), data, runs)


def _run(table: _Table) -> Run:
    table.only("name", "revision", "task", "history", "ask", "published")
    task = table.text("task", needed=True, allowed=[*task_modules(), TRAINING])
    name, revision = table.text("name", needed=True), table.text("revision") or None
    ask = _asked(table, _training_settings() if task == TRAINING else TaskOptions)
    run = Run(name, revision, task, ask, tuple(map(_published, table.tables("published"))))
    if task == TRAINING and not table.faults:
        try:
            _ = run.settings
        except ValueError as error:
            table.wrong("ask", f"cannot be: {error}")
    return run


def _training_settings() -> Any:
    return import_module(SETTINGS).Settings


def _asked(table: _Table, kind: type) -> dict[str, Any]:
    ask = dict(table.table("ask"))
    for key, value in ask.items():
        if problem := problem_with(kind, key, value):
            table.wrong("ask:", problem)
    history = table.text("history", allowed=declarations(TaskOptions)["history"].words())
    return ask | ({"history": history} if history else {})


def _published(table: _Table) -> Published:
    table.only("metric", "value", "by", "stderr", "n")
    value, n = table.number("value", needed=True), table.number("n")
    return Published(
        table.text("metric", needed=True),
        0.0 if value is None else value,
        table.table("by"),
        table.number("stderr"),
        None if n is None else int(n),
    )
