"""Results as tables: for the terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bws.tables import heading
from giccs.measures.metrics import Estimate
from giccs.measures.results import Result, asked, ceiling_of, data_of
from giccs.report.choices import choice_breakdown, choice_table, choices, turns_table
from giccs.report.measured import measured
from giccs.report.pairs import breakdown_table, main_table, pairs
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

    A table a task and data set, best model first; then its main metric by part of the data.
    The noise ceiling is the last row of the pairwise tables on the data that it is of. `over_annotators`,
    results of `giccs.measures.annotator_uncertainty`, are a table of their own below these; ``csv`` leaves
    them out.
    """
    if form == "csv":
        return long_csv(results, ceiling)
    parts: list[str] = []
    tables: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        tables.setdefault(asked(result), []).append(result)
    titles = [f"{chosen[0].task} on {data_of(chosen[0])}" for chosen in tables.values()]
    for ((_, content), chosen), title in zip(tables.items(), titles, strict=True):
        if titles.count(title) > 1:
            title = f"{title} (content {content[:6]})"
        parts += [("\n" if parts else "") + f"{heading(title, form)}\n"]
        kind = result_kind(chosen[0].task)
        if kind.tables == "choices":
            parts += choices(chosen, form)
        elif kind.tables == "metrics":
            parts += measured(chosen, form, kind.main_metric)
        else:
            same_data = [one for one in over_annotators if asked(one) == asked(chosen[0])]
            parts += pairs(chosen, form, ceiling_of(chosen[0], ceiling), same_data)
    return "\n".join(parts)
