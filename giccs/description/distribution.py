"""How are the scores of a benchmark spread over [0, 1]?  (Paper section 4.1, Figure 1.)"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["FIGURE_1_BINS", "Bin", "distribution"]

FIGURE_1_BINS = 5
"""0–0.2, 0.2–0.4, 0.4–0.6, 0.6–0.8 and 0.8–1."""
ROUNDING = 1e-9
"""How far below a boundary arithmetic may leave a score that lies on it: (s + 1) / 2 of some s."""


@dataclass(frozen=True, slots=True)
class Bin:
    """A stretch of [0, 1] and how many items have a score in it."""

    low: float
    """Where it begins; a score that equals it is inside."""
    high: float
    """Where it ends; a score that equals it is in the next bin, but 1 in the last."""
    items: int

    @property
    def label(self) -> str:
        """As Figure 1 writes it.

        >>> Bin(0.8, 1.0, 7).label
        '0.8–1'
        """
        return f"{self.low:.4g}–{self.high:.4g}"


def distribution(scores: Sequence[float], bins: int = FIGURE_1_BINS) -> tuple[Bin, ...]:
    """Count scores in equal bins of [0, 1]; a score on a boundary is in the upper bin, 1 in the last.

    The paper's Figure 1 does not say to which bin a boundary belongs. Empty input gives empty bins.
    Raises ValueError for a score outside [0, 1] (NaN is), and for fewer than one bin.

    >>> [bin.items for bin in distribution([0.0, 0.1, 0.2, 0.55, 1.0])]
    [2, 1, 1, 0, 1]
    """
    if bins < 1:
        raise ValueError(f"bins is {bins}; there must be at least one")
    if outside := [score for score in scores if not 0 <= score <= 1]:
        raise ValueError(f"a score is {outside[0]}; scores lie in [0, 1]")
    counts = Counter(min(math.floor(score * bins + ROUNDING), bins - 1) for score in scores)
    return tuple(Bin(k / bins, (k + 1) / bins, counts[k]) for k in range(bins))
