"""Threads that handle requests, because rules and database block."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

REQUEST_THREADS = 16
"""Threads for requests; with more, they wait longer for one another than the requests for a thread."""
Result = TypeVar("Result")
Task = tuple[asyncio.Future[Any], Callable[[], Any]]


async def run_in_request_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    """Return the result of a function that runs in a thread, in the context of the caller.

    It costs a fraction of Starlette's `run_in_threadpool`, which four requests per submission would use. It
    is not for functions that wait for other requests.
    """
    future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    run = contextvars.copy_context().run
    _tasks().put((future, functools.partial(run, function, *arguments)))
    return await future


@functools.cache
def _tasks() -> SimpleQueue[Task]:
    """Return the queue of the threads, which run until the process ends."""
    tasks: SimpleQueue[Task] = SimpleQueue()
    for number in range(REQUEST_THREADS):
        name = f"request-{number}"
        threading.Thread(target=_run_tasks, args=(tasks,), name=name, daemon=True).start()
    return tasks


def _run_tasks(tasks: SimpleQueue[Task]) -> None:
    while True:
        _run(*tasks.get())


def _run(future: asyncio.Future[Any], function: Callable[[], Any]) -> None:
    finish: Callable[[Any], None] = future.set_result
    try:
        result = function()
    except BaseException as error:
        finish, result = future.set_exception, error
    with suppress(RuntimeError):  # the loop was closed: nobody waits for the result
        future.get_loop().call_soon_threadsafe(_finish, future, finish, result)


def _finish(future: asyncio.Future[Any], finish: Callable[[Any], None], result: Any) -> None:
    if not future.cancelled():
        finish(result)
