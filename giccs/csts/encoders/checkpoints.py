"""Which checkpoint of a training that was interrupted can be gone on from?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

__all__ = ["discard_broken", "last_whole"]

STATE = "trainer_state.json"
"""What transformers writes last into a checkpoint."""
NEEDED = ("model.safetensors", "optimizer.pt", "scheduler.pt")


def last_whole(folder: Path) -> Path | None:
    """Return the latest checkpoint that was written to its end; None where there is none."""
    whole = [path for path in folder.glob("checkpoint-*") if _is_whole(path)]
    return max(whole, key=_step, default=None)


def discard_broken(folder: Path) -> None:
    """Remove what a killed training left half written, so that nobody goes on from it."""
    for path in folder.glob("checkpoint-*"):
        if not _is_whole(path):
            shutil.rmtree(path)


def _is_whole(path: Path) -> bool:
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return state.get("global_step") == _step(path) and all(
        (path / name).is_file() for name in NEEDED
    )


def _step(path: Path) -> int:
    number = path.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1
