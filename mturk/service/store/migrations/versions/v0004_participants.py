"""Version 0004: consent, answers before a study, messages to the requester, and the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0004", "0003"
ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the tables; earlier participations have no record of their consent."""
    op.add_column("hit", sa.Column("withdrawn", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("participation", sa.Column("answers", sa.JSON))
    op.add_column("participation", sa.Column("outcome", sa.String))
    op.create_table(
        "consent_wording",
        sa.Column("digest", sa.String, primary_key=True),
        sa.Column("language", sa.String, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_table(
        "consent",
        sa.Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
        sa.Column(
            "participation", sa.BigInteger, sa.ForeignKey("participation.number"), nullable=False
        ),
        sa.Column("study", sa.String, nullable=False),
        sa.Column("version", sa.String, nullable=False),
        sa.Column("digest", sa.String, sa.ForeignKey("consent_wording.digest"), nullable=False),
        sa.Column("language", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("withdrawn", sa.Float),
    )
    op.create_index("consent_of_participation", "consent", ["participation"])
    op.create_table(
        "inquiry",
        sa.Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
        sa.Column("worker_id", sa.String, sa.ForeignKey("worker.worker_id"), nullable=False),
        sa.Column("study", sa.String),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("answered", sa.Float),
    )
    op.create_index("inquiry_of_worker", "inquiry", ["worker_id"])
    op.create_table(
        "audit",
        sa.Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
    )
    op.create_index("audit_at", "audit", ["at"])
