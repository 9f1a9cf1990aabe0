"""Models × tasks on their data: what is known is taken from the store, the rest is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from bws.problems import InputError, Problem
from giccs.models import ModelOptions, open_model
from giccs.progress import Progress, silent
from giccs.recipe import TRAINING, Recipe
from giccs.results import Result, Store
from giccs.tasks import Data, Task, TaskOptions, open_tasks

__all__ = ["Job", "follow", "must_do", "open_models", "run"]


Job = tuple[Sequence[Any], Sequence[Task]]
"""Models, and the tasks that each of them is asked as far as it can do them."""


def open_models(names: Sequence[str], options: ModelOptions | None = None) -> list[Any]:
    """Open all models before any works; InputError tells of every name that is wrong."""
    models: list[Any] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        try:
            models.append(open_model(name, options))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return models


def follow(recipe: Recipe, options: ModelOptions, how: TaskOptions) -> list[Job]:
    """Open each model of a recipe at its revision, with the tasks that it is asked there; trainings are not.

    InputError tells of every model that cannot be had, or cannot do its task.
    """
    jobs: list[Job] = []
    problems: list[Problem] = []
    for asked in (run for run in recipe.runs if run.task != TRAINING):
        try:
            models = [open_model(asked.model, replace(options, revision=asked.revision))]
            tasks = open_tasks(asked.task, replace(how, **asked.ask))
            must_do(models, tasks)
            jobs.append((models, tasks))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return jobs


def must_do(models: Sequence[Any], tasks: Sequence[Task]) -> None:
    """Raise InputError for every model that cannot do one of the tasks."""
    problems = {
        (model.name, task.name): Problem(model.name, None, reason)
        for model in models
        for task in tasks
        if (reason := task.refuses(model))
    }
    if problems:
        raise InputError(problems.values())


def run(
    models: Sequence[Any],
    tasks: Sequence[Task],
    data: Data,
    store: Store,
    *,
    force: bool = False,
    note: Callable[[str], None] = lambda message: None,
    progress: Progress = silent,
) -> Iterator[Result]:
    """Yield a result for each model and task that it can do, each kept before the next is begun.

    A result whose signature stands in the store is not computed again, unless `force`.
    """
    for model in models:
        for task in tasks:
            if task.refuses(model):
                continue
            signature = task.signature(model, data)
            known = None if force else store.find(model.name, task.name, signature)
            note(f"{model.name}: {task.name}{', kept from before' if known else ' ...'}")
            result = known or task.evaluate(model, data, progress)
            if not known:
                store.add(result)
                if hasattr(model, "usage"):
                    note(f"{model.name}: {model.usage()}")
            yield result
