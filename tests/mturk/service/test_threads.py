"""Functions run in the threads of requests, with the context of the caller."""

import asyncio
import contextvars
import threading
import time

import pytest

from mturk.service.threads import REQUEST_THREADS, run_in_request_thread

request_name = contextvars.ContextVar("request_name")


def test_results_errors_and_context_of_a_thread():
    def fail(text):
        raise ValueError(text)

    async def run():
        request_name.set("one")
        assert await run_in_request_thread(request_name.get) == "one"
        assert await run_in_request_thread(threading.get_ident) != threading.get_ident()
        with pytest.raises(ValueError, match="refused"):
            await run_in_request_thread(fail, "refused")

    asyncio.run(run())
    asyncio.run(run())  # the threads serve any event loop


def test_as_many_functions_run_at_once_as_there_are_threads():
    barrier = threading.Barrier(REQUEST_THREADS)

    async def run():
        return await asyncio.gather(
            *(run_in_request_thread(barrier.wait, 60) for _ in range(REQUEST_THREADS))
        )

    assert sorted(asyncio.run(run())) == [*range(REQUEST_THREADS)]


def test_a_request_that_was_cancelled_does_not_stop_its_thread():
    async def run():
        tasks = [
            asyncio.create_task(run_in_request_thread(time.sleep, 0.05))
            for _ in range(2 * REQUEST_THREADS)
        ]
        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        assert await run_in_request_thread(lambda: "next") == "next"

    asyncio.run(run())
