"""Small disks that fill up and folders that cannot be written, without being root.

A process that called `own_mounts` sees mounts of its own, which end with it: as root in a mount namespace,
else in a user namespace too, where the kernel grants what mount(2) asks for and nothing outside. What it
starts inherits the mounts; started by an ordinary user, it does not inherit the right to change them.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["fill", "needs_mounts", "own_mounts", "read_only", "small_disk"]

NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 0x4000, 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)
_why_not = "this process has no mounts of its own"


def own_mounts() -> None:
    """Give this process mounts of its own; to be called before it has a second thread.

    Where the kernel refuses, `needs_mounts` says so.
    """
    global _why_not
    try:
        if os.geteuid() == 0:
            _call("unshare", NEW_MOUNTS)
        else:
            _own_user()
        _call("mount", None, b"/", None, RECURSIVE | PRIVATE, None)
        _why_not = ""
    except OSError as error:
        _why_not = f"the kernel refuses mounts of one's own ({error.strerror})"


def _own_user() -> None:
    user, group = os.geteuid(), os.getegid()
    _call("unshare", NEW_MOUNTS | NEW_USER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def needs_mounts() -> str:
    """Return why there are no small disks and read-only folders here; empty where there are."""
    return _why_not


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
