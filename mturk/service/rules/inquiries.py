"""Messages from workers to the requester, and replies to them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, insert, select, update

from mturk.service.clock import Clock
from mturk.service.rules import audit
from mturk.service.store.database import Database
from mturk.service.store.schema import inquiry, message

MAX_PER_HOUR = 5
"""Messages of one worker in an hour."""
MAX_SUBJECT_CHARACTERS, MAX_TEXT_CHARACTERS = 100, 5000
HOUR_SECONDS = 3600


class Inquiries:
    """Messages from workers to the requester; each method is one transaction."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database, self.clock = database, clock

    def send(self, worker_id: str, study: str | None, subject: str, text: str) -> bool:
        """Store a worker's message; return False if there are `MAX_PER_HOUR` of the last hour already.

        The same message is stored once per hour, so that sending a form twice has no effect.
        """
        now = self.clock.now()
        recent = select(inquiry.c.subject, inquiry.c.text).where(
            inquiry.c.worker_id == worker_id, inquiry.c.at > now - HOUR_SECONDS
        )
        with self.database.write() as connection:
            recent_messages = [tuple(row) for row in connection.execute(recent)]
            if (subject, text) in recent_messages:
                return True
            if len(recent_messages) >= MAX_PER_HOUR:
                return False
            connection.execute(
                insert(inquiry).values(
                    worker_id=worker_id, study=study, subject=subject, text=text, at=now
                )
            )
        return True

    def rows(self, *, only_open: bool = False, actor: str) -> list[Row[Any]]:
        """Return all messages to the requester, or those without a reply, oldest first."""
        query = select(inquiry).order_by(inquiry.c.number)
        if only_open:
            query = query.where(inquiry.c.answered.is_(None))
        with self.database.write() as connection:
            rows = list(connection.execute(query))
            n_workers = len({row.worker_id for row in rows})
            audit.record(connection, self.clock.now(), actor, "messages", "", workers=n_workers)
        return rows

    def reply(self, number: int, text: str, *, actor: str) -> bool:
        """Send a reply to the author of a message; return False if there is no such message."""
        now = self.clock.now()
        with self.database.write() as connection:
            row = connection.execute(select(inquiry).where(inquiry.c.number == number)).first()
            if row is None:
                return False
            values = {"worker_id": row.worker_id, "subject": f"Re: {row.subject}", "text": text}
            connection.execute(insert(message).values(**values, at=now))
            connection.execute(
                update(inquiry).where(inquiry.c.number == number).values(answered=now)
            )
            audit.record(connection, now, actor, "reply", row.study or "", number=number)
        return True
