"""Approving and rejecting: what waits for a decision, the decisions in a file, and carrying them out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bws.file_kinds import first_of
from bws.files.schema import LocatedRecord, Unique
from bws.files.table import Table, read_table
from bws.problems import InputError, Location, Problem
from bws.textio import csv_text
from mturk import answers
from mturk.kinds import get_kind
from mturk.limits import FEEDBACK
from mturk.study.actions import RefusedError, action
from mturk.study.client import error_code, explained
from mturk.study.ledger import Action, Assignment, Ledger

if TYPE_CHECKING:
    from bws.annotators import AnnotatorReport
    from mturk.study.valid_answers import Judged

__all__ = [
    "Decision",
    "Decisions",
    "Waiting",
    "carry_out_review",
    "decided",
    "decisions_sheet",
    "read_decisions",
    "waiting",
]

OVERRIDE = "override"
MARKS = ("x", "✓", "true", "1", "yes", "ja")
KIND_OF = {"approve": "Approved", "reject": "Rejected"}
SHEET = (
    "AssignmentId", "WorkerId", "SubmitTime", "WorkTimeInSeconds", "AutoApprovalTime", "compliance",
    "look_at", "faults", "comment", "Approve", "Reject", "RequesterFeedback",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided about an assignment."""

    assignment_id: str
    kind: Literal["approve", "reject"]
    feedback: str
    place: Location | None = None
    """Where it is written, for messages."""


ASSIGNMENT = Unique[Decision]("AssignmentId", lambda decision: decision.assignment_id)


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of a file."""

    decisions: tuple[Decision, ...]
    unmarked: int
    """Rows without a decision."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An assignment that waits for a decision, with what may matter for it."""

    assignment: Assignment
    faults: tuple[str, ...]
    """What is wrong with the answer itself."""
    comment: str
    compliance: float
    """Of its worker over all judgments, see `bws.annotators`; NaN where that is not known."""
    look_at: tuple[str, ...]
    """Why the worker's judgments should be looked at."""


def waiting(ledger: Ledger, found: Judged, report: AnnotatorReport | None) -> list[Waiting]:
    """Return the submitted assignments: first those with something to look at, then by the time at
    which they are approved by themselves.

    report: on the annotators; None where there are no judgments.
    """
    settings = ledger.study().settings
    kind = get_kind(settings.kind)
    known = {one.annotator: one for one in report.annotators} if report else {}
    faults: dict[str, list[str]] = {}
    for out in found.left_out:
        faults.setdefault(out.assignment_id, []).append(out.text)
    for one_answer in found.answered:
        said = kind.remarks(one_answer.asked, one_answer.fields)
        faults.setdefault(one_answer.assignment.assignment_id, []).extend(said)
    rows = []
    for one in ledger.assignments():
        if one.status == "Submitted":
            annotator = known.get(one.worker)
            fields = _fields(one)
            rows.append(
                Waiting(
                    one,
                    (*faults.get(one.assignment_id, ()), *kind.form_remarks(fields, settings)),
                    answers.comment(fields),
                    annotator.compliance if annotator else float("nan"),
                    annotator.reasons if annotator else (),
                )
            )
    return sorted(
        rows,
        key=lambda row: (
            not (row.faults or row.look_at), row.assignment.auto_approval_time or 0.0
        ),
    )  # fmt: skip


def _fields(assignment: Assignment) -> list[tuple[str, str]]:
    try:
        return answers.from_xml(assignment.answer_xml)
    except ValueError:
        return []


def decisions_sheet(rows: Iterable[Waiting], when: Callable[[float | None], str]) -> str:
    """Return CSV in which a person marks decisions, for `read_decisions`."""
    cells = []
    for row in rows:
        one = row.assignment
        known = row.compliance == row.compliance
        cells.append(
            (
                one.assignment_id, one.worker, when(one.submit_time), work_seconds(one),
                when(one.auto_approval_time), f"{row.compliance:.3f}" if known else "",
                "; ".join(row.look_at), "; ".join(row.faults), row.comment, "", "", "",
            )
        )  # fmt: skip
    return csv_text(cells, SHEET)


def work_seconds(assignment: Assignment) -> str:
    """Return the whole seconds from accepting to submitting; empty where they are not known."""
    if assignment.accept_time is None or assignment.submit_time is None:
        return ""
    return str(round(assignment.submit_time - assignment.accept_time))


def read_decisions(path: str | os.PathLike[str]) -> Decisions:
    """Read the rows that are marked, from our sheet or from a batch results file.

    An ``x`` under Approve or Reject decides; the feedback stands under RequesterFeedback. As the
    requester's site has it, a text under Reject is a rejection with this feedback. Other columns
    count for nothing. Raises InputError with everything that is wrong: both marks, a rejection without
    feedback, feedback of more than 1,024 characters, an assignment twice.
    """
    table = read_table(path)
    its_id = _column(table, "AssignmentId", required=True)
    approve, reject = _column(table, "Approve"), _column(table, "Reject")
    feedback = _column(table, "RequesterFeedback")
    problems = list(table.problems)
    found: list[LocatedRecord[Decision]] = []
    unmarked = 0
    for line, *cells in zip(table.lines.tolist(), its_id, approve, reject, feedback, strict=True):
        place = Location(table.file, line)
        one, wrong = _decision(place, *(cell.strip() for cell in cells))
        problems += map(place.problem, wrong)
        if one is None:
            unmarked += not wrong
        else:
            found.append(LocatedRecord(one, place))
    problems += ASSIGNMENT.problems(found)
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return Decisions(tuple(row.record for row in found), unmarked)


def _column(table: Table, name: str, *, required: bool = False) -> Sequence[str]:
    found = first_of(table.frame.columns, [name.lower()])
    if found is None and required:
        header = ", ".join(table.frame.columns[:20])
        message = f"has the columns {header}; AssignmentId, Approve, Reject, RequesterFeedback are expected"
        raise InputError(Problem(table.file, None, message))
    return [""] * len(table.lines) if found is None else table.frame[found].to_list()


def _decision(
    place: Location, assignment_id: str, approve: str, reject: str, feedback: str
) -> tuple[Decision | None, list[str]]:
    if not approve and not reject:
        return None, []
    wrong = []
    if not assignment_id:
        wrong.append("AssignmentId is empty")
    if approve and reject:
        wrong.append("Approve and Reject are both marked; one is allowed")
    if approve and approve.lower() not in MARKS:
        wrong.append(f"Approve is {approve!r}; x or nothing is allowed")
    if reject and not approve:
        feedback = feedback if reject.lower() in MARKS else reject
        wrong += _feedback_problems("reject", feedback)
    elif not wrong:
        wrong += _feedback_problems("approve", feedback)
    if wrong:
        return None, wrong
    return Decision(assignment_id, "reject" if reject else "approve", feedback, place), []


def _feedback_problems(kind: str, feedback: str) -> list[str]:
    if kind == "reject" and not feedback:
        return ["a rejection needs feedback for the worker, in the column RequesterFeedback"]
    problem = FEEDBACK.problem(feedback)
    return [problem] if problem else []


def decided(
    ledger: Ledger, decisions: Iterable[Decision], *, override: bool = False
) -> tuple[list[Action], int]:
    """Return the decisions to be carried out, and how many had come about already.

    override: whether rejections may be turned into approvals. Raises InputError with every decision that
    cannot be: an assignment that is not in the ledger, a rejection of one that was approved, an
    approval of one that was rejected unless `override`, a rejection without feedback.
    """
    known = {one.assignment_id: one for one in ledger.assignments()}
    actions: list[Action] = []
    problems: list[Problem] = []
    before = 0
    for one in decisions:
        there = known.get(one.assignment_id)
        wrong = _feedback_problems(one.kind, one.feedback)
        if there is None:
            wrong.append(f"there is no assignment {one.assignment_id} in {ledger.path}")
        else:
            wrong += _conflicts(there, one, override)
        place = one.place or Location(one.assignment_id, None)
        problems += map(place.problem, wrong)
        if there is None or wrong:
            continue
        if there.status == KIND_OF[one.kind]:
            before += 1
        else:
            overrides = OVERRIDE if there.status == "Rejected" else ""
            actions.append(action(one.kind, one.assignment_id, overrides, one.feedback))
    if problems:
        raise InputError(problems)
    return actions, before


def _conflicts(there: Assignment, one: Decision, override: bool) -> list[str]:
    if one.kind == "reject" and there.status == "Approved":
        return [f"assignment {one.assignment_id} was approved; that cannot be taken back"]
    if one.kind == "approve" and there.status == "Rejected" and not override:
        said = f"assignment {one.assignment_id} was rejected"
        return [f"{said}; --override-rejections approves it nevertheless"]
    return []


def carry_out_review(client: Any, one: Action) -> bool:
    """Approve or reject at the service; False where it was so already. For `actions.carry_out`."""
    with explained():
        try:
            if one.kind == "reject":
                client.reject_assignment(AssignmentId=one.target, RequesterFeedback=one.text)
            else:
                given = {"RequesterFeedback": one.text} if one.text else {}
                client.approve_assignment(
                    AssignmentId=one.target, OverrideRejection=one.amount == OVERRIDE, **given
                )
        except client.exceptions.RequestError as error:
            # an earlier call may have done it although its answer was lost
            if _status(client, one.target) == KIND_OF[one.kind]:
                return False
            raise RefusedError(f"{error} ({error_code(error)})") from None
    return True


def _status(client: Any, assignment_id: str) -> str:
    try:
        return str(
            client.get_assignment(AssignmentId=assignment_id)["Assignment"]["AssignmentStatus"]
        )
    except client.exceptions.RequestError:
        return ""
