"""giccs-report: results as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bws.command import Console, command
from bws.problems import InputError, Problem
from giccs.cli.formatting import format_option

if TYPE_CHECKING:
    from giccs.metrics import Estimate
    from giccs.results import Result

__all__ = ["report"]


@command(
    "giccs-report",
    example="""
    giccs-report results
    giccs-report results --format latex > table.tex
    giccs-report results --data benchmark.jsonl --judgments judgments.csv
    giccs-report results --against recipes/giccs-paper.toml
    """,
)
@click.argument("folder", metavar="RESULTS_FOLDER")
@format_option()
@click.option(
    "--judgments",
    metavar="FILE",
    help="The judgments behind the scores: shows the noise ceiling.  [default: those of giccs-sample]",
)
@click.option(
    "--data",
    metavar="DATA",
    help="The benchmark that the judgments are of; with --against, what the results call a copy of the "
    "recipe's.  [default: the name in the results]",
)
@click.option(
    "--against",
    "recipe",
    metavar="RECIPE",
    help="Print instead the results beside the published numbers of a recipe.",
)
@click.option(
    "--lm-eval",
    metavar="FOLDER",
    help="Also write multiple choice in lm-evaluation-harness's JSON.",
)
@click.option("--mteb", metavar="FOLDER", help="Also write pairwise STS in mteb's JSON.")
def report(
    console: Console,
    folder: str,
    form: str,
    judgments: str | None,
    data: str | None,
    recipe: str | None,
    lm_eval: str | None,
    mteb: str | None,
) -> None:
    """Print the results in a folder as tables, best model first."""  # fmt: skip
    from giccs.report import report as tables
    from giccs.results import Store

    if data and not (judgments or recipe):
        raise click.UsageError("--data belongs to --judgments or --against; give one of them")
    if recipe and judgments:
        raise click.UsageError("--against prints no noise ceiling; leave --judgments out")
    results = list(Store(folder).results())
    if not results:
        raise InputError(Problem(folder, None, "holds no results; giccs-eval -o writes them"))
    _export(console, results, lm_eval, mteb)
    if recipe:
        _compare(console, results, recipe, data, form)
        return
    ceiling = _ceiling(results, judgments, data)
    document: dict[str, Any] = {"results": [result.document() for result in results]}
    if ceiling:
        document["ceiling"] = {name: one.document() for name, one in ceiling.items()}
    console.answer(tables(results, form, ceiling).rstrip("\n"), document)


def _export(
    console: Console, results: Sequence[Result], lm_eval: str | None, mteb: str | None
) -> None:
    if lm_eval:
        from giccs.interop.lm_eval import write_results as write_lm_eval

        console.note(f"{len(write_lm_eval(results, lm_eval))} results written to {lm_eval}")
    if mteb:
        from giccs.interop.mteb import write_results as write_mteb

        console.note(f"{len(write_mteb(results, mteb))} results written to {mteb}")


def _compare(
    console: Console, results: Sequence[Result], recipe: str, data: str | None, form: str
) -> None:
    from giccs.against import against
    from giccs.recipe import read_recipe
    from giccs.report.published import published_table

    found = against(results, read_recipe(recipe), copy=data)
    console.answer(published_table(found, form).rstrip("\n"), found.document())


def _ceiling(
    results: Sequence[Result], judgments: str | None, data: str | None
) -> Mapping[str, Estimate] | None:
    """Return the noise ceiling of the data that the judgments are of; without any, that of giccs-sample."""
    from giccs.benchmark import SAMPLE, read_benchmark
    from giccs.ceiling import judgments_behind, noise_ceiling
    from giccs.report.place import compares_pairs, data_of

    pairs = [result for result in results if compares_pairs(result)]
    names = list(dict.fromkeys(map(data_of, pairs)))
    if not judgments and SAMPLE not in names:
        return None
    if not pairs:
        raise click.UsageError(
            "--judgments: there are no pairwise results here to show a ceiling for"
        )
    benchmark = read_benchmark((data or _only(names)) if judgments else SAMPLE)
    if all(result.signature.get("data") != benchmark.fingerprint for result in pairs):
        message = "has other content than what the pairwise results here were computed on"
        if judgments:
            raise InputError(Problem(benchmark.name, None, message))
        return None  # a part of giccs-sample, by --limit
    behind = judgments_behind(benchmark, judgments)
    return noise_ceiling(behind, benchmark) if behind else None


def _only(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    message = f"pairwise results are on {len(names)} data sets ({', '.join(names)})"
    raise click.UsageError(f"{message}; say with --data which one the judgments are of")
