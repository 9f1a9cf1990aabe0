"""Where the service keeps what it knows: one transaction an action, on SQLite or a database of one's own."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, insert, select
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError

from bws.problems import InputError, Problem
from mturk.endpoint.schema import account, metadata, setting

__all__ = ["Database"]

BUSY_MILLISECONDS = 30_000
SECRET_BYTES = 32
MAGIC = b"SQLite format 3\0"


class Database:
    """The service's data: `url` is a file's path (SQLite) or an SQLAlchemy URL.

    What a `write` has left with no error is on the disk: it survives the end of the process and of the
    machine's power. `balance` (cents) is what a new database begins with. InputError where the
    database cannot be opened.
    """

    def __init__(self, url: str | os.PathLike[str], *, balance: int = 1_000_000) -> None:
        self.url = _url(os.fspath(url))
        self.local = self.url.get_backend_name() == "sqlite"
        self._one_writer = threading.Lock()
        if self.local:
            _own_file(self.url)
        try:
            self.engine = _engine(self.url)
            metadata.create_all(self.engine)
            self._begin(balance)
        except (DatabaseError, ImportError) as error:
            reason = getattr(error, "orig", error)
            shown = self.url.render_as_string(hide_password=True)
            raise InputError(
                Problem(shown, None, f"cannot be used as a database: {reason}")
            ) from None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Look, at one moment, without keeping writers out."""
        with self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Change: all of it is durable at the end, or nothing happened. Writers wait for one another."""
        if not self.local:
            with self.engine.begin() as connection:
                yield connection
            return
        writing = self.engine.connect().execution_options(write=True)
        # Threads queue at the lock, where waiting is fair; processes queue at the file.
        with self._one_writer, writing as connection, connection.begin():
            yield connection

    def secret(self) -> bytes:
        """Return the key that signs sessions and links; it is as private as the database itself."""
        with self.read() as connection:
            found = connection.scalar(select(setting.c.value).where(setting.c.name == "secret"))
        assert found is not None
        return bytes(found)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _begin(self, balance: int) -> None:
        with self.write() as connection:
            if connection.scalar(select(account.c.number)) is None:
                connection.execute(insert(account).values(number=1, available=balance, on_hold=0))
                key = secrets.token_bytes(SECRET_BYTES)
                connection.execute(insert(setting).values(name="secret", value=key))


def _url(text: str) -> URL:
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        return make_url(text)
    except ArgumentError:
        allowed = "a file's path or a URL such as postgresql+psycopg://user@host/name is allowed"
        raise InputError(Problem("--db", None, f"is no address of a database; {allowed}")) from None


def _own_file(url: URL) -> None:
    """Keep the file for its owner alone, a restored one too: it holds the secret and workers' ids."""
    if not url.database or url.database == ":memory:":
        return
    file = Path(url.database)
    file.touch(mode=0o600)
    if file.is_file() and file.stat().st_mode & 0o077 and _is_sqlite(file):
        file.chmod(0o600)


def _is_sqlite(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(
            url, pool_size=20, max_overflow=30, pool_pre_ping=True, hide_parameters=True
        )
    engine = create_engine(
        url,
        pool_size=50,
        max_overflow=0,
        hide_parameters=True,  # an error that is logged tells no answer, worker or secret
        connect_args={"timeout": BUSY_MILLISECONDS / 1000, "check_same_thread": False},
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _start)
    return engine


def _prepare(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # we begin transactions ourselves
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        f"busy_timeout = {BUSY_MILLISECONDS}",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _start(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
