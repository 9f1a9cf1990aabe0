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
    from giccs.evalrank.scores import Asked, Column, Table
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
    "plain",
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
    plain: bool,
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
    from giccs.evalrank.correlation_tables import long_csv, tables

    if plot:
        check_chart_path(plot)
    elif pivot:
        raise click.UsageError("--pivot belongs to --plot; give both")
    judged, predicted, left_out = _columns(console, folder, intrinsic, downstream)
    columns = [*judged, *predicted]
    columns = correlating.unprocessed(columns) if plain else columns
    for line in correlating.missing(columns):
        console.note(line)
    columns = correlating.complete(columns) if only_complete else columns
    judged, predicted = columns[: len(judged)], columns[len(judged) :]
    found = correlating.correlate(judged, predicted, left_out=left_out, seed=seed)
    if plot:
        _draw(console, judged, predicted, plot, pivot)
    text = long_csv(found) if form == "csv" else tables(found, form)
    console.answer(text.rstrip("\n"), found.document())


def _columns(
    console: Console, folder: str, intrinsic: Sequence[str], downstream: Sequence[str]
) -> tuple[list[Column], list[Column], list[str]]:
    """Return the scores to judge, those to predict, and what was left out of them.

    InputError where a named score does not exist.
    """
    from giccs.evalrank.scores import DOWNSTREAM, INTRINSIC, Asked, asked, scores
    from giccs.measures.results import Store

    results = list(Store(folder).results())
    judged = [asked(text) for text in intrinsic] or [Asked(task) for task in INTRINSIC]
    predicted = [Asked(DOWNSTREAM, "accuracy", name) for name in downstream or _sets(results)]
    found = [scores(results, wanted) for wanted in (judged, predicted)]
    left_out = [line for one in found for line in one.undefined]
    for line in left_out:
        console.note(f"left out: {line}")
    _must_be_there(folder, found, [bool(intrinsic), bool(downstream)])
    for one in found:
        if one.set_aside:
            console.note(
                f"{one.set_aside} results set aside: there is a newer one of the same kind"
            )
    return list(found[0].columns), list(found[1].columns), left_out


def _sets(results: Sequence[Result]) -> list[str]:
    """Return the downstream sets of the results: the paper's in its order, then others."""
    from giccs.evalrank.classification_data import SETS
    from giccs.evalrank.scores import DOWNSTREAM

    groups = [group for one in results if one.task == DOWNSTREAM for group in one.groups]
    found = list(dict.fromkeys(str(group.by.get("set", "")) for group in groups))
    return [
        *(name for name in SETS if name in found),
        *(name for name in found if name not in SETS),
    ]


def _must_be_there(folder: str, found: Sequence[Table], named: Sequence[bool]) -> None:
    """Raise InputError for each score that was named and is not there, and for a side without any."""
    problems = []
    for what, table, by_name in zip(SIDES, found, named, strict=True):
        if by_name:
            problems += [Problem(folder, None, _not_there(one)) for one in table.not_found]
        elif not table.columns:
            problems.append(Problem(folder, None, f"holds no {what}; giccs-eval writes them"))
    if problems:
        raise InputError(problems)


def _not_there(one: Asked) -> str:
    from giccs.evalrank.scores import INTRINSIC

    named = one.metric or one.task in INTRINSIC
    return f"holds no score {one}" + ("" if named else f"; name a metric of it: {one.task}:METRIC")


def _draw(
    console: Console,
    judged: Sequence[Column],
    predicted: Sequence[Column],
    path: str,
    pivot: str | None,
) -> None:
    from giccs.description.figures import write_chart
    from giccs.evalrank.correlating import complete
    from giccs.evalrank.rank_plot import COLOURS, rank_plot

    columns = [*predicted, *judged]
    if len(columns) > len(COLOURS):
        message = f"a plot shows up to {len(COLOURS)} scores, these are {len(columns)}"
        raise click.UsageError(f"{message}; choose with --intrinsic and --downstream")
    chosen = [one for one in columns if pivot in (None, one.address, one.label, *_last(one))]
    if pivot and len(chosen) != 1:
        names = ", ".join(one.address for one in columns)
        raise click.UsageError(f"--pivot {pivot} names {len(chosen)} scores; there are: {names}")
    if not complete(columns)[0].scores:
        raise click.UsageError("no model has all scores of the plot; choose fewer")
    first = chosen[0]
    write_chart(rank_plot([first, *(one for one in columns if one is not first)]), path)
    console.note(f"ranks drawn in {path}")


def _last(column: Column) -> list[str]:
    return [value for _, value in column.by]
