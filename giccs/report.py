"""Results as tables: for the terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from giccs.metrics import Estimate
from giccs.results import Result

__all__ = ["FORMATS", "breakdown_table", "long_csv", "main_table", "report"]

FORMATS = {"table": "simple", "markdown": "github", "latex": "latex_booktabs"}
"""Our name of a format -> tabulate's; csv has a writer of its own."""
TITLES = {
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "rank_spearman": "ρ inside dialogues",
}
BROKEN_DOWN = "spearman"


def report(results: Sequence[Result], form: str) -> str:
    """Return all tables in a format of `FORMATS`, or one long ``csv``.

    A table a task and data set, best model first; then its main metric by length, source and domain.
    """
    if form == "csv":
        return long_csv(results)
    parts: list[str] = []
    for asked in dict.fromkeys(map(_asked, results)):
        chosen = [result for result in results if _asked(result) == asked]
        title = f"{chosen[0].task} on {_data(chosen[0])}"
        parts += [f"{_heading(title, form)}\n", main_table(chosen, form)]
        if broken_down := breakdown_table(chosen, form):
            subtitle = f"{TITLES[BROKEN_DOWN]} by part of the data"
            parts += [f"\n{_heading(subtitle, form)}\n", broken_down]
        parts += _reasons(chosen)
    return "\n".join(parts)


def main_table(results: Sequence[Result], form: str = "table") -> str:
    """Return a row a result: each metric with its 95 % interval, best Spearman first."""
    names = [name for name in TITLES if any(name in result.metrics for result in results)]
    rows = [
        [
            *_name_of(result),
            *(_interval(result.metrics[name]) for name in names),
            max(estimate.n for estimate in result.metrics.values()),
        ]
        for result in sorted(results, key=_best_first)
    ]
    headers = ["model", "history", *(f"{TITLES[name]} [95 %]" for name in names), "items"]
    return _tabulated(rows, headers, form)


def breakdown_table(results: Sequence[Result], form: str = "table") -> str:
    """Return Spearman's rho a part of the data (rows) and model (columns); empty without parts."""
    ordered = sorted(results, key=_best_first)
    parts = {tuple(group.by.items()): None for result in ordered for group in result.groups}
    rows = []
    for part in parts:
        cells = [_of_part(result, part) for result in ordered]
        sizes = [cell.n for cell in cells if cell]
        label = ", ".join(f"{name}={value}" for name, value in part)
        shown = [_interval(cell, decimals=2) if cell else "" for cell in cells]
        rows.append([label, max(sizes), *shown])
    headers = ["part", "items", *(_column_of(result) for result in ordered)]
    return _tabulated(rows, headers, form) if rows else ""


def long_csv(results: Sequence[Result]) -> str:
    """Return a row a number: what was measured, on what part of which data, with its interval."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "model",
            "task",
            "data",
            "history",
            "part",
            "metric",
            "value",
            "low",
            "high",
            "n",
            "reason",
        ]
    )
    for result in results:
        parts = [("", result.metrics)] + [
            (";".join(f"{name}={value}" for name, value in group.by.items()), group.metrics)
            for group in result.groups
        ]
        for part, metrics in parts:
            for name, e in metrics.items():
                place = [result.model, result.task, _data(result), _history(result), part, name]
                writer.writerow([*place, *map(_cell, (e.value, e.low, e.high)), e.n, e.reason])
    return out.getvalue()


def _best_first(result: Result) -> tuple[float, str, str]:
    value = result.metrics[BROKEN_DOWN].value
    return (math.inf if math.isnan(value) else -value, result.model, _history(result))


def _asked(result: Result) -> tuple[str, str]:
    """Return what results must share to stand in one table."""
    return result.task, str(result.signature.get("data", ""))


def _data(result: Result) -> str:
    return str(result.environment.get("data", "unknown data"))


def _history(result: Result) -> str:
    return str(result.signature.get("history", ""))


def _name_of(result: Result) -> tuple[str, str]:
    return result.model, _history(result)


def _column_of(result: Result) -> str:
    return result.model if _history(result) != "with" else f"{result.model} (with history)"


def _of_part(result: Result, part: tuple[tuple[str, Any], ...]) -> Estimate | None:
    for group in result.groups:
        if tuple(group.by.items()) == part:
            return group.metrics.get(BROKEN_DOWN)
    return None


def _interval(estimate: Estimate, decimals: int = 3) -> str:
    if math.isnan(estimate.value):
        return "not defined"
    value, low, high = (
        f"{number:.{decimals}f}" for number in (estimate.value, estimate.low, estimate.high)
    )
    return value if math.isnan(estimate.low) else f"{value} [{low}, {high}]"


def _cell(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def _reasons(results: Sequence[Result]) -> list[str]:
    """Return a line for each number of the main table that is missing or leaves something out."""
    return [
        f"{result.model}: {TITLES.get(name, name)}: {estimate.reason}"
        for result in results
        for name, estimate in result.metrics.items()
        if estimate.reason
    ]


def _heading(text: str, form: str) -> str:
    return {"markdown": f"### {text}", "latex": f"% {text}"}.get(form, text)


def _tabulated(rows: Sequence[Sequence[Any]], headers: Sequence[str], form: str) -> str:
    from tabulate import tabulate

    return str(tabulate(rows, headers, tablefmt=FORMATS[form], disable_numparse=True))
