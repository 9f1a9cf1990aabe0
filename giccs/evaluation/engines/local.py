"""Asks one after the other, in this process."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator

from bws.problems import InputError, Problem
from giccs.evaluation.engines import EngineError
from giccs.evaluation.engines.asks import Ask, evaluate
from giccs.measures.results import Result, Store
from giccs.progress import Progress, silent

__all__ = ["locally"]

log = logging.getLogger(__name__)

WORDS = re.compile(
    r"alloc|memory|failed to map segment|could not create a primitive", re.IGNORECASE
)
"""Of PyTorch, CUDA, the dynamic loader and oneDNN."""


def locally(
    asks: Iterable[Ask],
    store: Store,
    *,
    force: bool = False,
    note: Callable[[str], None] = lambda message: None,
    progress: Progress = silent,
) -> Iterator[tuple[int, Result]]:
    """Yield (place in `asks`, its result) in their order, each kept before the next is begun.

    A result whose signature stands in the store is not computed again, unless `force`. An iterator of
    `asks` that lets go of what it has passed on lets go of the models' memory too. A model that cannot be
    had, or not asked this, does not stop the rest: at the end InputError tells of all. EngineError, at once,
    where there is not enough memory.
    """
    problems: dict[Problem, None] = {}
    for place, ask in enumerate(asks):
        known = None if force else ask.known(store)
        note(f"{ask}{', kept from before' if known else ' ...'}")
        try:
            result = known or _evaluated(ask, progress)
        except InputError as error:
            problems |= dict.fromkeys(error.problems)
            continue
        if not known:
            log.debug("%s: computed in %.3f s", ask, result.seconds)
            store.add(result)
            if hasattr(ask.model, "usage"):
                note(f"{ask.model.name}: {ask.model.usage()}")
        yield place, result
    if problems:
        raise InputError(problems)


def _evaluated(ask: Ask, progress: Progress) -> Result:
    try:
        return evaluate(ask.task, ask.model, ask.data, progress)
    except (MemoryError, ImportError, RuntimeError, SystemError) as error:
        if not _lacks_memory(error):
            raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise EngineError(f"{ask}: there is not enough memory ({reason})") from error


def _lacks_memory(error: Exception) -> bool:
    """Tell whether memory ended, for which frameworks have words but no exception of their own."""
    return isinstance(error, MemoryError | SystemError) or bool(WORDS.search(str(error)))
