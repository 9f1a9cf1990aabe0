"""giccs evalrank correlate: correlate intrinsic scores with downstream accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT, SEED
from bws.base.problems import InputError, Problem
from bws.base.tables import TableStyle, rendered
from bws.cli.options import arguments, check_figure, drawn_figure, plain_table_options

if TYPE_CHECKING:
    from giccs.evalrank.scores import ScoreColumn, ScoreSelector, ScoreTable
    from giccs.measures.results import Result

SIDES = ("intrinsic score", "downstream accuracy")


@command(
    "giccs evalrank correlate",
    example="""
    giccs evalrank correlate results
    giccs evalrank correlate results --intrinsic evalrank-sentence:hits@1 --downstream MR
    giccs evalrank correlate results --without-postprocessed --complete --format latex > table-11.tex
    giccs evalrank correlate results --intrinsic evalrank-sentence:mrr --downstream MR --figure ranks.svg
    """,
)
@click.argument("folder", type=INPUT, metavar="RESULTS_FOLDER")
@click.option(
    "--intrinsic",
    "intrinsic",
    multiple=True,
    metavar="TASK[:METRIC[:GROUP]]",
    help="Intrinsic score, or all scores of a task; an empty GROUP is all data. Repeatable.  "
    "[default: all existing scores of EvalRank, similarity and uniformity]",
)
@click.option(
    "--downstream",
    "downstream",
    multiple=True,
    metavar="SET",
    help="Set of the task classification. Repeatable.  [default: all existing sets]",
)
@click.option(
    "--complete",
    "only_complete",
    is_flag=True,
    help="Use only models with all scores, so that all correlations are over the same models.",
)
@click.option(
    "--without-postprocessed",
    "without_postprocessed",
    is_flag=True,
    help="Exclude models with post-processed vectors (+whitening, +abtt, +pcr or +flow).",
)
@plain_table_options()
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the intervals.")
@click.option(
    "--figure",
    type=OUTPUT,
    metavar="FILE",
    help="Also draw the ranks of the models with all scores (Figure 4), ordered by the first downstream set: "
    ".svg, .png, .json.",
)
def correlate(
    console: Console,
    folder: str,
    intrinsic: tuple[str, ...],
    downstream: tuple[str, ...],
    only_complete: bool,
    without_postprocessed: bool,
    style: TableStyle,
    seed: int,
    figure: str | None,
) -> None:
    """Correlate intrinsic scores of stored results with downstream accuracies, over models.

    The output is Spearman's rho as in the paper's Tables 3 and 6, with jackknife intervals over families of
    models, and the difference of each score to the best. Results of a task with different settings are
    separate scores. Word-similarity sets with fewer than 200 known pairs are excluded, as in the paper
    (5.1), unless requested by name.
    """
    from giccs.evalrank import score_correlations
    from giccs.evalrank.correlation_tables import correlation_tables, format_csv

    if style.form == "csv" and style.columns:
        raise click.UsageError("--columns is for tables")
    check_figure(figure)
    intrinsic_columns, downstream_columns, left_out = _read_columns(
        console, folder, intrinsic, downstream
    )
    columns = [*intrinsic_columns, *downstream_columns]
    columns = score_correlations.drop_postprocessed(columns) if without_postprocessed else columns
    for line in score_correlations.missing_score_notes(columns):
        console.note(line)
    columns = score_correlations.keep_complete_models(columns) if only_complete else columns
    intrinsic_columns, downstream_columns = (
        columns[: len(intrinsic_columns)],
        columns[len(intrinsic_columns) :],
    )
    correlations = score_correlations.correlate(
        intrinsic_columns, downstream_columns, left_out=left_out, seed=seed
    )
    if figure:
        with drawn_figure(console, "of ranks", folder):
            from bws.base.charts import write_chart
            from giccs.evalrank.rank_chart import rank_chart

            write_chart(rank_chart([*downstream_columns, *intrinsic_columns]), figure)
            console.note(f"Figure 4 written to {figure}")
    if style.form == "csv":
        text = format_csv(correlations).rstrip("\n")
    else:
        with arguments():
            text = rendered(correlation_tables(correlations, style.form), style)
    console.answer(text, correlations.document())


def _read_columns(
    console: Console, folder: str, intrinsic: Sequence[str], downstream: Sequence[str]
) -> tuple[list[ScoreColumn], list[ScoreColumn], list[str]]:
    """Return the intrinsic columns, the downstream columns and the excluded scores.

    Raises InputError if a requested score does not exist.
    """
    from giccs.evalrank.scores import (
        DOWNSTREAM,
        INTRINSIC,
        ScoreSelector,
        collect_scores,
        parse_selector,
    )
    from giccs.measures.results import Store

    results = list(Store(folder).results())
    intrinsic_selectors = [parse_selector(text) for text in intrinsic] or [
        ScoreSelector(task) for task in INTRINSIC
    ]
    downstream_selectors = [
        ScoreSelector(DOWNSTREAM, "accuracy", name)
        for name in downstream or _downstream_sets(results)
    ]
    score_tables = [
        collect_scores(results, selectors)
        for selectors in (intrinsic_selectors, downstream_selectors)
    ]
    left_out = [line for table in score_tables for line in table.undefined]
    for line in left_out:
        console.note(f"excluded: {line}")
    _must_be_there(folder, score_tables, [bool(intrinsic), bool(downstream)])
    for score_table in score_tables:
        if score_table.n_superseded:
            console.note(
                f"{score_table.n_superseded} results ignored: a newer result of the same kind exists"
            )
    return list(score_tables[0].columns), list(score_tables[1].columns), left_out


def _downstream_sets(results: Sequence[Result]) -> list[str]:
    """Return the downstream sets of the results: those of the paper in its order, then others."""
    from giccs.evalrank.classification_data import SETS
    from giccs.evalrank.scores import DOWNSTREAM

    groups = [group for result in results if result.task == DOWNSTREAM for group in result.groups]
    set_names = list(dict.fromkeys(str(group.by.get("set", "")) for group in groups))
    return [
        *(name for name in SETS if name in set_names),
        *(name for name in set_names if name not in SETS),
    ]


def _must_be_there(
    folder: str, score_tables: Sequence[ScoreTable], requested: Sequence[bool]
) -> None:
    """Raise InputError for each requested score that is missing, and for a side without scores."""
    problems = []
    for side, table, is_requested in zip(SIDES, score_tables, requested, strict=True):
        if is_requested:
            problems += [
                Problem(folder, None, _missing_score_message(selector))
                for selector in table.unmatched
            ]
        elif not table.columns:
            problems.append(Problem(folder, None, f"no {side}; expected results of giccs eval"))
    if problems:
        raise InputError(problems)


def _missing_score_message(selector: ScoreSelector) -> str:
    from giccs.evalrank.scores import INTRINSIC

    has_metric = selector.metric or selector.task in INTRINSIC
    hint = "" if has_metric else f"; expected a metric: {selector.task}:METRIC"
    return f"no score {selector}{hint}"
