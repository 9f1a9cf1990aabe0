"""Qualification requests of workers, with or without a test, granted automatically or by the requester."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, insert, select, update

from mturk.answers import to_xml
from mturk.question_xml import read_question, selection_questions
from mturk.service.rules import answer_key
from mturk.service.rules.eligibility import is_blocked
from mturk.service.store.schema import (
    new_id,
    qualification,
    qualification_request,
    qualification_type,
)


class NotPossibleError(ValueError):
    """The worker cannot currently request this qualification."""


@dataclass(frozen=True, slots=True)
class RequestableQualification:
    """A qualification type that workers can request."""

    qualification_type_id: str
    name: str
    description: str
    test: str | None
    """QuestionForm XML; None without a test."""
    value: int | None
    """The worker's value; None if not granted."""
    pending: bool


def list_requestable(connection: Connection, worker_id: str) -> list[RequestableQualification]:
    """Return the active types with the worker's value or pending request."""
    types = connection.execute(
        select(qualification_type)
        .where(qualification_type.c.status == "Active")
        .order_by(qualification_type.c.number)
    ).all()
    return [
        RequestableQualification(
            row.qualification_type_id, row.name, row.description, row.test,
            _granted_value(connection, worker_id, row.qualification_type_id),
            _latest_request(connection, worker_id, row.qualification_type_id, "Pending") is not None,
        )
        for row in types
    ]  # fmt: skip


def request(
    connection: Connection,
    worker_id: str,
    type_id: str,
    fields: Sequence[tuple[str, str]],
    now: float,
) -> Literal["Granted", "Pending"]:
    """Request a qualification; granted immediately if automatic or if the test has an answer key."""
    kind = connection.execute(
        select(qualification_type).where(
            qualification_type.c.qualification_type_id == type_id,
            qualification_type.c.status == "Active",
        )
    ).first()
    if kind is None:
        raise NotPossibleError("There is no such qualification.")
    _check_requestable(connection, worker_id, kind, now)
    value = _automatic_value(kind, fields)
    _record_request(
        connection, worker_id, kind, fields, now, "Pending" if value is None else "Granted"
    )
    if value is None:
        return "Pending"
    grant(connection, worker_id, type_id, value, now)
    return "Granted"


def grant(connection: Connection, worker_id: str, type_id: str, value: int, now: float) -> None:
    """Grant a qualification, or change its value."""
    values = {"value": value, "status": "Granted", "granted": now}
    result = connection.execute(
        update(qualification)
        .where(
            qualification.c.qualification_type_id == type_id,
            qualification.c.worker_id == worker_id,
        )
        .values(**values)
    )
    if not result.rowcount:
        key = {"qualification_type_id": type_id, "worker_id": worker_id}
        connection.execute(insert(qualification).values(**key, **values))


def _automatic_value(kind: Row[Any], fields: Sequence[tuple[str, str]]) -> int | None:
    """Return the value to grant immediately; None if the requester decides."""
    if kind.test is None:
        automatic = 1 if kind.auto_granted_value is None else kind.auto_granted_value
        return automatic if kind.auto_granted else None
    return None if kind.answer_key is None else answer_key.score(kind.answer_key, fields)


def _check_requestable(connection: Connection, worker_id: str, kind: Row[Any], now: float) -> None:
    type_id = kind.qualification_type_id
    if is_blocked(connection, worker_id):
        raise NotPossibleError("The requester does not accept requests from you.")
    if _latest_request(connection, worker_id, type_id, "Pending") is not None:
        raise NotPossibleError(
            "You have already requested this qualification; the decision is pending."
        )
    previous = _latest_request(connection, worker_id, type_id)
    if previous is None:
        return
    if kind.retry_delay is None:
        raise NotPossibleError("This qualification can be requested only once.")
    if now < previous.at + kind.retry_delay:
        minutes = round((previous.at + kind.retry_delay - now) / 60 + 0.5)
        raise NotPossibleError(f"You can request this qualification again in {minutes} minutes.")


def _granted_value(connection: Connection, worker_id: str, type_id: str) -> int | None:
    value: int | None = connection.scalar(
        select(qualification.c.value).where(
            qualification.c.qualification_type_id == type_id,
            qualification.c.worker_id == worker_id,
            qualification.c.status == "Granted",
        )
    )
    return value


def _latest_request(
    connection: Connection, worker_id: str, type_id: str, status: str | None = None
) -> Row[Any] | None:
    requests = qualification_request
    query = select(requests).where(
        requests.c.qualification_type_id == type_id, requests.c.worker_id == worker_id
    )
    if status is not None:
        query = query.where(requests.c.status == status)
    return connection.execute(query.order_by(requests.c.number.desc()).limit(1)).first()


def _record_request(
    connection: Connection, worker_id: str, kind: Row[Any], fields: Sequence[tuple[str, str]],
    now: float, status: str,
) -> None:  # fmt: skip
    connection.execute(
        insert(qualification_request).values(
            request_id=new_id(), qualification_type_id=kind.qualification_type_id, status=status,
            worker_id=worker_id, test=kind.test, answer=_answer(kind.test, fields), at=now,
        )
    )  # fmt: skip


def _answer(test: str | None, fields: Sequence[tuple[str, str]]) -> str | None:
    """Return the answers to a test as XML; None without a test."""
    return None if test is None else to_xml(fields, selection_questions(read_question(test)))
