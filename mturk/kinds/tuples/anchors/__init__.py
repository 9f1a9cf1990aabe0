"""Anchors: how well candidates could replace the last turn of their dialogue, on one scale for all dialogues.

An anchor is a part of a HIT of its own, since people see single tuples: two candidates that one person rates
from 0 to 100 (`RATING`), or all candidates, of which one person marks those that could (`MARK`).
"""

from __future__ import annotations

import os
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

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
from mturk.kinds.tuples import hash_number, true_scores, worker_deviation

if TYPE_CHECKING:
    from bws.absolute.files import Kind
    from mturk.study.plan import PlannedStudy

__all__ = ["MARK", "RATING", "count_skipped", "write_answers"]

MAX_RATING = 100
N_RATED = 2
YES = "yes"
"""Value of a checked box."""


class _AnchorKind(HitKind):
    """A kind of anchor.

    The items of an expected part are those of all slots, one after the other; each assignment of the HIT gets
    one slot, whose number is a field of the form.
    """

    part = "anchor"
    answer = "anchor"
    file = "anchors.csv"
    name: ClassVar[Kind]

    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Raise InputError: anchors are a part of a study of tuples."""
        message = "a study of anchors alone is not supported; expected kind tuples and --anchors"
        raise InputError(Problem(file, None, message))

    def columns(self, part_id: str) -> Mapping[str, str]:
        """Return column of the batch file -> name of the form field; the answers have no column."""
        return {"slot": slot_field(part_id), "seconds": answers.seconds_field(part_id)}

    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return the problems of the fields as an answer."""
        values, part_id = dict(fields), expected.tuple_id
        n_slots = len(expected.items) // self.slot_size(expected)
        names = [slot_field(part_id), answers.seconds_field(part_id)]
        slot, seconds = (values.get(name, "") for name in names)
        if slot not in map(str, range(1, n_slots + 1)):
            return [f"{part_id}: slot is {slot!r}; expected a number from 1 to {n_slots}"]
        counts = Counter(name for name, _ in fields)
        return [
            *answers.repeated_field_problems([*names, *self.single_fields(expected)], counts),
            *(f"{part_id}: {text}" for text in self.answer_problems(expected, fields)),
            *answers.seconds_problems(part_id, seconds),
        ]

    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write the file of anchors atomically; see `write_answers`."""
        write_answers(answers, path)

    def slot_items(self, expected: ExpectedTuple, fields: Fields) -> Sequence[str]:
        """Return the items of the slot that the fields state, in the order of presentation."""
        size = self.slot_size(expected)
        last = size * int(dict(fields)[slot_field(expected.tuple_id)])
        return expected.items[last - size : last]

    def simulated_slot(self, expected: ExpectedTuple) -> tuple[str, str]:
        """Return the field with the slot that the page selects."""
        n_slots = len(expected.items) // self.slot_size(expected)
        return slot_field(expected.tuple_id), str(expected.assignment_number % n_slots + 1)

    @abstractmethod
    def slot_size(self, expected: ExpectedTuple) -> int:
        """Return the number of items of each slot."""
        ...

    @abstractmethod
    def single_fields(self, expected: ExpectedTuple) -> list[str]:
        """Return the names of the fields of the answer that may occur once."""
        ...

    @abstractmethod
    def answer_problems(self, expected: ExpectedTuple, fields: Fields) -> Iterator[str]:
        """Yield the problems of the answers to the items of a valid slot."""
        ...

    @abstractmethod
    def answers(self, expected: ExpectedTuple, fields: Fields) -> dict[str, int]:
        """Return item -> answer in valid fields, without skipped items."""
        ...

    @abstractmethod
    def n_skipped(self, expected: ExpectedTuple, fields: Fields) -> int:
        """Return the number of skipped questions in valid fields."""
        ...


class Rating(_AnchorKind):
    """Two candidates, rated from 0 to 100 one after the other.

    >>> expected = ExpectedTuple("anchor:d1", "d1", ("a", "b", "c", "a"), "rating")
    >>> fields = [("slot-anchor:d1", "2"), ("rating-3-anchor:d1", "40"), ("skip-1-anchor:d1", "yes")]
    >>> RATING.problems(expected, fields), RATING.answers(expected, fields)
    ([], {'c': 40})
    >>> RATING.problems(expected, fields[:2])
    ["anchor:d1: the answer to 'a' is missing; expected a number from 0 to 100, or skipping"]
    """

    name = "rating"

    def slot_size(self, expected: ExpectedTuple) -> int:
        """Return two."""
        return N_RATED

    def single_fields(self, expected: ExpectedTuple) -> list[str]:
        """Return the names of the fields of the answer that may occur once."""
        names = (rating_field, skip_field)
        numbers = range(1, len({*expected.items}) + 1)
        return [name(expected.tuple_id, number) for number in numbers for name in names]

    def answer_problems(self, expected: ExpectedTuple, fields: Fields) -> Iterator[str]:
        """Yield a problem per item of the slot without a rating that is not skipped."""
        values, expectation = dict(fields), f"expected a number from 0 to {MAX_RATING}, or skipping"
        for item, rating_name, skip_name in self._names(expected, fields):
            rating, skip = values.get(rating_name, ""), values.get(skip_name, "")
            if not rating and not skip:
                yield f"the answer to {item!r} is missing; {expectation}"
            elif skip not in ("", YES) or (rating and skip):
                yield f"the answer to {item!r} is {rating!r}, and skip is {skip!r}; {expectation}"
            elif rating and rating not in map(str, range(MAX_RATING + 1)):
                yield f"the answer to {item!r} is {rating!r}; {expectation}"

    def answers(self, expected: ExpectedTuple, fields: Fields) -> dict[str, int]:
        """Return item -> rating in valid fields, without skipped items."""
        values = dict(fields)
        ratings = {item: values.get(name, "") for item, name, _ in self._names(expected, fields)}
        return {item: int(rating) for item, rating in ratings.items() if rating}

    def n_skipped(self, expected: ExpectedTuple, fields: Fields) -> int:
        """Return the number of items of the slot without a rating."""
        return N_RATED - len(self.answers(expected, fields))

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return ratings of the items of the slot, simulated from the true scores."""
        fields = [self.simulated_slot(expected)]
        scores = _simulated_scores(expected, truth, behaviour, worker)
        for item, name, _ in self._names(expected, fields):
            rating = round(MAX_RATING * min(1.0, max(0.0, (scores[item] + 1) / 2)))
            fields.append((name, str(rating)))
        return fields

    def _names(self, expected: ExpectedTuple, fields: Fields) -> list[tuple[str, str, str]]:
        """Return each item of the slot with the names of its fields."""
        numbers = {item: n for n, item in enumerate(dict.fromkeys(expected.items), start=1)}
        part_id = expected.tuple_id
        return [
            (item, rating_field(part_id, numbers[item]), skip_field(part_id, numbers[item]))
            for item in self.slot_items(expected, fields)
        ]


class Mark(_AnchorKind):
    """All candidates, of which one person marks those that could replace the last turn.

    >>> expected = ExpectedTuple("anchor:d1", "d1", ("a", "b", "b", "a"), "mark")
    >>> fields = [("slot-anchor:d1", "2"), ("mark-anchor:d1", "b")]
    >>> MARK.problems(expected, fields), MARK.answers(expected, fields)
    ([], {'b': 1, 'a': 0})
    >>> MARK.problems(expected, [*fields, ("none-anchor:d1", "yes")])
    ['anchor:d1: 1 marks, none, not skipped; expected marks, or none, or skipping']
    """

    name = "mark"

    def slot_size(self, expected: ExpectedTuple) -> int:
        """Return the number of different items."""
        return len({*expected.items})

    def single_fields(self, expected: ExpectedTuple) -> list[str]:
        """Return the names of the fields of the answer that may occur once."""
        return [none_field(expected.tuple_id), skip_field(expected.tuple_id)]

    def answer_problems(self, expected: ExpectedTuple, fields: Fields) -> Iterator[str]:
        """Yield the problems of the marks."""
        values, marks = dict(fields), self._marks(expected, fields)
        if not {*marks} <= {*expected.items} or len({*marks}) < len(marks):
            listed = ", ".join(map(repr, dict.fromkeys(expected.items)))
            yield f"the marks are {marks!r}; expected some of {listed}, each once"
        names = self.single_fields(expected)
        for name in names:
            if values.get(name, YES) != YES:
                yield f"{name} is {values[name]!r}; expected {YES!r}"
        is_none, is_skipped = (name in values for name in names)
        if (bool(marks), is_none, is_skipped).count(True) != 1:
            state = ("none" if is_none else "not none", "skipped" if is_skipped else "not skipped")
            yield f"{len(marks)} marks, {', '.join(state)}; expected marks, or none, or skipping"

    def answers(self, expected: ExpectedTuple, fields: Fields) -> dict[str, int]:
        """Return 1 for marked and 0 for other items in valid fields; none if the question is skipped."""
        if self.n_skipped(expected, fields):
            return {}
        marks = self._marks(expected, fields)
        return {item: int(item in marks) for item in self.slot_items(expected, fields)}

    def n_skipped(self, expected: ExpectedTuple, fields: Fields) -> int:
        """Return 1 if the question is skipped, otherwise 0."""
        return int(skip_field(expected.tuple_id) in dict(fields))

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the marks of items whose simulated score is above 0."""
        scores = _simulated_scores(expected, truth, behaviour, worker)
        name = mark_field(expected.tuple_id)
        marks = [(name, item) for item, score in scores.items() if score > 0]
        none = (none_field(expected.tuple_id), YES)
        return [self.simulated_slot(expected), *(marks or [none])]

    def _marks(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        return [value for name, value in fields if name == mark_field(expected.tuple_id)]


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
    perceived = {
        item: score
        + worker_deviation(behaviour, worker, expected.group, item)
        + generator.gauss(0, behaviour.noise)
        for item, score in scores.items()
    }
    if behaviour.is_unit_truth:
        return {item: 2 * score - 1 for item, score in perceived.items()}
    return perceived


def _kind(row: ValidAnswer) -> _AnchorKind:
    return MARK if row.expected.kind == MARK.name else RATING


def count_skipped(rows: Sequence[ValidAnswer]) -> int:
    """Return the number of skipped questions in valid answers."""
    return sum(_kind(row).n_skipped(row.expected, row.fields) for row in rows)


def write_answers(rows: Sequence[ValidAnswer], path: str | os.PathLike[str]) -> int:
    """Write one row per rated item, or per item of answered marks, atomically; return their number.

    The seconds are those of all items of the dialogue. Raises InputError if simulated answers would replace
    others.
    """
    from bws.absolute.files import Anchor, write_anchors

    if all(answers.read_comment(row.fields) == SIMULATED_COMMENT for row in rows):
        _check_replaceable(path, {row.assignment.assignment_id for row in rows})
    anchors = [
        Anchor(
            row.expected.group, item, row.annotator, kind.name, items[item], position,
            answers.read_seconds(dict(row.fields).get(answers.seconds_field(row.expected.tuple_id), "")),
            row.assignment.assignment_id,
        )
        for row in rows
        for kind in [_kind(row)]
        for items in [kind.answers(row.expected, row.fields)]
        for position, item in enumerate(kind.slot_items(row.expected, row.fields), start=1)
        if item in items
    ]  # fmt: skip
    write_anchors(anchors, path)
    return len(anchors)


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
