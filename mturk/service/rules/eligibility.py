"""Eligibility of workers for HITs: qualification requirements and blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from mturk.limits import LOCALE
from mturk.service.store.schema import assignment, block, qualification, qualification_type, worker
from mturk.service.store.statements import Statement

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
"""Id -> name of the system qualification types, whose values the service computes."""
MIN_SUBMISSIONS = 100
"""Minimum number of submissions for computed rates; below it a worker counts as 100 % approved."""
GUARDS_BY_ACTION = {
    "see": ("DiscoverPreviewAndAccept",),
    "preview": ("DiscoverPreviewAndAccept", "PreviewAndAccept"),
    "accept": ("DiscoverPreviewAndAccept", "PreviewAndAccept", "Accept", None),
}
"""Action of a worker -> values of ActionsGuarded that restrict it."""
COMPARATORS: Mapping[str, Callable[[int, Sequence[int]], bool]] = {
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
COMPARATOR_PHRASES = {
    "LessThan": "below",
    "LessThanOrEqualTo": "at most",
    "GreaterThan": "above",
    "GreaterThanOrEqualTo": "at least",
    "EqualTo": "exactly",
    "NotEqualTo": "other than",
    "In": "one of",
    "NotIn": "none of",
    "Exists": "required",
    "DoesNotExist": "not allowed",
}

# Statements are built once: building one takes SQLAlchemy longer than executing it.
LOCATION = Statement(
    select(worker.c.country, worker.c.subdivision).where(
        worker.c.worker_id == bindparam("worker_id")
    )
)
GRANTED = Statement(
    select(qualification.c.qualification_type_id, qualification.c.value).where(
        qualification.c.worker_id == bindparam("worker_id"), qualification.c.status == "Granted"
    )
)
TYPE_NAMES = Statement(
    select(qualification_type.c.qualification_type_id, qualification_type.c.name)
)
STATUS_COUNTS = Statement(
    select(assignment.c.status, func.count())
    .where(assignment.c.worker_id == bindparam("worker_id"))
    .group_by(assignment.c.status)
)
BLOCK = Statement(select(block.c.number).where(block.c.worker_id == bindparam("worker_id")))


@dataclass(frozen=True, slots=True)
class UnmetRequirement:
    """A qualification requirement that a worker does not meet."""

    name: str
    """Name of the qualification type; of a system type, as in the documentation of Mechanical Turk."""
    comparator: str
    values: tuple[str, ...]
    """Numbers, or codes of countries and their subdivisions (US-NY)."""

    def __str__(self) -> str:
        phrase = COMPARATOR_PHRASES[self.comparator]
        if self.comparator in ("Exists", "DoesNotExist"):
            return f"{self.name} is {phrase}"
        return f"{self.name} must be {phrase} {', '.join(self.values)}"


@dataclass(frozen=True, slots=True)
class WorkerQualifications:
    """Properties of a worker that qualification requirements refer to."""

    values: Mapping[str, int]
    """Qualification type id -> the worker's value; types without a value are absent."""
    names: Mapping[str, str]
    """Qualification type id -> name, for types created by requesters."""
    country: str | None
    subdivision: str | None


def worker_qualifications(connection: Connection, worker_id: str) -> WorkerQualifications:
    """Return a worker's qualifications, including the system types."""
    parameters = {"worker_id": worker_id}
    location = LOCATION.first(connection, parameters)
    granted = GRANTED.all(connection, parameters)
    names = TYPE_NAMES.all(connection, {})
    counts = dict(STATUS_COUNTS.all(connection, parameters))
    country, subdivision = location if location else (None, None)
    values = {row.qualification_type_id: row.value for row in granted}
    return WorkerQualifications(
        _system_values(counts) | values,
        {row.qualification_type_id: row.name for row in names},
        country,
        subdivision,
    )


def is_blocked(connection: Connection, worker_id: str) -> bool:
    """Return whether the requester has blocked the worker."""
    return BLOCK.scalar(connection, {"worker_id": worker_id}) is not None


def unmet_requirements(
    requirements: Sequence[Mapping[str, Any]], worker: WorkerQualifications, action: str = "accept"
) -> list[UnmetRequirement]:
    """Return the unmet requirements of an action: see, preview or accept."""
    return [
        _unmet(requirement, worker)
        for requirement in requirements
        if _applies_to(requirement, action) and not _is_met(requirement, worker)
    ]


def _applies_to(requirement: Mapping[str, Any], action: str) -> bool:
    if requirement.get("RequiredToPreview") and "ActionsGuarded" not in requirement:
        return action != "see"
    return requirement.get("ActionsGuarded") in GUARDS_BY_ACTION[action]


def _is_met(requirement: Mapping[str, Any], worker: WorkerQualifications) -> bool:
    comparator = requirement["Comparator"]
    if requirement["QualificationTypeId"] == LOCALE:
        return _is_locale_met(requirement, worker)
    has = worker.values.get(requirement["QualificationTypeId"])
    if has is None:
        return bool(comparator == "DoesNotExist")
    return COMPARATORS[comparator](has, requirement.get("IntegerValues") or ())


def _is_locale_met(requirement: Mapping[str, Any], worker: WorkerQualifications) -> bool:
    comparator = requirement["Comparator"]
    if worker.country is None:
        return bool(comparator == "DoesNotExist")
    is_inside = any(
        locale["Country"] == worker.country
        and locale.get("Subdivision") in (None, worker.subdivision)
        for locale in requirement.get("LocaleValues") or ()
    )
    return {"EqualTo": is_inside, "In": is_inside, "NotEqualTo": not is_inside, "NotIn": not is_inside,
            "Exists": True}.get(comparator, False)  # fmt: skip


def _system_values(counts: Mapping[str, int]) -> dict[str, int]:
    """Compute the system qualifications from the worker's assignment counts."""
    approved, rejected = counts.get("Approved", 0), counts.get("Rejected", 0)
    submitted = approved + rejected + counts.get("Submitted", 0)
    accepted = sum(counts.values())

    def percent(part: int, total: int, default: int) -> int:
        return default if submitted < MIN_SUBMISSIONS or not total else round(100 * part / total)

    return {
        "00000000000000000000": percent(submitted, accepted, 100),
        "00000000000000000070": percent(counts.get("Abandoned", 0), accepted, 0),
        "000000000000000000E0": percent(counts.get("Returned", 0), accepted, 0),
        APPROVED_PERCENT: percent(approved, approved + rejected, 100),
        "000000000000000000S0": percent(rejected, approved + rejected, 0),
        HITS_APPROVED: approved,
        "00000000000000000060": 1,
    }


def _unmet(requirement: Mapping[str, Any], worker: WorkerQualifications) -> UnmetRequirement:
    type_id = requirement["QualificationTypeId"]
    locales = [
        "-".join(filter(None, [locale["Country"], locale.get("Subdivision")]))
        for locale in requirement.get("LocaleValues") or ()
    ]
    values = locales or [str(value) for value in requirement.get("IntegerValues") or ()]
    name = worker.names.get(type_id) or SYSTEM_TYPES.get(type_id, type_id)
    return UnmetRequirement(name, requirement["Comparator"], tuple(values))
