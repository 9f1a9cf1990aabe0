"""Progress of loops deep in a computation: commands show a bar with the remaining time, functions nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
Bar = Callable[[Iterable[Any], str, int | None], Iterator[Any]]
"""Work, label and total -> the work, with a progress bar."""
_BAR: ContextVar[Bar | None] = ContextVar("bar", default=None)


@contextmanager
def progress_shown_by(bar: Bar) -> Iterator[None]:
    """Show the progress of all `tracked` loops with `bar`."""
    token = _BAR.set(bar)
    try:
        yield
    finally:
        _BAR.reset(token)


def tracked(work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Return the work, with a progress bar inside of commands.

    >>> with progress_shown_by(lambda work, label, total: print(label, total) or iter(work)):
    ...     sum(tracked(range(3), "trials", 3))
    trials 3
    3
    >>> sum(tracked(range(3), "trials"))
    3
    """
    bar = _BAR.get()
    return iter(work) if bar is None else bar(work, label, total)
