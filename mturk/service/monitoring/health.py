"""Health endpoint: healthy if the database answers a query and its disk takes data within two seconds."""

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

log = logging.getLogger("mturk.health")
PROBE_TIMEOUT_SECONDS = 2.0
"""Maximum time that a probe waits for the database."""
T = TypeVar("T")


async def run_in_own_thread(work: Callable[[], T]) -> T:
    """Run a function in a thread outside the request pool, whose threads may all be busy."""
    return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=CapacityLimiter(1))


class SharedQuery(Generic[T]):
    """A database query with a timeout that runs at most once at a time.

    Concurrent callers share the running query, so that a hanging database blocks a single thread, however
    many probes arrive.
    """

    def __init__(self, query: Callable[[], T], seconds: float = PROBE_TIMEOUT_SECONDS) -> None:
        self._look, self._seconds = query, seconds
        self._running: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """Return the result of the query; raise TimeoutError after the timeout, or the error of the query."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(run_in_own_thread(self._look))
            self._running.add_done_callback(lambda task: task.cancelled() or task.exception())
        running = self._running
        done, _ = await asyncio.wait({running}, timeout=self._seconds)
        if not done:
            raise TimeoutError
        return running.result()


class _DiskError(Exception):
    """The disk of the database takes no data, most likely because it is full."""


class Health:
    """The health endpoint; each change of state is logged once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._look = SharedQuery(self._probe)
        self._is_healthy = True

    def _probe(self) -> str:
        self._database.probe()
        try:
            self._database.probe_disk()
        except OSError as error:
            raise _DiskError from error
        return "ok"

    async def __call__(self, _: Request) -> JSONResponse:
        """Return status 200, or 503 with the failing part. Texts are fixed: the endpoint is public."""
        database = await self._database_state()
        status = "ok" if database == "ok" else "failing"
        document = {"status": status, "version": version("giccs"), "database": database}
        return JSONResponse(document, 200 if status == "ok" else 503, {"Cache-Control": "no-store"})

    async def _database_state(self) -> str:
        try:
            await self._look()
        except Exception as error:
            state = "cannot be read"
            if isinstance(error, TimeoutError):
                state = f"does not answer within {PROBE_TIMEOUT_SECONDS:g} s"
            elif isinstance(error, _DiskError):
                state = "cannot be written"
            if self._is_healthy:
                log.error("unhealthy: the database %s", state, exc_info=error)
            self._is_healthy = False
            return state
        if not self._is_healthy:
            log.warning("healthy again: the database can be read and written")
        self._is_healthy = True
        return "ok"
