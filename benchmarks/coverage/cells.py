"""Cells of the coverage simulation: setting, simulated study and summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ALLOWED = (0.93, 0.97)
MAX_WIDTH = 1.02
"""Largest width of the interval relative to that without a model."""


@dataclass(frozen=True)
class SimulatedStudy:
    """A simulated study: numbers of printed intervals and of those that contain the true value."""

    covered: int
    intervals: int
    """Number of printed intervals; 0 if the command refused them."""
    warned: bool = False
    """Whether the command printed a warning or refused the intervals."""
    bias: float = math.nan
    """Estimate minus the true value; NaN if not measured."""
    width: float = math.nan
    """Width of the interval relative to that without a model; NaN if not measured."""


@dataclass(frozen=True)
class Cell:
    """A setting, with studies simulated from the seeds 0, 1, 2, ..."""

    statement: str
    """Command and method of the interval: ``bws-score, counting``."""
    setting: Mapping[str, Any]
    """Settings of the study, one table column each: ``{"annotators": 5, "tastes": 0.5}``."""
    simulate: Callable[[int], SimulatedStudy] = field(compare=False)
    """Function from a seed to a study; must be picklable."""
    allowed: tuple[float, float] = ALLOWED
    """Range of the coverage, or of another share, in which the cell passes."""
    studies: int = 0
    """Number of studies; None: that of the whole simulation."""


@dataclass(frozen=True)
class Summary:
    """Summary of all studies of a cell."""

    cell: Cell
    studies: int
    coverage: float
    """Share of intervals that contain the true value; NaN without intervals."""
    error: float
    """Standard error of the coverage, clustered by study."""
    warned: float
    """Share of studies with a warning or without intervals."""
    bias: float
    width: float

    @classmethod
    def of(cls, cell: Cell, studies: list[SimulatedStudy]) -> Summary:
        """Summarise the studies of a cell."""
        total = sum(study.intervals for study in studies)
        coverage = sum(study.covered for study in studies) / total if total else math.nan
        squares = sum((study.covered - coverage * study.intervals) ** 2 for study in studies)
        return cls(
            cell,
            len(studies),
            coverage,
            math.sqrt(squares) / total if total else math.nan,
            sum(study.warned or not study.intervals for study in studies) / len(studies),
            _mean([study.bias for study in studies]),
            _mean([study.width for study in studies]),
        )

    @property
    def verdict(self) -> str:
        """Verdict: whether coverage and width are in range, or the command warns."""
        low, high = self.cell.allowed
        if math.isnan(self.coverage):
            return "refused"
        if self.width > MAX_WIDTH:
            return "FAILS"
        if low - 2 * self.error <= self.coverage <= high + 2 * self.error:
            return "holds"
        return "warns" if self.warned >= 0.99 else "FAILS"


def _mean(values: list[float]) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
