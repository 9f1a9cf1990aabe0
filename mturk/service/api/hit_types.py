"""HIT types: what HITs share. The same values make the same type."""

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

__all__ = ["check_types", "create_hit_type", "hit_type_row", "is_for_masters", "type_of"]

MASTERS = ("2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6")


def create_hit_type(call: Call, parameters: Parameters) -> Answer:
    """CreateHITType."""
    return {"HITTypeId": type_of(call, parameters)}


def type_of(call: Call, parameters: Parameters) -> str:
    """Return the id of the HIT type with these values; it is made where there is none."""
    values = _checked(call, parameters)
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    known: str | None = call.connection.scalar(
        select(hit_type.c.hit_type_id).where(hit_type.c.digest == digest)
    )
    if known is not None:
        return known
    ids = {"hit_type_id": new_id(), "group_id": new_id(), "digest": digest}
    call.connection.execute(insert(hit_type).values(**ids, **values))
    return ids["hit_type_id"]


def hit_type_row(call: Call, hit_type_id: str) -> Row[Any]:
    """Return a HIT type; HITTypeDoesNotExist where there is none."""
    query = select(hit_type).where(hit_type.c.hit_type_id == hit_type_id)
    found = call.connection.execute(query).first()
    if found is None:
        raise does_not_exist("HITType", hit_type_id)
    return found


def is_for_masters(requirements: list[dict[str, Any]]) -> bool:
    """Tell whether only Masters may work, for which another fee is due."""
    return any(
        one["QualificationTypeId"] in MASTERS and one["Comparator"] == "Exists"
        for one in requirements
    )


def _checked(call: Call, parameters: Parameters) -> dict[str, Any]:
    requirements = [dict(one) for one in parameters.get("QualificationRequirements", ())]
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
    check_types(call, requirements)
    return {
        "title": parameters["Title"],
        "description": parameters["Description"],
        "keywords": parameters.get("Keywords", ""),
        "reward": escrow.cents_of(parse_amount(parameters["Reward"])),
        "duration": parameters["AssignmentDurationInSeconds"],
        "auto_approval_delay": delay,
        "qualifications": requirements,
    }


def check_types(call: Call, requirements: list[dict[str, Any]]) -> None:
    """Refuse requirements of qualification types that are not there (any more) or not active."""
    for one in requirements:
        its_id = one["QualificationTypeId"]
        if its_id in SYSTEM_TYPES:
            continue
        status = call.connection.scalar(
            select(qualification_type.c.status).where(
                qualification_type.c.qualification_type_id == its_id
            )
        )
        if status is None:
            raise does_not_exist("QualificationType", its_id)
        if status != "Active":
            raise wrong_state("QualificationType", status, ["Active"])
