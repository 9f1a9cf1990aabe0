"""Form fields of a page of tuples, their validation, and conversion to judgments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mturk.answers import (
    read_comment,
    read_seconds,
    repeated_field_problems,
    seconds_field,
    seconds_problems,
)
from mturk.kinds import ExpectedTuple, Fields, ValidAnswer

if TYPE_CHECKING:
    from bws.records import Judgments


@dataclass(frozen=True, slots=True)
class TupleAnswer:
    """Answer of one worker to one tuple."""

    tuple_id: str
    best: str
    worst: str
    shown_order: tuple[str, ...]
    """Item ids in the order of presentation; empty if unknown."""
    seconds: float | None = None


def best_field(tuple_id: str) -> str:
    """Return the name of the field with the best item."""
    return f"best-{tuple_id}"


def worst_field(tuple_id: str) -> str:
    """Return the name of the field with the worst item."""
    return f"worst-{tuple_id}"


def shown_field(tuple_id: str) -> str:
    """Return the name of the field with the order of presentation."""
    return f"shown-{tuple_id}"


def join_shown(items: Sequence[str]) -> str:
    """Encode an order of items as one value.

    >>> join_shown(["a", "b;c", "100%"])
    'a;b%3Bc;100%25'
    """
    return ";".join(item.replace("%", "%25").replace(";", "%3B") for item in items)


def split_shown(value: str) -> tuple[str, ...]:
    """Decode a value of `join_shown`.

    >>> split_shown("a;b%3Bc;100%25")
    ('a', 'b;c', '100%')
    """
    if not value:
        return ()
    return tuple(part.replace("%3B", ";").replace("%25", "%") for part in value.split(";"))


def find_problems(tuples: Sequence[ExpectedTuple], fields: Fields) -> list[str]:
    """Return the problems of the fields as answers; other fields are ignored.

    The order of presentation and the seconds may be missing (pages without scripts), but not invalid.

    >>> tuples = [ExpectedTuple("t1", "d1", ("a", "b", "c"))]
    >>> find_problems(tuples, [("best-t1", "a"), ("worst-t1", "a")])
    ["t1: best and worst are both 'a'; expected different items"]
    """
    values = dict(fields)
    times = Counter(name for name, _ in fields)
    return [problem for expected in tuples for problem in _tuple_problems(expected, values, times)]


def _tuple_problems(
    expected: ExpectedTuple, values: Mapping[str, str], times: Mapping[str, int]
) -> list[str]:
    best, worst = (values.get(name(expected.tuple_id), "") for name in (best_field, worst_field))
    shown_order = values.get(shown_field(expected.tuple_id), "")
    seconds = values.get(seconds_field(expected.tuple_id), "")
    names = (best_field, worst_field, shown_field, seconds_field)
    problems = repeated_field_problems([name(expected.tuple_id) for name in names], times)
    for role, answer in (("best", best), ("worst", worst)):
        if not answer:
            problems.append(
                f"{expected.tuple_id}: {role} is missing; expected one of {_list(expected.items)}"
            )
        elif answer not in expected.items:
            problems.append(
                f"{expected.tuple_id}: {role} is {answer!r}; expected one of {_list(expected.items)}"
            )
    if best and best == worst:
        problems.append(
            f"{expected.tuple_id}: best and worst are both {best!r}; expected different items"
        )
    if shown_order and sorted(split_shown(shown_order)) != sorted(expected.items):
        problems.append(
            f"{expected.tuple_id}: shown is {shown_order!r}; expected {_list(expected.items)} in any order"
        )
    return [*problems, *seconds_problems(expected.tuple_id, seconds)]


def _list(items: Sequence[str]) -> str:
    return ", ".join(map(repr, items))


def tuple_answers(tuples: Sequence[ExpectedTuple], fields: Fields) -> tuple[TupleAnswer, ...]:
    """Return the answers to the tuples; ValueError with the problems of `find_problems`.

    >>> tuple_answers([ExpectedTuple("t1", "d1", ("a", "b"))], [("best-t1", "a"), ("worst-t1", "b")])
    (TupleAnswer(tuple_id='t1', best='a', worst='b', shown_order=(), seconds=None),)
    """
    problems = find_problems(tuples, fields)
    if problems:
        raise ValueError("; ".join(problems))
    values = dict(fields)
    return tuple(
        TupleAnswer(
            expected.tuple_id,
            values[best_field(expected.tuple_id)],
            values[worst_field(expected.tuple_id)],
            split_shown(values.get(shown_field(expected.tuple_id), "")),
            read_seconds(values.get(seconds_field(expected.tuple_id), "")),
        )
        for expected in tuples
    )


def judgments(rows: Sequence[ValidAnswer], file: str) -> tuple[Judgments, int]:
    """Return the judgments, and how many lack the order of presentation.

    If any lack it, the orders of all are dropped, because a file has the orders of all judgments or of none.
    """
    import numpy as np

    from bws.files.judgments import judgments_of
    from bws.files.rows import Rows
    from bws.record_columns import series

    parsed_answers = [tuple_answers([row.expected], row.fields)[0] for row in rows]
    n_without_order = sum(not answer.shown_order for answer in parsed_answers)
    columns = {
        "assignment_id": [row.assignment.assignment_id for row in rows],
        "seconds": [_seconds(answer.seconds) for answer in parsed_answers],
        "comment": [read_comment(row.fields) for row in rows],
    }
    if any(row.expected.round for row in rows):
        columns["round"] = [row.expected.round for row in rows]
        columns["purpose"] = [row.expected.purpose for row in rows]
    if any(row.expected.control for row in rows):
        columns["control"] = [row.expected.control for row in rows]
    orders = (
        None
        if n_without_order
        else series([";".join(answer.shown_order) for answer in parsed_answers])
    )
    k = len(rows[0].expected.items)
    judgment_data = judgments_of(
        Rows(
            file=file,
            form="answers",
            lines=np.arange(1, len(rows) + 1, dtype=np.int64),
            items=[series([row.expected.items[position] for row in rows]) for position in range(k)],
            best=series([answer.best for answer in parsed_answers]),
            worst=series([answer.worst for answer in parsed_answers]),
            tuple_id=series([row.expected.tuple_id for row in rows]),
            group=series([row.expected.group for row in rows]),
            annotator=series([row.annotator for row in rows]),
            shown=orders,
            columns={column: series(texts) for column, texts in columns.items()},
        )
    )
    # Each answer has an assignment of its own, so that none is a copy.
    return replace(judgment_data, allow_copies=True), n_without_order


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"
