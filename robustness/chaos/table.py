"""The outcomes of a campaign, as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Outcome", "State", "markdown", "summary"]

State = Literal["kept", "BROKEN", "not run"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case."""

    fault: str
    where: str
    promise: str
    state: State
    told: str
    """What happened, what was broken, or why it was not run."""
    seconds: float


def markdown(outcomes: Sequence[Outcome]) -> str:
    """Return the table: fault, where, promise, outcome."""
    rows = [(one.fault, one.where, one.promise, f"**{one.state}**: {one.told}") for one in outcomes]
    head = [("fault", "where", "promise", "outcome"), ("---",) * 4]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in [*head, *rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return how many promises were kept, in a sentence."""
    states = Counter(one.state for one in outcomes)
    seconds = sum(one.seconds for one in outcomes)
    return (
        f"{len(outcomes)} cases: {states['kept']} kept, {states['BROKEN']} broken, "
        f"{states['not run']} not run; {seconds:.0f} s."
    )
