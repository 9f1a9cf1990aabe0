"""Numbers with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval. NaN has a reason; without limits and reason, none were requested."""

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int | None = None
    """Number of items; for a mean over dialogues, of dialogues; None where it is stated elsewhere."""
    reason: str = ""
    """Reason why value, low and high, or only low and high, are NaN; or remarks on exclusions and
    selection."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers: ``stderr``, ``chance``, ``p`` …"""

    @property
    def count(self) -> int:
        """`n`, or 0 where it is stated elsewhere."""
        return self.n or 0

    @property
    def limits(self) -> tuple[float, float, float]:
        """Value, low and high."""
        return self.value, self.low, self.high

    def __repr__(self) -> str:
        known = [
            ("n", self.n),
            ("reason", self.reason or None),
            ("extra", dict(self.extra) or None),
        ]
        parts = [f"value={self.value}, low={self.low}, high={self.high}"]
        parts += [f"{name}={value!r}" for name, value in known if value is not None]
        return f"Estimate({', '.join(parts)})"

    def document(self) -> dict[str, Any]:
        """Return the estimate as a dict, with n and reason only if they are known."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        known = {"n": self.n, "reason": self.reason or None}
        return (
            numbers
            | {key: each for key, each in known.items() if each is not None}
            | {**self.extra}
        )
