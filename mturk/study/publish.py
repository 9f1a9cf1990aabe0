"""From what a ledger means to HITs: each exactly once, whatever crashes, is lost or comes twice.

Three things see to it. Before anything is created, the service's own list is searched for our
annotations, so that HITs of a lost answer, a lost ledger or a forgotten token are found. Each HIT is sent
with a token of its own, so that the service refuses a second one for 24 hours. And the ledger is written
before the calls and after each.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mturk.limits import PAGE
from mturk.money import cost
from mturk.study.client import ServiceError, error_code, translate_errors
from mturk.study.ledger import Hit, Ledger

__all__ = [
    "AdoptedHits",
    "adopt_hits",
    "available_balance",
    "create_hits",
    "unpublished_cost",
    "unpublished_hits",
]

log = logging.getLogger(__name__)

EXISTS = "AWS.MechanicalTurk.HITAlreadyExists"
HIT_ID = re.compile(r"\b[A-Z0-9]{10,64}\b")
COMMIT_BATCH_SIZE = 25
"""HITs that are written down as sent together: each commit waits for the disk."""
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class AdoptedHits:
    """What the service had of a study already."""

    n_adopted: int
    duplicates: tuple[tuple[str, str], ...]
    """(annotation, HIT id) of every further HIT with an annotation that another has too."""


def unpublished_hits(ledger: Ledger) -> list[Hit]:
    """Return the HITs that are not known to exist."""
    return [hit for hit in ledger.hits() if hit.hit_id is None]


def unpublished_cost(ledger: Ledger) -> Decimal:
    """Return what the unpublished HITs cost with fees, in US dollars."""
    reward = ledger.study().settings.reward
    return sum(
        (cost(reward, hit.max_assignments) for hit in unpublished_hits(ledger)), Decimal("0.00")
    )


def available_balance(client: Any) -> Decimal:
    """Return the balance from which HITs are paid, in US dollars."""
    with translate_errors():
        return Decimal(client.get_account_balance()["AvailableBalance"])


def adopt_hits(client: Any, ledger: Ledger, *, clock: Clock = time.time) -> AdoptedHits:
    """Write down the HITs that the service has already; the oldest counts where it has several."""
    waiting = {planned.annotation: planned for planned in unpublished_hits(ledger)}
    if not waiting:
        return AdoptedHits(0, ())
    log.debug("looking at the service for %d HITs that are not known to exist", len(waiting))
    matches: dict[str, list[Mapping[str, Any]]] = {}
    with translate_errors():
        for hit in _list_hits(client):
            if hit.get("RequesterAnnotation") in waiting:
                matches.setdefault(hit["RequesterAnnotation"], []).append(hit)
    duplicates = []
    for annotation, matching_hits in matches.items():
        oldest, *extra_hits = sorted(matching_hits, key=lambda hit: hit["CreationTime"])
        number = waiting[annotation].number
        if not ledger.study().hit_type_id:
            ledger.set_hit_type(oldest["HITTypeId"])
        ledger.mark_created(number, oldest["HITId"], oldest["MaxAssignments"], clock())
        duplicates += [(annotation, extra_hit["HITId"]) for extra_hit in extra_hits]
    log.debug("%d of them are there, %d of these twice", len(matches), len(duplicates))
    return AdoptedHits(len(matches), tuple(duplicates))


def _list_hits(client: Any) -> Iterator[Mapping[str, Any]]:
    pages = client.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": PAGE.maximum})
    for page in pages:
        yield from page["HITs"]


def create_hits(
    client: Any,
    ledger: Ledger,
    *,
    clock: Clock = time.time,
    progress: Callable[[Sequence[Hit]], Iterable[Hit]] = iter,
) -> int:
    """Create every unpublished HIT and return how many; `adopt_hits` first, and hold `ledger.alone()`.

    Where it is interrupted or raises ServiceError, the same again goes on.
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
    """Return the study's HIT type; the service gives the same one for the same arguments."""
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
    """Return the HIT that an earlier call with the same token made and whose answer was lost."""
    for hit_id in dict.fromkeys(HIT_ID.findall(message)):
        try:
            existing_hit: Mapping[str, Any] = client.get_hit(HITId=hit_id)["HIT"]
        except client.exceptions.RequestError:
            continue  # no HIT's id, or one that was deleted
        if existing_hit.get("RequesterAnnotation") != hit.annotation:
            continue
        if existing_hit["HITStatus"] != "Disposed":
            return existing_hit
    raise ServiceError(
        f"HIT {hit.number}: the service says that it exists ({message}), but it is not there. "
        "If you deleted it, wait 24 hours, or set another seed: that is another study"
    )
