"""The file of an SQLite database: connections to it, its identity while the service runs, deleted bytes."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import URL, Engine

from mturk.service.store.statements import Statement

LOCK_TIMEOUT_SECONDS = 30.0
CHECK_SECONDS = 1.0
"""Minimum time between two checks of the change number by writers."""
PROBE_BYTES = 256 * 1024
"""Size of the file that a health check writes, more than a typical submission."""
HEADER = b"SQLite format 3\0"
PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",
    f"busy_timeout = {LOCK_TIMEOUT_SECONDS * 1000:.0f}",
)
BEGIN, BEGIN_WRITE = Statement(text("BEGIN")), Statement(text("BEGIN IMMEDIATE"))


class ReplacedFileError(OSError):
    """The database file was moved, or replaced or overwritten by another one or an older copy."""


class SqliteFile:
    """A database file that remains the one that was opened.

    SQLite itself does not notice that the file at its path is another one: it would create a missing file,
    and apply the write-ahead log and the pages in memory to an older copy. Here all connections are to the
    inode that was opened, and `user_version` in the header of the file is a change number: writers of all
    processes increment it, so that a lower one is that of an older copy.
    """

    def __init__(self, url: URL) -> None:
        self.path = Path(str(url.database)).absolute()
        self._restrict_permissions()
        self._identity = self._current_identity()
        self._lock = threading.Lock()
        self._change = 0
        """Greatest change number that was committed by this process or read."""
        self._checked = 0.0

    def engine(self, url: URL) -> Engine:
        """Return the engine of the database."""
        engine = create_engine(
            url,
            creator=self.connect,
            pool_size=50,
            max_overflow=0,
            pool_use_lifo=True,  # the connection used last has the pages and statements in memory
            hide_parameters=True,  # logged errors must not contain answers, worker ids or secrets
        )
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", _begin)
        return engine

    def connect(self, timeout: float = LOCK_TIMEOUT_SECONDS) -> sqlite3.Connection:
        """Connect to the file that was opened; raise ReplacedFileError if another one is in its place."""
        self._check_identity()
        return sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw", uri=True, timeout=timeout, check_same_thread=False
        )

    def check(self) -> None:
        """Raise ReplacedFileError before a write to a file that is no longer the one that was opened.

        The change number is read at most every `CHECK_SECONDS`.
        """
        self._check_identity()
        if time.monotonic() >= self._checked + CHECK_SECONDS:
            self.probe()
            self._checked = time.monotonic()

    def probe(self) -> None:
        """Read the file by a new connection: others have pages in memory that were overwritten meanwhile."""
        expected = self._change  # before reading, because others commit meanwhile
        with closing(self.connect(timeout=1)) as connection:
            connection.execute("SELECT number FROM account").fetchone()
            (change,) = connection.execute("PRAGMA user_version").fetchone()
        if change < expected:
            raise ReplacedFileError("the database file has been overwritten by an older copy")
        self._note_change(change)

    def commit(self, connection: Connection) -> None:
        """Commit the transaction of a writer; increment the change number if it has changed something."""
        driver: Any = connection.connection.driver_connection
        info, change = connection.connection.info, 0
        if driver.total_changes > info.get("changes", 0):
            info["changes"] = driver.total_changes
            change = driver.execute("PRAGMA user_version").fetchone()[0] + 1
            driver.execute(f"PRAGMA user_version = {change}").close()
        connection.commit()
        self._note_change(change)

    def truncate_log(self) -> bool:
        """Write the write-ahead log to the file and empty it; return False if others are reading it.

        Writers wait for at most a second.
        """
        with closing(self.connect(timeout=1)) as connection:
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def probe_disk(self) -> None:
        """Write and remove a temporary file beside the database; raise OSError if the disk is full."""
        with tempfile.TemporaryFile(dir=self.path.parent) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())

    def _note_change(self, change: int) -> None:
        with self._lock:
            self._change = max(self._change, change)

    def _check_identity(self) -> None:
        if self._current_identity() != self._identity:
            raise ReplacedFileError("the database file has been replaced by another file")

    def _current_identity(self) -> tuple[int, int] | None:
        """Return device and inode of the file; None if there is none."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _restrict_permissions(self) -> None:
        """Create the file, and restrict it to its owner: it contains the secret and worker ids."""
        self.path.touch(mode=0o600)
        if self.path.is_file() and self.path.stat().st_mode & 0o077 and self._has_header():
            self.path.chmod(0o600)

    def _has_header(self) -> bool:
        with self.path.open("rb") as opened:
            return opened.read(len(HEADER)) == HEADER


def _prepare(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun explicitly
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("rebuild"):  # a table with incoming foreign keys is rebuilt
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
    (BEGIN_WRITE if options.get("write") else BEGIN).change(connection, {})
