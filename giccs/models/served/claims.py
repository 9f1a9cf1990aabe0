"""Claims of requests, so that concurrent runs do not send the same request.

A claim is a lock on one byte of a file, at a position given by the request's digest. The operating system
releases it when its process ends, however it ends.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

POSITIONS = 2**62
"""Number of positions in a file; two requests of a run have the same one with negligible probability."""

_LOCK = Lock()
_FILES: dict[Path, int] = {}
"""Open files, never closed: closing one would release all locks of the process on it."""
_CLAIMED: set[tuple[Path, str]] = set()
"""Claims of this process, whose threads share its locks."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CLAIMED.clear)  # Locks are not inherited.


class Claims:
    """Claims of the requests in one cache file, shared by all processes that use the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, request: str) -> bool:
        """Claim a request (hexadecimal digest); return whether no other thread or process claims it."""
        with _LOCK:
            if (self._path, request) in _CLAIMED or not self._lock(request):
                return False
            _CLAIMED.add((self._path, request))
            return True

    def release(self, request: str) -> None:
        """Release a claimed request."""
        import fcntl

        with _LOCK:
            _CLAIMED.remove((self._path, request))
            fcntl.lockf(self._file(), fcntl.LOCK_UN, 1, _position(request))

    def _lock(self, request: str) -> bool:
        import fcntl

        try:
            fcntl.lockf(self._file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _position(request))
        except BlockingIOError:
            return False
        except PermissionError:  # Another process has the lock, on some systems.
            return False
        return True

    def _file(self) -> int:
        if self._path not in _FILES:
            _FILES[self._path] = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        return _FILES[self._path]


def _position(request: str) -> int:
    return int(request[:32], 16) % POSITIONS
