"""From answers to judgments: what the ledger's assignments say of each tuple, and what is left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from bws.files import write_judgments
from bws.files.check import judgments_of
from bws.files.rows import Rows
from bws.files.writing import series
from bws.textio import write_atomic
from mturk import answers
from mturk.answers import ExpectedTuple
from mturk.ledger import Assignment, Ledger
from mturk.records import TupleAnswer

if TYPE_CHECKING:
    from bws.records import Judgments

__all__ = ["Judged", "LeftOut", "Reason", "asked", "judged", "write"]

Reason = Literal["rejected", "unreadable", "invalid", "again"]
REASONS: Mapping[Reason, str] = {
    "rejected": "assignments were rejected",
    "unreadable": "answers are no answers of a form",
    "invalid": "answers to a tuple are missing or wrong",
    "again": "answers to a tuple repeat a person's earlier one",
}
CONTRACT = ("assignment_id", "seconds", "comment")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is no judgment, and why."""

    assignment_id: str
    tuple_id: str
    """Empty where the whole assignment is left out."""
    reason: Reason
    text: str


@dataclass(frozen=True, slots=True)
class _Row:
    asked: ExpectedTuple
    answer: TupleAnswer
    assignment: Assignment
    comment: str


@dataclass(frozen=True, eq=False)
class Judged:
    """The valid judgments of a study so far."""

    judgments: Judgments | None
    """None: there are none yet."""
    of_tuple: Mapping[str, int]
    """Tuple id -> valid judgments, of all tuples of the study."""
    left_out: tuple[LeftOut, ...]
    order_unknown: int
    """Judgments that do not tell in which order the items were shown; where there are any, no judgment
    does, because a file has the orders of all or of none."""
    k: int
    """Items in a tuple."""
    counts: Mapping[Reason, int] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """Return in words what is left out."""
        said = [f"left out: {n} {REASONS[reason]}" for reason, n in self.counts.items()]
        if self.order_unknown:
            said.append(
                f"{self.order_unknown} judgments do not tell the order shown; it is left out"
            )
        return said


def asked(ledger: Ledger) -> dict[str, list[ExpectedTuple]]:
    """Return the tuples of each HIT that exists, by the HIT's id."""
    ids = {hit.number: hit.hit_id for hit in ledger.hits() if hit.hit_id}
    found: dict[str, list[ExpectedTuple]] = {str(hit_id): [] for hit_id in ids.values()}
    for part in ledger.parts():
        if hit_id := ids.get(part.number):
            found[hit_id].append(ExpectedTuple(part.tuple_id, part.group, part.items))
    return found


def judged(ledger: Ledger, worker: Callable[[Assignment], str] | None = None) -> Judged:
    """Return the valid judgments among the ledger's assignments, and what is left out.

    Rejected assignments count for nothing. A tuple's answer counts on its own: that one of a HIT's tuples
    was answered wrongly takes nothing from the other. Of several answers of a person to a tuple (a
    HIT may ask it again when tuples are topped up) the first valid one counts.

    worker: who an assignment is by; None takes what the ledger says.
    """
    tuples = asked(ledger)
    rows: list[_Row] = []
    left_out: list[LeftOut] = []
    for assignment in sorted(ledger.assignments(), key=lambda one: one.submit_time or 0.0):
        _read(assignment, tuples[assignment.hit_id], rows, left_out)
    rows = _first_ones(rows, left_out)
    counts = dict.fromkeys((part.tuple_id for part in ledger.parts()), 0)
    for row in rows:
        counts[row.asked.tuple_id] += 1
    order_unknown = sum(not row.answer.shown for row in rows)
    judgments = _judgments(ledger.path, rows, worker or _worker, order_unknown) if rows else None
    reasons = Counter(one.reason for one in left_out)
    k = max((len(part.items) for part in ledger.parts()), default=0)
    return Judged(judgments, counts, tuple(left_out), order_unknown, k, reasons)


def write(found: Judged, path: str | os.PathLike[str]) -> None:
    """Write the judgments file, whole or not at all; where there are none, only its header."""
    if found.judgments is not None:
        write_judgments(found.judgments, path)
        return
    items = [f"item{place}" for place in range(1, found.k + 1)]
    header = ["tuple_id", "group", *items, "best", "worst", "annotator", *CONTRACT, "shown"]
    write_atomic(path, f"{','.join(header)}\n")


def _worker(assignment: Assignment) -> str:
    return assignment.worker


def _read(
    assignment: Assignment,
    tuples: list[ExpectedTuple],
    rows: list[_Row],
    left_out: list[LeftOut],
) -> None:
    """Add the judgments of an assignment, and what is none."""
    its_id = assignment.assignment_id
    if assignment.status == "Rejected":
        left_out.append(LeftOut(its_id, "", "rejected", assignment.feedback))
        return
    try:
        fields = answers.from_xml(assignment.answer_xml)
    except ValueError as error:
        left_out.append(LeftOut(its_id, "", "unreadable", str(error)))
        return
    for one in tuples:
        try:
            (answer,) = answers.tuple_answers([one], fields)
        except ValueError as error:
            left_out.append(LeftOut(its_id, one.tuple_id, "invalid", str(error)))
        else:
            rows.append(_Row(one, answer, assignment, answers.comment(fields)))


def _first_ones(rows: list[_Row], left_out: list[LeftOut]) -> list[_Row]:
    """Return each person's first answer to a tuple; they are in the order of submission."""
    first: dict[tuple[str, str], _Row] = {}
    for row in rows:
        key = (row.assignment.worker, row.asked.tuple_id)
        if first.setdefault(key, row) is not row:
            earlier = first[key].assignment.assignment_id
            text = f"the same person has answered it in assignment {earlier}"
            its_id = row.assignment.assignment_id
            left_out.append(LeftOut(its_id, row.asked.tuple_id, "again", text))
    return list(first.values())


def _judgments(
    name: str, rows: list[_Row], worker: Callable[[Assignment], str], order_unknown: int
) -> Judgments:
    k = len(rows[0].asked.items)
    columns = {
        "assignment_id": [row.assignment.assignment_id for row in rows],
        "seconds": [_seconds(row.answer.seconds) for row in rows],
        "comment": [row.comment for row in rows],
    }
    orders = None if order_unknown else series([";".join(row.answer.shown) for row in rows])
    return judgments_of(
        Rows(
            file=name,
            form="answers",
            lines=np.arange(1, len(rows) + 1, dtype=np.int64),
            items=[series([row.asked.items[place] for row in rows]) for place in range(k)],
            best=series([row.answer.best for row in rows]),
            worst=series([row.answer.worst for row in rows]),
            tuple_id=series([row.asked.tuple_id for row in rows]),
            group=series([row.asked.group for row in rows]),
            annotator=series([worker(row.assignment) for row in rows]),
            shown=orders,
            columns={column: series(texts) for column, texts in columns.items()},
        )
    )


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"
