"""Tables of results for the terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bws.base.tables import ResultTable, TableStyle, rendered
from bws.stats.estimates import Estimate
from giccs.measures.results import Result, ceiling_of, comparison_key, data_of
from giccs.report.choices import choice_breakdown, choice_table, choice_tables, turns_table
from giccs.report.measured import metric_tables
from giccs.report.pairs import breakdown_table, main_table, pairwise_tables
from giccs.report.rows import long_csv
from giccs.tasks import result_kind

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
) -> str:
    """Return the tables of `report_tables` as text; ``csv`` is one long table of all numbers.

    style: a `TableStyle`, or a format of `tables.FORMATS`. ``csv`` does not include `over_annotators`.
    """
    style = TableStyle(style) if isinstance(style, str) else style
    if style.form == "csv":
        return long_csv(results, ceiling)
    return rendered(report_tables(results, ceiling, over_annotators), style)


def report_tables(
    results: Sequence[Result],
    ceiling: Mapping[str, Estimate] | None = None,
    over_annotators: Sequence[Result] = (),
) -> list[ResultTable]:
    """Return one table per task and data set, best model first, followed by its main metric by group.

    The noise ceiling is the last row of the pairwise tables on its data. `over_annotators`, results of
    `giccs.measures.annotator_uncertainty`, have their own table below.
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault(comparison_key(result), []).append(result)
    titles = [f"{of_task[0].task} on {data_of(of_task[0])}" for of_task in groups.values()]
    tables: list[ResultTable] = []
    for (key, of_task), title in zip(groups.items(), titles, strict=True):
        kind = result_kind(of_task[0].task)
        if kind.tables == "choices":
            first, *further = choice_tables(of_task)
        elif kind.tables == "metrics":
            first, *further = metric_tables(of_task, kind.main_metric)
        else:
            of_data = [result for result in over_annotators if comparison_key(result) == key]
            first, *further = pairwise_tables(of_task, ceiling_of(of_task[0], ceiling), of_data)
        if titles.count(title) > 1:
            title = f"{title} (content {key[1][:6]})"
        tables += [replace(first, title=title), *further]
    return tables
