"""P-values adjusted for several tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def holm(p: Floats) -> Floats:
    """Return p-values (n,) adjusted by Holm (1979, Scand. J. Stat. 6): family-wise error, any dependence.

    NaN (an impossible test) stays NaN and does not count as a test.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()  # 3 · .01, 2 · .03, then at least as much
    [0.03, 0.06, 0.06]
    """
    order, n = _defined_in_order(p)
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(n, 0, -1)))
    return adjusted


def benjamini_hochberg(p: Floats) -> Floats:
    """Return p-values (n,) adjusted by Benjamini and Hochberg (1995, J. R. Stat. Soc. B 57).

    Rejecting at 0.05 limits the expected share of false rejections to 5 %. NaN as in `holm`.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(3).tolist()  # 3/1 · .01, 3/3 · .04, and less
    [0.03, 0.04, 0.04]
    """
    order, n = _defined_in_order(p)
    scaled = p[order] * n / np.arange(1, n + 1)
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return adjusted


def _defined_in_order(p: Floats) -> tuple[Ints, int]:
    n = int(np.count_nonzero(~np.isnan(p)))
    return np.argsort(p)[:n], n  # NaN is last.
