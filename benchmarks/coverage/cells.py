"""A cell of the coverage simulation: a setting, its study, and what came of many."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Cell", "SimulatedStudy", "Summary"]

ALLOWED = (0.93, 0.97)


@dataclass(frozen=True)
class SimulatedStudy:
    """One simulated study: how many intervals it printed, and how many of them hold the true value."""

    covered: int
    intervals: int
    """Intervals that were printed; 0 where the command refused them."""
    warned: bool = False
    """Whether the command warned of the intervals or refused them."""
    bias: float = math.nan
    """Estimate less the truth, where the cell measures that."""


@dataclass(frozen=True)
class Cell:
    """A setting, of which studies are simulated from seeds 0, 1, 2, ..."""

    statement: str
    """What prints the interval: ``bws-score, counting``."""
    setting: Mapping[str, Any]
    """What the study is like: ``{"annotators": 5, "tastes": 0.5}``; a column each."""
    simulate: Callable[[int], SimulatedStudy] = field(compare=False)
    """From a seed to a study; a function of a module, or a `functools.partial` of one (it is pickled)."""
    allowed: tuple[float, float] = ALLOWED
    """Coverage with which the cell holds; of another share than coverage, what is planned."""
    studies: int = 0
    """Number of studies where it is not the one of the whole simulation."""


@dataclass(frozen=True)
class Summary:
    """All studies of a cell."""

    cell: Cell
    studies: int
    coverage: float
    """Share of the intervals that hold the true value; NaN where none was printed."""
    error: float
    """Standard error of the coverage, the intervals of a study as one cluster."""
    warned: float
    """Share of the studies with a warning or without intervals."""
    bias: float

    @classmethod
    def of(cls, cell: Cell, studies: list[SimulatedStudy]) -> Summary:
        """Count the intervals of the studies that cover."""
        total = sum(study.intervals for study in studies)
        coverage = sum(study.covered for study in studies) / total if total else math.nan
        squares = sum((study.covered - coverage * study.intervals) ** 2 for study in studies)
        biases = [study.bias for study in studies if not math.isnan(study.bias)]
        return cls(
            cell,
            len(studies),
            coverage,
            math.sqrt(squares) / total if total else math.nan,
            sum(study.warned or not study.intervals for study in studies) / len(studies),
            sum(biases) / len(biases) if biases else math.nan,
        )

    @property
    def verdict(self) -> str:
        """Say whether the intervals cover as stated, or the command says that they may not."""
        low, high = self.cell.allowed
        if math.isnan(self.coverage):
            return "refused"
        if low - 2 * self.error <= self.coverage <= high + 2 * self.error:
            return "holds"
        return "warns" if self.warned >= 0.99 else "FAILS"
