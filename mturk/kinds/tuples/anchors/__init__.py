"""Anchors: how well candidates could replace the last turn of their dialogue, on one scale for all dialogues.

An anchor is a part of a HIT of its own, since people see single tuples: two candidates that one person rates
from 0 to 100 (`RATING`), or all candidates, of which one person marks those that could (`MARK`).
"""

from __future__ import annotations

import os
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from bws.base.problems import InputError, Problem
from bws.model_annotators import SIMULATED_COMMENT
from mturk import answers
from mturk.kinds import (
    Behaviour,
    ExpectedTuple,
    Fields,
    HitKind,
    StatedSettings,
    Truth,
    ValidAnswer,
)
from mturk.kinds.tuples import form, hash_number, true_scores, worker_deviation

if TYPE_CHECKING:
    from mturk.study.plan import PlannedStudy

__all__ = ["COLUMNS", "MARK", "RATING", "AnchorAnswer", "count_skipped", "write_anchors"]

COLUMNS = ("group", "item", "annotator", "kind", "answer", "position", "seconds", "assignment_id")
"""Columns of the file of anchors."""
MAX_RATING = 100
YES = "yes"
"""Value of a checked box."""


class AnchorAnswer(NamedTuple):
    """The answer to a candidate."""

    item: str
    answer: int
    """Rating from 0 to 100; 1 for a marked candidate, and 0 for another one."""
    position: int | None
    """Position in the order of presentation, from 1; None if unknown."""


class _Anchors(HitKind):
    """A kind of anchor."""

    part = "anchor"
    answer = "anchor"
    file = "anchors.csv"
    name: ClassVar[str]
    """Name of the kind in files."""

    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Raise InputError: anchors are a part of a study of tuples."""
        message = "a study of anchors alone is not supported; expected kind tuples and --anchors"
        raise InputError(Problem(file, None, message))

    @abstractmethod
    def answers(self, expected: ExpectedTuple, fields: Fields) -> list[AnchorAnswer]:
        """Return the answers in valid fields; none for skipped candidates."""
        ...

    @abstractmethod
    def n_skipped(self, expected: ExpectedTuple, fields: Fields) -> int:
        """Return the number of skipped questions in valid fields."""
        ...

    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write the file of anchors atomically; see `write_anchors`."""
        write_anchors(answers, path)


class Rating(_Anchors):
    """Two candidates, rated from 0 to 100 one after the other.

    The items of an expected part are the pairs of all slots, one after the other; each assignment of the HIT
    gets one slot.
    """

    name = "rating"

    def columns(self, part_id: str) -> Mapping[str, str]:
        """Return column of the batch file -> name of the form field; those of the ratings have no column."""
        return {"slot": slot_field(part_id), "seconds": answers.seconds_field(part_id)}

    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return the problems of the fields as the ratings of a slot.

        >>> expected = ExpectedTuple("anchor:d1", "d1", ("a", "b", "c", "a"), "rating")
        >>> fields = [("slot-anchor:d1", "2"), ("rating-3-anchor:d1", "40"), ("skip-1-anchor:d1", "yes")]
        >>> RATING.problems(expected, fields)
        []
        >>> RATING.problems(expected, fields[:2])
        ["anchor:d1: the answer to 'a' is missing; expected a number from 0 to 100, or skipping"]
        """
        values, part_id = dict(fields), expected.tuple_id
        n_slots = len(expected.items) // 2
        slot = values.get(slot_field(part_id), "")
        if slot not in map(str, range(1, n_slots + 1)):
            return [f"{part_id}: slot is {slot!r}; expected a number from 1 to {n_slots}"]
        pair = _pair(expected, values)
        names = [name(part_id, number) for number, _ in pair for name in (rating_field, skip_field)]
        problems = _repeated([slot_field(part_id), *names], part_id, fields)
        for number, item in pair:
            rating = values.get(rating_field(part_id, number), "")
            skip = values.get(skip_field(part_id, number), "")
            problems += [f"{part_id}: {text}" for text in _rating_problems(item, rating, skip)]
        return [*problems, *_seconds_problems(part_id, values)]

    def answers(self, expected: ExpectedTuple, fields: Fields) -> list[AnchorAnswer]:
        """Return the ratings in valid fields.

        >>> expected = ExpectedTuple("anchor:d1", "d1", ("a", "b", "c", "a"), "rating")
        >>> fields = [("slot-anchor:d1", "2"), ("rating-3-anchor:d1", "40"), ("skip-1-anchor:d1", "yes")]
        >>> RATING.answers(expected, fields)
        [AnchorAnswer(item='c', answer=40, position=1)]
        """
        values = dict(fields)
        ratings = [
            (item, values.get(rating_field(expected.tuple_id, number), ""))
            for number, item in _pair(expected, values)
        ]
        return [
            AnchorAnswer(item, int(rating), position)
            for position, (item, rating) in enumerate(ratings, start=1)
            if rating
        ]

    def n_skipped(self, expected: ExpectedTuple, fields: Fields) -> int:
        """Return the number of candidates without a rating."""
        return 2 - len(self.answers(expected, fields))

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return ratings of the candidates of the slot, simulated from the true scores."""
        part_id = expected.tuple_id
        slot = expected.assignment_number % (len(expected.items) // 2)
        fields = [(slot_field(part_id), str(slot + 1))]
        values = _simulated_scores(expected, truth, behaviour, worker)
        for number, item in _pair(expected, dict(fields)):
            rating = round(MAX_RATING * min(1.0, max(0.0, (values[item] + 1) / 2)))
            fields.append((rating_field(part_id, number), str(rating)))
        return fields


class Mark(_Anchors):
    """All candidates, of which one person marks those that could replace the last turn."""

    name = "mark"

    def columns(self, part_id: str) -> Mapping[str, str]:
        """Return column of the batch file -> name of the form field; marks have no column of their own."""
        return {"shown": form.shown_field(part_id), "seconds": answers.seconds_field(part_id)}

    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return the problems of the fields as marks, as the answer "none", or as a skipped question.

        >>> expected = ExpectedTuple("anchor:d1", "d1", ("a", "b"), "mark")
        >>> MARK.problems(expected, [("mark-anchor:d1", "b")])
        []
        >>> MARK.problems(expected, [("mark-anchor:d1", "b"), ("none-anchor:d1", "yes")])
        ['anchor:d1: 1 marks, none, not skipped; expected marks, or none, or skipping']
        """
        values, part_id = dict(fields), expected.tuple_id
        marks = _marks(part_id, fields)
        boxes = [none_field(part_id), skip_field(part_id)]
        problems = _repeated([*boxes, form.shown_field(part_id)], part_id, fields)
        unknown = [item for item in marks if item not in expected.items]
        if unknown or len({*marks}) < len(marks):
            listed = ", ".join(map(repr, expected.items))
            problems.append(f"{part_id}: the marks are {marks!r}; expected some of {listed}")
        problems += [
            f"{part_id}: {name} is {values[name]!r}; expected {YES}"
            for name in boxes
            if values.get(name, YES) != YES
        ]
        is_none, is_skipped = (name in values for name in boxes)
        if (bool(marks), is_none, is_skipped).count(True) != 1:
            state = "none" if is_none else "not none"
            skipped = "skipped" if is_skipped else "not skipped"
            message = (
                f"{len(marks)} marks, {state}, {skipped}; expected marks, or none, or skipping"
            )
            problems.append(f"{part_id}: {message}")
        order = form.split_shown(values.get(form.shown_field(part_id), ""))
        if order and sorted(order) != sorted(expected.items):
            problems.append(f"{part_id}: shown is {order!r}; expected all items in any order")
        return [*problems, *_seconds_problems(part_id, values)]

    def answers(self, expected: ExpectedTuple, fields: Fields) -> list[AnchorAnswer]:
        """Return 1 for marked and 0 for other candidates in valid fields; none if the question is skipped.

        >>> expected = ExpectedTuple("anchor:d1", "d1", ("a", "b"), "mark")
        >>> MARK.answers(expected, [("mark-anchor:d1", "b"), ("shown-anchor:d1", "b;a")])
        [AnchorAnswer(item='a', answer=0, position=2), AnchorAnswer(item='b', answer=1, position=1)]
        """
        values = dict(fields)
        if skip_field(expected.tuple_id) in values:
            return []
        marks = _marks(expected.tuple_id, fields)
        order = form.split_shown(values.get(form.shown_field(expected.tuple_id), ""))
        return [
            AnchorAnswer(item, int(item in marks), order.index(item) + 1 if order else None)
            for item in expected.items
        ]

    def n_skipped(self, expected: ExpectedTuple, fields: Fields) -> int:
        """Return 1 if the question is skipped, otherwise 0."""
        return int(skip_field(expected.tuple_id) in dict(fields))

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the marks of candidates whose simulated score is above 0."""
        values = _simulated_scores(expected, truth, behaviour, worker)
        marks = [
            (mark_field(expected.tuple_id), item) for item in expected.items if values[item] > 0
        ]
        shown = (form.shown_field(expected.tuple_id), form.join_shown(expected.items))
        return [shown, *(marks or [(none_field(expected.tuple_id), YES)])]


def slot_field(part_id: str) -> str:
    """Return the name of the field with the slot of the assignment."""
    return f"slot-{part_id}"


def rating_field(part_id: str, number: int) -> str:
    """Return the name of the field with the rating of a candidate; `number` counts those of the page."""
    return f"rating-{number}-{part_id}"


def skip_field(part_id: str, number: int | None = None) -> str:
    """Return the name of the field by which a candidate, or the question about all of them, is skipped."""
    return f"skip-{part_id}" if number is None else f"skip-{number}-{part_id}"


def mark_field(part_id: str) -> str:
    """Return the name of the fields with the marked candidates."""
    return f"mark-{part_id}"


def none_field(part_id: str) -> str:
    """Return the name of the field that states that no candidate is marked."""
    return f"none-{part_id}"


def _pair(expected: ExpectedTuple, values: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return number and id of the two candidates of the slot that the fields state."""
    numbers = {item: number for number, item in enumerate(dict.fromkeys(expected.items), start=1)}
    slot = int(values[slot_field(expected.tuple_id)])
    return [(numbers[item], item) for item in expected.items[2 * slot - 2 : 2 * slot]]


def _rating_problems(item: str, rating: str, skip: str) -> list[str]:
    expected = f"expected a number from 0 to {MAX_RATING}, or skipping"
    if skip not in ("", YES) or (rating and skip):
        return [f"the answer to {item!r} is {rating!r}, and skip is {skip!r}; {expected}"]
    if not rating and not skip:
        return [f"the answer to {item!r} is missing; {expected}"]
    if rating and rating not in map(str, range(MAX_RATING + 1)):
        return [f"the answer to {item!r} is {rating!r}; {expected}"]
    return []


def _marks(part_id: str, fields: Fields) -> list[str]:
    return [value for name, value in fields if name == mark_field(part_id)]


def _repeated(names: Sequence[str], part_id: str, fields: Fields) -> list[str]:
    return answers.repeated_field_problems(
        [*names, answers.seconds_field(part_id)], Counter(name for name, _ in fields)
    )


def _seconds_problems(part_id: str, values: Mapping[str, str]) -> list[str]:
    return answers.seconds_problems(part_id, values.get(answers.seconds_field(part_id), ""))


def _simulated_scores(
    expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
) -> dict[str, float]:
    """Return item -> score as a simulated worker sees it; careless ones answer at random."""
    seed = hash_number(behaviour.seed, "anchor", worker, expected.tuple_id)
    generator = random.Random(seed)  # noqa: S311 - reproducible, not a secret
    chance = generator.random()
    scores = dict(zip(expected.items, true_scores(expected, truth), strict=True))
    if chance < behaviour.careless:
        return {item: generator.uniform(-1, 1) for item in scores}
    if chance < behaviour.careless + behaviour.middle:
        return dict.fromkeys(scores, 0.0)
    return {
        item: score
        + worker_deviation(behaviour, worker, expected.group, item)
        + generator.gauss(0, behaviour.noise)
        for item, score in scores.items()
    }


def _kind(row: ValidAnswer) -> _Anchors:
    return {kind.name: kind for kind in (RATING, MARK)}[row.expected.kind]


def count_skipped(rows: Sequence[ValidAnswer]) -> int:
    """Return the number of skipped questions in valid answers."""
    return sum(_kind(row).n_skipped(row.expected, row.fields) for row in rows)


def write_anchors(rows: Sequence[ValidAnswer], path: str | os.PathLike[str]) -> int:
    """Write one row per rated candidate, or per candidate of answered marks, atomically.

    Returns the number of rows. The seconds are those of the whole question about the dialogue. Raises
    InputError if simulated answers would replace others.
    """
    from bws.base.rows import csv_text
    from bws.base.text import write_atomic

    if all(answers.read_comment(row.fields) == SIMULATED_COMMENT for row in rows):
        _check_replaceable(path, {row.assignment.assignment_id for row in rows})
    cells = [
        (
            row.expected.group, item, row.annotator, row.expected.kind, answer, position or "",
            dict(row.fields).get(answers.seconds_field(row.expected.tuple_id), ""),
            row.assignment.assignment_id,
        )
        for row in rows
        for item, answer, position in _kind(row).answers(row.expected, row.fields)
    ]  # fmt: skip
    write_atomic(path, csv_text(cells, COLUMNS))
    return len(cells)


def _check_replaceable(path: str | os.PathLike[str], assignments: set[str]) -> None:
    """Raise InputError if an existing file has rows of other assignments, which may be people's."""
    from bws.base.file_uses import unprotected
    from bws.files.table import read_table

    if not os.path.isfile(path) or os.path.getsize(path) == 0:
        return
    with unprotected():
        frame = read_table(path).frame
    if "assignment_id" in frame.columns and {*frame["assignment_id"]} <= assignments:
        return
    message = "has answers of other assignments, which simulated answers would replace"
    raise InputError(Problem(os.fspath(path), None, f"{message}; expected another file"))


RATING = Rating()
MARK = Mark()
