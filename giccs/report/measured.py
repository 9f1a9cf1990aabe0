"""Tables of results of other tasks: all metrics with intervals, followed by breakdowns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from bws.base.notes import note
from bws.base.tables import Cell, Column, NumberText, ResultTable, keyed_columns, part_name
from bws.stats.estimates import Estimate
from giccs.measures.formatting import few_clusters_note, interval, other_reasons
from giccs.measures.metrics import LOWER_IS_BETTER_METRICS, SELECTED_KEY
from giccs.measures.results import Result, model_of, setting_of
from giccs.report.metric_titles import metric_title
from giccs.report.pairs import result_warnings


def metric_tables(results: Sequence[Result], main_metric: str = "") -> list[ResultTable]:
    """Return the tables of one task and data set: one row per model and setting, best first.

    main_metric: the metric that ranks the models; empty for the first one.
    """
    main_metric = main_metric or next(iter(results[0].metrics))
    ordered = sorted(results, key=lambda result: _sort_key(result, main_metric))
    subsets = _subsets_table(ordered, main_metric)
    estimates = [estimate for result in ordered for estimate in result.metrics.values()]
    estimates += [
        g.metrics[main_metric]
        for result in ordered
        for g in result.groups
        if main_metric in g.metrics
    ]
    notes = [
        *_reasons(ordered, main_metric),
        *few_clusters_note(estimates),
        *_tie_remarks(ordered, main_metric),
    ]
    tables = [_metrics_table(ordered), *([subsets] if subsets else [])]
    return [replace(table, notes=notes) for table in tables]


def _metrics_table(results: Sequence[Result]) -> ResultTable:
    names = list(dict.fromkeys(name for result in results for name in result.metrics))
    rows = [
        [
            model_of(result),
            setting_of(result),
            *(_cell(result.metrics.get(name)) for name in names),
            max(estimate.size for estimate in result.metrics.values()),
        ]
        for result in results
    ]
    has_sets = any("set" in group.by for result in results for group in result.groups)
    size = "sets" if has_sets else "n"
    metrics = [
        Column(name, f"{metric_title(name)} [95 %]", ".3f", best=_best(name)) for name in names
    ]
    labels = [Column("model", "model"), Column("setting", "setting")]
    return ResultTable([*labels, *metrics, Column(size, size)], rows)


def _best(metric: str) -> Literal["max", "min"]:
    return "min" if metric in LOWER_IS_BETTER_METRICS else "max"


def _subsets_table(results: Sequence[Result], main_metric: str) -> ResultTable | None:
    """Return the main metric by group and model, in the narrower orientation; None without groups.

    If models have different n for a group, the smaller n are shown with their numbers.
    """
    cells: dict[str, dict[int, Estimate]] = {}
    for index, result in enumerate(results):
        for group in result.groups:
            if main_metric in group.metrics:
                cells.setdefault(part_name(group.by), {})[index] = group.metrics[main_metric]
    if not cells:
        return None
    size = {
        part: max(estimate.size for estimate in estimates.values())
        for part, estimates in cells.items()
    }
    rows = [
        [_cell(estimates.get(index), 2, size[part]) for index in range(len(results))]
        for part, estimates in cells.items()
    ]
    models = [_column_title(result) for result in results]
    title = f"{metric_title(main_metric)} by group"
    best = _best(main_metric)
    by_part = ResultTable(
        [
            Column("subset", "subset"),
            Column("n", "n"),
            *keyed_columns(models, best=best),
        ],
        [[part, size[part], *row] for part, row in zip(cells, rows, strict=True)],
        title=title,
        compares_rows=True,
    )
    by_model = ResultTable(
        [
            Column("model", "model"),
            *keyed_columns((f"{part} (n={size[part]})" for part in cells), best=best),
        ],
        [[model, *column] for model, column in zip(models, zip(*rows, strict=True), strict=True)],
        title=title,
    )
    return min(by_part, by_model, key=ResultTable.width)


def _column_title(result: Result) -> str:
    return f"{model_of(result)} ({setting_of(result)})" if setting_of(result) else model_of(result)


def _cell(estimate: Estimate | None, decimals: int = 3, n: int | None = None) -> Cell:
    """Return a number with its interval, and for a mean over seeds with their standard deviation.

    n: the usual sample size; a number with a smaller one shows it.
    """
    if estimate is None:
        return None
    sd = estimate.extra.get("sd")
    text = interval(estimate, decimals) + ("" if sd is None else f", SD {sd:.{decimals}f}")
    suffix = "" if n is None or estimate.n == n else f" n={estimate.n}"
    return NumberText(f"{text}{suffix}", estimate.value)


def _sort_key(result: Result, main_metric: str) -> tuple[float, str, str]:
    value = _value(result.metrics, main_metric)
    order = value if main_metric in LOWER_IS_BETTER_METRICS else -value
    return (math.inf if math.isnan(value) else order, model_of(result), setting_of(result))


def _value(metrics: Mapping[str, Estimate], name: str) -> float:
    return metrics[name].value if name in metrics else math.nan


def _reasons(results: Sequence[Result], main_metric: str) -> list[str]:
    """Return one line per result and reason for missing numbers and exclusions.

    For breakdowns, only groups without a number or with a mark are listed.
    """
    names_of_reason: dict[tuple[str, str], list[str]] = {}
    for result in results:
        overall = [(metric_title(name), estimate) for name, estimate in result.metrics.items()]
        parts = [(part_name(group.by), group.metrics.get(main_metric)) for group in result.groups]
        remarkable_parts = [
            (part, estimate)
            for part, estimate in parts
            if estimate and (math.isnan(estimate.value) or SELECTED_KEY in estimate.extra)
        ]
        for name, estimate in [*overall, *remarkable_parts]:
            if reason := other_reasons(estimate):
                names_of_reason.setdefault((_column_title(result), reason), []).append(name)
    lines = [
        f"{model}: {', '.join(names)}: {reason}"
        for (model, reason), names in names_of_reason.items()
    ]
    return lines + [
        f"{_column_title(result)}: {warning}"
        for result in results
        for warning in result_warnings(result)
    ]


def _tie_remarks(results: Sequence[Result], main_metric: str) -> Iterator[str]:
    """Yield remarks on the value of a metric if all ties were counted against it."""
    for result in results:
        estimate = result.metrics.get(main_metric)
        if estimate and "pessimistic" in estimate.extra and (ties := estimate.extra.get("ties")):
            remark = note(
                "{n:d} of {total:d} have ties; {metric} with all ties counted against it: {value:.3f}",
                n=ties,
                total=estimate.n,
                metric=metric_title(main_metric),
                value=estimate.extra["pessimistic"],
            )
            yield f"{_column_title(result)}: {remark}"
        if copies := result.environment.get("own_copy_above"):
            remark = note("{n:d} positives rank below their own copy", n=copies)
            yield f"{_column_title(result)}: {remark}"
