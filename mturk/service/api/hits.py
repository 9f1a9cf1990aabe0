"""HITs: made, listed, extended, expired, reviewed, deleted."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, select, update

from mturk import limits, question_xml
from mturk.service.api.call import Answer, Call, Parameters, check, page, remember, remembered
from mturk.service.api.hit_types import check_types, hit_type_row, is_for_masters, type_of
from mturk.service.errors import (
    already_exists,
    already_processed,
    does_not_exist,
    fault,
    invalid,
    wrong_state,
)
from mturk.service.rules import escrow, lifecycle
from mturk.service.store.schema import hit, hit_type, qualification_type

__all__ = [
    "create_additional_assignments_for_hit",
    "create_hit",
    "create_hit_with_hit_type",
    "delete_hit",
    "get_hit",
    "list_hits",
    "list_hits_for_qualification_type",
    "list_review_policy_results_for_hit",
    "list_reviewable_hits",
    "update_expiration_for_hit",
    "update_hit_review_status",
    "update_hit_type_of_hit",
    "written",
]

ABOVE_PLANE_0 = re.compile("[\U00010000-\U0010ffff]")


def create_hit(call: Call, parameters: Parameters) -> Answer:
    """CreateHIT: a HIT and, where it is new, its type."""
    token = remembered(call, parameters, lambda made: already_exists("HIT", made))
    return _create(call, parameters, type_of(call, parameters), token)


def create_hit_with_hit_type(call: Call, parameters: Parameters) -> Answer:
    """CreateHITWithHITType."""
    token = remembered(call, parameters, lambda made: already_exists("HIT", made))
    return _create(call, parameters, parameters["HITTypeId"], token)


def _create(call: Call, parameters: Parameters, hit_type_id: str, token: str | None) -> Answer:
    kind = hit_type_row(call, hit_type_id)
    check_types(call, kind.qualifications)
    most = parameters.get("MaxAssignments", 1)
    check(
        limits.MAX_ASSIGNMENTS.problem(most),
        limits.LIFETIME.problem(parameters["LifetimeInSeconds"]),
        limits.ANNOTATION.problem(parameters.get("RequesterAnnotation", "")),
    )
    values = {
        "hit_type_id": hit_type_id,
        "question": _checked_question(parameters),
        "annotation": parameters.get("RequesterAnnotation", ""),
        "max_assignments": most,
        "expiration": call.now + parameters["LifetimeInSeconds"],
        "unit": _unit(kind, most),
    }
    hit_id = lifecycle.create_hit(call.connection, call.now, values)
    remember(call, token, hit_id)
    return {"HIT": _one(call, hit_id)}


def _unit(kind: Row[Any], most: int) -> int:
    return escrow.unit_cost(kind.reward, most, masters=is_for_masters(kind.qualifications))


def _checked_question(parameters: Parameters) -> str:
    if "HITLayoutId" in parameters:
        raise does_not_exist("HITLayout", parameters["HITLayoutId"])
    for policy in ("AssignmentReviewPolicy", "HITReviewPolicy"):
        if policy in parameters:
            name = parameters[policy].get("PolicyName", "")
            raise fault("UnsupportedReviewPolicy", f"{policy} {name} is not supported here.")
    text: str = parameters.get("Question", "")
    check(limits.QUESTION.problem(text))
    if ABOVE_PLANE_0.search(text):
        raise invalid("Question has characters above U+FFFF; write them as numeric entities")
    try:
        question_xml.read_question(text)
    except ValueError as error:
        raise invalid(f"Question: {error}") from None
    return text


def _with_types() -> Select[Any]:
    kinds = [column for column in hit_type.c if column.name != "hit_type_id"]
    return select(hit, *kinds).join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)


def _one(call: Call, hit_id: str) -> Answer:
    row = call.connection.execute(_with_types().where(hit.c.hit_id == hit_id)).first()
    if row is None:
        raise does_not_exist("HIT", hit_id)
    return written(row)


def written(row: Row[Any]) -> Answer:
    """Return a HIT as the service writes it, from a row of the HIT with its type."""
    taken = row.pending + row.submitted + row.completed
    answer = {
        "HITId": row.hit_id,
        "HITTypeId": row.hit_type_id,
        "HITGroupId": row.group_id,
        "CreationTime": row.created,
        "Title": row.title,
        "Description": row.description,
        "Question": row.question,
        "Keywords": row.keywords,
        "HITStatus": row.status,
        "MaxAssignments": row.max_assignments,
        "Reward": escrow.dollars(row.reward),
        "AutoApprovalDelayInSeconds": row.auto_approval_delay,
        "Expiration": row.expiration,
        "AssignmentDurationInSeconds": row.duration,
        "QualificationRequirements": row.qualifications,
        "HITReviewStatus": row.review_status,
        "NumberOfAssignmentsPending": row.pending,
        "NumberOfAssignmentsAvailable": row.max_assignments - taken,
        "NumberOfAssignmentsCompleted": row.completed,
    }
    return answer | ({"RequesterAnnotation": row.annotation} if row.annotation else {})


def get_hit(call: Call, parameters: Parameters) -> Answer:
    """GetHIT."""
    return {"HIT": _one(call, parameters["HITId"])}


def list_hits(call: Call, parameters: Parameters) -> Answer:
    """ListHITs: all but the deleted ones, the newest first."""
    query = _with_types().where(hit.c.status != "Disposed")
    return page(call, parameters, query, hit.c.number, "HITs", written, newest_first=True)


def list_reviewable_hits(call: Call, parameters: Parameters) -> Answer:
    """ListReviewableHITs: Reviewable ones where the status is not told."""
    query = _with_types().where(hit.c.status == parameters.get("Status", "Reviewable"))
    if "HITTypeId" in parameters:
        query = query.where(hit.c.hit_type_id == parameters["HITTypeId"])
    return page(call, parameters, query, hit.c.number, "HITs", written, newest_first=True)


def list_hits_for_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """ListHITsForQualificationType: HITs that require it."""
    its_id = parameters["QualificationTypeId"]
    known = select(qualification_type.c.number).where(
        qualification_type.c.qualification_type_id == its_id
    )
    if call.connection.scalar(known) is None:
        raise does_not_exist("QualificationType", its_id)
    kinds = call.connection.execute(select(hit_type.c.hit_type_id, hit_type.c.qualifications)).all()
    asking = [
        kind.hit_type_id
        for kind in kinds
        if any(one["QualificationTypeId"] == its_id for one in kind.qualifications)
    ]
    query = _with_types().where(hit.c.hit_type_id.in_(asking), hit.c.status != "Disposed")
    return page(call, parameters, query, hit.c.number, "HITs", written, newest_first=True)


def list_review_policy_results_for_hit(call: Call, parameters: Parameters) -> Answer:
    """ListReviewPolicyResultsForHIT: empty, because HITs with review policies are refused."""
    check(limits.PAGE.problem(parameters.get("MaxResults", 10)))
    if "NextToken" in parameters:
        raise invalid("NextToken is none that this operation has given")
    return {"HITId": lifecycle.hit_row(call.connection, parameters["HITId"]).hit_id}


def create_additional_assignments_for_hit(call: Call, parameters: Parameters) -> Answer:
    """CreateAdditionalAssignmentsForHIT."""
    text = parameters.get("UniqueRequestToken")
    token = remembered(call, parameters, lambda made: already_processed(text, made))
    row = _not_disposed(call, parameters["HITId"])
    more = parameters["NumberOfAdditionalAssignments"]
    check(limits.ADDITIONAL_ASSIGNMENTS.problem(more))
    if problem := limits.assignments_increase_problem(row.max_assignments, more):
        raise fault("InvalidMaximumAssignmentsIncrease", problem)
    most = row.max_assignments + more
    lifecycle.change_hit(call.connection, row.hit_id, call.now, max_assignments=most)
    lifecycle.record_event(
        call.connection, "HITExtended", call.now, hit_type_id=row.hit_type_id, hit_id=row.hit_id
    )
    remember(call, token, row.hit_id)
    return {}


def update_expiration_for_hit(call: Call, parameters: Parameters) -> Answer:
    """UpdateExpirationForHIT: a time in the past expires it at once."""
    row = _not_disposed(call, parameters["HITId"])
    at: datetime = parameters["ExpireAt"]
    expiration = at.timestamp()
    if expiration > call.now + limits.LIFETIME.maximum:
        raise invalid(f"ExpireAt is more than {limits.LIFETIME.maximum} seconds ahead")
    expiration = max(expiration, call.now)
    lifecycle.change_hit(call.connection, row.hit_id, call.now, expiration=expiration)
    return {}


def update_hit_review_status(call: Call, parameters: Parameters) -> Answer:
    """UpdateHITReviewStatus: Reviewable to Reviewing, or back with Revert."""
    row = lifecycle.hit_row(call.connection, parameters["HITId"])
    old, new = "Reviewable", "Reviewing"
    if parameters.get("Revert"):
        old, new = new, old
    if row.status != old:
        raise wrong_state("HIT", row.status, [old])
    marked = "MarkedForReview" if new == "Reviewing" else "NotReviewed"
    call.connection.execute(
        update(hit).where(hit.c.hit_id == row.hit_id).values(status=new, review_status=marked)
    )
    return {}


def update_hit_type_of_hit(call: Call, parameters: Parameters) -> Answer:
    """UpdateHITTypeOfHIT: from now on the HIT has the other type's title, reward and so on."""
    row = _not_disposed(call, parameters["HITId"])
    kind = hit_type_row(call, parameters["HITTypeId"])
    check_types(call, kind.qualifications)
    unit = _unit(kind, row.max_assignments)
    values = {"hit_type_id": kind.hit_type_id, "unit": unit}
    lifecycle.change_hit(call.connection, row.hit_id, call.now, **values)
    return {}


def delete_hit(call: Call, parameters: Parameters) -> Answer:
    """DeleteHIT: one that is Reviewable or Reviewing, and all of whose assignments are reviewed."""
    row = lifecycle.hit_row(call.connection, parameters["HITId"])
    if row.status not in ("Reviewable", "Reviewing"):
        raise wrong_state("HIT", row.status, ["Reviewing", "Reviewable"])
    if row.submitted:
        message = f"{row.submitted} submitted assignments of HIT {row.hit_id} are not yet reviewed."
        raise fault("InvalidHITState", message)
    call.connection.execute(
        update(hit).where(hit.c.hit_id == row.hit_id).values(status="Disposed", due=None)
    )
    lifecycle.record_event(
        call.connection, "HITDisposed", call.now, hit_type_id=row.hit_type_id, hit_id=row.hit_id
    )
    return {}


def _not_disposed(call: Call, hit_id: str) -> Row[Any]:
    row = lifecycle.hit_row(call.connection, hit_id)
    if row.status == "Disposed":
        raise wrong_state(
            "HIT", row.status, ["Assignable", "Unassignable", "Reviewable", "Reviewing"]
        )
    return row
