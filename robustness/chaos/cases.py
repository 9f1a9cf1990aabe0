"""Cases of the campaign, their selection and their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

MODULES = tuple(
    f"robustness.chaos.{name}"
    for name in ("study", "requester", "databases", "files", "results", "engines")
)


class PromiseBrokenError(Exception):
    """A promise was broken; the message states what happened instead."""


def no_requirements() -> str:
    """Return no problem: a case without requirements."""
    return ""


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, its target, the promised behaviour, and the function that tests it."""

    fault: str
    target: str
    promise: str
    run: Callable[[Path], str]
    """Takes an empty folder; returns a short description of what happened, or raises PromiseBrokenError.

    Runs in a separate process with private mounts, whose descendants are killed at its end.
    """
    needs: Callable[[], str] = no_requirements
    """Returns the missing requirement of the case; empty if none."""


@dataclass(frozen=True, slots=True)
class CaseRef:
    """A case with the module and index by which another process imports it."""

    module: str
    number: int
    case: Case


def select_cases(only: str = "", modules: Sequence[str] = MODULES) -> list[CaseRef]:
    """Return the cases whose fault, target or promise contains `only` (case-insensitive)."""
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
    """Outcome of a case."""

    fault: str
    where: str
    promise: str
    state: State
    told: str
    """What happened, what was broken, or the missing requirement."""
    seconds: float


def markdown(outcomes: Sequence[Outcome]) -> str:
    """Format the outcomes as a Markdown table: fault, where, promise, outcome."""
    rows = [
        (outcome.fault, outcome.where, outcome.promise, f"**{outcome.state}**: {outcome.told}")
        for outcome in outcomes
    ]
    head = [("fault", "where", "promise", "outcome"), ("---",) * 4]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in [*head, *rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def summary(outcomes: Sequence[Outcome]) -> str:
    """Summarise the outcomes in a sentence."""
    states = Counter(outcome.state for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return (
        f"{len(outcomes)} cases: {states['kept']} kept, {states['BROKEN']} broken, "
        f"{states['not run']} not run; {seconds:.0f} s."
    )
