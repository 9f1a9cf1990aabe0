"""Which rows of a C-STS file break its rules?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bws.problems import Problem
from giccs.csts.records import Instance

__all__ = ["Placed", "duplicates", "in_two_files", "pairing", "unusable"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A row and where it stands."""

    file: str
    line: int
    row: Instance

    def problem(self, message: str) -> Problem:
        """Return what is wrong with the row, with its place."""
        return Problem(self.file, self.line, message)


def unusable(rows: Sequence[Placed]) -> list[Problem]:
    """Return where a sentence is empty, and where a uid repeats."""
    problems = []
    first: dict[str, Placed] = {}
    for one in rows:
        for name in ("sentence1", "sentence2"):
            if not getattr(one.row, name).strip():
                problems.append(one.problem(f"{name} is empty; it must have text"))
        if (earlier := first.setdefault(one.row.uid, one)) is not one:
            message = f"repeats the uid of line {earlier.line}; each must be unique"
            problems.append(one.problem(message))
    return problems


def pairing(rows: Sequence[Placed]) -> list[Problem]:
    """Return what is against the design of the data set: two rows a sentence pair, two conditions."""
    problems = [
        one.problem("condition is empty; it must have text")
        for one in rows
        if not one.row.condition.strip()
    ]
    places: dict[int, list[int]] = {}
    for place, one in enumerate(rows):
        places.setdefault(one.row.pair, []).append(place)
    for members in places.values():
        problems += _pair_problems(rows, members)
    return problems


def duplicates(rows: Sequence[Placed]) -> list[Problem]:
    """Return which rows say nothing new: the same texts with the same label."""
    first: dict[tuple[int, str, int | None], Placed] = {}
    return [
        one.problem(f"repeats line {earlier.line} word for word, with the same label")
        for one in rows
        if (earlier := first.setdefault((one.row.pair, one.row.condition, one.row.label), one))
        is not one
    ]


def in_two_files(rows: Sequence[Placed]) -> list[Problem]:
    """Return for each file how many of its sentence pairs an earlier one has: splits that are not apart."""
    first: dict[tuple[str, str], str] = {}
    again: dict[tuple[str, str], set[int]] = {}
    for one in rows:
        earlier = first.setdefault((one.row.sentence1, one.row.sentence2), one.file)
        if earlier != one.file:
            again.setdefault((one.file, earlier), set()).add(one.row.pair)
    return [
        Problem(file, None, f"{len(both)} of its sentence pairs are in {earlier} too")
        for (file, earlier), both in again.items()
    ]


def _pair_problems(rows: Sequence[Placed], members: Sequence[int]) -> Iterator[Problem]:
    first = rows[members[0]]
    if len(members) != 2:
        what = "one row" if len(members) == 1 else f"{len(members)} rows"
        yield first.problem(f"its sentence pair has {what}; there must be two, a condition each")
        return
    second = rows[members[1]]
    if members[1] != members[0] + 1:
        message = (
            f"the other row of its sentence pair is line {first.line}; they must be neighbours"
        )
        yield second.problem(message)
    conditions = {one.row.condition.strip().casefold() for one in (first, second)}
    if len(conditions) == 1 and conditions != {""}:
        message = f"has the condition of line {first.line} again; those of a pair must differ"
        yield second.problem(message)
