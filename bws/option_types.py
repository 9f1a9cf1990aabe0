"""Types of options: numbers that are finite and bounded, so that no call fails in a library or never ends,
and names from a registry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import click

__all__ = [
    "MAX_COUNT",
    "MAX_RESAMPLES",
    "MAX_SEED",
    "RESAMPLES",
    "SEED",
    "Number",
    "RegisteredName",
]

MAX_SEED = 2**32 - 1
"""Largest seed that every random number generator in use takes: those of NumPy, PyTorch and scikit-learn."""
MAX_COUNT = 10**9
"""Upper end of counts that the data limits further."""
MAX_RESAMPLES = 1_000_000
"""Upper end of numbers of resamples and trials."""

SEED = click.IntRange(0, MAX_SEED)
RESAMPLES = click.IntRange(1, MAX_RESAMPLES)


class Number(click.FloatRange):
    """A finite number between two ends; comparisons with the ends alone let NaN through."""

    name = "number"

    def __init__(
        self, low: float, high: float, *, min_open: bool = False, max_open: bool = False
    ) -> None:
        super().__init__(low, high, min_open=min_open, max_open=max_open)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; BadParameter where it is none, NaN, infinite or outside."""
        number: float = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not finite; expected a number", param, ctx)
        converted: float = super().convert(number, param, ctx)
        return converted


class RegisteredName(click.Choice[str]):
    """One of the names in a registry, whose modules are imported when the names are needed."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names, in the order of the registry."""
        return tuple(self._names())
