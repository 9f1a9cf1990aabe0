"""Tables of correlations: the format of EvalRank's Tables 3 and 6, followed by intervals and differences."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial

from bws.tables import heading, remarks, tabulated
from bws.textio import csv_text
from giccs.evalrank.score_correlations import CorrelationCell, Correlations
from giccs.measures.formatting import number
from giccs.measures.metrics import Estimate

__all__ = ["format_csv", "format_tables"]

RANK_MARKS = {0: "{}", 1: "«{}»", 2: "‹{}›"}
"""Format of a cell in plain tables, by rank."""
MARK_REPLACEMENTS = {
    "markdown": {"«": r"**\1**", "‹": r"<u>\1</u>"},
    "latex": {"«": r"\\textbf{\1}", "‹": r"\\underline{\1}"},
}
HEADER = [
    "intrinsic", "intrinsic_setting", "downstream", "downstream_setting",
    "spearman", "low", "high", "models", "families", "reason", "place",
    "behind_best", "behind_low", "behind_high", "behind_models", "behind_reason",
]  # fmt: skip


def format_tables(correlations: Correlations, form: str) -> str:
    """Return tables of rho, its intervals and the differences to the best, in a format of
    `bws.tables.FORMATS`."""
    size = f"{len(correlations.models)} models"
    title = f"Spearman's rho x 100 over {size}: intrinsic scores and downstream accuracy"
    parts = [
        _format_heading(title, form),
        _replace_marks(_format_table(correlations, _format_value, form), form),
    ]
    n_models = len(correlations.models)
    rhos = [cell.rho for cell in correlations.cells if not math.isnan(cell.rho.value)]
    if any(not math.isnan(rho.low) or rho.n != n_models for rho in rhos):
        intervals = partial(_format_interval, all_models=n_models)
        parts += [
            _format_heading("95 % intervals", form),
            _format_table(correlations, intervals, form),
        ]
    if any(cell.difference for cell in correlations.cells):
        title = "Difference to the best (rho x 100, with interval)"
        parts += [
            _format_heading(title, form),
            _format_table(correlations, _format_difference, form),
        ]
    left_out = [f"Excluded: {line}." for line in correlations.left_out]
    parts += [
        "",
        *remarks([*_explanations(form), *_undefined_notes(correlations), *left_out], form),
    ]
    return "\n".join(parts).lstrip("\n") + "\n"


def format_csv(correlations: Correlations) -> str:
    """Return CSV with one row per correlation; rho is not multiplied by 100."""
    rows: list[list[object]] = []
    for cell in correlations.cells:
        x, y, rho = cell.intrinsic, cell.downstream, cell.rho
        families = rho.extra["families"]
        row = [x.address, x.setting, y.address, y.setting, *_format_limits(rho), rho.n, families]
        difference = cell.difference
        difference_cells = (
            [*_format_limits(difference), difference.n, difference.reason]
            if difference
            else [""] * 5
        )
        rows.append([*row, rho.reason, cell.rank or "", *difference_cells])
    return csv_text(rows, HEADER)


def _format_limits(estimate: Estimate) -> list[str]:
    return [number(value) for value in (estimate.value, estimate.low, estimate.high)]


def _format_heading(text: str, form: str) -> str:
    return f"\n{heading(text, form)}\n"


def _format_table(
    correlations: Correlations, format_cell: Callable[[CorrelationCell], str], form: str
) -> str:
    headers = ["task", "score", *(column.label for column in correlations.downstream)]
    width = len(correlations.intrinsic)
    rows: list[list[str]] = [[column.task, column.label] for column in correlations.intrinsic]
    for index, cell in enumerate(correlations.cells):
        rows[index % width].append(format_cell(cell))
    return tabulated(rows, headers, form)


def _format_value(cell: CorrelationCell) -> str:
    if math.isnan(cell.rho.value):
        return "undefined"
    return RANK_MARKS[cell.rank].format(f"{100 * cell.rho.value:.2f}")


def _replace_marks(table: str, form: str) -> str:
    """Replace marks with bold and underlined text, in formats that support them."""
    for mark, closing in (("«", "»"), ("‹", "›")):
        if form in MARK_REPLACEMENTS:
            table = re.sub(rf"{mark}(-?[\d.]+){closing}", MARK_REPLACEMENTS[form][mark], table)
    return table


def _format_interval(cell: CorrelationCell, all_models: int) -> str:
    """Return the interval, with the number of models if some models are missing."""
    low, high, n = cell.rho.low, cell.rho.high, cell.rho.n
    interval_text = "–" if math.isnan(low) else f"[{100 * low:.0f}, {100 * high:.0f}]"
    return interval_text if n == all_models else f"{interval_text} n={n}"


def _format_difference(cell: CorrelationCell) -> str:
    difference = cell.difference
    if difference is None:
        return "best" if cell.rank == 1 else ""
    if math.isnan(difference.value):
        return "undefined"
    limits = (
        " [–]"
        if math.isnan(difference.low)
        else f" [{100 * difference.low:.0f}, {100 * difference.high:.0f}]"
    )
    return f"{100 * difference.value:.0f}{limits}"


def _explanations(form: str) -> Sequence[str]:
    marks = {"table": "in «», second best in ‹›"}.get(form, "in bold, second best underlined")
    return [
        f"Best score per column {marks}. Intervals: jackknife over families (a model with all its +STEP).",
        "Differences are over the models with both scores; the best score was selected on the same models, "
        "so its lead is biased upwards.",
    ]


def _undefined_notes(correlations: Correlations) -> list[str]:
    counts: dict[str, int] = {}
    for cell in correlations.cells:
        if cell.rho.reason:
            counts[cell.rho.reason] = counts.get(cell.rho.reason, 0) + 1
    return [f"{count} correlations: {reason}" for reason, count in counts.items()]
