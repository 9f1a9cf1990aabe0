"""What is asked of a model: the registry of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.benchmark import Benchmark
    from giccs.results import Result

__all__ = ["TASKS", "Task", "TaskOptions", "open_tasks"]

TASKS = {
    "pairwise-sts": "giccs.tasks.pairwise",
    "multiple-choice-sts": "giccs.tasks.multiple_choice",
}
"""Name of a task -> module whose ``open_tasks`` makes it; imported only when it is asked for."""


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """How to ask; a task takes what concerns it."""

    history: str | None = None
    """Show the turns before the last one: ``with``, ``without``, ``both``; None is the task's own way."""
    seed: int = 0
    """Of the intervals, and of the order of options."""
    template: str = "figure2-de-1"
    """Name or file of the prompt of a multiple-choice question."""
    answer: str = "sentence"
    """What is to follow the prompt: the ``sentence`` or its ``letter``."""
    permutations: int = 1
    """Over how many cyclic orders of the options to average."""
    chat_template: bool = False
    """Put the prompt into the model's own chat template."""


class Task(Protocol):
    """A question put to a model on every dialogue of a benchmark."""

    @property
    def name(self) -> str:
        """As the user asks for it."""
        ...

    def refuses(self, model: Any) -> str:
        """Return why the model cannot do it; empty where it can."""
        ...

    def signature(self, model: Any, benchmark: Benchmark) -> dict[str, Any]:
        """Return all that the result depends on, before anything is computed."""
        ...

    def evaluate(self, model: Any, benchmark: Benchmark, progress: Progress) -> Result:
        """Ask, and measure the answers."""
        ...


def open_tasks(name: str, options: TaskOptions | None = None) -> Sequence[Task]:
    """Return the task; more than one where each history condition is a task of its own.

    >>> [task.history for task in open_tasks("pairwise-sts", TaskOptions(history="both"))]
    ['without', 'with']
    """
    tasks: Sequence[Task] = import_module(TASKS[name]).open_tasks(options or TaskOptions())
    return tasks
