"""Results as one long CSV: a row a number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bws.textio import csv_text
from giccs.measures.formatting import number
from giccs.measures.metrics import Estimate
from giccs.measures.results import (
    Result,
    ceiling_of,
    data_of,
    history_of,
    model_of,
    setting_of,
)
from giccs.report.pairs import CEILING
from giccs.tasks import result_kind

__all__ = ["long_csv"]

HEADER = [
    "model", "task", "data", "history", "part", "metric",
    "value", "low", "high", "n", "reason", "stderr", "p", "setting",
]  # fmt: skip


def long_csv(results: Sequence[Result], ceiling: Mapping[str, Estimate] | None = None) -> str:
    """Return a row a number: what was measured, on what part of which data, with its interval.

    The noise ceiling comes last, once a task and data set that it is of.
    """
    rows: list[list[object]] = []
    of_ceiling: dict[tuple[str, str], list[list[object]]] = {}
    for result in results:
        place = (model_of(result), result.task, data_of(result), history_of(result))
        setting = setting_of(result)
        rows += _rows((*place, ""), result.metrics, setting)
        for group in result.groups:
            part = ";".join(f"{name}={value}" for name, value in group.by.items())
            rows += _rows((*place, part), group.metrics, setting)
        if result_kind(result.task).has_ceiling:
            found = ceiling_of(result, ceiling)
            rows_of = _rows((CEILING, result.task, data_of(result), "", ""), found, "")
            of_ceiling.setdefault((result.task, data_of(result)), [*rows_of])
    return csv_text([*rows, *(row for found in of_ceiling.values() for row in found)], HEADER)


def _rows(
    place: Sequence[str], metrics: Mapping[str, Estimate], setting: str
) -> Iterator[list[object]]:
    for name, e in metrics.items():
        numbers = [number(value) for value in (e.value, e.low, e.high)]
        more = [number(e.extra.get(key, math.nan)) for key in ("stderr", "p")]
        yield [*place, name, *numbers, e.n, e.reason, *more, setting]
