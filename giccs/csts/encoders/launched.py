"""How many processes train together, and which of them writes? What torchrun and accelerate launch set."""

from __future__ import annotations

import os

__all__ = ["is_first", "processes"]


def processes() -> int:
    """Return how many processes train together; 1 where none were launched."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first() -> bool:
    """Tell whether this is the process that writes and speaks."""
    return int(os.environ.get("RANK", "0")) == 0
