"""From the service to the ledger: every assignment that was submitted, once, and the answer as it was."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mturk.limits import PAGE
from mturk.study.client import ServiceError, error_code, explained
from mturk.study.ledger import Assignment, Hit, Ledger
from mturk.study.privacy import Namer

__all__ = ["Collected", "Places", "collect", "places", "refresh", "worker_ids"]

log = logging.getLogger(__name__)

MISSING = "AWS.MechanicalTurk.HITDoesNotExist"
Clock = Callable[[], float]
Listing = Mapping[str, Mapping[str, Any]]
"""HIT id -> the HIT as the service lists it."""


@dataclass(frozen=True, slots=True)
class Places:
    """How many of a HIT's assignments are in which state, by the service's count."""

    most: int
    """MaxAssignments."""
    available: int
    """Places that nobody has taken."""
    pending: int
    """Accepted and being worked on."""
    reviewed: int
    """Approved or rejected."""
    offered: bool
    """Whether workers can get the places that are available; by the service's own clock."""

    @property
    def submitted(self) -> int:
        """Submitted and not yet reviewed."""
        return self.most - self.available - self.pending - self.reviewed


def places(listed: Mapping[str, Any]) -> Places:
    """Return the counts of a HIT as the service writes it."""
    return Places(
        listed["MaxAssignments"],
        listed["NumberOfAssignmentsAvailable"],
        listed["NumberOfAssignmentsPending"],
        listed["NumberOfAssignmentsCompleted"],
        listed["HITStatus"] == "Assignable",
    )


@dataclass(frozen=True, slots=True)
class Collected:
    """What a round of collecting found."""

    hits: Listing
    """The ledger's HITs as the service lists them; those that were deleted there are missing."""
    asked: int
    """HITs whose assignments were read; of the others the service has told nothing new."""
    new: int
    """Assignments."""
    changed: int
    """Assignments that were reviewed since."""
    gone: tuple[str, ...]
    """Ids of HITs that the service has no more. What was collected of them before is kept."""


def collect(
    client: Any,
    ledger: Ledger,
    name: Namer,
    *,
    clock: Clock = time.time,
    progress: Callable[[Sequence[Hit]], Iterable[Hit]] = iter,
) -> Collected:
    """Write down what was submitted and reviewed; the same again changes nothing.

    Every HIT is one transaction: where this is interrupted, the same again goes on. Raises ServiceError.
    """
    hits = [hit for hit in ledger.hits() if hit.hit_id]
    listed = _listed(client, {hit.hit_id for hit in hits}) if hits else {}
    waiting = _with_news(ledger, hits, listed)
    log.debug("%d HITs, %d of them with news", len(hits), len(waiting))
    new = changed = 0
    gone = []
    for hit in progress(waiting):
        try:
            counts = refresh(client, ledger, str(hit.hit_id), name, clock=clock)
        except LookupError:
            gone.append(str(hit.hit_id))
            continue
        new, changed = new + counts[0], changed + counts[1]
    log.debug("%d assignments are new, %d changed, %d HITs gone", new, changed, len(gone))
    return Collected(listed, len(waiting), new, changed, tuple(gone))


def refresh(
    client: Any, ledger: Ledger, hit_id: str, name: Namer, *, clock: Clock = time.time
) -> tuple[int, int]:
    """Read a HIT's assignments and write them down; return how many are new and how many changed.

    Raises LookupError where the service has no such HIT.
    """
    found = [_assignment(one, name, clock()) for one in _assignments(client, hit_id)]
    return ledger.keep(ledger.without_forgotten(found))


def worker_ids(client: Any, ledger: Ledger) -> dict[str, str]:
    """Return the service's own worker id of each assignment; nothing of it is written down.

    Raises ServiceError where a HIT was deleted at the service, with how many.
    """
    found: dict[str, str] = {}
    gone = 0
    for hit_id in dict.fromkeys(one.hit_id for one in ledger.assignments()):
        try:
            found |= {one["AssignmentId"]: one["WorkerId"] for one in _assignments(client, hit_id)}
        except LookupError:
            gone += 1
    if gone:
        raise ServiceError(f"{gone} HITs were deleted at the service, and with them the worker ids")
    return found


def _listed(client: Any, ours: set[str | None]) -> dict[str, Mapping[str, Any]]:
    """Return the HITs of the ledger among all that the requester has."""
    pages = client.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": PAGE.high})
    with explained():
        return {hit["HITId"]: hit for page in pages for hit in page["HITs"] if hit["HITId"] in ours}


def _with_news(ledger: Ledger, hits: Sequence[Hit], listed: Listing) -> list[Hit]:
    """Return the HITs of which the ledger's counts are not the service's.

    What is reviewed there is compared with what is approved here: a rejection can be overridden without
    a change of any count, so HITs with one are read always.
    """
    known: dict[str, Counter[str]] = {}
    for one in ledger.assignments():
        known.setdefault(one.hit_id, Counter())[one.status] += 1

    def news(hit: Hit) -> bool:
        if str(hit.hit_id) not in listed:
            return True
        there, here = places(listed[str(hit.hit_id)]), known.get(str(hit.hit_id), Counter())
        return (there.submitted, there.reviewed) != (here["Submitted"], here["Approved"])

    return [hit for hit in hits if news(hit)]


def _assignments(client: Any, hit_id: str) -> Iterator[Mapping[str, Any]]:
    pages = client.get_paginator("list_assignments_for_hit").paginate(
        HITId=hit_id, PaginationConfig={"PageSize": PAGE.high}
    )
    with explained():
        try:
            for page in pages:
                yield from page["Assignments"]
        except client.exceptions.RequestError as error:
            if error_code(error) == MISSING:
                raise LookupError(hit_id) from None
            raise


def _assignment(there: Mapping[str, Any], name: Namer, now: float) -> Assignment:
    return Assignment(
        assignment_id=there["AssignmentId"],
        hit_id=there["HITId"],
        worker=name(there["WorkerId"]),
        status=there["AssignmentStatus"],
        accept_time=_seconds(there.get("AcceptTime")),
        submit_time=_seconds(there.get("SubmitTime")),
        answer_xml=there.get("Answer", ""),
        collected_at=now,
        auto_approval_time=_seconds(there.get("AutoApprovalTime")),
        approval_time=_seconds(there.get("ApprovalTime")),
        rejection_time=_seconds(there.get("RejectionTime")),
        feedback=there.get("RequesterFeedback", ""),
    )


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
