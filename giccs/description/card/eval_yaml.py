"""eval.yaml: a data set as a benchmark of the hub, with one leaderboard per task.

Source: "Eval.yaml specification" in docs/hub/eval-results.md of github.com/huggingface/hub-docs. The hub's
list of evaluation frameworks is packages/tasks/src/eval.ts of github.com/huggingface/huggingface.js.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bws.base.problems import InputError, Problem
from bws.base.text import read_text
from giccs.benchmark import Benchmark

EVAL_YAML = "eval.yaml"
EVAL_MARK = "# Written by giccs card"
FRAMEWORK = "giccs"
FRAMEWORK_NOTE = (
    f"the hub's list of evaluation frameworks had no entry {FRAMEWORK!r} when this version of giccs was "
    "written; until it has one, the hub may refuse eval.yaml, and shows no leaderboard"
)
SHORT_TASK_NAMES = {"pairwise-sts": "pairwise", "multiple-choice-sts": "multiple_choice"}
"""Task -> its name in ids of tasks for other programs."""
HISTORIES = ("without", "with")
METRICS = (
    "Values: Spearman's rho over all items (pairwise tasks), accuracy (multiple-choice tasks), with or "
    "without the turns before the last one."
)


def task_id(task: str, history: str) -> str:
    """Return the id of a task for one history condition.

    >>> task_id("pairwise-sts", "with")
    'pairwise_with_history'
    """
    return f"{SHORT_TASK_NAMES[task]}_{history}_history"


def task_ids_of(benchmark: Benchmark) -> tuple[str, ...]:
    """Return the ids of a benchmark's tasks; multiple choice needs a dialogue with two utterances.

    >>> from giccs.benchmark import read_benchmark
    >>> task_ids_of(read_benchmark("giccs-sample"))[2:]
    ('multiple_choice_without_history', 'multiple_choice_with_history')
    """
    utterances = Counter(item.dialogue_id for item in benchmark.items)
    tasks = [*SHORT_TASK_NAMES] if max(utterances.values()) > 1 else ["pairwise-sts"]
    return tuple(task_id(task, history) for task in tasks for history in HISTORIES)


def eval_yaml(name: str, description: str, task_ids: Sequence[str]) -> str:
    """Return the file; every task is on the items, the data set's first configuration."""
    import yaml

    document = {
        "name": name,
        "description": f"{' '.join(description.split())} {METRICS}",
        "evaluation_framework": FRAMEWORK,
        "tasks": [{"id": task, "config": "default", "split": "test"} for task in task_ids],
    }
    text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False)
    return f"{EVAL_MARK}. {FRAMEWORK_NOTE[0].upper()}{FRAMEWORK_NOTE[1:]}.\n{text}"


def read_task_ids(path: Path, name: str) -> list[str]:
    """Return the ids of the tasks in the eval.yaml of a data set.

    name: the data set, in messages. Raises InputError if the file is missing or has no tasks with ids.
    """
    import yaml

    if not path.is_file():
        message = "has no eval.yaml, which defines its tasks; giccs card --eval-yaml writes it"
        raise InputError(Problem(name, None, message))
    try:
        task_ids = [task["id"] for task in yaml.safe_load(read_text(path))["tasks"]]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError):
        task_ids = []
    if not task_ids or not all(isinstance(task, str) for task in task_ids):
        message = "its eval.yaml is invalid; expected tasks, each with an id"
        raise InputError(Problem(name, None, message))
    return task_ids
