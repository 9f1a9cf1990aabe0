"""How HITs and assignments go from state to state: the only code that changes them.

HIT: Assignable (places left) -> Unassignable (all taken, some still at work) -> Reviewable (nobody at
work and no places, or expired) <-> Reviewing -> Disposed; a further place or a later expiration makes it
Assignable again. Assignment: Accepted -> Submitted -> Approved | Rejected, or Accepted -> Returned |
Abandoned, which give the place back. Changes that time makes are made by `settle`, within the
transaction that looks.
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
    "approve",
    "assignment_row",
    "change_hit",
    "create_hit",
    "hit_row",
    "leave",
    "record_event",
    "reject",
    "settle",
    "something_due",
    "submit",
]


def hit_row(connection: Connection, hit_id: str) -> Row[Any]:
    """Return a HIT; HITDoesNotExist where there is none."""
    found = connection.execute(select(hit).where(hit.c.hit_id == hit_id)).first()
    if found is None:
        raise does_not_exist("HIT", hit_id)
    return found


def assignment_row(connection: Connection, assignment_id: str) -> Row[Any]:
    """Return an assignment; AssignmentDoesNotExist where there is none."""
    query = select(assignment).where(assignment.c.assignment_id == assignment_id)
    found = connection.execute(query).first()
    if found is None:
        raise does_not_exist("Assignment", assignment_id)
    return found


def create_hit(connection: Connection, now: float, values: Mapping[str, Any]) -> str:
    """Make a HIT of a HIT type and put its cost on hold; return its id."""
    hit_id = new_id()
    connection.execute(
        insert(hit).values(
            hit_id=hit_id, created=now, status="Assignable", review_status="NotReviewed", pending=0,
            submitted=0, completed=0, committed=0, held=0, due=values["expiration"], **values,
        )
    )  # fmt: skip
    refresh(connection, hit_id, now)
    record_event(connection, "HITCreated", now, hit_type_id=values["hit_type_id"], hit_id=hit_id)
    return hit_id


def change_hit(connection: Connection, hit_id: str, now: float, **values: Any) -> None:
    """Change a HIT's places, expiration or type, and what follows from it."""
    if "expiration" in values:
        values["due"] = values["expiration"]
    connection.execute(update(hit).where(hit.c.hit_id == hit_id).values(**values))
    refresh(connection, hit_id, now)


def accept(connection: Connection, taken: Row[Any], kind: Row[Any], worker: str, now: float) -> str:
    """Give a worker a place of the HIT `taken`, which must have one; return the assignment's id."""
    assignment_id = new_id()
    connection.execute(
        insert(assignment).values(
            assignment_id=assignment_id, hit_id=taken.hit_id, worker_id=worker, status="Accepted",
            reward=kind.reward, unit=taken.unit, auto_approval_delay=kind.auto_approval_delay,
            accepted=now, deadline=now + kind.duration, due=now + kind.duration,
        )
    )  # fmt: skip
    _count(connection, taken.hit_id, now, pending=1, committed=taken.unit)
    record_event(connection, "AssignmentAccepted", now, assignment_id=assignment_id,
                 hit_id=taken.hit_id, hit_type_id=taken.hit_type_id)  # fmt: skip
    return assignment_id


def submit(connection: Connection, work: Row[Any], answer: str, now: float) -> None:
    """Take the answer of an accepted assignment."""
    approval = now + work.auto_approval_delay
    _set(connection, work, "Submitted", submitted=now, answer=answer, auto_approval=approval,
         due=approval)  # fmt: skip
    _count(connection, work.hit_id, now, pending=-1, submitted=1)
    _tell(connection, "AssignmentSubmitted", work, now)


def leave(connection: Connection, work: Row[Any], status: str, now: float) -> None:
    """Give an accepted assignment's place back: `status` is Returned or Abandoned."""
    _set(connection, work, status, due=None)
    _count(connection, work.hit_id, now, pending=-1, committed=-work.unit)
    _tell(connection, f"Assignment{status}", work, now)


def approve(connection: Connection, work: Row[Any], feedback: str | None, now: float) -> None:
    """Approve and pay; a rejected assignment's money was freed and is taken again."""
    rejected = work.status == "Rejected"
    if rejected:
        escrow.hold(connection, work.unit)
    _set(connection, work, "Approved", approved=now, rejected=None, due=None,
         feedback=work.feedback if feedback is None else feedback)  # fmt: skip
    escrow.pay(connection, work.unit)
    if not rejected:
        _count(connection, work.hit_id, now, submitted=-1, completed=1, committed=-work.unit,
               held=-work.unit)  # fmt: skip
    _tell(connection, "AssignmentApproved", work, now)


def reject(connection: Connection, work: Row[Any], feedback: str, now: float) -> None:
    """Reject; what the assignment held is free again."""
    _set(connection, work, "Rejected", rejected=now, due=None, feedback=feedback)
    _count(connection, work.hit_id, now, submitted=-1, completed=1, committed=-work.unit)
    _tell(connection, "AssignmentRejected", work, now)


def refresh(connection: Connection, hit_id: str, now: float, *, overdraw: bool = False) -> None:
    """Set a HIT's state, and what it holds of the balance, from its counts and the time.

    With `overdraw` the balance may become negative: what workers do is never refused for money.
    """
    row = hit_row(connection, hit_id)
    if row.status == "Disposed":
        return
    status = _status(row, now)
    places = _places(row) if status == "Assignable" else 0
    held = places * row.unit + row.committed
    escrow.hold(connection, held - row.held, overdraw=overdraw)
    due = row.due if row.expiration > now else None
    review = row.review_status if status == "Reviewing" else "NotReviewed"
    if (status, held, due) != (row.status, row.held, row.due):
        connection.execute(
            update(hit)
            .where(hit.c.hit_id == hit_id)
            .values(status=status, held=held, due=due, review_status=review)
        )
    if status == "Reviewable" != row.status and row.status != "Reviewing":
        record_event(connection, "HITReviewable", now, hit_type_id=row.hit_type_id, hit_id=hit_id)
    if due is None and row.due is not None:
        record_event(connection, "HITExpired", now, hit_type_id=row.hit_type_id, hit_id=hit_id)


def _status(row: Row[Any], now: float) -> str:
    if _places(row) > 0 and row.expiration > now:
        return "Assignable"
    if row.pending:
        return "Unassignable"
    return "Reviewing" if row.status == "Reviewing" else "Reviewable"


def _places(row: Row[Any]) -> int:
    return int(row.max_assignments - row.pending - row.submitted - row.completed)


def something_due(connection: Connection, now: float) -> bool:
    """Tell whether `settle` would change anything."""
    late = select(assignment.c.number).where(assignment.c.due <= now).limit(1)
    over = select(hit.c.number).where(hit.c.due <= now).limit(1)
    return connection.scalar(late) is not None or connection.scalar(over) is not None


def settle(connection: Connection, now: float) -> None:
    """Make the changes that are due: abandoned work, automatic approvals, expired HITs.

    Each counts from the moment at which it was due, not from the one at which somebody looked.
    """
    late = select(assignment).where(assignment.c.due <= now).order_by(assignment.c.due)
    for work in connection.execute(late).all():
        if work.status == "Accepted":
            leave(connection, work, "Abandoned", work.due)
        else:
            approve(connection, work, None, work.due)
    for over in connection.execute(select(hit.c.hit_id, hit.c.due).where(hit.c.due <= now)).all():
        refresh(connection, over.hit_id, over.due, overdraw=True)


def record_event(connection: Connection, kind: str, now: float, **ids: str | None) -> None:
    """Record an event where the requester asked for events of this kind; nothing is sent anywhere."""
    hit_type_id = ids.get("hit_type_id")
    wanted = connection.execute(
        select(notification).where(
            notification.c.hit_type_id == hit_type_id, notification.c.active.is_(True)
        )
    ).first()
    if wanted is None or kind not in (wanted.specification or {}).get("EventTypes", ()):
        return
    connection.execute(
        insert(event).values(kind=kind, at=now, specification=wanted.specification, **ids)
    )


def _set(connection: Connection, work: Row[Any], status: str, **values: Any) -> None:
    """Change an assignment that nobody changed since it was read."""
    done = connection.execute(
        update(assignment)
        .where(assignment.c.number == work.number, assignment.c.status == work.status)
        .values(status=status, **values)
    )
    if not done.rowcount:
        raise wrong_state("Assignment", status, [work.status])


def _count(connection: Connection, hit_id: str, now: float, **changes: int) -> None:
    moved = {name: hit.c[name] + change for name, change in changes.items()}
    connection.execute(update(hit).where(hit.c.hit_id == hit_id).values(**moved))
    refresh(connection, hit_id, now, overdraw=True)


def _tell(connection: Connection, kind: str, work: Row[Any], now: float) -> None:
    wanted = select(hit.c.hit_type_id).join(
        notification, notification.c.hit_type_id == hit.c.hit_type_id
    )
    hit_type_id = connection.scalar(wanted.where(hit.c.hit_id == work.hit_id))
    if hit_type_id is not None:
        record_event(connection, kind, now, hit_type_id=hit_type_id, hit_id=work.hit_id,
                     assignment_id=work.assignment_id)  # fmt: skip
