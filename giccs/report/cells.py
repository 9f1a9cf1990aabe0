"""How a number, its interval and a table are written, in every format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from giccs.metrics import Estimate

__all__ = ["FORMATS", "heading", "interval", "number", "plus_minus", "remarks", "tabulated"]

FORMATS = {"table": "simple", "markdown": "github", "latex": "latex_booktabs"}
"""Our name of a format -> tabulate's; csv has a writer of its own."""


def interval(estimate: Estimate, decimals: int = 3) -> str:
    """Return ``value [low, high]``; the value alone where there is no interval.

    >>> interval(Estimate(0.5, 0.25, 0.75, 10), decimals=2)
    '0.50 [0.25, 0.75]'
    """
    if math.isnan(estimate.value):
        return "not defined"
    value, low, high = (
        f"{number:.{decimals}f}" for number in (estimate.value, estimate.low, estimate.high)
    )
    return value if math.isnan(estimate.low) else f"{value} [{low}, {high}]"


def plus_minus(estimate: Estimate | None, decimals: int = 3) -> str:
    """Return ``value ± stderr``; empty where there is no estimate."""
    if estimate is None:
        return ""
    stderr = estimate.extra.get("stderr", math.nan)
    error = "" if math.isnan(stderr) else f" ± {stderr:.{decimals}f}"
    return "not defined" if math.isnan(estimate.value) else f"{estimate.value:.{decimals}f}{error}"


def number(value: float) -> str:
    """Return a number for CSV: all its digits, nothing for NaN."""
    return "" if math.isnan(value) else repr(value)


def heading(text: str, form: str) -> str:
    """Return a heading in a format."""
    return {"markdown": f"### {text}", "latex": f"% {text}"}.get(form, text)


def remarks(lines: Sequence[str], form: str) -> list[str]:
    """Return lines that stand below a table; comments in LaTeX."""
    return [f"% {line}" for line in lines] if form == "latex" else list(lines)


def tabulated(rows: Sequence[Sequence[Any]], headers: Sequence[str], form: str) -> str:
    """Return a table in a format of `FORMATS`; what is in a cell is written as it is."""
    from tabulate import tabulate

    return str(tabulate(rows, headers, tablefmt=FORMATS[form], disable_numparse=True))
