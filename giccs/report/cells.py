"""How a table is written, in every format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = [
    "FORMATS",
    "heading",
    "remarks",
    "tabulated",
]

FORMATS = {"table": "simple", "markdown": "github", "latex": "latex_booktabs"}
"""Our name of a format -> tabulate's; csv has a writer of its own."""


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
