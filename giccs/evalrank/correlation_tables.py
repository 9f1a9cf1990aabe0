"""Tables of correlations: the format of EvalRank's Tables 3 and 6, followed by intervals and differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from bws.base.rows import csv_text
from bws.base.tables import Cell, Column, Emphasis, NumberText, ResultTable
from bws.stats.estimates import Estimate
from giccs.evalrank.score_correlations import CorrelationCell, Correlations
from giccs.measures.formatting import number

EMPHASIS: dict[int, Emphasis] = {0: "", 1: "bold", 2: "underline"}
"""Rank of a number in its column -> emphasis."""
HEADER = [
    "intrinsic", "intrinsic_setting", "downstream", "downstream_setting",
    "spearman", "low", "high", "models", "families", "reason", "place",
    "behind_best", "behind_low", "behind_high", "behind_models", "behind_reason",
]  # fmt: skip


def correlation_tables(correlations: Correlations, form: str) -> list[ResultTable]:
    """Return tables of rho, its intervals and the differences to the best; the notes depend on the format."""
    n_models = len(correlations.models)
    title = f"Spearman's rho x 100 over {n_models} models: intrinsic scores and downstream accuracy"
    tables = [_table(title, correlations, _value_cell)]
    rhos = [cell.rho for cell in correlations.cells if not math.isnan(cell.rho.value)]
    if any(not math.isnan(rho.low) or rho.n != n_models for rho in rhos):
        intervals = partial(_format_interval, all_models=n_models)
        tables.append(_table("95 % intervals", correlations, intervals))
    if any(cell.difference for cell in correlations.cells):
        title = "Difference to the best (rho x 100, with interval)"
        tables.append(_table(title, correlations, _format_difference))
    left_out = [f"Excluded: {line}." for line in correlations.left_out]
    notes = [*_explanations(form), *_undefined_notes(correlations), *left_out]
    return [replace(table, notes=notes) for table in tables]


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


def _table(
    title: str, correlations: Correlations, cell_of: Callable[[CorrelationCell], Cell]
) -> ResultTable:
    columns = [
        Column("task", "task"),
        Column("score", "score"),
        *(Column(column.label, column.label) for column in correlations.downstream),
    ]
    width = len(correlations.intrinsic)
    rows: list[list[Cell]] = [[column.task, column.label] for column in correlations.intrinsic]
    for index, cell in enumerate(correlations.cells):
        rows[index % width].append(cell_of(cell))
    return ResultTable(columns, rows, title=title)


def _value_cell(cell: CorrelationCell) -> Cell:
    value = cell.rho.value
    if math.isnan(value):
        return "undefined"
    return NumberText(f"{100 * value:.2f}", value, EMPHASIS[cell.rank])


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
