"""Tables of results for the terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bws.tables import heading
from giccs.measures.metrics import Estimate
from giccs.measures.results import Result, ceiling_of, comparison_key, data_of
from giccs.report.choices import choice_breakdown, choice_sections, choice_table, turns_table
from giccs.report.measured import metric_sections
from giccs.report.pairs import breakdown_table, main_table, pairwise_sections
from giccs.report.rows import long_csv
from giccs.tasks import result_kind

__all__ = [
    "breakdown_table",
    "choice_breakdown",
    "choice_table",
    "long_csv",
    "main_table",
    "report",
    "turns_table",
]


def report(
    results: Sequence[Result],
    form: str,
    ceiling: Mapping[str, Estimate] | None = None,
    over_annotators: Sequence[Result] = (),
) -> str:
    """Return all tables in a format of `bws.tables.FORMATS`, or one long ``csv``.

    There is one table per task and data set, best model first, followed by its main metric by group. The
    noise ceiling is the last row of the pairwise tables on its data. `over_annotators`, results of
    `giccs.measures.annotator_uncertainty`, have their own table below; ``csv`` does not include them.
    """
    if form == "csv":
        return long_csv(results, ceiling)
    sections: list[str] = []
    tables: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        tables.setdefault(comparison_key(result), []).append(result)
    titles = [
        f"{task_results[0].task} on {data_of(task_results[0])}" for task_results in tables.values()
    ]
    for ((_, fingerprint), group_results), title in zip(tables.items(), titles, strict=True):
        if titles.count(title) > 1:
            title = f"{title} (content {fingerprint[:6]})"
        sections += [("\n" if sections else "") + f"{heading(title, form)}\n"]
        kind = result_kind(group_results[0].task)
        if kind.tables == "choices":
            sections += choice_sections(group_results, form)
        elif kind.tables == "metrics":
            sections += metric_sections(group_results, form, kind.main_metric)
        else:
            over_annotators_here = [
                candidate
                for candidate in over_annotators
                if comparison_key(candidate) == comparison_key(group_results[0])
            ]
            sections += pairwise_sections(
                group_results, form, ceiling_of(group_results[0], ceiling), over_annotators_here
            )
    return "\n".join(sections)
