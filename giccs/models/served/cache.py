"""Answers that were had before, in a file that several processes may use at once.

Requests are kept as digests only; answers can be read, and where they are the tokens of a prompt, so can it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bws.problems import InputError, Problem

__all__ = ["Answer", "Cache"]

BUSY = 60.0
"""Seconds that a process waits for another one to end its writing."""
LARGEST = 64 * 2**20
"""Bytes of an answer, as they are kept; a server sends less."""
AT_ONCE = 500
"""Requests looked up by one query; SQLite has a limit to its parameters."""
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
    """What the server sent back."""

    text: str
    model: str = ""
    """As the server calls the model that answered: more exact, often, than what it was asked for."""


class Cache:
    """Answers by the digest of their request; each is on disk when `keep` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._told():
            self._connection = sqlite3.connect(path, timeout=BUSY, check_same_thread=False)
            self._connection.execute("PRAGMA trusted_schema = OFF")  # it may be a stranger's file
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
        with self._told(), self._connection:
            self._connection.execute(TABLE)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def find(self, requests: Sequence[str]) -> dict[str, Answer]:
        """Return the answers that are known, by request."""
        found: dict[str, Answer] = {}
        for start in range(0, len(requests), AT_ONCE):
            some = requests[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT request, answer, model FROM answers WHERE request IN ({marks})"  # noqa: S608 - marks
            with self._told(), self._lock:
                for request, *answer in self._connection.execute(query, some):
                    if not all(isinstance(one, str) for one in answer):
                        raise sqlite3.DatabaseError("an answer is no text")
                    found[request] = Answer(*answer)
        return found

    def keep(self, request: str, answer: Answer) -> None:
        """Keep an answer; the first one to a request stands."""
        query = "INSERT OR IGNORE INTO answers (request, answer, model) VALUES (?, ?, ?)"
        with self._told(), self._lock, self._connection:
            self._connection.execute(query, (request, answer.text, answer.model))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in a sentence what is wrong with the file, and how to mend it."""
        try:
            yield
        except sqlite3.OperationalError as error:
            message = (
                f"answers cannot be read or kept here ({error}); "
                "set GICCS_CACHE to a folder on a disk with room that you may write to"
            )
            raise InputError(Problem(str(self._path), None, message)) from None
        except sqlite3.DatabaseError as error:
            message = (
                f"the file of kept answers is damaged ({error}); move it away and run again: "
                "what it held is asked for, and paid for, anew"
            )
            raise InputError(Problem(str(self._path), None, message)) from None
