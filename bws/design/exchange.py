"""Exchange items between tuples at random until no tuple holds what it must not, or repeats another."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bws.design.pairs import pair_columns, pair_keys

__all__ = ["MAX_TRIES", "Rules", "exchange", "part_repeats"]

ROUNDS = 400
MAX_TRIES = 2000
"""Random exchanges that are tried for one repeated tuple, as a default."""
Members = NDArray[np.int32]


def _none() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Rules:
    """What a design must not hold, and what may move."""

    repeats: bool = False
    """Whether a pair that meets twice is to be parted."""
    forbidden: NDArray[np.int64] = field(default_factory=_none)
    """Sorted keys of pairs that must never meet."""
    before: NDArray[np.int64] = field(default_factory=_none)
    """Sorted keys of pairs that have met in tuples that stay as they are; counts with `repeats`."""
    movable: NDArray[np.bool_] | None = None
    """(T, K) which places may be exchanged; None: all."""
    kind: NDArray[np.int8] | None = None
    """(K,) places are exchanged with places of the same kind only; None: all are of one kind."""


def exchange(members: Members, n: int, rng: np.random.Generator, rules: Rules) -> bool:
    """Exchange in place; return whether nothing is left that the rules forbid.

    Each round finds every fault at once and sends one of its two items elsewhere. In a large design a
    random design's repeated pairs are few, whatever its size, and a few rounds part them.
    """
    for _ in range(ROUNDS):
        slots = _faulty_slots(members, n, rng, rules)
        if not len(slots):
            return True
        _swap_elsewhere(members, slots, rng, rules)
    return not len(_faulty_slots(members, n, rng, rules))


def _faulty_slots(
    members: Members, n: int, rng: np.random.Generator, rules: Rules
) -> NDArray[np.intp]:
    """Return flat places of `members`, one for each pair at fault."""
    keys = pair_keys(members, n)
    faulty = keys // n == keys % n
    for listed in (rules.forbidden, rules.before if rules.repeats else _none()):
        if len(listed):
            place = np.minimum(np.searchsorted(listed, keys), len(listed) - 1)
            faulty |= listed[place] == keys
    if rules.repeats:
        faulty |= _met_earlier(keys)
    row, pair = np.nonzero(faulty)
    left, right = pair_columns(members.shape[1])
    take_left = rng.random(len(row)) < 0.5
    column, other = np.where(take_left, (left[pair], right[pair]), (right[pair], left[pair]))
    if rules.movable is not None:
        column = np.where(rules.movable[row, column], column, other)
        kept = rules.movable[row, column]
        row, column = row[kept], column[kept]
    return np.unique(row * members.shape[1] + column)


def _met_earlier(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which pairs stand in an earlier tuple as well."""
    flat = keys.ravel()
    in_order = np.sort(flat)
    again = np.unique(in_order[1:][in_order[1:] == in_order[:-1]])
    met = np.zeros(len(flat), bool)
    if len(again):
        place = np.minimum(np.searchsorted(again, flat), len(again) - 1)
        where = np.flatnonzero(again[place] == flat)
        _, first = np.unique(flat[where], return_index=True)
        met[where] = True
        met[where[first]] = False
    return met.reshape(keys.shape)


def _swap_elsewhere(
    members: Members, slots: NDArray[np.intp], rng: np.random.Generator, rules: Rules
) -> None:
    k = members.shape[1]
    flat = members.reshape(-1)
    partners = rng.integers(flat.size, size=len(slots))
    _, first = np.unique(partners, return_index=True)
    usable = np.zeros(len(slots), bool)
    usable[first] = True
    usable &= ~np.isin(partners, slots)
    if rules.movable is not None:
        usable &= rules.movable.reshape(-1)[partners]
    if rules.kind is not None:
        usable &= rules.kind[partners % k] == rules.kind[slots % k]
    a, b = slots[usable], partners[usable]
    flat[a], flat[b] = flat[b], flat[a]


def part_repeats(
    members: Members, n: int, rng: np.random.Generator, rules: Rules, max_tries: int = MAX_TRIES
) -> bool:
    """Exchange in place until no tuple repeats another; return whether none does.

    max_tries: random exchanges that are tried for one repeated tuple; 0 only tells whether one repeats.
    Every exchange keeps the items of a tuple distinct and follows the rules, and none makes a new repeat.
    Random numbers are drawn only where a tuple repeats another.
    """
    k = members.shape[1]
    times = Counter(_sets(members))
    for row in _repeated_rows(members):
        for _ in range(max_tries):
            if times[_set(members[row])] == 1:
                break
            a = int(row * k + rng.integers(k))
            _exchange_to_new(members, n, a, int(rng.integers(members.size)), rules, times)
    return all(count <= 1 for count in times.values())


def _repeated_rows(members: Members) -> list[int]:
    """Return the rows whose items are those of an earlier row."""
    seen: set[tuple[int, ...]] = set()
    repeated = []
    for row, items in enumerate(_sets(members)):
        if items in seen:
            repeated.append(row)
        seen.add(items)
    return repeated


def _sets(members: Members) -> list[tuple[int, ...]]:
    return list(map(tuple, np.sort(members, axis=1).tolist()))


def _set(row: Members) -> tuple[int, ...]:
    return tuple(sorted(row.tolist()))


def _exchange_to_new(
    members: Members, n: int, a: int, b: int, rules: Rules, times: Counter[tuple[int, ...]]
) -> None:
    """Exchange the items in the flat places `a` and `b` if that makes two tuples that do not exist yet."""
    k = members.shape[1]
    rows = [a // k, b // k]
    if rows[0] == rows[1] or not _may_move(a, b, k, rules):
        return
    flat = members.reshape(-1)
    before = [_set(members[row]) for row in rows]
    flat[a], flat[b] = flat[b], flat[a]
    after = [_set(members[row]) for row in rows]
    if (
        after[0] == after[1]
        or any(times[items] for items in after)
        or _faulty(members[rows], n, rules)
    ):
        flat[a], flat[b] = flat[b], flat[a]
        return
    times.subtract(before)
    times.update(after)


def _may_move(a: int, b: int, k: int, rules: Rules) -> bool:
    if rules.movable is not None and not rules.movable.reshape(-1)[[a, b]].all():
        return False
    return rules.kind is None or bool(rules.kind[a % k] == rules.kind[b % k])


def _faulty(members: Members, n: int, rules: Rules) -> bool:
    """Tell whether a tuple holds an item twice or a forbidden pair."""
    keys = pair_keys(members, n)
    return bool((keys // n == keys % n).any() or np.isin(keys, rules.forbidden).any())
