"""Injected faults: full disks, read-only folders, damaged bytes, cut connections.

Disks and folders do not require root: `unshare_mounts` gives a process a private mount namespace, for
ordinary users within a user namespace. Child processes inherit the mounts; those of ordinary users cannot
change them.
"""

from __future__ import annotations

import ctypes
import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 0x4000, 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)
_mounts_problem = "this process has no private mounts"


def unshare_mounts() -> None:
    """Give this process a private mount namespace; must be called before a second thread starts.

    If the kernel refuses, `needs_mounts` returns the reason.
    """
    global _mounts_problem
    try:
        if os.geteuid() == 0:
            _call("unshare", NEW_MOUNTS)
        else:
            _unshare_user()
        _call("mount", None, b"/", None, RECURSIVE | PRIVATE, None)
        _mounts_problem = ""
    except OSError as error:
        _mounts_problem = f"the kernel does not allow private mounts ({error.strerror})"


def _unshare_user() -> None:
    user, group = os.geteuid(), os.getegid()
    _call("unshare", NEW_MOUNTS | NEW_USER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def needs_mounts() -> str:
    """Return the reason why private mounts are unavailable; empty if they are available."""
    return _mounts_problem


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """Mount an empty disk of `size` bytes (in memory) at `folder`, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    _call("mount", b"disk", os.fsencode(folder), b"tmpfs", 0, b"mode=0777,size=%d" % size)
    try:
        yield folder
    finally:
        _call("umount2", os.fsencode(folder), 2)  # also while a process has files open there


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Remount a folder read-only, which also applies to root, unlike permissions."""
    name = os.fsencode(folder)
    _call("mount", name, name, None, BIND, None)
    try:
        _call("mount", None, name, None, BIND | REMOUNT | READ_ONLY, None)
        yield
    finally:
        _call("umount2", name, 2)


def fill(folder: Path, leave: int = 0) -> Path:
    """Fill the disk at `folder` except for about `leave` bytes; return the file to delete afterwards."""
    room = os.statvfs(folder)
    path = folder / "filling"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(room.f_bavail * room.f_frsize - leave, 1))
    return path


def _call(name: str, *arguments: object) -> None:
    if getattr(LIBC, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def truncations(data: bytes, times: int) -> list[bytes]:
    """Return the data truncated to 0, 1/times, 2/times ... of its length."""
    return [data[: len(data) * step // times] for step in range(times)]


def with_flipped_bits(data: bytes, times: int) -> list[bytes]:
    """Return copies of the data with one random bit flipped each, reproducibly."""
    draw, copies = random.Random(0), []
    for _ in range(times):
        changed = bytearray(data)
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        copies.append(bytes(changed))
    return copies


MIN_BYTES, MAX_BYTES = 50, 2_000_000
"""Range of response bytes after which a connection is cut; the logarithm is uniform."""


class Relay:
    """A TCP relay on a free port that cuts each connection after a random number of bytes."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self.target = (parts.hostname or "", parts.port or 80)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.n_cut = 0
        """Number of cut connections."""

    def run(self) -> None:
        """Accept connections until the socket is closed."""
        chance = random.Random(10)
        with suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                limit = int(MIN_BYTES * (MAX_BYTES / MIN_BYTES) ** chance.random())
                Thread(target=self._pass_on, args=(client, limit), daemon=True).start()

    def _pass_on(self, client: socket.socket, limit: int) -> None:
        with client, socket.create_connection(self.target) as server:
            Thread(target=_copy, args=(client, server), daemon=True).start()
            with suppress(OSError):
                while limit > 0 and (data := server.recv(65536)):
                    client.sendall(data[:limit])
                    limit -= len(data)
            self.n_cut += limit <= 0
            for end in (client, server):  # close alone would wait for the reading thread
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


@contextmanager
def cutting_relay(target: str) -> Iterator[Relay]:
    """Run a relay in front of a service."""
    relay = Relay(target)
    Thread(target=relay.run, daemon=True).start()
    try:
        yield relay
    finally:
        relay.listening.close()
