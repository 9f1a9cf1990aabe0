"""Time and memory of a piece of work, measured in a separate process with one thread."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)


@dataclass(frozen=True)
class Cost:
    wall: float
    """Wall seconds, including imports."""
    cpu: float
    """User and system seconds."""
    peak: float
    """Peak memory in MiB."""


def cost_of(arguments: list[str]) -> Cost:
    """Run a command with one thread; raise RuntimeError if it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(arguments, env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with exit code {process.returncode}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def cost_of_code(code: str) -> Cost:
    """Run Python source in a separate process; see `cost_of`."""
    return cost_of([sys.executable, "-c", code])
