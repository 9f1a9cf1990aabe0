"""Files of a running command: no output replaces an input.

A command declares its files by the types of their options (`options.FilePath`); they are compared before
anything is read. Files named inside inputs (settings, folders of data) are compared when they are read and
when they are replaced. Outside commands nothing is compared.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, NamedTuple

from bws.base.problems import InputError, Problem

Role = Literal["input", "output", "folder", "update"]
"""What a command does with a path: reads it, replaces the file, writes files into the folder, or keeps a
file or folder of its own up to date, such as a ledger, a database or results that are reused."""
WRITES: Sequence[Role] = ("output", "folder", "update", "input")
"""The roles in the order in which messages ask for another file."""
Identity = tuple[int, int] | str
"""Device and inode of a file or folder; the resolved path of a missing one."""


class SameFileError(InputError):
    """An output is also an input; nothing may be written to it, not even this message."""


class FileUse(NamedTuple):
    """A path given to an option or argument of a command."""

    option: str
    path: str
    role: Role


@dataclass
class _Running:
    """The files of the running command."""

    outputs: dict[Identity | None, FileUse]
    updated: list[str]
    """Resolved paths of the files and folders that the command updates."""
    read: set[Identity | None] = field(default_factory=set)


_running: ContextVar[_Running | None] = ContextVar("running", default=None)


@contextmanager
def protected_inputs(uses: Sequence[FileUse]) -> Iterator[None]:
    """Protect the inputs of a command while it runs.

    Raises InputError with one problem for each output (file or folder) that is also an input, another output
    or an updated file or folder, also through links.
    """
    identities = [(_identity(use), use) for use in uses]
    if problems := _conflicts(identities):
        raise SameFileError(problems)
    outputs: dict[Identity | None, FileUse] = {
        identity: use for identity, use in identities if use.role == "output"
    }
    updated = [os.path.realpath(use.path) for use in uses if use.role == "update"]
    token = _running.set(_Running(outputs, updated))
    try:
        yield
    finally:
        _running.reset(token)


@contextmanager
def unprotected() -> Iterator[None]:
    """Read an earlier output, which is no input of the command."""
    token = _running.set(None)
    try:
        yield
    finally:
        _running.reset(token)


def note_read(path: str | os.PathLike[str]) -> None:
    """Note that a file is an input of the running command; raise InputError if it is a declared output."""
    running, name = _running.get(), os.fspath(path)
    if running is None or not (identity := _identity(FileUse("", name, "input"))):
        return
    if use := running.outputs.get(identity):
        raise SameFileError(
            Problem(name, None, f"is read by this command; expected another file for {use.option}")
        )
    running.read.add(identity)


def check_not_read(path: str | os.PathLike[str]) -> None:
    """Raise InputError if the running command has read a file and would now replace or remove it.

    Files that the command updates are excepted.
    """
    running, name = _running.get(), os.fspath(path)
    if running is None or _identity(FileUse("", name, "output")) not in running.read:
        return
    target = os.path.realpath(name)
    if not any(
        target == own or target.startswith(os.path.join(own, "")) for own in running.updated
    ):
        message = (
            "is an input of this command, which an output would replace; expected another output"
        )
        raise SameFileError(Problem(name, None, message))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Replace a file inside the block; raises InputError as `check_not_read`.

    The command may read the new file, and write it again.
    """
    check_not_read(path)
    written = FileUse("", os.fspath(path), "output")
    old = _identity(written)
    yield
    if running := _running.get():
        for identity in (old, _identity(written)):
            running.read.discard(identity)
            running.outputs.pop(identity, None)


def _identity(use: FileUse) -> Identity | None:
    """Return what all names of a file share; None for pipes, devices, and inputs that do not exist."""
    try:
        if use.path == "-":
            stream = sys.stdin if use.role == "input" else sys.stdout
            found = os.fstat(stream.fileno())
        else:
            found = os.stat(use.path)
    except (OSError, ValueError, AttributeError):  # A stream may have no descriptor, or be None.
        return None if use.role == "input" else os.path.realpath(use.path)
    is_file = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return (found.st_dev, found.st_ino) if is_file else None


def _conflicts(identities: Sequence[tuple[Identity | None, FileUse]]) -> list[Problem]:
    """Return a problem for each two uses of a file that exclude each other."""
    uses: dict[Identity, list[FileUse]] = {}
    for identity, use in identities:
        if identity:
            uses.setdefault(identity, []).append(use)
    return [
        _conflict(one, other)
        for of_file in uses.values()
        if {use.role for use in of_file} != {"input"}
        for one, other in combinations(of_file, 2)
        if _excludes(one, other)
    ]


def _conflict(one: FileUse, other: FileUse) -> Problem:
    written, other = sorted((one, other), key=lambda use: WRITES.index(use.role))
    name = f" ({other.path})" if other.path != written.path else ""
    is_folder = written.role == "folder" or os.path.isdir(written.path)
    kind = "folder" if is_folder else "file"
    message = (
        f"{written.option} and {other.option}{name} are the same {kind}; expected another {kind}"
    )
    return Problem(written.path, None, f"{message} for {written.option}")


def _excludes(one: FileUse, other: FileUse) -> bool:
    """Return whether two uses of the same file or folder exclude each other."""
    roles = {one.role, other.role}
    is_written = not roles.isdisjoint({"output", "folder"})
    return is_written or (len(roles) > 1 and not os.path.isdir(one.path))
