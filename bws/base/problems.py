"""Problems of inputs, with location and expectation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copyreg import __newobj__  # type: ignore[attr-defined]
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

MIN_SIMILARITY = 0.7
"""Minimum similarity of a suggested name, from 0 to 1."""
MAX_LISTED = 5
"""Maximum number of similar problems that are listed separately, and of lines listed in a summary."""
VALUE = re.compile(r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|"(?:[^"\\]|\\.)*"|\d+(?:\.\d+)?""")
"""The parts in which messages of the same error may differ: quoted text and numbers."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of an input.

    >>> print(Problem("judgments.csv", 7, "best is empty; it must be one of the row's items"))
    judgments.csv:7: best is empty; it must be one of the row's items
    """

    file: str
    """The file name given by the user, or a placeholder such as ``<stdin>``."""
    line: int | None
    """The line, counted from 1; None for a problem of the whole file."""
    message: str
    """The problem and the expectation."""
    row: int | None = field(default=None, compare=False)
    """The row, counted from 0, in files without lines; distinguishes its rows."""

    def __str__(self) -> str:
        location = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{location}: {self.message}"


class Location(NamedTuple):
    """Position of a row in a file."""

    file: str
    """The name of the file in messages."""
    line: int | None
    """The line, counted from 1; None for files without lines."""
    element: int | None = None
    """The number of an object in a JSON array, from 1, because many of them may be in one line."""

    def problem(self, message: str) -> Problem:
        """Return a problem of the row.

        >>> print(Location("chats.json", 1, 7).problem("no role"))
        chats.json:1: object 7: no role
        """
        element = "" if self.element is None else f"object {self.element}: "
        return Problem(self.file, self.line, element + message)

    def as_seen_from(self, base: Location) -> str:
        """Return the location relative to another row: ``line 3``, or ``a.tsv:3`` for another file."""
        if self == base:
            return "the same line"
        if self.file == base.file and self.element is not None:
            return f"object {self.element}"
        return f"line {self.line}" if self.file == base.file else f"{self.file}:{self.line}"


def summary(problems: Sequence[Problem]) -> list[str]:
    """Return one line per problem, and one line for an error of many lines of a file.

    Errors are the same if their messages differ only in quoted values and numbers. More than five of them are
    replaced by the first message, their number, and the first five lines.

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
            lines.append(f"{problem} {_line_list(same)}")
    return lines


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Return the end of a message that suggests the candidate closest to a misspelt name, ignoring case.

    Empty if no candidate is close.

    >>> print("unknown method 'countng'" + suggestion("countng", ["counting", "elo"]))
    unknown method 'countng'; did you mean 'counting'?
    >>> suggestion("x", ["counting", "elo"])
    ''
    """
    match = closest(name, candidates)
    return f"; did you mean {match!r}?" if match else ""


def closest(name: str, candidates: Iterable[str]) -> str:
    """Return the candidate closest to a misspelt name, ignoring case, or an empty string."""
    by_lower_case = {candidate.lower(): candidate for candidate in candidates}
    matches = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=MIN_SIMILARITY)
    return by_lower_case[matches[0]] if matches else ""


def _kind(problem: Problem) -> tuple[str, str]:
    return problem.file, VALUE.sub("", problem.message)


def _line_list(problems: Sequence[Problem]) -> str:
    """Return the number of lines with an error, and the first of them.

    >>> _line_list([Problem("a.csv", line, "") for line in (3, 3, 8)])
    '(2 lines like this: 3, 8)'
    """
    numbers = list(dict.fromkeys(str(problem.line) for problem in problems))
    first = ", ".join(numbers[:MAX_LISTED]) + (", ..." if len(numbers) > MAX_LISTED else "")
    return f"({len(numbers)} lines like this: {first})"


class InputError(ValueError):
    """Invalid input, with all problems and not only the first.

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

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what `pickle` needs: exceptions of other processes arrive with their attributes."""
        return __newobj__, (type(self), *self.args), vars(self)
