"""Assignments: listed, approved, rejected; and the bonuses that are paid for them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, insert, select

from mturk import limits
from mturk.money import parse_amount
from mturk.service.api.call import Answer, Call, Parameters, check, page, remember, remembered
from mturk.service.api.hits import get_hit
from mturk.service.api.workers import tell
from mturk.service.errors import already_processed, invalid, wrong_state
from mturk.service.rules import escrow, lifecycle
from mturk.service.store.schema import assignment, bonus, new_id

__all__ = [
    "approve_assignment",
    "get_assignment",
    "get_file_upload_url",
    "list_assignments_for_hit",
    "list_bonus_payments",
    "reject_assignment",
    "send_bonus",
]

OVERRIDE_SECONDS = 30 * 86_400
SEEN = ("Submitted", "Approved", "Rejected")
"""The states in which a requester sees an assignment."""


def written(row: Row[Any]) -> Answer:
    """Return an assignment as the service writes it."""
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
        "Answer": row.answer,
        "RequesterFeedback": row.feedback,
    }
    return {name: value for name, value in answer.items() if value is not None}


def get_assignment(call: Call, parameters: Parameters) -> Answer:
    """GetAssignment: the assignment with its HIT."""
    row = _seen(call, parameters["AssignmentId"])
    return {"Assignment": written(row), **get_hit(call, {"HITId": row.hit_id})}


def list_assignments_for_hit(call: Call, parameters: Parameters) -> Answer:
    """ListAssignmentsForHIT: what was submitted, in the order of acceptance."""
    hit_id = lifecycle.hit_row(call.connection, parameters["HITId"]).hit_id
    states = parameters.get("AssignmentStatuses") or SEEN
    query = select(assignment).where(
        assignment.c.hit_id == hit_id, assignment.c.status.in_(list(states))
    )
    return page(call, parameters, query, assignment.c.number, "Assignments", written)


def approve_assignment(call: Call, parameters: Parameters) -> Answer:
    """ApproveAssignment: a submitted one, or a rejected one with OverrideRejection."""
    row = _seen(call, parameters["AssignmentId"])
    feedback = parameters.get("RequesterFeedback")
    check(feedback and limits.FEEDBACK.problem(feedback))
    allowed = ["Submitted", *(["Rejected"] if _may_override(call, parameters, row) else [])]
    if row.status not in allowed:
        raise wrong_state("Assignment", row.status, allowed)
    lifecycle.approve(call.connection, row, feedback, call.now)
    return {}


def _may_override(call: Call, parameters: Parameters, row: Row[Any]) -> bool:
    """Tell whether a rejection may be taken back: for 30 days, and while the HIT is not deleted."""
    recent = row.rejected is not None and call.now <= row.submitted + OVERRIDE_SECONDS
    wanted = bool(parameters.get("OverrideRejection")) and recent
    return wanted and lifecycle.hit_row(call.connection, row.hit_id).status != "Disposed"


def reject_assignment(call: Call, parameters: Parameters) -> Answer:
    """RejectAssignment: a submitted one."""
    row = _seen(call, parameters["AssignmentId"])
    feedback = parameters["RequesterFeedback"]
    check(
        limits.FEEDBACK.problem(feedback),
        None if feedback.strip() else "RequesterFeedback is empty",
    )
    if row.status != "Submitted":
        raise wrong_state("Assignment", row.status, ["Submitted"])
    lifecycle.reject(call.connection, row, parameters["RequesterFeedback"], call.now)
    return {}


def get_file_upload_url(call: Call, parameters: Parameters) -> Answer:
    """GetFileUploadURL: refused, because no answer here holds a file."""
    row = _seen(call, parameters["AssignmentId"])
    its_id = parameters["QuestionIdentifier"]
    raise invalid(f"question {its_id!r} of assignment {row.assignment_id} has no uploaded file")


def send_bonus(call: Call, parameters: Parameters) -> Answer:
    """SendBonus: to the worker of a submitted assignment."""
    text = parameters.get("UniqueRequestToken")
    token = remembered(call, parameters, lambda made: already_processed(text, f"bonus {made}"))
    cents = _checked_amount(parameters)
    row = _seen(call, parameters["AssignmentId"])
    if row.worker_id != parameters["WorkerId"]:
        raise invalid(f"assignment {row.assignment_id} is not of worker {parameters['WorkerId']}")
    escrow.pay_bonus(call.connection, cents)
    bonus_id = new_id()
    call.connection.execute(
        insert(bonus).values(
            bonus_id=bonus_id, worker_id=row.worker_id, assignment_id=row.assignment_id,
            hit_id=row.hit_id, amount=cents, reason=parameters["Reason"], at=call.now,
        )
    )  # fmt: skip
    remember(call, token, bonus_id)
    tell(call, row.worker_id, f"Bonus: ${escrow.dollars(cents)}", parameters["Reason"])
    return {}


def _checked_amount(parameters: Parameters) -> int:
    check(
        limits.reward_problem(parameters["BonusAmount"], "BonusAmount"),
        limits.BONUS_REASON.problem(parameters["Reason"]),
    )
    cents = escrow.cents_of(parse_amount(parameters["BonusAmount"]))
    check(None if cents else "BonusAmount is 0; at least 0.01 is allowed")
    return cents


def list_bonus_payments(call: Call, parameters: Parameters) -> Answer:
    """ListBonusPayments: of a HIT or of an assignment."""
    if ("HITId" in parameters) == ("AssignmentId" in parameters):
        raise invalid("HITId or AssignmentId must be given, and only one of them")
    query = select(bonus)
    if "HITId" in parameters:
        hit_id = lifecycle.hit_row(call.connection, parameters["HITId"]).hit_id
        query = query.where(bonus.c.hit_id == hit_id)
    else:
        row = _seen(call, parameters["AssignmentId"])
        query = query.where(bonus.c.assignment_id == row.assignment_id)
    return page(call, parameters, query, bonus.c.number, "BonusPayments", _payment)


def _payment(row: Row[Any]) -> Answer:
    return {
        "WorkerId": row.worker_id,
        "BonusAmount": escrow.dollars(row.amount),
        "AssignmentId": row.assignment_id,
        "Reason": row.reason,
        "GrantTime": row.at,
    }


def _seen(call: Call, assignment_id: str) -> Row[Any]:
    row = lifecycle.assignment_row(call.connection, assignment_id)
    if row.status not in SEEN:
        raise wrong_state("Assignment", row.status, ["Reviewable,Approved,Rejected"])
    return row
