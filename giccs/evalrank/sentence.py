"""EvalRank among sentences (section 4.2)."""

from __future__ import annotations

from giccs.evalrank.task import EvalRank, ranking_task
from giccs.tasks import TaskOptions

__all__ = ["open_tasks"]

TAKES: tuple[str, ...] = ("similarity", "reference")
"""The fields of `TaskOptions` that concern the task."""


def open_tasks(options: TaskOptions) -> list[EvalRank]:
    """Return the task for the similarity that is asked for."""
    return ranking_task("sentence", options)
