"""Which rows of a C-STS file break its rules?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bws.files.schema import Placed, Unique
from bws.problems import Problem
from giccs.csts.records import Instance

__all__ = ["duplicates", "in_two_files", "pairing", "unusable"]


UID = Unique[Instance]("uid", lambda instance: instance.uid)


def unusable(rows: Sequence[Placed[Instance]]) -> list[Problem]:
    """Return where a sentence is empty, and where a uid repeats."""
    empty = [
        row.location.problem(f"{name} is empty; it must have text")
        for row in rows
        for name in ("sentence1", "sentence2")
        if not getattr(row.record, name).strip()
    ]
    return [*empty, *UID.problems(rows)]


def pairing(rows: Sequence[Placed[Instance]]) -> list[Problem]:
    """Return what is against the design of the data set: two rows a sentence pair, two conditions."""
    problems = [
        one.location.problem("condition is empty; it must have text")
        for one in rows
        if not one.record.condition.strip()
    ]
    places: dict[int, list[int]] = {}
    for place, one in enumerate(rows):
        places.setdefault(one.record.pair, []).append(place)
    for members in places.values():
        problems += _pair_problems(rows, members)
    return problems


def duplicates(rows: Sequence[Placed[Instance]]) -> list[Problem]:
    """Return which rows say nothing new: the same texts with the same label."""
    first: dict[tuple[int, str, int | None], Placed[Instance]] = {}
    return [
        one.location.problem(
            f"repeats line {earlier.location.line} word for word, with the same label"
        )
        for one in rows
        if (
            earlier := first.setdefault(
                (one.record.pair, one.record.condition, one.record.label), one
            )
        )
        is not one
    ]


def in_two_files(rows: Sequence[Placed[Instance]]) -> list[Problem]:
    """Return for each file how many of its sentence pairs an earlier one has: splits that are not apart."""
    first: dict[tuple[str, str], str] = {}
    again: dict[tuple[str, str], set[int]] = {}
    for one in rows:
        earlier = first.setdefault((one.record.sentence1, one.record.sentence2), one.location.file)
        if earlier != one.location.file:
            again.setdefault((one.location.file, earlier), set()).add(one.record.pair)
    return [
        Problem(file, None, f"{len(both)} of its sentence pairs are in {earlier} too")
        for (file, earlier), both in again.items()
    ]


def _pair_problems(rows: Sequence[Placed[Instance]], members: Sequence[int]) -> Iterator[Problem]:
    first = rows[members[0]]
    if len(members) != 2:
        what = "one row" if len(members) == 1 else f"{len(members)} rows"
        yield first.location.problem(
            f"its sentence pair has {what}; there must be two, a condition each"
        )
        return
    second = rows[members[1]]
    if members[1] != members[0] + 1:
        message = f"the other row of its sentence pair is line {first.location.line}; they must be neighbours"
        yield second.location.problem(message)
    conditions = {one.record.condition.strip().casefold() for one in (first, second)}
    if len(conditions) == 1 and conditions != {""}:
        message = (
            f"has the condition of line {first.location.line} again; those of a pair must differ"
        )
        yield second.location.problem(message)
