"""The audit log: who saw ids of workers, and who decided, paid or deleted what.

Entries never contain worker ids or answers. They are written in the transaction of the act.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, insert, select

from mturk.service.store.schema import audit

UNSIGNED = "unsigned"
"""Actor of API requests to a service without keys."""
PARTICIPANT = "participant"
"""Actor of acts of participants on the site."""
SERVICE = "service"
"""Actor of automatic acts."""


def record(
    connection: Connection, now: float, actor: str, action: str, subject: str, **details: Any
) -> None:
    """Add an entry: `subject` is the id of an assignment, HIT, qualification type or study, or empty."""
    values = {"at": now, "actor": actor, "action": action, "subject": subject, "details": details}
    connection.execute(insert(audit).values(**values))


def entries(connection: Connection) -> list[Row[Any]]:
    """Return the entries in the order in which they were written."""
    return list(connection.execute(select(audit).order_by(audit.c.number)))
