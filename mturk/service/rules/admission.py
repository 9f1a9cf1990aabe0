"""Admission to studies: proof of an id, places, excluded participants."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, exists, func, select

from mturk.service.rules.ends import FREEING_OUTCOMES, NO_CONSENT, SCREENED_OUT, WITHDRAWN
from mturk.service.rules.work import WorkError
from mturk.service.store.schema import assignment, counts_towards_maximum, participation, worker


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
    is_signed: bool = field(default=False, kw_only=True)
    """Whether the panel has signed the ids, which proves them."""


@dataclass(frozen=True, slots=True)
class StudyRules:
    """Limits on the participants of a study."""

    max_participants: int | None = None
    excluded_studies: Collection[str] = ()
    """Studies whose participants cannot take part."""
    max_seconds: float | None = None
    """Time for the whole study, after which a participant without a submitted task holds no place."""


def find_participation(
    connection: Connection, entry: Entry, browser: str, rules: StudyRules, now: float
) -> Row[Any] | None:
    """Return the participation that the entry continues; None for a new one.

    An id that has entered the study before needs a proof: the panel's signature, a session id of an earlier
    entry, or the browser of one. A new session with a proof is a new participation of the same participant.
    Raises WorkError: Bound without a proof, Taken if a chosen id is that of somebody else, Excluded or
    StudyFull.
    """
    rows = connection.execute(
        select(participation)
        .where(is_participation(entry.worker, entry.study))
        .order_by(participation.c.number)
    ).all()
    if entry.is_chosen and not rows and _is_of_another(connection, entry.worker, browser):
        raise WorkError("Taken", "The id is that of a known worker.")
    bound_rows = [row for row in rows if row.released is None]
    same_session = [row for row in bound_rows if row.panel_session == entry.panel_session]
    if not entry.panel_session:  # not a new session
        same_session = bound_rows[-1:]
    has_proof = entry.is_signed or bool(entry.panel_session and same_session)
    if not has_proof and bound_rows and digest(browser) not in {row.browser for row in bound_rows}:
        raise WorkError("Bound", "The id has entered this study from another session.")
    continued = _continued(bound_rows, same_session)
    if continued is None or continued.outcome == NO_CONSENT:
        _check_admission(connection, entry, rules, now)
    return continued


def _continued(bound_rows: Sequence[Row[Any]], same_session: Sequence[Row[Any]]) -> Row[Any] | None:
    """Return the row of the same session; a withdrawal or a screening ends all sessions not completed."""
    completed = [row for row in same_session if row.completed is not None]
    withdrawn = [row for row in bound_rows if row.outcome == WITHDRAWN]
    screened_out = [row for row in bound_rows if row.outcome == SCREENED_OUT]
    return next(iter([*withdrawn, *completed, *screened_out, *same_session]), None)


def _is_of_another(connection: Connection, worker_id: str, browser: str) -> bool:
    """Return whether a worker is known, but not from this browser."""
    is_known = select(worker.c.worker_id).where(worker.c.worker_id == worker_id)
    same_browser = select(participation.c.number).where(
        participation.c.worker_id == worker_id, participation.c.browser == digest(browser)
    )
    return (
        connection.scalar(is_known) is not None and connection.scalar(same_browser.limit(1)) is None
    )


def _check_admission(connection: Connection, entry: Entry, rules: StudyRules, now: float) -> None:
    """Raise WorkError if a participant without a place is excluded or the study is full."""
    in_study = (participation.c.study == entry.study) & holds_place(now, rules.max_seconds)
    own_place = select(participation.c.number).where(
        in_study, participation.c.worker_id == entry.worker
    )
    if connection.scalar(own_place.limit(1)) is not None:
        return
    earlier_studies = connection.scalars(
        select(participation.c.study).where(participation.c.worker_id == entry.worker)
    )
    if not set(rules.excluded_studies).isdisjoint(earlier_studies):
        raise WorkError("Excluded", "The id took part in an excluded study.")
    count = select(func.count(participation.c.worker_id.distinct())).where(in_study)
    limit = rules.max_participants
    if limit is not None and (connection.scalar(count) or 0) >= limit:
        raise WorkError("StudyFull", "The study has all its participants.")


def holds_place(now: float, max_seconds: float | None) -> ColumnElement[bool]:
    """Return the condition for participations that hold a place.

    These are the ones that continue, and those with a task that is submitted or in progress.
    """
    has_task = exists().where(
        assignment.c.worker_id == participation.c.worker_id,
        assignment.c.participation == participation.c.number,
        counts_towards_maximum,
    )
    continues = participation.c.released.is_(None) & func.coalesce(
        participation.c.outcome, ""
    ).not_in(FREEING_OUTCOMES)
    if max_seconds is not None:
        continues &= participation.c.joined > now - max_seconds
    return continues | has_task


def check_spelling(connection: Connection, worker_id: str) -> None:
    """Raise WorkError if another worker's id differs only in case: both would be taken for one person."""
    is_alike = func.lower(worker.c.worker_id) == worker_id.lower()
    spellings = set(connection.scalars(select(worker.c.worker_id).where(is_alike)))
    if spellings and worker_id not in spellings:
        raise WorkError("Spelling", "The id exists in another spelling.")


def is_participation(worker_id: str, study: str | None) -> ColumnElement[bool]:
    """Return the condition for the participations of a worker in a study."""
    return (participation.c.worker_id == worker_id) & (participation.c.study == study)


def digest(secret: str) -> str:
    """Return the SHA-256 digest under which a browser's key, a nonce, a link or a wording is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()
