"""What a worker does: look for work, accept it, submit it, give it back, see what became of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import Connection, Row, and_, exists, func, insert, select, update

from mturk.answers import to_xml
from mturk.service.clock import Clock
from mturk.service.rules import lifecycle, qualification_requests
from mturk.service.rules.eligibility import Standing, blocked, standing, unmet
from mturk.service.store.database import Database
from mturk.service.store.schema import (
    assignment,
    bonus,
    hit,
    hit_type,
    message,
    takes_place,
    worker,
)

__all__ = ["Done", "Message", "Offer", "OpenAssignment", "Progress", "Work", "WorkError"]

WorkCode = Literal[
    "NoWork",
    "NotEligible",
    "AlreadyDone",
    "Full",
    "Expired",
    "Blocked",
    "NotYours",
    "Closed",
    "Unknown",
]
NEXT_OF = 20
"""Among so many HITs a worker's next one is chosen, so that not all see them in one order."""
COUNTED = 1_000
"""Up to so many HITs of a type are counted for the list of work."""
LOOK_SECONDS = 1.0


class WorkError(ValueError):
    """A worker may not do this, or it cannot be done (any more)."""

    def __init__(self, code: WorkCode, text: str) -> None:
        super().__init__(text)
        self.code: WorkCode = code
        self.text = text


@dataclass(frozen=True, slots=True)
class Offer:
    """HITs of one type on which a worker could work."""

    hit_type_id: str
    group_id: str
    title: str
    description: str
    keywords: str
    reward: Decimal
    duration: int
    """Seconds from accepting to the deadline."""
    hits_available: int
    more: bool
    """Whether there are more HITs than are counted, `COUNTED`."""
    sample_hit_id: str
    eligible: bool
    unmet: tuple[str, ...]
    """Which requirements the worker does not meet, in words."""


@dataclass(frozen=True, slots=True)
class OpenAssignment:
    """An assignment with its question; ``status`` tells whether it is still open."""

    assignment_id: str
    hit_id: str
    hit_type_id: str
    worker_id: str
    accepted: float
    deadline: float
    title: str
    question: str
    reward: Decimal
    status: str


@dataclass(frozen=True, slots=True)
class Done:
    """An assignment that was submitted."""

    assignment_id: str
    title: str
    submitted: float
    status: str
    reward: Decimal
    feedback: str


@dataclass(frozen=True, slots=True)
class Progress:
    """What a worker has done and earned."""

    submitted: int
    approved: int
    rejected: int
    pending: int
    """Submitted, and not yet reviewed."""
    earned: Decimal
    """Rewards of approved assignments, and bonuses."""


@dataclass(frozen=True, slots=True)
class Message:
    """A requester's message to a worker."""

    subject: str
    text: str
    at: float


class Work:
    """The worker's side of the service; every method is one transaction."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.clock = clock
        self._looked = float("-inf")

    def register(
        self, worker_id: str, *, country: str | None = None, subdivision: str | None = None
    ) -> None:
        """Make a worker known; the same again is fine, and a country that is given replaces the old."""
        with self.database.write() as connection:
            known = connection.scalar(
                select(worker.c.worker_id).where(worker.c.worker_id == worker_id)
            )
            if known is None:
                values = {"worker_id": worker_id, "registered": self.clock.now()}
                connection.execute(insert(worker).values(**values))
            if country:
                connection.execute(
                    update(worker)
                    .where(worker.c.worker_id == worker_id)
                    .values(country=country, subdivision=subdivision)
                )

    def country(self, worker_id: str) -> str | None:
        """Return the country that the worker declared."""
        with self.database.read() as connection:
            found: str | None = connection.scalar(
                select(worker.c.country).where(worker.c.worker_id == worker_id)
            )
            return found

    def offers(self, worker_id: str, *, limit: int = 50) -> list[Offer]:
        """Return what there is to do, a HIT type each, the newest first."""
        self._settle()
        now = self.clock.now()
        with self.database.read() as connection:
            if blocked(connection, worker_id):
                return []
            known = standing(connection, worker_id)
            rows = connection.execute(_groups(worker_id, now).limit(limit)).all()
            return [
                _offer(row, unmet(row.qualifications, known))
                for row in rows
                if not unmet(row.qualifications, known, "see")
            ]

    def next_hit(self, worker_id: str, group_id: str) -> str | None:
        """Return a HIT of the group that the worker could accept, or None."""
        self._settle()
        with self.database.read() as connection:
            return _next(connection, worker_id, group_id, self.clock.now())

    def preview(self, worker_id: str, hit_id: str) -> str:
        """Return a HIT's question; WorkError where the worker may not see it."""
        self._settle()
        with self.database.read() as connection:
            row, kind = _hit_and_type(connection, hit_id)
            _check_may(connection, worker_id, kind, "preview")
            if row.status == "Disposed":
                raise WorkError("Unknown", "There is no such HIT.")
            return str(row.question)

    def accept(
        self, worker_id: str, hit_id: str | None, group_id: str | None = None
    ) -> OpenAssignment:
        """Take a place of a HIT, or of the next HIT of a group; an open one of the same HIT comes back."""
        now = self.clock.now()
        with self.database.write() as connection:
            lifecycle.settle(connection, now)
            open_one = _open_one(connection, worker_id, hit_id, group_id)
            if open_one:
                return _open(connection, open_one)
            hit_id = hit_id or _next(connection, worker_id, group_id or "", now)
            if hit_id is None:
                raise WorkError("NoWork", "There is no more work of this kind for you.")
            assignment_id = _accept(connection, worker_id, hit_id, now)
            return _open(connection, assignment_id)

    def assignment(self, assignment_id: str) -> OpenAssignment:
        """Return an assignment, whatever its state; WorkError where there is none."""
        self._settle()
        with self.database.read() as connection:
            return _open(connection, assignment_id)

    def open_assignments(self, worker_id: str) -> list[OpenAssignment]:
        """Return what the worker has accepted and not yet submitted, the oldest first."""
        self._settle()
        with self.database.read() as connection:
            ids = connection.scalars(
                select(assignment.c.assignment_id)
                .where(assignment.c.worker_id == worker_id, assignment.c.status == "Accepted")
                .order_by(assignment.c.number)
            ).all()
            return [_open(connection, one) for one in ids]

    def submit(self, assignment_id: str, worker_id: str, fields: Sequence[tuple[str, str]]) -> bool:
        """Take an answer: True the first time, False where it was submitted before and nothing changes."""
        answer = to_xml(fields)
        now = self.clock.now()
        with self.database.write() as connection:
            lifecycle.settle(connection, now)
            row = _own(connection, assignment_id, worker_id)
            if row.status in ("Submitted", "Approved", "Rejected"):
                return False
            if row.status != "Accepted":
                raise WorkError("Expired", "The assignment was returned, or its time is over.")
            lifecycle.submit(connection, row, answer, now)
            return True

    def give_back(self, assignment_id: str, worker_id: str) -> None:
        """Return an assignment; the place is free again. The same again is fine."""
        now = self.clock.now()
        with self.database.write() as connection:
            lifecycle.settle(connection, now)
            row = _own(connection, assignment_id, worker_id)
            if row.status == "Accepted":
                lifecycle.leave(connection, row, "Returned", now)
            elif row.status not in ("Returned", "Abandoned"):
                raise WorkError("Closed", "The assignment was submitted and cannot be returned.")

    def history(self, worker_id: str, limit: int = 100) -> list[Done]:
        """Return what the worker has submitted, the newest first."""
        self._settle()
        with self.database.read() as connection:
            rows = connection.execute(
                select(assignment, hit_type.c.title)
                .join(hit, hit.c.hit_id == assignment.c.hit_id)
                .join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)
                .where(assignment.c.worker_id == worker_id, assignment.c.submitted.is_not(None))
                .order_by(assignment.c.submitted.desc())
                .limit(limit)
            ).all()
        return [
            Done(row.assignment_id, row.title, row.submitted, row.status, _dollars(row.reward),
                 row.feedback or "")
            for row in rows
        ]  # fmt: skip

    def progress(self, worker_id: str) -> Progress:
        """Return how much the worker has done, and what it came to."""
        self._settle()
        with self.database.read() as connection:
            rows = connection.execute(
                select(assignment.c.status, func.count(), func.sum(assignment.c.reward))
                .where(assignment.c.worker_id == worker_id)
                .group_by(assignment.c.status)
            ).all()
            extra = connection.scalar(
                select(func.sum(bonus.c.amount)).where(bonus.c.worker_id == worker_id)
            )
        counts = {status: (count, reward) for status, count, reward in rows}
        approved, earned = counts.get("Approved", (0, 0))
        rejected, pending = counts.get("Rejected", (0, 0))[0], counts.get("Submitted", (0, 0))[0]
        sent = approved + rejected + pending
        return Progress(sent, approved, rejected, pending, _dollars(earned + (extra or 0)))

    def submitted_in(self, worker_id: str, group_id: str) -> int:
        """Return how many assignments of a HIT group the worker has submitted, whatever became of them."""
        query = (
            select(func.count())
            .select_from(assignment)
            .join(hit, hit.c.hit_id == assignment.c.hit_id)
            .join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)
            .where(
                assignment.c.worker_id == worker_id,
                assignment.c.submitted.is_not(None),
                hit_type.c.group_id == group_id,
            )
        )
        with self.database.read() as connection:
            return int(connection.scalar(query) or 0)

    def request_qualification(
        self, worker_id: str, qualification_type_id: str, fields: Sequence[tuple[str, str]] = ()
    ) -> Literal["Granted", "Pending"]:
        """Ask for a qualification, with the answers to its test; WorkError where that is not possible."""
        with self.database.write() as connection:
            try:
                return qualification_requests.request(
                    connection, worker_id, qualification_type_id, fields, self.clock.now()
                )
            except qualification_requests.NotPossibleError as error:
                raise WorkError("NotEligible", str(error)) from None

    def requestable(self, worker_id: str) -> list[qualification_requests.Requestable]:
        """Return the qualifications for which workers can ask, and where this one stands with each."""
        with self.database.read() as connection:
            return qualification_requests.requestable(connection, worker_id)

    def messages(self, worker_id: str) -> list[Message]:
        """Return the requester's messages to the worker, the newest first."""
        with self.database.read() as connection:
            rows = connection.execute(
                select(message.c.subject, message.c.text, message.c.at)
                .where(message.c.worker_id == worker_id)
                .order_by(message.c.number.desc())
            ).all()
        return [Message(*row) for row in rows]

    def settle(self) -> None:
        """Make the changes that time has made due; the server calls it now and then."""
        self._looked = float("-inf")
        self._settle()

    def _settle(self) -> None:
        """Settle what is due before looking, once a second; whoever changes something settles first."""
        now = self.clock.now()
        if 0 <= now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        with self.database.read() as connection:
            due = lifecycle.something_due(connection, now)
        if due:
            with self.database.write() as connection:
                lifecycle.settle(connection, now)


def _dollars(cents: int) -> Decimal:
    return Decimal(cents) / 100


def _places(worker_id: str, now: float) -> Any:
    """Return the condition on HITs with a place for a worker who has none of theirs."""
    has = exists().where(
        assignment.c.hit_id == hit.c.hit_id,
        assignment.c.worker_id == worker_id,
        takes_place,
    )
    return and_(hit.c.status == "Assignable", hit.c.expiration > now, ~has)


def _groups(worker_id: str, now: float) -> Any:
    """Return the types with work for a worker; never by a look at all HITs, which may be a million."""
    free = and_(hit.c.hit_type_id == hit_type.c.hit_type_id, _places(worker_id, now))
    some = select(hit.c.number).where(free).correlate(hit_type).limit(COUNTED + 1).subquery()
    found = select(
        hit_type,
        select(func.count()).select_from(some).scalar_subquery().label("hits_available"),
        _end_of(free, hit.c.hit_id, hit.c.number.asc()).label("sample_hit_id"),
        _end_of(free, hit.c.number, hit.c.number.desc()).label("newest"),
    ).subquery()
    return select(found).where(found.c.newest.is_not(None)).order_by(found.c.newest.desc())


def _end_of(free: Any, column: Any, order: Any) -> Any:
    return select(column).where(free).correlate(hit_type).order_by(order).limit(1).scalar_subquery()


def _offer(row: Row[Any], missing: Sequence[str]) -> Offer:
    return Offer(
        row.hit_type_id, row.group_id, row.title, row.description, row.keywords, _dollars(row.reward),
        row.duration, min(row.hits_available, COUNTED), row.hits_available > COUNTED,
        row.sample_hit_id, not missing, tuple(missing),
    )  # fmt: skip


def _next(connection: Connection, worker_id: str, group_id: str, now: float) -> str | None:
    first = connection.scalars(
        select(hit.c.hit_id)
        .join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)
        .where(hit_type.c.group_id == group_id, _places(worker_id, now))
        .order_by(hit.c.number)
        .limit(NEXT_OF)
    ).all()
    return min(first, key=lambda hit_id: _shuffled(worker_id, hit_id), default=None)


def _shuffled(worker_id: str, hit_id: str) -> bytes:
    return hashlib.blake2b(f"{worker_id} {hit_id}".encode(), digest_size=8).digest()


def _hit_and_type(connection: Connection, hit_id: str) -> tuple[Row[Any], Row[Any]]:
    row = connection.execute(select(hit).where(hit.c.hit_id == hit_id)).first()
    if row is None:
        raise WorkError("Unknown", "There is no such HIT.")
    kind = select(hit_type).where(hit_type.c.hit_type_id == row.hit_type_id)
    return row, connection.execute(kind).one()


def _check_may(connection: Connection, worker_id: str, kind: Row[Any], wish: str) -> None:
    if blocked(connection, worker_id):
        raise WorkError("Blocked", "The requester does not take work from you.")
    if kind.qualifications:
        known: Standing = standing(connection, worker_id)
        if missing := unmet(kind.qualifications, known, wish):
            raise WorkError("NotEligible", f"You do not meet: {'; '.join(missing)}.")


def _open_one(
    connection: Connection, worker_id: str, hit_id: str | None, group_id: str | None
) -> str | None:
    """Return the worker's open assignment of the HIT, or of the group where no HIT is named."""
    query = select(assignment.c.assignment_id).where(
        assignment.c.worker_id == worker_id, assignment.c.status == "Accepted"
    )
    if hit_id is not None:
        query = query.where(assignment.c.hit_id == hit_id)
    else:
        query = (
            query.join(hit, hit.c.hit_id == assignment.c.hit_id)
            .join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)
            .where(hit_type.c.group_id == group_id)
        )
    found: str | None = connection.scalar(query.order_by(assignment.c.number).limit(1))
    return found


def _accept(connection: Connection, worker_id: str, hit_id: str, now: float) -> str:
    known = connection.scalar(select(worker.c.worker_id).where(worker.c.worker_id == worker_id))
    if known is None:
        raise WorkError("Unknown", "There is no such worker.")
    row, kind = _hit_and_type(connection, hit_id)
    _check_may(connection, worker_id, kind, "accept")
    _check_free(connection, worker_id, row, now)
    return lifecycle.accept(connection, row, kind, worker_id, now)


def _check_free(connection: Connection, worker_id: str, row: Row[Any], now: float) -> None:
    has = connection.scalar(
        select(assignment.c.status).where(
            assignment.c.hit_id == row.hit_id,
            assignment.c.worker_id == worker_id,
            takes_place,
        )
    )
    if has is not None:
        raise WorkError("AlreadyDone", "You have answered this HIT already.")
    if row.expiration <= now or row.status == "Disposed":
        raise WorkError("Expired", "The HIT is no longer offered.")
    if row.status != "Assignable":
        raise WorkError("Full", "All places of this HIT are taken.")


def _own(connection: Connection, assignment_id: str, worker_id: str) -> Row[Any]:
    row = connection.execute(
        select(assignment).where(
            assignment.c.assignment_id == assignment_id, assignment.c.worker_id == worker_id
        )
    ).first()
    if row is None:  # the same words whether it is unknown or another's
        raise WorkError("NotYours", "You have no such assignment.")
    return row


def _open(connection: Connection, assignment_id: str) -> OpenAssignment:
    row = connection.execute(
        select(assignment, hit.c.hit_type_id, hit.c.question, hit_type.c.title)
        .join(hit, hit.c.hit_id == assignment.c.hit_id)
        .join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)
        .where(assignment.c.assignment_id == assignment_id)
    ).first()
    if row is None:
        raise WorkError("Unknown", "There is no such assignment.")
    return OpenAssignment(
        row.assignment_id, row.hit_id, row.hit_type_id, row.worker_id, row.accepted, row.deadline,
        row.title, row.question, _dollars(row.reward), row.status,
    )  # fmt: skip
