"""giccs-eval: models on tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import click

from bws.command import Console, command
from giccs.cli.asking import task_options
from giccs.cli.below import CommandWithBelow
from giccs.cli.data import DATA_HELP
from giccs.cli.opening import model_options, offline_first
from giccs.tasks import BY_DEFAULT, TASKS, Data, Task, TaskOptions, open_tasks

if TYPE_CHECKING:
    from giccs.metrics import Estimate
    from giccs.models import ModelOptions
    from giccs.results import Result
    from giccs.run import Job

__all__ = ["evaluate"]


def _models(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    for name in value:
        if name in _Evaluate.below:
            raise click.BadParameter(f"{name} is a command and comes first: giccs-eval {name} ...")
    return value


class _Evaluate(CommandWithBelow):
    below: ClassVar = {
        "export-lm-eval": "giccs.interop.cli:export_lm_eval",
        "export-mteb": "giccs.interop.cli:export_mteb",
    }


@command(
    "giccs-eval",
    cls=_Evaluate,
    example="""
    giccs-eval baseline:char-ngram package:minilm
    giccs-eval sentence-transformers/distiluse-base-multilingual-cased-v2 --data sasaadi/GiCCS
    giccs-eval ai-forever/mGPT --data sasaadi/GiCCS
    giccs-eval ./my-model --data benchmark.jsonl --history both --judgments judgments.csv -o results
    giccs-eval --recipe recipes/giccs-paper.toml
    giccs-eval google/flan-t5-base --task csts-prompt --instruction long --shots 2 --data c-sts
    giccs-eval static:glove.6B.50d.txt+abtt package:minilm --task evalrank-sentence --data sent_evalrank
    """,
)
@click.argument("models", nargs=-1, metavar="MODEL...", callback=_models)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    type=click.Choice(list(TASKS)),
    help="What to ask; may be given several times.  [default: what the model can do of "
    f"{' and '.join(BY_DEFAULT)}]",
)
@click.option(
    "--recipe",
    metavar="FILE",
    help="Models with their revisions, tasks and data from a file; MODEL... then picks from its models.",
)
@click.option(
    "--data",
    metavar="DATA",
    help=f"{DATA_HELP} For csts* a folder or file of C-STS, for the others a folder of EvalRank's shape.  "
    "[default: the task's sample, or the recipe's]",
)
@click.option(
    "--judgments",
    metavar="FILE",
    help="The judgments behind the scores: shows the noise ceiling.  [default: those of giccs-sample]",
)
@task_options
@click.option(
    "-o",
    "--output",
    "folder",
    default="results",
    show_default=True,
    metavar="FOLDER",
    help="Where results are kept; what stands there is not computed again.",
)
@click.option("--force", is_flag=True, help="Compute again what stands in the folder.")
@model_options
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of chance, of the intervals, of the order of options and of what is drawn.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Only the first N dialogues, sentence pairs or the like.",
)
def evaluate(
    console: Console,
    models: tuple[str, ...],
    tasks: tuple[str, ...],
    recipe: str | None,
    data: str | None,
    judgments: str | None,
    folder: str,
    force: bool,
    limit: int | None,
    seed: int,
    **options: Any,
) -> None:
    """Score language models: on conversational STS, on STS under a condition, by ranking.

    MODEL is a hub id, a folder or a GGUF file, or KIND:NAME with KIND one of encoder, causal, seq2seq,
    static, chat, package, baseline (baseline:chance, baseline:char-ngram, package:minilm,
    package:use-multilingual, package:smollm2). NAME+STEP changes the vectors of a model: whitening[:K],
    abtt[:K], pcr[:K], flow, first-last, words. Encoders compare pairs of utterances; causal models answer
    multiple-choice questions, with and without the dialogue's history.
    """  # fmt: skip
    offline_first(options["offline"])
    from giccs.models import ModelOptions
    from giccs.recipe import TRAINING, read_recipe
    from giccs.report import report as tables
    from giccs.results import Store
    from giccs.run import follow, run

    _check_call(models, recipe, options["history"], options["revision"])
    followed = read_recipe(recipe).only(models, tasks) if recipe else None
    store = Store(folder)
    how = TaskOptions(seed=seed, **_of(TaskOptions, options))
    opening = ModelOptions(seed=seed, **_of(ModelOptions, options))
    if followed and (count := sum(run.task == TRAINING for run in followed.runs)):
        console.note(
            f"{count} runs of {recipe} are trainings: giccs-csts train DATA --recipe {recipe}"
        )
    jobs = follow(followed, opening, how) if followed else _jobs(models, tasks, opening, how)
    library = _Library(console, data or (followed.data if followed else None), limit)
    read = [(opened, task, library.of(task)) for opened, asked in jobs for task in asked]
    ceiling = _ceiling(read, judgments)
    results: list[Result] = []
    try:
        for opened, task, its_data in read:
            for result in run(
                opened,
                [task],
                its_data,
                store,
                force=force,
                note=console.note,
                progress=console.progress,
            ):
                results.append(result)
    finally:  # what was done is kept and shown, whatever became of the rest
        if results and not console.as_json:
            click.echo(tables(results, "table", ceiling))
    if console.as_json:
        document: dict[str, Any] = {"results": [result.document() for result in results]}
        if ceiling:
            document["ceiling"] = {name: one.document() for name, one in ceiling.items()}
        console.answer("", document)
    for name, described in library.read():
        console.note(f"\n{name}: {described}; results in {folder}")


def _of(kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options that `kind` has a field for."""
    return {one.name: options[one.name] for one in fields(kind) if one.name in options}


def _check_call(
    models: Sequence[str], recipe: str | None, history: str | None, revision: str | None
) -> None:
    if not models and not recipe:
        raise click.UsageError("Missing argument 'MODEL...', or a --recipe that names models.")
    if recipe and (history or revision):
        option = "--history" if history else "--revision"
        raise click.UsageError(f"{option} is for the recipe to say; leave it out beside --recipe")


def _jobs(
    models: Sequence[str], tasks: Sequence[str], options: ModelOptions, how: TaskOptions
) -> list[Job]:
    """Return all models with all tasks, or with those asked for, which each model must be able to do."""
    from giccs.run import must_do, open_models

    opened = open_models(models, options)
    asked = [task for name in tasks or BY_DEFAULT for task in open_tasks(name, how)]
    if tasks:
        must_do(opened, asked)
    return [(opened, asked)]


class _Library:
    """The data of every task, each read once."""

    def __init__(self, console: Console, named: str | None, limit: int | None) -> None:
        self._console, self._named, self._limit = console, named, limit
        self._read: dict[Any, Data] = {}

    def of(self, task: Task) -> Data:
        """Return what a task is asked on: what the user named, or the task's own."""
        name = self._named or task.default_data
        if not name:
            raise click.UsageError(
                f"--task {task.name} has no data of its own; name some with --data"
            )
        if (task.read, name) not in self._read:
            data: Data = task.read(name)
            self._console.warn(data.warnings)
            self._read[task.read, name] = data.first(self._limit) if self._limit else data
        return self._read[task.read, name]

    def read(self) -> list[tuple[str, str]]:
        """Return the name of each data set, and how much it holds."""
        return [(data.name, data.described()) for data in self._read.values()]


def _ceiling(
    read: Sequence[tuple[Sequence[Any], Task, Any]], judgments: str | None
) -> Mapping[str, Estimate] | None:
    """Return the noise ceiling where pairs are compared and the judgments are known."""
    from giccs.benchmark import Benchmark
    from giccs.ceiling import judgments_behind, noise_ceiling

    for models, task, data in read:
        compares = task.name == "pairwise-sts" and not all(map(task.refuses, models))
        if isinstance(data, Benchmark) and (compares or judgments):
            found = judgments_behind(data, judgments)
            return noise_ceiling(found, data) if found else None
    return None
