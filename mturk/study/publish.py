"""Creation of planned HITs, each exactly once, despite crashes, lost responses and duplicate requests.

First, the service's list is searched for the annotations of planned HITs. This finds HITs after a lost
response, a lost ledger or an expired token. Second, each HIT is sent with a unique token, so the service
refuses duplicates for 24 hours. Third, the ledger is written before the calls and after each call.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mturk.limits import PAGE_SIZE
from mturk.money import cost
from mturk.study.client import ServiceError, error_code, translate_errors
from mturk.study.ledger import Hit, Ledger

log = logging.getLogger(__name__)

EXISTS = "AWS.MechanicalTurk.HITAlreadyExists"
HIT_ID = re.compile(r"\b[A-Z0-9]{10,64}\b")
COMMIT_BATCH_SIZE = 25
"""Number of HITs marked as sent per commit, since each commit waits for the disk."""
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class AdoptedHits:
    """HITs of a study that existed at the service."""

    n_adopted: int
    duplicates: tuple[tuple[str, str], ...]
    """(annotation, HIT id) of each further HIT with the annotation of an adopted one."""


def unpublished_hits(ledger: Ledger) -> list[Hit]:
    """Return the HITs without a HIT id; they may exist at the service."""
    return [hit for hit in ledger.hits() if hit.hit_id is None]


def unpublished_cost(ledger: Ledger) -> Decimal:
    """Return the cost of the unpublished HITs with fees, in US dollars."""
    reward = ledger.study().settings.reward
    return sum(
        (cost(reward, hit.max_assignments) for hit in unpublished_hits(ledger)), Decimal("0.00")
    )


def available_balance(client: Any) -> Decimal:
    """Return the available balance in US dollars."""
    with translate_errors():
        return Decimal(client.get_account_balance()["AvailableBalance"])


def adopt_hits(client: Any, ledger: Ledger, *, clock: Clock = time.time) -> AdoptedHits:
    """Record unpublished HITs that exist at the service; of several, the oldest."""
    planned_hits = {planned.annotation: planned for planned in unpublished_hits(ledger)}
    if not planned_hits:
        return AdoptedHits(0, ())
    log.debug("searching the service for %d unpublished HITs", len(planned_hits))
    matches: dict[str, list[Mapping[str, Any]]] = {}
    with translate_errors():
        for hit in _list_hits(client):
            if hit.get("RequesterAnnotation") in planned_hits:
                matches.setdefault(hit["RequesterAnnotation"], []).append(hit)
    duplicates = []
    for annotation, matching_hits in matches.items():
        oldest, *extra_hits = sorted(matching_hits, key=lambda hit: hit["CreationTime"])
        number = planned_hits[annotation].number
        if not ledger.study().hit_type_id:
            ledger.set_hit_type(oldest["HITTypeId"])
        ledger.mark_created(number, oldest["HITId"], oldest["MaxAssignments"], clock())
        duplicates += [(annotation, extra_hit["HITId"]) for extra_hit in extra_hits]
    log.debug("%d of them exist, with %d duplicates", len(matches), len(duplicates))
    return AdoptedHits(len(matches), tuple(duplicates))


def _list_hits(client: Any) -> Iterator[Mapping[str, Any]]:
    pages = client.get_paginator("list_hits").paginate(
        PaginationConfig={"PageSize": PAGE_SIZE.maximum}
    )
    for page in pages:
        yield from page["HITs"]


def create_hits(
    client: Any,
    ledger: Ledger,
    *,
    clock: Clock = time.time,
    progress: Callable[[Sequence[Hit]], Iterable[Hit]] = iter,
) -> int:
    """Create all unpublished HITs and return their number.

    Call `adopt_hits` first and hold `ledger.exclusive_lock()`. After an interruption or a ServiceError,
    calling the function again continues.
    """
    waiting = unpublished_hits(ledger)
    if waiting:
        hit_type_id = _hit_type(client, ledger)
        lifetime = ledger.study().settings.lifetime
        log.debug("creating %d HITs of type %s", len(waiting), hit_type_id)
        for index, hit in enumerate(progress(waiting)):
            if index % COMMIT_BATCH_SIZE == 0:
                ledger.mark_sent(
                    (next_hit.number for next_hit in waiting[index : index + COMMIT_BATCH_SIZE]),
                    clock(),
                )
            _create(client, ledger, hit, hit_type_id, lifetime, clock)
    return len(waiting)


def _hit_type(client: Any, ledger: Ledger) -> str:
    """Return the study's HIT type; the service returns the same one for the same arguments."""
    study = ledger.study()
    if study.hit_type_id:
        return study.hit_type_id
    with translate_errors():
        hit_type_id: str = client.create_hit_type(**study.settings.hit_type())["HITTypeId"]
    ledger.set_hit_type(hit_type_id)
    return hit_type_id


def _create(
    client: Any, ledger: Ledger, hit: Hit, hit_type_id: str, lifetime: int, clock: Clock
) -> None:
    with translate_errors():
        try:
            response = client.create_hit_with_hit_type(
                HITTypeId=hit_type_id,
                Question=ledger.question(hit.number),
                MaxAssignments=hit.max_assignments,
                LifetimeInSeconds=lifetime,
                RequesterAnnotation=hit.annotation,
                UniqueRequestToken=hit.token,
            )["HIT"]
        except client.exceptions.RequestError as error:
            if error_code(error) != EXISTS:
                raise
            response = _find_created_hit(client, hit, str(error))
    ledger.mark_created(hit.number, response["HITId"], response["MaxAssignments"], clock())


def _find_created_hit(client: Any, hit: Hit, message: str) -> Mapping[str, Any]:
    """Return the HIT created by an earlier call with the same token whose response was lost."""
    for hit_id in dict.fromkeys(HIT_ID.findall(message)):
        try:
            existing_hit: Mapping[str, Any] = client.get_hit(HITId=hit_id)["HIT"]
        except client.exceptions.RequestError:
            continue  # not a HIT id, or a deleted HIT
        if existing_hit.get("RequesterAnnotation") != hit.annotation:
            continue
        if existing_hit["HITStatus"] != "Disposed":
            return existing_hit
    raise ServiceError(
        f"HIT {hit.number}: the service reports that it exists ({message}), but it was not found. "
        "If you deleted it, wait 24 hours, or set another seed, which makes it another study"
    )
