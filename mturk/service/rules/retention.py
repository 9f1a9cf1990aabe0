"""Automatic erasure: workers whose time is over, sessions and request tokens that have expired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Connection, delete, exists, func, select

from mturk import limits
from mturk.service.clock import Clock
from mturk.service.rules import audit
from mturk.service.rules.ends import WITHDRAWN
from mturk.service.rules.person import ERASED_PREFIX, PendingPaymentError, erase
from mturk.service.store.database import Database
from mturk.service.store.schema import (
    assignment,
    consent,
    inquiry,
    participation,
    session,
    token,
    worker,
)

DAY_SECONDS = 86_400
SESSION_SECONDS = 30 * DAY_SECONDS
"""Lifetime of a session cookie since the last visit."""
MAX_ERASED = 200
"""Maximum number of workers that are erased per run."""
WITHDRAWN_SECONDS = 7 * DAY_SECONDS
"""Time after a withdrawal with submitted work, or the last message, in which code and messages stay."""


@dataclass(frozen=True, slots=True)
class _Activity:
    """What a worker has done in a study, or outside of studies."""

    worker_id: str
    study: str | None
    last: float
    """Time of the last entry, acceptance or submission."""
    is_open: bool = False
    """Whether an assignment is accepted, or submitted and not reviewed."""
    withdrawn: bool = False
    kept_until: float = 0.0
    """Time before which the worker is not erased."""


class Retention:
    """Erasure of workers after a period without activity.

    study_days: study -> days. other_days: days for work outside studies; None: never. A worker is erased when
    the time is over in all studies of the worker and outside, and nothing is accepted or waits for a review.
    Withdrawn participations delay it by `WITHDRAWN_SECONDS`, or not at all without submitted work and
    messages. Answers stay under a random id, except those of withdrawn participants, which are deleted.
    """

    def __init__(
        self, database: Database, clock: Clock, study_days: Mapping[str, int],
        other_days: int | None = None,
    ) -> None:  # fmt: skip
        self.database, self.clock = database, clock
        self.study_days, self.other_days = study_days, other_days
        self.is_complete = True
        """Whether the last run has erased all who were due, and others did not read deleted data."""

    def run(self) -> int:
        """Erase the workers whose time is over, at most `MAX_ERASED`; return their number.

        Each worker is erased in one transaction, so that others are not delayed. Ended sessions are deleted
        after a day, others after the lifetime of the cookie without work.
        """
        now = self.clock.now()
        with self.database.read() as connection:
            due = sorted(self._due(connection, now))[:MAX_ERASED]
        count = sum(self._erase(worker_id, now) for worker_id in due)
        with self.database.write() as connection:
            delete_expired_tokens(connection, now)
            _delete_old_sessions(connection, now)
        self.is_complete = self.database.truncate_log() and len(due) < MAX_ERASED
        return count

    def _erase(self, worker_id: str, now: float) -> bool:
        with self.database.write() as connection:
            due = self._due(connection, now, worker_id)  # the worker may have been active meanwhile
            if worker_id not in due:
                return False
            try:
                erase(connection, worker_id, now, actor=audit.SERVICE, keep_answers=due[worker_id])
            except PendingPaymentError:
                return False
        return True

    def _due(
        self, connection: Connection, now: float, worker_id: str | None = None
    ) -> dict[str, bool]:
        """Return worker -> whether answers are kept, for those whose time is over."""
        by_worker: dict[str, list[_Activity]] = {}
        for activity in _activities(connection, worker_id):
            by_worker.setdefault(activity.worker_id, []).append(activity)
        return {
            worker_id: not all(one.withdrawn for one in activities)
            for worker_id, activities in by_worker.items()
            if all(self._is_over(one, now) for one in activities)
        }

    def _is_over(self, activity: _Activity, now: float) -> bool:
        if activity.is_open or now < activity.kept_until:
            return False
        if activity.withdrawn:
            return True
        days = self.other_days if activity.study is None else self.study_days.get(activity.study)
        return days is not None and activity.last + days * DAY_SECONDS <= now


def delete_expired_tokens(connection: Connection, now: float) -> None:
    """Delete request tokens older than a day, as Mechanical Turk does."""
    connection.execute(delete(token).where(token.c.at <= now - limits.TOKEN_LIFETIME_SECONDS))


def _activities(connection: Connection, worker_id: str | None) -> Iterator[_Activity]:
    """Yield the activities of one worker, or of all that are not erased."""
    study, outcome = participation.c.study, participation.c.outcome
    name = participation.c.worker_id
    entries = (
        select(name, study, outcome, func.max(participation.c.joined))
        .where(_is_wanted(name, worker_id))
        .group_by(name, study, outcome)
    )
    for who, where, end, last in connection.execute(entries):
        yield _Activity(who, where, last, withdrawn=end == WITHDRAWN)
    name = assignment.c.worker_id
    last_work = func.max(func.coalesce(assignment.c.submitted, assignment.c.accepted))
    n_open = func.count().filter(assignment.c.status.in_(("Accepted", "Submitted")))
    work = (
        select(name, study, outcome, last_work, n_open)
        .outerjoin(participation, participation.c.number == assignment.c.participation)
        .where(_is_wanted(name, worker_id))
        .group_by(name, study, outcome)
    )
    for who, where, end, last, count in connection.execute(work):
        yield _Activity(who, where, last, is_open=count > 0, withdrawn=end == WITHDRAWN)
    yield from _withdrawals(connection, worker_id)
    is_participant = exists().where(participation.c.worker_id == worker.c.worker_id)
    others = select(worker.c.worker_id, worker.c.registered).where(
        _is_wanted(worker.c.worker_id, worker_id), ~is_participant
    )
    for who, registered in connection.execute(others):
        yield _Activity(who, None, registered)


def _withdrawals(connection: Connection, worker_id: str | None) -> Iterator[_Activity]:
    """Yield withdrawals with submitted work, and the last messages of withdrawn participants."""
    name = participation.c.worker_id
    is_withdrawn = (participation.c.outcome == WITHDRAWN) & _is_wanted(name, worker_id)
    has_submitted = exists().where(
        assignment.c.worker_id == name,
        assignment.c.participation == participation.c.number,
        assignment.c.submitted.is_not(None),
    )
    withdrawals = (
        select(name, func.max(consent.c.withdrawn))
        .join(consent, consent.c.participation == participation.c.number)
        .where(is_withdrawn, has_submitted, consent.c.withdrawn.is_not(None))
        .group_by(name)
    )
    messages = (
        select(name, func.max(func.coalesce(inquiry.c.answered, inquiry.c.at)))
        .join(inquiry, inquiry.c.worker_id == name)
        .where(is_withdrawn)
        .group_by(name)
    )
    for query in (withdrawals, messages):
        for who, last in connection.execute(query):
            yield _Activity(who, None, last, withdrawn=True, kept_until=last + WITHDRAWN_SECONDS)


def _is_wanted(column: Column[str], worker_id: str | None) -> ColumnElement[bool]:
    if worker_id is not None:
        return column == worker_id
    return column.not_like(f"{ERASED_PREFIX}%")


def _delete_old_sessions(connection: Connection, now: float) -> None:
    """Delete sessions that ended a day ago, or began before the lifetime of the cookie without work since."""
    has_worked = exists().where(
        assignment.c.worker_id == session.c.worker_id,
        assignment.c.accepted >= now - SESSION_SECONDS,
    )
    is_unused = (session.c.started < now - SESSION_SECONDS) & ~has_worked
    connection.execute(delete(session).where((session.c.ended < now - DAY_SECONDS) | is_unused))
