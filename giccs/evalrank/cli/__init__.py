"""giccs evalrank: ranking data, and correlation of intrinsic and downstream scores; commands load lazily."""

from __future__ import annotations

from bws.base.interrupts import handle_interrupts

handle_interrupts()  # before anything else is imported

from bws.base.commands import group  # noqa: E402

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "build": "giccs.evalrank.cli.build:build",
    "correlate": "giccs.evalrank.cli.correlate:correlate",
    "levels": "giccs.evalrank.cli.levels:levels",
}
"""Import path by command name."""

EXAMPLE = """
giccs evalrank build ratings.csv -o ranking
giccs evalrank build evalrank --preset words -o words
giccs evalrank levels results -o levels.svg
giccs evalrank correlate results
"""


@group("giccs evalrank", COMMANDS, EXAMPLE)
def main() -> None:
    """EvalRank: build ranking data, and correlate intrinsic scores with downstream accuracy."""
