"""Version 0002: constraints against more assignments per HIT than max_assignments."""

from __future__ import annotations

from alembic import op

from mturk.service.store.migrations.versions.v0001_first import hit

revision, down_revision = "0002", "0001"
WITHIN_MAX_ASSIGNMENTS = "pending + submitted + completed <= max_assignments"
NOT_NEGATIVE = "pending >= 0 AND submitted >= 0 AND completed >= 0"


def upgrade() -> None:
    """Add the constraints; SQLite requires the table to be rebuilt."""
    with op.batch_alter_table("hit", copy_from=hit) as batch:
        batch.create_check_constraint("hit_places", WITHIN_MAX_ASSIGNMENTS)
        batch.create_check_constraint("hit_counts", NOT_NEGATIVE)
