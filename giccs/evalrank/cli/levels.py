"""giccs-evalrank levels: agreement with ratings by similarity level, as a chart."""

from __future__ import annotations

from importlib.util import find_spec

import click

from bws.command import Console, command

__all__ = ["levels"]


@command(
    "giccs-evalrank levels",
    example="""
    giccs-eval package:minilm static:glove.txt --task sentence-similarity --data STSBenchmark -o results
    giccs-evalrank levels results -o levels.svg
    """,
)
@click.argument("results", metavar="RESULTS")
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="The chart: .svg, .png or .json."
)
def levels(console: Console, results: str, output: str) -> None:
    """Draw Spearman's rho of each model at each level of similarity (EvalRank, Figure 2).

    RESULTS is the folder of giccs-eval --task sentence-similarity; of the pairs of a level all count.
    """
    from bws.problems import InputError, Problem
    from giccs.description.figures import check_chart_path, write_chart
    from giccs.evalrank.levels import level_chart, level_rows
    from giccs.measures.results import Store

    check_chart_path(output)
    if missing := [name for name in ("altair", "vl_convert") if find_spec(name) is None]:
        message = f"a chart needs {missing[0]}; install it with: pip install 'giccs[charts]'"
        raise click.ClickException(message)
    rows = level_rows(Store(results).results())
    if not rows:
        message = "holds no results of sentence-similarity with levels"
        raise InputError(Problem(results, None, message))
    write_chart(level_chart(rows), output)
    models = len({row["model"] for row in rows})
    console.answer(f"{models} models are in {output}", {"output": output, "rows": rows})
