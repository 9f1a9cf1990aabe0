"""Models × tasks on their data: existing results are reused, missing ones computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple, cast

from bws.base.frames import is_path
from bws.base.options import flag_of
from bws.base.problems import InputError, Problem
from giccs.evaluation.engines.local import EvaluationJob, run_locally
from giccs.evaluation.recipe import Recipe, split_options
from giccs.measures.results import Result, Store
from giccs.models import (
    ModelOptions,
    UnsupportedOptionError,
    open_base,
    open_model,
)
from giccs.models.abilities import Model
from giccs.progress import Progress, silent
from giccs.tasks import DEFAULT_TASKS, Data, Task, TaskOptions, open_tasks, task_option_names


class OpenedModel(NamedTuple):
    """A model without loaded weights, and its options."""

    model: Model
    options: ModelOptions


JobGroup = tuple[Sequence[OpenedModel], Sequence[Task]]
"""Models, and the tasks of each of them, if supported."""


def open_models(names: Sequence[str], options: ModelOptions | None = None) -> list[Model]:
    """Open all models before any runs, once per prompt; raise InputError for every invalid name."""
    return [opened.model for opened in open_each_prompt(names, options)]


def open_each_prompt(
    models: Sequence[Any],
    options: ModelOptions | None = None,
    *,
    name: str = "",
    note: Callable[[str], None] = lambda message: None,
) -> list[OpenedModel]:
    """Open all models before any runs, once per prompt, with the options of each.

    models: names, or objects as for `giccs.evaluate`. name: of a model that is an object. The prompts of a
    model share its weights. An option that only some of the models support applies to these, with a note
    about each of the others. Raises InputError for every invalid name, and for options that none supports.
    """
    options = options or ModelOptions()
    opened: dict[tuple[object, ModelOptions], OpenedModel] = {}
    problems: list[Problem] = []
    unsupported: list[UnsupportedOptionError] = []
    opener = cache(open_base)
    for model in models:
        key = os.fspath(model) if is_path(model) else id(model)
        for with_prompt in options.each_prompt():
            try:
                each = _open_supported(model, name, with_prompt, opener, unsupported)
                opened.setdefault((key, each.options), each)
            except InputError as error:
                problems += error.problems
    for refusal in unsupported:
        if all(_is_default(each.options, refusal.options) for each in opened.values()):
            problems += refusal.problems
        else:
            note(f"{refusal.name}: {refusal.reason}; evaluated without {refusal.flags}")
    if problems:
        raise InputError(dict.fromkeys(problems))
    return list(opened.values())


def _open_supported(
    model: Any,
    name: str,
    options: ModelOptions,
    opener: Callable[[str, ModelOptions], Model],
    unsupported: list[UnsupportedOptionError],
) -> OpenedModel:
    """Open a model with the options that it supports; add the errors of others to `unsupported`."""
    from giccs.models.objects import model_of_object

    try:
        if is_path(model):
            return OpenedModel(open_model(os.fspath(model), options, opener), options)
        return OpenedModel(model_of_object(model, name, options), options)
    except UnsupportedOptionError as error:
        if str(error) not in map(str, unsupported):
            unsupported.append(error)
        defaults = {option: getattr(ModelOptions(), option) for option in error.options}
        return _open_supported(model, name, replace(options, **defaults), opener, unsupported)


def _is_default(options: ModelOptions, names: Sequence[str]) -> bool:
    default = ModelOptions()
    return all(getattr(options, name) == getattr(default, name) for name in names)


def open_recipe(
    recipe: Recipe,
    options: ModelOptions,
    task_options: TaskOptions,
    *,
    opener: Callable[[str, ModelOptions], Model] = open_base,
    unsupported: list[Problem] | None = None,
) -> list[JobGroup]:
    """Open each model of a recipe at its revision, with its tasks, except those of other commands.

    opener: as in `giccs.models.open_model`. Raises InputError for every unavailable model and unsupported
    task or option; with `unsupported`, unsupported ones are skipped and added to it, and with
    `Recipe.skip_missing` also unavailable models.
    """
    groups: list[JobGroup] = []
    problems: list[Problem] = []
    for recipe_run in (run for part in recipe.by_folder().values() for run in part.runs):
        of_model, of_task = split_options(recipe_run.options)
        try:
            tasks = open_tasks(recipe_run.task, replace(task_options, **of_task))
            run_options = replace(options, revision=recipe_run.revision, **of_model)
            opened = [
                OpenedModel(open_model(recipe_run.model, with_prompt, opener), with_prompt)
                for with_prompt in run_options.each_prompt()
            ]
        except UnsupportedOptionError as error:
            (problems if unsupported is None else unsupported).extend(error.problems)
            continue
        except InputError as error:
            skipped = unsupported if recipe.skip_missing else None
            (problems if skipped is None else skipped).extend(error.problems)
            continue
        new_problems = _unsupported_problems([each.model for each in opened], tasks)
        if unsupported is None:
            problems += new_problems
        elif new_problems:
            unsupported += new_problems
            continue
        groups.append((opened, tasks))
    if problems:
        raise InputError(dict.fromkeys(problems))
    return groups


def supported_jobs(
    opened: Sequence[OpenedModel],
    names: Sequence[str],
    options: TaskOptions,
    *,
    note: Callable[[str], None] = lambda message: None,
) -> list[JobGroup]:
    """Return each model with the tasks of these names, or else with those default tasks that it supports.

    A named task, or an option of a task, that only some of the models support applies to these, with a note
    about each of the others. Raises InputError for models without a supported task, and for named tasks and
    options that no model supports, also those of default tasks that are therefore not evaluated.
    """
    tasks = [task for name in names or DEFAULT_TASKS for task in open_tasks(name, options)]
    supported: list[list[Task]] = [[] for _ in opened]
    notes: list[str] = []
    problems: list[Problem] = []
    for task in tasks:
        refusals: list[Problem] = []
        for each, of_model in zip(opened, supported, strict=True):
            variant, omitted = _supported_variant(task, each.model, tasks)
            of_model += [variant] if variant else []
            if variant is not task and (omitted or names):
                reason = task.refuses(each.model)
                refusals.append(Problem(each.model.name, None, reason))
                without = omitted or f"--task {task.name}"
                notes.append(
                    f"{each.model.name}: {reason.partition(';')[0]}; evaluated without {without}"
                )
        problems += refusals if len(refusals) == len(opened) else []
    unsuitable = [
        each.model for each, of_model in zip(opened, supported, strict=True) if not of_model
    ]
    problems += _unsupported_problems(unsuitable, tasks) or _unused_options(tasks, supported)
    if problems:
        raise InputError(dict.fromkeys(problems))
    for message in dict.fromkeys(notes):
        note(message)
    return [([each], of_model) for each, of_model in zip(opened, supported, strict=True)]


def _supported_variant(task: Task, model: Model, tasks: Sequence[Task]) -> tuple[Task | None, str]:
    """Return the task without the fewest options that the model refuses, if any, and what is omitted.

    There is none if the model supports another one of the tasks with other values of these options, or if it
    refuses the task as a whole, of which nothing is omitted.
    """
    reason = task.refuses(model)
    if not reason:
        return task, ""
    defaults = _other_defaults(task)
    for n_omitted in range(1, len(defaults) + 1):
        for omitted in combinations(defaults, n_omitted):
            variant = replace(cast(Any, task), **{name: defaults[name] for name in omitted})
            if variant.refuses(model):
                continue
            values = {name: getattr(task, name) for name in omitted}
            others = (other for other in tasks if other is not task and type(other) is type(task))
            if any(
                replace(cast(Any, other), **values) == task and not other.refuses(model)
                for other in others
            ):
                flags = (f"{flag_of(name)} {value}" for name, value in values.items())
                return None, " and ".join(flags)
            return variant, UnsupportedOptionError(model.name, reason, *omitted).flags
    return None, ""


def _other_defaults(task: Any) -> dict[str, Any]:
    """Return the default of each option of a task with another value, except the history, its condition."""
    defaults = {each.name: each.default for each in fields(task)} if is_dataclass(task) else {}
    return {
        name: defaults[name]
        for name in task_option_names(task.name)
        if name in defaults and name != "history" and getattr(task, name) != defaults[name]
    }


def _unused_options(tasks: Sequence[Task], supported: Sequence[Sequence[Task]]) -> list[Problem]:
    """Return the given options that none of the supported tasks has."""
    evaluated = {task.name for of_model in supported for task in of_model}
    used = {name for task in evaluated for name in task_option_names(task)}
    return [
        Problem(flag_of(option), None, f"is an option of {task.name}, which no model supports")
        for task in tasks
        for option in _other_defaults(task)
        if option not in used
    ]


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
