"""New items for a design whose annotation has begun: tuples that link them to the old ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from math import ceil, comb

import numpy as np
from numpy.typing import NDArray

from bws.design.balance import MAX_TRIES, Rules, exchange, level_positions, pair_keys, part_repeats
from bws.design.make import FACTOR, check_factor, check_total, not_distinct, tuple_names
from bws.records import Tuples, normal_id

__all__ = ["extend_tuples"]

Members = NDArray[np.int32]


def extend_tuples(
    tuples: Tuples,
    new_items: Sequence[str],
    *,
    factor: float | None = None,
    groups: Sequence[str] | None = None,
    seed: int = 0,
    allow_repeats: bool = False,
) -> Tuples:
    """Add tuples for new items; the old tuples come first and stay as they are.

    Each new tuple holds new items in half of its places (rounded up; fewer where fewer are new) and old
    items of the same group in the others, so that new scores stand on the old scale. A new item gets
    ``factor * K`` appearances or up to one more, as in a design made at once. Old items are used
    equally often, to within one; new pairs repeat no pair while that can be avoided.

    The new tuples are distinct. Where `factor` is not given, it is 2, and a group in which fewer distinct
    tuples link the new items to the old ones gets all of them; `Tuples.notes` says so. With `allow_repeats`
    they may repeat.

    Raises ValueError where a new item is there already, is empty, or its group has too few old items, and,
    without `allow_repeats`, where `factor` asks for more tuples than there are distinct ones.

    >>> from bws.design import make_tuples
    >>> old = make_tuples(["a", "b", "c", "d", "e", "f"], 4)
    >>> both = extend_tuples(old, ["g", "h"])
    >>> (both.members[:12] == old.members).all(), len(both)
    (np.True_, 20)
    """
    check_factor(factor)
    rng = np.random.Generator(np.random.PCG64(seed))
    ids = [normal_id(item) for item in new_items]
    group_ids = [normal_id(group) for group in groups] if groups is not None else [""] * len(ids)
    names = {name: place for place, name in enumerate(tuples.groups)}
    _check(tuples, ids, group_ids, names)
    old = len(tuples.items)
    group_of_new = np.array([names[group] for group in group_ids], np.int32)
    added, notes = [], []
    for group in np.unique(group_of_new):
        new = old + np.flatnonzero(group_of_new == group)
        count, note = _count(tuples, len(new), group, factor, allow_repeats=allow_repeats)
        added.append(_linking(tuples, new, group, count, rng, allow_repeats=allow_repeats))
        notes += [note] if note else []
    members = np.concatenate([tuples.members, *added])
    taken = len(tuples)
    fresh = tuple_names(len(members) - taken, taken)
    while set(fresh) & set(tuples.ids):  # the old tuples may have been named by others
        fresh = np.array([f"{name}x" for name in fresh], dtype=object)
    return Tuples(
        ids=np.concatenate([tuples.ids, fresh]),
        items=np.concatenate([tuples.items, np.array(ids, dtype=object)]),
        group_of_item=np.concatenate([tuples.group_of_item, group_of_new]),
        groups=tuples.groups,
        members=members,
        notes=tuple(notes),
    )


def _check(
    tuples: Tuples, ids: Sequence[str], group_ids: Sequence[str], names: dict[str, int]
) -> None:
    if not ids:
        raise ValueError("there are no new items")
    if len(group_ids) != len(ids):
        raise ValueError(f"{len(group_ids)} groups for {len(ids)} new items; each needs one")
    known = set(zip(tuples.groups[tuples.group_of_item], tuples.items, strict=True))
    for item, group in zip(ids, group_ids, strict=True):
        if group not in names:
            raise ValueError(f"there is no group {group!r} in the design; make tuples for it anew")
        if not item or (group, item) in known:
            raise ValueError(f"item {item!r} is empty or there already; new items are to be added")
        known.add((group, item))


def _n_fresh(k: int, n_new: int) -> int:
    """Return how many places of a new tuple hold new items."""
    return min(n_new, (k + 1) // 2)


def _count(
    tuples: Tuples, n_new: int, group: int, factor: float | None, *, allow_repeats: bool
) -> tuple[int, str]:
    """Return how many tuples link the new items of a group, and a note where that is fewer than usual."""
    k, n_old = tuples.k, int(np.count_nonzero(tuples.group_of_item == group))
    fresh = _n_fresh(k, n_new)
    if n_old < k - fresh:
        raise ValueError(f"{n_old} old items cannot link tuples of {k}; make the design anew")
    wanted = (FACTOR if factor is None else factor) * k * n_new / fresh
    check_total(wanted)
    count = ceil(wanted)
    every = comb(n_new, fresh) * comb(n_old, k - fresh)
    if count <= every or allow_repeats:
        return count, ""
    where = f"group {tuples.groups[group]!r}: " if any(tuples.groups) else ""
    where += f"{n_new} new items beside {n_old} old ones"
    if factor is not None:
        raise ValueError(f"{where}: {not_distinct(count, every)}")
    return every, f"{where}: all {every} distinct tuples of {k} are taken; there would be {count}"


def _linking(
    tuples: Tuples,
    new: NDArray[np.intp],
    group: int,
    count: int,
    rng: np.random.Generator,
    *,
    allow_repeats: bool,
) -> Members:
    """Return tuples of new and old items of one group."""
    k = tuples.k
    old = np.flatnonzero(tuples.group_of_item == group)
    fresh = _n_fresh(k, len(new))
    members = np.hstack([_dealt(new, count, fresh, rng), _dealt(old, count, k - fresh, rng)])
    kind = np.repeat(np.array([0, 1], np.int8), [fresh, k - fresh])
    n = len(tuples.items) + int(new.max()) + 1
    exchange(members, n, rng, Rules(kind=kind))
    before = np.unique(pair_keys(tuples.members, n))
    apart = members.copy()
    if exchange(apart, n, rng, Rules(repeats=True, before=before, kind=kind)):
        members = apart
    elif not allow_repeats:
        sparse = 2 * count <= comb(len(new), fresh) * comb(len(old), k - fresh)
        if not part_repeats(members, n, rng, Rules(kind=kind), MAX_TRIES if sparse else 0):
            members = _crowded(new, old, count, k, rng)
    return _positioned(rng.permuted(members, axis=1))


def _crowded(
    new: NDArray[np.intp], old: NDArray[np.intp], count: int, k: int, rng: np.random.Generator
) -> Members:
    """Return distinct tuples where they are a large share of all that there are.

    One after the other, the tuple whose items have been used least is taken; ties go by chance.
    """
    fresh = _n_fresh(k, len(new))
    pairs = product(combinations(new.tolist(), fresh), combinations(old.tolist(), k - fresh))
    every = rng.permutation(np.array([a + b for a, b in pairs], np.int32))
    used = np.zeros(int(every.max()) + 1, np.int64)
    free = np.ones(len(every), bool)
    for _ in range(count):
        cost = np.where(free, (2 * used[every] + 1).sum(axis=1), np.iinfo(np.int64).max)
        row = int(cost.argmin())
        free[row] = False
        used[every[row]] += 1
    return every[~free]


def _dealt(items: NDArray[np.intp], count: int, places: int, rng: np.random.Generator) -> Members:
    """Return (count, places) items, each used equally often, to within one."""
    rounds = -(-count * places // len(items))
    slots = np.concatenate([np.empty(0, np.intp), *(rng.permutation(items) for _ in range(rounds))])
    return slots[: count * places].reshape(count, places).astype(np.int32)


def _positioned(members: Members) -> Members:
    used, number = np.unique(members, return_inverse=True)
    ordered = level_positions(number.reshape(members.shape).astype(np.int32), len(used))
    return used[ordered].astype(np.int32)
