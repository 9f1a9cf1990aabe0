"""Where the service keeps what it knows: one transaction an action, on SQLite or on PostgreSQL."""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, insert, select
from sqlalchemy.engine import URL, Engine, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError

from bws.problems import InputError, Problem
from mturk.service.store import migrations
from mturk.service.store.schema import VERSIONS, account, setting

__all__ = ["Database"]

log = logging.getLogger(__name__)

BUSY_MILLISECONDS = 30_000
STUCK_MILLISECONDS = 20_000
"""A writer that does nothing for so long is rolled back, before those who wait for it give up."""
SECRET_BYTES = 32
MAGIC = b"SQLite format 3\0"
CONNECTIONS = 15
"""To PostgreSQL of one process: six processes fit into the hundred that a server allows by default."""
ONE_WRITER = f"SELECT pg_advisory_xact_lock({int.from_bytes(b'giccs', 'big')})"
ONE_MOMENT = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
SESSION = f"""
    SELECT set_config('lock_timeout', '{BUSY_MILLISECONDS}', false),
        set_config('idle_in_transaction_session_timeout', '{STUCK_MILLISECONDS}', false),
        set_config('synchronous_commit', CASE current_setting('synchronous_commit')
            WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)
"""


class Database:
    """The service's data: `url` is a file's path (SQLite) or an SQLAlchemy URL of PostgreSQL.

    What a `write` has left with no error is on the disk: it survives the end of the process and of the
    machine's power. `balance` (cents) is what a new database begins with. InputError where the
    database cannot be opened, or its tables have another version than the newest; with `migrate` older
    ones are brought there.
    """

    def __init__(
        self, url: str | os.PathLike[str], *, balance: int = 1_000_000, migrate: bool = False
    ) -> None:
        self.url = _url(os.fspath(url))
        self._one_writer = threading.Lock()
        self.waited: Callable[[float], object] = lambda seconds: None
        """Told of each writer how many seconds it waited for its turn."""
        try:
            self.engine = _sqlite(self.url) if self.local else _postgresql(self.url)
            self._looking = self.engine.execution_options(**({} if self.local else ONE_MOMENT))
            self._changing = self.engine.execution_options(write=True)
            self.found = self._open(balance, migrate)
            """The version that was there; None where the database was empty."""
            self._file = _identity(self.url)
        except (DatabaseError, ImportError) as error:
            reason = getattr(error, "orig", error)
            raise self._unusable(f"cannot be used as a database: {reason}") from None

    @property
    def local(self) -> bool:
        """Whether it is a file."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Look, at one moment, without keeping writers out."""
        with self._looking.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Change: all of it is durable at the end, or nothing happened. Writers wait for one another.

        That holds for all processes on one database: what a writer has read stays true until it is done,
        so that nothing is locked row by row, nothing deadlocks and nothing has to be tried again.
        """
        # Threads queue at the lock, where waiting is cheap; processes queue at the database.
        began = time.perf_counter()
        with ExitStack() as turn:
            try:
                turn.enter_context(self._one_writer)
                connection = turn.enter_context(self._changing.begin())
            finally:
                self.waited(time.perf_counter() - began)
            yield connection

    def probe(self) -> None:
        """Read once; an error where the database cannot be read.

        A file is read anew: connections that are open would go on with one that was moved away, or with
        what they remember of one that was overwritten.
        """
        if self._file is None:
            with self.read() as connection:
                connection.scalar(select(account.c.number))
            return
        # Opening another file would have SQLite apply the log of this one to it.
        if _identity(self.url) != self._file:
            raise FileNotFoundError("another file has taken the place of the database's")
        path = Path(str(self.url.database)).absolute()
        with closing(
            sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=1)
        ) as connection:
            connection.execute("SELECT number FROM account").fetchone()

    def secret(self) -> bytes:
        """Return the key that signs sessions and links; it is as private as the database itself."""
        with self.read() as connection:
            found = connection.scalar(select(setting.c.value).where(setting.c.name == "secret"))
        assert found is not None
        return bytes(found)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _open(self, balance: int, migrate: bool) -> str | None:
        if self.local:
            self._check_whole()
        with self._changing.execution_options(rebuild=migrate).begin() as connection:
            found = self._version(connection)
            if found is None:
                migrations.create(connection)
                _begin(connection, balance)
            elif found not in VERSIONS:
                raise self._unusable(
                    f"has tables of version {found}, which a newer giccs made; this one knows "
                    f"{VERSIONS[0]} to {VERSIONS[-1]}: install the newer one"
                )
            elif found != VERSIONS[-1]:
                self._upgrade(connection, found, migrate)
        if migrate:
            self.engine.dispose()  # its connections do not check foreign keys
        return found

    def _version(self, connection: Connection) -> str | None:
        if not self.local:
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
            if encoding != "UTF8":
                raise self._unusable(f"keeps texts in {encoding}; UTF8 is needed")
        try:
            return migrations.version(connection)
        except migrations.UnknownTablesError as error:
            raise self._unusable(str(error)) from None

    def _check_whole(self) -> None:
        """Refuse a file whose pages do not fit together: answers would be missing without a word.

        All of the file is read, so writers of other processes must not wait for it.
        """
        began = time.perf_counter()
        with self.read() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
            if found == "ok" and (
                row := connection.exec_driver_sql("PRAGMA foreign_key_check").first()
            ):
                found = f"a row of {row[0]} belongs to no {row[2]}"
        if found != "ok":
            raise self._unusable(f"is damaged ({' '.join(found.split())}); restore a backup")
        log.debug("the database is whole: %.1f s to read all of it", time.perf_counter() - began)

    def _upgrade(self, connection: Connection, found: str, migrate: bool) -> None:
        if not migrate:
            raise self._unusable(
                f"has tables of version {found}, and {VERSIONS[-1]} is needed; stop what serves it, "
                f"make a backup and run: mturk-hits migrate --db {self._shown}"
            )
        migrations.upgrade(connection, found)

    @property
    def _shown(self) -> str:
        return self.url.render_as_string(hide_password=True)

    def _unusable(self, why: str) -> InputError:
        return InputError(Problem(self._shown, None, why))


def _begin(connection: Connection, balance: int) -> None:
    connection.execute(insert(account).values(number=1, available=balance, on_hold=0))
    key = secrets.token_bytes(SECRET_BYTES)
    connection.execute(insert(setting).values(name="secret", value=key))


def _url(text: str) -> URL:
    if "://" not in text:
        return URL.create("sqlite", database=text)
    allowed = "a file's path or a URL such as postgresql+psycopg://user@host/name is allowed"
    try:
        url = make_url(text)
    except ArgumentError:
        raise InputError(Problem("--db", None, f"is no address of a database; {allowed}")) from None
    if (kind := url.get_backend_name()) not in ("sqlite", "postgresql"):
        raise InputError(Problem("--db", None, f"is a database of {kind}; {allowed}"))
    return url


def _own_file(url: URL) -> None:
    """Keep the file for its owner alone, a restored one too: it holds the secret and workers' ids."""
    if not url.database or url.database == ":memory:":
        return
    file = Path(url.database)
    file.touch(mode=0o600)
    if file.is_file() and file.stat().st_mode & 0o077 and _is_sqlite(file):
        file.chmod(0o600)


def _identity(url: URL) -> tuple[int, int] | None:
    """Return which file it is; None where the database is none."""
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    found = os.stat(url.database)
    return found.st_dev, found.st_ino


def _is_sqlite(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC


def _sqlite(url: URL) -> Engine:
    _own_file(url)
    engine = create_engine(
        url,
        pool_size=50,
        max_overflow=0,
        hide_parameters=True,  # an error that is logged tells no answer, worker or secret
        connect_args={"timeout": BUSY_MILLISECONDS / 1000, "check_same_thread": False},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _start_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # we begin transactions ourselves
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        f"busy_timeout = {BUSY_MILLISECONDS}",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _start_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("rebuild"):  # a table that others refer to is written anew
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("write") else "BEGIN")


def _postgresql(url: URL) -> Engine:
    engine = create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_pre_ping=True,  # the server may have been restarted meanwhile
        hide_parameters=True,
        # A writer waits for the one before it and must then see what that one did.
        isolation_level="READ COMMITTED",
    )
    event.listen(engine, "connect", _prepare_postgresql)
    event.listen(engine, "begin", _start_postgresql)
    event.listen(engine, "handle_error", _hide_values)
    return engine


def _hide_values(context: ExceptionContext) -> None:
    """Leave out of an error its details, in which PostgreSQL repeats what was to be stored."""
    for error in (context.original_exception, context.sqlalchemy_exception):
        if error is not None:
            error.args = tuple(str(one).partition("\nDETAIL:")[0] for one in error.args)


def _prepare_postgresql(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(SESSION)
    cursor.close()
    connection.commit()


def _start_postgresql(connection: Connection) -> None:
    if connection.get_execution_options().get("write"):
        connection.exec_driver_sql(ONE_WRITER)
