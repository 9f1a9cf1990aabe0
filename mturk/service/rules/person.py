"""All data about one person in the service: export and erasure.

A person is a worker id. Every table with the column `worker_id` belongs to the export and to the erasure, so
that new tables are included; consents belong to participations.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, insert, select, update

from mturk.service.rules import audit, lifecycle
from mturk.service.rules.ends import ERASED
from mturk.service.rules.erasure import delete_answers, return_open
from mturk.service.store.schema import (
    assignment,
    bonus,
    consent,
    consent_wording,
    metadata,
    participation,
    worker,
)

ERASED_PREFIX = "AERASED"
"""Prefix of the random ids that replace worker ids."""
KEPT_TABLES: Mapping[Table, Mapping[str, Any]] = {
    assignment: {"feedback": None},
    bonus: {"reason": ""},
    participation: {"panel_study": "", "panel_session": "", "browser": "", "answers": None},
}
"""Tables whose rows stay under a random id, for payments and counts -> the columns that are emptied."""


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
    connection: Connection, worker_id: str, now: float, *, actor: str, keep_answers: bool = False,
    approve: bool = False,
) -> dict[str, int]:  # fmt: skip
    """Remove a worker's identity and answers; return table -> number of deleted or changed rows.

    Rows of `KEPT_TABLES` stay under a random id; all others are deleted. With `keep_answers` answers stay
    under the random id too. Submitted assignments are approved with `approve`, else they raise
    PendingPaymentError.
    """
    lifecycle.apply_due_changes(connection, now)
    mine = assignment.c.worker_id == worker_id
    _decide_pending(connection, mine, now, actor, approve=approve)
    return_open(connection, mine, now)
    has_no_outcome = participation.c.outcome.is_(None)
    connection.execute(
        update(participation)
        .where(participation.c.worker_id == worker_id, has_no_outcome)
        .values(outcome=ERASED)
    )
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
    audit.record(connection, now, actor, "person erase", "", keep_answers=keep_answers)
    return counts


def _decide_pending(
    connection: Connection, mine: ColumnElement[bool], now: float, actor: str, *, approve: bool
) -> None:
    """Approve the submitted assignments, or raise PendingPaymentError."""
    query = select(assignment).where(mine, assignment.c.status == "Submitted")
    pending = connection.execute(query.order_by(assignment.c.number)).all()
    if pending and not approve:
        raise PendingPaymentError([row.assignment_id for row in pending])
    for row in pending:
        lifecycle.approve(connection, row, None, now)
        audit.record(connection, now, actor, "ApproveAssignment", row.assignment_id)


def _rows(connection: Connection, query: Any) -> list[dict[str, Any]]:
    return [dict(row._mapping) for row in connection.execute(query)]
