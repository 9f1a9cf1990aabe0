"""Pairs of items inside tuples, as sortable integers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["combination_keys", "pair_columns", "pair_keys"]


def pair_columns(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the left and the right column of each of the K(K-1)/2 pairs of columns."""
    left, right = np.triu_indices(k, 1)
    return left, right


def pair_keys(members: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    """Return (T, K(K-1)/2) keys; two pairs of items have one key when they are the same two.

    >>> pair_keys(np.array([[0, 2, 1], [2, 0, 3]], np.int32), 4).tolist()
    [[2, 1, 6], [2, 11, 3]]
    """
    left, right = pair_columns(members.shape[1])
    a, b = members[:, left], members[:, right]
    return np.minimum(a, b).astype(np.int64) * n + np.maximum(a, b)


def combination_keys(members: NDArray[np.int32], n: int, size: int) -> NDArray[np.int64]:
    """Return (T, C(K, size)) keys of the sets of `size` items; n ** size must fit into 63 bits."""
    columns = np.array(list(combinations(range(members.shape[1]), size)))
    chosen = np.sort(members, axis=1)[:, columns].astype(np.int64)
    key = chosen[..., 0]
    for place in range(1, size):
        key = key * n + chosen[..., place]
    return key
