"""How far is a mean off where rows share texts?"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["shared_products"]


def shared_products(off: NDArray[np.float64], texts: Sequence[tuple[str, ...]]) -> float:
    """Return the sum of off[i] · off[j] over all i, j whose rows have a text in common, i = j too.

    off: (N,) how far each row is from the mean; texts: one or two a row. Over N² that is the variance of the
    mean (Fafchamps and Gubert 2007). Sums by text count rows with both texts in common twice, so sums by
    both are taken off again.

    >>> shared_products(np.array([1.0, 2.0, 3.0]), [("a", "b"), ("b", "a"), ("b", "c")])
    36.0
    """
    by_text: defaultdict[str, float] = defaultdict(float)
    by_both: defaultdict[frozenset[str], float] = defaultdict(float)
    for one, row in zip(off.tolist(), texts, strict=True):
        both = frozenset(row)
        for text in both:
            by_text[text] += one
        if len(both) > 1:
            by_both[both] += one
    return math.fsum(s * s for s in by_text.values()) - math.fsum(s * s for s in by_both.values())
