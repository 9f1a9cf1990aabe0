"""Published values, recipes that compute them, and the state of each value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

from bws.stats.estimates import Estimate

Numbers = Mapping[str, Estimate | float]
"""Value by statistic."""


class State(StrEnum):
    """Whether a published value is reproduced."""

    EQUAL = "equal"
    """Equal to the last published digit."""
    INSIDE = "inside the interval"
    """Different, but inside the 95 % interval of the value by giccs."""
    DIFFERS = "differs"
    MISSING = "data not here"


@dataclass(frozen=True)
class Recipe:
    """Published values of one data set, and how giccs computes them."""

    data_set: str
    source: str
    """Publication of the values, as Markdown."""
    address: str
    """Where to get the data, as Markdown."""
    command: str
    """The command or the lines of Python for the values."""
    published: Mapping[str, str] | Callable[[Path], Mapping[str, str]]
    """Values by statistic, as printed; a function reads them from a file of the data."""
    compute: Callable[[Path], Numbers]
    """The folder of the data -> values by statistic."""
    files: Sequence[str] = ()
    """Paths in the folder of the data."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Regular expression of statistics -> reason why their values differ; the first match counts."""
    remarks: Sequence[str] = ()
    """Sentences below the table, as Markdown."""
    is_exact: bool = True
    """Whether all machines print the same digits. Otherwise, only states are compared with the page."""

    def missing(self, folder: Path) -> list[str]:
        """Return the files that are not in the folder of the data."""
        return [file for file in self.files if not (folder / file).exists()]


@dataclass(frozen=True)
class Row:
    """A published value and the value by giccs."""

    statistic: str
    published: str
    computed: Estimate | float | None
    reason: str = ""

    @property
    def value(self) -> float:
        """Value by giccs; NaN without data."""
        return as_estimate(self.computed).value

    @property
    def state(self) -> State:
        """State of the published value."""
        return state_of(self.published, self.computed)

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return the row of the table: statistic, published, giccs, difference, state."""
        if self.computed is None:
            return (self.statistic, self.published, "", "", self.state)
        places = decimals(self.published)
        estimate = as_estimate(self.computed)
        text = f"{estimate.value:.{places}f}"
        if self.state is State.INSIDE:
            text += f" [{estimate.low:.{places}f}, {estimate.high:.{places}f}]"
        difference = f"{self.difference:+.{places + 1 if places else 0}f}"
        is_zero = not re.search("[1-9]", difference)
        return (self.statistic, self.published, text, "0" if is_zero else difference, self.state)

    @property
    def difference(self) -> float:
        """Value by giccs minus published value; for a range, minus the end that is closer."""
        return min((self.value - end for end in ends(self.published)), key=abs)


@dataclass(frozen=True)
class Outcome:
    """Rows of a recipe; no values by giccs if files are missing."""

    recipe: Recipe
    rows: Sequence[Row]
    missing: Sequence[str] = ()


def as_estimate(computed: Estimate | float | None) -> Estimate:
    """Return a number as an estimate without interval; NaN for None."""
    if isinstance(computed, Estimate):
        return computed
    return Estimate(math.nan if computed is None else float(computed))


def ends(published: str) -> list[float]:
    """Return the number of a published value, or both ends of a range.

    >>> ends("12,345"), ends("0.953 to 0.954")
    ([12345.0], [0.953, 0.954])
    """
    return [float(end.replace(",", "")) for end in published.split(" to ")]


def decimals(published: str) -> int:
    """Return the number of decimal places of a published value.

    >>> decimals("0.50"), decimals("6,000")
    (2, 0)
    """
    exponent = Decimal(published.split(" to ")[0].replace(",", "")).as_tuple().exponent
    return max(0, -int(exponent))


def state_of(published: str, computed: Estimate | float | None) -> State:
    """Return the state of a published value.

    It is equal if it is at most half a unit of its last digit away, which any rounding of a half permits.

    >>> state_of("0.38", 0.375), state_of("0.38", 0.3749)
    (<State.EQUAL: 'equal'>, <State.DIFFERS: 'differs'>)
    """
    if computed is None:
        return State.MISSING
    estimate, (low, *_, high) = as_estimate(computed), ends(published) * 2
    half = 0.5 * 10.0 ** -decimals(published) * (1 + 1e-9)
    if low - half <= estimate.value <= high + half:
        return State.EQUAL
    is_inside = estimate.low <= low and high <= estimate.high
    return State.INSIDE if is_inside else State.DIFFERS


def outcome_of(recipe: Recipe, folder: Path) -> Outcome:
    """Compute the values of a recipe.

    Raises ValueError if a statistic is published but not computed, or the reverse.
    """
    missing = recipe.missing(folder)
    if missing and callable(recipe.published):
        return Outcome(recipe, [], missing)
    published = recipe.published(folder) if callable(recipe.published) else recipe.published
    computed: Mapping[str, Estimate | float | None] = (
        dict.fromkeys(published) if missing else recipe.compute(folder)
    )
    if different := sorted(published.keys() ^ computed.keys()):
        raise ValueError(f"{recipe.data_set}: either published or computed, not both: {different}")
    rows = [
        Row(statistic, text, computed[statistic], _reason(recipe, statistic))
        for statistic, text in published.items()
    ]
    return Outcome(recipe, rows, missing)


def _reason(recipe: Recipe, statistic: str) -> str:
    for pattern, reason in recipe.reasons.items():
        if re.search(pattern, statistic):
            return reason
    return ""
