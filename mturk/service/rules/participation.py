"""Participation in studies: entry, sessions, release and revoked links."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from mturk.service.clock import Clock
from mturk.service.rules import audit
from mturk.service.rules.erasure import WITHDRAWN, withdraw
from mturk.service.rules.work import WorkError, register_worker
from mturk.service.store.database import Database
from mturk.service.store.schema import (
    assignment,
    consent,
    consent_wording,
    participation,
    revoked_link,
    session,
    worker,
)

__all__ = ["FINISHED", "SCREENED_OUT", "Consent", "Entry", "Participants", "StudyRules"]

FINISHED, SCREENED_OUT = "finished", "screened_out"
"""Outcomes of participations; others are `timed_out` and `WITHDRAWN`."""
OPEN_SESSION = select(session.c.started).where(
    session.c.session_id == bindparam("session_id"), session.c.ended.is_(None)
)  # built once, because each request executes it


@dataclass(frozen=True, slots=True)
class Entry:
    """A worker from a valid link who has yet to confirm the entry."""

    worker: str
    study: str | None = None
    """Name of the study of a recruiting link; None for a personal link."""
    panel_study: str = ""
    """STUDY_ID of the panel."""
    panel_session: str = ""
    """SESSION_ID of the panel."""
    is_chosen: bool = field(default=False, kw_only=True)
    """Whether the participant has chosen the id, which therefore proves nothing."""


@dataclass(frozen=True, slots=True)
class StudyRules:
    """Limits on the participants of a study."""

    max_participants: int | None = None
    excluded_studies: Collection[str] = ()
    """Studies whose participants cannot take part."""


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
        return _digest(self.text)


class Participants:
    """Participations in studies and sessions of workers; each method is one transaction.

    An id that has entered a study can enter again only with the same session id of the panel or from the same
    browser, until the requester releases it.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database, self.clock = database, clock

    def is_known(self, entry: Entry, browser: str, rules: StudyRules) -> bool:
        """Return whether the participant has entered this study before.

        Raises WorkError: Bound if the proof of the first entry is missing, Taken if a chosen id is that of
        somebody else, Spelling, Excluded or StudyFull.
        """
        with self.database.read() as connection:
            _check_spelling(connection, entry.worker)
            return _find_participation(connection, entry, browser, rules) is not None

    def is_known_everywhere(self, worker_id: str, study: str, browser: str) -> bool:
        """Return whether this browser has also entered all other studies of the worker."""
        others = select(participation.c.study, participation.c.browser).where(
            participation.c.worker_id == worker_id, participation.c.study != study
        )
        with self.database.read() as connection:
            rows = connection.execute(others).all()
        own = {row.study for row in rows if row.browser == _digest(browser)}
        return own == {row.study for row in rows}

    def has_consented(self, entry: Entry, wordings: Collection[Consent]) -> bool:
        """Return whether the worker's last consent in the study is to one of the wordings."""
        query = (
            select(consent.c.version, consent.c.digest)
            .join(participation, participation.c.number == consent.c.participation)
            .where(_is_participation(entry.worker, entry.study), consent.c.withdrawn.is_(None))
            .order_by(consent.c.number.desc())
        )
        with self.database.read() as connection:
            row = connection.execute(query.limit(1)).first()
        return row is not None and tuple(row) in {(one.version, one.digest) for one in wordings}

    def enter(
        self, entry: Entry, nonce: str, browser: str, rules: StudyRules, *, country: str | None = None,
        agreed: Consent | None = None, answers: Mapping[str, str] | None = None,
        outcome: str | None = None,
    ) -> int | None:  # fmt: skip
        """Begin a worker's session; return the number of the participation, None outside studies.

        `browser` is the key of the browser; only digests of it and of `nonce` are stored. `agreed` is the
        wording to which the worker has consented now; `answers` are those to the questions before the study,
        and `outcome` is ``screened_out`` if they were not accepted. Raises WorkError as `is_known`.
        """
        now = self.clock.now()
        with self.database.write() as connection:
            number = _find_participation(connection, entry, browser, rules) if entry.study else None
            _check_spelling(connection, entry.worker)
            register_worker(connection, entry.worker, now, country=country)
            if entry.study and number is None:
                values = {
                    "study": entry.study, "worker_id": entry.worker, "panel_study": entry.panel_study,
                    "panel_session": entry.panel_session, "browser": _digest(browser), "joined": now,
                    "answers": dict(answers) if answers and not outcome else None, "outcome": outcome,
                }  # fmt: skip
                query = insert(participation).values(**values).returning(participation.c.number)
                number = connection.execute(query).scalar_one()
            if agreed is not None and entry.study and number is not None:
                _record_consent(connection, number, entry.study, agreed, now)
            connection.execute(
                insert(session).values(
                    session_id=_digest(nonce), worker_id=entry.worker, participation=number, started=now
                )
            )  # fmt: skip
            return number

    def is_open(self, nonce: str) -> bool:
        """Return whether the session with this nonce has begun and not ended."""
        return self.database.first(OPEN_SESSION, {"session_id": _digest(nonce)}) is not None

    def leave(self, nonce: str) -> None:
        """End a session."""
        with self.database.write() as connection:
            _end_sessions(connection, session.c.session_id == _digest(nonce), self.clock.now())

    def n_submitted(self, worker_id: str, study: str) -> int:
        """Return the number of assignments that a worker has submitted in a study."""
        query = (
            select(func.count())
            .select_from(assignment)
            .join(participation, participation.c.number == assignment.c.participation)
            .where(
                assignment.c.worker_id == worker_id,
                assignment.c.submitted.is_not(None),
                participation.c.study == study,
            )
        )
        with self.database.read() as connection:
            return int(connection.scalar(query) or 0)

    def has_completed(self, worker_id: str, study: str) -> bool:
        """Return whether a worker has received the completion code of a study."""
        query = select(participation.c.number).where(
            _is_participation(worker_id, study), participation.c.completed.is_not(None)
        )
        with self.database.read() as connection:
            return connection.scalar(query.limit(1)) is not None

    def outcome(self, worker_id: str, study: str, max_seconds: float | None) -> str | None:
        """Return the outcome of a worker's participation; None while it continues.

        After `max_seconds` since the first entry, a participation that continues ends as ``timed_out``.
        """
        query = (
            select(participation.c.number, participation.c.joined, participation.c.outcome)
            .where(_is_participation(worker_id, study), participation.c.released.is_(None))
            .order_by(participation.c.number)
        )
        with self.database.read() as connection:
            rows = connection.execute(query).all()
        known = next((row.outcome for row in reversed(rows) if row.outcome), None)
        if known or max_seconds is None or not rows:
            return known
        if self.clock.now() < rows[0].joined + max_seconds:
            return None
        self._end(rows[-1].number, "timed_out")
        return "timed_out"

    def complete(self, number: int) -> None:
        """Record that a participant has received the completion code."""
        with self.database.write() as connection:
            connection.execute(
                update(participation)
                .where(participation.c.number == number, participation.c.completed.is_(None))
                .values(completed=self.clock.now(), outcome=FINISHED)
            )

    def _end(self, number: int, outcome: str) -> None:
        with self.database.write() as connection:
            connection.execute(
                update(participation)
                .where(participation.c.number == number, participation.c.outcome.is_(None))
                .values(outcome=outcome)
            )

    def withdraw(self, worker_id: str, study: str, *, actor: str = audit.PARTICIPANT) -> int | None:
        """Delete a worker's answers in a study; return their number, None if the worker never took part."""
        with self.database.write() as connection:
            query = select(participation.c.number).where(_is_participation(worker_id, study))
            if connection.scalar(query.limit(1)) is None:
                return None
            now = self.clock.now()
            n_answers = withdraw(connection, worker_id, study, now)
            audit.record(connection, now, actor, "withdraw", study, answers=n_answers)
            return n_answers

    def release(self, worker_id: str, study: str, *, actor: str) -> int:
        """End the sessions and bindings of a worker in a study; return the number of bindings.

        The next entry under this id is bound to its own session and browser.
        """
        now = self.clock.now()
        is_bound = _is_participation(worker_id, study) & participation.c.released.is_(None)
        with self.database.write() as connection:
            numbers = connection.scalars(select(participation.c.number).where(is_bound)).all()
            _end_sessions(connection, session.c.participation.in_(numbers), now)
            connection.execute(update(participation).where(is_bound).values(released=now))
            if numbers:
                audit.record(connection, now, actor, "release", study)
        return len(numbers)

    def revoke(self, token: str) -> None:
        """Revoke a link by its token; no effect if it is revoked already."""
        with self.database.write() as connection:
            if not _is_revoked(connection, token):
                values = {"digest": _digest(token), "at": self.clock.now()}
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


def _find_participation(
    connection: Connection, entry: Entry, browser: str, rules: StudyRules
) -> int | None:
    """Return the participation that the entry continues; None for a new one."""
    rows = connection.execute(
        select(participation)
        .where(_is_participation(entry.worker, entry.study))
        .order_by(participation.c.number)
    ).all()
    if entry.is_chosen and not rows and _is_of_another(connection, entry.worker, browser):
        raise WorkError("Taken", "The id is that of a known worker.")
    bound_rows = [row for row in rows if row.released is None]
    same_session = [row for row in bound_rows if row.panel_session == entry.panel_session]
    has_proof = bool(entry.panel_session and same_session)
    if not has_proof and bound_rows and _digest(browser) not in {row.browser for row in bound_rows}:
        raise WorkError("Bound", "The id has entered this study from another session.")
    if any(row.outcome == WITHDRAWN for row in bound_rows):
        raise WorkError("Withdrawn", "The participant has withdrawn from this study.")
    screened_out = [row for row in bound_rows if row.outcome == SCREENED_OUT]
    continued = screened_out or same_session
    if not continued and all(row.outcome == SCREENED_OUT for row in rows):  # holds no place
        _check_admission(connection, entry, rules)
    return int(continued[0].number) if continued else None


def _is_of_another(connection: Connection, worker_id: str, browser: str) -> bool:
    """Return whether a worker is known, but not from this browser."""
    is_known = select(worker.c.worker_id).where(worker.c.worker_id == worker_id)
    same_browser = select(participation.c.number).where(
        participation.c.worker_id == worker_id, participation.c.browser == _digest(browser)
    )
    return (
        connection.scalar(is_known) is not None and connection.scalar(same_browser.limit(1)) is None
    )


def _check_admission(connection: Connection, entry: Entry, rules: StudyRules) -> None:
    """Raise WorkError if a new participant is excluded or the study is full."""
    earlier_studies = connection.scalars(
        select(participation.c.study).where(participation.c.worker_id == entry.worker)
    )
    if not set(rules.excluded_studies).isdisjoint(earlier_studies):
        raise WorkError("Excluded", "The id took part in an excluded study.")
    count = select(func.count(participation.c.worker_id.distinct())).where(
        participation.c.study == entry.study,
        func.coalesce(participation.c.outcome, "") != SCREENED_OUT,
    )
    limit = rules.max_participants
    if limit is not None and (connection.scalar(count) or 0) >= limit:
        raise WorkError("StudyFull", "The study has all its participants.")


def _check_spelling(connection: Connection, worker_id: str) -> None:
    """Raise WorkError if another worker's id differs only in case: both would be taken for one person."""
    is_alike = func.lower(worker.c.worker_id) == worker_id.lower()
    spellings = set(connection.scalars(select(worker.c.worker_id).where(is_alike)))
    if spellings and worker_id not in spellings:
        raise WorkError("Spelling", "The id exists in another spelling.")


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


def _is_participation(worker_id: str, study: str | None) -> Any:
    return (participation.c.worker_id == worker_id) & (participation.c.study == study)


def _end_sessions(connection: Connection, condition: Any, now: float) -> None:
    connection.execute(
        update(session).where(condition, session.c.ended.is_(None)).values(ended=now)
    )


def _is_revoked(connection: Connection, token: str) -> bool:
    query = select(revoked_link.c.at).where(revoked_link.c.digest == _digest(token))
    return connection.scalar(query) is not None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
