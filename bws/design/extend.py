"""New items for a design whose annotation has begun: tuples that link them to the old ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bws.design.exchange import Rules, exchange
from bws.design.make import tuple_names
from bws.design.pairs import pair_keys
from bws.design.positions import level_positions
from bws.records import Tuples, normal_id

__all__ = ["extend_tuples"]

Members = NDArray[np.int32]


def extend_tuples(
    tuples: Tuples,
    new_items: Sequence[str],
    *,
    factor: float = 2.0,
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> Tuples:
    """Add tuples for new items; the old tuples come first and stay as they are.

    Each new tuple holds new items in half of its places (rounded up; fewer where fewer are new) and old
    items of the same group in the others, so that new scores stand on the old scale. A new item gets
    ``factor * K`` appearances or up to one more, as in a design made at once. Old items are used
    equally often, to within one; new pairs repeat no pair while that can be avoided.

    Raises ValueError where a new item is there already, is empty, or its group has too few old items.

    >>> from bws.design import make_tuples
    >>> old = make_tuples(["a", "b", "c", "d", "e", "f"], 4)
    >>> both = extend_tuples(old, ["g", "h"])
    >>> (both.members[:12] == old.members).all(), len(both)
    (np.True_, 20)
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    ids = [normal_id(item) for item in new_items]
    group_ids = [normal_id(group) for group in groups] if groups is not None else [""] * len(ids)
    names = {name: place for place, name in enumerate(tuples.groups)}
    _check(tuples, ids, group_ids, names)
    old = len(tuples.items)
    group_of_new = np.array([names[group] for group in group_ids], np.int32)
    added = [
        _linking(tuples, old + np.flatnonzero(group_of_new == group), group, factor, rng)
        for group in np.unique(group_of_new)
    ]
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


def _linking(
    tuples: Tuples, new: NDArray[np.intp], group: int, factor: float, rng: np.random.Generator
) -> Members:
    """Return tuples of new and old items of one group."""
    k = tuples.k
    old = np.flatnonzero(tuples.group_of_item == group)
    fresh = min(len(new), (k + 1) // 2)
    if len(old) < k - fresh:
        raise ValueError(f"{len(old)} old items cannot link tuples of {k}; make the design anew")
    count = int(np.ceil(factor * k * len(new) / fresh))
    members = np.hstack([_dealt(new, count, fresh, rng), _dealt(old, count, k - fresh, rng)])
    kind = np.repeat(np.array([0, 1], np.int8), [fresh, k - fresh])
    n = len(tuples.items) + int(new.max()) + 1
    exchange(members, n, rng, Rules(kind=kind))
    before = np.unique(pair_keys(tuples.members, n))
    apart = members.copy()
    if exchange(apart, n, rng, Rules(repeats=True, before=before, kind=kind)):
        members = apart
    return _positioned(rng.permuted(members, axis=1))


def _dealt(items: NDArray[np.intp], count: int, places: int, rng: np.random.Generator) -> Members:
    """Return (count, places) items, each used equally often, to within one."""
    rounds = -(-count * places // len(items))
    slots = np.concatenate([np.empty(0, np.intp), *(rng.permutation(items) for _ in range(rounds))])
    return slots[: count * places].reshape(count, places).astype(np.int32)


def _positioned(members: Members) -> Members:
    used, number = np.unique(members, return_inverse=True)
    ordered = level_positions(number.reshape(members.shape).astype(np.int32), len(used))
    return used[ordered].astype(np.int32)
