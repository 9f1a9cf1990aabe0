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

__all__ = ["Cluster", "NoServerError", "cluster"]

CONNECTIONS = 100
"""Default limit of a server."""
OWNER = "postgres"
"""PostgreSQL does not run as root; Debian's package creates this user."""


class NoServerError(RuntimeError):
    """PostgreSQL is not available."""


class Cluster:
    """A running server in a folder; `user` is the command prefix to run commands as its owner."""

    def __init__(self, folder: str, user: list[str]) -> None:
        self.folder, self.user = folder, user

    def run(self, name: str, *arguments: str, **options: Any) -> None:
        """Run a PostgreSQL program as the owner of the cluster."""
        command = [*self.user, str(_programs() / name), *arguments]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        subprocess.run(command, check=True, cwd=self.folder, **quiet | options)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = (
            f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' "
            f"-c max_connections={CONNECTIONS}"
        )
        data, log = f"{self.folder}/data", f"{self.folder}/log"
        self.run("pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """Stop the server immediately, like a crash."""
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "immediate", "stop")

    def create(self, name: str) -> str:
        """Create an empty database; return its URL."""
        self.run("createdb", "-h", self.folder, "-U", "giccs", name)
        return f"postgresql+psycopg://giccs@/{name}?host={self.folder}"


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Run a server; raise NoServerError if PostgreSQL is not available."""
    _programs()
    folder = tempfile.mkdtemp(prefix="giccs-postgresql-")
    try:
        server = Cluster(folder, _owner_command(folder))
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
