"""Version 0001: the schema before schema versions were stored."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

revision, down_revision = "0001", None

# A frozen copy: the current schema is in mturk/service/store/schema.py.
metadata = MetaData()
LIVE = ("Accepted", "Submitted", "Approved", "Rejected")

NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows of INTEGER keys only

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
    Column("number", NUMBER, primary_key=True, autoincrement=True),
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
    Column("unit", BigInteger, nullable=False, comment="reward and fee of one more assignment"),
    Column("committed", BigInteger, nullable=False, comment="what assignments not reviewed cost"),
    Column("held", BigInteger, nullable=False, comment="what the HIT holds of the balance"),
    Column("due", Float, comment="when it expires; null once that was dealt with"),
)
Index("hit_of_type", hit.c.hit_type_id, hit.c.status, hit.c.number)
Index("hit_of_status", hit.c.status, hit.c.number)
Index("hit_due", hit.c.due)

assignment = Table(
    "assignment",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
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
)
_live = assignment.c.status.in_(LIVE)
Index("one_of_worker_and_hit", assignment.c.hit_id, assignment.c.worker_id, unique=True,
      sqlite_where=_live, postgresql_where=_live)  # fmt: skip
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
    Column("number", NUMBER, primary_key=True, autoincrement=True),
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
    Column("number", NUMBER, primary_key=True, autoincrement=True),
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
    Column("number", NUMBER, primary_key=True, autoincrement=True),
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
    Column("number", NUMBER, primary_key=True, autoincrement=True),
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
    Column("number", NUMBER, primary_key=True, autoincrement=True),
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
    Column("number", NUMBER, primary_key=True, autoincrement=True),
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
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("worker_id", String, nullable=False),
    Column("subject", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Float, nullable=False),
)
Index("message_of_worker", message.c.worker_id)


def upgrade() -> None:
    """Create the tables."""
    metadata.create_all(op.get_bind())
