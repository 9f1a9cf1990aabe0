"""API operations on HITs."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, select, update

from mturk import limits
from mturk.question_form_schema import check_question
from mturk.service.api.call import Answer, Call, Parameters, check, check_token, page, record_token
from mturk.service.api.hit_types import (
    check_qualification_types,
    find_or_create_hit_type,
    hit_type_row,
    is_for_masters,
)
from mturk.service.errors import (
    already_exists,
    already_processed,
    does_not_exist,
    request_error,
    validation_error,
    wrong_state,
    xml_error,
)
from mturk.service.rules import escrow, lifecycle
from mturk.service.store.schema import hit, hit_type, qualification_type

ABOVE_PLANE_0 = re.compile("[\U00010000-\U0010ffff]")


def create_hit(call: Call, parameters: Parameters) -> Answer:
    """CreateHIT: create a HIT and, if new, its HIT type."""
    token = check_token(call, parameters, lambda made: already_exists("HIT", made))
    return _create(call, parameters, find_or_create_hit_type(call, parameters), token)


def create_hit_with_hit_type(call: Call, parameters: Parameters) -> Answer:
    """CreateHITWithHITType: create a HIT of an existing HIT type."""
    token = check_token(call, parameters, lambda made: already_exists("HIT", made))
    return _create(call, parameters, parameters["HITTypeId"], token)


def _create(call: Call, parameters: Parameters, hit_type_id: str, token: str | None) -> Answer:
    kind = hit_type_row(call, hit_type_id)
    check_qualification_types(call, kind.qualifications)
    max_assignments = parameters.get("MaxAssignments", 1)
    check(
        limits.MAX_ASSIGNMENTS.problem(max_assignments),
        limits.LIFETIME.problem(parameters["LifetimeInSeconds"]),
        limits.ANNOTATION.problem(parameters.get("RequesterAnnotation", "")),
    )
    values = {
        "hit_type_id": hit_type_id,
        "question": _validated_question(parameters),
        "annotation": parameters.get("RequesterAnnotation", ""),
        "max_assignments": max_assignments,
        "expiration": call.now + parameters["LifetimeInSeconds"],
        "unit": _unit_cost(kind, max_assignments),
    }
    hit_id = lifecycle.create_hit(call.connection, call.now, values)
    record_token(call, token, hit_id)
    return {"HIT": _get_hit_document(call, hit_id)}


def _unit_cost(kind: Row[Any], max_assignments: int) -> int:
    return escrow.unit_cost(
        kind.reward, max_assignments, masters=is_for_masters(kind.qualifications)
    )


def _validated_question(parameters: Parameters) -> str:
    if "HITLayoutId" in parameters:
        raise does_not_exist("HITLayout", parameters["HITLayoutId"])
    for policy in ("AssignmentReviewPolicy", "HITReviewPolicy"):
        if policy in parameters:
            name = parameters[policy].get("PolicyName", "")
            raise request_error(
                "UnsupportedReviewPolicy", f"{policy} {name} is not supported here."
            )
    text: str = parameters.get("Question", "")
    check(limits.QUESTION.problem(text))
    if ABOVE_PLANE_0.search(text):
        raise validation_error(
            "Question has characters above U+FFFF; write them as numeric entities"
        )
    try:
        check_question(text)
    except ValueError as error:
        raise xml_error("Question", error) from None
    return text


def _select_hits_with_types() -> Select[Any]:
    type_columns = [column for column in hit_type.c if column.name != "hit_type_id"]
    return select(hit, *type_columns).join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)


def _get_hit_document(call: Call, hit_id: str) -> Answer:
    row = call.connection.execute(_select_hits_with_types().where(hit.c.hit_id == hit_id)).first()
    if row is None:
        raise does_not_exist("HIT", hit_id)
    return hit_document(row)


def hit_document(row: Row[Any]) -> Answer:
    """Return a HIT as an API document, from a row of the HIT joined with its type."""
    n_taken = row.pending + row.submitted + row.completed
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
        "NumberOfAssignmentsAvailable": row.max_assignments - n_taken,
        "NumberOfAssignmentsCompleted": row.completed,
    }
    if row.withdrawn:  # not a field of Mechanical Turk; AWS clients ignore it
        answer["NumberOfAssignmentsWithdrawn"] = row.withdrawn
    return answer | ({"RequesterAnnotation": row.annotation} if row.annotation else {})


def get_hit(call: Call, parameters: Parameters) -> Answer:
    """GetHIT: return a HIT."""
    return {"HIT": _get_hit_document(call, parameters["HITId"])}


def list_hits(call: Call, parameters: Parameters) -> Answer:
    """ListHITs: list all HITs that are not deleted, newest first."""
    query = _select_hits_with_types().where(hit.c.status != "Disposed")
    return page(call, parameters, query, hit.c.number, "HITs", hit_document, newest_first=True)


def list_reviewable_hits(call: Call, parameters: Parameters) -> Answer:
    """ListReviewableHITs: list HITs with the given status (default: Reviewable)."""
    query = _select_hits_with_types().where(hit.c.status == parameters.get("Status", "Reviewable"))
    if "HITTypeId" in parameters:
        query = query.where(hit.c.hit_type_id == parameters["HITTypeId"])
    return page(call, parameters, query, hit.c.number, "HITs", hit_document, newest_first=True)


def list_hits_for_qualification_type(call: Call, parameters: Parameters) -> Answer:
    """ListHITsForQualificationType: list HITs that require a qualification type."""
    type_id = parameters["QualificationTypeId"]
    type_query = select(qualification_type.c.number).where(
        qualification_type.c.qualification_type_id == type_id
    )
    if call.connection.scalar(type_query) is None:
        raise does_not_exist("QualificationType", type_id)
    hit_types = call.connection.execute(
        select(hit_type.c.hit_type_id, hit_type.c.qualifications)
    ).all()
    hit_type_ids = [
        kind.hit_type_id
        for kind in hit_types
        if any(requirement["QualificationTypeId"] == type_id for requirement in kind.qualifications)
    ]
    query = _select_hits_with_types().where(
        hit.c.hit_type_id.in_(hit_type_ids), hit.c.status != "Disposed"
    )
    return page(call, parameters, query, hit.c.number, "HITs", hit_document, newest_first=True)


def list_review_policy_results_for_hit(call: Call, parameters: Parameters) -> Answer:
    """ListReviewPolicyResultsForHIT: return no results, because review policies are not supported."""
    check(limits.PAGE_SIZE.problem(parameters.get("MaxResults", 10)))
    if "NextToken" in parameters:
        raise validation_error("NextToken is invalid for this operation")
    return {"HITId": lifecycle.hit_row(call.connection, parameters["HITId"]).hit_id}


def create_additional_assignments_for_hit(call: Call, parameters: Parameters) -> Answer:
    """CreateAdditionalAssignmentsForHIT: raise the maximum number of assignments."""
    text = parameters.get("UniqueRequestToken")
    token = check_token(call, parameters, lambda made: already_processed(text, made))
    row = _not_disposed(call, parameters["HITId"])
    n_additional = parameters["NumberOfAdditionalAssignments"]
    check(limits.ADDITIONAL_ASSIGNMENTS.problem(n_additional))
    if problem := limits.assignments_increase_problem(row.max_assignments, n_additional):
        raise request_error("InvalidMaximumAssignmentsIncrease", problem)
    max_assignments = row.max_assignments + n_additional
    lifecycle.change_hit(call.connection, row.hit_id, call.now, max_assignments=max_assignments)
    lifecycle.record_event(
        call.connection, "HITExtended", call.now, hit_type_id=row.hit_type_id, hit_id=row.hit_id
    )
    record_token(call, token, row.hit_id)
    return {}


def update_expiration_for_hit(call: Call, parameters: Parameters) -> Answer:
    """UpdateExpirationForHIT: change the expiration; a time in the past expires the HIT immediately.

    A deleted HIT stays as it is, without an error: clients expire a HIT before they delete it again.
    """
    row = lifecycle.hit_row(call.connection, parameters["HITId"])
    at: datetime = parameters["ExpireAt"]
    expiration = at.timestamp()
    if expiration > call.now + limits.LIFETIME.maximum:
        raise validation_error(f"ExpireAt is more than {limits.LIFETIME.maximum} seconds ahead")
    if row.status != "Disposed":
        expiration = max(expiration, call.now)
        lifecycle.change_hit(call.connection, row.hit_id, call.now, expiration=expiration)
    return {}


def update_hit_review_status(call: Call, parameters: Parameters) -> Answer:
    """UpdateHITReviewStatus: change Reviewable to Reviewing, or back with Revert."""
    row = lifecycle.hit_row(call.connection, parameters["HITId"])
    old, new = "Reviewable", "Reviewing"
    if parameters.get("Revert"):
        old, new = new, old
    if row.status != old:
        raise wrong_state("HIT", row.status, [old])
    review_status = "MarkedForReview" if new == "Reviewing" else "NotReviewed"
    call.connection.execute(
        update(hit)
        .where(hit.c.hit_id == row.hit_id)
        .values(status=new, review_status=review_status)
    )
    return {}


def update_hit_type_of_hit(call: Call, parameters: Parameters) -> Answer:
    """UpdateHITTypeOfHIT: assign another HIT type, including its title and reward."""
    row = _not_disposed(call, parameters["HITId"])
    kind = hit_type_row(call, parameters["HITTypeId"])
    check_qualification_types(call, kind.qualifications)
    unit = _unit_cost(kind, row.max_assignments)
    values = {"hit_type_id": kind.hit_type_id, "unit": unit}
    lifecycle.change_hit(call.connection, row.hit_id, call.now, **values)
    return {}


def delete_hit(call: Call, parameters: Parameters) -> Answer:
    """DeleteHIT: delete a Reviewable or Reviewing HIT without unreviewed assignments."""
    row = lifecycle.hit_row(call.connection, parameters["HITId"])
    if row.status not in ("Reviewable", "Reviewing"):
        raise wrong_state("HIT", row.status, ["Reviewing", "Reviewable"])
    if row.submitted:
        message = f"{row.submitted} submitted assignments of HIT {row.hit_id} are not yet reviewed."
        raise request_error("InvalidHITState", message)
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
