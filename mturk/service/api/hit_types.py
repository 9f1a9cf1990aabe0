"""HIT types: properties shared by HITs. Equal values yield the same type."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sqlalchemy import Row, insert, select

from mturk import limits
from mturk.money import parse_amount
from mturk.service.api.call import Answer, Call, Parameters, check
from mturk.service.errors import does_not_exist, wrong_state
from mturk.service.rules import escrow
from mturk.service.rules.eligibility import SYSTEM_TYPES
from mturk.service.store.schema import hit_type, new_id, qualification_type

MASTERS_TYPE_IDS = ("2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6")


def create_hit_type(call: Call, parameters: Parameters) -> Answer:
    """CreateHITType: return the id of a new or existing HIT type."""
    return {"HITTypeId": find_or_create_hit_type(call, parameters)}


def find_or_create_hit_type(call: Call, parameters: Parameters) -> str:
    """Return the id of the HIT type with these values, creating it if needed."""
    values = _validated_values(call, parameters)
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    existing_id: str | None = call.connection.scalar(
        select(hit_type.c.hit_type_id).where(hit_type.c.digest == digest)
    )
    if existing_id is not None:
        return existing_id
    ids = {"hit_type_id": new_id(), "group_id": new_id(), "digest": digest}
    call.connection.execute(insert(hit_type).values(**ids, **values))
    return ids["hit_type_id"]


def hit_type_row(call: Call, hit_type_id: str) -> Row[Any]:
    """Return the row of a HIT type; raise HITTypeDoesNotExist if the id is unknown."""
    query = select(hit_type).where(hit_type.c.hit_type_id == hit_type_id)
    row = call.connection.execute(query).first()
    if row is None:
        raise does_not_exist("HITType", hit_type_id)
    return row


def is_for_masters(requirements: list[dict[str, Any]]) -> bool:
    """Return whether Masters are required, for whom a higher fee is due."""
    return any(
        requirement["QualificationTypeId"] in MASTERS_TYPE_IDS
        and requirement["Comparator"] == "Exists"
        for requirement in requirements
    )


def _validated_values(call: Call, parameters: Parameters) -> dict[str, Any]:
    requirements = [
        dict(requirement) for requirement in parameters.get("QualificationRequirements", ())
    ]
    delay = parameters.get("AutoApprovalDelayInSeconds", limits.AUTO_APPROVAL_DELAY_DEFAULT)
    check(
        limits.TITLE.problem(parameters["Title"]),
        limits.DESCRIPTION.problem(parameters["Description"]),
        limits.KEYWORDS.problem(parameters.get("Keywords", "")),
        limits.reward_problem(parameters["Reward"]),
        limits.ASSIGNMENT_DURATION.problem(parameters["AssignmentDurationInSeconds"]),
        limits.AUTO_APPROVAL_DELAY.problem(delay),
        *limits.qualification_problems(requirements),
    )
    check_qualification_types(call, requirements)
    return {
        "title": parameters["Title"],
        "description": parameters["Description"],
        "keywords": parameters.get("Keywords", ""),
        "reward": escrow.cents_of(parse_amount(parameters["Reward"])),
        "duration": parameters["AssignmentDurationInSeconds"],
        "auto_approval_delay": delay,
        "qualifications": requirements,
    }


def check_qualification_types(call: Call, requirements: list[dict[str, Any]]) -> None:
    """Raise an error if a required qualification type is unknown or inactive."""
    for requirement in requirements:
        type_id = requirement["QualificationTypeId"]
        if type_id in SYSTEM_TYPES:
            continue
        status = call.connection.scalar(
            select(qualification_type.c.status).where(
                qualification_type.c.qualification_type_id == type_id
            )
        )
        if status is None:
            raise does_not_exist("QualificationType", type_id)
        if status != "Active":
            raise wrong_state("QualificationType", status, ["Active"])
