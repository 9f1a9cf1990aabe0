"""What is asked of a model: the registry of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Self

from giccs.progress import Progress

if TYPE_CHECKING:
    from bws.problems import Problem
    from giccs.results import Result

__all__ = ["BY_DEFAULT", "TAKES", "TASKS", "Data", "Task", "TaskOptions", "open_tasks"]

TASKS = {
    "pairwise-sts": "giccs.tasks.pairwise",
    "multiple-choice-sts": "giccs.tasks.multiple_choice",
    "csts": "giccs.tasks.csts.similarity",
    "csts-prompt": "giccs.tasks.csts.prompting",
    "evalrank-sentence": "giccs.tasks.evalrank.sentence",
    "evalrank-word": "giccs.tasks.evalrank.word",
    "word-similarity": "giccs.tasks.evalrank.word_similarity",
    "sentence-similarity": "giccs.tasks.evalrank.sentence_similarity",
    "classification": "giccs.tasks.evalrank.classification",
    "uniformity": "giccs.tasks.evalrank.uniformity",
}
"""Name of a task -> module whose ``open_tasks`` makes it; imported only when it is asked for."""
TAKES = {
    "pairwise-sts": ("history",),
    "multiple-choice-sts": (
        "history",
        "template",
        "language",
        "answer",
        "permutations",
        "chat_template",
    ),
    "csts": ("split", "encoding", "condition", "answers"),
    "csts-prompt": ("split", "answers", "instruction", "shots", "examples", "chat_template"),
    "evalrank-sentence": ("similarity", "reference"),
    "evalrank-word": ("similarity", "reference"),
    "word-similarity": ("similarity",),
    "sentence-similarity": ("similarity",),
    "classification": (),
    "uniformity": (),
}
"""Name of a task -> what of `TaskOptions` concerns it, besides the seed."""
BY_DEFAULT = ("pairwise-sts", "multiple-choice-sts")
"""What is asked where nothing is said: the tasks of the benchmark of dialogues."""


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """How to ask; a task takes what concerns it."""

    history: str | None = None
    """Show the turns before the last one: ``with``, ``without``, ``both``; None is the task's own way."""
    seed: int = 0
    """Of the intervals, of the order of options, of what is drawn."""
    template: str | None = None
    """Name or file of the prompt of a multiple-choice question; None is that of the data's language."""
    language: str | None = None
    """BCP 47 tag of data that state no language."""
    answer: str = "sentence"
    """What is to follow the prompt: the ``sentence`` or its ``letter``."""
    permutations: int = 1
    """Over how many cyclic orders of the options to average."""
    chat_template: bool = False
    """Put the prompt into the model's own chat template."""
    split: str = "validation"
    """Which part of C-STS: ``train``, ``validation`` or ``test``."""
    encoding: str = "bi"
    """How an encoder reads a condition: ``bi``, with each sentence, or ``tri``, by itself."""
    condition: bool = True
    """Whether the condition is shown at all."""
    answers: str | None = None
    """File with answers to the conditions' questions, which take the place of the sentences."""
    instruction: str = "short"
    """What a prompt says first: ``none``, ``short`` or ``long``."""
    shots: int = 0
    """Examples in a prompt."""
    examples: str | None = None
    """File that these are drawn from; None is the training split."""
    similarity: str = "cos"
    """How vectors are compared: ``cos``, ``l2``, or ``cos-centred``, less the mean of all that are ranked."""
    reference: bool = False
    """Rank as the published program of EvalRank does, to show the difference."""


class Data(Protocol):
    """What a task is asked on."""

    @property
    def name(self) -> str:
        """As the user called it."""
        ...

    @property
    def fingerprint(self) -> str:
        """Of the content, whatever its form."""
        ...

    @property
    def warnings(self) -> Sequence[Problem]:
        """What is odd but does not make it unusable."""
        ...

    def first(self, n: int, /) -> Self:
        """Return its first `n` dialogues, sentence pairs or the like."""
        ...

    def described(self) -> str:
        """Return how much of what it holds: ``300 items``."""
        ...


class Task(Protocol):
    """A question put to a model on all of some data."""

    @property
    def name(self) -> str:
        """As the user asks for it."""
        ...

    @property
    def default_data(self) -> str:
        """What is read where the user names nothing; empty where something must be named."""
        ...

    @property
    def read(self) -> Any:
        """From the name of data to a `Data`; equal for tasks that read alike. InputError with its faults."""
        ...

    def refuses(self, model: Any) -> str:
        """Return why the model cannot do it; empty where it can."""
        ...

    def signature(self, model: Any, data: Any) -> dict[str, Any]:
        """Return all that the result depends on, before anything is computed."""
        ...

    def evaluate(self, model: Any, data: Any, progress: Progress) -> Result:
        """Ask, and measure the answers."""
        ...


def open_tasks(name: str, options: TaskOptions | None = None) -> Sequence[Task]:
    """Return the task; more than one where each history condition is a task of its own.

    >>> [task.history for task in open_tasks("pairwise-sts", TaskOptions(history="both"))]
    ['without', 'with']
    """
    tasks: Sequence[Task] = import_module(TASKS[name]).open_tasks(options or TaskOptions())
    return tasks
