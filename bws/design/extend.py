"""Extension of an existing design: tuples that link new items to old ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from math import ceil, comb

import numpy as np
from numpy.typing import NDArray

from bws.base.ids import id_of
from bws.base.notes import note
from bws.design.balance import (
    MAX_TRIES,
    ExchangeRules,
    exchange,
    level_positions,
    pair_keys,
    remove_repeated_tuples,
)
from bws.design.make import FACTOR, check_factor, check_total, not_distinct, tuple_names
from bws.records import Tuples

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
    """Add tuples for new items after the old tuples, which do not change.

    Half of the items of each new tuple are new (rounded up; fewer if there are fewer new items), the others
    are old items of the same group, so that new scores are on the old scale. A new item gets
    ``factor * K`` appearances or up to one more, as in a new design. Counts of old items in new tuples
    differ by at most one. Pairs are not repeated as long as that can be avoided.

    The new tuples are distinct unless `allow_repeats` is true. `factor` is 2 by default. A group with fewer
    distinct tuples that link new and old items then gets all of them, with a note in `Tuples.notes`.

    Raises ValueError if a new item is empty or exists already, or if its group has too few old items.
    Without `allow_repeats`, it also raises ValueError if `factor` requires more tuples than are distinct.

    >>> from bws.design import make_tuples
    >>> old = make_tuples(["a", "b", "c", "d", "e", "f"], 4)
    >>> both = extend_tuples(old, ["g", "h"])
    >>> (both.members[:12] == old.members).all(), len(both)
    (np.True_, 20)
    """
    check_factor(factor)
    if tuples.controls:
        raise ValueError(
            "tuples with control items cannot be extended; remove them, and add them to the extended tuples"
        )
    rng = np.random.Generator(np.random.PCG64(seed))
    ids = [id_of(item) for item in new_items]
    group_ids = [id_of(group) for group in groups] if groups is not None else [""] * len(ids)
    index_of_group = {name: index for index, name in enumerate(tuples.groups)}
    _check(tuples, ids, group_ids, index_of_group)
    old = len(tuples.items)
    group_of_new = np.array([index_of_group[group] for group in group_ids], np.int32)
    added, notes = [], []
    for group in np.unique(group_of_new):
        new = old + np.flatnonzero(group_of_new == group)
        count, remark = _count_linking_tuples(
            tuples, len(new), group, factor, allow_repeats=allow_repeats
        )
        added.append(_linking_tuples(tuples, new, group, count, rng, allow_repeats=allow_repeats))
        notes += [remark] if remark else []
    members = np.concatenate([tuples.members, *added])
    n_existing = len(tuples)
    return Tuples(
        ids=np.concatenate([tuples.ids, new_tuple_names(tuples, len(members) - n_existing)]),
        items=np.concatenate([tuples.items, np.array(ids, dtype=object)]),
        group_of_item=np.concatenate([tuples.group_of_item, group_of_new]),
        groups=tuples.groups,
        members=members,
        notes=tuple(notes),
        columns=_extended_columns(tuples, len(members) - n_existing, seed),
    )


def _extended_columns(tuples: Tuples, count: int, seed: int) -> dict[str, NDArray[np.object_]]:
    """Return the columns of a study in rounds, with the added tuples as a further balanced round."""
    if not tuples.columns:
        return {}
    number = max(map(int, tuples.columns["round"])) + 1
    added = {"round": str(number), "purpose": "warmup", "seed": str(seed)}
    return {
        name: np.concatenate([column, np.full(count, added[name], dtype=object)])
        for name, column in tuples.columns.items()
    }


def new_tuple_names(tuples: Tuples, count: int) -> NDArray[np.object_]:
    """Return names of `count` tuples after the existing ones, which may have names of any form."""
    names = tuple_names(count, len(tuples))
    while set(names) & set(tuples.ids):
        names = np.array([f"{name}x" for name in names], dtype=object)
    return names


def _check(
    tuples: Tuples, ids: Sequence[str], group_ids: Sequence[str], index_of_group: dict[str, int]
) -> None:
    if not ids:
        raise ValueError("there are no new items")
    if len(group_ids) != len(ids):
        raise ValueError(
            f"{len(group_ids)} groups for {len(ids)} new items; expected one group per new item"
        )
    existing_items = set(tuples.item_keys)
    for item, group in zip(ids, group_ids, strict=True):
        if group not in index_of_group:
            raise ValueError(
                f"unknown group {group!r} in the design; make new tuples for this group"
            )
        if not item or (group, item) in existing_items:
            raise ValueError(
                f"item {item!r} is empty or already in the design; expected a new item"
            )
        existing_items.add((group, item))


def _new_items_per_tuple(k: int, n_new: int) -> int:
    """Return the number of new items per new tuple."""
    return min(n_new, (k + 1) // 2)


def _count_linking_tuples(
    tuples: Tuples, n_new: int, group: int, factor: float | None, *, allow_repeats: bool
) -> tuple[int, str]:
    """Return the number of linking tuples of a group, and a note if it is smaller than usual."""
    k, n_old = tuples.k, int(np.count_nonzero(tuples.group_of_item == group))
    n_new_slots = _new_items_per_tuple(k, n_new)
    if n_old < k - n_new_slots:
        raise ValueError(f"{n_old} old items cannot link tuples of {k}; make a new design")
    requested = (FACTOR if factor is None else factor) * k * n_new / n_new_slots
    check_total(requested)
    count = ceil(requested)
    n_possible = comb(n_new, n_new_slots) * comb(n_old, k - n_new_slots)
    if count <= n_possible or allow_repeats:
        return count, ""
    location = f"group {tuples.groups[group]!r}: " if any(tuples.groups) else ""
    if factor is not None:
        raise ValueError(
            f"{location}{n_new} new items beside {n_old} old ones: {not_distinct(count, n_possible)}"
        )
    return n_possible, location + note(
        "{new:d} new items beside {old:d} old ones: all {n:d} distinct tuples of {k:d} are used; there would "
        "be {usual:d}",
        new=n_new,
        old=n_old,
        n=n_possible,
        k=k,
        usual=count,
    )


def _linking_tuples(
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
    n_new_slots = _new_items_per_tuple(k, len(new))
    members = np.hstack(
        [
            _distribute_items(new, count, n_new_slots, rng),
            _distribute_items(old, count, k - n_new_slots, rng),
        ]
    )
    kind = np.repeat(np.array([0, 1], np.int8), [n_new_slots, k - n_new_slots])
    n = len(tuples.items) + int(new.max()) + 1
    exchange(members, n, rng, ExchangeRules(position_kinds=kind))
    existing_pairs = np.unique(pair_keys(tuples.members, n))
    improved = members.copy()
    if exchange(
        improved,
        n,
        rng,
        ExchangeRules(forbid_repeats=True, existing_pairs=existing_pairs, position_kinds=kind),
    ):
        members = improved
    elif not allow_repeats:
        sparse = 2 * count <= comb(len(new), n_new_slots) * comb(len(old), k - n_new_slots)
        if not remove_repeated_tuples(
            members, n, rng, ExchangeRules(position_kinds=kind), MAX_TRIES if sparse else 0
        ):
            members = _select_least_used(new, old, count, k, rng)
    return _with_level_positions(rng.permuted(members, axis=1))


def _select_least_used(
    new: NDArray[np.intp], old: NDArray[np.intp], count: int, k: int, rng: np.random.Generator
) -> Members:
    """Return distinct tuples, for counts that are a large share of all possible tuples.

    Select the tuple with the least used items repeatedly; ties are broken at random.
    """
    n_new_slots = _new_items_per_tuple(k, len(new))
    pairs = product(
        combinations(new.tolist(), n_new_slots), combinations(old.tolist(), k - n_new_slots)
    )
    candidates = rng.permutation(np.array([a + b for a, b in pairs], np.int32))
    n_uses = np.zeros(int(candidates.max()) + 1, np.int64)
    is_free = np.ones(len(candidates), bool)
    for _ in range(count):
        cost = np.where(is_free, (2 * n_uses[candidates] + 1).sum(axis=1), np.iinfo(np.int64).max)
        row = int(cost.argmin())
        is_free[row] = False
        n_uses[candidates[row]] += 1
    return candidates[~is_free]


def _distribute_items(
    items: NDArray[np.intp], count: int, n_columns: int, rng: np.random.Generator
) -> Members:
    """Return (count, slots) items whose counts differ by at most one."""
    rounds = -(-count * n_columns // len(items))
    slots = np.concatenate([np.empty(0, np.intp), *(rng.permutation(items) for _ in range(rounds))])
    return slots[: count * n_columns].reshape(count, n_columns).astype(np.int32)


def _with_level_positions(members: Members) -> Members:
    used, number = np.unique(members, return_inverse=True)
    ordered = level_positions(number.reshape(members.shape).astype(np.int32), len(used))
    return used[ordered].astype(np.int32)
