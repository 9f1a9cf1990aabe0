"""Progress of long computations: functions that pass work on, with or without a progress bar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Yields each piece of `work`; `label` and `total` are for the progress bar."""

    def __call__(self, work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
        """Yield the work."""
        ...


def silent(work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Yield the work without a progress bar."""
    yield from work


def progress_bar(work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Yield the work with a progress bar on standard error."""
    from tqdm import tqdm

    yield from tqdm(work, desc=label, total=total, leave=False)
