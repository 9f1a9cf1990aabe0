"""How a cost grows with the size of the work, and where it meets a limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["Growth", "growth"]


@dataclass(frozen=True, slots=True)
class Growth:
    """What was measured at the two largest sizes, and the slope over all."""

    exponent: float
    """b of cost = a·n^b, by least squares on logarithms: 0 stays the same, 1 is proportional."""
    error: float
    """Its standard error; NaN for two sizes, which lie on a line always."""
    size: int
    """The largest."""
    cost: float
    """There."""
    rate: float
    """Cost of one more, between the two largest sizes."""

    def at(self, size: float) -> float:
        """Return the cost at a size, along the straight line through the two largest.

        >>> growth({1: 12.0, 2: 14.0}).at(10)
        30.0
        """
        return self.cost + self.rate * (size - self.size)

    def reaches(self, limit: float) -> float:
        """Return the size at which the cost is `limit`; infinite where it does not grow.

        >>> growth({1: 12.0, 2: 14.0}).reaches(30.0)
        10.0
        """
        return self.size + (limit - self.cost) / self.rate if self.rate > 0 else math.inf


def growth(costs: Mapping[int, float]) -> Growth:
    """Return how costs, above 0 and at two sizes or more, grow with the size."""
    if len(costs) < 2 or min(costs.values()) <= 0:
        raise ValueError(f"costs is {dict(costs)}; two sizes or more and costs above 0 are allowed")
    sizes = sorted(costs)
    x, y = np.log(sizes), np.log([costs[n] for n in sizes])
    off = x - x.mean()
    exponent = float(off @ y / (off @ off))
    left = y - y.mean() - exponent * off
    free = len(sizes) - 2
    error = math.sqrt(float(left @ left) / free / float(off @ off)) if free else math.nan
    below, largest = sizes[-2:]
    rate = (costs[largest] - costs[below]) / (largest - below)
    return Growth(exponent, error, largest, costs[largest], rate)
