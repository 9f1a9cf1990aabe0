"""Processes that a process left behind."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["descendants", "kill_descendants"]


def descendants(pid: int) -> list[int]:
    """Return the live processes that a process has started, and those that they have started."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            state, parent = entry.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.parent.name)] = int(parent)
    found, wanted = [], {pid}
    while wanted:
        wanted = {child for child, parent in parents.items() if parent in wanted}
        found += sorted(wanted)
    return found


def kill_descendants(pid: int) -> None:
    """Kill them all, and those that they start meanwhile; this process buries its own."""
    deadline = time.monotonic() + 10
    while (found := descendants(pid)) and time.monotonic() < deadline:
        for one in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        time.sleep(0.01)
    with suppress(ChildProcessError):
        while pid == os.getpid() and os.waitpid(-1, os.WNOHANG)[0]:
            pass
