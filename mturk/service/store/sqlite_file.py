"""The file of an SQLite database: connections to it, its identity while the service runs, deleted bytes."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import URL, Engine

from mturk.service.store.statements import Statement

LOCK_TIMEOUT_SECONDS = 30.0
PROBE_BYTES = 256 * 1024
"""Size of the file that a health check writes, more than a typical submission."""
MAGIC, HEADER_BYTES, CHANGE = b"SQLite format 3\0", 100, slice(60, 64)
"""The header of a database file: its first bytes, its size, and the place of `user_version` (big-endian)."""
CACHE_KIB = 256
"""Pages in the memory of each connection: all threads have one, and the system caches the file for all."""
PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",
    f"busy_timeout = {LOCK_TIMEOUT_SECONDS * 1000:.0f}",
    f"cache_size = -{CACHE_KIB}",
)
BEGIN, BEGIN_WRITE = Statement(text("BEGIN")), Statement(text("BEGIN IMMEDIATE"))


class ReplacedFileError(OSError):
    """The database file, or one beside it, was moved, deleted, replaced or overwritten."""


class SqliteFile:
    """A database file that remains the one that was opened, with its write-ahead log.

    SQLite itself does not notice that a file at its path is another one: it would create a missing file, and
    apply the write-ahead log and the pages in memory to an older copy. Here all connections are to the inode
    that was opened, and `user_version` in the header of the file is a change number: writers of all processes
    increment it, so that a lower one is that of an older copy.
    """

    def __init__(self, url: URL) -> None:
        self.path = Path(str(url.database)).absolute()
        self._paths = [f"{self.path}{suffix}" for suffix in ("", "-wal", "-shm")]
        if not self.path.exists() or not self.path.stat().st_size:
            self.path.touch(mode=0o600)
            self.path.chmod(0o600)  # it will contain the secret and worker ids
        self._identities: Sequence[tuple[int, int] | None] = [_identity(self._paths[0])]
        self._lock = threading.Lock()
        self._change = 0
        """Greatest change number that was committed by this process or read."""
        self._checkpointed = 0
        """Greatest change number in the file itself; that of the write-ahead log may be greater."""
        self._is_older = False
        """Whether the content was found to be older than what was committed."""
        self._guard: sqlite3.Connection | None = None
        """A connection that stays open, so that the files beside the database remain."""
        self._descriptor: int | None = None
        """The guard's file descriptor, which is only read."""

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
        self._check_identities()
        return sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw", uri=True, timeout=timeout, check_same_thread=False
        )

    def table_names(self) -> set[str]:
        """Return the names of the tables, without changing the file; none for an empty or damaged file."""
        try:
            with closing(
                sqlite3.connect(f"{self.path.as_uri()}?immutable=1", uri=True)
            ) as connection:
                return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        except sqlite3.DatabaseError:
            return set()

    def watch(self) -> None:
        """Begin to check the file, once it has its tables; restrict it to its owner."""
        if self.path.stat().st_mode & 0o077:
            self.path.chmod(0o600)
        before = set(_descriptors(self._identities[0]))
        self._guard = self.connect()
        self._guard.execute("SELECT number FROM account").fetchone()
        self._descriptor = next(
            (each for each in _descriptors(self._identities[0]) if each not in before), None
        )
        self._identities = [_identity(path) for path in self._paths]
        self.probe()

    def check(self) -> None:
        """Raise ReplacedFileError before use of a file that is no longer the one that was opened.

        The header is read past SQLite, whose connections would read it from the write-ahead log.
        """
        self._check_identities()
        expected = (
            self._checkpointed
        )  # before reading, because other threads read a later one meanwhile
        change = self._header_change()
        self._check_change(change, expected)
        if change > expected:
            with self._lock:
                self._checkpointed = max(self._checkpointed, change)
        if self._is_older:
            self._check_content()

    def probe(self) -> None:
        """Check the file, and read it by a new connection: others have pages in memory."""
        self.check()
        self._check_content()

    def _check_content(self) -> None:
        expected = self._change  # before reading, because others commit meanwhile
        with closing(self.connect(timeout=1)) as connection:
            connection.execute("SELECT number FROM account").fetchone()
            (change,) = connection.execute("PRAGMA user_version").fetchone()
        self._is_older = change < expected
        self._check_change(change, expected)
        self._note_change(change)

    def _header_change(self) -> int:
        """Return the change number in the file; -1 without the header of a database."""
        if self._descriptor is None:
            return 0
        header = os.pread(self._descriptor, HEADER_BYTES, 0)
        return int.from_bytes(header[CHANGE], "big") if header.startswith(MAGIC) else -1

    def close(self) -> None:
        """Close the guard, before the last connection applies the write-ahead log to the file.

        It must not be applied to an older copy: then all descriptors of the file are made unusable, and the
        copy remains as it is.
        """
        if self._header_change() < self._checkpointed:
            with open(os.devnull, "rb") as nothing:
                for descriptor in list(_descriptors(self._identities[0])):
                    os.dup2(nothing.fileno(), descriptor)
        if self._guard is not None:
            self._guard.close()
        self._guard, self._descriptor, self._checkpointed = None, None, 0

    def commit(self, connection: Connection) -> None:
        """Commit the transaction of a writer; increment the change number if it has changed something.

        Raises ReplacedFileError, without a commit, if an older copy was restored since the last one.
        """
        driver: Any = connection.connection.driver_connection
        info, change = connection.connection.info, 0
        if driver.total_changes > info.get("changes", 0):
            info["changes"] = driver.total_changes
            (change,) = driver.execute("PRAGMA user_version").fetchone()
            self._is_older = change < self._change
            self._check_change(change, self._change)
            change += 1
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

    def _check_identities(self) -> None:
        for path, identity in zip(self._paths, self._identities, strict=False):
            if _identity(path) != identity:
                raise ReplacedFileError(
                    f"{os.path.basename(path)} has been moved, deleted or replaced"
                )

    def _check_change(self, change: int, expected: int) -> None:
        if change < expected:
            raise ReplacedFileError(f"{self.path.name} has been overwritten by an older copy")


def _identity(path: str) -> tuple[int, int] | None:
    """Return device and inode of a file; None if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _descriptors(identity: tuple[int, int] | None) -> Iterator[int]:
    """Yield the descriptors of this process on a file. A file that is opened and closed loses its locks."""
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # that of the folder itself is closed already
            status = os.fstat(int(name))
            if (status.st_dev, status.st_ino) == identity:
                yield int(name)


def _prepare(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun explicitly
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("rebuild"):  # a table with incoming foreign keys is rebuilt
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
    (BEGIN_WRITE if options.get("write") else BEGIN).change(connection, {})
