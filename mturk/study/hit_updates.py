"""Extending, closing and reopening of HITs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from bws.base.problems import InputError, Problem
from mturk.limits import LIFETIME, assignments_increase_problem
from mturk.money import fee
from mturk.study.actions import RefusedError, make_action
from mturk.study.client import error_code, translate_errors
from mturk.study.ledger import Action, Hit, Ledger

PAST = datetime(2015, 1, 1, tzinfo=UTC)
"""A time in the past, with which a HIT expires immediately."""
DELETED = tuple(f"AWS.MechanicalTurk.{code}" for code in ("HITDoesNotExist", "InvalidHITState"))
"""Error codes for deleted HITs; all others can be expired and extended."""


def select_hits(ledger: Ledger, hit_ids: Sequence[str]) -> list[Hit]:
    """Return the HITs with these ids, or all existing HITs if no ids are given.

    Raises InputError with all ids that are not in the ledger.
    """
    hits_by_id = {str(hit.hit_id): hit for hit in ledger.hits() if hit.hit_id}
    unknown = [hit_id for hit_id in hit_ids if hit_id not in hits_by_id]
    if unknown:
        raise InputError(
            Problem(hit_id, None, f"unknown HIT; expected a HIT in {ledger.path}")
            for hit_id in unknown
        )
    return (
        [hits_by_id[hit_id] for hit_id in dict.fromkeys(hit_ids)]
        if hit_ids
        else [*hits_by_id.values()]
    )


def extend_hit(client: Any, ledger: Ledger, hit: Hit, until: float) -> bool:
    """Offer a HIT until a time (seconds since 1970), even if it has expired; the call can be repeated.

    Returns False if the HIT was deleted at the service. Raises ServiceError.
    """
    exists = _expire_at(client, hit, datetime.fromtimestamp(until, UTC))
    if exists:
        ledger.mark_reopened(hit.number)
    return exists


def close_hit(client: Any, ledger: Ledger, hit: Hit) -> bool:
    """Stop offering a HIT; workers who have accepted it may still submit. See `extend_hit`."""
    exists = _expire_at(client, hit, PAST)
    ledger.mark_closed(hit.number)
    return exists


def _expire_at(client: Any, hit: Hit, at: datetime) -> bool:
    with translate_errors():
        try:
            client.update_expiration_for_hit(HITId=hit.hit_id, ExpireAt=at)
            # the call succeeds for deleted HITs too
            return bool(client.get_hit(HITId=hit.hit_id)["HIT"]["HITStatus"] != "Disposed")
        except client.exceptions.RequestError as error:
            if error_code(error) in DELETED:
                return False
            raise


def lifetime_problem(seconds: float) -> str | None:
    """Return why HITs cannot be offered for this many seconds from now, or None."""
    return LIFETIME.problem(round(seconds))


def plan_extensions(hits: Sequence[Hit], assignments: int) -> list[Action]:
    """Return the actions that extend HITs to a total number of assignments; larger HITs are unchanged.

    Raises InputError with all HITs that cannot be extended: a HIT created with fewer than ten assignments
    cannot get ten.
    """
    smaller_hits = [hit for hit in hits if hit.max_assignments < assignments]
    reasons = {
        hit.hit_id: assignments_increase_problem(
            hit.max_assignments, assignments - hit.max_assignments
        )
        for hit in smaller_hits
    }
    problems = [
        Problem(str(hit_id), None, message) for hit_id, message in reasons.items() if message
    ]
    if problems:
        raise InputError(problems)
    return [make_action("extend", str(hit.hit_id), str(assignments)) for hit in smaller_hits]


def extension_cost(hits: Sequence[Hit], actions: Sequence[Action], reward: Decimal) -> Decimal:
    """Return the cost of the additional assignments with fees, in US dollars."""
    current_sizes = {hit.hit_id: hit.max_assignments for hit in hits}
    total = Decimal("0.00")
    for action in actions:
        max_assignments = int(action.amount)
        total += (max_assignments - current_sizes[action.target]) * (
            reward + fee(reward, max_assignments)
        )
    return total


def add_assignments(client: Any, ledger: Ledger, action: Action) -> bool:
    """Extend a HIT to the action's number of assignments; return False if it has them. See `actions`."""
    numbers = {hit.hit_id: hit.number for hit in ledger.hits()}
    with translate_errors():
        try:
            extended = _add_assignments(client, action)
        except client.exceptions.RequestError as error:
            raise RefusedError(f"{error} ({error_code(error)})") from None
    ledger.set_max_assignments(numbers[action.target], int(action.amount))
    return extended


def _add_assignments(client: Any, action: Action) -> bool:
    max_assignments = int(action.amount)
    current = client.get_hit(HITId=action.target)["HIT"]["MaxAssignments"]
    if current >= max_assignments:
        return False
    token = make_action("extend", action.target, f"{current} to {max_assignments}").token
    try:
        client.create_additional_assignments_for_hit(
            HITId=action.target,
            NumberOfAdditionalAssignments=max_assignments - current,
            UniqueRequestToken=token,
        )
    except client.exceptions.RequestError:
        # an earlier call may have succeeded although its response was lost
        if client.get_hit(HITId=action.target)["HIT"]["MaxAssignments"] < max_assignments:
            raise
        return False
    return True
