"""Recipes: models, tasks, data, and the corresponding published numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import Any

from bws.base.options import checked_value, declarations, problem_with
from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_toml
from giccs.models import ENCODER_OPTIONS, ModelOptions
from giccs.recipes import locate
from giccs.tasks import TaskOptions, task_names

TRAINING = "csts-train"
"""The task executed by `giccs csts train`; all others are executed by `giccs eval`."""
ANSWERS_KEY = "answers"
"""Key of the name of a training's file of answers, in recipes and in the environment of results."""
ACROSS_MODELS = "evalrank-correlate"
"""The task of numbers over models; `giccs report --against` computes them from the results of a folder."""
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
    folder: str = ""
    """Subfolder of the recipe's data; empty for the data itself."""
    skip: str = ""
    """Why giccs cannot evaluate the model; its published numbers are listed without results."""
    answers: str = ""
    """Name of the file of answers of a training; empty for files that no other run of the recipe names."""

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
    """The benchmark, as for ``giccs eval --data``."""
    runs: tuple[Run, ...]
    skip_missing: bool = False
    """Whether to skip missing models and folders, with a note, if others remain."""

    def by_folder(self) -> dict[str, Recipe]:
        """Return the runs that giccs eval executes, by subfolder of the data."""
        runs: dict[str, list[Run]] = {}
        for run in self.runs:
            if not run.skip and run.task not in (TRAINING, ACROSS_MODELS):
                runs.setdefault(run.folder, []).append(run)
        return {folder: replace(self, runs=tuple(part)) for folder, part in runs.items()}

    def answers_of(self, file: str) -> str:
        """Return the name of a file of answers if runs name it, or an empty string for those that name none.

        >>> read_recipe("l-csts-paper").answers_of("folder/flan-t5-xl.csv")
        'flan-t5-xl.csv'
        """
        name = os.path.basename(file)
        return name if name in {run.answers for run in self.runs} else ""

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


def data_in(data: str, folder: str) -> str:
    """Return the name of a subfolder of data, or of the data itself for an empty subfolder.

    >>> data_in("evalrank/", "sent_evalrank"), data_in("giccs-sample", "")
    ('evalrank/sent_evalrank', 'giccs-sample')
    """
    return os.path.join(data, folder) if folder else data


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

    Keys: ``title``, ``source``, ``data``, ``skip_missing``, ``[folders]`` (task -> subfolder of the data, or
    a list of them), and for each ``[[model]]`` ``name``, ``revision``, ``task``, ``history``, ``ask``, a
    table of `TaskOptions` (or of the `Settings` of a training), ``folder``, ``skip``, ``answers`` (name of
    the file of answers of a training), and ``published``, a list of ``{metric, value, by, stderr, n}``.
    ``name`` and ``task`` can be lists, for every combination, without published numbers. Required are
    ``data``, ``name`` and ``task`` of each model, and ``metric`` and ``value`` of each number. Unknown keys
    are errors.
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

    def texts(self, key: str, *, allowed: Sequence[str] = ()) -> list[str]:
        """Return the texts of a required list, or a single text."""
        value = self.values.get(key)
        if not isinstance(value, list) or not value:
            return [self.text(key, required=True, allowed=allowed)]
        parts = [replace(self, values={key: part}) for part in value]
        return [part.text(key, required=True, allowed=allowed) for part in parts]

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
    table.check_keys("title", "source", "data", "skip_missing", "folders", "model")
    folders = _parse_folders(table)
    runs = tuple(run for part in table.tables("model") for run in _parse_runs(part, folders))
    if not runs and not table.problems:
        table.add_problem("model", "is missing; expected at least one [[model]]")
    data = table.text("data", required=True)
    skip_missing = table.values.get("skip_missing", False)
    if not isinstance(skip_missing, bool):
        table.add_problem("skip_missing", f"is {skip_missing!r}; expected true or false")
    return Recipe(file, table.text("title"), table.text("source"), data, runs, bool(skip_missing))


def _parse_folders(table: _TomlTable) -> dict[str, list[str]]:
    """Return the subfolders of the data, by task."""
    part = _TomlTable(table.table("folders"), "folders: ", table.problems)
    part.check_keys(*task_names())
    return {task: part.texts(task) for task in part.values}


def _parse_runs(table: _TomlTable, folders: Mapping[str, Sequence[str]]) -> Iterator[Run]:
    """Yield a run per name, task and subfolder of the task."""
    table.check_keys(
        "name", "revision", "task", "folder", "history", "ask", "skip", ANSWERS_KEY, "published"
    )
    tasks = table.texts("task", allowed=[*task_names(), TRAINING, ACROSS_MODELS])
    names, revision, skip = table.texts("name"), table.text("revision"), table.text("skip")
    answers = table.text(ANSWERS_KEY)
    options = _parse_options(table, tasks[0])
    published = tuple(map(_parse_published, table.tables("published")))
    folder = table.text("folder")
    runs = [
        Run(name, revision or None, task, options, published, run_folder, skip, answers)
        for name in names
        for task in tasks
        for run_folder in ([folder] if folder else folders.get(task, [""]))
    ]
    if answers and tasks[0] != TRAINING:
        table.add_problem(
            ANSWERS_KEY, f"is for {TRAINING}; expected the option of the task, in ask"
        )
    if published and len(runs) > 1:
        table.add_problem("published", f"is for one run; the lists make {len(runs)}")
    if tasks[0] == TRAINING and not table.problems:
        try:
            _ = runs[0].settings
        except ValueError as error:
            table.add_problem("ask", f"is invalid: {error}")
    yield from runs


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
