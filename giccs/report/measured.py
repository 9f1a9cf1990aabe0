"""Results of any other task as tables: every metric with its interval, then the parts of the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from giccs.metrics import Estimate
from giccs.report.cells import heading, interval, remarks, tabulated
from giccs.report.place import setting_of
from giccs.results import Result

__all__ = ["measured"]

TITLES = {
    "pearson": "Pearson r",
    "spearman": "Spearman ρ",
    "pair_accuracy": "pairs in order",
    "invalid": "invalid answers",
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@10": "Hits@10",
    "mean_rank": "mean rank",
}
LOWER_IS_BETTER = frozenset(["alignment", "invalid", "mean_rank", "uniformity"])


def measured(results: Sequence[Result], form: str) -> list[str]:
    """Return the tables of one task and data set: a row a model and setting, best first metric first."""
    main = next(iter(results[0].metrics))
    ordered = sorted(results, key=lambda result: _best_first(result, main))
    parts = [_metrics_table(ordered, form)]
    if broken_down := _parts_table(ordered, main, form):
        subtitle = f"{TITLES.get(main, main)} by part of the data"
        parts += [f"\n{heading(subtitle, form)}\n", broken_down]
    said = [*_reasons(ordered)]
    return [*parts, "", *remarks(said, form)] if said else parts


def _metrics_table(results: Sequence[Result], form: str) -> str:
    names = list(dict.fromkeys(name for result in results for name in result.metrics))
    rows = [
        [
            result.model,
            setting_of(result),
            *(_cell(result.metrics.get(name)) for name in names),
            max(estimate.n for estimate in result.metrics.values()),
        ]
        for result in results
    ]
    titles = [f"{TITLES.get(name, name)} [95 %]" for name in names]
    return tabulated(rows, ["model", "setting", *titles, "n"], form)


def _parts_table(results: Sequence[Result], main: str, form: str) -> str:
    """Return the main metric a part of the data (rows) and model (columns); empty without parts."""
    cells: dict[str, dict[int, Estimate]] = {}
    for column, result in enumerate(results):
        for group in result.groups:
            if main in group.metrics:
                label = ", ".join(f"{name}={value}" for name, value in group.by.items())
                cells.setdefault(label, {})[column] = group.metrics[main]
    rows: list[list[Any]] = [
        [
            label,
            max(estimate.n for estimate in found.values()),
            *(_cell(found.get(column), decimals=2) for column in range(len(results))),
        ]
        for label, found in cells.items()
    ]
    headers = ["part", "n", *(_column(result) for result in results)]
    return tabulated(rows, headers, form) if rows else ""


def _column(result: Result) -> str:
    return f"{result.model} ({setting_of(result)})" if setting_of(result) else result.model


def _cell(estimate: Estimate | None, decimals: int = 3) -> str:
    """Return a number with its interval; where it is a mean over seeds, their standard deviation too."""
    if estimate is None:
        return ""
    sd = estimate.extra.get("sd")
    shown = interval(estimate, decimals)
    return shown if sd is None else f"{shown}, SD {sd:.{decimals}f}"


def _best_first(result: Result, main: str) -> tuple[float, str, str]:
    value = _value(result.metrics, main)
    order = value if main in LOWER_IS_BETTER else -value
    return (math.inf if math.isnan(value) else order, result.model, setting_of(result))


def _value(metrics: Mapping[str, Estimate], name: str) -> float:
    return metrics[name].value if name in metrics else math.nan


def _reasons(results: Sequence[Result]) -> list[str]:
    """Return a line for each number of the first table that is missing or leaves something out."""
    return [
        f"{_column(result)}: {TITLES.get(name, name)}: {estimate.reason}"
        for result in results
        for name, estimate in result.metrics.items()
        if estimate.reason
    ]
