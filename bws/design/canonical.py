"""The design that the field's scripts make (Kiritchenko and Mohammad), for those who compare.

Those scripts break ties by hash order, so that their results differ between runs in spite of a fixed
seed; here the first of equally good iterations is kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bws.design.pairs import pair_keys

__all__ = ["canonical"]

ITERATIONS = 100
Members = NDArray[np.int32]


def canonical(n: int, k: int, count: int, rng: np.random.Generator) -> Members:
    """Return (count, k) item numbers: the random design, of a hundred, with the most level pairs.

    Level is the smallest standard deviation of pair counts over all pairs, which for a fixed number of
    tuples orders designs as the sum of squared counts does. Tuples may repeat, as they may there.
    """
    if not 2 <= k <= n:
        raise ValueError(f"tuples of {k} need {max(k, 2)} or more items; there are {n}")
    designs = (_cut(n, k, count, rng) for _ in range(ITERATIONS))
    return min(designs, key=lambda members: _sum_of_squares(members, n))  # min keeps the first


def _cut(n: int, k: int, count: int, rng: np.random.Generator) -> Members:
    """Shuffle the items and cut tuples off; when they run short, take the rest and shuffle all again."""
    left = rng.permutation(n).tolist()
    tuples = []
    for _ in range(count):
        chosen, left = left[:k], left[k:]
        if len(chosen) < k:
            left = rng.permutation(n).tolist()
            fill = [item for item in left if item not in chosen][: k - len(chosen)]
            left = [item for item in left if item not in fill]
            chosen += fill
        tuples.append(chosen)
    return np.array(tuples, np.int32)


def _sum_of_squares(members: Members, n: int) -> int:
    return int((np.unique(pair_keys(members, n), return_counts=True)[1] ** 2).sum())
