"""How long work shows where it is: a function that passes its work on, with or without a bar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

__all__ = ["Progress", "silent"]

T = TypeVar("T")


class Progress(Protocol):
    """Yield each piece of `work`; `label` and `total` are for the bar."""

    def __call__(self, work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
        """Yield the work."""
        ...


def silent(work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Show nothing."""
    yield from work
