"""The database schema. Times are seconds since the epoch, amounts are cents, ids are strings."""

from __future__ import annotations

import secrets

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    literal_column,
)

metadata = MetaData()
SUBMITTED_STATUSES = ("Submitted", "Approved", "Rejected")
"""Statuses of submitted assignments, which a requester sees."""
COUNTED_STATUSES = ("Accepted", *SUBMITTED_STATUSES)
"""Statuses of assignments that count towards max_assignments; Returned and Abandoned do not."""

VERSIONS = ("0001", "0002", "0003", "0004")
"""Schema versions, oldest first; each after the first has a migration in mturk/service/store/migrations."""

ROW_NUMBER = BigInteger().with_variant(
    Integer, "sqlite"
)  # SQLite numbers rows of INTEGER keys only

schema_version = Table(  # as created by Alembic
    "schema_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="schema_version_pkc"),
)

setting = Table(
    "setting",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

account = Table(
    "account",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("available", BigInteger, nullable=False),
    Column("on_hold", BigInteger, nullable=False),
)

hit_type = Table(
    "hit_type",
    metadata,
    Column("hit_type_id", String, primary_key=True),
    Column("group_id", String, nullable=False, unique=True),
    Column("digest", String, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("keywords", Text, nullable=False),
    Column("reward", BigInteger, nullable=False),
    Column("duration", BigInteger, nullable=False),
    Column("auto_approval_delay", BigInteger, nullable=False),
    Column("qualifications", JSON, nullable=False),
)

hit = Table(
    "hit",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("hit_id", String, nullable=False, unique=True),
    Column("hit_type_id", ForeignKey("hit_type.hit_type_id"), nullable=False),
    Column("created", Float, nullable=False),
    Column("expiration", Float, nullable=False),
    Column("question", Text, nullable=False),
    Column("annotation", Text, nullable=False),
    Column("max_assignments", BigInteger, nullable=False),
    Column("status", String, nullable=False),
    Column("review_status", String, nullable=False),
    Column("pending", BigInteger, nullable=False),
    Column("submitted", BigInteger, nullable=False),
    Column("completed", BigInteger, nullable=False),
    Column(
        "withdrawn",
        BigInteger,
        nullable=False,
        default=0,
        server_default="0",
        comment="submitted assignments whose answers were withdrawn",
    ),
    Column("unit", BigInteger, nullable=False, comment="reward and fee of one more assignment"),
    Column("committed", BigInteger, nullable=False, comment="what assignments not reviewed cost"),
    Column("held", BigInteger, nullable=False, comment="what the HIT holds of the balance"),
    Column("due", Float, comment="when it expires; null once that was dealt with"),
    CheckConstraint("pending + submitted + completed <= max_assignments", name="hit_places"),
    CheckConstraint("pending >= 0 AND submitted >= 0 AND completed >= 0", name="hit_counts"),
)
Index("hit_of_type", hit.c.hit_type_id, hit.c.status, hit.c.number)
Index("hit_of_status", hit.c.status, hit.c.number)
Index("hit_due", hit.c.due)

assignment = Table(
    "assignment",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("assignment_id", String, nullable=False, unique=True),
    Column("hit_id", ForeignKey("hit.hit_id"), nullable=False),
    Column("worker_id", ForeignKey("worker.worker_id"), nullable=False),
    Column("status", String, nullable=False),
    Column("reward", BigInteger, nullable=False),
    Column("unit", BigInteger, nullable=False, comment="reward and fee"),
    Column("auto_approval_delay", BigInteger, nullable=False),
    Column("accepted", Float, nullable=False),
    Column("deadline", Float, nullable=False),
    Column("submitted", Float),
    Column("auto_approval", Float),
    Column("approved", Float),
    Column("rejected", Float),
    Column("answer", Text),
    Column("feedback", Text),
    Column("due", Float, comment="deadline, then the time of automatic approval, then null"),
    Column("participation", BigInteger, comment="participation.number; null outside studies"),
)
counts_towards_maximum = assignment.c.status.in_(
    [literal_column(f"'{status}'", String) for status in COUNTED_STATUSES]
)
"""Condition for assignments that count towards max_assignments. The statuses are literals in the query, not
bound parameters: only then can SQLite use the partial index below instead of a scan of all assignments of
the worker."""
Index("one_of_worker_and_hit", assignment.c.hit_id, assignment.c.worker_id, unique=True,
      sqlite_where=counts_towards_maximum, postgresql_where=counts_towards_maximum)  # fmt: skip
Index("assignment_of_worker", assignment.c.worker_id, assignment.c.status)
Index("assignment_due", assignment.c.due)

worker = Table(
    "worker",
    metadata,
    Column("worker_id", String, primary_key=True),
    Column("country", String),
    Column("subdivision", String),
    Column("registered", Float, nullable=False),
)

participation = Table(
    "participation",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("study", String, nullable=False),
    Column("worker_id", ForeignKey("worker.worker_id"), nullable=False),
    Column("panel_study", String, nullable=False, comment="STUDY_ID of the panel, or empty"),
    Column("panel_session", String, nullable=False, comment="SESSION_ID of the panel, or empty"),
    Column("browser", String, nullable=False, comment="digest of the browser's key"),
    Column("joined", Float, nullable=False),
    Column("completed", Float, comment="when the completion code was first shown"),
    Column("released", Float, comment="when the requester ended the binding"),
    Column("answers", JSON, comment="question -> answer before the study"),
    Column("outcome", String, comment="finished, screened_out, timed_out, withdrawn; null before"),
)
Index("participation_of_worker", participation.c.worker_id, participation.c.study)
Index("participation_in_study", participation.c.study)

consent_wording = Table(
    "consent_wording",
    metadata,
    Column("digest", String, primary_key=True, comment="SHA-256 of the text in UTF-8"),
    Column("language", String, nullable=False),
    Column("text", Text, nullable=False),
)

consent = Table(
    "consent",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("participation", BigInteger, ForeignKey("participation.number"), nullable=False),
    Column("study", String, nullable=False),
    Column("version", String, nullable=False, comment="version of the study's information"),
    Column("digest", ForeignKey("consent_wording.digest"), nullable=False),
    Column("language", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("withdrawn", Float),
)
Index("consent_of_participation", consent.c.participation)

session = Table(
    "session",
    metadata,
    Column("session_id", String, primary_key=True, comment="digest of the cookie's nonce"),
    Column("worker_id", ForeignKey("worker.worker_id"), nullable=False),
    Column("participation", BigInteger, ForeignKey("participation.number")),
    Column("started", Float, nullable=False),
    Column("ended", Float),
)
Index("session_of_participation", session.c.participation)

revoked_link = Table(
    "revoked_link",
    metadata,
    Column("digest", String, primary_key=True, comment="digest of the link's token"),
    Column("at", Float, nullable=False),
)

token = Table(
    "token",
    metadata,
    Column("operation", String, primary_key=True),
    Column("token", String, primary_key=True),
    Column("made", String, nullable=False, comment="id of what the first call made"),
    Column("at", Float, nullable=False),
)
Index("token_age", token.c.at)

bonus = Table(
    "bonus",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("bonus_id", String, nullable=False, unique=True),
    Column("worker_id", String, nullable=False),
    Column("assignment_id", ForeignKey("assignment.assignment_id"), nullable=False),
    Column("hit_id", String, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Float, nullable=False),
)
Index("bonus_of_assignment", bonus.c.assignment_id)
Index("bonus_of_hit", bonus.c.hit_id)
Index("bonus_of_worker", bonus.c.worker_id)

qualification_type = Table(
    "qualification_type",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("qualification_type_id", String, nullable=False, unique=True),
    Column("name", Text, nullable=False, unique=True),
    Column("description", Text, nullable=False),
    Column("keywords", Text, nullable=False),
    Column("status", String, nullable=False),
    Column("created", Float, nullable=False),
    Column("retry_delay", BigInteger),
    Column("test", Text),
    Column("answer_key", Text),
    Column("test_duration", BigInteger),
    Column("auto_granted", Boolean, nullable=False),
    Column("auto_granted_value", BigInteger),
)

qualification = Table(
    "qualification",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("qualification_type_id", String, nullable=False),
    Column("worker_id", String, nullable=False),
    Column("value", BigInteger, nullable=False),
    Column("status", String, nullable=False),
    Column("granted", Float, nullable=False),
)
Index("one_of_type_and_worker", qualification.c.qualification_type_id, qualification.c.worker_id,
      unique=True)  # fmt: skip
Index("qualification_of_worker", qualification.c.worker_id)

qualification_request = Table(
    "qualification_request",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("request_id", String, nullable=False, unique=True),
    Column("qualification_type_id", String, nullable=False),
    Column("worker_id", String, nullable=False),
    Column("test", Text),
    Column("answer", Text),
    Column("at", Float, nullable=False),
    Column("status", String, nullable=False),
)
Index("request_of_type_and_worker", qualification_request.c.qualification_type_id,
      qualification_request.c.worker_id)  # fmt: skip

block = Table(
    "block",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("worker_id", String, nullable=False, unique=True),
    Column("reason", Text, nullable=False),
)

notification = Table(
    "notification",
    metadata,
    Column("hit_type_id", ForeignKey("hit_type.hit_type_id"), primary_key=True),
    Column("specification", JSON),
    Column("active", Boolean, nullable=False),
)

event = Table(
    "event",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("kind", String, nullable=False),
    Column("hit_type_id", String),
    Column("hit_id", String),
    Column("assignment_id", String),
    Column("specification", JSON),
    Column("at", Float, nullable=False),
)

message = Table(
    "message",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("worker_id", String, nullable=False),
    Column("subject", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Float, nullable=False),
)
Index("message_of_worker", message.c.worker_id)

inquiry = Table(
    "inquiry",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("worker_id", ForeignKey("worker.worker_id"), nullable=False),
    Column("study", String, comment="null outside studies"),
    Column("subject", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("answered", Float),
)
Index("inquiry_of_worker", inquiry.c.worker_id)

audit = Table(
    "audit",
    metadata,
    Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("actor", String, nullable=False, comment="access key id, or the user of a command"),
    Column("action", String, nullable=False),
    Column(
        "subject",
        String,
        nullable=False,
        comment="id of an assignment, HIT or study; never of a person",
    ),
    Column("details", JSON, nullable=False),
)
Index("audit_at", audit.c.at)

ID_LENGTH = 29
BASE_32 = bytes(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[byte % 32] for byte in range(256))
"""Byte -> character, each of the 32 characters for 8 bytes."""


def new_id() -> str:
    """Return a new random id for a HIT, HIT type, assignment, qualification type or request.

    >>> len(new_id()), new_id()[0]
    (30, '3')
    """
    return "3" + secrets.token_bytes(ID_LENGTH).translate(BASE_32).decode()
