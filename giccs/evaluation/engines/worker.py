"""The other end of the Ray engine: a process that loads one model and asks it one task after the other.

Nothing here imports NumPy or a framework before the worker has its environment: how many threads they take
is read when they are loaded, and sums are rounded by it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from bws.verbosity import LOGGERS

if TYPE_CHECKING:
    from giccs.measures.results import Result
    from giccs.models.abilities import Model
    from giccs.tasks import Data, Task

__all__ = ["THREADS", "Answer", "Worker"]

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker sends back."""

    result: Result | None
    problems: tuple[Problem, ...] = ()
    """Why there is no result."""
    usage: str = ""
    """What a served model cost."""
    lines: tuple[logging.LogRecord, ...] = ()
    """What our packages logged meanwhile, where that is wanted."""


class Worker:
    """Holds the model `name`; it is opened with the first question, so that no start can fail."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        threads: Mapping[str, str],
        folder: str,
        verbose: bool = False,
    ) -> None:
        """Take what `ModelOptions` is made of, values of `THREADS`, the driver's folder, and if to log."""
        self._name, self._options = name, options
        self._lines: SimpleQueue[logging.LogRecord] = SimpleQueue()
        for logger in map(logging.getLogger, LOGGERS if verbose else ()):
            logger.setLevel(logging.DEBUG)
            logger.addHandler(QueueHandler(self._lines))
        for variable in THREADS:  # Ray sets one of its own
            os.environ.pop(variable, None)
        os.environ.update(threads)
        if options["offline"]:
            os.environ["HF_HUB_OFFLINE"] = "1"
        with suppress(
            OSError
        ):  # relative names of models mean the driver's folder, where there is one
            os.chdir(folder)

    def ask(self, task: Task, data: Data) -> Answer:
        """Return the result, or what is wrong with the model."""
        from giccs.evaluation.task_results import evaluate_task
        from giccs.models.abilities import ServedModel
        from giccs.progress import silent

        try:
            result = evaluate_task(task, self._model, data, silent)
        except InputError as error:
            return Answer(None, error.problems, lines=self._logged())
        usage = self._model.usage() if isinstance(self._model, ServedModel) else ""
        return Answer(result, usage=usage, lines=self._logged())

    def _logged(self) -> tuple[logging.LogRecord, ...]:
        """Return what was logged since the last answer."""
        return tuple(self._lines.get() for _ in range(self._lines.qsize()))

    @cached_property
    def _model(self) -> Model:
        from giccs.models import ModelOptions, open_model

        return open_model(self._name, ModelOptions(**self._options))
