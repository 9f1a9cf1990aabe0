"""The database of the service on SQLite or PostgreSQL: connections, transactions, health."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, event, insert, inspect, select
from sqlalchemy.engine import URL, Engine, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError

from bws.base.problems import InputError, Problem
from mturk.service.store import migrations
from mturk.service.store.group_commit import GroupCommit
from mturk.service.store.schema import VERSIONS, account, metadata, setting
from mturk.service.store.sqlite_file import SqliteFile
from mturk.service.store.statements import Statement, hide_values

log = logging.getLogger(__name__)

LOCK_TIMEOUT_MILLISECONDS = 30_000
IDLE_TIMEOUT_MILLISECONDS = 20_000
"""An idle writer is rolled back after this time, which is shorter than the lock timeout."""
SECRET_BYTES = 32
POOL_SIZE = 15
"""Connections to PostgreSQL per process: six processes fit into the server's default limit of 100."""
LOCK_WRITERS = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'giccs', 'big')})"
SNAPSHOT_OPTIONS = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
SESSION_SETTINGS = f"""
    SELECT set_config('lock_timeout', '{LOCK_TIMEOUT_MILLISECONDS}', false),
        set_config('idle_in_transaction_session_timeout', '{IDLE_TIMEOUT_MILLISECONDS}', false),
        set_config('synchronous_commit', CASE current_setting('synchronous_commit')
            WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)
"""


class Database:
    """The service's data: `url` is a file path (SQLite) or an SQLAlchemy URL of PostgreSQL.

    A `write` that ends without an error is durable: it survives a crash of the process and a power failure.
    `balance` (cents) is the initial balance of a new database. Raises InputError if the database cannot be
    opened or has another schema version than the newest; with `migrate` older versions are migrated.
    """

    def __init__(
        self, url: str | os.PathLike[str], *, balance: int = 1_000_000, migrate: bool = False
    ) -> None:
        self.url = _parse_url(os.fspath(url))
        self.on_write_wait: Callable[[float], object] = lambda seconds: None
        """Called with the seconds that each writer waited for the lock."""
        try:
            self._file = SqliteFile(self.url) if self.is_file else None
            self.engine = (
                self._file.engine(self.url) if self._file else _postgresql_engine(self.url)
            )
            self._read_engine = self.engine.execution_options(
                **({} if self.is_file else SNAPSHOT_OPTIONS)
            )
            self._query_engine = self.engine.execution_options(
                **({} if self.is_file else {"isolation_level": "AUTOCOMMIT"})
            )
            self._thread = threading.local()
            self._readers: weakref.WeakSet[Connection] = weakref.WeakSet()
            self._write_engine = self.engine.execution_options(write=True)
            self._writers = GroupCommit(
                self._write_engine,
                lambda seconds: self.on_write_wait(seconds),
                self._file.commit if self._file else Connection.commit,
            )
            self.previous_version = self._open(balance, migrate)
            """Schema version found on opening; None if the database was empty."""
            if self._file is not None:
                self._file.watch()
        except (DatabaseError, ImportError) as error:
            reason = getattr(error, "orig", error)
            raise self._unusable(f"cannot be used as a database: {reason}") from None

    @property
    def is_file(self) -> bool:
        """Whether the database is a local file (SQLite)."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Begin a read transaction on a consistent snapshot; it does not block writers.

        Raises ReplacedFileError if an SQLite file was replaced, as do `first` and `write`.
        """
        self._check_file()
        with self._read_engine.begin() as connection:
            yield connection

    def first(self, query: Statement, values: Mapping[str, Any]) -> Any:
        """Return the first row of a query, or None. This is faster than `read`: it begins no transaction."""
        self._check_file()
        if self._file is not None:
            return query.first(self._reader(), values)
        with self._query_engine.connect() as connection:
            return query.first(connection, values)

    def _reader(self) -> Connection:
        """Return the connection with which this thread reads an SQLite database, outside transactions."""
        reader: Connection | None = getattr(self._thread, "reader", None)
        if reader is None or reader.closed:
            reader = self._thread.reader = self._query_engine.connect()
            self._readers.add(reader)
        return reader

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Begin a write transaction: atomic, durable at the end, and one at a time.

        Writers of all processes on one database are serialised. What a writer has read stays valid until it
        commits, so there are no row locks, deadlocks or retries. Writers that queue share one commit, and
        each returns after it; see `GroupCommit`.
        """
        self._check_file()
        # Threads queue at a lock, where waiting is cheap; processes queue at the database.
        with self._writers.writer() as connection:
            yield connection

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def truncate_log(self) -> bool:
        """Remove deleted data from the write-ahead log of SQLite; return False if others are reading it.

        PostgreSQL removes deleted rows by itself, with its autovacuum.
        """
        return self._file is None or self._file.truncate_log()

    def probe(self) -> None:
        """Read one row; raise an error if the database cannot be read, or is another file than was opened."""
        if self._file is not None:
            self._file.probe()
        else:
            with self.read() as connection:
                connection.scalar(select(account.c.number))

    def probe_disk(self) -> None:
        """Raise OSError if the disk of an SQLite database is full; the one of a server is not checked."""
        if self._file is not None:
            self._file.probe_disk()

    def secret(self) -> bytes:
        """Return the key that signs sessions and links."""
        with self.read() as connection:
            key = connection.scalar(select(setting.c.value).where(setting.c.name == "secret"))
        assert key is not None
        return bytes(key)

    def close(self) -> None:
        """Close all connections."""
        for reader in list(self._readers):
            reader.close()
        if self._file is not None:
            self._file.close()
        self.engine.dispose()

    def _open(self, balance: int, migrate: bool) -> str | None:
        if self._file is not None:
            if (names := self._file.table_names()) and names.isdisjoint(metadata.tables):
                raise self._unusable("contains tables of another program")
            self._check_integrity()
        with self._write_engine.execution_options(rebuild=migrate).begin() as connection:
            version = self._version(connection)
            if version is None:
                # Others may use the schema, but then there is nothing to migrate.
                if migrate and inspect(connection).get_table_names():
                    raise self._unusable("contains tables of another program")
                migrations.create(connection)
                _insert_defaults(connection, balance)
            elif version not in VERSIONS:
                raise self._unusable(
                    f"has tables of version {version}, created by a newer giccs; this one supports "
                    f"{VERSIONS[0]} to {VERSIONS[-1]}; upgrade giccs"
                )
            elif version != VERSIONS[-1]:
                self._upgrade(connection, version, migrate)
        if migrate:
            self.engine.dispose()  # these connections do not check foreign keys
        return version

    def _version(self, connection: Connection) -> str | None:
        if not self.is_file:
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
            if encoding != "UTF8":
                raise self._unusable(f"uses the encoding {encoding}; expected UTF8")
        try:
            return migrations.version(connection)
        except migrations.UnknownTablesError as error:
            raise self._unusable(str(error)) from None

    def _check_integrity(self) -> None:
        """Raise InputError if the file is corrupt, because answers could be missing silently.

        The whole file is read in a read transaction, which does not block writers of other processes.
        """
        started = time.perf_counter()
        with self.read() as connection:
            result = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
            if result == "ok" and (
                row := connection.exec_driver_sql("PRAGMA foreign_key_check").first()
            ):
                result = f"a row of {row[0]} refers to a missing {row[2]}"
        if result != "ok":
            raise self._unusable(f"is damaged ({' '.join(result.split())}); restore a backup")
        log.debug("integrity check passed in %.1f s", time.perf_counter() - started)

    def _upgrade(self, connection: Connection, old_version: str, migrate: bool) -> None:
        if not migrate:
            raise self._unusable(
                f"has tables of version {old_version}; expected {VERSIONS[-1]}; stop the service, "
                f"make a backup and run giccs annotate migrate --db {self._display_url}"
            )
        migrations.upgrade(connection, old_version)

    @property
    def _display_url(self) -> str:
        return self.url.render_as_string(hide_password=True)

    def _unusable(self, reason: str) -> InputError:
        return InputError(Problem(self._display_url, None, reason))


def _insert_defaults(connection: Connection, balance: int) -> None:
    connection.execute(insert(account).values(number=1, available=balance, on_hold=0))
    key = secrets.token_bytes(SECRET_BYTES)
    connection.execute(insert(setting).values(name="secret", value=key))


def _parse_url(text: str) -> URL:
    if "://" not in text:
        return URL.create("sqlite", database=text)
    expected = "expected a file path or a URL such as postgresql+psycopg://user@host/name"
    try:
        url = make_url(text)
    except ArgumentError:
        raise InputError(Problem("--db", None, f"is not a database address; {expected}")) from None
    if (kind := url.get_backend_name()) not in ("sqlite", "postgresql"):
        raise InputError(Problem("--db", None, f"is a {kind} database; {expected}"))
    if kind == "sqlite" and not url.database:
        raise InputError(Problem("--db", None, f"names no file; {expected}"))
    return url


def _postgresql_engine(url: URL) -> Engine:
    engine = create_engine(
        url,
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_pre_ping=True,  # the server may have been restarted
        hide_parameters=True,
        # After waiting for the lock a writer must see the changes of the previous writer.
        isolation_level="READ COMMITTED",
    )
    event.listen(engine, "connect", _prepare_postgresql)
    event.listen(engine, "begin", _start_postgresql)
    event.listen(engine, "handle_error", _hide_values)
    return engine


def _hide_values(context: ExceptionContext) -> None:
    for error in (context.original_exception, context.sqlalchemy_exception):
        if error is not None:
            hide_values(error)


def _prepare_postgresql(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(SESSION_SETTINGS)
    cursor.close()
    connection.commit()


def _start_postgresql(connection: Connection) -> None:
    if connection.get_execution_options().get("write"):
        connection.exec_driver_sql(LOCK_WRITERS)
