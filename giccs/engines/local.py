"""Asks one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from giccs.engines.asks import Ask
from giccs.progress import Progress, silent
from giccs.results import Result, Store

__all__ = ["locally"]


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
    `asks` that lets go of what it has passed on lets go of the models' memory too.
    """
    for place, ask in enumerate(asks):
        known = None if force else ask.known(store)
        note(f"{ask}{', kept from before' if known else ' ...'}")
        result = known or ask.task.evaluate(ask.model, ask.data, progress)
        if not known:
            store.add(result)
            if hasattr(ask.model, "usage"):
                note(f"{ask.model.name}: {ask.model.usage()}")
        yield place, result
