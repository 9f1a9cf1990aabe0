"""CPU seconds and peak memory of the steps of a process."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Stopwatch"]


class Stopwatch:
    """`figures`: CPU seconds per step, and increase of the peak memory since the start in MiB."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self._base = _peak()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure a named step."""
        start = time.process_time()
        yield
        self.figures[f"{name} s"] = time.process_time() - start
        self.figures[f"{name} MiB"] = _peak() - self._base


def _peak() -> float:
    """Return the peak resident memory in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
