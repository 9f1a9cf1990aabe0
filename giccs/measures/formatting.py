"""Text of estimates: value, interval, standard error, and remarks from the reason."""

from __future__ import annotations

import math
from collections.abc import Iterable

from bws.base.notes import pattern
from bws.base.tables import limits_text
from bws.stats.clusters import FEW, TOO_FEW
from bws.stats.estimates import Estimate
from giccs.measures.metrics import SELECTED_KEY

SELECTED_REMARK = "* selected by this score: optimistic for new data"
"""Explanation of the mark of `interval`."""


def interval(estimate: Estimate, decimals: int = 3) -> str:
    """Return ``value [low, high]``; with a dash for missing limits.

    A metric used for selection is marked with ``*``.

    >>> interval(Estimate(0.5, 0.25, 0.75, 10), decimals=2)
    '0.50 [0.25, 0.75]'
    >>> interval(Estimate(0.5, math.nan, math.nan, 2))
    '0.500 [–]'
    """
    if math.isnan(estimate.value):
        return "undefined"
    mark = "*" if SELECTED_KEY in estimate.extra else ""
    return f"{estimate.value:.{decimals}f} {limits(estimate, decimals)}{mark}"


def limits(estimate: Estimate, decimals: int = 3) -> str:
    """Return ``[low, high]``, or a dash in brackets without an interval."""
    return limits_text(estimate, f".{decimals}f")


def value_and_limits(estimate: Estimate, decimals: int = 3) -> tuple[str, str]:
    """Return the value and ``low to high`` for two columns; with a dash for missing limits.

    >>> value_and_limits(Estimate(0.5, 0.25, 0.75, 10), decimals=2)
    ('0.50', '0.25 to 0.75')
    >>> value_and_limits(Estimate(0.5, math.nan, math.nan, 2))
    ('0.500', '–')
    """
    low, high = (f"{limit:.{decimals}f}" for limit in (estimate.low, estimate.high))
    value = "undefined" if math.isnan(estimate.value) else f"{estimate.value:.{decimals}f}"
    return value, "–" if math.isnan(estimate.low) else f"{low} to {high}"


def few_clusters_note(estimates: Iterable[Estimate | None]) -> list[str]:
    """Return the reason for intervals missing due to too few clusters, and a warning about few clusters.

    One line per minimum number and for the warning; empty if all intervals are from enough clusters.

    >>> few = Estimate(0.5, math.nan, math.nan, 9, "1 excluded; 2 dialogues: no interval, which needs 5")
    >>> few_clusters_note([few, few]), other_reasons(few)
    (['[–]: 2 dialogues: no interval, which needs 5'], '1 excluded')
    """
    reasons = dict.fromkeys(e.reason for e in estimates if e is not None)
    lines = []
    for template, mark in ((TOO_FEW, "[–]: "), (FEW, "")):
        counts: dict[str, dict[str, None]] = {}
        for reason in reasons:
            for found in pattern(template).finditer(reason):
                count, _, remark = found[0].partition(": ")
                counts.setdefault(remark, {})[count] = None
        lines += [f"{mark}{', '.join(counts[remark])}: {remark}" for remark in sorted(counts)]
    return lines


def other_reasons(estimate: Estimate) -> str:
    """Return the reason of an estimate without the part reported by `few_clusters_note`."""
    parts = estimate.reason.split("; ")
    return "; ".join(p for p in parts if not any(pattern(t).search(p) for t in (TOO_FEW, FEW)))


def plus_minus(estimate: Estimate | None, decimals: int = 3) -> str:
    """Return ``value ± stderr``; empty without an estimate."""
    if estimate is None:
        return ""
    stderr = estimate.extra.get("stderr", math.nan)
    error = "" if math.isnan(stderr) else f" ± {stderr:.{decimals}f}"
    return "undefined" if math.isnan(estimate.value) else f"{estimate.value:.{decimals}f}{error}"


def number(value: float) -> str:
    """Return a number for CSV with full precision; empty for NaN."""
    return "" if math.isnan(value) else repr(value)
