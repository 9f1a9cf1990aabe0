"""Group commit: writers that queue for the database share a transaction, and so one wait for the disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text
from sqlalchemy.engine import Engine

from mturk.service.store.statements import Statement

MAX_WRITERS = 32
"""Maximum number of writers per transaction; it limits how long the first one waits for the commit."""
SAVE = Statement(text("SAVEPOINT writer"))
UNDO = Statement(text("ROLLBACK TO SAVEPOINT writer"))
RELEASE = Statement(text("RELEASE SAVEPOINT writer"))


class GroupCommit:
    """Write transactions of an engine, one writer at a time.

    A writer that ends while others are queueing leaves its transaction to the next one and waits; the last
    one commits for all. A writer that raises an error undoes its own changes only. If the commit fails, all
    its writers raise the error.

    on_wait: called with the seconds that each writer waited for its turn. commit: commits a transaction.
    """

    def __init__(
        self, engine: Engine, on_wait: Callable[[float], object],
        commit: Callable[[Connection], object] = Connection.commit,
    ) -> None:  # fmt: skip
        self._engine, self._on_wait, self._commit = engine, on_wait, commit
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self._n_queueing = 0
        self._group: _Group | None = None

    @contextmanager
    def writer(self) -> Iterator[Connection]:
        """Begin or continue a transaction; when this ends, it has been committed.

        That also holds if this ends with an error, which may follow from changes of the writers before.
        """
        started = time.perf_counter()
        self._queue(1)
        group = None
        try:
            with self._turn:
                self._queue(-1)
                try:
                    group = self._group = self._group or _Group(self._engine)
                finally:
                    self._on_wait(time.perf_counter() - started)
                try:
                    with group.writer() as connection:
                        yield connection
                finally:
                    if group.is_broken or not self._n_queueing or group.n_writers >= MAX_WRITERS:
                        self._group = None
                        group.end(self._commit)
        finally:
            if group is not None:
                group.wait()

    def _queue(self, change: int) -> None:
        with self._counting:
            self._n_queueing += change


class _Group:
    """Writers of one transaction."""

    def __init__(self, engine: Engine) -> None:
        self.n_writers = 0
        self.is_broken = False
        """Whether the transaction must be rolled back."""
        self._error: BaseException | None = None
        self._ended = threading.Event()
        self._connection = engine.connect()
        try:
            self._transaction = self._connection.begin()
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def writer(self) -> Iterator[Connection]:
        """Run a writer; if it raises an error, its changes are undone."""
        self.n_writers += 1
        is_first = self.n_writers == 1
        if not is_first:
            self._set_savepoint(SAVE)
        try:
            yield self._connection
        except BaseException:
            if is_first:
                self.is_broken = True
            else:
                self._set_savepoint(UNDO)
                self._set_savepoint(RELEASE)
            raise
        if not is_first:
            self._set_savepoint(RELEASE)

    def _set_savepoint(self, statement: Statement) -> None:
        """Execute a statement on the savepoint; it fails if the database has ended the transaction."""
        try:
            statement.change(self._connection, {})
        except BaseException as error:
            self.is_broken, self._error = True, error
            raise

    def end(self, commit: Callable[[Connection], object]) -> None:
        """Commit, or roll back if the transaction is broken."""
        try:
            if self.is_broken:
                self._transaction.rollback()
            elif self._transaction.is_active:
                commit(self._connection)
        except BaseException as error:
            self._error = self._error or error
            self._connection.invalidate()  # its transaction may still be open
        finally:
            try:
                self._connection.close()
            finally:
                self._ended.set()

    def wait(self) -> None:
        """Wait for the end; raise its error."""
        self._ended.wait()
        if self._error is not None:
            raise self._error.with_traceback(None)  # the same object in several threads
