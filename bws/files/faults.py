"""Collecting what is wrong with rows, so that everything is said at once and in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem

Ints = NDArray[np.int64]

__all__ = ["Faults", "quoted"]

SHOWN = 60


class Faults:
    """What is wrong with the rows of a file."""

    def __init__(self, file: str, lines: Ints, others: Iterable[Problem] = ()) -> None:
        self.file, self.lines = file, lines
        self.wrong = np.zeros(len(lines), bool)
        """(R,) the rows that have a fault."""
        self._others = tuple(others)
        self._messages: list[tuple[int, str]] = []

    def add(self, rows: NDArray[np.bool_], message: Callable[[int], str]) -> None:
        """Note a fault of every row in the mask; `message` words it for one row."""
        self._messages += [(row, message(row)) for row in np.flatnonzero(rows).tolist()]
        self.wrong |= rows

    def add_other(self, message: str) -> None:
        """Note something about the file as a whole."""
        self._others += (Problem(self.file, None, message),)

    def add_repeated(self, other: Faults, row_of: NDArray[np.intp]) -> None:
        """Note the faults of `other` for all rows that repeat its rows: row r repeats row_of[r]."""
        messages: dict[int, list[str]] = {}
        for row, message in other._messages:
            messages.setdefault(row, []).append(message)
        for row in np.flatnonzero(other.wrong[row_of]).tolist():
            self._messages += [(row, message) for message in messages[int(row_of[row])]]
        self.wrong |= other.wrong[row_of]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All faults and the other problems, by line."""
        lines = self.lines.tolist()
        found = [
            Problem(self.file, lines[row] or None, message, None if lines[row] else row)
            for row, message in self._messages
        ]
        return tuple(sorted([*self._others, *found], key=lambda problem: problem.line or 0))

    def stop(self, what: str, *, always: bool) -> None:
        """Raise InputError where no row is right, or, with `always`, where anything is wrong."""
        if self.wrong.all() or (always and (self._others or self._messages)):
            nothing = Problem(self.file, None, f"holds no {what}")
            raise InputError(self.problems or nothing)


def quoted(text: str) -> str:
    """Return a text for a message, in quotes and not too long.

    >>> quoted("a"), len(quoted("a" * 1000000))
    ("'a'", 62)
    """
    return repr(text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}...")
