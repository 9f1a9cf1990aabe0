"""Constant values, and values whose sums of products neither overflow nor underflow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

TOLERANCE = 1e-12
"""Range of values, relative to the largest magnitude, up to which they differ by rounding only."""


def is_constant(values: ArrayLike) -> bool:
    """Return whether all values (n,), n ≥ 1, are equal, except for rounding.

    The range is compared with the largest magnitude, so the unit of the values does not matter. An infinite
    value differs from all finite ones. Values with NaN are not constant.

    >>> is_constant([0.3, 0.1 + 0.2]), is_constant([1e-14, 2e-14]), is_constant([0.0, np.inf])
    (True, False, False)
    """
    array = np.asarray(values, dtype=np.float64)
    return bool(_are_equal(array.min(), array.max()))


def constant_groups(values: Floats, group: Ints) -> NDArray[np.bool_]:
    """Return (G,) whether the values (n,) of each group are constant; group: (n,) indices 0 … G-1, each used.

    >>> constant_groups(np.array([0.3, 0.1 + 0.2, 1.0, 2.0]), np.array([0, 0, 1, 1])).tolist()
    [True, False]
    """
    low = np.full(int(group.max()) + 1, np.inf)
    high = -low
    with np.errstate(invalid="ignore"):  # NaN
        np.minimum.at(low, group, values)
        np.maximum.at(high, group, values)
    return _are_equal(low, high)


def _are_equal(low: ArrayLike, high: ArrayLike) -> NDArray[np.bool_]:
    low, high = np.asarray(low), np.asarray(high)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = high - low
    is_small = np.isfinite(spread) & (spread <= TOLERANCE * np.maximum(-low, high))
    return np.asarray((low == high) | is_small)


def centred(values: ArrayLike) -> Floats:
    """Return values (n,), n ≥ 1, minus their mean, divided by a power of two that makes the largest about 1.

    Correlations of the values stay the same to the last bit. NaN if a value is infinite or NaN.

    >>> centred([2.0**1000, 3 * 2.0**1000]).tolist(), centred([1.0, np.inf]).tolist()
    ([-0.5, 0.5], [nan, nan])
    """
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        return np.full_like(array, np.nan)
    array = _near_one(array)
    return _near_one(array - array.mean())


def _near_one(values: Floats) -> Floats:
    scaled: Floats = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    return scaled
