"""Review of assignments: pending reviews, decisions from a file, and their execution."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bws.base.file_kinds import first_of
from bws.base.file_uses import unprotected
from bws.base.problems import InputError, Location, Problem
from bws.base.rows import csv_text
from bws.files.schema import LocatedRecord, Unique
from bws.files.table import Table, read_table
from mturk import answers
from mturk.kinds import get_kind
from mturk.limits import FEEDBACK
from mturk.study.actions import RefusedError, make_action
from mturk.study.client import error_code, translate_errors
from mturk.study.ledger import Action, Assignment, Ledger

if TYPE_CHECKING:
    from bws.annotators import AnnotatorReport
    from mturk.study.valid_answers import ValidAnswers

OVERRIDE = "override"
MARKS = ("x", "✓", "true", "1", "yes", "ja")
STATUS_BY_KIND = {"approve": "Approved", "reject": "Rejected"}
SHEET_COLUMNS = (
    "AssignmentId", "WorkerId", "SubmitTime", "WorkTimeInSeconds", "AutoApprovalTime", "compliance",
    "look_at", "faults", "comment", "Approve", "Reject", "RequesterFeedback",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision to approve or reject an assignment."""

    assignment_id: str
    kind: Literal["approve", "reject"]
    feedback: str
    location: Location | None = None
    """Location in the file, for messages."""


ASSIGNMENT = Unique[Decision]("AssignmentId", lambda decision: decision.assignment_id)


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of a file."""

    decisions: tuple[Decision, ...]
    unmarked: int
    """Rows without a decision."""


@dataclass(frozen=True, slots=True)
class PendingReview:
    """A submitted assignment with the information for its review."""

    assignment: Assignment
    faults: tuple[str, ...]
    """Problems of the answer."""
    comment: str
    compliance: float
    """Compliance of the worker over all judgments, see `bws.annotators`; NaN if unknown."""
    review_reasons: tuple[str, ...]
    """Reasons to check the worker's judgments."""


def pending_reviews(
    ledger: Ledger, valid_answers: ValidAnswers, report: AnnotatorReport | None
) -> list[PendingReview]:
    """Return the submitted assignments: first those with problems, then by time of automatic approval.

    report: annotator report; None without judgments.
    """
    settings = ledger.study().settings
    kind = get_kind(settings.kind)
    annotators_by_name = {entry.annotator: entry for entry in report.annotators} if report else {}
    faults: dict[str, list[str]] = {}
    for excluded in valid_answers.excluded:
        faults.setdefault(excluded.assignment_id, []).append(excluded.text)
    for answer in valid_answers.answers:
        remarks = kind.remarks(answer.expected, answer.fields)
        faults.setdefault(answer.assignment.assignment_id, []).extend(remarks)
    rows = []
    for assignment in ledger.assignments():
        if assignment.status == "Submitted":
            annotator = annotators_by_name.get(assignment.worker)
            fields = _fields(assignment)
            rows.append(
                PendingReview(
                    assignment,
                    (
                        *faults.get(assignment.assignment_id, ()),
                        *kind.form_remarks(fields, settings),
                    ),
                    answers.read_comment(fields),
                    annotator.compliance if annotator else float("nan"),
                    annotator.reasons if annotator else (),
                )
            )
    return sorted(
        rows,
        key=lambda row: (
            not (row.faults or row.review_reasons), row.assignment.auto_approval_time or 0.0
        ),
    )  # fmt: skip


def _fields(assignment: Assignment) -> list[tuple[str, str]]:
    try:
        return answers.from_xml(assignment.answer_xml)
    except ValueError:
        return []


def review_csv(rows: Iterable[PendingReview], format_time: Callable[[float | None], str]) -> str:
    """Return the review sheet as CSV; reviewers mark decisions in it for `read_decisions`."""
    cells = []
    for row in rows:
        assignment = row.assignment
        has_compliance = row.compliance == row.compliance
        cells.append(
            (
                assignment.assignment_id, assignment.worker, format_time(assignment.submit_time),
                work_seconds(assignment), format_time(assignment.auto_approval_time),
                f"{row.compliance:.3f}" if has_compliance else "",
                "; ".join(row.review_reasons), "; ".join(row.faults), row.comment, "", "", "",
            )
        )  # fmt: skip
    return csv_text(cells, SHEET_COLUMNS)


def work_seconds(assignment: Assignment) -> str:
    """Return the seconds from acceptance to submission, rounded; empty if unknown."""
    if assignment.accept_time is None or assignment.submit_time is None:
        return ""
    return str(round(assignment.submit_time - assignment.accept_time))


def read_decisions(path: str | os.PathLike[str]) -> Decisions:
    """Read the marked rows of a review sheet or a batch results file.

    An ``x`` in Approve or Reject is a decision; RequesterFeedback contains the feedback. As on the requester
    website, a text in Reject is a rejection with this feedback. Other columns are ignored. Raises InputError
    with all problems: both marks, a rejection without feedback, feedback of more than 1,024 characters, a
    repeated assignment.
    """
    table = read_table(path)
    assignment_ids = _column(table, "AssignmentId", required=True)
    approve, reject = _column(table, "Approve"), _column(table, "Reject")
    feedback = _column(table, "RequesterFeedback")
    problems = list(table.problems)
    records: list[LocatedRecord[Decision]] = []
    unmarked = 0
    for line, *cells in zip(
        table.lines.tolist(), assignment_ids, approve, reject, feedback, strict=True
    ):
        location = Location(table.file, line)
        decision, row_problems = _parse_decision(location, *(cell.strip() for cell in cells))
        problems += map(location.problem, row_problems)
        if decision is None:
            unmarked += not row_problems
        else:
            records.append(LocatedRecord(decision, location))
    problems += ASSIGNMENT.problems(records)
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return Decisions(tuple(row.record for row in records), unmarked)


def check_no_open_decisions(ledger: Ledger, path: str) -> None:
    """Raise InputError if an existing file has marks for assignments that are not decided yet."""
    if not os.path.isfile(path):
        return
    try:
        with unprotected():
            table = read_table(path)
    except InputError:  # Not a table.
        return
    columns = (_column(table, name) for name in ("AssignmentId", "Approve", "Reject"))
    decided = {one.assignment_id for one in ledger.assignments() if one.status != "Submitted"}
    n_open = sum(
        bool(approve.strip() or reject.strip()) and assignment_id.strip() not in decided
        for assignment_id, approve, reject in zip(*columns, strict=True)
    )
    if n_open:
        message = f"contains {n_open} marks that are not carried out; expected another file"
        raise InputError(Problem(path, None, message))


def _column(table: Table, name: str, *, required: bool = False) -> Sequence[str]:
    column = first_of(table.frame.columns, [name.lower()])
    if column is None and required:
        header = ", ".join(table.frame.columns[:20])
        message = (
            f"has the columns {header}; expected AssignmentId, Approve, Reject, RequesterFeedback"
        )
        raise InputError(Problem(table.file, None, message))
    return [""] * len(table.lines) if column is None else table.frame[column].to_list()


def _parse_decision(
    location: Location, assignment_id: str, approve: str, reject: str, feedback: str
) -> tuple[Decision | None, list[str]]:
    if not approve and not reject:
        return None, []
    problems = []
    if not assignment_id:
        problems.append("AssignmentId is empty")
    if approve and reject:
        problems.append("Approve and Reject are both marked; expected one of them")
    if approve and approve.lower() not in MARKS:
        problems.append(f"Approve is {approve!r}; expected x or an empty cell")
    if reject and not approve:
        feedback = feedback if reject.lower() in MARKS else reject
        problems += _feedback_problems("reject", feedback)
    elif not problems:
        problems += _feedback_problems("approve", feedback)
    if problems:
        return None, problems
    return Decision(assignment_id, "reject" if reject else "approve", feedback, location), []


def _feedback_problems(kind: str, feedback: str) -> list[str]:
    if kind == "reject" and not feedback:
        return ["RequesterFeedback is empty; expected feedback for the worker with a rejection"]
    problem = FEEDBACK.problem(feedback)
    return [problem] if problem else []


def plan_reviews(
    ledger: Ledger, decisions: Iterable[Decision], *, override: bool = False
) -> tuple[list[Action], int]:
    """Return the actions for decisions, and the number of decisions that already hold.

    override: whether rejections may be overridden. Raises InputError with all invalid decisions: an
    assignment that is not in the ledger, rejection of an approved assignment, approval of a rejected one
    unless `override`, a rejection without feedback.
    """
    assignments_by_id = {entry.assignment_id: entry for entry in ledger.assignments()}
    actions: list[Action] = []
    problems: list[Problem] = []
    n_already_done = 0
    for decision in decisions:
        assignment = assignments_by_id.get(decision.assignment_id)
        decision_problems = _feedback_problems(decision.kind, decision.feedback)
        if assignment is None:
            decision_problems.append(
                f"unknown assignment {decision.assignment_id}; expected one in {ledger.path}"
            )
        else:
            decision_problems += _conflicts(assignment, decision, override)
        location = decision.location or Location(decision.assignment_id, None)
        problems += map(location.problem, decision_problems)
        if assignment is None or decision_problems:
            continue
        if assignment.status == STATUS_BY_KIND[decision.kind]:
            n_already_done += 1
        else:
            overrides = OVERRIDE if assignment.status == "Rejected" else ""
            actions.append(
                make_action(decision.kind, decision.assignment_id, overrides, decision.feedback)
            )
    if problems:
        raise InputError(problems)
    return actions, n_already_done


def _conflicts(assignment: Assignment, decision: Decision, override: bool) -> list[str]:
    if decision.kind == "reject" and assignment.status == "Approved":
        return [f"assignment {decision.assignment_id} is approved, which cannot be revoked"]
    if decision.kind == "approve" and assignment.status == "Rejected" and not override:
        message = f"assignment {decision.assignment_id} is rejected"
        return [f"{message}; expected --override-rejections to approve it"]
    return []


def execute_review(client: Any, action: Action) -> bool:
    """Approve or reject; return False if it was done before. For `actions.execute_actions`."""
    with translate_errors():
        try:
            if action.kind == "reject":
                client.reject_assignment(AssignmentId=action.target, RequesterFeedback=action.text)
            else:
                feedback = {"RequesterFeedback": action.text} if action.text else {}
                client.approve_assignment(
                    AssignmentId=action.target,
                    OverrideRejection=action.amount == OVERRIDE,
                    **feedback,
                )
        except client.exceptions.RequestError as error:
            # an earlier call may have succeeded although its response was lost
            if _status(client, action.target) == STATUS_BY_KIND[action.kind]:
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
