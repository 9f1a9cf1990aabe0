"""Thresholds of the filters, and their presets (C-STS, appendix A.2 and Table 6).

Table 6 rejects pairs *below* a cosine distance of 0.4 and thus keeps dissimilar pairs, while section 2.2.1
asks for "moderate or high cosine similarity". The presets follow Table 6. `distance_at_most` supports the
other
reading: a similarity of at least 0.4 is a distance of at most 0.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Criteria for keeping a pair; bounds are inclusive.

    Raises ValueError for a bound out of the range of its measure, or if no distance satisfies both bounds.
    """

    iou_at_most: float
    """Shared words over all words of the two sentences, without stop words; 0 to 1."""
    distance_at_least: float
    """1 - cosine of the two sentences' embeddings; 0 to 2."""
    ratio_at_least: float
    """Number of words of the shorter sentence over that of the longer one; 0 to 1."""
    length_at_least: int
    """Number of characters of the shorter sentence."""
    distance_at_most: float = 2.0
    """Not in Table 6; 2 accepts every pair."""

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
                raise ValueError(f"{name} is {getattr(self, name)}; expected 0 to {limit}")
        low, high = self.distance_at_least, self.distance_at_most
        if low > high:
            raise ValueError(f"distance_at_least is {low}, more than distance_at_most, {high}")


@dataclass(frozen=True, slots=True)
class Preset:
    """A column of Table 6."""

    k: int
    """Number of neighbours per source."""
    thresholds: Thresholds


PRESETS = {
    "coco": Preset(64, Thresholds(0.12, 0.4, 0.7, 50)),
    "flickr30k": Preset(128, Thresholds(0.2, 0.4, 0.7, 48)),
}
"""Table 6."""
