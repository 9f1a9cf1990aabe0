"""Withdrawal from a study: answers are deleted, payments stay."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, select, update

from mturk.service.rules import lifecycle
from mturk.service.rules.ends import WITHDRAWN
from mturk.service.store.schema import assignment, consent, hit, participation, session


def withdraw(connection: Connection, worker_id: str, study: str, now: float) -> int:
    """Delete a worker's answers in a study and return open assignments; return the number of answers.

    Submitted assignments keep their status, so that they can be paid. The consent is marked as withdrawn,
    answers to questions before the study are deleted, and the sessions in the study end.
    """
    numbers = connection.scalars(
        select(participation.c.number).where(
            participation.c.worker_id == worker_id, participation.c.study == study
        )
    ).all()
    in_study = assignment.c.participation.in_(numbers)
    return_open(connection, in_study, now)
    count = delete_answers(connection, in_study)
    is_current = consent.c.participation.in_(numbers) & consent.c.withdrawn.is_(None)
    connection.execute(update(consent).where(is_current).values(withdrawn=now))
    connection.execute(
        update(participation)
        .where(participation.c.number.in_(numbers))
        .values(outcome=WITHDRAWN, answers=None)
    )
    is_open = session.c.participation.in_(numbers) & session.c.ended.is_(None)
    connection.execute(update(session).where(is_open).values(ended=now))
    return count


def return_open(connection: Connection, condition: ColumnElement[bool], now: float) -> int:
    """Return the accepted assignments that fulfil a condition, for other workers; return their number."""
    is_open = assignment.c.status == "Accepted"
    rows = connection.execute(select(assignment).where(condition, is_open)).all()
    for row in rows:
        lifecycle.release(connection, row, "Returned", now)
    return len(rows)


def delete_answers(connection: Connection, condition: ColumnElement[bool]) -> int:
    """Delete the answers of the assignments that fulfil a condition; return their number."""
    answered = connection.execute(
        select(assignment.c.number, assignment.c.hit_id).where(
            condition, assignment.c.answer.is_not(None)
        )
    ).all()
    for row in answered:
        connection.execute(
            update(assignment).where(assignment.c.number == row.number).values(answer=None)
        )
        connection.execute(
            update(hit).where(hit.c.hit_id == row.hit_id).values(withdrawn=hit.c.withdrawn + 1)
        )
    return len(answered)
