"""giccs-eval export-lm-eval and export-mteb: the benchmark as a task of other tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bws.command import Console, command
from giccs.cli.asking import question_options
from giccs.cli.data import DATA_HELP

__all__ = ["export_lm_eval", "export_mteb"]


def _shared(function: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        click.option(
            "--data", default="giccs-sample", show_default=True, metavar="DATA",
            help=DATA_HELP,
        ),
        click.option(
            "--history", type=click.Choice(["without", "with", "both"]), default="both",
            show_default=True, help="Show the turns before the last one?",
        ),
        click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N dialogues."),
        click.option(
            "-o", "--output", "folder", required=True, metavar="FOLDER", help="Where to write."
        ),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@command(
    "giccs-eval export-lm-eval",
    example="""
    giccs-eval export-lm-eval -o exported
    lm_eval --include_path exported --tasks giccs_sample_multiple_choice_with_history ...
    """,
)
@_shared
@question_options
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of the order of options.",
)
def export_lm_eval(
    console: Console,
    data: str,
    history: str,
    limit: int | None,
    folder: str,
    template: str,
    answer: str,
    seed: int,
) -> None:
    """Write the multiple-choice questions as a task of lm-evaluation-harness."""  # fmt: skip
    from giccs.benchmark import read_benchmark
    from giccs.interop.lm_eval import export_task
    from giccs.tasks import TaskOptions
    from giccs.tasks.multiple_choice import open_tasks

    benchmark = read_benchmark(data)
    console.warn(benchmark.warnings)
    (task,) = open_tasks(TaskOptions(history, seed, template, answer))
    _written(console, export_task(benchmark.first(limit) if limit else benchmark, task, folder))


@command(
    "giccs-eval export-mteb",
    example="""
    giccs-eval export-mteb -o exported
    giccs-eval export-mteb --data sasaadi/GiCCS --history without -o exported
    """,
)
@_shared
@click.option(
    "--language",
    default="deu-Latn",
    show_default=True,
    metavar="CODE",
    help="Language and script of the data, as mteb writes them.",
)
def export_mteb(
    console: Console, data: str, history: str, limit: int | None, folder: str, language: str
) -> None:
    """Write the pairs as an STS task of mteb."""  # fmt: skip
    from giccs.benchmark import read_benchmark
    from giccs.interop.mteb import export_task

    benchmark = read_benchmark(data)
    console.warn(benchmark.warnings)
    histories = ["without", "with"] if history == "both" else [history]
    kept = benchmark.first(limit) if limit else benchmark
    _written(console, export_task(kept, histories, folder, language))


def _written(console: Console, paths: list[Any]) -> None:
    files = [str(path) for path in paths]
    console.answer("\n".join(files), {"files": files})
