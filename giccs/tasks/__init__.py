"""What is asked of a model: the registry of tasks."""

from __future__ import annotations

from giccs.tasks.pairwise import PairwiseSTS

__all__ = ["TASKS"]

TASKS = {PairwiseSTS.name: PairwiseSTS}
"""Name of a task -> the task."""
