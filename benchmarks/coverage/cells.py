"""Cells of the coverage simulation: setting, simulated study, summary and its row in a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HOLDS = (0.92, 0.98)
"""An interval holds if the 95 % interval of its estimated coverage lies inside this range."""
Z = 1.96
FAILURES = ("too narrow", "too wide", "not as required")
"""Verdicts that fail; with a note they do not."""
MOSTLY_NOTED = 0.8
"""Share of studies with a note from which those without it may excuse the others."""
NOTED = 0.99
"""Share of studies with a note from which all studies of a cell count as noted."""


@dataclass(frozen=True)
class SimulatedStudy:
    """A simulated study: numbers of printed intervals and of those that contain the true value."""

    covered: int
    intervals: int
    """Number of printed intervals; 0 if the command refused them."""
    warned: bool = False
    """Whether the command printed a note or refused the intervals."""
    bias: float = math.nan
    """Estimate minus the true value; NaN if not measured."""
    width: float = math.nan
    """Width of the interval, relative to that without a model where there is one; NaN if not measured."""


@dataclass(frozen=True)
class Cell:
    """A setting, with studies simulated from the seeds 0, 1, 2, ..."""

    statement: str
    """Command and method of the interval: ``giccs score, counting``."""
    setting: Mapping[str, Any]
    """Settings of the study, one table column each: ``{"annotators": 5, "tastes": 0.5}``."""
    simulate: Callable[[int], SimulatedStudy] = field(compare=False)
    """Function from a seed to a study; must be picklable."""
    required: tuple[float, float] | None = None
    """Required range of a share that is not the coverage of 95 % intervals, such as a power."""
    studies: int = 0
    """Number of studies; 0: that of the whole simulation."""


def verdict(
    share: float,
    error: float,
    noted: float,
    required: tuple[float, float] | None = None,
    unnoted: tuple[float, float] = (math.nan, math.nan),
) -> str:
    """Return the verdict on a coverage, or on another share with a required range.

    unnoted: coverage of the studies without a note and its standard error, if some studies have a note.

    >>> verdict(0.95, 0.01, 0), verdict(0.94, 0.012, 1), verdict(0.9, 0.01, 1), verdict(0.99, 0.002, 0)
    ('holds', 'undecided, noted', 'too narrow, noted', 'too wide')
    >>> verdict(math.nan, math.nan, 1), verdict(0.96, 0.01, 0, (0.95, 1)), verdict(0.99, 0, 0, (0.95, 1))
    ('refused', 'undecided', 'as required')
    >>> [verdict(0.985, 0.002, noted, unnoted=(0.97, 0.01)) for noted in (0.9, 0.6)]
    ['too wide, noted', 'too wide']
    >>> verdict(0.985, 0.002, 0.9, unnoted=(0.9, 0.01))
    'too wide'
    """
    if math.isnan(share):
        return "refused"
    low, high = required or HOLDS
    margin = Z * error
    if low <= share - margin and min(share + margin, 1) <= high:
        word = "as required" if required else "holds"
    elif low <= share <= high:
        word = "undecided"
    elif required:
        word = "not as required"
    else:
        word = "too narrow" if share < low else "too wide"
    is_excused = (
        word in FAILURES
        and noted >= MOSTLY_NOTED
        and unnoted[0] + Z * unnoted[1] >= HOLDS[0]
        and unnoted[0] - Z * unnoted[1] <= HOLDS[1]
    )
    return word + (", noted" if noted >= NOTED or is_excused else "")


def share_covered(studies: Sequence[SimulatedStudy]) -> tuple[float, float]:
    """Return the share of intervals that contain the true value, and its standard error by study.

    NaN without intervals.
    """
    total = sum(study.intervals for study in studies)
    if not total:
        return math.nan, math.nan
    share = sum(study.covered for study in studies) / total
    squares = sum((study.covered - share * study.intervals) ** 2 for study in studies)
    return share, math.sqrt(squares) / total


@dataclass(frozen=True)
class Summary:
    """Summary of all studies of a cell."""

    cell: Cell
    studies: int
    coverage: float
    """Share of intervals that contain the true value; NaN without intervals."""
    error: float
    """Standard error of the coverage, clustered by study."""
    noted: float
    """Share of studies with a note or without intervals."""
    unnoted: tuple[float, float]
    """Coverage and standard error in the studies without a note, if both kinds are more than 1 %; else NaN.

    The standard error is at least that of a coverage of 98 %, for few studies that all contain the value.
    """
    bias: float
    width: float

    @classmethod
    def of(cls, cell: Cell, studies: list[SimulatedStudy]) -> Summary:
        """Summarise the studies of a cell."""
        unnoted = [study for study in studies if study.intervals and not study.warned]
        noted = 1 - len(unnoted) / len(studies)
        share, error = math.nan, math.nan
        if 1 - NOTED < noted < NOTED:
            share, error = share_covered(unnoted)
            error = max(error, math.sqrt(HOLDS[1] * (1 - HOLDS[1]) / len(unnoted)))
        return cls(
            cell,
            len(studies),
            *share_covered(studies),
            noted,
            (share, error),
            _mean([study.bias for study in studies]),
            _mean([study.width for study in studies]),
        )

    @property
    def verdict(self) -> str:
        """The verdict on the rounded numbers of `row`."""
        share, error, noted = round(self.coverage, 4), round(self.error, 4), round(self.noted, 2)
        return verdict(share, error, noted, self.cell.required, self.unnoted)

    @property
    def row(self) -> dict[str, str]:
        """The row of the table, by column; empty where not measured."""
        required = self.cell.required
        return {
            "statement": self.cell.statement,
            **{name: str(value) for name, value in self.cell.setting.items()},
            "coverage": _text(self.coverage, ".4f"),
            "error": _text(self.error, ".4f"),
            "required": "{}–{}".format(*required) if required else "",
            "studies": str(self.studies),
            "noted": f"{self.noted:.2f}",
            "unnoted_coverage": _text(self.unnoted[0], ".4f"),
            "unnoted_error": _text(self.unnoted[1], ".4f"),
            "bias": _text(self.bias, "+.4f"),
            "width": _text(self.width, ".3f"),
            "verdict": self.verdict,
        }


def _text(value: float, form: str) -> str:
    return "" if math.isnan(value) else format(value, form)


def _mean(values: list[float]) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
