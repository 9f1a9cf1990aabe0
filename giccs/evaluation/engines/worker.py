"""Worker of the Ray engine: a process that loads one model and runs its tasks one after the other.

Nothing here imports NumPy or a framework before the environment of the worker is set: they read the number of
threads when they are imported, and it affects rounding.
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

from bws.base.problems import InputError, Problem
from bws.base.verbosity import LOGGERS

if TYPE_CHECKING:
    from giccs.measures.results import Result
    from giccs.models.abilities import Model
    from giccs.tasks import Data, Task

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """Reply of a worker."""

    result: Result | None
    problems: tuple[Problem, ...] = ()
    """Reasons for a missing result."""
    usage: str = ""
    """Usage of a served model."""
    log_records: tuple[logging.LogRecord, ...] = ()
    """Log records of giccs, if requested."""


class Worker:
    """Runs tasks with the model `name`, which is opened with the first task, so that the start cannot
    fail."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        threads: Mapping[str, str],
        folder: str,
        verbose: bool = False,
    ) -> None:
        """Store the arguments of `ModelOptions`, values of `THREADS`, the driver's folder, and whether to
        log."""
        self._name, self._options = name, options
        self._log_records: SimpleQueue[logging.LogRecord] = SimpleQueue()
        for logger in map(logging.getLogger, LOGGERS if verbose else ()):
            logger.setLevel(logging.DEBUG)
            logger.addHandler(QueueHandler(self._log_records))
        for variable in THREAD_VARIABLES:  # Ray sets its own value.
            os.environ.pop(variable, None)
        os.environ.update(threads)
        if options["offline"]:
            os.environ["HF_HUB_OFFLINE"] = "1"
        with suppress(
            OSError
        ):  # Relative names of models refer to the driver's folder, if it exists.
            os.chdir(folder)

    def evaluate(self, task: Task, data: Data) -> WorkerReply:
        """Return the result, or the problem of the model."""
        from giccs.evaluation.task_results import evaluate_task
        from giccs.models.abilities import ServedModel
        from giccs.progress import silent

        try:
            result = evaluate_task(task, self._model, data, silent)
        except InputError as error:
            return WorkerReply(None, error.problems, log_records=self._take_log_records())
        usage = self._model.usage() if isinstance(self._model, ServedModel) else ""
        return WorkerReply(result, usage=usage, log_records=self._take_log_records())

    def _take_log_records(self) -> tuple[logging.LogRecord, ...]:
        """Return the log records since the last reply."""
        return tuple(self._log_records.get() for _ in range(self._log_records.qsize()))

    @cached_property
    def _model(self) -> Model:
        from giccs.models import ModelOptions, open_model

        return open_model(self._name, ModelOptions(**self._options))
