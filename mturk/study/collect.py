"""Collection of submitted assignments from the service into the ledger."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bws.base.progress import tracked
from mturk.answers import WITHDRAWN_ANSWER
from mturk.limits import PAGE_SIZE
from mturk.study.client import WITHDRAWN, ServiceError, error_code, translate_errors
from mturk.study.ledger import Assignment, Hit, Ledger
from mturk.study.privacy import Namer

log = logging.getLogger(__name__)

MISSING = "AWS.MechanicalTurk.HITDoesNotExist"
Clock = Callable[[], float]
Listing = Mapping[str, Mapping[str, Any]]
"""HIT id -> the HIT as listed by the service."""


@dataclass(frozen=True, slots=True)
class HitCounts:
    """Numbers of a HIT's assignments by state, according to the service."""

    max_assignments: int
    """MaxAssignments."""
    available: int
    """Assignments that no worker has accepted."""
    pending: int
    """Accepted and in progress."""
    reviewed: int
    """Approved or rejected."""
    is_offered: bool
    """Whether workers can accept the available assignments, by the service's clock."""
    withdrawn: int = 0
    """Submitted assignments whose answers were withdrawn."""

    @property
    def submitted(self) -> int:
        """Assignments submitted and not yet reviewed."""
        return self.max_assignments - self.available - self.pending - self.reviewed


def hit_counts(listed: Mapping[str, Any]) -> HitCounts:
    """Return the counts of a HIT as listed by the service."""
    return HitCounts(
        listed["MaxAssignments"],
        listed["NumberOfAssignmentsAvailable"],
        listed["NumberOfAssignmentsPending"],
        listed["NumberOfAssignmentsCompleted"],
        listed["HITStatus"] == "Assignable",
        listed.get(WITHDRAWN, 0),
    )


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """Result of one collection."""

    hits: Listing
    """The ledger's HITs as listed by the service, without deleted ones."""
    n_hits_read: int
    """HITs whose assignments were read; the others had no changes."""
    n_new: int
    """New assignments."""
    n_changed: int
    """Assignments whose review has changed."""
    deleted_hits: tuple[str, ...]
    """Ids of HITs that were deleted at the service; assignments collected from them are kept."""


def collect(
    client: Any,
    ledger: Ledger,
    name: Namer,
    *,
    clock: Clock = time.time,
    progress: Callable[[Sequence[Hit]], Iterable[Hit]] = iter,
) -> CollectionResult:
    """Record submitted and reviewed assignments; repeating the call changes nothing.

    Each HIT is one transaction, so an interrupted collection can be repeated. Raises ServiceError.
    """
    hits = [hit for hit in ledger.hits() if hit.hit_id]
    listed = _list_hits(client, {hit.hit_id for hit in hits}) if hits else {}
    changed_hits = _changed_hits(ledger, hits, listed)
    log.debug("%d HITs, %d of them with changes", len(hits), len(changed_hits))
    n_new = n_changed = 0
    deleted_hits = []
    for hit in progress(changed_hits):
        try:
            counts = update_hit(client, ledger, str(hit.hit_id), name, clock=clock)
        except LookupError:
            deleted_hits.append(str(hit.hit_id))
            continue
        n_new, n_changed = n_new + counts[0], n_changed + counts[1]
    log.debug(
        "%d new assignments, %d changed, %d deleted HITs", n_new, n_changed, len(deleted_hits)
    )
    return CollectionResult(listed, len(changed_hits), n_new, n_changed, tuple(deleted_hits))


def update_hit(
    client: Any, ledger: Ledger, hit_id: str, name: Namer, *, clock: Clock = time.time
) -> tuple[int, int]:
    """Read and record a HIT's assignments; return the numbers of new and changed ones.

    Raises LookupError if the service has no such HIT.
    """
    assignments = [_assignment(data, name, clock()) for data in _assignments(client, hit_id)]
    counts = ledger.store_assignments(ledger.exclude_deleted(assignments))
    ledger.replace_answers(one for one in assignments if one.answer_xml == WITHDRAWN_ANSWER)
    return counts


def worker_ids(client: Any, ledger: Ledger) -> dict[str, str]:
    """Return assignment id -> worker id at the service; the ids are not stored.

    Raises ServiceError if HITs were deleted at the service.
    """
    ids: dict[str, str] = {}
    n_deleted = 0
    for hit_id in dict.fromkeys(assignment.hit_id for assignment in ledger.assignments()):
        try:
            ids |= {data["AssignmentId"]: data["WorkerId"] for data in _assignments(client, hit_id)}
        except LookupError:
            n_deleted += 1
    if n_deleted:
        raise ServiceError(
            f"{n_deleted} HITs were deleted at the service; their worker ids are unavailable"
        )
    return ids


def _list_hits(client: Any, hit_ids: set[str | None]) -> dict[str, Mapping[str, Any]]:
    """Return the ledger's HITs among all HITs of the requester."""
    pages = client.get_paginator("list_hits").paginate(
        PaginationConfig={"PageSize": PAGE_SIZE.maximum}
    )
    n_pages = -(-len(hit_ids) // PAGE_SIZE.maximum) + 1  # The last one is empty.
    with translate_errors():
        return {
            hit["HITId"]: hit
            for page in tracked(pages, "listing", n_pages)
            for hit in page["HITs"]
            if hit["HITId"] in hit_ids
        }


def _changed_hits(ledger: Ledger, hits: Sequence[Hit], listed: Listing) -> list[Hit]:
    """Return the HITs whose counts differ between the ledger and the service.

    The service's number of reviewed assignments is compared with the ledger's number of approved ones.
    Overriding a rejection changes no count, so HITs with rejections are always read.
    """
    ledger_counts: dict[str, Counter[str]] = {}
    for assignment in ledger.assignments():
        counts = ledger_counts.setdefault(assignment.hit_id, Counter())
        counts[assignment.status] += 1
        counts["withdrawn"] += assignment.answer_xml == WITHDRAWN_ANSWER

    def has_changed(hit: Hit) -> bool:
        if str(hit.hit_id) not in listed:
            return True
        remote, local = (
            hit_counts(listed[str(hit.hit_id)]),
            ledger_counts.get(str(hit.hit_id), Counter()),
        )
        remote_counts = (remote.submitted, remote.reviewed, remote.withdrawn)
        return remote_counts != (local["Submitted"], local["Approved"], local["withdrawn"])

    return [hit for hit in hits if has_changed(hit)]


def _assignments(client: Any, hit_id: str) -> Iterator[Mapping[str, Any]]:
    pages = client.get_paginator("list_assignments_for_hit").paginate(
        HITId=hit_id, PaginationConfig={"PageSize": PAGE_SIZE.maximum}
    )
    with translate_errors():
        try:
            for page in pages:
                yield from page["Assignments"]
        except client.exceptions.RequestError as error:
            if error_code(error) == MISSING:
                raise LookupError(hit_id) from None
            raise


def _assignment(data: Mapping[str, Any], name: Namer, now: float) -> Assignment:
    return Assignment(
        assignment_id=data["AssignmentId"],
        hit_id=data["HITId"],
        worker=name(data["WorkerId"]),
        status=data["AssignmentStatus"],
        accept_time=_seconds(data.get("AcceptTime")),
        submit_time=_seconds(data.get("SubmitTime")),
        answer_xml=data.get("Answer", ""),
        collected_at=now,
        auto_approval_time=_seconds(data.get("AutoApprovalTime")),
        approval_time=_seconds(data.get("ApprovalTime")),
        rejection_time=_seconds(data.get("RejectionTime")),
        feedback=data.get("RequesterFeedback", ""),
    )


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
