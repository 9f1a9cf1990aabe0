"""Clocks: the system time, or a manual clock for tests."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...


class SystemClock:
    """The system clock."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


class ManualClock:
    """A clock that only advances on request, for tests.

    >>> clock = ManualClock(1000.0)
    >>> clock.advance(60)
    >>> clock.now()
    1060.0
    """

    def __init__(self, start: float) -> None:
        self.time = start

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self.time

    def advance(self, seconds: float) -> None:
        """Advance the clock by a number of seconds."""
        self.time += seconds
