"""Registry of tasks and their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from bws.base.options import MAX_SEED, check_options, option
from giccs.benchmark.languages import LANGUAGE_HELP, language_tag
from giccs.progress import Progress

if TYPE_CHECKING:
    from bws.base.problems import Problem
    from giccs.measures.results import TaskOutput

__all__ = [
    "CHOICES",
    "DEFAULT_SIMILARITY",
    "DEFAULT_TASKS",
    "HISTORY_ENCODINGS",
    "METRICS",
    "PAIR_SCORES",
    "TASKS",
    "Data",
    "ResultKind",
    "Task",
    "TaskKind",
    "TaskOptions",
    "open_tasks",
    "register_task",
    "result_kind",
    "task_names",
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
"""Name of a task -> ``module:name`` of its `TaskKind`; imported on demand."""
DEFAULT_TASKS = ("pairwise-sts", "multiple-choice-sts")
"""Default tasks: those of the benchmark of dialogues."""
HISTORY_ENCODINGS = ("joined", "speakers", "instruction", "mean")
"""How the history of a dialogue is added to the texts of encoders, see `giccs.tasks.pairwise`."""
DEFAULT_SIMILARITY = "cos"
"""Similarity of vectors in tasks that do not use that of the model."""


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """Options of tasks; each `TaskKind` lists the options that it uses, besides the seed."""

    history: str | None = option(
        None,
        "Show the turns before the last one.  [default: without; multiple-choice-sts both]",
        choices=("without", "with", "both"),
    )
    seed: int = option(
        0,
        "Seed of random scores, intervals, order of options and sampled examples.",
        bounds=(0, MAX_SEED),
    )
    history_encoding: tuple[str, ...] = option(
        (),
        "pairwise-sts: how the history is added to both utterances: turns joined, joined with their "
        "speakers, after an instruction, or mean of the vectors of turns. Can be repeated: one result each, "
        "and one without history unless --history with.  [default: joined]",
        choices=HISTORY_ENCODINGS,
    )
    template: str | None = option(
        None,
        "Prompt template of questions: figure2-de-1, figure2-en-1, or a file.  [default: that of the "
        "language of each dialogue]",
        metavar="NAME|FILE",
        is_file=True,
    )
    language: str | None = option(None, LANGUAGE_HELP, parse=language_tag, metavar="TAG")
    answer: str | None = option(
        None,
        "Answer to a question: the sentence or its letter.  [default: sentence; letter if it is generated]",
        choices=("sentence", "letter"),
    )
    permutations: int = option(
        1, "Average over N cyclic orders of the options.", bounds=(1, 26), metavar="N"
    )
    choose_by: str | None = option(
        None,
        "Choice of an option: by the likelihood of each answer, the log-probabilities of letters in the "
        "answer of a chat server, or a generated answer.  [default: the first that the model supports]",
        choices=("likelihood", "logprobs", "generation"),
    )
    max_tokens: int = option(
        1024,
        "Maximum number of tokens of a generated answer, with its reasoning.",
        bounds=(1, 1_000_000),
        metavar="N",
    )
    chat_template: bool = option(False, "Use the model's chat template.")
    split: str = option(
        "validation",
        "Split of a C-STS folder.",
        choices=("train", "validation", "test"),
    )
    encoding: str = option(
        "bi",
        "csts: encode the condition with each sentence (bi), or separately (tri).",
        choices=("bi", "tri"),
    )
    condition: bool = option(True, "csts: show the condition.")
    answers: str | None = option(
        None,
        "csts, csts-prompt: replace the sentences by answers from giccs csts answers.",
        metavar="FILE",
        is_file=True,
    )
    instruction: str = option(
        "short",
        "csts-prompt: instruction at the beginning of the prompt.",
        choices=("none", "short", "long"),
    )
    shots: int = option(
        0, "csts-prompt: number of examples in the prompt; even.", bounds=(0, 1000), metavar="N"
    )
    examples: str | None = option(
        None,
        "csts-prompt: source of the examples.  [default: the training split]",
        metavar="FILE",
        is_file=True,
    )
    similarity: str | None = option(
        None,
        "Similarity of vectors: cosine, dot product or Euclidean distance; dot is for pairwise-sts, "
        "cos-centred for evalrank-*.  [default: cos; in pairwise-sts the one saved with the model, if any]",
        choices=("cos", "cos-centred", "dot", "l2"),
    )
    reference: bool = option(
        False,
        "evalrank-*: rank like the published program, for comparison.",
        flag="--reference-compat",
    )

    def __post_init__(self) -> None:
        check_options(self)


class Data(Protocol):
    """Data of a task."""

    @property
    def name(self) -> str:
        """The name given by the user."""
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of the content, independent of the file format."""
        ...

    @property
    def warnings(self) -> Sequence[Problem]:
        """Problems that do not prevent use."""
        ...

    def first(self, n: int, /) -> Self:
        """Return the first `n` dialogues, sentence pairs or similar units."""
        ...

    def described(self) -> str:
        """Return the size: ``300 items``."""
        ...


class Task(Protocol):
    """A measurement of models on a data set."""

    @property
    def name(self) -> str:
        """The name given by the user."""
        ...

    @property
    def default_data(self) -> str:
        """Name of the default data; empty if data must be specified."""
        ...

    @property
    def read(self) -> Any:
        """Reader from the name of data to a `Data`; equal for tasks with the same reader. Raises
        InputError."""
        ...

    def refuses(self, model: Any) -> str:
        """Return why the model is unsuitable, or an empty string."""
        ...

    def parameters(self, model: Any, data: Any) -> Mapping[str, Any]:
        """Return the settings that determine the metrics besides model, data and version, for the
        signature."""
        ...

    def measure(self, model: Any, data: Any, progress: Progress) -> TaskOutput:
        """Run the model on the data and compute the metrics."""
        ...


@dataclass(frozen=True, slots=True)
class ResultKind:
    """Content of a task's results, which determines their tables, charts, comparisons and exports."""

    tables: Literal["pairs", "choices", "metrics"]
    """``pairs``: correlations of predictions with the scores of a benchmark's items. ``choices``: accuracies
    of multiple choice, by history. ``metrics``: anything else, with one column per metric.
    """
    main_metric: str = ""
    """Metric for ranking results and for breakdowns by group; empty for the first metric."""
    comparison_metrics: Sequence[str] = ()
    """Metrics for comparing pairs of models; see `giccs.report.model_comparison`."""
    has_ceiling: bool = False
    """Whether the noise ceiling of the benchmark limits the metrics."""
    item_columns: tuple[str, str] = ("prediction", "label")
    """Columns of the predictions with the predicted and the true value of an item, for the largest errors;
    the second is empty for ranks of true answers, of which 1 is the best."""


PAIR_SCORES = ResultKind("pairs", "spearman", ("spearman", "rank_spearman"), has_ceiling=True)
CHOICES = ResultKind("choices", "accuracy", ("accuracy",))
METRICS = ResultKind("metrics")


@dataclass(frozen=True, slots=True)
class TaskKind:
    """A task in the registry, independent of a model."""

    open: Callable[[TaskOptions], Sequence[Task]]
    option_names: Sequence[str] = ()
    """Fields of `TaskOptions` used by the task, besides the seed."""
    results: ResultKind = METRICS


_REGISTERED: dict[str, TaskKind] = {}


def register_task(name: str, task: Task | TaskKind) -> None:
    """Register a task of this process under a name; packages register theirs as entry points instead.

    task: an object with the methods of `Task`, or a `TaskKind` for a task with options, or with results other
    than `METRICS`. A name that was registered here before is replaced. Raises ValueError for the name of
    another task, and TypeError for another object.

    >>> from dataclasses import dataclass, field
    >>> from giccs.tasks.pairwise import PairwiseSTS
    >>> @dataclass(frozen=True)
    ... class Reversed(PairwiseSTS):
    ...     name: str = field(default="reversed-sts", init=False)
    ...     def pair_texts(self, item):
    ...         return item.utterance, item.last_turn
    >>> register_task("reversed-sts", TaskKind(lambda options: [Reversed()], results=PAIR_SCORES))
    >>> "reversed-sts" in task_names()
    True
    """
    if name in _task_modules():
        raise ValueError(f"there is another task {name}; expected a new name")
    if isinstance(task, TaskKind):
        _REGISTERED[name] = task
    elif not isinstance(task, type) and callable(getattr(task, "measure", None)):
        if task.name != name:
            raise ValueError(f"the task's own name is {task.name!r}; expected {name!r}")
        _REGISTERED[name] = TaskKind(lambda options: [task])
    else:
        raise TypeError(f"expected a TaskKind or an object with the methods of Task, not {task!r}")


def task_names() -> list[str]:
    """Return the names of all tasks: of this package, entry points of others, and of `register_task`."""
    return [*_task_modules(), *_REGISTERED]


@cache
def _task_modules() -> Mapping[str, str]:
    """Return `TASKS` and the entry points of other packages in the group ``giccs.tasks``."""
    return TASKS | {point.name: point.value for point in entry_points(group="giccs.tasks")}


def _load_kind(name: str) -> TaskKind:
    if name in _REGISTERED:
        return _REGISTERED[name]
    module, _, attribute = _task_modules()[name].partition(":")
    kind = getattr(import_module(module), attribute, None)
    if not isinstance(kind, TaskKind):
        message = (
            f"task {name}: {_task_modules()[name]} is not a TaskKind; expected module:name of one"
        )
        raise TypeError(message)
    return kind


def task_option_names(name: str) -> Sequence[str]:
    """Return the fields of `TaskOptions` used by a task, besides the seed.

    >>> task_option_names("pairwise-sts")
    ('history', 'history_encoding', 'similarity', 'language')
    """
    return _load_kind(name).option_names


def result_kind(name: str) -> ResultKind:
    """Return the kind of a task's results; `METRICS` for a task that is not installed.

    >>> result_kind("multiple-choice-sts").main_metric
    'accuracy'
    """
    return _load_kind(name).results if name in task_names() else METRICS


def open_tasks(name: str, options: TaskOptions | None = None) -> Sequence[Task]:
    """Return the task, or one task per history condition.

    >>> [task.history for task in open_tasks("pairwise-sts", TaskOptions(history="both"))]
    ['without', 'with']
    """
    return _load_kind(name).open(options or TaskOptions())
