"""From answers to judgments: what the ledger's assignments say of each tuple, and what is left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from bws.files.check import judgments_of
from bws.files.rows import Rows
from bws.files.writing import series
from mturk import answers
from mturk.answers import ExpectedTuple, Fields
from mturk.kinds import kind_of
from mturk.ledger import Assignment, Ledger

if TYPE_CHECKING:
    from bws.records import Judgments

__all__ = ["Answered", "Judged", "LeftOut", "Reason", "asked", "judged", "write"]

Reason = Literal["rejected", "unreadable", "invalid", "again"]
REASONS: Mapping[Reason, str] = {
    "rejected": "assignments were rejected",
    "unreadable": "answers are no answers of a form",
    "invalid": "answers to a {} are missing or wrong",
    "again": "answers to a {} repeat a person's earlier one",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is no judgment, and why."""

    assignment_id: str
    tuple_id: str
    """Empty where the whole assignment is left out."""
    reason: Reason
    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A valid answer to a tuple, pair or triplet."""

    asked: ExpectedTuple
    fields: Fields
    """Of the whole form."""
    assignment: Assignment
    annotator: str


@dataclass(frozen=True, eq=False)
class Judged:
    """The valid answers of a study so far; as judgments, where it is one of tuples."""

    judgments: Judgments | None
    """None: there are none yet, or the study is of another kind."""
    of_tuple: Mapping[str, int]
    """Tuple id -> valid answers, of all tuples (pairs, triplets) of the study."""
    left_out: tuple[LeftOut, ...]
    order_unknown: int
    """Judgments that do not tell in which order the items were shown; where there are any, no judgment
    does, because a file has the orders of all or of none."""
    k: int
    """Items in a tuple."""
    counts: Mapping[Reason, int] = field(default_factory=dict)
    kind: str = "tuples"
    answered: tuple[Answered, ...] = ()
    """In the order of submission."""

    def notes(self) -> list[str]:
        """Return in words what is left out."""
        part = kind_of(self.kind).PART
        said = [f"left out: {n} {REASONS[why].format(part)}" for why, n in self.counts.items()]
        if self.order_unknown:
            said.append(
                f"{self.order_unknown} judgments do not tell the order shown; it is left out"
            )
        return said


def asked(ledger: Ledger) -> dict[str, list[ExpectedTuple]]:
    """Return the tuples (pairs, triplets) of each HIT that exists, by the HIT's id."""
    kind = ledger.study().settings.kind
    ids = {hit.number: hit.hit_id for hit in ledger.hits() if hit.hit_id}
    found: dict[str, list[ExpectedTuple]] = {str(hit_id): [] for hit_id in ids.values()}
    for part in ledger.parts():
        if hit_id := ids.get(part.number):
            found[hit_id].append(ExpectedTuple(part.tuple_id, part.group, part.items, kind))
    return found


def judged(ledger: Ledger, worker: Callable[[Assignment], str] | None = None) -> Judged:
    """Return the valid judgments among the ledger's assignments, and what is left out.

    Rejected assignments count for nothing. A tuple's answer counts on its own: that one of a HIT's tuples
    was answered wrongly takes nothing from the other. Of several answers of a person to a tuple (a
    HIT may ask it again when tuples are topped up) the first valid one counts.

    worker: who an assignment is by; None takes what the ledger says.
    """
    tuples, kind, name = asked(ledger), ledger.study().settings.kind, worker or _worker
    rows: list[Answered] = []
    left_out: list[LeftOut] = []
    for assignment in sorted(ledger.assignments(), key=lambda one: one.submit_time or 0.0):
        _read(assignment, tuples[assignment.hit_id], name, rows, left_out)
    rows = _first_ones(rows, left_out)
    counts = dict.fromkeys((part.tuple_id for part in ledger.parts()), 0)
    for row in rows:
        counts[row.asked.tuple_id] += 1
    judgments, order_unknown = (
        _judgments(ledger.path, rows) if rows and kind == "tuples" else (None, 0)
    )
    reasons = Counter(one.reason for one in left_out)
    k = max((len(part.items) for part in ledger.parts()), default=0)
    return Judged(
        judgments, counts, tuple(left_out), order_unknown, k, reasons, kind, tuple(rows)
    )  # fmt: skip


def write(found: Judged, path: str | os.PathLike[str]) -> None:
    """Write what was collected, in the file of its kind, whole or not at all."""
    kind_of(found.kind).write(found, path)


def _worker(assignment: Assignment) -> str:
    return assignment.worker


def _read(
    assignment: Assignment,
    tuples: list[ExpectedTuple],
    name: Callable[[Assignment], str],
    rows: list[Answered],
    left_out: list[LeftOut],
) -> None:
    """Add the valid answers of an assignment, and what is none."""
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
        if problems := kind_of(one.kind).problems(one, fields):
            left_out.append(LeftOut(its_id, one.tuple_id, "invalid", "; ".join(problems)))
        else:
            rows.append(Answered(one, fields, assignment, name(assignment)))


def _first_ones(rows: list[Answered], left_out: list[LeftOut]) -> list[Answered]:
    """Return each person's first answer to a tuple; they are in the order of submission."""
    first: dict[tuple[str, str], Answered] = {}
    for row in rows:
        key = (row.assignment.worker, row.asked.tuple_id)
        if first.setdefault(key, row) is not row:
            earlier = first[key].assignment.assignment_id
            text = f"the same person has answered it in assignment {earlier}"
            its_id = row.assignment.assignment_id
            left_out.append(LeftOut(its_id, row.asked.tuple_id, "again", text))
    return list(first.values())


def _judgments(name: str, rows: Sequence[Answered]) -> tuple[Judgments, int]:
    """Return the judgments, and how many do not tell the order shown."""
    said = [answers.tuple_answers([row.asked], row.fields)[0] for row in rows]
    order_unknown = sum(not answer.shown for answer in said)
    columns = {
        "assignment_id": [row.assignment.assignment_id for row in rows],
        "seconds": [_seconds(answer.seconds) for answer in said],
        "comment": [answers.comment(row.fields) for row in rows],
    }
    orders = None if order_unknown else series([";".join(answer.shown) for answer in said])
    k = len(rows[0].asked.items)
    found = judgments_of(
        Rows(
            file=name,
            form="answers",
            lines=np.arange(1, len(rows) + 1, dtype=np.int64),
            items=[series([row.asked.items[place] for row in rows]) for place in range(k)],
            best=series([answer.best for answer in said]),
            worst=series([answer.worst for answer in said]),
            tuple_id=series([row.asked.tuple_id for row in rows]),
            group=series([row.asked.group for row in rows]),
            annotator=series([row.annotator for row in rows]),
            shown=orders,
            columns={column: series(texts) for column, texts in columns.items()},
        )
    )
    return found, order_unknown


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"
