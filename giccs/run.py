"""Models × tasks on one benchmark: what is known is taken from the store, the rest is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bws.problems import InputError, Problem
from giccs.benchmark import Benchmark
from giccs.models import ModelOptions, PairModel, open_model
from giccs.progress import Progress, silent
from giccs.results import Result, Store
from giccs.tasks.pairwise import PairwiseSTS

__all__ = ["open_models", "run"]


def open_models(names: Sequence[str], options: ModelOptions | None = None) -> list[PairModel]:
    """Open all models before any works; InputError tells of every name that is wrong."""
    models: list[PairModel] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        try:
            models.append(open_model(name, options))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return models


def run(
    models: Sequence[PairModel],
    tasks: Sequence[PairwiseSTS],
    benchmark: Benchmark,
    store: Store,
    *,
    force: bool = False,
    note: Callable[[str], None] = lambda message: None,
    progress: Progress = silent,
) -> Iterator[Result]:
    """Yield a result a model and task, each kept in the store before the next is begun.

    A result whose signature stands in the store is not computed again, unless `force`.
    """
    for model in models:
        for task in tasks:
            signature = task.signature(model, benchmark)
            known = None if force else store.find(model.name, task.name, signature)
            note(f"{model.name}: {task.name}{', kept from before' if known else ' ...'}")
            result = known or task.evaluate(model, benchmark, progress)
            if not known:
                store.add(result)
            yield result
