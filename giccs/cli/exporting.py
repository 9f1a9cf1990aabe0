"""giccs eval export-lm-eval and export-mteb: export the benchmark as a task of other tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, MAX_COUNT, OUTPUT_FOLDER, click_option, click_options
from bws.base.problems import InputError, Problem
from giccs.cli.options import DATA_HELP, language_option
from giccs.tasks import TaskOptions

if TYPE_CHECKING:
    from giccs.benchmark import Benchmark
    from giccs.evaluation.interop.metadata import Provenance


def _export_options(function: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        click.option(
            "--data", default="giccs-sample", show_default=True, type=INPUT, metavar="DATA",
            help=DATA_HELP,
        ),
        click_option(
            TaskOptions, "history", default="both", show_default=True,
            help="Show the turns before the last one.",
        ),
        click.option(
            "--limit", type=click.IntRange(1, MAX_COUNT), metavar="N",
            help="Use only the first N dialogues.",
        ),
        click.option(
            "--config", type=INPUT, metavar="card.toml",
            help="card.toml with licence, annotators and language, if the data do not state them; as for "
                 "giccs card.",
        ),
        click.option(
            "--private", is_flag=True,
            help="Also export data whose licence permits no derivatives, for files that you do not share.",
        ),
        click.option(
            "-o", "--output", "folder", required=True,
            type=OUTPUT_FOLDER, metavar="FOLDER", help="Output folder."
        ),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


@command(
    "giccs eval export-lm-eval",
    example="""
    giccs eval export-lm-eval -o exported
    lm_eval --include_path exported --tasks giccs_sample_multiple_choice_with_history ...
    """,
)
@_export_options
@click_options(TaskOptions, "template", "language", "answer")
@click_option(TaskOptions, "seed", help="Seed of the order of options.")
def export_lm_eval(
    console: Console,
    data: str,
    history: str,
    limit: int | None,
    config: str | None,
    language: str | None,
    private: bool,
    folder: str,
    template: str | None,
    answer: str | None,
    seed: int,
) -> None:
    """Export the multiple-choice questions as a task of lm-evaluation-harness.

    The files state the licence of the texts, the annotators and the language, from the benchmark or
    card.toml; other values are unknown. """  # fmt: skip
    from giccs.evaluation.interop.lm_eval import export_task
    from giccs.tasks.multiple_choice import open_tasks

    benchmark, provenance = _read(console, data, limit, config, language, private)
    options = TaskOptions(
        history=history, seed=seed, template=template, language=provenance.language, answer=answer
    )
    (task,) = open_tasks(options)
    console.warn(task.warnings_for(benchmark))
    _report_files(console, export_task(benchmark, task, folder, provenance), provenance)


@command(
    "giccs eval export-mteb",
    example="""
    giccs eval export-mteb -o exported
    giccs eval export-mteb --data sasaadi/GiCCS --history without --private -o exported
    """,
)
@_export_options
@language_option
def export_mteb(
    console: Console,
    data: str,
    history: str,
    limit: int | None,
    config: str | None,
    language: str | None,
    private: bool,
    folder: str,
) -> None:
    """Export the pairs as an STS task of mteb.

    The metadata state the licence of the texts, the annotators and the language, from the benchmark or
    card.toml; other values are not specified. mteb requires the language. """  # fmt: skip
    from giccs.evaluation.interop.mteb import export_task

    benchmark, provenance = _read(console, data, limit, config, language, private)
    histories = ["without", "with"] if history == "both" else [history]
    _report_files(console, export_task(benchmark, histories, folder, provenance), provenance)


def _read(
    console: Console,
    data: str,
    limit: int | None,
    config: str | None,
    language: str | None,
    private: bool,
) -> tuple[Benchmark, Provenance]:
    from giccs.benchmark import read_benchmark
    from giccs.evaluation.interop.metadata import read_provenance

    benchmark = read_benchmark(data)
    console.warn(benchmark.warnings)
    about = read_provenance(benchmark, config, language)
    if about.terms.no_derivatives and not private:
        message = f"{about.terms.warning()}; expected --private"
        raise InputError(Problem(data, None, message))
    return benchmark.first(limit) if limit else benchmark, about


def _report_files(console: Console, paths: list[Any], about: Provenance) -> None:
    files = [str(path) for path in paths]
    if warning := about.terms.warning():
        console.warn([Problem(about.data, None, warning)])
    console.answer("\n".join(files), {"files": files, **about.document()})
