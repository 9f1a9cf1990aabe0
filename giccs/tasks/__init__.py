"""What is asked of a model: the registry of tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from bws.options import MAX_SEED, check_options, option
from giccs.benchmark.languages import LANGUAGE_HELP, language_tag
from giccs.progress import Progress

if TYPE_CHECKING:
    from bws.problems import Problem
    from giccs.measures.results import TaskOutput

__all__ = [
    "CHOICES",
    "DEFAULT_TASKS",
    "METRICS",
    "PAIR_SCORES",
    "TASKS",
    "Data",
    "ResultKind",
    "Task",
    "TaskKind",
    "TaskOptions",
    "open_tasks",
    "result_kind",
    "task_modules",
    "task_option_names",
]

TASKS = {
    "pairwise-sts": "giccs.tasks.pairwise:TASK",
    "multiple-choice-sts": "giccs.tasks.multiple_choice:TASK",
    "csts": "giccs.csts.similarity:TASK",
    "csts-prompt": "giccs.csts.prompting:TASK",
    "evalrank-sentence": "giccs.evalrank.task:SENTENCES",
    "evalrank-word": "giccs.evalrank.task:WORDS",
    "word-similarity": "giccs.evalrank.agreement:WORD_SIMILARITY",
    "sentence-similarity": "giccs.evalrank.agreement:SENTENCE_SIMILARITY",
    "classification": "giccs.evalrank.classification:TASK",
    "uniformity": "giccs.evalrank.uniformity:TASK",
}
"""Name of a task -> ``module:name`` of its `TaskKind`; imported when the task is asked for."""
DEFAULT_TASKS = ("pairwise-sts", "multiple-choice-sts")
"""What is asked where nothing is said: the tasks of the benchmark of dialogues."""


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """How to ask; each `TaskKind` names the options that concern it, besides the seed."""

    history: str | None = option(
        None,
        "Show the turns before the last one?  [default: without; multiple-choice-sts both]",
        choices=("without", "with", "both"),
    )
    seed: int = option(
        0,
        "Seed of chance, of the intervals, of the order of options and of what is drawn.",
        bounds=(0, MAX_SEED),
    )
    template: str | None = option(
        None,
        "Prompt of a question: figure2-de-1, figure2-en-1, or a file of your own.  [default: that of the "
        "data's language]",
        metavar="NAME|FILE",
    )
    language: str | None = option(None, LANGUAGE_HELP, parse=language_tag, metavar="TAG")
    answer: str = option(
        "sentence", "What is to follow the prompt of a question.", choices=("sentence", "letter")
    )
    permutations: int = option(
        1, "Average over N cyclic orders of the options.", bounds=(1, 26), metavar="N"
    )
    chat_template: bool = option(False, "Ask in the model's own chat template.")
    split: str = option(
        "validation",
        "Which part of a folder with C-STS.",
        choices=("train", "validation", "test"),
    )
    encoding: str = option(
        "bi", "csts: read the condition with each sentence, or by itself.", choices=("bi", "tri")
    )
    condition: bool = option(True, "csts: show the condition at all?")
    answers: str | None = option(
        None,
        "csts, csts-prompt: put the answers of giccs-csts answers in the sentences' place.",
        metavar="FILE",
    )
    instruction: str = option(
        "short", "csts-prompt: what the prompt says first.", choices=("none", "short", "long")
    )
    shots: int = option(
        0, "csts-prompt: examples in the prompt; an even number.", bounds=(0, 1000), metavar="N"
    )
    examples: str | None = option(
        None,
        "csts-prompt: where they are drawn from.  [default: the training split]",
        metavar="FILE",
    )
    similarity: str = option(
        "cos",
        "evalrank-*, word-similarity, sentence-similarity: how vectors are compared; cos-centred is for "
        "evalrank-*.",
        choices=("cos", "cos-centred", "l2"),
    )
    reference: bool = option(
        False,
        "evalrank-*: rank as the published program does, to show the difference.",
        flag="--reference-compat",
    )

    def __post_init__(self) -> None:
        check_options(self)


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

    def parameters(self, model: Any, data: Any) -> Mapping[str, Any]:
        """Return what the metrics depend on besides model, data and version, for the signature."""
        ...

    def measure(self, model: Any, data: Any, progress: Progress) -> TaskOutput:
        """Ask the model about all of the data and measure its answers."""
        ...


@dataclass(frozen=True, slots=True)
class ResultKind:
    """What results of a task hold: their tables, charts, comparisons and exports depend on it."""

    tables: Literal["pairs", "choices", "metrics"]
    """``pairs``: correlations of predictions with the scores of a benchmark's items. ``choices``: accuracies
    of multiple choice, by history. ``metrics``: anything else; every metric has a column."""
    main_metric: str = ""
    """By which results are ranked, and which is shown by part of the data; empty: the first metric."""
    comparison_metrics: Sequence[str] = ()
    """Metrics by which pairs of models are compared; see `giccs.report.model_comparison`."""
    has_ceiling: bool = False
    """Whether the noise ceiling of the benchmark is the limit of the metrics."""


PAIR_SCORES = ResultKind("pairs", "spearman", ("spearman", "rank_spearman"), has_ceiling=True)
CHOICES = ResultKind("choices", "accuracy", ("accuracy",))
METRICS = ResultKind("metrics")


@dataclass(frozen=True, slots=True)
class TaskKind:
    """A task as the registry knows it, without a model."""

    open: Callable[[TaskOptions], Sequence[Task]]
    option_names: Sequence[str] = ()
    """Fields of `TaskOptions` that concern the task, besides the seed."""
    results: ResultKind = METRICS


@cache
def task_modules() -> Mapping[str, str]:
    """Return `TASKS`, and those of other packages: entry points of the group ``giccs.tasks``."""
    return TASKS | {point.name: point.value for point in entry_points(group="giccs.tasks")}


def _load_kind(name: str) -> TaskKind:
    module, _, attribute = task_modules()[name].partition(":")
    kind = getattr(import_module(module), attribute, None)
    if not isinstance(kind, TaskKind):
        message = f"task {name}: {task_modules()[name]} is no TaskKind; expected module:name of one"
        raise TypeError(message)
    return kind


def task_option_names(name: str) -> Sequence[str]:
    """Return the fields of `TaskOptions` that concern a task, besides the seed.

    >>> task_option_names("pairwise-sts")
    ('history',)
    """
    return _load_kind(name).option_names


def result_kind(name: str) -> ResultKind:
    """Return what results of a task hold; `METRICS` for a task that is not installed here.

    >>> result_kind("multiple-choice-sts").main_metric
    'accuracy'
    """
    return _load_kind(name).results if name in task_modules() else METRICS


def open_tasks(name: str, options: TaskOptions | None = None) -> Sequence[Task]:
    """Return the task; more than one where each history condition is a task of its own.

    >>> [task.history for task in open_tasks("pairwise-sts", TaskOptions(history="both"))]
    ['without', 'with']
    """
    return _load_kind(name).open(options or TaskOptions())
