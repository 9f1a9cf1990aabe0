"""giccs-eval: models on tasks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from bws.command import Command, Console, command
from giccs.cli.data import DATA_HELP
from giccs.tasks import TASKS, TaskOptions, open_tasks

if TYPE_CHECKING:
    from giccs.results import Result

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
        if name in _Evaluate.names:
            raise click.BadParameter(f"{name} is a command and comes first: giccs-eval {name} ...")
    return value


class _Evaluate(Command):
    """Takes models, or first the name of one of the commands below it."""

    names = ("export-lm-eval", "export-mteb")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.names)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command."""
        from giccs.interop.cli import export_lm_eval, export_mteb

        return {"export-lm-eval": export_lm_eval, "export-mteb": export_mteb}.get(name)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the arguments: of the command that the first one names, or of this one."""
        below = self.get_command(click.Context(self), args[0]) if args else None
        if below is None:
            return super().make_context(info_name, args, parent, **extra)
        return below.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command whose arguments were read."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the commands after the options."""
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
            formatter.write_dl([(name, one.get_short_help_str(80)) for name, one in found if one])


@command(
    "giccs-eval",
    cls=_Evaluate,
    example="""
    giccs-eval baseline:char-ngram package:minilm
    giccs-eval sentence-transformers/distiluse-base-multilingual-cased-v2 --data sasaadi/GiCCS
    giccs-eval ai-forever/mGPT --data sasaadi/GiCCS
    giccs-eval ./my-model --data benchmark.jsonl --history both -o results
    """,
)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...", callback=_models)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    type=click.Choice(list(TASKS)),
    help="What to ask; may be given several times.  [default: all that the model can do]",
)
@click.option("--data", default="giccs-sample", show_default=True, metavar="DATA", help=DATA_HELP)
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
    data: str,
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
    from giccs.benchmark import read_benchmark
    from giccs.models import ModelOptions
    from giccs.report import report as tables
    from giccs.results import Store
    from giccs.run import must_do, open_models, run

    store = Store(folder)
    benchmark = read_benchmark(data)
    console.warn(benchmark.warnings)
    benchmark = benchmark.first(limit) if limit else benchmark
    opened = open_models(models, ModelOptions(seed=seed, **model_options))
    how = TaskOptions(history, seed, template, answer, permutations, chat_template)
    asked = [task for name in tasks or TASKS for task in open_tasks(name, how)]
    if tasks:
        must_do(opened, asked)
    results: list[Result] = []
    try:
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
            click.echo(tables(results, "table"))
    if console.as_json:
        console.answer("", {"results": [result.document() for result in results]})
    console.note(f"\n{benchmark.name}: {len(benchmark.items)} items; results in {folder}")
