"""Cache directory for reproducible data: answers of servers, vectors, memory-mapped word vectors."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the cache directory, creating it if needed.

    It is ``GICCS_CACHE``, or ``giccs`` in ``XDG_CACHE_HOME``, or ``~/.cache/giccs``.
    """
    environment_folder = os.environ.get("GICCS_CACHE")
    folder = (
        Path(environment_folder)
        if environment_folder
        else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "giccs"
    )
    folder = folder.expanduser()
    folder.mkdir(
        mode=0o700, parents=True, exist_ok=True
    )  # Answers of models are private to the user.
    return folder
