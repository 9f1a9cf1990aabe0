"""Threads share malloc arenas; their number is reported by malloc."""

import ctypes
import os
import subprocess
import sys

import pytest

from mturk.service.server import MAX_MALLOC_ARENAS

GLIBC = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_info")
COUNT = """
import ctypes, sys, threading

obeyed = False
if sys.argv[1] == "bounded":
    from mturk.service.server import limit_malloc_arenas
    obeyed = limit_malloc_arenas()
together = threading.Barrier(8)

def request():
    together.wait()
    kept = [bytes(2000) for _ in range(500)]
    together.wait()

threads = [threading.Thread(target=request) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
print(obeyed, open(sys.argv[2]).read().count("<heap nr="))
"""


def pools(tmp_path, how, **environment):
    """Return whether the limit was set, and the number of arenas after eight concurrent threads."""
    known = {key: value for key, value in os.environ.items() if key != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        [sys.executable, "-c", COUNT, how, str(tmp_path / "malloc.xml")],
        env=known | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    obeyed, count = done.stdout.split()
    return obeyed == "True", int(count)


@pytest.mark.skipif(not GLIBC, reason="the C library has no malloc_info")
def test_eight_threads_share_two_pools(tmp_path):
    assert pools(tmp_path, "bounded") == (True, MAX_MALLOC_ARENAS)
    obeyed, count = pools(tmp_path, "as it is")
    assert not obeyed
    assert count > MAX_MALLOC_ARENAS  # or there is nothing to bound


@pytest.mark.skipif(not GLIBC, reason="the C library has no malloc_info")
def test_what_the_operator_has_set_counts_more(tmp_path):
    assert pools(tmp_path, "bounded", MALLOC_ARENA_MAX="4") == (False, 4)
