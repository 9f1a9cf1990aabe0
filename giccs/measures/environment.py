"""Where a result came from: machine, interpreter, time. Of no influence on it beyond rounding."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import Any

import numpy as np

__all__ = ["environment"]


def environment() -> dict[str, Any]:
    """Return what stands in every result; names neither the machine nor its user."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
    }
