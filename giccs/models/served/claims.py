"""Claims of requests, so that concurrent runs do not send the same request.

A claim is a lock on a file named after the request's digest, which exists while it is claimed. The operating
system releases the lock when its process ends, however it ends.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

_LOCK = Lock()
_CLAIMED: dict[Path, BaseFileLock] = {}
"""Claims of this process, whose threads share its locks."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CLAIMED.clear)  # Claims are not inherited.


class Claims:
    """Claims of the requests in one cache file, shared by all processes that use the file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder

    def take(self, request: str) -> bool:
        """Claim a request (hexadecimal digest); return whether no other thread or process claims it."""
        from filelock import FileLock, Timeout

        path = self._folder / request
        with _LOCK:
            if path in _CLAIMED:
                return False
            lock = FileLock(path, blocking=False, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                return False
            _CLAIMED[path] = lock
            return True

    def release(self, request: str) -> None:
        """Release a claimed request."""
        path = self._folder / request
        with _LOCK:
            lock = _CLAIMED.pop(path)
            with suppress(OSError):  # Windows keeps open files; there, release deletes it.
                path.unlink()  # A process that has opened it notices, and does not claim it.
            lock.release()
