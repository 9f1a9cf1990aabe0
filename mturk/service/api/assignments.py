"""API operations on assignments and bonuses."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, insert, select

from mturk import limits
from mturk.answers import WITHDRAWN_ANSWER
from mturk.money import parse_amount
from mturk.service.api.call import Answer, Call, Parameters, check, check_token, page, record_token
from mturk.service.api.hits import get_hit
from mturk.service.api.workers import send_message
from mturk.service.errors import already_processed, validation_error, wrong_state
from mturk.service.rules import escrow, lifecycle
from mturk.service.store.schema import (
    SUBMITTED_STATUSES,
    assignment,
    bonus,
    counts_towards_maximum,
    new_id,
)

MAX_OVERRIDE_SECONDS = 30 * 86_400


def assignment_document(row: Row[Any]) -> Answer:
    """Return an assignment as an API document."""
    answer = {
        "AssignmentId": row.assignment_id,
        "WorkerId": row.worker_id,
        "HITId": row.hit_id,
        "AssignmentStatus": row.status,
        "AutoApprovalTime": row.auto_approval,
        "AcceptTime": row.accepted,
        "SubmitTime": row.submitted,
        "ApprovalTime": row.approved,
        "RejectionTime": row.rejected,
        "Deadline": row.deadline,
        "Answer": WITHDRAWN_ANSWER if row.submitted and row.answer is None else row.answer,
        "RequesterFeedback": row.feedback,
    }
    return {name: value for name, value in answer.items() if value is not None}


def get_assignment(call: Call, parameters: Parameters) -> Answer:
    """GetAssignment: return an assignment and its HIT."""
    row = _visible_assignment(call, parameters["AssignmentId"])
    return {"Assignment": assignment_document(row), **get_hit(call, {"HITId": row.hit_id})}


def list_assignments_for_hit(call: Call, parameters: Parameters) -> Answer:
    """ListAssignmentsForHIT: list submitted assignments in the order of acceptance."""
    hit_id = lifecycle.hit_row(call.connection, parameters["HITId"]).hit_id
    states = parameters.get("AssignmentStatuses") or SUBMITTED_STATUSES
    query = select(assignment).where(
        assignment.c.hit_id == hit_id,
        counts_towards_maximum,  # all submitted ones do; so the index of a HIT's assignments is used
        assignment.c.status.in_(list(states)),
    )
    return page(call, parameters, query, assignment.c.number, "Assignments", assignment_document)


def approve_assignment(call: Call, parameters: Parameters) -> Answer:
    """ApproveAssignment: approve a submitted assignment, or a rejected one with OverrideRejection."""
    row = _visible_assignment(call, parameters["AssignmentId"])
    feedback = parameters.get("RequesterFeedback")
    check(feedback and limits.FEEDBACK.problem(feedback))
    allowed = ["Submitted", *(["Rejected"] if _may_override(call, parameters, row) else [])]
    if row.status not in allowed:
        raise wrong_state("Assignment", row.status, allowed)
    lifecycle.approve(call.connection, row, feedback, call.now)
    return {}


def _may_override(call: Call, parameters: Parameters, row: Row[Any]) -> bool:
    """Return whether a rejection may be overridden: within 30 days, unless the HIT is deleted."""
    is_recent = row.rejected is not None and call.now <= row.submitted + MAX_OVERRIDE_SECONDS
    is_requested = bool(parameters.get("OverrideRejection")) and is_recent
    return is_requested and lifecycle.hit_row(call.connection, row.hit_id).status != "Disposed"


def reject_assignment(call: Call, parameters: Parameters) -> Answer:
    """RejectAssignment: reject a submitted assignment."""
    row = _visible_assignment(call, parameters["AssignmentId"])
    feedback = parameters["RequesterFeedback"]
    check(limits.FEEDBACK.problem(feedback))
    if row.status != "Submitted":
        raise wrong_state("Assignment", row.status, ["Submitted"])
    lifecycle.reject(call.connection, row, feedback, call.now)
    return {}


def get_file_upload_url(call: Call, parameters: Parameters) -> Answer:
    """GetFileUploadURL: always an error, because answers contain no files."""
    row = _visible_assignment(call, parameters["AssignmentId"])
    question_id = parameters["QuestionIdentifier"]
    raise validation_error(
        f"question {question_id!r} of assignment {row.assignment_id} has no uploaded file"
    )


def send_bonus(call: Call, parameters: Parameters) -> Answer:
    """SendBonus: pay a bonus to the worker of a submitted assignment."""
    text = parameters.get("UniqueRequestToken")
    token = check_token(call, parameters, lambda made: already_processed(text, f"bonus {made}"))
    cents = _validated_bonus_cents(parameters)
    row = _visible_assignment(call, parameters["AssignmentId"])
    if row.worker_id != parameters["WorkerId"]:
        raise validation_error(
            f"assignment {row.assignment_id} does not belong to worker {parameters['WorkerId']}"
        )
    escrow.pay_bonus(call.connection, cents)
    bonus_id = new_id()
    call.connection.execute(
        insert(bonus).values(
            bonus_id=bonus_id, worker_id=row.worker_id, assignment_id=row.assignment_id,
            hit_id=row.hit_id, amount=cents, reason=parameters["Reason"], at=call.now,
        )
    )  # fmt: skip
    record_token(call, token, bonus_id)
    send_message(call, row.worker_id, f"Bonus: ${escrow.dollars(cents)}", parameters["Reason"])
    return {}


def _validated_bonus_cents(parameters: Parameters) -> int:
    check(
        limits.reward_problem(parameters["BonusAmount"], "BonusAmount"),
        limits.BONUS_REASON.problem(parameters["Reason"]),
    )
    cents = escrow.cents_of(parse_amount(parameters["BonusAmount"]))
    check(None if cents else "BonusAmount is 0; expected 0.01 or more")
    return cents


def list_bonus_payments(call: Call, parameters: Parameters) -> Answer:
    """ListBonusPayments: list the bonuses of a HIT or an assignment."""
    if ("HITId" in parameters) == ("AssignmentId" in parameters):
        raise validation_error("exactly one of HITId and AssignmentId is required")
    query = select(bonus)
    if "HITId" in parameters:
        hit_id = lifecycle.hit_row(call.connection, parameters["HITId"]).hit_id
        query = query.where(bonus.c.hit_id == hit_id)
    else:
        row = _visible_assignment(call, parameters["AssignmentId"])
        query = query.where(bonus.c.assignment_id == row.assignment_id)
    return page(call, parameters, query, bonus.c.number, "BonusPayments", _bonus_document)


def _bonus_document(row: Row[Any]) -> Answer:
    return {
        "WorkerId": row.worker_id,
        "BonusAmount": escrow.dollars(row.amount),
        "AssignmentId": row.assignment_id,
        "Reason": row.reason,
        "GrantTime": row.at,
    }


def _visible_assignment(call: Call, assignment_id: str) -> Row[Any]:
    row = lifecycle.assignment_row(call.connection, assignment_id)
    if row.status not in SUBMITTED_STATUSES:
        raise wrong_state("Assignment", row.status, ["Reviewable,Approved,Rejected"])
    return row
