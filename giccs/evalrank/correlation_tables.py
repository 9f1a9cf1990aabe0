"""How are correlations of scores written? As the paper's Tables 3 and 6, intervals and differences below."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial

from bws.tables import heading, remarks, tabulated
from bws.textio import csv_text
from giccs.evalrank.correlating import Cell, Correlations
from giccs.measures.formatting import number
from giccs.measures.metrics import Estimate

__all__ = ["long_csv", "tables"]

MARKS = {0: "{}", 1: "«{}»", 2: "‹{}›"}
"""Place -> how a cell of the terminal's table is marked."""
MARKED = {
    "markdown": {"«": r"**\1**", "‹": r"<u>\1</u>"},
    "latex": {"«": r"\\textbf{\1}", "‹": r"\\underline{\1}"},
}
HEADER = [
    "intrinsic", "intrinsic_setting", "downstream", "downstream_setting",
    "spearman", "low", "high", "models", "families", "reason", "place",
    "behind_best", "behind_low", "behind_high", "behind_models", "behind_reason",
]  # fmt: skip


def tables(found: Correlations, form: str) -> str:
    """Return tables in a format of `bws.tables.FORMATS`: rho, its intervals, differences to the best."""
    size = f"{len(found.models)} models"
    title = f"Spearman's rho x 100 over {size}: intrinsic scores and downstream accuracy"
    parts = [_titled(title, form), _marked(_table(found, _value, form), form)]
    n_models = len(found.models)
    rhos = [cell.rho for cell in found.cells if not math.isnan(cell.rho.value)]
    if any(not math.isnan(rho.low) or rho.n != n_models for rho in rhos):
        intervals = partial(_interval, all_models=n_models)
        parts += [_titled("95 % intervals", form), _table(found, intervals, form)]
    if any(cell.behind for cell in found.cells):
        title = "How far behind the best (difference of rho x 100, with its interval)"
        parts += [_titled(title, form), _table(found, _behind, form)]
    left_out = [f"Left out: {line}." for line in found.left_out]
    parts += ["", *remarks([*_explained(form), *_reasons(found), *left_out], form)]
    return "\n".join(parts).lstrip("\n") + "\n"


def long_csv(found: Correlations) -> str:
    """Return a row a correlation; rho as it is, not times 100."""
    rows: list[list[object]] = []
    for cell in found.cells:
        x, y, rho = cell.intrinsic, cell.downstream, cell.rho
        families = rho.extra["families"]
        row = [x.address, x.setting, y.address, y.setting, *_numbers(rho), rho.n, families]
        behind = cell.behind
        more = [*_numbers(behind), behind.n, behind.reason] if behind else [""] * 5
        rows.append([*row, rho.reason, cell.place or "", *more])
    return csv_text(rows, HEADER)


def _numbers(estimate: Estimate) -> list[str]:
    return [number(value) for value in (estimate.value, estimate.low, estimate.high)]


def _titled(text: str, form: str) -> str:
    return f"\n{heading(text, form)}\n"


def _table(found: Correlations, written: Callable[[Cell], str], form: str) -> str:
    headers = ["task", "score", *(column.label for column in found.downstream)]
    width = len(found.intrinsic)
    rows: list[list[str]] = [[column.task, column.label] for column in found.intrinsic]
    for place, cell in enumerate(found.cells):
        rows[place % width].append(written(cell))
    return tabulated(rows, headers, form)


def _value(cell: Cell) -> str:
    if math.isnan(cell.rho.value):
        return "not defined"
    return MARKS[cell.place].format(f"{100 * cell.rho.value:.2f}")


def _marked(table: str, form: str) -> str:
    """Return a table with bold and underlined cells in place of marks, in the formats that have them."""
    for mark, closing in (("«", "»"), ("‹", "›")):
        if form in MARKED:
            table = re.sub(rf"{mark}(-?[\d.]+){closing}", MARKED[form][mark], table)
    return table


def _interval(cell: Cell, all_models: int) -> str:
    """Return the interval, and over how many models it is where that is not over all."""
    low, high, n = cell.rho.low, cell.rho.high, cell.rho.n
    shown = "–" if math.isnan(low) else f"[{100 * low:.0f}, {100 * high:.0f}]"
    return shown if n == all_models else f"{shown} n={n}"


def _behind(cell: Cell) -> str:
    one = cell.behind
    if one is None:
        return "best" if cell.place == 1 else ""
    if math.isnan(one.value):
        return "not defined"
    limits = " [–]" if math.isnan(one.low) else f" [{100 * one.low:.0f}, {100 * one.high:.0f}]"
    return f"{100 * one.value:.0f}{limits}"


def _explained(form: str) -> Sequence[str]:
    marks = {"table": "in «», second best in ‹›"}.get(form, "bold, second best underlined")
    return [
        f"Best of a column {marks}. Intervals: jackknife over families: a model with all its +STEP.",
        "A difference is over the models that have both scores; the best was chosen by these very models, "
        "so its lead is flattered.",
    ]


def _reasons(found: Correlations) -> list[str]:
    said: dict[str, int] = {}
    for cell in found.cells:
        if cell.rho.reason:
            said[cell.rho.reason] = said.get(cell.rho.reason, 0) + 1
    return [f"{count} correlations: {reason}" for reason, count in said.items()]
