"""Tables of results for the terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bws.base.tables import ResultTable, TableStyle, rendered
from bws.stats.estimates import Estimate
from giccs.measures.results import (
    Limits,
    Result,
    ceiling_of,
    comparison_key,
    data_of,
    is_on_absolute_scores,
    limits_of,
    published_data_of,
)
from giccs.report.choices import choice_breakdown, choice_table, choice_tables, turns_table
from giccs.report.measured import metric_tables
from giccs.report.pairs import NO_LIMITS, breakdown_table, main_table, pairwise_tables
from giccs.report.rows import long_csv
from giccs.tasks import result_kind

WITHIN_DIALOGUES, OVER_ALL_ITEMS = "Within dialogues", "Over all items"
"""Titles of the results on published and on absolute scores, if there are both."""
__all__ = [
    "breakdown_table",
    "choice_breakdown",
    "choice_table",
    "long_csv",
    "main_table",
    "report",
    "report_tables",
    "turns_table",
]


def report(
    results: Sequence[Result],
    style: TableStyle | str = "table",
    ceiling: Mapping[str, Estimate] | None = None,
    over_annotators: Sequence[Result] = (),
    limits: Limits = NO_LIMITS,
) -> str:
    """Return the tables of `report_tables` as text; ``csv`` is one long table of all numbers.

    style: a `TableStyle`, or a format of `tables.FORMATS`. ``csv`` does not include `over_annotators`.
    """
    style = TableStyle(style) if isinstance(style, str) else style
    if style.form == "csv":
        return long_csv(results, ceiling, limits)
    return rendered(report_tables(results, ceiling, over_annotators, limits), style)


def report_tables(
    results: Sequence[Result],
    ceiling: Mapping[str, Estimate] | None = None,
    over_annotators: Sequence[Result] = (),
    limits: Limits = NO_LIMITS,
) -> list[ResultTable]:
    """Return one table per task and data set, best model first, followed by its main metric by group.

    The noise ceiling is the last row of the pairwise tables on its data, before the `limits`.
    `over_annotators`, results of `giccs.measures.annotator_uncertainty`, have their own table below. Absolute
    scores are a data set of their own, after that of published ones.
    """
    position: dict[tuple[str, str], int] = {}
    for n, result in enumerate(results):
        position.setdefault((result.task, published_data_of(result)), n)
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in sorted(
        results,
        key=lambda each: (
            position[each.task, published_data_of(each)],
            is_on_absolute_scores(each),
        ),
    ):
        groups.setdefault(comparison_key(result), []).append(result)
    titles = [_title(of_task[0], results) for of_task in groups.values()]
    tables: list[ResultTable] = []
    for (key, of_task), title in zip(groups.items(), titles, strict=True):
        kind = result_kind(of_task[0].task)
        if kind.tables == "choices":
            first, *further = choice_tables(of_task)
        elif kind.tables == "metrics":
            first, *further = metric_tables(of_task, kind.main_metric)
        else:
            of_data = [result for result in over_annotators if comparison_key(result) == key]
            first, *further = pairwise_tables(
                of_task, ceiling_of(of_task[0], ceiling), of_data, limits_of(of_task[0], limits)
            )
        if titles.count(title) > 1:
            title = f"{title} (content {key[1][:6]})"
        tables += [replace(first, title=title), *further]
    return tables


def _title(result: Result, results: Sequence[Result]) -> str:
    """Return the title of the table of a result: with the scale, if the task has results on both."""
    title = f"{result.task} on {data_of(result)}"
    absolute = {is_on_absolute_scores(each) for each in results if each.task == result.task}
    if len(absolute) < 2:
        return title
    return f"{OVER_ALL_ITEMS if is_on_absolute_scores(result) else WITHIN_DIALOGUES}: {title}"
