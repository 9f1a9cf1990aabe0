"""How much a worker has done of one HIT group."""

from __future__ import annotations

from sqlalchemy import func, select

from mturk.endpoint.schema import assignment, hit, hit_type
from mturk.endpoint.work import Work

__all__ = ["submitted_in"]


def submitted_in(work: Work, worker_id: str, group_id: str) -> int:
    """Return how many assignments of the group the worker has submitted, whatever became of them."""
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
    with work.database.read() as connection:
        return int(connection.scalar(query) or 0)
