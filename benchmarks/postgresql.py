"""A temporary PostgreSQL server: a new cluster in a private folder that listens on a socket only.

Also used by the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CONNECTIONS = 100
"""Default limit of a server."""
START_SECONDS = 600
"""Upper limit of a start: recovery after a crash synchronises every file, on a busy disk for minutes."""
OWNER = "postgres"
"""PostgreSQL does not run as root; Debian's package creates this user."""


class NoServerError(RuntimeError):
    """PostgreSQL is not available."""


class Cluster:
    """A running server in a folder; `user` is the command prefix to run commands as its owner."""

    def __init__(self, folder: str, user: list[str], durable: bool) -> None:
        self.folder, self.user, self.durable = folder, user, durable

    def run(self, name: str, *arguments: str, **options: Any) -> None:
        """Run a PostgreSQL program as the owner of the cluster."""
        command = [*self.user, str(_programs() / name), *arguments]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        subprocess.run(command, check=True, cwd=self.folder, **quiet | options)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = (
            f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' "
            f"-c max_connections={CONNECTIONS} -c fsync={'on' if self.durable else 'off'}"
        )
        data, log, seconds = f"{self.folder}/data", f"{self.folder}/log", str(START_SECONDS)
        self.run("pg_ctl", "-D", data, "-w", "-t", seconds, "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """Stop the server immediately, like a crash."""
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "immediate", "stop")

    def create(self, name: str) -> str:
        """Create an empty database; return its URL."""
        self.run("createdb", "-h", self.folder, "-U", "giccs", name)
        return f"postgresql+psycopg://giccs@/{name}?host={self.folder}"


@contextmanager
def cluster(durable: bool = True) -> Iterator[Cluster]:
    """Run a server; raise NoServerError if PostgreSQL is not available.

    Without `durable`, data survive a crash of the server, but not of the operating system (fsync = off).
    """
    _programs()
    folder = tempfile.mkdtemp(prefix="giccs-postgresql-")
    try:
        server = Cluster(folder, _owner_command(folder), durable)
        server.run("initdb", "-D", f"{folder}/data", "-U", "giccs", "-A", "trust", "-E", "UTF8",
                  "--locale=C.UTF-8", "-N")  # fmt: skip
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _programs() -> Path:
    """Return the folder of the newest PostgreSQL programs."""
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if folders:
        return max(folders, key=lambda path: int(path.parent.name))
    if initdb := shutil.which("initdb"):
        return Path(initdb).resolve().parent
    raise NoServerError("PostgreSQL's programs are not installed (make system)")


def _owner_command(folder: str) -> list[str]:
    if os.geteuid() != 0:
        return []
    try:
        shutil.chown(folder, OWNER)
    except LookupError:
        message = f"PostgreSQL does not run as root, and there is no user {OWNER}"
        raise NoServerError(message) from None
    return ["runuser", "-u", OWNER, "--"]
