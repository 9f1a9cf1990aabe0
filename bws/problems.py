"""What is wrong with an input, where it stands, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["InputError", "Location", "Problem", "summary"]

MAX_LISTED = 5
"""Problems that differ in values only and are still listed one by one; the lines that a summary names."""
VALUE = re.compile(r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|"(?:[^"\\]|\\.)*"|\d+(?:\.\d+)?""")
"""What may differ between two messages of the same error: quoted text and numbers."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of an input.

    >>> print(Problem("judgments.csv", 7, "best is empty; it must be one of the row's items"))
    judgments.csv:7: best is empty; it must be one of the row's items
    """

    file: str
    """The file as the user named it, or what stands for it (``<stdin>``)."""
    line: int | None
    """The line, counted from 1; None where the fault is the file's as a whole."""
    message: str
    """What is wrong; what is allowed."""
    row: int | None = field(default=None, compare=False)
    """The row, counted from 0, of a file whose rows have no lines; tells its rows apart."""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


class Location(NamedTuple):
    """Position of a row in a file."""

    file: str
    """The file as messages name it."""
    line: int | None
    """The line, counted from 1; None where the file has no lines."""

    def problem(self, message: str) -> Problem:
        """Return a problem of the row."""
        return Problem(self.file, self.line, message)

    def as_seen_from(self, other: Location) -> str:
        """Return how a message about another row names it: ``line 3``, or ``a.tsv:3`` of another file."""
        if self == other:
            return "the same line"
        return f"line {self.line}" if self.file == other.file else f"{self.file}:{self.line}"


def summary(problems: Sequence[Problem]) -> list[str]:
    """Return a line per problem, and one line for an error that many lines of a file have.

    Errors are the same where their messages differ in quoted values and numbers only. More than five of
    them become the first, the number of lines, and the first five lines.

    >>> many = [Problem("a.csv", line, f"best is '{line}'; it must be an item") for line in range(2, 83)]
    >>> for line in summary([*many, Problem("a.csv", 90, "3 fields; expected 5")]):
    ...     print(line)
    a.csv:2: best is '2'; it must be an item (81 lines like this: 2, 3, 4, 5, 6, ...)
    a.csv:90: 3 fields; expected 5
    """
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        if problem.line is not None:
            alike.setdefault(_kind(problem), []).append(problem)
    lines = []
    for problem in problems:
        same = alike.get(_kind(problem), []) if problem.line is not None else []
        if len(same) <= MAX_LISTED:
            lines.append(str(problem))
        elif problem is same[0]:
            lines.append(f"{problem} {_places(same)}")
    return lines


def _kind(problem: Problem) -> tuple[str, str]:
    return problem.file, VALUE.sub("", problem.message)


def _places(problems: Sequence[Problem]) -> str:
    """Return how many lines have an error, and the first of them.

    >>> _places([Problem("a.csv", line, "") for line in (3, 3, 8)])
    '(2 lines like this: 3, 8)'
    """
    numbers = list(dict.fromkeys(str(problem.line) for problem in problems))
    first = ", ".join(numbers[:MAX_LISTED]) + (", ..." if len(numbers) > MAX_LISTED else "")
    return f"({len(numbers)} lines like this: {first})"


class InputError(ValueError):
    """Input that cannot be used; carries every problem that was found, not only the first.

    The message is their `summary`.

    >>> error = InputError([Problem("a.csv", 2, "no best"), Problem("a.csv", 5, "no worst")])
    >>> len(error.problems)
    2
    >>> print(error)
    a.csv:2: no best
    a.csv:5: no worst
    """

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(summary(self.problems)))
