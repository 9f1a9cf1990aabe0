"""What is asked of a model: the registry of tasks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from giccs.tasks.pairwise import PairwiseSTS

__all__ = ["TASKS", "open_task"]

TASKS = {"pairwise-sts": "giccs.tasks.pairwise:PairwiseSTS"}
"""Name of a task -> module and class; imported only when it is asked for."""


def open_task(name: str, **options: Any) -> PairwiseSTS:
    """Return the task with its options.

    >>> open_task("pairwise-sts", history="with").history
    'with'
    """
    module, _, kind = TASKS[name].partition(":")
    task: PairwiseSTS = getattr(import_module(module), kind)(**options)
    return task
