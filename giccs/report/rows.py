"""Results as one long CSV table with one row per number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bws.base.rows import csv_text
from bws.stats.estimates import Estimate
from giccs.measures.results import (
    Limits,
    Result,
    ceiling_of,
    data_of,
    history_of,
    model_of,
    setting_of,
)
from giccs.report.pairs import CEILING_LABEL, LIMIT_LABELS, NO_LIMITS
from giccs.tasks import result_kind

HEADER = [
    "model", "task", "data", "history", "part", "metric",
    "value", "low", "high", "n", "reason", "stderr", "p", "setting",
]  # fmt: skip


def long_csv(
    results: Sequence[Result],
    ceiling: Mapping[str, Estimate] | None = None,
    limits: Limits = NO_LIMITS,
) -> str:
    """Return one row per number, with task, data, group and interval.

    Noise ceiling and limits are last, once for each task and data set to which they apply.
    """
    rows = long_rows(results, ceiling, limits)
    return csv_text((["" if cell != cell else cell for cell in row] for row in rows), HEADER)


def long_rows(
    results: Sequence[Result],
    ceiling: Mapping[str, Estimate] | None = None,
    limits: Limits = NO_LIMITS,
) -> list[list[object]]:
    """Return one row of `HEADER` per number, see `long_csv`."""
    rows: list[list[object]] = []
    ceiling_rows: dict[tuple[str, str], list[list[object]]] = {}
    for result in results:
        labels = (model_of(result), result.task, data_of(result), history_of(result))
        setting = setting_of(result)
        rows += _rows((*labels, ""), result.metrics, setting)
        for group in result.groups:
            part = ";".join(f"{name}={value}" for name, value in group.by.items())
            rows += _rows((*labels, part), group.metrics, setting)
        if result_kind(result.task).has_ceiling:
            labels = (result.task, data_of(result), "", "")
            of_data = {CEILING_LABEL: ceiling} | {
                label: limits[name]
                for name, label in LIMIT_LABELS.items()
                if ceiling_of(result, limits.get(name))
            }
            data_rows = [
                row
                for label, estimates in of_data.items()
                for row in _rows((label, *labels), ceiling_of(result, estimates), "")
            ]
            ceiling_rows.setdefault((result.task, data_of(result)), data_rows)
    return [*rows, *(row for dataset_rows in ceiling_rows.values() for row in dataset_rows)]


def _rows(
    labels: Sequence[str], metrics: Mapping[str, Estimate], setting: str
) -> Iterator[list[object]]:
    for name, e in metrics.items():
        extra_numbers = [e.extra.get(key, math.nan) for key in ("stderr", "p")]
        yield [*labels, name, e.value, e.low, e.high, e.n, e.reason, *extra_numbers, setting]
