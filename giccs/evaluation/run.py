"""Models × tasks on their data: what is known is taken from the store, the rest is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from bws.problems import InputError, Problem
from giccs.evaluation.engines.local import EvaluationJob, run_locally
from giccs.evaluation.recipe import TRAINING, Recipe
from giccs.measures.results import Result, Store
from giccs.models import ModelOptions, open_model
from giccs.models.abilities import Model
from giccs.progress import Progress, silent
from giccs.tasks import Data, Task, TaskOptions, open_tasks

__all__ = ["JobGroup", "OpenedModel", "check_supported", "open_models", "open_recipe", "run"]


class OpenedModel(NamedTuple):
    """A model, nothing of it loaded, and how it was opened."""

    model: Model
    options: ModelOptions


JobGroup = tuple[Sequence[OpenedModel], Sequence[Task]]
"""Models, and the tasks that each of them is asked as far as it can do them."""


def open_models(names: Sequence[str], options: ModelOptions | None = None) -> list[Model]:
    """Open all models before any works; InputError tells of every name that is wrong."""
    models: list[Model] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        try:
            models.append(open_model(name, options))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return models


def open_recipe(
    recipe: Recipe,
    options: ModelOptions,
    task_options: TaskOptions,
    *,
    open_model_with: Callable[[str, ModelOptions], Model] = open_model,
    unsupported: list[Problem] | None = None,
) -> list[JobGroup]:
    """Open each model of a recipe at its revision, with the tasks that it is asked there; trainings are not.

    InputError tells of every model that cannot be had, or cannot do its task; with `impossible`, what a
    model cannot do is left out and noted there.
    """
    groups: list[JobGroup] = []
    problems: list[Problem] = []
    for recipe_run in (run for run in recipe.runs if run.task != TRAINING):
        try:
            model_options = replace(options, revision=recipe_run.revision)
            model = open_model_with(recipe_run.model, model_options)
            tasks = open_tasks(recipe_run.task, replace(task_options, **recipe_run.options))
        except InputError as error:
            problems += error.problems
            continue
        new_problems = _unsupported_problems([model], tasks)
        if unsupported is None:
            problems += new_problems
        elif new_problems:
            unsupported += new_problems
            continue
        groups.append(([OpenedModel(model, model_options)], tasks))
    if problems:
        raise InputError(dict.fromkeys(problems))
    return groups


def check_supported(models: Sequence[Model], tasks: Sequence[Task]) -> None:
    """Raise InputError for every model that cannot do one of the tasks."""
    if problems := _unsupported_problems(models, tasks):
        raise InputError(problems)


def _unsupported_problems(models: Sequence[Model], tasks: Sequence[Task]) -> list[Problem]:
    """Return what models cannot do, once a model and task."""
    problems = {
        (model.name, task.name): Problem(model.name, None, reason)
        for model in models
        for task in tasks
        if (reason := task.refuses(model))
    }
    return list(problems.values())


def run(
    models: Sequence[Model],
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
    jobs = [
        EvaluationJob(model, task, data)
        for model in models
        for task in tasks
        if not task.refuses(model)
    ]
    for _, result in run_locally(jobs, store, force=force, note=note, progress=progress):
        yield result
