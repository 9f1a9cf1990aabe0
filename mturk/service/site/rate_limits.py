"""How often one worker, or one address, may ask: token buckets in memory."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Buckets", "Rate", "Rates"]


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many a second after that."""

    burst: float
    per_second: float


class Buckets:
    """One bucket a key; the ones not seen for longest are forgotten first.

    >>> buckets = Buckets(Rate(burst=2, per_second=0.5), now=lambda: 0.0)
    >>> [buckets.wait("a") for _ in range(3)], buckets.wait("b")
    ([0, 0, 2], 0)
    """

    def __init__(self, rate: Rate, *, now: Callable[[], float], keys: int = 10_000) -> None:
        self._rate, self._now, self._keys = rate, now, keys
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, key: str) -> int:
        """Take one; return 0, or the whole seconds after which there will be one again."""
        with self._lock:
            level = self._level(key)
            taken = level >= 1
            self._levels[key] = (level - taken, self._now())
            self._levels.move_to_end(key)
            if len(self._levels) > self._keys:
                self._levels.popitem(last=False)
        return 0 if taken else math.ceil((1 - level) / self._rate.per_second)

    def _level(self, key: str) -> float:
        level, since = self._levels.get(key, (self._rate.burst, self._now()))
        passed = max(0.0, self._now() - since)
        return min(self._rate.burst, level + passed * self._rate.per_second)


@dataclass(frozen=True, slots=True)
class Rates:
    """The limits of a site: far above what a person does, far below what hurts."""

    worker: Rate = field(default=Rate(burst=600, per_second=30))
    """Requests of one worker who has entered, and answers to one worker's questions."""
    address: Rate = field(default=Rate(burst=300, per_second=10))
    """Requests from one address by people who have not entered."""
    refusals: Rate = field(default=Rate(burst=60, per_second=0.5))
    """Invalid links, tokens and forms from one address."""
