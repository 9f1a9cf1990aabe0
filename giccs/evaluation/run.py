"""Models × tasks on their data: existing results are reused, missing ones computed."""

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
from giccs.tasks import DEFAULT_TASKS, Data, Task, TaskOptions, open_tasks

__all__ = [
    "JobGroup", "OpenedModel", "check_supported", "open_models", "open_recipe", "run", "supported_tasks",
]  # fmt: skip


class OpenedModel(NamedTuple):
    """A model without loaded weights, and its options."""

    model: Model
    options: ModelOptions


JobGroup = tuple[Sequence[OpenedModel], Sequence[Task]]
"""Models, and the tasks of each of them, if supported."""


def open_models(names: Sequence[str], options: ModelOptions | None = None) -> list[Model]:
    """Open all models before any runs; raise InputError for every invalid name."""
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
    """Open each model of a recipe at its revision, with its tasks, except trainings.

    Raises InputError for every unavailable model and unsupported task; with `unsupported`, unsupported tasks
    are skipped and added to it.
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


def supported_tasks(
    models: Sequence[Model], names: Sequence[str], options: TaskOptions
) -> list[Task]:
    """Open the tasks of these names, which all models must support, or else the default tasks.

    Raises InputError for models that do not support a named task, or any of the default tasks.
    """
    tasks = [task for name in names or DEFAULT_TASKS for task in open_tasks(name, options)]
    unsuitable = [model for model in models if all(task.refuses(model) for task in tasks)]
    check_supported(models if names else unsuitable, tasks)
    return tasks


def check_supported(models: Sequence[Model], tasks: Sequence[Task]) -> None:
    """Raise InputError for every model that does not support one of the tasks."""
    if problems := _unsupported_problems(models, tasks):
        raise InputError(problems)


def _unsupported_problems(models: Sequence[Model], tasks: Sequence[Task]) -> list[Problem]:
    """Return the unsupported combinations, one problem per model and task."""
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
    """Yield a result for each model and supported task, stored before the next is computed.

    Existing results with the same signature are reused, unless `force`.
    """
    jobs = [
        EvaluationJob(model, task, data)
        for model in models
        for task in tasks
        if not task.refuses(model)
    ]
    for _, result in run_locally(jobs, store, force=force, note=note, progress=progress):
        yield result
