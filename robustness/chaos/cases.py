"""What a case of the campaign is, where the cases are, and what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

__all__ = [
    "MODULES",
    "Case",
    "CaseRef",
    "Outcome",
    "PromiseBrokenError",
    "State",
    "markdown",
    "no_requirements",
    "select_cases",
    "summary",
]

MODULES = tuple(
    f"robustness.chaos.{name}"
    for name in ("study", "requester", "databases", "files", "results", "engines")
)


class PromiseBrokenError(Exception):
    """A promise was not kept; the message says what happened instead, in a sentence."""


def no_requirements() -> str:
    """Say that a case needs nothing that could be missing."""
    return ""


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, where it strikes, what is promised, and the function that tries it."""

    fault: str
    target: str
    promise: str
    run: Callable[[Path], str]
    """Takes an empty folder of its own; returns what happened, in a short sentence; raises Broken.

    It runs in a process of its own, whose mounts nobody else sees and whose descendants end with it.
    """
    needs: Callable[[], str] = no_requirements
    """Returns why the case cannot be had here; empty where it can."""


@dataclass(frozen=True, slots=True)
class CaseRef:
    """A case, and where another process finds it."""

    module: str
    number: int
    case: Case


def select_cases(only: str = "", modules: Sequence[str] = MODULES) -> list[CaseRef]:
    """Return the cases of the modules whose fault, place or promise contains `only`, in any case."""
    refs = [
        CaseRef(module, number, case)
        for module in modules
        for number, case in enumerate(import_module(module).CASES)
    ]
    return [
        ref
        for ref in refs
        if only.lower() in f"{ref.case.fault} {ref.case.target} {ref.case.promise}".lower()
    ]


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
    rows = [
        (outcome.fault, outcome.where, outcome.promise, f"**{outcome.state}**: {outcome.told}")
        for outcome in outcomes
    ]
    head = [("fault", "where", "promise", "outcome"), ("---",) * 4]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in [*head, *rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return how many promises were kept, in a sentence."""
    states = Counter(outcome.state for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return (
        f"{len(outcomes)} cases: {states['kept']} kept, {states['BROKEN']} broken, "
        f"{states['not run']} not run; {seconds:.0f} s."
    )
