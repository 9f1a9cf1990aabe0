"""Valid answers in the assignments of a ledger, and excluded answers with reasons."""

from __future__ import annotations

import math
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

Reason = Literal["rejected", "withdrawn", "unreadable", "invalid", "again"]
REASONS: Mapping[Reason, str] = {
    "rejected": "assignments were rejected",
    "withdrawn": "assignments were withdrawn by their participants, and their answers deleted",
    "unreadable": "answers are unreadable",
    "invalid": "answers to a {} are missing or invalid",
    "again": "answers to a {} repeat an earlier answer of the worker",
}


@dataclass(frozen=True, slots=True)
class ExcludedAnswer:
    """An excluded answer with the reason."""

    assignment_id: str
    tuple_id: str
    """Empty if the whole assignment is excluded."""
    reason: Reason
    text: str


@dataclass(frozen=True, eq=False)
class ValidAnswers:
    """Valid answers of a study; for tuples, also as judgments."""

    judgments: Judgments | None
    """None without judgments, or for a study of another kind."""
    answers_per_tuple: Mapping[str, int]
    """Tuple id -> number of valid answers, for all tuples (pairs, triplets) of the study."""
    excluded: tuple[ExcludedAnswer, ...]
    n_without_order: int
    """Number of judgments without the order of presentation. If there are any, the orders of all judgments
    are dropped, because a file has the orders of all judgments or of none."""
    k: int
    """Items per tuple."""
    counts: Mapping[Reason, int] = field(default_factory=dict)
    kind: str = DEFAULT_KIND
    answers: tuple[ValidAnswer, ...] = ()
    """Valid answers in the order of submission."""
    anchors: tuple[ValidAnswer, ...] = ()
    """Valid answers to anchors in the order of submission."""
    answers_per_anchor: Mapping[str, int] = field(default_factory=dict)
    """Id of an anchor -> number of valid answers, for all anchors of the study."""

    def notes(self) -> list[str]:
        """Return messages on excluded answers."""
        part = get_kind(self.kind).part + (" or anchor" if self.answers_per_anchor else "")
        messages = [
            f"excluded: {n} {REASONS[reason].format(part)}" for reason, n in self.counts.items()
        ]
        if self.n_without_order:
            messages.append(
                f"{self.n_without_order} judgments have no order of presentation; the order is dropped"
            )
        return messages


def expected_tuples(ledger: Ledger) -> dict[str, list[ExpectedTuple]]:
    """Return HIT id -> tuples (pairs, triplets) or anchors, for all existing HITs."""
    kind = ledger.study().settings.kind
    ids = {hit.number: hit.hit_id for hit in ledger.hits() if hit.hit_id}
    anchors = ledger.anchors()
    tuples_by_hit: dict[str, list[ExpectedTuple]] = {str(hit_id): [] for hit_id in ids.values()}
    rounds, controls = ledger.rounds(), ledger.controls()
    for part in ledger.parts():
        if hit_id := ids.get(part.number):
            round_number, purpose, *_ = rounds.get(part.tuple_id, ("", ""))
            tuples_by_hit[hit_id].append(
                ExpectedTuple(
                    part.tuple_id,
                    part.group,
                    part.items,
                    anchors.get(part.tuple_id, kind),
                    round_number,
                    purpose,
                    controls.get(part.tuple_id, ""),
                )
            )
    return tuples_by_hit


def read_valid_answers(
    ledger: Ledger,
    worker: Callable[[Assignment], str] | None = None,
    *,
    collected_until: float = math.inf,
) -> ValidAnswers:
    """Return the valid answers in the ledger's assignments, and the excluded ones.

    Rejected assignments are excluded. Answers are checked per tuple: an invalid answer to one tuple of a HIT
    does not affect the others. Of several answers of a worker to a tuple, which a top-up can cause, the
    first valid one counts.

    worker: returns the worker of an assignment; None uses the name in the ledger. collected_until: later
    assignments are ignored; seconds since 1970.
    """
    tuples, kind, name = expected_tuples(ledger), ledger.study().settings.kind, worker or _worker
    rows: list[ValidAnswer] = []
    excluded: list[ExcludedAnswer] = []
    assignments = [one for one in ledger.assignments() if one.collected_at <= collected_until]
    for assignment in sorted(assignments, key=lambda assignment: assignment.submit_time or 0.0):
        _sort_answers(assignment, tuples[assignment.hit_id], name, rows, excluded)
    all_rows = _first_answers(rows, excluded)
    rows = [row for row in all_rows if row.expected.kind == kind]
    parts, anchors = ledger.tuple_parts(), ledger.anchors()
    counts = dict.fromkeys([*(part.tuple_id for part in parts), *anchors], 0)
    for row in all_rows:
        counts[row.expected.tuple_id] += 1
    judgments, n_without_order = get_kind(kind).judgments(rows, ledger.path) if rows else (None, 0)
    reasons = Counter(excluded_answer.reason for excluded_answer in excluded)
    return ValidAnswers(
        judgments=judgments,
        answers_per_tuple={part.tuple_id: counts[part.tuple_id] for part in parts},
        excluded=tuple(excluded),
        n_without_order=n_without_order,
        k=max((len(part.items) for part in parts), default=0),
        counts=reasons,
        kind=kind,
        answers=tuple(rows),
        anchors=tuple(row for row in all_rows if row.expected.kind != kind),
        answers_per_anchor={part_id: counts[part_id] for part_id in anchors},
    )


def write_answers(valid_answers: ValidAnswers, path: str | os.PathLike[str]) -> None:
    """Write the valid answers in the format of their kind, atomically."""
    get_kind(valid_answers.kind).write(valid_answers.answers, path, valid_answers.k)


def _worker(assignment: Assignment) -> str:
    return assignment.worker


def _sort_answers(
    assignment: Assignment,
    tuples: list[ExpectedTuple],
    name: Callable[[Assignment], str],
    rows: list[ValidAnswer],
    excluded: list[ExcludedAnswer],
) -> None:
    """Append the valid and the excluded answers of an assignment to the two lists."""
    assignment_id = assignment.assignment_id
    if assignment.status == "Rejected":
        excluded.append(ExcludedAnswer(assignment_id, "", "rejected", assignment.feedback))
        return
    if assignment.answer_xml == answers.WITHDRAWN_ANSWER:
        excluded.append(ExcludedAnswer(assignment_id, "", "withdrawn", ""))
        return
    try:
        fields = answers.from_xml(assignment.answer_xml)
    except ValueError as error:
        excluded.append(ExcludedAnswer(assignment_id, "", "unreadable", str(error)))
        return
    for expected in tuples:
        if problems := get_kind(expected.kind).problems(expected, fields):
            excluded.append(
                ExcludedAnswer(assignment_id, expected.tuple_id, "invalid", "; ".join(problems))
            )
        else:
            rows.append(ValidAnswer(expected, fields, assignment, name(assignment)))


def _first_answers(rows: list[ValidAnswer], excluded: list[ExcludedAnswer]) -> list[ValidAnswer]:
    """Return each worker's first answer per tuple, in the order of submission."""
    first_answers: dict[tuple[str, str], ValidAnswer] = {}
    for row in rows:
        key = (row.assignment.worker, row.expected.tuple_id)
        if first_answers.setdefault(key, row) is not row:
            earlier = first_answers[key].assignment.assignment_id
            text = f"the worker answered it in assignment {earlier} before"
            assignment_id = row.assignment.assignment_id
            excluded.append(ExcludedAnswer(assignment_id, row.expected.tuple_id, "again", text))
    return list(first_answers.values())
