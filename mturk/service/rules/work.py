"""Operations of workers: list, preview, accept, submit and return HITs, and show their history."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    Connection,
    Row,
    and_,
    bindparam,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from mturk.answers import to_xml
from mturk.question_xml import CACHED_QUESTIONS, expected_seconds
from mturk.service.clock import Clock
from mturk.service.rules import lifecycle, qualification_requests
from mturk.service.rules.eligibility import (
    UnmetRequirement,
    WorkerQualifications,
    is_blocked,
    unmet_requirements,
    worker_qualifications,
)
from mturk.service.store.database import Database
from mturk.service.store.schema import (
    SUBMITTED_STATUSES,
    assignment,
    bonus,
    counts_towards_maximum,
    hit,
    hit_type,
    inquiry,
    message,
    worker,
)
from mturk.service.store.schema import participation as participation_table
from mturk.service.store.statements import Statement

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
    "Bound",
    "Excluded",
    "StudyFull",
    "Spelling",
    "Taken",
]
NEXT_HIT_POOL_SIZE = 20
"""Number of HITs from which a worker's next one is chosen, so that the order differs between workers."""
MAX_COUNTED_HITS = 1_000
"""Maximum number of HITs per type that are counted for the list of offers."""
DUE_CHECK_SECONDS = 1.0

# Statements are built once: building one takes SQLAlchemy longer than executing it.
OFFERED_HIT = Statement(
    select(
        *lifecycle.HIT_STATE, hit_type.c.title, hit_type.c.reward, hit_type.c.duration,
        hit_type.c.auto_approval_delay, hit_type.c.qualifications,
    )
    .join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)
    .where(hit.c.hit_id == bindparam("hit_id"))
)  # fmt: skip
QUESTION = Statement(select(hit.c.question).where(hit.c.hit_id == bindparam("hit_id")))
KNOWN_WORKER = Statement(
    select(worker.c.worker_id).where(worker.c.worker_id == bindparam("worker_id"))
)
COUNTED_ASSIGNMENT = select(assignment.c.status).where(
    assignment.c.worker_id == bindparam("worker_id"), counts_towards_maximum
)
IS_AVAILABLE = and_(
    hit.c.status == "Assignable",
    hit.c.expiration > bindparam("now"),
    ~COUNTED_ASSIGNMENT.where(assignment.c.hit_id == hit.c.hit_id).exists(),
)
"""Condition for available HITs of which the worker has no assignment."""
CONTINUES = Statement(
    select(participation_table.c.number).where(
        participation_table.c.number == bindparam("participation"),
        participation_table.c.outcome.is_(None),
        participation_table.c.released.is_(None),
    )
)
COUNTED_ASSIGNMENT_OF_HIT = Statement(
    COUNTED_ASSIGNMENT.where(assignment.c.hit_id == bindparam("hit_id"))
)
OWN_HITS = (
    select(hit.c.hit_type_id, hit.c.status, func.count())
    .select_from(assignment.join(hit, hit.c.hit_id == assignment.c.hit_id))
    .where(assignment.c.worker_id == bindparam("worker_id"), counts_towards_maximum)
    .group_by(hit.c.hit_type_id, hit.c.status)
)
"""Numbers of HITs of which a worker has an assignment. The statuses of the HITs are not conditions, because
SQLite would then begin with all assignable HITs."""
SUBMITTED = Statement(
    select(assignment.c.number)
    .where(assignment.c.worker_id == bindparam("worker_id"), assignment.c.submitted.is_not(None))
    .limit(1)
)
NEXT_HITS = (
    select(hit.c.hit_id)
    .join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)
    .where(hit_type.c.group_id == bindparam("group_id"), IS_AVAILABLE)
    .order_by(hit.c.number)
    .limit(NEXT_HIT_POOL_SIZE)
    .subquery()
)
SPACE: Any = literal_column("' '")
NEXT_HIT_IDS = Statement(select(func.aggregate_strings(NEXT_HITS.c.hit_id, SPACE)))
"""In one row: SQLite's driver lets other threads run after each row, while the writers wait."""
ASSIGNMENT = (
    select(assignment, hit.c.hit_type_id, hit_type.c.title, participation_table.c.study)
    .join(hit, hit.c.hit_id == assignment.c.hit_id)
    .join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)
    .outerjoin(participation_table, participation_table.c.number == assignment.c.participation)
)
ASSIGNMENT_BY_ID = Statement(
    ASSIGNMENT.where(assignment.c.assignment_id == bindparam("assignment_id"))
)
earlier = assignment.alias()
EARLIER_ASSIGNMENTS = Statement(
    select(func.count())
    .select_from(earlier.join(assignment, earlier.c.hit_id == assignment.c.hit_id))
    .where(
        assignment.c.assignment_id == bindparam("assignment_id"),
        earlier.c.number < assignment.c.number,
    )
)
OPEN_ASSIGNMENTS = ASSIGNMENT.where(
    assignment.c.worker_id == bindparam("worker_id"), assignment.c.status == "Accepted"
).order_by(assignment.c.number)
current = participation_table.alias()
IN_SAME_STUDY = or_(
    bindparam("participation", type_=BigInteger).is_(None),
    participation_table.c.study
    == select(current.c.study)
    .where(current.c.number == bindparam("participation", type_=BigInteger))
    .scalar_subquery(),
)
"""Condition for assignments of the study of a participation; all without one."""
OPEN_OF_HIT = Statement(
    OPEN_ASSIGNMENTS.where(assignment.c.hit_id == bindparam("hit_id"), IN_SAME_STUDY).limit(1)
)
OPEN_OF_GROUP = Statement(
    OPEN_ASSIGNMENTS.where(hit_type.c.group_id == bindparam("group_id"), IN_SAME_STUDY).limit(1)
)
OWN_ASSIGNMENT = Statement(
    select(assignment).where(
        assignment.c.assignment_id == bindparam("assignment_id"),
        assignment.c.worker_id == bindparam("worker_id"),
    )
)


def _select_offers() -> Any:
    """Return a query of the HIT types available to a worker, without a scan of all HITs.

    Assignable HITs are counted, with those of which the worker has an assignment: this reads only an index.
    """
    is_available = and_(hit.c.hit_type_id == hit_type.c.hit_type_id, IS_AVAILABLE)
    is_assignable = and_(hit.c.hit_type_id == hit_type.c.hit_type_id, hit.c.status == "Assignable")
    assignable_hits = (
        select(hit.c.status)
        .where(is_assignable)
        .correlate(hit_type)
        .limit(bindparam("max_counted"))
        .subquery()
    )
    n_assignable = select(func.count()).select_from(assignable_hits).scalar_subquery()
    groups = select(
        hit_type,
        n_assignable.label("n_assignable"),
        _select_first(is_available, hit.c.hit_id, hit.c.number.asc()).label("sample_hit_id"),
        _select_first(is_available, hit.c.number, hit.c.number.desc()).label("newest"),
    ).subquery()
    return (
        select(groups)
        .where(groups.c.newest.is_not(None))
        .order_by(groups.c.newest.desc())
        .limit(bindparam("limit"))
    )


def _select_first(is_available: Any, column: Any, order: Any) -> Any:
    return (
        select(column)
        .where(is_available)
        .correlate(hit_type)
        .order_by(order)
        .limit(1)
        .scalar_subquery()
    )


OFFERS = _select_offers()


class WorkError(ValueError):
    """An operation that the worker is not allowed to do, or that is no longer possible."""

    def __init__(self, code: WorkCode, text: str) -> None:
        super().__init__(text)
        self.code: WorkCode = code
        self.text = text


class EndedError(Exception):
    """The participation for which a task was requested has ended."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Available HITs of one type."""

    hit_type_id: str
    group_id: str
    title: str
    description: str
    keywords: str
    reward: Decimal
    duration: int
    """Seconds from accepting to the deadline."""
    hits_available: int
    has_more: bool
    """Whether there are more than `MAX_COUNTED_HITS` HITs."""
    sample_hit_id: str
    eligible: bool
    unmet: tuple[UnmetRequirement, ...]
    """Descriptions of the requirements that the worker does not meet."""


@dataclass(frozen=True, slots=True)
class OpenAssignment:
    """An assignment with its question; open if ``status`` is Accepted."""

    assignment_id: str
    hit_id: str
    hit_type_id: str
    worker_id: str
    accepted: float
    deadline: float
    closes: float
    """Time until which an open assignment can be submitted: the deadline and the grace period."""
    title: str
    question: str
    reward: Decimal
    status: str
    study: str | None
    """Study in which the assignment was accepted; None outside studies."""


@dataclass(frozen=True, slots=True)
class SubmittedAssignment:
    """A submitted assignment."""

    assignment_id: str
    title: str
    submitted: float
    status: str
    reward: Decimal
    feedback: str


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """Counts and earnings of a worker."""

    submitted: int
    approved: int
    rejected: int
    pending: int
    """Submitted but not yet reviewed."""
    earned: Decimal
    """Rewards of approved assignments, and bonuses."""


@dataclass(frozen=True, slots=True)
class Message:
    """A requester's message to a worker."""

    subject: str
    text: str
    at: float


class WorkerService:
    """Operations of workers on the service; each method is one transaction.

    Assignments can be submitted until `grace_seconds` after their deadline.
    """

    def __init__(self, database: Database, clock: Clock, *, grace_seconds: float = 0.0) -> None:
        self.database, self.grace_seconds = database, grace_seconds
        self.clock = clock
        self._last_due_check = float("-inf")
        self.question = functools.lru_cache(CACHED_QUESTIONS)(self._question)
        """`_question`, cached: questions never change."""

    def _question(self, hit_id: str) -> str:
        """Return the question of a HIT in any state; raise WorkError if the id is unknown."""
        row = self.database.first(QUESTION, {"hit_id": hit_id})
        if row is None:
            raise WorkError("Unknown", "There is no such HIT.")
        return str(row.question)

    def register(
        self, worker_id: str, *, country: str | None = None, subdivision: str | None = None
    ) -> None:
        """Register a worker if new; a given country replaces the stored one."""
        with self.database.write() as connection:
            register_worker(
                connection, worker_id, self.clock.now(), country=country, subdivision=subdivision
            )

    def country(self, worker_id: str) -> str | None:
        """Return the country declared by the worker."""
        with self.database.read() as connection:
            country_code: str | None = connection.scalar(
                select(worker.c.country).where(worker.c.worker_id == worker_id)
            )
            return country_code

    def offers(self, worker_id: str, *, limit: int = 50) -> list[Offer]:
        """Return the available HIT types, newest first."""
        self._apply_due_changes_if_stale()
        now = self.clock.now()
        with self.database.read() as connection:
            if is_blocked(connection, worker_id):
                return []
            qualifications = worker_qualifications(connection, worker_id)
            own_hits = {
                type_id: count
                for type_id, status, count in connection.execute(OWN_HITS, {"worker_id": worker_id})
                if status == "Assignable"
            }
            values = {
                "worker_id": worker_id, "now": now, "limit": limit,
                "max_counted": MAX_COUNTED_HITS + 1 + max(own_hits.values(), default=0),
            }  # fmt: skip
            rows = connection.execute(OFFERS, values).all()
            return [
                _build_offer(
                    row,
                    row.n_assignable - own_hits.get(row.hit_type_id, 0),
                    unmet_requirements(row.qualifications, qualifications),
                )
                for row in rows
                if not unmet_requirements(row.qualifications, qualifications, "see")
            ]

    def expected_seconds(self, hit_ids: Collection[str]) -> dict[str, int]:
        """Return HIT id -> expected time, for HITs whose pages state it."""
        query = select(hit.c.hit_id, hit.c.question).where(hit.c.hit_id.in_(hit_ids))
        with self.database.read() as connection:
            seconds = {
                row.hit_id: expected_seconds(row.question) for row in connection.execute(query)
            }
        return {hit_id: value for hit_id, value in seconds.items() if value is not None}

    def next_hit(self, worker_id: str, group_id: str) -> str | None:
        """Return the id of a HIT of the group that the worker can accept, or None."""
        self._apply_due_changes_if_stale()
        with self.database.read() as connection:
            return _next_hit_id(connection, worker_id, group_id, self.clock.now())

    def preview(self, worker_id: str, hit_id: str) -> str:
        """Return a HIT's question; raise WorkError if the worker may not see it."""
        self._apply_due_changes_if_stale()
        with self.database.read() as connection:
            row = _offered_hit(connection, hit_id)
            _check_allowed(connection, worker_id, row, "preview")
            if row.status == "Disposed":
                raise WorkError("Unknown", "There is no such HIT.")
        return self.question(hit_id)

    def accept(
        self, worker_id: str, hit_id: str | None, group_id: str | None = None, *,
        participation: int | None = None,
    ) -> OpenAssignment:  # fmt: skip
        """Accept a HIT, or the next HIT of a group; an open assignment of it is returned instead.

        `participation` is the number of the worker's participation in a study, stored with the assignment;
        EndedError is raised if it has ended.
        """
        now = self.clock.now()
        with self.database.write() as connection:
            lifecycle.apply_due_changes(connection, now)
            if participation is not None and not CONTINUES.scalar(
                connection, {"participation": participation}
            ):
                raise EndedError
            row = _open_assignment(connection, worker_id, hit_id, group_id, participation)
            if row is None:
                next_id = hit_id or _next_hit_id(connection, worker_id, group_id or "", now)
                if next_id is None:
                    raise WorkError("NoWork", "There are no more HITs of this kind for you.")
                if KNOWN_WORKER.scalar(connection, {"worker_id": worker_id}) is None:
                    raise WorkError("Unknown", "There is no such worker.")
                offered = _offered_hit(connection, next_id)
                _check_allowed(connection, worker_id, offered, "accept")
                if hit_id is not None:
                    _check_available(connection, worker_id, offered, now)
                assignment_id = lifecycle.accept(
                    connection, offered, offered, worker_id, now, participation, self.grace_seconds
                )
                values = {"assignment_id": assignment_id}
                row = ASSIGNMENT_BY_ID.first(connection, values)
        return self._build_assignment(row)

    def assignment(self, assignment_id: str) -> OpenAssignment:
        """Return an assignment in any state; raise WorkError if the id is unknown."""
        self._apply_due_changes_if_stale()
        row = self.database.first(ASSIGNMENT_BY_ID, {"assignment_id": assignment_id})
        if row is None:
            raise WorkError("Unknown", "There is no such assignment.")
        return self._build_assignment(row)

    def assignment_number(self, assignment_id: str) -> int:
        """Return the number of an assignment among all of its HIT, in the order of acceptance, from 0.

        It never changes, since returned and abandoned assignments count. A page chooses a variant by it.
        """
        with self.database.read() as connection:
            values = {"assignment_id": assignment_id}
            return int(EARLIER_ASSIGNMENTS.scalar(connection, values))

    def _build_assignment(self, row: Row[Any]) -> OpenAssignment:
        return OpenAssignment(
            row.assignment_id, row.hit_id, row.hit_type_id, row.worker_id, row.accepted, row.deadline,
            row.due if row.status == "Accepted" else row.deadline, row.title,
            self.question(row.hit_id), _dollars(row.reward), row.status, row.study,
        )  # fmt: skip

    def open_assignments(self, worker_id: str, study: str | None = None) -> list[OpenAssignment]:
        """Return the worker's accepted assignments that are not yet submitted, oldest first.

        `study`: only assignments of this study; the same in `history` and `progress`.
        """
        self._apply_due_changes_if_stale()
        with self.database.read() as connection:
            query = OPEN_ASSIGNMENTS
            if study is not None:
                query = query.where(participation_table.c.study == study)
            rows = connection.execute(query, {"worker_id": worker_id}).all()
        return [self._build_assignment(row) for row in rows]

    def submit(
        self, assignment_id: str, worker_id: str, fields: Sequence[tuple[str, str]],
        selections: Container[str] = (),
    ) -> bool:  # fmt: skip
        """Submit an answer; return False, without changes, if the assignment was already submitted.

        `selections`: multiple-choice questions; see `to_xml`.
        """
        answer = to_xml(fields, selections)
        now = self.clock.now()
        with self.database.write() as connection:
            lifecycle.apply_due_changes(connection, now)
            row = _own_assignment_row(connection, assignment_id, worker_id)
            if row.status in SUBMITTED_STATUSES:
                return False
            if row.status != "Accepted":
                raise WorkError("Expired", "The assignment was returned or has expired.")
            lifecycle.submit(connection, row, answer, now)
            return True

    def return_assignment(self, assignment_id: str, worker_id: str) -> None:
        """Return an assignment to the requester, for other workers; no effect if already returned."""
        now = self.clock.now()
        with self.database.write() as connection:
            lifecycle.apply_due_changes(connection, now)
            row = _own_assignment_row(connection, assignment_id, worker_id)
            if row.status == "Accepted":
                lifecycle.release(connection, row, "Returned", now)
            elif row.status not in ("Returned", "Abandoned"):
                raise WorkError("Closed", "The assignment was submitted and cannot be returned.")

    def history(
        self, worker_id: str, study: str | None = None, *, limit: int = 100
    ) -> list[SubmittedAssignment]:
        """Return the worker's submitted assignments, newest first."""
        self._apply_due_changes_if_stale()
        with self.database.read() as connection:
            rows = connection.execute(
                select(assignment, hit_type.c.title)
                .join(hit, hit.c.hit_id == assignment.c.hit_id)
                .join(hit_type, hit_type.c.hit_type_id == hit.c.hit_type_id)
                .where(_is_work_of(worker_id, study), assignment.c.submitted.is_not(None))
                .order_by(assignment.c.submitted.desc())
                .limit(limit)
            ).all()
        return [
            SubmittedAssignment(row.assignment_id, row.title, row.submitted, row.status, _dollars(row.reward),
                 row.feedback or "")
            for row in rows
        ]  # fmt: skip

    def has_submitted(self, worker_id: str) -> bool:
        """Return whether the worker has submitted an assignment, in a study or outside."""
        return self.database.first(SUBMITTED, {"worker_id": worker_id}) is not None

    def progress(self, worker_id: str, study: str | None = None) -> WorkerProgress:
        """Return the worker's counts and earnings."""
        self._apply_due_changes_if_stale()
        with self.database.read() as connection:
            rows = connection.execute(
                select(assignment.c.status, func.count(), func.sum(assignment.c.reward))
                .where(_is_work_of(worker_id, study))
                .group_by(assignment.c.status)
            ).all()
            bonus_cents = connection.scalar(
                select(func.sum(bonus.c.amount))
                .join(assignment, assignment.c.assignment_id == bonus.c.assignment_id)
                .where(_is_work_of(worker_id, study))
            )
        counts = {status: (count, reward) for status, count, reward in rows}
        approved, earned = counts.get("Approved", (0, 0))
        rejected, pending = counts.get("Rejected", (0, 0))[0], counts.get("Submitted", (0, 0))[0]
        submitted = approved + rejected + pending
        return WorkerProgress(
            submitted, approved, rejected, pending, _dollars(earned + (bonus_cents or 0))
        )

    def request_qualification(
        self, worker_id: str, qualification_type_id: str, fields: Sequence[tuple[str, str]] = ()
    ) -> Literal["Granted", "Pending"]:
        """Request a qualification, with the answers to its test; raise WorkError if not possible."""
        with self.database.write() as connection:
            try:
                return qualification_requests.request(
                    connection, worker_id, qualification_type_id, fields, self.clock.now()
                )
            except qualification_requests.NotPossibleError as error:
                raise WorkError("NotEligible", str(error)) from None

    def requestable(self, worker_id: str) -> list[qualification_requests.RequestableQualification]:
        """Return the qualifications that workers can request, with this worker's values."""
        with self.database.read() as connection:
            return qualification_requests.list_requestable(connection, worker_id)

    def messages(self, worker_id: str, study: str | None = None) -> list[Message]:
        """Return the requester's messages to the worker, newest first; with `study` only replies in it."""
        query = select(message.c.subject, message.c.text, message.c.at).where(
            message.c.worker_id == worker_id
        )
        if (
            study is not None
        ):  # a reply has the time at which the message of the worker was answered
            query = query.where(
                exists().where(
                    inquiry.c.worker_id == worker_id, inquiry.c.study == study,
                    inquiry.c.answered == message.c.at,
                )
            )  # fmt: skip
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(message.c.number.desc())).all()
        return [Message(*row) for row in rows]

    def apply_due_changes(self) -> None:
        """Apply all due changes now; called periodically by the server."""
        self._last_due_check = float("-inf")
        self._apply_due_changes_if_stale()

    def _apply_due_changes_if_stale(self) -> None:
        """Apply due changes before a read, at most once per second; writers always apply them first."""
        now = self.clock.now()
        if 0 <= now - self._last_due_check < DUE_CHECK_SECONDS:
            return
        self._last_due_check = now
        with self.database.read() as connection:
            due = lifecycle.has_due_changes(connection, now)
        if due:
            with self.database.write() as connection:
                lifecycle.apply_due_changes(connection, now)


def register_worker(
    connection: Connection, worker_id: str, now: float, *, country: str | None, subdivision: str | None = None
) -> None:  # fmt: skip
    """Register a worker if new; a given country replaces the stored one."""
    is_worker = worker.c.worker_id == worker_id
    if connection.scalar(select(worker.c.worker_id).where(is_worker)) is None:
        connection.execute(insert(worker).values(worker_id=worker_id, registered=now))
    if country:
        values = {"country": country, "subdivision": subdivision}
        connection.execute(update(worker).where(is_worker).values(**values))


def _dollars(cents: int) -> Decimal:
    return Decimal(cents) / 100


def _is_work_of(worker_id: str, study: Any) -> Any:
    """Return the SQL condition for assignments of a worker; in a study unless `study` is None."""
    is_of_worker = assignment.c.worker_id == worker_id
    if study is None:
        return is_of_worker
    in_study = select(participation_table.c.number).where(
        participation_table.c.worker_id == worker_id, participation_table.c.study == study
    )
    return and_(is_of_worker, assignment.c.participation.in_(in_study))


def _build_offer(row: Row[Any], n_available: int, missing: Sequence[UnmetRequirement]) -> Offer:
    return Offer(
        row.hit_type_id, row.group_id, row.title, row.description, row.keywords, _dollars(row.reward),
        row.duration, min(n_available, MAX_COUNTED_HITS), n_available > MAX_COUNTED_HITS,
        row.sample_hit_id, not missing, tuple(missing),
    )  # fmt: skip


def _next_hit_id(connection: Connection, worker_id: str, group_id: str, now: float) -> str | None:
    values = {"worker_id": worker_id, "group_id": group_id, "now": now}
    candidates = (NEXT_HIT_IDS.scalar(connection, values) or "").split()
    return min(candidates, key=lambda hit_id: _shuffle_key(worker_id, hit_id), default=None)


def _shuffle_key(worker_id: str, hit_id: str) -> bytes:
    return hashlib.blake2b(f"{worker_id} {hit_id}".encode(), digest_size=8).digest()


def _offered_hit(connection: Connection, hit_id: str) -> Row[Any]:
    """Return a HIT with the terms of its type, without its question."""
    row: Row[Any] | None = OFFERED_HIT.first(connection, {"hit_id": hit_id})
    if row is None:
        raise WorkError("Unknown", "There is no such HIT.")
    return row


def _check_allowed(connection: Connection, worker_id: str, row: Row[Any], action: str) -> None:
    if is_blocked(connection, worker_id):
        raise WorkError("Blocked", "The requester has blocked you.")
    if row.qualifications:
        qualifications: WorkerQualifications = worker_qualifications(connection, worker_id)
        if missing := unmet_requirements(row.qualifications, qualifications, action):
            raise WorkError("NotEligible", f"Unmet requirements: {'; '.join(map(str, missing))}.")


def _open_assignment(
    connection: Connection, worker_id: str, hit_id: str | None, group_id: str | None,
    number: int | None,
) -> Row[Any] | None:  # fmt: skip
    """Return the worker's open assignment of the HIT or, without a HIT, of the group.

    `number` is that of a participation; then only assignments of its study count.
    """
    query, values = (
        (OPEN_OF_GROUP, {"group_id": group_id})
        if hit_id is None
        else (OPEN_OF_HIT, {"hit_id": hit_id})
    )
    parameters = {"worker_id": worker_id, "participation": number, **values}
    row: Row[Any] | None = query.first(connection, parameters)
    return row


def _check_available(connection: Connection, worker_id: str, row: Row[Any], now: float) -> None:
    values = {"worker_id": worker_id, "hit_id": row.hit_id}
    if COUNTED_ASSIGNMENT_OF_HIT.scalar(connection, values) is not None:
        raise WorkError("AlreadyDone", "You have already done this HIT.")
    if row.expiration <= now or row.status == "Disposed":
        raise WorkError("Expired", "The HIT is no longer offered.")
    if row.status != "Assignable":
        raise WorkError("Full", "All assignments of this HIT are taken.")


def _own_assignment_row(connection: Connection, assignment_id: str, worker_id: str) -> Row[Any]:
    values = {"assignment_id": assignment_id, "worker_id": worker_id}
    row: Row[Any] | None = OWN_ASSIGNMENT.first(connection, values)
    if row is None:  # the same message for unknown ids and other workers' assignments
        raise WorkError("NotYours", "You have no such assignment.")
    return row
