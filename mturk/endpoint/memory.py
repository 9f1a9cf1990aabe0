"""How much memory may the service's threads set aside, each for itself?"""

from __future__ import annotations

import ctypes
import os

__all__ = ["ARENAS", "bound_arenas"]

ARENAS = 2
M_ARENA_MAX = -8
"""From glibc's malloc.h."""


def bound_arenas(most: int = ARENAS) -> bool:
    """Let the C library's malloc keep so many pools of memory for all threads; tell whether it obeys.

    glibc gives every thread a pool of its own, up to eight for each processor, and a pool keeps what its
    largest request took: a list of a hundred HITs with their questions is some ten MiB. Requests run in
    threads that come and go, so one pool after the other grows to that size. MALLOC_ARENA_MAX in the
    environment counts more; other C libraries have no such pools, and nothing happens. Before threads start.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or "MALLOC_ARENA_MAX" in os.environ:
        return False
    return bool(mallopt(M_ARENA_MAX, most))
