"""What is wrong with an input, where it stands, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["InputError", "Problem"]


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

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


class InputError(ValueError):
    """Input that cannot be used; carries every problem that was found, not only the first.

    >>> error = InputError([Problem("a.csv", 2, "no best"), Problem("a.csv", 5, "no worst")])
    >>> len(error.problems)
    2
    >>> print(error)
    a.csv:2: no best
    a.csv:5: no worst
    """

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
