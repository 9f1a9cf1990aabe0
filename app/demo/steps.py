"""The progress output of the demo: two lines per step, with the result and the time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from bws.command import Console

__all__ = ["Steps"]

T = TypeVar("T")


@dataclass
class Steps:
    """Numbers the steps; what they say goes to standard error, and nowhere with --quiet."""

    console: Console
    total: int
    number: int = 0

    @contextmanager
    def step(self, what: str) -> Iterator[list[str]]:
        """Say what begins, and at the end the lines that were put into the list, with the seconds."""
        self.number += 1
        mark = f"[{self.number:>{len(str(self.total))}}/{self.total}]"
        self.console.note(f"{mark} {what} ...")
        began = time.perf_counter()
        said: list[str] = []
        yield said
        seconds = time.perf_counter() - began
        self.console.note(f"{' ' * len(mark)} {'; '.join(said) or 'done'} ({seconds:.1f} s)")

    def skip(self, steps: int, why: str) -> None:
        """Say that some steps are not needed."""
        first, self.number = self.number + 1, self.number + steps
        self.console.note(f"[{first}-{self.number}/{self.total}] {why}")

    def bar(self, work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
        """Pass work on under a bar, inside a step."""
        return self.console.progress(work, label, total)
