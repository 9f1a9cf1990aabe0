"""Evaluation of one model on one task: the signature and the result."""

from __future__ import annotations

import os
import platform
import time
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, cast

import numpy as np

from giccs.measures.results import Result, Signature
from giccs.models.abilities import Model
from giccs.models.model_errors import reported_errors
from giccs.models.vocabulary import counted_tokens
from giccs.progress import Progress, silent
from giccs.tasks import Data, Task


def signature_of(task: Task, model: Any, data: Data) -> Signature:
    """Return the signature of the result, before computing it."""
    fields = {
        "task": task.name,
        "model": model.name,
        **model.identity,
        "data": data.fingerprint,
        **task.parameters(model, data),
        "giccs": version("giccs"),
    }
    return cast(Signature, fields)


def evaluate_task(task: Task, model: Any, data: Data, progress: Progress = silent) -> Result:
    """Return the result of a task: metrics, signature, environment, time and token counts.

    >>> from giccs.models import open_model
    >>> from giccs.tasks import open_tasks
    >>> (task,) = open_tasks("pairwise-sts")
    >>> result = evaluate_task(task, open_model("baseline:chance"), task.read("giccs-sample").first(6))
    >>> result.metrics["spearman"].n, result.predictions.height
    (30, 30)
    """
    start = time.perf_counter()
    with counted_tokens() as counts, _reported_errors(model):
        output = task.measure(model, data, progress)
    seconds = round(time.perf_counter() - start, 3)
    return Result(
        model=model.name,
        task=task.name,
        metrics=output.metrics,
        groups=output.groups,
        signature=signature_of(task, model, data),
        environment={
            "data": data.name,
            **environment(),
            **model.environment(),
            **output.environment,
            **counts.document(),
        },
        seconds=seconds,
        predictions=output.predictions,
    )


def _reported_errors(model: Any) -> AbstractContextManager[None]:
    """Return a context that reports the errors of a model whose class has not declared its abilities."""
    return nullcontext() if Model in type(model).__mro__ else reported_errors(model.name)


def environment() -> dict[str, Any]:
    """Return system, versions and time, without the names of the machine and its user."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
    }
