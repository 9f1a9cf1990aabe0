"""The valid answers among the assignments of a ledger, as judgments where they are, and what is left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from mturk import answers
from mturk.kinds import ExpectedTuple, ValidAnswer, get_kind
from mturk.kinds.registry import DEFAULT_KIND
from mturk.study.ledger import Assignment, Ledger

if TYPE_CHECKING:
    from bws.records import Judgments

__all__ = [
    "ExcludedAnswer",
    "Reason",
    "ValidAnswers",
    "expected_tuples",
    "read_valid_answers",
    "write_answers",
]

Reason = Literal["rejected", "unreadable", "invalid", "again"]
REASONS: Mapping[Reason, str] = {
    "rejected": "assignments were rejected",
    "unreadable": "answers are no answers of a form",
    "invalid": "answers to a {} are missing or wrong",
    "again": "answers to a {} repeat a person's earlier one",
}


@dataclass(frozen=True, slots=True)
class ExcludedAnswer:
    """What is no judgment, and why."""

    assignment_id: str
    tuple_id: str
    """Empty where the whole assignment is left out."""
    reason: Reason
    text: str


@dataclass(frozen=True, eq=False)
class ValidAnswers:
    """The valid answers of a study so far; as judgments, where it is one of tuples."""

    judgments: Judgments | None
    """None: there are none yet, or the study is of another kind."""
    answers_per_tuple: Mapping[str, int]
    """Tuple id -> valid answers, of all tuples (pairs, triplets) of the study."""
    excluded: tuple[ExcludedAnswer, ...]
    n_without_order: int
    """Judgments that do not tell in which order the items were shown; where there are any, no judgment
    does, because a file has the orders of all or of none."""
    k: int
    """Items in a tuple."""
    counts: Mapping[Reason, int] = field(default_factory=dict)
    kind: str = DEFAULT_KIND
    answers: tuple[ValidAnswer, ...] = ()
    """In the order of submission."""

    def notes(self) -> list[str]:
        """Return in words what is left out."""
        part = get_kind(self.kind).part
        messages = [
            f"left out: {n} {REASONS[reason].format(part)}" for reason, n in self.counts.items()
        ]
        if self.n_without_order:
            messages.append(
                f"{self.n_without_order} judgments do not tell the order shown; it is left out"
            )
        return messages


def expected_tuples(ledger: Ledger) -> dict[str, list[ExpectedTuple]]:
    """Return the tuples (pairs, triplets) of each HIT that exists, by the HIT's id."""
    kind = ledger.study().settings.kind
    ids = {hit.number: hit.hit_id for hit in ledger.hits() if hit.hit_id}
    tuples_by_hit: dict[str, list[ExpectedTuple]] = {str(hit_id): [] for hit_id in ids.values()}
    for part in ledger.parts():
        if hit_id := ids.get(part.number):
            tuples_by_hit[hit_id].append(ExpectedTuple(part.tuple_id, part.group, part.items, kind))
    return tuples_by_hit


def read_valid_answers(
    ledger: Ledger, worker: Callable[[Assignment], str] | None = None
) -> ValidAnswers:
    """Return the valid judgments among the ledger's assignments, and what is left out.

    Rejected assignments count for nothing. A tuple's answer counts on its own: that one of a HIT's tuples
    was answered wrongly takes nothing from the other. Of several answers of a person to a tuple (a
    HIT may ask it again when tuples are topped up) the first valid one counts.

    worker: who an assignment is by; None takes what the ledger says.
    """
    tuples, kind, name = expected_tuples(ledger), ledger.study().settings.kind, worker or _worker
    rows: list[ValidAnswer] = []
    left_out: list[ExcludedAnswer] = []
    for assignment in sorted(ledger.assignments(), key=lambda one: one.submit_time or 0.0):
        _sort_answers(assignment, tuples[assignment.hit_id], name, rows, left_out)
    rows = _first_answers(rows, left_out)
    counts = dict.fromkeys((part.tuple_id for part in ledger.parts()), 0)
    for row in rows:
        counts[row.expected.tuple_id] += 1
    judgments, order_unknown = get_kind(kind).judgments(rows, ledger.path) if rows else (None, 0)
    reasons = Counter(excluded_answer.reason for excluded_answer in left_out)
    k = max((len(part.items) for part in ledger.parts()), default=0)
    return ValidAnswers(
        judgments, counts, tuple(left_out), order_unknown, k, reasons, kind, tuple(rows)
    )  # fmt: skip


def write_answers(valid_answers: ValidAnswers, path: str | os.PathLike[str]) -> None:
    """Write what was collected, in the file of its kind, whole or not at all."""
    get_kind(valid_answers.kind).write(valid_answers.answers, path, valid_answers.k)


def _worker(assignment: Assignment) -> str:
    return assignment.worker


def _sort_answers(
    assignment: Assignment,
    tuples: list[ExpectedTuple],
    name: Callable[[Assignment], str],
    rows: list[ValidAnswer],
    left_out: list[ExcludedAnswer],
) -> None:
    """Add the valid answers of an assignment, and what is none."""
    its_id = assignment.assignment_id
    if assignment.status == "Rejected":
        left_out.append(ExcludedAnswer(its_id, "", "rejected", assignment.feedback))
        return
    try:
        fields = answers.from_xml(assignment.answer_xml)
    except ValueError as error:
        left_out.append(ExcludedAnswer(its_id, "", "unreadable", str(error)))
        return
    for expected in tuples:
        if problems := get_kind(expected.kind).problems(expected, fields):
            left_out.append(
                ExcludedAnswer(its_id, expected.tuple_id, "invalid", "; ".join(problems))
            )
        else:
            rows.append(ValidAnswer(expected, fields, assignment, name(assignment)))


def _first_answers(rows: list[ValidAnswer], left_out: list[ExcludedAnswer]) -> list[ValidAnswer]:
    """Return each person's first answer to a tuple; they are in the order of submission."""
    first: dict[tuple[str, str], ValidAnswer] = {}
    for row in rows:
        key = (row.assignment.worker, row.expected.tuple_id)
        if first.setdefault(key, row) is not row:
            earlier = first[key].assignment.assignment_id
            text = f"the same person has answered it in assignment {earlier}"
            its_id = row.assignment.assignment_id
            left_out.append(ExcludedAnswer(its_id, row.expected.tuple_id, "again", text))
    return list(first.values())
