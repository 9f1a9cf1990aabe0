"""Thresholds of the filters, and their presets (C-STS, appendix A.2 and Table 6).

Table 6 rejects pairs *below* a cosine distance of 0.4, and so keeps the unlike ones, while section 2.2.1
wants "moderate or high cosine similarity". The presets are Table 6. `distance_at_most` is for the other
reading: a similarity of 0.4 or more is a distance of 0.6 or less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["PRESETS", "Preset", "Thresholds"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a pair must satisfy to be kept; a pair on a threshold is kept.

    Raises ValueError where a bound is not within what its measure can be, or no distance is allowed.
    """

    iou_at_most: float
    """Shared words over all words of the two sentences, without stop words; 0 to 1."""
    distance_at_least: float
    """1 - cosine of the two sentences' embeddings; 0 to 2."""
    ratio_at_least: float
    """Words of the sentence with fewer over words of the one with more; 0 to 1."""
    length_at_least: int
    """Characters of the sentence with fewer."""
    distance_at_most: float = 2.0
    """Not in Table 6; 2 lets every pair pass."""

    def __post_init__(self) -> None:
        limits = {
            "iou_at_most": 1,
            "distance_at_least": 2,
            "distance_at_most": 2,
            "ratio_at_least": 1,
            "length_at_least": math.inf,
        }
        for name, limit in limits.items():
            if not 0 <= getattr(self, name) <= limit:
                raise ValueError(f"{name} is {getattr(self, name)}; 0 to {limit} is allowed")
        low, high = self.distance_at_least, self.distance_at_most
        if low > high:
            raise ValueError(f"distance_at_least is {low}, more than distance_at_most, {high}")


@dataclass(frozen=True, slots=True)
class Preset:
    """A column of Table 6."""

    k: int
    """Neighbours of each source."""
    thresholds: Thresholds


PRESETS = {
    "coco": Preset(64, Thresholds(0.12, 0.4, 0.7, 50)),
    "flickr30k": Preset(128, Thresholds(0.2, 0.4, 0.7, 48)),
}
"""Table 6."""
