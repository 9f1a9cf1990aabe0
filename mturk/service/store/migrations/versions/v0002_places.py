"""Version 0002: the database itself refuses an assignment for which the HIT has no place."""

from __future__ import annotations

from alembic import op

from mturk.service.store.migrations.versions.v0001_first import hit

__all__ = ["down_revision", "revision", "upgrade"]

revision, down_revision = "0002", "0001"
TAKEN = "pending + submitted + completed <= max_assignments"
NOT_NEGATIVE = "pending >= 0 AND submitted >= 0 AND completed >= 0"


def upgrade() -> None:
    """Add the constraints; SQLite can do so only by writing the table anew."""
    with op.batch_alter_table("hit", copy_from=hit) as batch:
        batch.create_check_constraint("hit_places", TAKEN)
        batch.create_check_constraint("hit_counts", NOT_NEGATIVE)
