"""EvalRank among sentences (section 4.2)."""

from __future__ import annotations

from giccs.tasks import TaskOptions
from giccs.tasks.evalrank.task import EvalRank, ranking_task

__all__ = ["open_tasks"]


def open_tasks(options: TaskOptions) -> list[EvalRank]:
    """Return the task for the similarity that is asked for."""
    return ranking_task("sentence", options)
