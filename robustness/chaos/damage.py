"""A file that did not come through whole."""

from __future__ import annotations

import random

__all__ = ["flipped", "truncated"]


def truncated(data: bytes, times: int) -> list[bytes]:
    """Return the data cut off at 0, 1/times, 2/times ... of its length."""
    return [data[: len(data) * step // times] for step in range(times)]


def flipped(data: bytes, times: int) -> list[bytes]:
    """Return the data with one bit changed, each time another one, always the same ones."""
    draw, found = random.Random(0), []
    for _ in range(times):
        changed = bytearray(data)
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        found.append(bytes(changed))
    return found
