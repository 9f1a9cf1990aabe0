"""Version 0003: sessions of workers, participations in studies, and revoked links."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0003", "0002"
ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the tables; existing assignments belong to no participation."""
    op.create_table(
        "participation",
        sa.Column("number", ROW_NUMBER, primary_key=True, autoincrement=True),
        sa.Column("study", sa.String, nullable=False),
        sa.Column("worker_id", sa.String, sa.ForeignKey("worker.worker_id"), nullable=False),
        sa.Column("panel_study", sa.String, nullable=False),
        sa.Column("panel_session", sa.String, nullable=False),
        sa.Column("browser", sa.String, nullable=False),
        sa.Column("joined", sa.Float, nullable=False),
        sa.Column("completed", sa.Float),
        sa.Column("released", sa.Float),
    )
    op.create_index("participation_of_worker", "participation", ["worker_id", "study"])
    op.create_index("participation_in_study", "participation", ["study"])
    op.create_table(
        "session",
        sa.Column("session_id", sa.String, primary_key=True),
        sa.Column("worker_id", sa.String, sa.ForeignKey("worker.worker_id"), nullable=False),
        sa.Column("participation", sa.BigInteger, sa.ForeignKey("participation.number")),
        sa.Column("started", sa.Float, nullable=False),
        sa.Column("ended", sa.Float),
    )
    op.create_index("session_of_participation", "session", ["participation"])
    op.create_table(
        "revoked_link",
        sa.Column("digest", sa.String, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.add_column("assignment", sa.Column("participation", sa.BigInteger))
