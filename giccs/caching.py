"""Where does what can be computed again lie: served answers, vectors, word vectors that are mapped?"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Return the folder, made where it is not there.

    It is ``GICCS_CACHE``, else ``giccs`` in ``XDG_CACHE_HOME``, else ``~/.cache/giccs``.
    """
    environment_folder = os.environ.get("GICCS_CACHE")
    folder = (
        Path(environment_folder)
        if environment_folder
        else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "giccs"
    )
    folder = folder.expanduser()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # what models answered is its owner's
    return folder
