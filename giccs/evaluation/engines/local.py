"""Evaluation jobs, and the engine that runs them in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from traceback import clear_frames

from bws.base.problems import InputError, Problem
from giccs.evaluation.engines import EngineError
from giccs.evaluation.task_results import environment, evaluate_task, signature_of
from giccs.measures.results import Result, Store, digest
from giccs.models import ModelOptions
from giccs.models.abilities import LimitedModel, Model, ServedModel
from giccs.models.model_errors import MEMORY_REMEDY, ModelMemoryError, is_memory_error
from giccs.progress import Progress, silent
from giccs.tasks import Data, Task

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """A model, a supported task, and a data set."""

    model: Model
    """Opened, without loaded weights."""
    task: Task
    data: Data
    options: ModelOptions = field(default_factory=ModelOptions)
    """Options of the model, for opening it in another process."""

    def __str__(self) -> str:
        setting = getattr(self.task, "setting", "")
        return f"{self.model.name}: {self.task.name}{setting and f', {setting}'}"

    def find_result(self, store: Store) -> Result | None:
        """Return the stored result, if it exists, the content of the model is known, and no input was cut
        without notice."""
        if self.model.identity.get("revision", "") is None:
            return None
        signature = signature_of(self.task, self.model, self.data)
        log.debug(
            "%s on %s: %s, data %s, signature %s", self, self.data.name, self.data.described(),
            str(signature.get("data"))[:12], digest(signature)[:12],
        )  # fmt: skip
        result = store.find(self.model.name, self.task.name, signature)
        return None if result and _may_be_cut(result, self.model) else result

    def find_predictions(self, store: Store) -> Result | None:
        """Return the result of stored predictions for the same inputs, which were compared with other scores.

        It is stored. None if there are none, if the content of the model is unknown, or if the predictions of
        the task can depend on the scores.
        """
        inputs = getattr(self.data, "inputs_fingerprint", "")
        compare_again = getattr(self.task, "compare_again", None)
        if not inputs or not compare_again or self.model.identity.get("revision", "") is None:
            return None
        signature = signature_of(self.task, self.model, self.data)
        stored = store.find_inputs(self.model.name, self.task.name, signature, inputs)
        output = compare_again(stored.predictions, self.data) if stored else None
        if not stored or not output:
            return None
        result = replace(
            stored,
            metrics=output.metrics,
            groups=output.groups,
            signature=signature,
            environment={**stored.environment, **output.environment, "when": environment()["when"]},
            predictions=output.predictions,
        )
        store.add(result)
        return result


def _may_be_cut(result: Result, model: Model) -> bool:
    """Return whether long inputs may be cut in a result of an earlier version, which has the same
    signature.

    It counts inputs of the maximum length as ``full``, but not those of models given as Python objects.
    """
    if not isinstance(model, LimitedModel):
        return False
    tokens = result.environment.get("tokens", {})
    return "full" in tokens or (not tokens and model.identity.get("kind") == "python")


def distinct_jobs(jobs: Iterable[EvaluationJob]) -> list[EvaluationJob]:
    """Return the jobs with different results, those of one model consecutively, models in order of
    appearance."""
    jobs_by_model: dict[int, dict[tuple[str, str], EvaluationJob]] = {}
    for job in jobs:
        model_jobs = jobs_by_model.setdefault(id(job.model), {})
        model_jobs[job.task.name, digest(signature_of(job.task, job.model, job.data))] = job
    return [ask for of_model in jobs_by_model.values() for ask in of_model.values()]


def find_existing(job: EvaluationJob, store: Store | None) -> tuple[Result | None, str]:
    """Return a stored result, or that of stored predictions, and the end of the note on the job."""
    if store and (result := job.find_result(store)):
        return result, ": existing result"
    if store and (result := job.find_predictions(store)):
        return result, ": existing predictions, compared with other scores"
    return None, " ..."


def run_locally(
    jobs: Iterable[EvaluationJob],
    store: Store | None,
    *,
    force: bool = False,
    note: Callable[[str], None] = lambda message: None,
    progress: Progress = silent,
) -> Iterator[tuple[int, Result]]:
    """Yield (index in `jobs`, its result) in order, each stored before the next is computed.

    Without a store, nothing is stored. Existing results with the same signature are reused, unless `force`.
    If the iterator of `jobs` releases yielded jobs, the memory of their models is freed. Unavailable or
    unsuitable models do not stop other jobs; InputError is raised for all of them at the end. Raises
    EngineError immediately if memory is insufficient.
    """
    problems: dict[Problem, None] = {}
    cause: BaseException | None = None
    for index, job in enumerate(jobs):
        stored_result, origin = find_existing(job, store if not force else None)
        note(f"{job}{origin}")
        try:
            result = stored_result or _evaluate(job, progress)
        except InputError as error:
            problems |= dict.fromkeys(error.problems)
            cause = cause or _released(error.__cause__)
            continue
        if not stored_result:
            log.debug("%s: computed in %.3f s", job, result.seconds)
            if store:
                store.add(result)
            if isinstance(job.model, ServedModel):
                note(f"{job.model.name}: {job.model.usage()}")
        yield index, result
    if problems:
        raise InputError(problems) from cause


def _released(error: BaseException | None) -> BaseException | None:
    """Return an exception whose traceback does not keep the model in memory."""
    if error is not None:
        clear_frames(error.__traceback__)
    return error


def _evaluate(job: EvaluationJob, progress: Progress) -> Result:
    try:
        return evaluate_task(job.task, job.model, job.data, progress)
    except ModelMemoryError as error:
        raise EngineError(f"{job}: not enough memory ({error.reason}); {MEMORY_REMEDY}") from error
    except (MemoryError, ImportError, RuntimeError, SystemError) as error:
        if not is_memory_error(error):
            raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise EngineError(f"{job}: not enough memory ({reason})") from error
