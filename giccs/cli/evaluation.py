"""giccs eval: evaluate models on tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from bws.base.commands import Console, command
from bws.base.options import (
    INPUT,
    MAX_COUNT,
    MODEL,
    UPDATED,
    Choice,
    RegisteredName,
    click_option,
    click_options,
    declarations,
)
from bws.base.problems import InputError, Problem
from bws.base.terminal import echo
from bws.cli.options import (
    allow_copies_option,
    check_requires_judgments,
    control_option,
    merge_variants_option,
    report_judgments,
)
from giccs.benchmark.items import TARGETS
from giccs.cli.options import (
    DATA_HELP,
    absolute_option,
    cluster_option,
    fail_below_option,
    finish_checks,
    junit_option,
    set_offline_mode,
)
from giccs.cli.remarks import Remarks
from giccs.evaluation.engines import ENGINES
from giccs.models import ModelOptions, check_server_options
from giccs.tasks import (
    DEFAULT_TASKS,
    Data,
    Task,
    TaskOptions,
    result_kind,
    task_names,
    task_option_names,
)  # fmt: skip

if TYPE_CHECKING:
    from bws.stats.estimates import Estimate
    from giccs.benchmark import Benchmark
    from giccs.evaluation.engines.local import EvaluationJob
    from giccs.evaluation.recipe import Run
    from giccs.evaluation.run import JobGroup
    from giccs.measures.results import Limits, Result, Store

    PlannedJobs = tuple[str, list[JobGroup]]
    """Name of data, empty for each task's default, and the jobs on it."""

EXPORTS = {
    "export-lm-eval": "giccs.cli.exporting:export_lm_eval",
    "export-mteb": "giccs.cli.exporting:export_mteb",
}
TASK_OPTIONS = tuple(name for name in declarations(TaskOptions) if name != "seed")


def _check_models(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    for name in value:
        if name in EXPORTS:
            raise click.BadParameter(
                f"{name} is a subcommand and must come first: giccs eval {name} ..."
            )
    return value


@command(
    "giccs eval",
    sections={
        "tasks": "Tasks and data",
        "history": "Task options",
        "folder": "Results and execution",
        "batch_size": "Local models",
        "base_url": "Models on a server",
    },
    subcommands=EXPORTS,
    example="""
    giccs eval baseline:char-ngram package:minilm
    giccs eval sentence-transformers/distiluse-base-multilingual-cased-v2 --data sasaadi/GiCCS
    giccs eval ai-forever/mGPT --data sasaadi/GiCCS
    giccs eval ./my-model --data benchmark.jsonl --history both --judgments judgments.csv -o results
    giccs eval --recipe giccs-paper
    giccs eval --sweep sweep.toml --engine ray --address auto --batch-size 64
    giccs eval google/flan-t5-base --task csts-prompt --instruction long --shots 2 --data c-sts
    giccs eval completions:Qwen/Qwen3-32B --base-url http://127.0.0.1:8000/v1 --data sasaadi/GiCCS
    giccs eval static:glove.6B.50d.txt+abtt package:minilm --task evalrank-sentence --data sent_evalrank
    """,
    interrupt_message="finished results are in {folder}; repeat the command to compute the others",
)
@click.argument("models", nargs=-1, type=MODEL, metavar="MODEL...", callback=_check_models)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    type=RegisteredName(task_names),
    help="Task to evaluate. Can be repeated.  [default: those supported by the model among "
    f"{' and '.join(DEFAULT_TASKS)}]",
)
@click.option(
    "--recipe",
    type=INPUT,
    metavar="RECIPE",
    help="Models with their revisions, tasks and data from a file or a recipe of the package "
    "(giccs data list); MODEL... selects some of its models.",
)
@click.option(
    "--sweep",
    type=INPUT,
    metavar="FILE",
    help="Models, tasks, data and options from a file, in every supported combination.",
)
@click.option(
    "--data",
    type=INPUT,
    metavar="DATA",
    help=f"{DATA_HELP} For csts*, a folder or file of C-STS; for others, rated pairs or EvalRank's "
    "folders.  [default: the task's sample, or that of the recipe]",
)
@click.option(
    "--target",
    type=Choice(TARGETS),
    default="score",
    show_default=True,
    help="Scores of a benchmark of dialogues that predictions are compared with: those within dialogues, or "
    "absolute ones, on one scale for all dialogues.",
)
@click.option(
    "--judgments",
    type=INPUT,
    metavar="FILE",
    help="The judgments behind the scores; adds the noise ceiling.  [default: those of the sample]",
)
@absolute_option
@merge_variants_option
@control_option
@allow_copies_option
@cluster_option
@click_option(TaskOptions, "seed")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_COUNT),
    metavar="N",
    help="Use only the first N dialogues, sentence pairs or similar units.",
)
@click_options(TaskOptions, *TASK_OPTIONS)
@click.option(
    "-o",
    "--output",
    "folder",
    default="results",
    show_default=True,
    type=UPDATED,
    metavar="FOLDER",
    help="Results directory; existing results are reused.",
)
@click.option("--force", is_flag=True, help="Compute existing results again.")
@click.option(
    "--engine",
    type=Choice(ENGINES),
    default="local",
    show_default=True,
    help="Execution engine: sequentially in this process, or concurrently on a Ray cluster.",
)
@click.option(
    "--address",
    metavar="ADDRESS",
    help="Address of the Ray cluster; auto finds a running one.  [default: a local cluster]",
)
@fail_below_option
@junit_option
@click_options(ModelOptions)
def evaluate(
    console: Console,
    models: tuple[str, ...],
    tasks: tuple[str, ...],
    recipe: str | None,
    sweep: str | None,
    data: str | None,
    target: str,
    judgments: str | None,
    absolute: str | None,
    merge_variants: bool,
    control: Sequence[str],
    allow_copies: bool,
    cluster: str,
    folder: str,
    force: bool,
    engine: str,
    address: str | None,
    limit: int | None,
    seed: int,
    thresholds: Mapping[str, float],
    junit: str | None,
    **options: Any,
) -> None:
    """Evaluate language models on conversational STS, conditional STS and ranking.

    MODEL is a hub id, a folder or a GGUF file, or KIND:NAME with KIND one of encoder, causal, seq2seq,
    static, chat, completions, embeddings, package, baseline (baseline:chance, baseline:char-ngram,
    package:minilm, package:use-multilingual, package:glove-50d, package:smollm2, package:gemma3-270m), or
    python:MODULE:ATTRIBUTE, an object or a function.
    NAME+STEP transforms the vectors of a model: whitening[:K], abtt[:K], pcr[:K], flow, first-last, words.
    Encoders compare pairs of utterances. Causal models answer multiple-choice questions, with and without the
    dialogue's history. A model trained by giccs csts train is a folder for --task csts, with the inputs of
    its training. """  # fmt: skip
    set_offline_mode(options["offline"])
    from giccs.evaluation.engines import EngineError
    from giccs.measures.absolute_ceiling import limits_document
    from giccs.measures.results import Store
    from giccs.report import report as tables
    from giccs.report.checks import threshold_checks
    from giccs.report.clustering import over_clusters, with_predictions_of_dialogues

    if address and engine != "ray":
        raise click.UsageError("--address requires --engine ray")
    if junit and not thresholds:
        raise click.UsageError("--junit requires --fail-below")
    if absolute and not judgments:
        raise click.UsageError("--absolute requires --judgments")
    if judgments and target != "score" and not absolute:
        raise click.UsageError("--judgments requires --absolute with --target absolute_score")
    if options["budget"] is not None and engine != "local":
        raise click.UsageError("--budget requires --engine local")
    check_requires_judgments(
        judgments, merge_variants=merge_variants, control=control, allow_copies=allow_copies
    )
    _check_call(models, tasks, recipe, sweep, data, options)
    if not recipe and not sweep:
        _check_task_options(tasks or DEFAULT_TASKS)
    store = Store(folder)
    task_options = TaskOptions(seed=seed, **_select_options(TaskOptions, options))
    model_options = ModelOptions(seed=seed, **_select_options(ModelOptions, options))
    library = _DataCache(console, limit, target)
    plan = _plan_jobs(console, recipe, sweep, data, models, tasks, model_options, task_options)
    check_server_options(
        [each.model for _, jobs in plan for opened, _ in jobs for each in opened], model_options
    )
    asks = _asks(plan, library)
    reading = {"merge_variants": merge_variants, "control": control, "allow_copies": allow_copies}
    ceiling, limits = _ceiling(console, store, asks, library, judgments, absolute, reading)
    results: dict[int, Result] = {}
    submissions: list[str] = []
    remarks = Remarks(console)
    try:
        with redirect_stdout(sys.stderr):  # Ray prints there the status of its nodes.
            for index, result in _run_jobs(console, asks, store, force, engine, address):
                results[index] = result
                submissions += _write_submission(console, store, result)
                remarks.print_for(result)
    except EngineError as error:
        raise click.ClickException(str(error)) from None
    finally:  # Finished results are stored and shown even if others failed.
        finished = over_clusters(
            with_predictions_of_dialogues([results[index] for index in sorted(results)], store),
            cluster,
        )
        if finished and not console.as_json:
            echo(tables(finished, "table", ceiling, limits=limits))
    try:
        checks = [*threshold_checks(finished, thresholds)]
    except ValueError as error:
        raise click.UsageError(f"--fail-below: {error}") from None
    if console.as_json:
        document: dict[str, Any] = {"results": [result.document() for result in finished]}
        if checks:
            document["checks"] = [check.document() for check in checks]
        if submissions:
            document["submissions"] = submissions
        if ceiling:
            document["ceiling"] = {name: estimate.document() for name, estimate in ceiling.items()}
        document |= limits_document(limits)
        console.answer("", document)
    for name, size_text in library.sizes():
        console.note(f"\n{name}: {size_text}; results in {folder}")
    finish_checks(console, checks, junit)


def _write_submission(console: Console, store: Store, result: Result) -> list[str]:
    """Write the predictions of a result with hidden labels; return the file, or None."""
    from giccs.measures.submission import write_submission

    try:
        path = write_submission(store, result)
    except InputError as error:
        console.warn(error.problems)
        return []
    if path is None:
        return []
    console.note(f"predictions for the server of C-STS: {path}")
    return [str(path)]


def _select_options(kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are fields of `kind`."""
    return {field.name: options[field.name] for field in fields(kind) if field.name in options}


def _check_call(
    models: Sequence[str],
    tasks: Sequence[str],
    recipe: str | None,
    sweep: str | None,
    data: str | None,
    options: Mapping[str, Any],
) -> None:
    if not models and not recipe and not sweep:
        raise click.UsageError("Missing argument 'MODEL...', or a --recipe or --sweep with models.")
    values = {"--history": options["history"], "--revision": options["revision"]}
    if sweep:
        values |= {"MODEL...": models, "--task": tasks, "--data": data, "--recipe": recipe}
    if (recipe or sweep) and (option := next((name for name in values if values[name]), None)):
        file = "--sweep" if sweep else "--recipe"
        raise click.UsageError(f"{option} is set by the {file[2:]}; omit it with {file}")


def _check_task_options(tasks: Sequence[str]) -> None:
    """Raise a usage error for a given option that no task uses."""
    context = click.get_current_context()
    accepted = {name for task in tasks for name in task_option_names(task)}
    for option in context.command.params:
        is_given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if is_given and option.name in TASK_OPTIONS and option.name not in accepted:
            accepting_tasks = [
                task for task in task_names() if option.name in task_option_names(task)
            ]
            raise click.UsageError(
                f"{option.opts[0]} is for {', '.join(accepting_tasks)}, not for {', '.join(tasks)}"
            )


def _plan_jobs(
    console: Console,
    recipe: str | None,
    sweep: str | None,
    data: str | None,
    models: Sequence[str],
    tasks: Sequence[str],
    options: ModelOptions,
    task_options: TaskOptions,
) -> list[PlannedJobs]:
    """Return the jobs of the call, of its recipe, or of the recipes of its sweep."""
    if not recipe and not sweep:
        return [(data or "", _jobs(console, models, tasks, options, task_options))]
    from giccs.evaluation.recipe import data_in, read_recipe
    from giccs.evaluation.run import open_recipe
    from giccs.evaluation.sweep import read_sweep
    from giccs.models import open_base

    recipes = read_sweep(sweep) if sweep else [read_recipe(str(recipe)).select(models, tasks)]
    _note_other_runs(console, recipe, [run for recipe_file in recipes for run in recipe_file.runs])
    opener = cache(open_base)  # A model is opened and loaded once.
    plan: list[PlannedJobs] = []
    problems: list[Problem] = []
    impossible: list[Problem] = []
    for recipe_file in recipes:
        skipped = impossible if sweep or recipe_file.skip_missing else None
        for folder, part in recipe_file.by_folder().items():
            data_name = data_in(data or recipe_file.data, folder)
            if recipe_file.skip_missing and not Path(data_name).exists():
                impossible.append(Problem(data_name, None, "no such file or folder"))
                continue
            try:
                jobs = open_recipe(part, options, task_options, opener=opener, unsupported=skipped)
                plan.append((data_name, jobs))
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(dict.fromkeys(problems))
    if impossible and not any(jobs for _, jobs in plan):
        raise InputError(dict.fromkeys(impossible))
    for problem in dict.fromkeys(impossible):
        console.note(f"skipped: {problem}")
    return plan


def _note_other_runs(console: Console, recipe: str | None, runs: Sequence[Run]) -> None:
    """Report the runs of a recipe that are executed by other commands, or not at all."""
    from giccs.evaluation.recipe import ACROSS_MODELS, TRAINING

    if count := sum(run.task == TRAINING for run in runs):
        console.note(
            f"{count} runs of {recipe} are trainings: giccs csts train DATA --recipe {recipe}"
        )
    if any(run.task == ACROSS_MODELS for run in runs):
        console.note(f"numbers over models: giccs report RESULTS_FOLDER --against {recipe}")
    for name, reason in dict.fromkeys((run.model, run.skip) for run in runs if run.skip):
        console.note(f"skipped: {name}: {reason}")


def _asks(plan: Sequence[PlannedJobs], library: _DataCache) -> list[EvaluationJob]:
    """Return the jobs with different results."""
    from giccs.evaluation.engines.local import EvaluationJob, distinct_jobs

    tasks_with_data = [
        (opened, task, library.read_for(task, data_name))
        for data_name, jobs in plan
        for opened, tasks in jobs
        for task in tasks
    ]
    return distinct_jobs(
        EvaluationJob(model, task, task_data, options)
        for opened, task, task_data in tasks_with_data
        for model, options in opened
    )


def _run_jobs(
    console: Console,
    asks: list[EvaluationJob],
    store: Store,
    force: bool,
    engine: str,
    address: str | None,
) -> Iterator[tuple[int, Result]]:
    """Return (index, result) of each job, using the engine."""
    options: dict[str, Any] = {"force": force, "note": console.note, "progress": console.progress}
    if engine == "ray":
        from giccs.evaluation.engines.cluster import run_on_ray

        return run_on_ray(asks, store, address=address, **options)
    from giccs.evaluation.engines.local import run_locally

    return run_locally(_release_jobs(asks), store, **options)


def _release_jobs(asks: list[EvaluationJob]) -> Iterator[EvaluationJob]:
    """Release each job, so that the memory of a model is freed after its last job."""
    while asks:
        yield asks.pop(0)


def _jobs(
    console: Console,
    models: Sequence[str],
    tasks: Sequence[str],
    options: ModelOptions,
    task_options: TaskOptions,
) -> list[JobGroup]:
    """Return the models with their tasks."""
    from giccs.evaluation.run import open_each_prompt, supported_jobs

    opened = open_each_prompt(models, options, note=console.note)
    return supported_jobs(opened, tasks, task_options, note=console.note)


class _DataCache:
    """The data of all tasks, each read once."""

    def __init__(self, console: Console, limit: int | None, target: str) -> None:
        self._console, self.limit, self._target = console, limit, target
        self.published: dict[str, Benchmark] = {}
        """Name of a benchmark with absolute scores as scores -> that with the published ones."""
        self._read: dict[Any, Data] = {}
        self._warned: set[Problem] = set()

    def read_for(self, task: Task, data_name: str) -> Data:
        """Return the data of a task: the named data, or the task's default."""
        name = data_name or task.default_data
        if not name:
            raise click.UsageError(
                f"--task {task.name} has no default data; specify them with --data"
            )
        if (task.read, name) not in self._read:
            data: Data = task.read(name)
            self._console.warn(data.warnings)
            data = data.first(self.limit) if self.limit else data
            self._read[task.read, name] = self._with_target(data)
        self._warn_of_template(task, self._read[task.read, name])
        return self._read[task.read, name]

    def _with_target(self, data: Any) -> Data:
        from giccs.benchmark import Benchmark

        if isinstance(data, Benchmark):
            benchmark = data.with_target(self._target)
            self.published[benchmark.name] = data
            return benchmark
        if self._target != "score":
            raise click.UsageError("--target requires a benchmark of dialogues")
        checked: Data = data
        return checked

    def _warn_of_template(self, task: Task, data: Any) -> None:
        """Warn once of a prompt template in another language than the data."""
        from giccs.tasks.multiple_choice import MultipleChoice

        warnings = task.warnings_for(data) if isinstance(task, MultipleChoice) else []
        self._console.warn([problem for problem in warnings if problem not in self._warned])
        self._warned.update(warnings)

    def sizes(self) -> list[tuple[str, str]]:
        """Return the name and size of each data set."""
        return [(data.name, data.described()) for data in self._read.values()]


def _ceiling(
    console: Console,
    store: Store,
    asks: Sequence[EvaluationJob],
    library: _DataCache,
    judgments: str | None,
    absolute: str | None,
    reading: Mapping[str, Any],
) -> tuple[Mapping[str, Estimate] | None, Limits]:
    """Return the noise ceiling of the first data for pairwise tasks with known judgments, and its limits."""
    from giccs.benchmark import Benchmark
    from giccs.measures.absolute_ceiling import (
        cached_limits,
        load_anchors,
        stored_limits,
        with_within_ceiling,
    )  # fmt: skip
    from giccs.measures.ceiling import cached_ceiling, load_judgments, read_ceiling

    for ask in asks:
        data: Any = ask.data
        if isinstance(data, Benchmark) and (result_kind(ask.task.name).has_ceiling or judgments):
            published = library.published[data.name]
            known_judgments = load_judgments(published, judgments, **reading)
            if known_judgments and judgments:
                report_judgments(console, known_judgments, judgments)
            limits = stored_limits(store.folder, [data.fingerprint], console.note)
            has_all = not library.limit and (absolute or data is not published)
            anchors = load_anchors(published, absolute) if has_all else None
            if known_judgments and anchors:
                limits = cached_limits(
                    store.folder, known_judgments, anchors, published, console.note
                )
            if data is not published:
                return None, limits
            if known_judgments:
                ceiling = cached_ceiling(store.folder, known_judgments, data, console.note)
                return with_within_ceiling(ceiling, limits), limits
            stored = read_ceiling(store.folder, data.fingerprint, None, console.note)
            return with_within_ceiling(stored, limits), limits
    return None, {}
