"""Cache of answers in a file that several processes may use concurrently.

Only digests of requests are stored. Answers are stored in plain text, including the tokens of prompts.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bws.base.problems import InputError, Problem

BUSY = 60.0
"""Seconds to wait for another process to finish writing."""
LARGEST = 64 * 2**20
"""Maximum size of a stored answer in bytes; answers of servers are smaller."""
AT_ONCE = 500
"""Number of requests looked up per query; SQLite limits the number of parameters."""
TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    request TEXT PRIMARY KEY,
    answer TEXT NOT NULL,
    model TEXT NOT NULL,
    asked TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer."""

    text: str
    model: str = ""
    """Name of the model in the response, which is often more specific than that in the request."""


class Cache:
    """Answers by the digest of their request; each is on disk when `keep` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._explain_errors():
            self._connection = sqlite3.connect(path, timeout=BUSY, check_same_thread=False)
            self._connection.execute(
                "PRAGMA trusted_schema = OFF"
            )  # The file may come from an untrusted source.
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
        with self._explain_errors(), self._connection:
            self._connection.execute(TABLE)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def find(self, requests: Sequence[str]) -> dict[str, Answer]:
        """Return the stored answers, by request."""
        answers_by_key: dict[str, Answer] = {}
        for start in range(0, len(requests), AT_ONCE):
            some = requests[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT request, answer, model FROM answers WHERE request IN ({marks})"  # noqa: S608 - marks
            with self._explain_errors(), self._lock:
                for request, *answer in self._connection.execute(query, some):
                    if not all(isinstance(part, str) for part in answer):
                        raise sqlite3.DatabaseError("an answer is not text")
                    answers_by_key[request] = Answer(*answer)
        return answers_by_key

    def keep(self, request: str, answer: Answer) -> None:
        """Store an answer; an existing answer to the same request is kept."""
        query = "INSERT OR IGNORE INTO answers (request, answer, model) VALUES (?, ?, ?)"
        with self._explain_errors(), self._lock, self._connection:
            self._connection.execute(query, (request, answer.text, answer.model))

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Convert database errors to messages with a remedy."""
        try:
            yield
        except sqlite3.OperationalError as error:
            message = (
                f"cannot read or write answers ({error}); set GICCS_CACHE to a writable folder on a disk "
                "with free space"
            )
            raise InputError(Problem(str(self._path), None, message)) from None
        except sqlite3.DatabaseError as error:
            message = (
                f"the file of stored answers is damaged ({error}); move it away and run again: its "
                "answers will be requested, and paid for, again"
            )
            raise InputError(Problem(str(self._path), None, message)) from None
