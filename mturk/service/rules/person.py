"""All data about one person in the service: export, erasure, and automatic erasure after a period.

A person is a worker id. Every table with the column `worker_id` belongs to the export and to the erasure, so
that new tables are included; consents belong to participations.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table, and_, delete, func, insert, select, update

from mturk.service.rules import lifecycle
from mturk.service.rules.erasure import WITHDRAWN, delete_answers
from mturk.service.store.schema import (
    assignment,
    bonus,
    consent,
    consent_wording,
    metadata,
    participation,
    session,
    worker,
)

__all__ = [
    "KEPT_TABLES",
    "PendingPaymentError",
    "erase",
    "erase_expired",
    "export",
    "personal_tables",
]

ERASED_PREFIX = "AERASED"
"""Prefix of the random ids that replace worker ids."""
KEPT_TABLES: Mapping[Table, Mapping[str, Any]] = {
    assignment: {"feedback": None},
    bonus: {"reason": ""},
    participation: {"panel_study": "", "panel_session": "", "browser": "", "answers": None},
}
"""Tables whose rows stay under a random id, for payments and counts -> the columns that are emptied."""
DAY_SECONDS = 86_400


class PendingPaymentError(ValueError):
    """Submitted assignments of the person are not reviewed yet; `assignment_ids` are theirs."""

    def __init__(self, assignment_ids: list[str]) -> None:
        super().__init__(f"{len(assignment_ids)} submitted assignments are not reviewed")
        self.assignment_ids = assignment_ids


def personal_tables() -> list[Table]:
    """Return the tables with data about workers."""
    return [table for table in metadata.sorted_tables if "worker_id" in table.c]


def export(connection: Connection, worker_id: str) -> dict[str, list[dict[str, Any]]]:
    """Return table -> rows about a worker, all empty for an unknown one."""
    tables = {
        table.name: _rows(connection, select(table).where(table.c.worker_id == worker_id))
        for table in personal_tables()
    }
    consents = (
        select(consent, consent_wording.c.text)
        .join(participation, participation.c.number == consent.c.participation)
        .join(consent_wording, consent_wording.c.digest == consent.c.digest)
        .where(participation.c.worker_id == worker_id)
    )
    return tables | {"consent": _rows(connection, consents)}


def erase(
    connection: Connection, worker_id: str, now: float, *, keep_answers: bool = False
) -> dict[str, int]:
    """Remove a worker's identity and answers; return table -> number of deleted or changed rows.

    Rows of `KEPT_TABLES` stay under a random id; all others are deleted. With `keep_answers` answers stay
    under the random id too. Raises PendingPaymentError while submitted assignments are not reviewed.
    """
    mine = assignment.c.worker_id == worker_id
    pending = select(assignment.c.assignment_id).where(mine, assignment.c.status == "Submitted")
    if waiting := list(connection.scalars(pending)):
        raise PendingPaymentError(waiting)
    for row in connection.execute(
        select(assignment).where(mine, assignment.c.status == "Accepted")
    ).all():
        lifecycle.release(connection, row, "Returned", now)
    if not keep_answers:
        delete_answers(connection, mine)
    new_id = ERASED_PREFIX + base64.b32encode(secrets.token_bytes(10)).decode()
    connection.execute(insert(worker).values(worker_id=new_id, registered=0.0))
    counts = {}
    for table in reversed(personal_tables()):
        is_theirs = table.c.worker_id == worker_id
        values = KEPT_TABLES.get(table)
        statement = (
            delete(table).where(is_theirs)
            if values is None
            else update(table).where(is_theirs).values(worker_id=new_id, **values)
        )
        counts[table.name] = connection.execute(statement).rowcount
    return counts


def erase_expired(connection: Connection, retention_days: Mapping[str, int], now: float) -> int:
    """Erase the identity of participants whose time is over; return their number.

    retention_days: study -> days after the last activity. A participant of several studies is erased when the
    time is over in all of them, never if a study has none. Participants who have withdrawn from all their
    studies are erased as soon as their assignments are reviewed. Ended sessions are deleted.
    """
    connection.execute(delete(session).where(session.c.ended < now - DAY_SECONDS))
    last_activity = func.max(func.coalesce(assignment.c.submitted, participation.c.joined))
    is_open = assignment.c.status.in_(("Accepted", "Submitted"))
    rows = connection.execute(
        select(
            participation.c.worker_id,
            participation.c.study,
            participation.c.outcome,
            last_activity.label("last"),
            func.count(assignment.c.number).filter(is_open).label("n_open"),
        )
        .outerjoin(
            assignment,
            and_(
                assignment.c.participation == participation.c.number,
                assignment.c.worker_id == participation.c.worker_id,
            ),
        )
        .where(participation.c.worker_id.not_like(f"{ERASED_PREFIX}%"))
        .group_by(participation.c.worker_id, participation.c.study, participation.c.outcome)
    ).all()
    keeps: set[str] = set()
    withdrew: dict[str, bool] = {}
    for row in rows:
        has_withdrawn = row.outcome == WITHDRAWN
        days = retention_days.get(row.study)
        is_over = has_withdrawn or (days is not None and row.last + days * DAY_SECONDS <= now)
        if row.n_open or not is_over:
            keeps.add(row.worker_id)
        withdrew[row.worker_id] = withdrew.get(row.worker_id, True) and has_withdrawn
    count = 0
    for worker_id in sorted(withdrew.keys() - keeps):
        try:
            erase(connection, worker_id, now, keep_answers=not withdrew[worker_id])
        except PendingPaymentError:  # assignments outside studies
            continue
        count += 1
    return count


def _rows(connection: Connection, query: Any) -> list[dict[str, Any]]:
    return [dict(row._mapping) for row in connection.execute(query)]
