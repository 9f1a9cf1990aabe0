"""What time it is: the system's, or one that a test moves."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...


class SystemClock:
    """The time of the machine."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


class ManualClock:
    """A clock that stands still until it is moved: days pass at once in tests.

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
        """Move the clock."""
        self.time += seconds
