"""Faults made on purpose: full disks, read-only folders, damaged bytes, answers cut off.

Disks and folders need no root: a process that called `own_mounts` sees mounts of its own, which end with
it, as root in a mount namespace, else in a user namespace too, where the kernel grants what mount(2) asks
for and nothing outside. What it starts inherits the mounts; started by an ordinary user, it does not inherit
the right to change them.
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

__all__ = [
    "Relay",
    "cutting_relay",
    "fill",
    "needs_mounts",
    "read_only",
    "small_disk",
    "truncations",
    "unshare_mounts",
    "with_flipped_bits",
]

NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 0x4000, 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)
_mounts_problem = "this process has no mounts of its own"


def unshare_mounts() -> None:
    """Give this process mounts of its own; to be called before it has a second thread.

    Where the kernel refuses, `needs_mounts` says so.
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
        _mounts_problem = f"the kernel refuses mounts of one's own ({error.strerror})"


def _unshare_user() -> None:
    user, group = os.geteuid(), os.getegid()
    _call("unshare", NEW_MOUNTS | NEW_USER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def needs_mounts() -> str:
    """Return why there are no small disks and read-only folders here; empty where there are."""
    return _mounts_problem


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """Mount an empty disk of `size` bytes (in memory) at `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    _call("mount", b"disk", os.fsencode(folder), b"tmpfs", 0, b"mode=0777,size=%d" % size)
    try:
        yield folder
    finally:
        _call("umount2", os.fsencode(folder), 2)  # also while a process has files open there


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make an existing folder one that cannot be written, for root too, which permissions do not stop."""
    name = os.fsencode(folder)
    _call("mount", name, name, None, BIND, None)
    try:
        _call("mount", None, name, None, BIND | REMOUNT | READ_ONLY, None)
        yield
    finally:
        _call("umount2", name, 2)


def fill(folder: Path, leave: int = 0) -> Path:
    """Fill the disk at `folder` but for about `leave` bytes; deleting the file returned makes room again."""
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
    """Return the data cut off at 0, 1/times, 2/times ... of its length."""
    return [data[: len(data) * step // times] for step in range(times)]


def with_flipped_bits(data: bytes, times: int) -> list[bytes]:
    """Return the data with one bit changed, each time another one, always the same ones."""
    draw, copies = random.Random(0), []
    for _ in range(times):
        changed = bytearray(data)
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        copies.append(bytes(changed))
    return copies


MIN_BYTES, MAX_BYTES = 50, 2_000_000
"""After so many bytes of answers a connection is cut, the least and the most; its logarithm is drawn."""


class Relay:
    """Listens on a port of its own; every connection through it is cut after some bytes."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self.target = (parts.hostname or "", parts.port or 80)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.n_cut = 0
        """How many connections were cut."""

    def run(self) -> None:
        """Take connections until the socket is closed."""
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
            for end in (client, server):  # closing alone waits for the thread that reads from it
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
