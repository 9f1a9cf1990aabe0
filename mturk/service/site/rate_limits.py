"""Rate limits per worker and per address: token buckets in memory."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A rate limit: burst size and sustained rate."""

    burst: float
    per_second: float


class TokenBuckets:
    """One token bucket per key; least recently used keys are dropped first.

    >>> buckets = TokenBuckets(RateLimit(burst=2, per_second=0.5), now=lambda: 0.0)
    >>> [buckets.wait("a") for _ in range(3)], buckets.wait("b")
    ([0, 0, 2], 0)
    """

    def __init__(self, rate: RateLimit, *, now: Callable[[], float], keys: int = 10_000) -> None:
        self._rate, self._now, self._keys = rate, now, keys
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, key: str) -> int:
        """Take a token; return 0, or the seconds (rounded up) until a token is available."""
        with self._lock:
            level = self._level(key)
            is_allowed = level >= 1
            self._levels[key] = (level - is_allowed, self._now())
            self._levels.move_to_end(key)
            if len(self._levels) > self._keys:
                self._levels.popitem(last=False)
        return 0 if is_allowed else math.ceil((1 - level) / self._rate.per_second)

    def _level(self, key: str) -> float:
        level, since = self._levels.get(key, (self._rate.burst, self._now()))
        elapsed = max(0.0, self._now() - since)
        return min(self._rate.burst, level + elapsed * self._rate.per_second)


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Rate limits of a site, far above the rate of human workers."""

    worker: RateLimit = field(default=RateLimit(burst=600, per_second=30))
    """Requests and submissions per signed-in worker."""
    address: RateLimit = field(default=RateLimit(burst=300, per_second=10))
    """Requests per address without sign-in."""
    refusals: RateLimit = field(default=RateLimit(burst=60, per_second=0.5))
    """Invalid links, tokens and forms per address."""
