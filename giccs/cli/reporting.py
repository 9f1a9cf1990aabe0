"""giccs-report: results as tables."""

from __future__ import annotations

import click

from bws.command import Console, command
from bws.problems import InputError, Problem

__all__ = ["report"]


@command(
    "giccs-report",
    example="""
    giccs-report results
    giccs-report results --format latex > table.tex
    """,
)
@click.argument("folder", metavar="RESULTS_FOLDER")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "latex", "csv"]),
    default="table",
    show_default=True,
)
@click.option(
    "--lm-eval",
    metavar="FOLDER",
    help="Also write multiple choice in lm-evaluation-harness's JSON.",
)
@click.option("--mteb", metavar="FOLDER", help="Also write pairwise STS in mteb's JSON.")
def report(console: Console, folder: str, form: str, lm_eval: str | None, mteb: str | None) -> None:
    """Print the results in a folder as tables, best model first."""  # fmt: skip
    from giccs.report import report as tables
    from giccs.results import Store

    results = list(Store(folder).results())
    if not results:
        raise InputError(Problem(folder, None, "holds no results; giccs-eval -o writes them"))
    if lm_eval:
        from giccs.interop.lm_eval import write_results as write_lm_eval

        console.note(f"{len(write_lm_eval(results, lm_eval))} results written to {lm_eval}")
    if mteb:
        from giccs.interop.mteb import write_results as write_mteb

        console.note(f"{len(write_mteb(results, mteb))} results written to {mteb}")
    document = {"results": [result.document() for result in results]}
    console.answer(tables(results, form).rstrip("\n"), document)
