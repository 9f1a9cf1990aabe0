"""One design: T distinct K-tuples of N items with level appearances and level pairs.

Every item first gets its appearances, column by column, which only exchanges between two tuples then
move: they stay level whatever follows. Exchanges remove what must not be (an item twice in a tuple,
items that are to be kept apart) and what need not be (a pair that meets again while others have not).

Dense designs are reached from the other side: when more than half of all tuples are wanted, those to leave
out are chosen; when tuples hold more than half of the items, those that each tuple lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from bws.design.climb import level_pairs
from bws.design.exchange import Rules, exchange, part_repeats

__all__ = ["balanced"]

Members = NDArray[np.int32]
DENSE = 2000
"""Up to so many items a table of all pairs is kept."""
CROWDED = 0.25
"""Share of all pairs from which exchanging at random no longer finds free pairs."""


def balanced(
    n: int,
    k: int,
    count: int,
    rng: np.random.Generator,
    apart: Sequence[Sequence[int]] = (),
    together: Sequence[Sequence[int]] = (),
) -> Members:
    """Return (count, k) item numbers below n.

    Appearances differ by at most one. Tuples are distinct while enough exist, afterwards each has been
    used equally often, give or take one. `apart`: sets of items of which no tuple holds two; `together`:
    sets that one tuple holds whole; with either, tuples are distinct where exchanges of items find such
    tuples. ValueError where that cannot be.

    >>> rng = np.random.default_rng(0)
    >>> design = balanced(5, 3, 10, rng)
    >>> len(set(map(frozenset, design.tolist()))), np.bincount(design.ravel()).tolist()
    (10, [6, 6, 6, 6, 6])
    """
    if not 2 <= k <= n:
        raise ValueError(f"tuples of {k} need {max(k, 2)} or more items; there are {n}")
    if apart or together:
        return _constrained(n, k, count, rng, apart, together)
    every = comb(n, k)
    if count <= every // 2:
        return _distinct(n, k, count, rng)
    whole, rest = divmod(count, every)
    all_tuples = np.array(list(combinations(range(n), k)), np.int32)
    if rest <= every // 2:
        last = _distinct(n, k, rest, rng)
    else:
        last = _all_but(all_tuples, _distinct(n, k, every - rest, rng), n)
    return np.concatenate([*[all_tuples] * whole, last])


def _all_but(all_tuples: Members, left_out: Members, n: int) -> Members:
    skipped = {tuple(sorted(members)) for members in left_out.tolist()}
    kept = [members for members in all_tuples.tolist() if tuple(members) not in skipped]
    return np.array(kept, np.int32).reshape(-1, all_tuples.shape[1])


def _distinct(n: int, k: int, count: int, rng: np.random.Generator) -> Members:
    """Return at most half of all tuples, each once."""
    if count == 0:
        return np.empty((0, k), np.int32)
    if 2 * k > n:
        return _lacking(_distinct(n, n - k, count, rng), n)
    members = _filled(n, k, count, rng)
    if k == 1:
        return members
    crowded = count * k * (k - 1) > CROWDED * n * (n - 1)
    columns = np.arange(k, dtype=np.int8)  # exchanges inside a column keep positions level
    pairs_parted = exchange(members, n, rng, Rules(repeats=not crowded, kind=columns))
    if n <= DENSE:
        return level_pairs(members, n, rng)
    if crowded or not pairs_parted:
        part_repeats(members, n, rng, Rules(kind=columns))
    return members


def _lacking(members: Members, n: int) -> Members:
    """Return for each tuple the items that it does not hold."""
    present = np.zeros((len(members), n), bool)
    np.put_along_axis(present, members.astype(np.intp), True, axis=1)
    return np.nonzero(~present)[1].reshape(len(members), -1).astype(np.int32)


def _filled(n: int, k: int, count: int, rng: np.random.Generator) -> Members:
    """Return tuples at random in which items stand equally often, over all and in each column.

    Each column holds all items equally often and a stretch of a random circle of items once more; the
    stretch of the next column begins where this one ends.
    """
    times, more = divmod(count, n)
    circle = rng.permutation(n)
    columns = [
        np.concatenate(
            [np.tile(np.arange(n), times), np.take(circle, more * c + np.arange(more), mode="wrap")]
        )
        for c in range(k)
    ]
    return rng.permuted(np.stack(columns, axis=1).astype(np.int32), axis=0)


def _constrained(
    n: int,
    k: int,
    count: int,
    rng: np.random.Generator,
    apart: Sequence[Sequence[int]],
    together: Sequence[Sequence[int]],
) -> Members:
    _check_constraints(n, k, count, apart, together)
    quota = np.bincount(_filled(n, k, count, rng).ravel(), minlength=n)
    members = np.full((count, k), -1, np.int32)
    for row, chosen in enumerate(together):
        members[row, : len(chosen)] = chosen
    free = members < 0
    quota -= np.bincount(members[~free], minlength=n)
    if quota.min() < 0:
        item = int(quota.argmin())
        raise ValueError(f"item {item} is in more sets of `together` than it has appearances")
    members[free] = rng.permutation(np.repeat(np.arange(n, dtype=np.int32), quota))
    forbidden = [pair for chosen in apart for pair in combinations(sorted(set(chosen)), 2)]
    keys = np.array(sorted({a * n + b for a, b in forbidden}), np.int64)
    crowded = count * k * (k - 1) > CROWDED * n * (n - 1)
    if not exchange(members, n, rng, Rules(movable=free, forbidden=keys)):
        raise ValueError(
            "no design was found that keeps these items apart or together; relax `apart`"
        )
    if not crowded:
        exchange(members, n, rng, Rules(movable=free, forbidden=keys, repeats=True))
    part_repeats(members, n, rng, Rules(movable=free, forbidden=keys))
    return members


def _check_constraints(
    n: int, k: int, count: int, apart: Sequence[Sequence[int]], together: Sequence[Sequence[int]]
) -> None:
    for chosen in apart:
        if len(set(chosen)) * k > n:
            raise ValueError(
                f"{len(set(chosen))} items are to be kept apart; with tuples of {k} out of {n} items "
                f"at most {n // k} can be"
            )
    if len(together) > count:
        raise ValueError(
            f"{len(together)} sets of `together` need as many tuples; there are {count}"
        )
    for chosen in together:
        if not 2 <= len(set(chosen)) <= k:
            raise ValueError(
                f"a set of `together` has {len(set(chosen))} items; 2 to {k} are allowed"
            )
        for other in apart:
            if len(set(chosen) & set(other)) > 1:
                raise ValueError("two items are both in `apart` and in `together`")
