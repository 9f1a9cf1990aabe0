"""Is the service well? It is where its database can be read, which is found out within two seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Generic, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse

from mturk.service.store.database import Database

__all__ = ["Health", "Look", "apart"]

log = logging.getLogger("mturk.health")
SECONDS = 2.0
"""How long a probe waits for the database."""
T = TypeVar("T")


async def apart(work: Callable[[], T]) -> T:
    """Work in a thread beside those of the requests, which may all be waiting for the database."""
    return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=CapacityLimiter(1))


class Look(Generic[T]):
    """A look at the database, for two seconds at most and never twice at once.

    Those who ask meanwhile wait for the same look: a database that hangs takes no more than one thread,
    however often a probe comes.
    """

    def __init__(self, look: Callable[[], T], seconds: float = SECONDS) -> None:
        self._look, self._seconds = look, seconds
        self._running: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """Return what was seen; TimeoutError where it took too long, or what the look raises."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(apart(self._look))
            self._running.add_done_callback(lambda task: task.cancelled() or task.exception())
        running = self._running
        done, _ = await asyncio.wait({running}, timeout=self._seconds)
        if not done:
            raise TimeoutError
        return running.result()


class Health:
    """The endpoint of probes; each change for better or worse is one line in the log."""

    def __init__(self, database: Database) -> None:
        self._look = Look(database.probe)
        self._well = True

    async def __call__(self, _: Request) -> JSONResponse:
        """Answer 200 or 503 and which part it is; in words of ours, since anybody may ask."""
        database = await self._database()
        status = "ok" if database == "ok" else "failing"
        document = {"status": status, "version": version("giccs"), "database": database}
        return JSONResponse(document, 200 if status == "ok" else 503, {"Cache-Control": "no-store"})

    async def _database(self) -> str:
        try:
            await self._look()
        except Exception as error:
            late = isinstance(error, TimeoutError)
            state = f"does not answer within {SECONDS:g} s" if late else "cannot be read"
            if self._well:
                log.error("not well: the database %s", state, exc_info=error)
            self._well = False
            return state
        if not self._well:
            log.warning("well again: the database can be read")
        self._well = True
        return "ok"
