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

from sqlalchemy import Connection, Row, bindparam, exists, insert, select, update

from mturk.service.errors import does_not_exist, wrong_state
from mturk.service.rules import escrow
from mturk.service.store.schema import assignment, event, hit, new_id, notification
from mturk.service.store.statements import Statement

# Statements are built once: building one takes SQLAlchemy longer than executing it.
HIT_BY_ID = select(hit).where(hit.c.hit_id == bindparam("hit_id"))
ASSIGNMENT_BY_ID = select(assignment).where(
    assignment.c.assignment_id == bindparam("assignment_id")
)
HIT_STATE = [column for column in hit.c if column.name not in ("question", "annotation")]
COUNTS = ("pending", "submitted", "completed", "committed", "held")
CHANGE_COUNTS = Statement(
    update(hit)
    .where(hit.c.hit_id == bindparam("id"))
    .values({name: hit.c[name] + bindparam(f"{name}_change", type_=hit.c[name].type) for name in COUNTS})
    .returning(*HIT_STATE)
)  # fmt: skip
UNCHANGED = dict.fromkeys((f"{name}_change" for name in COUNTS), 0)
NEW_ASSIGNMENT = Statement(insert(assignment).inline())
CHANGE_STATUS = Statement(
    update(assignment).where(
        assignment.c.number == bindparam("of"), assignment.c.status == bindparam("before")
    )
)
HAS_DUE_CHANGES = Statement(
    select(
        exists().where(assignment.c.due <= bindparam("now"))
        | exists().where(hit.c.due <= bindparam("now"))
    )
)
SUBSCRIPTION = Statement(
    select(notification.c.specification).where(
        notification.c.hit_type_id == bindparam("hit_type_id"), notification.c.active.is_(True)
    )
)


def hit_row(connection: Connection, hit_id: str) -> Row[Any]:
    """Return the row of a HIT; raise HITDoesNotExist if the id is unknown."""
    row = connection.execute(HIT_BY_ID, {"hit_id": hit_id}).first()
    if row is None:
        raise does_not_exist("HIT", hit_id)
    return row


def assignment_row(connection: Connection, assignment_id: str) -> Row[Any]:
    """Return the row of an assignment; raise AssignmentDoesNotExist if the id is unknown."""
    row = connection.execute(ASSIGNMENT_BY_ID, {"assignment_id": assignment_id}).first()
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
    _refresh_hit(connection, hit_row(connection, hit_id), now)
    record_event(connection, "HITCreated", now, hit_type_id=values["hit_type_id"], hit_id=hit_id)
    return hit_id


def change_hit(connection: Connection, hit_id: str, now: float, **values: Any) -> None:
    """Change the maximum assignments, expiration or type of a HIT, and update its state and hold."""
    if "expiration" in values:
        values["due"] = values["expiration"]
    connection.execute(update(hit).where(hit.c.hit_id == hit_id).values(**values))
    _refresh_hit(connection, hit_row(connection, hit_id), now)


def accept(
    connection: Connection, row: Row[Any], kind: Row[Any], worker: str, now: float,
    participation: int | None = None, grace_seconds: float = 0.0,
) -> str:  # fmt: skip
    """Create an assignment of an Assignable HIT for a worker; return the assignment's id.

    It can be submitted until `grace_seconds` after the deadline.
    """
    assignment_id = new_id()
    NEW_ASSIGNMENT.change(
        connection,
        {
            "assignment_id": assignment_id, "hit_id": row.hit_id, "worker_id": worker, "status": "Accepted",
            "reward": kind.reward, "unit": row.unit, "auto_approval_delay": kind.auto_approval_delay,
            "accepted": now, "deadline": now + kind.duration,
            "due": now + kind.duration + grace_seconds,
            "participation": participation,
        },
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
    changed = _update_hit_counts(connection, row.hit_id, now, pending=-1, submitted=1)
    _record_assignment_event(connection, "AssignmentSubmitted", row, changed.hit_type_id, now)


def release(connection: Connection, row: Row[Any], status: str, now: float) -> None:
    """End an accepted assignment without an answer: `status` is Returned or Abandoned."""
    _update_assignment(connection, row, status, due=None)
    changed = _update_hit_counts(connection, row.hit_id, now, pending=-1, committed=-row.unit)
    _record_assignment_event(connection, f"Assignment{status}", row, changed.hit_type_id, now)


def approve(connection: Connection, row: Row[Any], feedback: str | None, now: float) -> None:
    """Approve and pay an assignment; for a rejected one, the released amount is put on hold again."""
    was_rejected = row.status == "Rejected"
    if was_rejected:
        escrow.hold(connection, row.unit)
    _update_assignment(connection, row, "Approved", approved=now, rejected=None, due=None,
         feedback=row.feedback if feedback is None else feedback)  # fmt: skip
    escrow.pay(connection, row.unit)
    changes = {"submitted": -1, "completed": 1, "committed": -row.unit, "held": -row.unit}
    changed = _update_hit_counts(connection, row.hit_id, now, **({} if was_rejected else changes))
    _record_assignment_event(connection, "AssignmentApproved", row, changed.hit_type_id, now)


def reject(connection: Connection, row: Row[Any], feedback: str, now: float) -> None:
    """Reject an assignment and release the amount on hold for it."""
    _update_assignment(connection, row, "Rejected", rejected=now, due=None, feedback=feedback)
    changed = _update_hit_counts(
        connection, row.hit_id, now, submitted=-1, completed=1, committed=-row.unit
    )
    _record_assignment_event(connection, "AssignmentRejected", row, changed.hit_type_id, now)


def _refresh_hit(
    connection: Connection, row: Row[Any], now: float, *, overdraw: bool = False
) -> None:
    """Update the state and amount on hold of a HIT, whose row is current, from its counts and the time.

    With `overdraw` the balance may become negative: actions of workers never fail for lack of funds.
    """
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
            .where(hit.c.hit_id == row.hit_id)
            .values(status=status, held=cost_on_hold, due=due, review_status=review)
        )
    if status == "Reviewable" != row.status and row.status != "Reviewing":
        record_event(
            connection, "HITReviewable", now, hit_type_id=row.hit_type_id, hit_id=row.hit_id
        )
    if due is None and row.due is not None:
        record_event(connection, "HITExpired", now, hit_type_id=row.hit_type_id, hit_id=row.hit_id)


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
    return bool(HAS_DUE_CHANGES.scalar(connection, {"now": now}))


def apply_due_changes(connection: Connection, now: float) -> None:
    """Apply due changes: abandoned assignments, automatic approvals, expired HITs.

    Each change is dated to the time at which it was due, not to the current time.
    """
    if not has_due_changes(connection, now):
        return
    overdue = select(assignment).where(assignment.c.due <= now).order_by(assignment.c.due)
    for row in connection.execute(overdue).all():
        if row.status == "Accepted":
            release(connection, row, "Abandoned", row.due)
        else:
            approve(connection, row, None, row.due)
    expired = select(hit.c.hit_id, hit.c.due).where(hit.c.due <= now)
    for hit_id, due in connection.execute(expired).all():
        _refresh_hit(connection, hit_row(connection, hit_id), due, overdraw=True)


def record_event(connection: Connection, kind: str, now: float, **ids: str | None) -> None:
    """Record an event if the requester subscribed to events of this kind; nothing is sent."""
    specification = SUBSCRIPTION.scalar(connection, {"hit_type_id": ids.get("hit_type_id")})
    if kind in (specification or {}).get("EventTypes", ()):
        connection.execute(
            insert(event).values(kind=kind, at=now, specification=specification, **ids)
        )


def _update_assignment(connection: Connection, row: Row[Any], status: str, **values: Any) -> None:
    """Update an assignment, unless its status has changed since it was read."""
    parameters = {"of": row.number, "before": row.status, "status": status, **values}
    if not CHANGE_STATUS.change(connection, parameters):
        raise wrong_state("Assignment", status, [row.status])


def _update_hit_counts(connection: Connection, hit_id: str, now: float, **changes: int) -> Row[Any]:
    """Change the counts of a HIT, and its state accordingly; return its row before the change of state."""
    values = UNCHANGED | {f"{name}_change": change for name, change in changes.items()}
    row: Row[Any] = CHANGE_COUNTS.first(connection, {"id": hit_id, **values})
    _refresh_hit(connection, row, now, overdraw=True)
    return row


def _record_assignment_event(
    connection: Connection, kind: str, row: Row[Any], hit_type_id: str, now: float
) -> None:
    record_event(connection, kind, now, hit_type_id=hit_type_id, hit_id=row.hit_id,
                 assignment_id=row.assignment_id)  # fmt: skip
