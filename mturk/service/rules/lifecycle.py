"""State transitions of HITs and assignments; no other code changes their states.

HIT: Assignable (assignments available) -> Unassignable (all taken, some pending) -> Reviewable (none
pending, and none available or expired) <-> Reviewing -> Disposed; additional assignments or a later
expiration make it Assignable again. Assignment: Accepted -> Submitted -> Approved | Rejected, or Accepted
-> Returned | Abandoned, which make the assignment available again. Time-dependent transitions are applied
by `apply_due_changes`, within the transaction that reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from mturk.service.errors import does_not_exist, wrong_state
from mturk.service.rules import escrow
from mturk.service.store.schema import assignment, event, hit, new_id, notification

__all__ = [
    "accept",
    "apply_due_changes",
    "approve",
    "assignment_row",
    "change_hit",
    "create_hit",
    "has_due_changes",
    "hit_row",
    "record_event",
    "reject",
    "release",
    "submit",
]


def hit_row(connection: Connection, hit_id: str) -> Row[Any]:
    """Return the row of a HIT; raise HITDoesNotExist if the id is unknown."""
    row = connection.execute(select(hit).where(hit.c.hit_id == hit_id)).first()
    if row is None:
        raise does_not_exist("HIT", hit_id)
    return row


def assignment_row(connection: Connection, assignment_id: str) -> Row[Any]:
    """Return the row of an assignment; raise AssignmentDoesNotExist if the id is unknown."""
    query = select(assignment).where(assignment.c.assignment_id == assignment_id)
    row = connection.execute(query).first()
    if row is None:
        raise does_not_exist("Assignment", assignment_id)
    return row


def create_hit(connection: Connection, now: float, values: Mapping[str, Any]) -> str:
    """Create a HIT of a HIT type and put its cost on hold; return its id."""
    hit_id = new_id()
    connection.execute(
        insert(hit).values(
            hit_id=hit_id, created=now, status="Assignable", review_status="NotReviewed", pending=0,
            submitted=0, completed=0, committed=0, held=0, due=values["expiration"], **values,
        )
    )  # fmt: skip
    refresh_hit(connection, hit_id, now)
    record_event(connection, "HITCreated", now, hit_type_id=values["hit_type_id"], hit_id=hit_id)
    return hit_id


def change_hit(connection: Connection, hit_id: str, now: float, **values: Any) -> None:
    """Change the maximum assignments, expiration or type of a HIT, and update its state and hold."""
    if "expiration" in values:
        values["due"] = values["expiration"]
    connection.execute(update(hit).where(hit.c.hit_id == hit_id).values(**values))
    refresh_hit(connection, hit_id, now)


def accept(
    connection: Connection, row: Row[Any], kind: Row[Any], worker: str, now: float,
    participation: int | None = None,
) -> str:  # fmt: skip
    """Create an assignment of an Assignable HIT for a worker; return the assignment's id."""
    assignment_id = new_id()
    connection.execute(
        insert(assignment).values(
            assignment_id=assignment_id, hit_id=row.hit_id, worker_id=worker, status="Accepted",
            reward=kind.reward, unit=row.unit, auto_approval_delay=kind.auto_approval_delay,
            accepted=now, deadline=now + kind.duration, due=now + kind.duration,
            participation=participation,
        )
    )  # fmt: skip
    _update_hit_counts(connection, row.hit_id, now, pending=1, committed=row.unit)
    record_event(connection, "AssignmentAccepted", now, assignment_id=assignment_id,
                 hit_id=row.hit_id, hit_type_id=row.hit_type_id)  # fmt: skip
    return assignment_id


def submit(connection: Connection, row: Row[Any], answer: str, now: float) -> None:
    """Submit the answer of an accepted assignment."""
    approval = now + row.auto_approval_delay
    _update_assignment(connection, row, "Submitted", submitted=now, answer=answer, auto_approval=approval,
         due=approval)  # fmt: skip
    _update_hit_counts(connection, row.hit_id, now, pending=-1, submitted=1)
    _record_assignment_event(connection, "AssignmentSubmitted", row, now)


def release(connection: Connection, row: Row[Any], status: str, now: float) -> None:
    """End an accepted assignment without an answer: `status` is Returned or Abandoned."""
    _update_assignment(connection, row, status, due=None)
    _update_hit_counts(connection, row.hit_id, now, pending=-1, committed=-row.unit)
    _record_assignment_event(connection, f"Assignment{status}", row, now)


def approve(connection: Connection, row: Row[Any], feedback: str | None, now: float) -> None:
    """Approve and pay an assignment; for a rejected one, the released amount is put on hold again."""
    was_rejected = row.status == "Rejected"
    if was_rejected:
        escrow.hold(connection, row.unit)
    _update_assignment(connection, row, "Approved", approved=now, rejected=None, due=None,
         feedback=row.feedback if feedback is None else feedback)  # fmt: skip
    escrow.pay(connection, row.unit)
    if not was_rejected:
        _update_hit_counts(connection, row.hit_id, now, submitted=-1, completed=1, committed=-row.unit,
               held=-row.unit)  # fmt: skip
    _record_assignment_event(connection, "AssignmentApproved", row, now)


def reject(connection: Connection, row: Row[Any], feedback: str, now: float) -> None:
    """Reject an assignment and release the amount on hold for it."""
    _update_assignment(connection, row, "Rejected", rejected=now, due=None, feedback=feedback)
    _update_hit_counts(connection, row.hit_id, now, submitted=-1, completed=1, committed=-row.unit)
    _record_assignment_event(connection, "AssignmentRejected", row, now)


def refresh_hit(connection: Connection, hit_id: str, now: float, *, overdraw: bool = False) -> None:
    """Update a HIT's state and amount on hold from its counts and the time.

    With `overdraw` the balance may become negative: actions of workers never fail for lack of funds.
    """
    row = hit_row(connection, hit_id)
    if row.status == "Disposed":
        return
    status = _status(row, now)
    n_available = _available_assignments(row) if status == "Assignable" else 0
    cost_on_hold = n_available * row.unit + row.committed
    escrow.hold(connection, cost_on_hold - row.held, overdraw=overdraw)
    due = row.due if row.expiration > now else None
    review = row.review_status if status == "Reviewing" else "NotReviewed"
    if (status, cost_on_hold, due) != (row.status, row.held, row.due):
        connection.execute(
            update(hit)
            .where(hit.c.hit_id == hit_id)
            .values(status=status, held=cost_on_hold, due=due, review_status=review)
        )
    if status == "Reviewable" != row.status and row.status != "Reviewing":
        record_event(connection, "HITReviewable", now, hit_type_id=row.hit_type_id, hit_id=hit_id)
    if due is None and row.due is not None:
        record_event(connection, "HITExpired", now, hit_type_id=row.hit_type_id, hit_id=hit_id)


def _status(row: Row[Any], now: float) -> str:
    if _available_assignments(row) > 0 and row.expiration > now:
        return "Assignable"
    if row.pending:
        return "Unassignable"
    return "Reviewing" if row.status == "Reviewing" else "Reviewable"


def _available_assignments(row: Row[Any]) -> int:
    return int(row.max_assignments - row.pending - row.submitted - row.completed)


def has_due_changes(connection: Connection, now: float) -> bool:
    """Return whether `apply_due_changes` would change anything."""
    overdue = select(assignment.c.number).where(assignment.c.due <= now).limit(1)
    expired = select(hit.c.number).where(hit.c.due <= now).limit(1)
    return connection.scalar(overdue) is not None or connection.scalar(expired) is not None


def apply_due_changes(connection: Connection, now: float) -> None:
    """Apply due changes: abandoned assignments, automatic approvals, expired HITs.

    Each change is dated to the time at which it was due, not to the current time.
    """
    overdue = select(assignment).where(assignment.c.due <= now).order_by(assignment.c.due)
    for row in connection.execute(overdue).all():
        if row.status == "Accepted":
            release(connection, row, "Abandoned", row.due)
        else:
            approve(connection, row, None, row.due)
    for expired in connection.execute(
        select(hit.c.hit_id, hit.c.due).where(hit.c.due <= now)
    ).all():
        refresh_hit(connection, expired.hit_id, expired.due, overdraw=True)


def record_event(connection: Connection, kind: str, now: float, **ids: str | None) -> None:
    """Record an event if the requester subscribed to events of this kind; nothing is sent."""
    hit_type_id = ids.get("hit_type_id")
    subscription = connection.execute(
        select(notification).where(
            notification.c.hit_type_id == hit_type_id, notification.c.active.is_(True)
        )
    ).first()
    if subscription is None or kind not in (subscription.specification or {}).get("EventTypes", ()):
        return
    connection.execute(
        insert(event).values(kind=kind, at=now, specification=subscription.specification, **ids)
    )


def _update_assignment(connection: Connection, row: Row[Any], status: str, **values: Any) -> None:
    """Update an assignment, unless its status has changed since it was read."""
    result = connection.execute(
        update(assignment)
        .where(assignment.c.number == row.number, assignment.c.status == row.status)
        .values(status=status, **values)
    )
    if not result.rowcount:
        raise wrong_state("Assignment", status, [row.status])


def _update_hit_counts(connection: Connection, hit_id: str, now: float, **changes: int) -> None:
    values = {name: hit.c[name] + change for name, change in changes.items()}
    connection.execute(update(hit).where(hit.c.hit_id == hit_id).values(**values))
    refresh_hit(connection, hit_id, now, overdraw=True)


def _record_assignment_event(connection: Connection, kind: str, row: Row[Any], now: float) -> None:
    type_query = select(hit.c.hit_type_id).join(
        notification, notification.c.hit_type_id == hit.c.hit_type_id
    )
    hit_type_id = connection.scalar(type_query.where(hit.c.hit_id == row.hit_id))
    if hit_type_id is not None:
        record_event(connection, kind, now, hit_type_id=hit_type_id, hit_id=row.hit_id,
                     assignment_id=row.assignment_id)  # fmt: skip
