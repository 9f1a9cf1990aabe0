"""The bound of the service: the four requests per submission on the same server and database, without rules.

    python -m benchmarks.bare_service FOLDER

FOLDER has the files page.html and question.html. Requests are answered by uvicorn and Starlette in threads,
as by `giccs annotate serve`; both write transactions are durable commits to SQLite. There are no sessions,
signatures, templates, limits or messages. `benchmarks.study_load` runs it after the service and prints the
ratio.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import sqlite3
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from mturk.service.server import loop_factory
from mturk.service.threads import REQUEST_THREADS
from mturk.study.simulated_browser import WebClient

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE hit (hit_id TEXT PRIMARY KEY, question TEXT NOT NULL);
CREATE TABLE assignment (assignment_id TEXT PRIMARY KEY, status TEXT NOT NULL, answer TEXT);
"""


class BareService:
    """Four requests, two of which write."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "bare.db"
        self._local, self._lock = threading.local(), threading.Lock()
        self._page = (folder / "page.html").read_text("utf-8")
        self._connection().executescript(SCHEMA)
        question = (folder / "question.html").read_text("utf-8")
        self._write("INSERT INTO hit VALUES ('1', ?)", question)

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._local, "connection"):
            self._local.connection = sqlite3.connect(self._file, isolation_level=None)
            self._local.connection.execute("PRAGMA synchronous = FULL")
        connection: sqlite3.Connection = self._local.connection
        return connection

    def _write(self, statement: str, *values: str) -> None:
        with self._lock:
            self._connection().execute(statement, values)

    def begin(self) -> Response:
        """Insert an assignment and redirect to it, as /work/continue does."""
        assignment_id = secrets.token_hex(15)
        self._write("INSERT INTO assignment VALUES (?, 'Accepted', NULL)", assignment_id)
        return RedirectResponse(f"/work/assignment/{assignment_id}", 303)

    def assignment(self, assignment_id: str) -> Response:
        """Return the page of an assignment."""
        query = "SELECT status FROM assignment WHERE assignment_id = ?"
        self._connection().execute(query, (assignment_id,)).fetchone()
        return HTMLResponse(self._page)

    def question(self) -> Response:
        """Return the question of a HIT."""
        query = "SELECT question FROM hit WHERE hit_id = '1'"
        return HTMLResponse(self._connection().execute(query).fetchone()[0])

    def submit(self, fields: Sequence[tuple[str, str]]) -> Response:
        """Store an answer."""
        statement = "UPDATE assignment SET status = 'Submitted', answer = ? WHERE assignment_id = ?"
        self._write(statement, json.dumps(fields), dict(fields)["assignmentId"])
        return HTMLResponse("<!doctype html><p>Received.</p>")


def application(service: BareService) -> Starlette:
    """Return the application."""

    async def begin(request: Request) -> Response:
        await request.form()
        return await run_in_threadpool(service.begin)

    async def assignment(request: Request) -> Response:
        return await run_in_threadpool(service.assignment, request.path_params["assignment_id"])

    async def question(request: Request) -> Response:
        return await run_in_threadpool(service.question)

    async def submit(request: Request) -> Response:
        form = await request.form()
        fields = [(name, str(value)) for name, value in form.multi_items()]
        return await run_in_threadpool(service.submit, fields)

    return Starlette(
        routes=[
            Route("/work/continue", begin, methods=["POST"]),
            Route("/work/assignment/{assignment_id}", assignment),
            Route("/question", question),
            Route("/mturk/externalSubmit", submit, methods=["POST"]),
        ]
    )


async def _serve(folder: Path) -> None:
    to_thread.current_default_thread_limiter().total_tokens = REQUEST_THREADS
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        print(json.dumps({"api": f"http://127.0.0.1:{listening.getsockname()[1]}"}), flush=True)
        config = uvicorn.Config(
            application(BareService(folder)),
            log_level="warning",
            access_log=False,
            server_header=False,
        )
        await uvicorn.Server(config).serve(sockets=[listening])


def run_workers(
    url: str, n_workers: int, n_each: int, fields: Sequence[tuple[str, str]], stop_event: threading.Event
) -> None:  # fmt: skip
    """Send the four requests `n_each` times from each of `n_workers` concurrent workers."""

    def work(_: int) -> None:
        browser = WebClient(url, on_response=lambda path, seconds: None, stop_event=stop_event)
        for _ in range(n_each):
            page = browser.post("/work/continue", {"automatic": "yes"})
            browser.get("/question")
            assignment_id = page.path.rpartition("/")[2]
            answer = browser.post(
                "/mturk/externalSubmit", [*fields, ("assignmentId", assignment_id)]
            )
            if (page.status, answer.status) != (200, 200):
                raise RuntimeError(f"status {page.status} and {answer.status}")
        browser.close()

    with ThreadPoolExecutor(n_workers) as pool:
        list(pool.map(work, range(n_workers)))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(Path(sys.argv[1])))
