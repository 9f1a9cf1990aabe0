"""The form of a page of tuples: its fields, whether they answer the questions, and the judgments in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

__all__ = [
    "TupleAnswer", "best_field", "find_problems", "join_shown", "judgments", "shown_field", "split_shown",
    "tuple_answers", "worst_field",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class TupleAnswer:
    """What one worker said of one tuple."""

    tuple_id: str
    best: str
    worst: str
    shown_order: tuple[str, ...]
    """Item ids in the order in which the page showed them; empty where that is not known."""
    seconds: float | None = None


def best_field(tuple_id: str) -> str:
    """Return the name of the field with the item that was chosen best."""
    return f"best-{tuple_id}"


def worst_field(tuple_id: str) -> str:
    """Return the name of the field with the item that was chosen worst."""
    return f"worst-{tuple_id}"


def shown_field(tuple_id: str) -> str:
    """Return the name of the field with the order in which the items were shown."""
    return f"shown-{tuple_id}"


def join_shown(items: Sequence[str]) -> str:
    """Write an order of items as one value.

    >>> join_shown(["a", "b;c", "100%"])
    'a;b%3Bc;100%25'
    """
    return ";".join(item.replace("%", "%25").replace(";", "%3B") for item in items)


def split_shown(value: str) -> tuple[str, ...]:
    """Read what `join_shown` wrote.

    >>> split_shown("a;b%3Bc;100%25")
    ('a', 'b;c', '100%')
    """
    if not value:
        return ()
    return tuple(part.replace("%3B", ";").replace("%25", "%") for part in value.split(";"))


def find_problems(tuples: Sequence[ExpectedTuple], fields: Fields) -> list[str]:
    """Return all that keeps the fields from being an answer; fields of other names are let be.

    The order shown and the seconds may be missing (a page without scripts), but not be wrong.

    >>> asked = [ExpectedTuple("t1", "d1", ("a", "b", "c"))]
    >>> find_problems(asked, [("best-t1", "a"), ("worst-t1", "a")])
    ["t1: best and worst are both 'a'; they must be different items"]
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
                f"{expected.tuple_id}: {role} is missing; choose one of {_list(expected.items)}"
            )
        elif answer not in expected.items:
            problems.append(
                f"{expected.tuple_id}: {role} is {answer!r}; allowed: {_list(expected.items)}"
            )
    if best and best == worst:
        problems.append(
            f"{expected.tuple_id}: best and worst are both {best!r}; they must be different items"
        )
    if shown_order and sorted(split_shown(shown_order)) != sorted(expected.items):
        problems.append(
            f"{expected.tuple_id}: shown is {shown_order!r}; it must be {_list(expected.items)} in some order"
        )
    return [*problems, *seconds_problems(expected.tuple_id, seconds)]


def _list(items: Sequence[str]) -> str:
    return ", ".join(map(repr, items))


def tuple_answers(tuples: Sequence[ExpectedTuple], fields: Fields) -> tuple[TupleAnswer, ...]:
    """Return the answers to the tuples; ValueError with all that `find_problems` finds.

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
    """Return the judgments, and how many do not state the order shown.

    Where there are any, no judgment does, because a file has the orders of all or of none.
    """
    import numpy as np

    from bws.files.columns import series
    from bws.files.judgments import judgments_of
    from bws.files.rows import Rows

    parsed_answers = [tuple_answers([row.expected], row.fields)[0] for row in rows]
    order_unknown = sum(not answer.shown_order for answer in parsed_answers)
    columns = {
        "assignment_id": [row.assignment.assignment_id for row in rows],
        "seconds": [_seconds(answer.seconds) for answer in parsed_answers],
        "comment": [read_comment(row.fields) for row in rows],
    }
    orders = (
        None
        if order_unknown
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
    return judgment_data, order_unknown


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"
