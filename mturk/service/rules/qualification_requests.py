"""How workers come to qualifications: they ask, take a test, and are granted a value or wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, insert, select, update

from mturk.answers import to_xml
from mturk.service.rules import answer_key
from mturk.service.rules.eligibility import blocked
from mturk.service.store.schema import (
    new_id,
    qualification,
    qualification_request,
    qualification_type,
)

__all__ = ["NotPossibleError", "Requestable", "grant", "request", "requestable"]


class NotPossibleError(ValueError):
    """The worker cannot ask for this qualification (now)."""


@dataclass(frozen=True, slots=True)
class Requestable:
    """A qualification type for which workers can ask."""

    qualification_type_id: str
    name: str
    description: str
    test: str | None
    """QuestionForm XML, where there is a test."""
    value: int | None
    """The worker's, where it was granted."""
    pending: bool


def requestable(connection: Connection, worker_id: str) -> list[Requestable]:
    """Return the active types, and where a worker stands with each."""
    types = connection.execute(
        select(qualification_type)
        .where(qualification_type.c.status == "Active")
        .order_by(qualification_type.c.number)
    ).all()
    return [
        Requestable(
            one.qualification_type_id, one.name, one.description, one.test,
            _granted(connection, worker_id, one.qualification_type_id),
            _latest(connection, worker_id, one.qualification_type_id, "Pending") is not None,
        )
        for one in types
    ]  # fmt: skip


def request(
    connection: Connection,
    worker_id: str,
    type_id: str,
    fields: Sequence[tuple[str, str]],
    now: float,
) -> Literal["Granted", "Pending"]:
    """Ask for a qualification: granted at once where it is automatic or the test has an answer key."""
    kind = connection.execute(
        select(qualification_type).where(
            qualification_type.c.qualification_type_id == type_id,
            qualification_type.c.status == "Active",
        )
    ).first()
    if kind is None:
        raise NotPossibleError("There is no such qualification to ask for.")
    _check_may(connection, worker_id, kind, now)
    value = _value(kind, fields)
    _record(connection, worker_id, kind, fields, now, "Pending" if value is None else "Granted")
    if value is None:
        return "Pending"
    grant(connection, worker_id, type_id, value, now)
    return "Granted"


def grant(connection: Connection, worker_id: str, type_id: str, value: int, now: float) -> None:
    """Grant a qualification, or change its value."""
    values = {"value": value, "status": "Granted", "granted": now}
    done = connection.execute(
        update(qualification)
        .where(
            qualification.c.qualification_type_id == type_id,
            qualification.c.worker_id == worker_id,
        )
        .values(**values)
    )
    if not done.rowcount:
        key = {"qualification_type_id": type_id, "worker_id": worker_id}
        connection.execute(insert(qualification).values(**key, **values))


def _value(kind: Row[Any], fields: Sequence[tuple[str, str]]) -> int | None:
    """Return the value to grant at once; None where the requester decides."""
    if kind.test is None:
        automatic = 1 if kind.auto_granted_value is None else kind.auto_granted_value
        return automatic if kind.auto_granted else None
    return None if kind.answer_key is None else answer_key.score(kind.answer_key, fields)


def _check_may(connection: Connection, worker_id: str, kind: Row[Any], now: float) -> None:
    type_id = kind.qualification_type_id
    if blocked(connection, worker_id):
        raise NotPossibleError("The requester does not take requests from you.")
    if _latest(connection, worker_id, type_id, "Pending") is not None:
        raise NotPossibleError(
            "You have asked for this qualification already; the requester will decide."
        )
    before = _latest(connection, worker_id, type_id)
    if before is None:
        return
    if kind.retry_delay is None:
        raise NotPossibleError("You can ask for this qualification once only.")
    if now < before.at + kind.retry_delay:
        minutes = round((before.at + kind.retry_delay - now) / 60 + 0.5)
        raise NotPossibleError(f"You can ask for this qualification again in {minutes} minutes.")


def _granted(connection: Connection, worker_id: str, type_id: str) -> int | None:
    found: int | None = connection.scalar(
        select(qualification.c.value).where(
            qualification.c.qualification_type_id == type_id,
            qualification.c.worker_id == worker_id,
            qualification.c.status == "Granted",
        )
    )
    return found


def _latest(
    connection: Connection, worker_id: str, type_id: str, status: str | None = None
) -> Row[Any] | None:
    asked = qualification_request
    query = select(asked).where(
        asked.c.qualification_type_id == type_id, asked.c.worker_id == worker_id
    )
    if status is not None:
        query = query.where(asked.c.status == status)
    return connection.execute(query.order_by(asked.c.number.desc()).limit(1)).first()


def _record(
    connection: Connection, worker_id: str, kind: Row[Any], fields: Sequence[tuple[str, str]],
    now: float, status: str,
) -> None:  # fmt: skip
    connection.execute(
        insert(qualification_request).values(
            request_id=new_id(), qualification_type_id=kind.qualification_type_id, status=status,
            worker_id=worker_id, test=kind.test, answer=to_xml(fields) if kind.test else None, at=now,
        )
    )  # fmt: skip
