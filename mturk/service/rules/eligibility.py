"""Whether a worker may see, preview or accept a HIT: qualification requirements and blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from mturk.limits import LOCALE
from mturk.service.store.schema import assignment, block, qualification, qualification_type, worker

__all__ = ["SYSTEM_TYPES", "Standing", "blocked", "standing", "unmet"]

APPROVED_PERCENT = "000000000000000000L0"
HITS_APPROVED = "00000000000000000040"
SYSTEM_TYPES = {
    "00000000000000000000": "Worker_PercentAssignmentsSubmitted",
    "00000000000000000070": "Worker_PercentAssignmentsAbandoned",
    "000000000000000000E0": "Worker_PercentAssignmentsReturned",
    APPROVED_PERCENT: "Worker_PercentAssignmentsApproved",
    "000000000000000000S0": "Worker_PercentAssignmentsRejected",
    HITS_APPROVED: "Worker_NumberHITsApproved",
    LOCALE: "Worker_Locale",
    "00000000000000000060": "Worker_Adult",
    "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH": "Masters",
    "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6": "Masters (sandbox)",
}
"""Id -> name of the qualification types that every worker has, as the service sees fit."""
FEW = 100
"""A worker with fewer submissions than this reads as 100 % approved."""
GUARDED = {
    "see": ("DiscoverPreviewAndAccept",),
    "preview": ("DiscoverPreviewAndAccept", "PreviewAndAccept"),
    "accept": ("DiscoverPreviewAndAccept", "PreviewAndAccept", "Accept", None),
}
"""What a worker wants to do -> the ActionsGuarded that forbid it."""
COMPARE: Mapping[str, Callable[[int, Sequence[int]], bool]] = {
    "LessThan": lambda has, values: has < values[0],
    "LessThanOrEqualTo": lambda has, values: has <= values[0],
    "GreaterThan": lambda has, values: has > values[0],
    "GreaterThanOrEqualTo": lambda has, values: has >= values[0],
    "EqualTo": lambda has, values: has == values[0],
    "NotEqualTo": lambda has, values: has != values[0],
    "In": lambda has, values: has in values,
    "NotIn": lambda has, values: has not in values,
    "Exists": lambda has, values: True,
    "DoesNotExist": lambda has, values: False,
}
WORDS = {
    "LessThan": "below",
    "LessThanOrEqualTo": "at most",
    "GreaterThan": "above",
    "GreaterThanOrEqualTo": "at least",
    "EqualTo": "exactly",
    "NotEqualTo": "other than",
    "In": "one of",
    "NotIn": "none of",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """What qualification requirements look at."""

    values: Mapping[str, int]
    """Qualification type id -> the worker's value; types that the worker does not have are missing."""
    names: Mapping[str, str]
    """Qualification type id -> its name, of the types that requesters made."""
    country: str | None
    subdivision: str | None


def standing(connection: Connection, worker_id: str) -> Standing:
    """Return a worker's qualifications, those of the system included."""
    place = connection.execute(
        select(worker.c.country, worker.c.subdivision).where(worker.c.worker_id == worker_id)
    ).first()
    granted = connection.execute(
        select(qualification.c.qualification_type_id, qualification.c.value).where(
            qualification.c.worker_id == worker_id, qualification.c.status == "Granted"
        )
    ).all()
    names = connection.execute(
        select(qualification_type.c.qualification_type_id, qualification_type.c.name)
    ).all()
    country, subdivision = place if place else (None, None)
    values = {row.qualification_type_id: row.value for row in granted}
    return Standing(
        _system_values(_counts(connection, worker_id)) | values,
        {row.qualification_type_id: row.name for row in names},
        country,
        subdivision,
    )


def blocked(connection: Connection, worker_id: str) -> bool:
    """Tell whether the requester has blocked the worker."""
    found = connection.scalar(select(block.c.number).where(block.c.worker_id == worker_id))
    return found is not None


def unmet(
    requirements: Sequence[Mapping[str, Any]], worker: Standing, wish: str = "accept"
) -> list[str]:
    """Return, in words, the requirements that keep a worker from a wish: see, preview or accept."""
    return [
        _in_words(one, worker)
        for one in requirements
        if _guards(one, wish) and not _meets(one, worker)
    ]


def _guards(requirement: Mapping[str, Any], wish: str) -> bool:
    if requirement.get("RequiredToPreview") and "ActionsGuarded" not in requirement:
        return wish != "see"
    return requirement.get("ActionsGuarded") in GUARDED[wish]


def _meets(requirement: Mapping[str, Any], worker: Standing) -> bool:
    comparator = requirement["Comparator"]
    if requirement["QualificationTypeId"] == LOCALE:
        return _meets_locale(requirement, worker)
    has = worker.values.get(requirement["QualificationTypeId"])
    if has is None:
        return bool(comparator == "DoesNotExist")
    return COMPARE[comparator](has, requirement.get("IntegerValues") or ())


def _meets_locale(requirement: Mapping[str, Any], worker: Standing) -> bool:
    comparator = requirement["Comparator"]
    if worker.country is None:
        return bool(comparator == "DoesNotExist")
    inside = any(
        place["Country"] == worker.country
        and place.get("Subdivision") in (None, worker.subdivision)
        for place in requirement.get("LocaleValues") or ()
    )
    return {"EqualTo": inside, "In": inside, "NotEqualTo": not inside, "NotIn": not inside,
            "Exists": True}.get(comparator, False)  # fmt: skip


def _counts(connection: Connection, worker_id: str) -> Mapping[str, int]:
    rows = connection.execute(
        select(assignment.c.status, func.count())
        .where(assignment.c.worker_id == worker_id)
        .group_by(assignment.c.status)
    ).all()
    return {row[0]: row[1] for row in rows}


def _system_values(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the qualifications that follow from what became of the worker's assignments."""
    approved, rejected = counts.get("Approved", 0), counts.get("Rejected", 0)
    sent = approved + rejected + counts.get("Submitted", 0)
    accepted = sum(counts.values())

    def percent(part: int, whole: int, few: int) -> int:
        return few if sent < FEW or not whole else round(100 * part / whole)

    return {
        "00000000000000000000": percent(sent, accepted, 100),
        "00000000000000000070": percent(counts.get("Abandoned", 0), accepted, 0),
        "000000000000000000E0": percent(counts.get("Returned", 0), accepted, 0),
        APPROVED_PERCENT: percent(approved, approved + rejected, 100),
        "000000000000000000S0": percent(rejected, approved + rejected, 0),
        HITS_APPROVED: approved,
        "00000000000000000060": 1,
    }


def _in_words(requirement: Mapping[str, Any], worker: Standing) -> str:
    which = requirement["QualificationTypeId"]
    name = worker.names.get(which) or SYSTEM_TYPES.get(which, which)
    comparator = requirement["Comparator"]
    if comparator in ("Exists", "DoesNotExist"):
        return f"{name} is {'required' if comparator == 'Exists' else 'not allowed'}"
    places = [
        "-".join(filter(None, [place["Country"], place.get("Subdivision")]))
        for place in requirement.get("LocaleValues") or ()
    ]
    values = places or [str(value) for value in requirement.get("IntegerValues") or ()]
    return f"{name} must be {WORDS[comparator]} {', '.join(values)}"
