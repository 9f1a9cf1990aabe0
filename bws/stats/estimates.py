"""An estimate: a number with its 95 % interval, or NaN with a reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True, repr=False)
class Estimate:
    """A number with its 95 % interval and sample size; limits are NaN where undefined.

    >>> Estimate(0.5, 0.25, 0.75, 12)
    Estimate(value=0.5, low=0.25, high=0.75, n=12)
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int | None = None
    """Number of items; for a mean over dialogues, of dialogues; None: not stated."""
    reason: str = ""
    """Reason why value, low and high, or only low and high, are NaN; or remarks on exclusions and
    selection."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers: ``stderr``, ``chance``, ``p`` …"""

    @property
    def size(self) -> int:
        """`n`, or 0 if it is not stated."""
        return self.n or 0

    def transformed(self, function: Callable[[float], float]) -> Estimate:
        """Return an increasing function of the value and of its limits.

        >>> Estimate(0.25, 0.16, 0.36).transformed(math.sqrt)
        Estimate(value=0.5, low=0.4, high=0.6)
        """
        return Estimate(function(self.value), function(self.low), function(self.high))

    def with_notes(self, *notes: str) -> Estimate:
        """Return the estimate with notes that are not empty after its reason.

        >>> Estimate(0.5, reason="not computed").with_notes("", "2 pairs excluded").reason
        'not computed; 2 pairs excluded'
        """
        return replace(self, reason="; ".join(filter(None, [self.reason, *notes])))

    def document(self) -> dict[str, Any]:
        """Return the estimate in JSON form, with size and reason only if there are any."""
        numbers: dict[str, Any] = {"value": self.value, "low": self.low, "high": self.high}
        size = {} if self.n is None else {"n": self.n}
        return numbers | size | ({"reason": self.reason} if self.reason else {}) | dict(self.extra)

    def __repr__(self) -> str:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        shown = [
            f"{name}={value!r}" for name, value in values.items() if value not in (None, "", {})
        ]
        return f"Estimate({', '.join(shown)})"
