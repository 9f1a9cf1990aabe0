"""How commands that print tables are told their form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["format_option"]


def format_option(said: str | None = None) -> Callable[[Any], Any]:
    """Return the option ``--format``, which a command takes as `form`; `said` is its help."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["table", "markdown", "latex", "csv"]),
        default="table",
        show_default=True,
        help=said,
    )
