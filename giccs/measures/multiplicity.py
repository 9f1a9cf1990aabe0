"""Many tests at once: adjusted p-values, and the rank intervals that follow from all pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["benjamini_hochberg", "holm", "rank_intervals"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def holm(p: Floats) -> Floats:
    """Return p-values (n,) adjusted by Holm (1979, Scand. J. Stat. 6): family-wise error, any dependence.

    NaN (a test that was not possible) stays NaN and does not count as a test.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()  # 3 · .01, 2 · .03, then at least as much
    [0.03, 0.06, 0.06]
    """
    order, n = _defined_in_order(p)
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(n, 0, -1)))
    return adjusted


def benjamini_hochberg(p: Floats) -> Floats:
    """Return p-values (n,) adjusted by Benjamini and Hochberg (1995, J. R. Stat. Soc. B 57).

    Rejecting at 0.05 keeps the expected share of false rejections at 5 % or less. NaN as in `holm`.

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
    return np.argsort(p)[:n], n  # NaN comes last


def rank_intervals(better: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the lowest and the highest rank (M,) of each model that all pairwise decisions allow.

    better: (M, M), whether the model of the row is significantly better than that of the column. If the
    family-wise error of these decisions is 5 %, all intervals together contain the true ranks with a
    probability of 95 % (Al Mohamad, Goeman and van Zwet 2022, Biometrics 78; Mogstad, Romano, Shaikh and
    Wilhelm 2024, Rev. Econ. Stud. 91).

    >>> low, high = rank_intervals(np.array([[False, True], [False, False]]))
    >>> low.tolist(), high.tolist()
    ([1, 2], [1, 2])
    """
    return 1 + better.sum(axis=0), len(better) - better.sum(axis=1)
