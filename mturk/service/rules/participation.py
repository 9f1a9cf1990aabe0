"""Participation in studies: entry, sessions, release and revoked links."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from mturk.service.clock import Clock
from mturk.service.rules import audit
from mturk.service.rules.admission import (
    Entry,
    StudyRules,
    check_spelling,
    digest,
    find_participation,
    is_participation,
)
from mturk.service.rules.ends import FINISHED, NO_CONSENT, TIMED_OUT
from mturk.service.rules.erasure import return_open, withdraw
from mturk.service.rules.work import WorkError, register_worker
from mturk.service.store.database import Database
from mturk.service.store.schema import (
    assignment,
    consent,
    consent_wording,
    participation,
    revoked_link,
    session,
)
from mturk.service.store.statements import Statement

OPEN_SESSION = Statement(
    select(session.c.started).where(
        session.c.session_id == bindparam("session_id"), session.c.ended.is_(None)
    )
)
ENTRY = Statement(
    select(
        participation.c.worker_id,
        participation.c.study,
        participation.c.panel_study,
        participation.c.panel_session,
    ).where(participation.c.number == bindparam("number"))
)
LAST_CONSENT = Statement(
    select(consent.c.version, consent.c.digest)
    .where(consent.c.participation == bindparam("participation"), consent.c.withdrawn.is_(None))
    .order_by(consent.c.number.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class Consent:
    """The wording to which a participant consents."""

    version: str
    """Version of the study's information."""
    language: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the wording."""
        return digest(self.text)


@dataclass(frozen=True, slots=True)
class StudyProgress:
    """What a participant has done in a study."""

    outcome: str | None
    """Outcome of the current session; None while it continues."""
    is_completed: bool
    """Whether the completion code was shown in the current session."""
    submitted: int
    """Submitted tasks in all sessions."""
    submitted_now: int
    """Submitted tasks since another session was completed last."""
    is_late: bool
    """Whether the session continues although its time is over."""


@dataclass(frozen=True, slots=True)
class Released:
    """What the release of a participant has ended."""

    bindings: int
    """Sessions of the panel that were bound."""
    returned: int
    """Tasks in progress that were returned."""
    submitted: int
    """Submitted tasks, which remain and hold the place."""


class Participants:
    """Participations in studies and sessions of workers; each method is one transaction.

    An id that has entered a study can enter again only with the panel's signature, the same session id of the
    panel, or from the same browser, until the requester releases it.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database, self.clock = database, clock

    def find(self, entry: Entry, browser: str, rules: StudyRules) -> Row[Any] | None:
        """Return the participation that an entry continues, or None.

        Raises WorkError as `find_participation`, or Spelling.
        """
        with self.database.read() as connection:
            check_spelling(connection, entry.worker)
            return find_participation(connection, entry, browser, rules, self.clock.now())

    def is_known_everywhere(self, worker_id: str, study: str, browser: str) -> bool:
        """Return whether this browser has also entered all other studies of the worker."""
        others = select(participation.c.study, participation.c.browser).where(
            participation.c.worker_id == worker_id, participation.c.study != study
        )
        with self.database.read() as connection:
            rows = connection.execute(others).all()
        own = {row.study for row in rows if row.browser == digest(browser)}
        return own == {row.study for row in rows}

    def last_consent(self, number: int) -> tuple[str, str] | None:
        """Return version and digest of the last consent in a participation; None if it was withdrawn."""
        row = self.database.first(LAST_CONSENT, {"participation": number})
        return None if row is None else (row.version, row.digest)

    def entry(self, number: int) -> Entry:
        """Return the entry that continues a participation whose session has proved the id."""
        row = self.database.first(ENTRY, {"number": number})
        return Entry(row.worker_id, row.study, row.panel_study, row.panel_session, is_signed=True)

    def enter(
        self, entry: Entry, nonce: str, browser: str, rules: StudyRules, *, country: str | None = None,
        agreed: Consent | None = None, answers: Mapping[str, str] | None = None,
        outcome: str | None = None,
    ) -> int | None:  # fmt: skip
        """Begin a worker's session; return the number of the participation, None outside studies.

        `browser` is the key of the browser; only digests of it and of `nonce` are stored. `agreed` is the
        wording to which the worker has consented now; `answers` are those to the questions before the study,
        and `outcome` is ``screened_out`` if they were not accepted: this ends all sessions that were not
        completed, and returns a task in progress. Otherwise a task in progress moves to this session.
        Raises WorkError as `find`.
        """
        now = self.clock.now()
        with self.database.write() as connection:
            known = (
                find_participation(connection, entry, browser, rules, now) if entry.study else None
            )
            number = known.number if known else None
            check_spelling(connection, entry.worker)
            register_worker(connection, entry.worker, now, country=country)
            if entry.study and number is None:
                values = {
                    "study": entry.study, "worker_id": entry.worker, "panel_study": entry.panel_study,
                    "panel_session": entry.panel_session, "browser": digest(browser), "joined": now,
                    "answers": dict(answers) if answers and not outcome else None, "outcome": outcome,
                }  # fmt: skip
                query = insert(participation).values(**values).returning(participation.c.number)
                number = connection.execute(query).scalar_one()
            if agreed is not None and entry.study and number is not None:
                _record_consent(connection, number, entry.study, agreed, now)
            if known is not None and known.outcome == NO_CONSENT:
                is_known = participation.c.number == known.number
                connection.execute(update(participation).where(is_known).values(outcome=None))
            if entry.study and outcome is not None:
                _end_uncompleted(connection, entry.worker, entry.study, outcome, now)
            if number is not None and outcome is None:
                _move_open(connection, entry, number)
            _begin_session(connection, nonce, entry.worker, number, now)
            return number

    def resume(self, nonce: str, worker_id: str, number: int) -> None:
        """Begin another session of a participation, after its sessions have ended."""
        with self.database.write() as connection:
            _begin_session(connection, nonce, worker_id, number, self.clock.now())

    def is_open(self, nonce: str) -> bool:
        """Return whether the session with this nonce has begun and not ended."""
        return self.database.first(OPEN_SESSION, {"session_id": digest(nonce)}) is not None

    def leave(self, nonce: str) -> None:
        """End a session."""
        with self.database.write() as connection:
            _end_sessions(connection, session.c.session_id == digest(nonce), self.clock.now())

    def n_submitted(self, worker_id: str, study: str) -> int:
        """Return the number of tasks that a worker has submitted in a study."""
        with self.database.read() as connection:
            return len(_times_of_submissions(connection, worker_id, study))

    def progress(
        self, worker_id: str, study: str, number: int, *, max_seconds: float | None
    ) -> StudyProgress:
        """Return what a participant has done in a study; `number` is the current participation.

        The tasks until the completion of a session are a batch of their own, in whichever session they were
        submitted; later tasks belong to the next batch.
        """
        query = select(participation).where(is_participation(worker_id, study))
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(participation.c.number)).all()
            times = _times_of_submissions(connection, worker_id, study)
        row = next((row for row in rows if row.number == number), None)
        if row is None:
            raise WorkError("Unknown", "There is no such participation.")
        completed = [one for one in rows if one.completed is not None]
        is_completed = any(one.panel_session == row.panel_session for one in completed)
        others = [one.completed for one in completed if one.panel_session != row.panel_session]
        last_batch_ended = max(others, default=-math.inf)
        is_over = max_seconds is not None and self.clock.now() >= row.joined + max_seconds
        return StudyProgress(
            row.outcome, is_completed, len(times), sum(time > last_batch_ended for time in times),
            is_late=row.outcome is None and not is_completed and is_over,
        )  # fmt: skip

    def complete(self, number: int) -> None:
        """Record that a participant has received the completion code."""
        with self.database.write() as connection:
            connection.execute(
                update(participation)
                .where(participation.c.number == number, participation.c.completed.is_(None))
                .values(completed=self.clock.now(), outcome=FINISHED)
            )

    def time_out(self, number: int) -> None:
        """End a participation whose time is over; no effect if it has ended."""
        with self.database.write() as connection:
            _set_outcome(connection, participation.c.number == number, TIMED_OUT)

    def decline(self, worker_id: str, study: str) -> int:
        """End the participation of a worker who does not consent, in all sessions that were not completed.

        Submitted tasks remain, and their number is returned; a task in progress is returned to others. A
        later consent continues the participation.
        """
        with self.database.write() as connection:
            _end_uncompleted(connection, worker_id, study, NO_CONSENT, self.clock.now())
            return len(_times_of_submissions(connection, worker_id, study))

    def withdraw(self, worker_id: str, study: str, *, actor: str = audit.PARTICIPANT) -> int | None:
        """Delete a worker's answers in a study; return their number, None if the worker never took part."""
        with self.database.write() as connection:
            query = select(participation.c.number).where(is_participation(worker_id, study))
            if connection.scalar(query.limit(1)) is None:
                return None
            now = self.clock.now()
            n_answers = withdraw(connection, worker_id, study, now)
            audit.record(connection, now, actor, "withdraw", study, answers=n_answers)
            return n_answers

    def release(self, worker_id: str, study: str, *, actor: str) -> Released:
        """End the sessions and bindings of a worker in a study, and return tasks in progress.

        The next entry under this id is bound to its own session and browser. The place is freed unless a task
        was submitted.
        """
        now = self.clock.now()
        is_bound = is_participation(worker_id, study) & participation.c.released.is_(None)
        with self.database.write() as connection:
            numbers = connection.scalars(select(participation.c.number).where(is_bound)).all()
            _end_sessions(connection, session.c.participation.in_(numbers), now)
            n_returned = return_open(connection, assignment.c.participation.in_(numbers), now)
            connection.execute(update(participation).where(is_bound).values(released=now))
            if numbers:
                audit.record(connection, now, actor, "release", study)
            n_submitted = len(_times_of_submissions(connection, worker_id, study))
        return Released(len(numbers), n_returned, n_submitted)

    def revoke(self, token: str) -> None:
        """Revoke a link by its token; no effect if it is revoked already."""
        with self.database.write() as connection:
            if not _is_revoked(connection, token):
                values = {"digest": digest(token), "at": self.clock.now()}
                connection.execute(insert(revoked_link).values(**values))

    def is_revoked(self, token: str) -> bool:
        """Return whether a link was revoked."""
        with self.database.read() as connection:
            return _is_revoked(connection, token)

    def studies(self) -> set[str]:
        """Return the names of all studies with participants."""
        with self.database.read() as connection:
            return set(connection.scalars(select(participation.c.study).distinct()))

    def rows(self, study: str | None = None, *, actor: str) -> list[Row[Any]]:
        """Return all participations with their assignments, in the order of entry.

        One row per assignment; a participation without assignments is one row whose assignment_id is None.
        """
        others = participation.alias()
        n_studies = (
            select(func.count(others.c.study.distinct()))
            .where(others.c.worker_id == participation.c.worker_id)
            .scalar_subquery()
        )
        last_consent = (
            select(func.max(consent.c.number))
            .where(consent.c.participation == participation.c.number)
            .correlate(participation)
            .scalar_subquery()
        )
        query = (
            select(
                participation,
                consent.c.version.label("consent_version"),
                consent.c.digest.label("consent_digest"),
                consent.c.language.label("consent_language"),
                consent.c.at.label("consented"),
                consent.c.withdrawn,
                n_studies.label("n_studies"),
                assignment.c.assignment_id,
                assignment.c.status,
            )
            .outerjoin(assignment, assignment.c.participation == participation.c.number)
            .outerjoin(consent, consent.c.number == last_consent)
            .order_by(participation.c.number, assignment.c.number)
        )
        if study is not None:
            query = query.where(participation.c.study == study)
        with self.database.read() as connection:
            rows = list(connection.execute(query))
        with self.database.write() as connection:
            audit.record(connection, self.clock.now(), actor, "participants", study or "",
                         workers=len({row.worker_id for row in rows}))  # fmt: skip
        return rows


def _record_consent(
    connection: Connection, number: int, study: str, agreed: Consent, now: float
) -> None:
    query = select(consent_wording.c.digest).where(consent_wording.c.digest == agreed.digest)
    if connection.scalar(query) is None:
        values = {"digest": agreed.digest, "language": agreed.language, "text": agreed.text}
        connection.execute(insert(consent_wording).values(**values))
    connection.execute(
        insert(consent).values(
            participation=number, study=study, version=agreed.version, digest=agreed.digest,
            language=agreed.language, at=now,
        )
    )  # fmt: skip


def _times_of_submissions(connection: Connection, worker_id: str, study: str) -> list[float]:
    """Return the times at which a worker submitted tasks of a study."""
    query = (
        select(assignment.c.submitted)
        .join(participation, participation.c.number == assignment.c.participation)
        .where(assignment.c.worker_id == worker_id, participation.c.study == study)
        .where(assignment.c.submitted.is_not(None))
    )
    return list(connection.scalars(query))


def _set_outcome(connection: Connection, condition: Any, outcome: str) -> None:
    """End participations that continue."""
    continues = condition & participation.c.outcome.is_(None)
    connection.execute(update(participation).where(continues).values(outcome=outcome))


def _end_uncompleted(
    connection: Connection, worker_id: str, study: str, outcome: str, now: float
) -> None:
    """End all sessions of a participant that were not completed; return tasks in progress."""
    condition = is_participation(worker_id, study) & participation.c.completed.is_(None)
    numbers = connection.scalars(select(participation.c.number).where(condition)).all()
    _set_outcome(connection, condition, outcome)
    return_open(connection, assignment.c.participation.in_(numbers), now)
    _end_sessions(connection, session.c.participation.in_(numbers), now)


def _move_open(connection: Connection, entry: Entry, number: int) -> None:
    """Move the tasks in progress of a worker in a study to the session that continues them."""
    of_study = select(participation.c.number).where(is_participation(entry.worker, entry.study))
    connection.execute(
        update(assignment)
        .where(
            assignment.c.worker_id == entry.worker,
            assignment.c.status == "Accepted",
            assignment.c.participation.in_(of_study),
        )
        .values(participation=number)
    )


def _begin_session(
    connection: Connection, nonce: str, worker_id: str, number: int | None, now: float
) -> None:
    values = {"session_id": digest(nonce), "worker_id": worker_id, "participation": number}
    connection.execute(insert(session).values(**values, started=now))


def _end_sessions(connection: Connection, condition: Any, now: float) -> None:
    connection.execute(
        update(session).where(condition, session.c.ended.is_(None)).values(ended=now)
    )


def _is_revoked(connection: Connection, token: str) -> bool:
    query = select(revoked_link.c.at).where(revoked_link.c.digest == digest(token))
    return connection.scalar(query) is not None
