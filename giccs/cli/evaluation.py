"""giccs-eval: models on tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click

from bws.command import Console, command
from giccs.cli.below import CommandWithBelow
from giccs.cli.data import DATA_HELP
from giccs.tasks import TASKS, TaskOptions, open_tasks

if TYPE_CHECKING:
    from giccs.benchmark import Benchmark
    from giccs.metrics import Estimate
    from giccs.models import ModelOptions
    from giccs.results import Result
    from giccs.run import Job

__all__ = ["evaluate"]


def _batch_size(ctx: click.Context, parameter: click.Parameter, value: str) -> int | None:
    if value == "auto":
        return None
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter(f"{value!r} is not allowed; auto or a number from 1 is")
    return int(value)


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
    """,
)
@click.argument("models", nargs=-1, metavar="MODEL...", callback=_models)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    type=click.Choice(list(TASKS)),
    help="What to ask; may be given several times.  [default: all that the model can do]",
)
@click.option(
    "--recipe",
    metavar="FILE",
    help="Models with their revisions, tasks and data from a file; MODEL... then picks from its models.",
)
@click.option(
    "--data",
    metavar="DATA",
    help=f"{DATA_HELP}  [default: giccs-sample, or the recipe's]",
)
@click.option(
    "--judgments",
    metavar="FILE",
    help="The judgments behind the scores: shows the noise ceiling.  [default: those of giccs-sample]",
)
@click.option(
    "--history",
    type=click.Choice(["without", "with", "both"]),
    help="Show the turns before the last one?  [default: without; multiple-choice-sts both]",
)
@click.option(
    "--template",
    default="figure2-de-1",
    show_default=True,
    metavar="NAME|FILE",
    help="Prompt of a question: figure2-de-1, figure2-en-1, or a file of your own.",
)
@click.option(
    "--answer",
    type=click.Choice(["sentence", "letter"]),
    default="sentence",
    show_default=True,
    help="What is to follow the prompt of a question.",
)
@click.option(
    "--permutations",
    type=click.IntRange(1, 26),
    default=1,
    show_default=True,
    metavar="N",
    help="Average over N cyclic orders of the options.",
)
@click.option("--chat-template", is_flag=True, help="Ask in the model's own chat template.")
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
@click.option(
    "--batch-size",
    default="auto",
    show_default=True,
    callback=_batch_size,
    metavar="auto|N",
    help="Texts at a time; auto grows until memory or gain ends.",
)
@click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda[:N]",
    help="Where the model runs; auto takes a GPU where there is one.",
)
@click.option(
    "--dtype",
    type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
    default="auto",
    show_default=True,
    help="Type of the weights; auto as saved.",
)
@click.option("--revision", metavar="REV", help="Branch, tag or commit of a hub id.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of chance, of the intervals and of the order of options.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N dialogues.")
@click.option("--offline", is_flag=True, help="Never ask the hub; use its local cache.")
@click.option("--trust-remote-code", is_flag=True, help="Run code that the model brings.")
def evaluate(
    console: Console,
    models: tuple[str, ...],
    tasks: tuple[str, ...],
    recipe: str | None,
    data: str | None,
    judgments: str | None,
    history: str | None,
    template: str,
    answer: str,
    permutations: int,
    chat_template: bool,
    folder: str,
    force: bool,
    limit: int | None,
    seed: int,
    **model_options: Any,
) -> None:
    """Score language models on a conversational STS benchmark.

    MODEL is a hub id, a folder or a GGUF file, or KIND:NAME with KIND one of encoder, causal, package,
    baseline (baseline:chance, baseline:char-ngram, package:minilm, package:use-multilingual,
    package:smollm2). Encoders compare pairs of utterances; causal models answer multiple-choice
    questions, with and without the dialogue's history.
    """  # fmt: skip
    if model_options["offline"]:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read by every library of the hub when it is imported
    from giccs.benchmark import SAMPLE, read_benchmark
    from giccs.models import ModelOptions
    from giccs.recipe import read_recipe
    from giccs.report import report as tables
    from giccs.results import Store
    from giccs.run import follow, run

    _check_call(models, recipe, history, model_options["revision"])
    followed = read_recipe(recipe).only(models, tasks) if recipe else None
    store = Store(folder)
    benchmark = read_benchmark(data or (followed.data if followed else SAMPLE))
    console.warn(benchmark.warnings)
    benchmark = benchmark.first(limit) if limit else benchmark
    options = ModelOptions(seed=seed, **model_options)
    how = TaskOptions(history, seed, template, answer, permutations, chat_template)
    jobs = follow(followed, options, how) if followed else _jobs(models, tasks, options, how)
    ceiling = _ceiling(jobs, benchmark, judgments)
    results: list[Result] = []
    try:
        for opened, asked in jobs:
            for result in run(
                opened,
                asked,
                benchmark,
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
    console.note(f"\n{benchmark.name}: {len(benchmark.items)} items; results in {folder}")


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
    asked = [task for name in tasks or TASKS for task in open_tasks(name, how)]
    if tasks:
        must_do(opened, asked)
    return [(opened, asked)]


def _ceiling(
    jobs: Sequence[Job], benchmark: Benchmark, judgments: str | None
) -> Mapping[str, Estimate] | None:
    """Return the noise ceiling where pairs are compared and the judgments are known."""
    from giccs.ceiling import judgments_behind, noise_ceiling

    compares = any(
        task.name == "pairwise-sts" and not task.refuses(model)
        for models, tasks in jobs
        for model in models
        for task in tasks
    )
    found = judgments_behind(benchmark, judgments) if compares or judgments else None
    return noise_ceiling(found, benchmark) if found else None
