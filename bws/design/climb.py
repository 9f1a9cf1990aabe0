"""Level pairs in a design that is small enough for a table of all pairs.

The measure is the sum of squared pair counts, which for a given number of tuples is smallest where counts
differ by at most one: the same order as the standard deviation that the field's scripts minimise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bws.design.pairs import pair_keys

__all__ = ["level_pairs"]

Members = NDArray[np.int32]
Counts = NDArray[np.int64]
NEVER = 10**6
"""Count of an item with itself: no exchange that puts it beside itself is ever an improvement."""
LOOKED_AT = 512
"""Partners that are tried for an exchange."""
STEPS = 8_000
PATIENCE = 4
"""Rounds of sideways steps, which change the cost by nothing, before a design is called level."""


def level_pairs(members: Members, n: int, rng: np.random.Generator) -> Members:
    """Exchange items between tuples, in place, until pairs are level and tuples distinct.

    Members of a tuple must be distinct, and stay so; appearances stay as they are. Each round offers
    every item of an over-frequent pair its best exchange; one that costs nothing is made as well, for
    it may open the way for one that gains.
    """
    table = _table(members, n)
    steps = idle = 0
    while steps < STEPS and idle < PATIENCE:
        slots = rng.permutation(_uneven_slots(members, table))[: STEPS - steps]
        if not len(slots):
            break
        gain = 0
        for slot in slots:
            partners = _partners(members, rng)
            change = _changes(members, table, slot, partners)
            place = int(rng.choice(np.flatnonzero(change == change.min())))
            if change[place] <= 0:
                _swap(members, table, slot, partners[place])
                gain -= int(change[place])
        steps += len(slots)
        idle = 0 if gain else idle + 1
    _part_repeated_tuples(members, table, rng)
    return members


def _table(members: Members, n: int) -> Counts:
    """Return (N, N) how often each two items meet."""
    keys = pair_keys(members, n).ravel()
    half = np.bincount(keys, minlength=n * n).reshape(n, n)
    table = half + half.T
    np.fill_diagonal(table, NEVER)
    return table


def _uneven_slots(members: Members, table: Counts) -> NDArray[np.intp]:
    """Return the places of items that meet another two times more often than some pair does."""
    k = members.shape[1]
    crowded = int(table.min()) + 2
    together: Counts = table[members[:, :, None], members[:, None, :]]
    together[:, np.arange(k), np.arange(k)] = 0
    return np.flatnonzero((together >= crowded).any(axis=2))


def _partners(members: Members, rng: np.random.Generator) -> NDArray[np.intp]:
    if members.size <= LOOKED_AT:
        return np.arange(members.size)
    return rng.integers(members.size, size=LOOKED_AT)


def _changes(
    members: Members, table: Counts, slot: np.intp, partners: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Return by how much the sum of squares changes when `slot` is exchanged with each partner.

    With x at the slot beside the items z, and y at the partner beside the items w: the pairs xz and
    yw part, the pairs yz and xw meet. A pair that meets again adds 2c + 1, one that parts takes
    2c - 1 away; an item that is beside both x and y sees no change.
    """
    k = members.shape[1]
    row, column = divmod(int(slot), k)
    x, y = members[row, column], members.reshape(-1)[partners]
    z = np.delete(members[row], column)
    others = members[partners // k]
    beside = np.arange(k) != (partners % k)[:, None]
    meets = np.where(beside, table[x][others], 0).sum(axis=1) + table[y[:, None], z].sum(axis=1)
    parts = np.where(beside, table[y[:, None], others], 0).sum(axis=1) + table[x][z].sum()
    common = ((others[:, :, None] == z).any(axis=2) & beside).sum(axis=1)
    change: NDArray[np.int64] = 2 * (meets - parts) + 4 * (k - 1) - 4 * common
    return change


def _swap(members: Members, table: Counts, slot: np.intp, partner: np.intp) -> None:
    k = members.shape[1]
    (r1, c1), (r2, c2) = divmod(int(slot), k), divmod(int(partner), k)
    for row in (r1, r2):
        _count(table, members[row], -1)
    members[r1, c1], members[r2, c2] = members[r2, c2], members[r1, c1]
    for row in (r1, r2):
        _count(table, members[row], 1)


def _count(table: Counts, items: Members, step: int) -> None:
    table[np.ix_(items, items)] += step
    table[items, items] -= step


def _repeated_tuples(members: Members) -> NDArray[np.intp]:
    """Return the rows whose items are those of an earlier row."""
    _, first = np.unique(np.sort(members, axis=1), axis=0, return_index=True)
    return np.setdiff1d(np.arange(len(members)), first)


def _part_repeated_tuples(members: Members, table: Counts, rng: np.random.Generator) -> None:
    """Exchange an item of each repeated tuple where that costs the least and repeats no other."""
    k = members.shape[1]
    for row in _repeated_tuples(members):
        held = {frozenset(items) for items in members.tolist()}
        partners = _partners(members, rng)
        slots = row * k + np.arange(k)
        change = np.stack([_changes(members, table, slot, partners) for slot in slots])
        for place in np.argsort(change, axis=None, kind="stable"):
            column, chosen = divmod(int(place), len(partners))
            if change[column, chosen] >= NEVER:
                break
            slot, partner = slots[column], partners[chosen]
            _swap(members, table, slot, partner)
            new = {
                frozenset(members[slot // k].tolist()),
                frozenset(members[partner // k].tolist()),
            }
            if len(new) == 2 and not held & new:
                break
            _swap(members, table, slot, partner)
