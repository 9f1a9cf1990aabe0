"""giccs evalrank levels: plot correlations with ratings by similarity level."""

from __future__ import annotations

from importlib.util import find_spec

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT


@command(
    "giccs evalrank levels",
    example="""
    giccs eval package:minilm static:glove.txt --task sentence-similarity --data STSBenchmark -o results
    giccs evalrank levels results -o levels.svg
    """,
)
@click.argument("results", type=INPUT, metavar="RESULTS")
@click.option(
    "-o",
    "--output",
    required=True,
    type=OUTPUT,
    metavar="FILE",
    help="Output chart (.svg, .png or .json).",
)
def levels(console: Console, results: str, output: str) -> None:
    """Plot Spearman's rho per model and level of similarity (EvalRank, Figure 2).

    RESULTS is the output folder of giccs eval --task sentence-similarity. All pairs of a level are used.
    """
    from bws.base.charts import check_chart_path, write_chart
    from bws.base.problems import InputError, Problem
    from giccs.evalrank.levels import level_chart, level_rows
    from giccs.measures.results import Store

    check_chart_path(output)
    if missing := [name for name in ("altair", "vl_convert") if find_spec(name) is None]:
        message = (
            f"{missing[0]} is required for charts; install it with: pip install 'giccs[charts]'"
        )
        raise click.ClickException(message)
    rows = level_rows(Store(results).results())
    if not rows:
        message = "no results of sentence-similarity with levels"
        raise InputError(Problem(results, None, message))
    write_chart(level_chart(rows), output)
    models = len({row["model"] for row in rows})
    console.answer(
        f"chart of {models} models written to {output}", {"output": output, "rows": rows}
    )
