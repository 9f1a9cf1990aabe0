"""giccs-evalrank correlate: which intrinsic score tells how models do downstream?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bws.cli.options import format_option
from bws.command import Console, command
from bws.options import SEED
from bws.problems import InputError, Problem

if TYPE_CHECKING:
    from giccs.evalrank.scores import ScoreColumn, ScoreSelector, ScoreTable
    from giccs.measures.results import Result

__all__ = ["correlate"]

SIDES = ("intrinsic score", "downstream accuracy")


@command(
    "giccs-evalrank correlate",
    example="""
    giccs-evalrank correlate results
    giccs-evalrank correlate results --intrinsic evalrank-sentence:hits@1 --downstream MR
    giccs-evalrank correlate results --without-postprocessed --complete --format latex > table-11.tex
    giccs-evalrank correlate results --intrinsic evalrank-sentence:mrr --downstream MR --plot ranks.svg
    """,
)
@click.argument("folder", metavar="RESULTS_FOLDER")
@click.option(
    "--intrinsic",
    "intrinsic",
    multiple=True,
    metavar="TASK[:METRIC[:GROUP]]",
    help="A score to judge, or all of a task; an empty GROUP is all of the data. Several may be given.  "
    "[default: all that are there of EvalRank, similarity and uniformity]",
)
@click.option(
    "--downstream",
    "downstream",
    multiple=True,
    metavar="SET",
    help="A set of the task classification; may be given several times.  [default: all that are there]",
)
@click.option(
    "--complete",
    "only_complete",
    is_flag=True,
    help="Only models that have every score, so that all numbers are over the same models.",
)
@click.option(
    "--without-postprocessed",
    "without_postprocessed",
    is_flag=True,
    help="Only models whose vectors were not changed afterwards, by +whitening, +abtt, +pcr or +flow.",
)
@format_option()
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of intervals.")
@click.option("--plot", metavar="FILE", help="Also draw the models' ranks (.svg, .png or .json).")
@click.option(
    "--pivot",
    metavar="SCORE",
    help="By which score the plot orders the models: a SET, or TASK:METRIC[:GROUP].  "
    "[default: the first downstream set]",
)
def correlate(
    console: Console,
    folder: str,
    intrinsic: tuple[str, ...],
    downstream: tuple[str, ...],
    only_complete: bool,
    without_postprocessed: bool,
    form: str,
    seed: int,
    plot: str | None,
    pivot: str | None,
) -> None:
    """Correlate intrinsic scores of stored results with accuracies on downstream tasks, over models.

    Spearman's rho, as in the paper's Tables 3 and 6, with intervals from a bootstrap over families of models,
    and how far each score is behind the best. Differently asked results of one task are scores of their own.
    Word-similarity sets with fewer than 200 known pairs are left out, as in the paper (5.1), unless named.
    """
    from giccs.description.figures import check_chart_path
    from giccs.evalrank import correlating
    from giccs.evalrank.correlation_tables import format_csv, format_tables

    if plot:
        check_chart_path(plot)
    elif pivot:
        raise click.UsageError("--pivot belongs to --plot; give both")
    intrinsic_columns, downstream_columns, left_out = _read_columns(
        console, folder, intrinsic, downstream
    )
    columns = [*intrinsic_columns, *downstream_columns]
    columns = correlating.drop_postprocessed(columns) if without_postprocessed else columns
    for line in correlating.missing_score_notes(columns):
        console.note(line)
    columns = correlating.keep_complete_models(columns) if only_complete else columns
    intrinsic_columns, downstream_columns = (
        columns[: len(intrinsic_columns)],
        columns[len(intrinsic_columns) :],
    )
    correlations = correlating.correlate(
        intrinsic_columns, downstream_columns, left_out=left_out, seed=seed
    )
    if plot:
        _draw_plot(console, intrinsic_columns, downstream_columns, plot, pivot)
    text = format_csv(correlations) if form == "csv" else format_tables(correlations, form)
    console.answer(text.rstrip("\n"), correlations.document())


def _read_columns(
    console: Console, folder: str, intrinsic: Sequence[str], downstream: Sequence[str]
) -> tuple[list[ScoreColumn], list[ScoreColumn], list[str]]:
    """Return the scores to judge, those to predict, and what was left out of them.

    InputError where a named score does not exist.
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
        console.note(f"left out: {line}")
    _must_be_there(folder, score_tables, [bool(intrinsic), bool(downstream)])
    for one in score_tables:
        if one.n_superseded:
            console.note(
                f"{one.n_superseded} results set aside: there is a newer one of the same kind"
            )
    return list(score_tables[0].columns), list(score_tables[1].columns), left_out


def _downstream_sets(results: Sequence[Result]) -> list[str]:
    """Return the downstream sets of the results: the paper's in its order, then others."""
    from giccs.evalrank.classification_data import SETS
    from giccs.evalrank.scores import DOWNSTREAM

    groups = [group for result in results if result.task == DOWNSTREAM for group in result.groups]
    set_names = list(dict.fromkeys(str(group.by.get("set", "")) for group in groups))
    return [
        *(name for name in SETS if name in set_names),
        *(name for name in set_names if name not in SETS),
    ]


def _must_be_there(
    folder: str, _check_tables: Sequence[ScoreTable], score_tables: Sequence[bool]
) -> None:
    """Raise InputError for each score that was named and is not there, and for a side without any."""
    problems = []
    for side, table, is_requested in zip(SIDES, _check_tables, score_tables, strict=True):
        if is_requested:
            problems += [
                Problem(folder, None, _missing_score_message(selector))
                for selector in table.unmatched
            ]
        elif not table.columns:
            problems.append(Problem(folder, None, f"holds no {side}; giccs-eval writes them"))
    if problems:
        raise InputError(problems)


def _missing_score_message(selector: ScoreSelector) -> str:
    from giccs.evalrank.scores import INTRINSIC

    has_metric = selector.metric or selector.task in INTRINSIC
    return f"holds no score {selector}" + (
        "" if has_metric else f"; name a metric of it: {selector.task}:METRIC"
    )


def _draw_plot(
    console: Console,
    intrinsic_columns: Sequence[ScoreColumn],
    downstream_columns: Sequence[ScoreColumn],
    path: str,
    pivot: str | None,
) -> None:
    from giccs.description.figures import write_chart
    from giccs.evalrank.correlating import keep_complete_models
    from giccs.evalrank.rank_plot import COLOURS, rank_plot

    columns = [*downstream_columns, *intrinsic_columns]
    if len(columns) > len(COLOURS):
        message = f"a plot shows up to {len(COLOURS)} scores, these are {len(columns)}"
        raise click.UsageError(f"{message}; choose with --intrinsic and --downstream")
    matches = [
        column
        for column in columns
        if pivot in (None, column.address, column.label, *_group_values(column))
    ]
    if pivot and len(matches) != 1:
        names = ", ".join(column.address for column in columns)
        raise click.UsageError(f"--pivot {pivot} names {len(matches)} scores; there are: {names}")
    if not keep_complete_models(columns)[0].scores:
        raise click.UsageError("no model has all scores of the plot; choose fewer")
    first = matches[0]
    write_chart(rank_plot([first, *(column for column in columns if column is not first)]), path)
    console.note(f"ranks drawn in {path}")


def _group_values(column: ScoreColumn) -> list[str]:
    return [value for _, value in column.by]
