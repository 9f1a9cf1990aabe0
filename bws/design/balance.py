"""One design: T distinct K-tuples of N items with level appearances and level pairs.

Every item first gets its appearances, column by column, which only exchanges between two tuples then move:
they stay level whatever follows. Exchanges remove what must not be (an item twice in a tuple, items that
are to be kept apart) and what need not be (a pair that meets again while others have not).

Dense designs are reached from the other side: when more than half of all tuples are wanted, those to leave
out are chosen; when tuples hold more than half of the items, those that each tuple lacks.

Pairs are level where the sum of squared pair counts is smallest, which for a given number of tuples is
where counts differ by at most one: the same order as the standard deviation that the field's scripts
minimise.

Positions can always be level to within one: tuples and items form a bipartite graph, and positions are an
equitable colouring of its edges. An item that stands too often in one position exchanges places with
another item of a tuple, which may hand the surplus on: an alternating path, as in König's proof.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MAX_TRIES", "ExchangeRules", "balanced", "combination_keys", "exchange", "level_positions",
    "pair_keys", "remove_repeated_tuples",
]  # fmt: skip

Members = NDArray[np.int32]
MAX_TABLE_ITEMS = 2000
"""Up to so many items a table of all pairs is kept."""
CROWDED_PAIR_SHARE = 0.25
"""Share of all pairs from which exchanging at random no longer finds free pairs."""
MAX_ROUNDS = 400
MAX_TRIES = 2000
"""Random exchanges that are tried for one repeated tuple, as a default."""
Counts = NDArray[np.int64]
SELF_PAIR_COUNT = 10**6
"""Count of an item with itself: no exchange that puts it beside itself is ever an improvement."""
MAX_PARTNERS = 512
"""Partners that are tried for an exchange."""
MAX_STEPS = 8_000
MAX_IDLE_ROUNDS = 4
"""Rounds of sideways steps, which change the cost by nothing, before a design is called level."""


def balanced(
    n: int,
    k: int,
    count: int,
    rng: np.random.Generator,
    separate: Sequence[Sequence[int]] = (),
    together: Sequence[Sequence[int]] = (),
) -> Members:
    """Return (count, k) item numbers below n.

    Appearances differ by at most one. Tuples are distinct while enough exist, afterwards each has been
    used equally often, give or take one. `separate`: sets of items of which no tuple holds two; `together`:
    sets that one tuple holds whole; with either, tuples are distinct where exchanges of items find such
    tuples. ValueError where that cannot be.

    >>> rng = np.random.default_rng(0)
    >>> design = balanced(5, 3, 10, rng)
    >>> len(set(map(frozenset, design.tolist()))), np.bincount(design.ravel()).tolist()
    (10, [6, 6, 6, 6, 6])
    """
    if not 2 <= k <= n:
        raise ValueError(f"tuples of {k} need {max(k, 2)} or more items; there are {n}")
    if separate or together:
        return _balanced_with_constraints(n, k, count, rng, separate, together)
    n_possible = comb(n, k)
    if count <= n_possible // 2:
        return _distinct(n, k, count, rng)
    n_copies, n_remaining = divmod(count, n_possible)
    all_tuples = np.array(list(combinations(range(n), k)), np.int32)
    if n_remaining <= n_possible // 2:
        last = _distinct(n, k, n_remaining, rng)
    else:
        last = _exclude_tuples(all_tuples, _distinct(n, k, n_possible - n_remaining, rng), n)
    return np.concatenate([*[all_tuples] * n_copies, last])


def _exclude_tuples(all_tuples: Members, excluded: Members, n: int) -> Members:
    excluded_sets = {tuple(sorted(members)) for members in excluded.tolist()}
    remaining = [members for members in all_tuples.tolist() if tuple(members) not in excluded_sets]
    return np.array(remaining, np.int32).reshape(-1, all_tuples.shape[1])


def _distinct(n: int, k: int, count: int, rng: np.random.Generator) -> Members:
    """Return at most half of all tuples, each once."""
    if count == 0:
        return np.empty((0, k), np.int32)
    if 2 * k > n:
        return _complement_tuples(_distinct(n, n - k, count, rng), n)
    members = _fill_columns(n, k, count, rng)
    if k == 1:
        return members
    crowded = count * k * (k - 1) > CROWDED_PAIR_SHARE * n * (n - 1)
    columns = np.arange(k, dtype=np.int8)  # exchanges inside a column keep positions level
    no_repeats = exchange(
        members, n, rng, ExchangeRules(forbid_repeats=not crowded, position_kinds=columns)
    )
    if n <= MAX_TABLE_ITEMS:
        return _level_pairs(members, n, rng)
    if crowded or not no_repeats:
        remove_repeated_tuples(members, n, rng, ExchangeRules(position_kinds=columns))
    return members


def _complement_tuples(members: Members, n: int) -> Members:
    """Return for each tuple the items that it does not hold."""
    present = np.zeros((len(members), n), bool)
    np.put_along_axis(present, members.astype(np.intp), True, axis=1)
    return np.nonzero(~present)[1].reshape(len(members), -1).astype(np.int32)


def _fill_columns(n: int, k: int, count: int, rng: np.random.Generator) -> Members:
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


def _balanced_with_constraints(
    n: int,
    k: int,
    count: int,
    rng: np.random.Generator,
    separate: Sequence[Sequence[int]],
    together: Sequence[Sequence[int]],
) -> Members:
    _check_constraints(n, k, count, separate, together)
    quota = np.bincount(_fill_columns(n, k, count, rng).ravel(), minlength=n)
    members = np.full((count, k), -1, np.int32)
    for row, required_set in enumerate(together):
        members[row, : len(required_set)] = required_set
    free = members < 0
    quota -= np.bincount(members[~free], minlength=n)
    if quota.min() < 0:
        item = int(quota.argmin())
        raise ValueError(f"item {item} is in more sets of `together` than it has appearances")
    members[free] = rng.permutation(np.repeat(np.arange(n, dtype=np.int32), quota))
    forbidden = [
        pair for separate_set in separate for pair in combinations(sorted(set(separate_set)), 2)
    ]
    forbidden_keys = np.array(sorted({a * n + b for a, b in forbidden}), np.int64)
    crowded = count * k * (k - 1) > CROWDED_PAIR_SHARE * n * (n - 1)
    if not exchange(members, n, rng, ExchangeRules(movable=free, forbidden_pairs=forbidden_keys)):
        raise ValueError(
            "no design was found that keeps these items apart or together; relax `apart`"
        )
    if not crowded:
        exchange(
            members,
            n,
            rng,
            ExchangeRules(movable=free, forbidden_pairs=forbidden_keys, forbid_repeats=True),
        )
    remove_repeated_tuples(
        members, n, rng, ExchangeRules(movable=free, forbidden_pairs=forbidden_keys)
    )
    return members


def _check_constraints(
    n: int, k: int, count: int, separate: Sequence[Sequence[int]], together: Sequence[Sequence[int]]
) -> None:
    for item_set in separate:
        if len(set(item_set)) * k > n:
            raise ValueError(
                f"{len(set(item_set))} items are to be kept apart; with tuples of {k} out of {n} items "
                f"at most {n // k} can be"
            )
    if len(together) > count:
        raise ValueError(
            f"{len(together)} sets of `together` need as many tuples; there are {count}"
        )
    for item_set in together:
        if not 2 <= len(set(item_set)) <= k:
            raise ValueError(
                f"a set of `together` has {len(set(item_set))} items; 2 to {k} are allowed"
            )
        for separate_set in separate:
            if len(set(item_set) & set(separate_set)) > 1:
                raise ValueError("two items are both in `apart` and in `together`")


def _no_keys() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class ExchangeRules:
    """What a design must not hold, and what may move."""

    forbid_repeats: bool = False
    """Whether a pair that meets twice is to be parted."""
    forbidden_pairs: NDArray[np.int64] = field(default_factory=_no_keys)
    """Sorted keys of pairs that must never meet."""
    existing_pairs: NDArray[np.int64] = field(default_factory=_no_keys)
    """Sorted keys of pairs that have met in tuples that stay as they are; used with `forbid_repeats`."""
    movable: NDArray[np.bool_] | None = None
    """(T, K) which places may be exchanged; None: all."""
    position_kinds: NDArray[np.int8] | None = None
    """(K,) places are exchanged with places of the same kind only; None: all are of one kind."""


def exchange(members: Members, n: int, rng: np.random.Generator, rules: ExchangeRules) -> bool:
    """Exchange in place; return whether nothing is left that the rules forbid.

    Each round finds every fault at once and sends one of its two items elsewhere. In a large design a
    random design's repeated pairs are few, whatever its size, and a few rounds part them.
    """
    for _ in range(MAX_ROUNDS):
        slots = _faulty_slots(members, n, rng, rules)
        if not len(slots):
            return True
        _swap_elsewhere(members, slots, rng, rules)
    return not len(_faulty_slots(members, n, rng, rules))


def _faulty_slots(
    members: Members, n: int, rng: np.random.Generator, rules: ExchangeRules
) -> NDArray[np.intp]:
    """Return flat places of `members`, one for each pair at fault."""
    keys = pair_keys(members, n)
    faulty = keys // n == keys % n
    for prohibited in (
        rules.forbidden_pairs,
        rules.existing_pairs if rules.forbid_repeats else _no_keys(),
    ):
        if len(prohibited):
            index = np.minimum(np.searchsorted(prohibited, keys), len(prohibited) - 1)
            faulty |= prohibited[index] == keys
    if rules.forbid_repeats:
        faulty |= _is_repeated_pair(keys)
    row, pair = np.nonzero(faulty)
    left, right = _pair_columns(members.shape[1])
    take_left = rng.random(len(row)) < 0.5
    column, alternative = np.where(take_left, (left[pair], right[pair]), (right[pair], left[pair]))
    if rules.movable is not None:
        column = np.where(rules.movable[row, column], column, alternative)
        can_move = rules.movable[row, column]
        row, column = row[can_move], column[can_move]
    return np.unique(row * members.shape[1] + column)


def _is_repeated_pair(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which pairs stand in an earlier tuple as well."""
    flat = keys.ravel()
    in_order = np.sort(flat)
    repeated_keys = np.unique(in_order[1:][in_order[1:] == in_order[:-1]])
    is_repeated = np.zeros(len(flat), bool)
    if len(repeated_keys):
        index = np.minimum(np.searchsorted(repeated_keys, flat), len(repeated_keys) - 1)
        occurrences = np.flatnonzero(repeated_keys[index] == flat)
        _, first = np.unique(flat[occurrences], return_index=True)
        is_repeated[occurrences] = True
        is_repeated[occurrences[first]] = False
    return is_repeated.reshape(keys.shape)


def _swap_elsewhere(
    members: Members, slots: NDArray[np.intp], rng: np.random.Generator, rules: ExchangeRules
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
    if rules.position_kinds is not None:
        usable &= rules.position_kinds[partners % k] == rules.position_kinds[slots % k]
    a, b = slots[usable], partners[usable]
    flat[a], flat[b] = flat[b], flat[a]


def remove_repeated_tuples(
    members: Members,
    n: int,
    rng: np.random.Generator,
    rules: ExchangeRules,
    max_tries: int = MAX_TRIES,
) -> bool:
    """Exchange in place until no tuple repeats another; return whether none does.

    max_tries: random exchanges that are tried for one repeated tuple; 0 only tells whether one repeats.
    Every exchange keeps the items of a tuple distinct and follows the rules, and none makes a new repeat.
    Random numbers are drawn only where a tuple repeats another.
    """
    k = members.shape[1]
    times = Counter(_sorted_rows(members))
    for row in _repeated_rows(members):
        for _ in range(max_tries):
            if times[_sorted_row(members[row])] == 1:
                break
            a = int(row * k + rng.integers(k))
            _exchange_to_new(members, n, a, int(rng.integers(members.size)), rules, times)
    return all(count <= 1 for count in times.values())


def _repeated_rows(members: Members) -> list[int]:
    """Return the rows whose items are those of an earlier row."""
    seen: set[tuple[int, ...]] = set()
    repeated = []
    for row, items in enumerate(_sorted_rows(members)):
        if items in seen:
            repeated.append(row)
        seen.add(items)
    return repeated


def _sorted_rows(members: Members) -> list[tuple[int, ...]]:
    return list(map(tuple, np.sort(members, axis=1).tolist()))


def _sorted_row(row: Members) -> tuple[int, ...]:
    return tuple(sorted(row.tolist()))


def _exchange_to_new(
    members: Members, n: int, a: int, b: int, rules: ExchangeRules, times: Counter[tuple[int, ...]]
) -> None:
    """Exchange the items in the flat places `a` and `b` if that makes two tuples that do not exist yet."""
    k = members.shape[1]
    rows = [a // k, b // k]
    if rows[0] == rows[1] or not _may_move(a, b, k, rules):
        return
    flat = members.reshape(-1)
    before = [_sorted_row(members[row]) for row in rows]
    flat[a], flat[b] = flat[b], flat[a]
    after = [_sorted_row(members[row]) for row in rows]
    if (
        after[0] == after[1]
        or any(times[items] for items in after)
        or _has_fault(members[rows], n, rules)
    ):
        flat[a], flat[b] = flat[b], flat[a]
        return
    times.subtract(before)
    times.update(after)


def _may_move(a: int, b: int, k: int, rules: ExchangeRules) -> bool:
    if rules.movable is not None and not rules.movable.reshape(-1)[[a, b]].all():
        return False
    return rules.position_kinds is None or bool(
        rules.position_kinds[a % k] == rules.position_kinds[b % k]
    )


def _has_fault(members: Members, n: int, rules: ExchangeRules) -> bool:
    """Tell whether a tuple holds an item twice or a forbidden pair."""
    keys = pair_keys(members, n)
    return bool((keys // n == keys % n).any() or np.isin(keys, rules.forbidden_pairs).any())


def _level_pairs(members: Members, n: int, rng: np.random.Generator) -> Members:
    """Exchange items between tuples, in place, until pairs are level and tuples distinct.

    Members of a tuple must be distinct, and stay so; appearances stay as they are. Each round offers
    every item of an over-frequent pair its best exchange; one that costs nothing is made as well, for
    it may open the way for one that gains.
    """
    pair_counts = _count_pairs(members, n)
    steps = idle = 0
    while steps < MAX_STEPS and idle < MAX_IDLE_ROUNDS:
        slots = rng.permutation(_uneven_slots(members, pair_counts))[: MAX_STEPS - steps]
        if not len(slots):
            break
        gain = 0
        for slot in slots:
            partners = _choose_partners(members, rng)
            change = _cost_changes(members, pair_counts, slot, partners)
            choice = int(rng.choice(np.flatnonzero(change == change.min())))
            if change[choice] <= 0:
                _swap(members, pair_counts, slot, partners[choice])
                gain -= int(change[choice])
        steps += len(slots)
        idle = 0 if gain else idle + 1
    _swap_out_repeated_tuples(members, pair_counts, rng)
    return members


def _count_pairs(members: Members, n: int) -> Counts:
    """Return (N, N) how often each two items meet."""
    keys = pair_keys(members, n).ravel()
    half = np.bincount(keys, minlength=n * n).reshape(n, n)
    table = half + half.T
    np.fill_diagonal(table, SELF_PAIR_COUNT)
    return table


def _uneven_slots(members: Members, table: Counts) -> NDArray[np.intp]:
    """Return the places of items that meet another two times more often than some pair does."""
    k = members.shape[1]
    crowded = int(table.min()) + 2
    meetings: Counts = table[members[:, :, None], members[:, None, :]]
    meetings[:, np.arange(k), np.arange(k)] = 0
    return np.flatnonzero((meetings >= crowded).any(axis=2))


def _choose_partners(members: Members, rng: np.random.Generator) -> NDArray[np.intp]:
    if members.size <= MAX_PARTNERS:
        return np.arange(members.size)
    return rng.integers(members.size, size=MAX_PARTNERS)


def _cost_changes(
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
    partner_rows = members[partners // k]
    is_other_member = np.arange(k) != (partners % k)[:, None]
    added = np.where(is_other_member, table[x][partner_rows], 0).sum(axis=1) + table[
        y[:, None], z
    ].sum(axis=1)
    removed = (
        np.where(is_other_member, table[y[:, None], partner_rows], 0).sum(axis=1)
        + table[x][z].sum()
    )
    common = ((partner_rows[:, :, None] == z).any(axis=2) & is_other_member).sum(axis=1)
    change: NDArray[np.int64] = 2 * (added - removed) + 4 * (k - 1) - 4 * common
    return change


def _swap(members: Members, table: Counts, slot: np.intp, partner: np.intp) -> None:
    k = members.shape[1]
    (r1, c1), (r2, c2) = divmod(int(slot), k), divmod(int(partner), k)
    for row in (r1, r2):
        _update_pairs(table, members[row], -1)
    members[r1, c1], members[r2, c2] = members[r2, c2], members[r1, c1]
    for row in (r1, r2):
        _update_pairs(table, members[row], 1)


def _update_pairs(table: Counts, items: Members, step: int) -> None:
    table[np.ix_(items, items)] += step
    table[items, items] -= step


def _repeated_tuples(members: Members) -> NDArray[np.intp]:
    """Return the rows whose items are those of an earlier row."""
    _, first = np.unique(np.sort(members, axis=1), axis=0, return_index=True)
    return np.setdiff1d(np.arange(len(members)), first)


def _swap_out_repeated_tuples(members: Members, table: Counts, rng: np.random.Generator) -> None:
    """Exchange an item of each repeated tuple where that costs the least and repeats no other."""
    k = members.shape[1]
    for row in _repeated_tuples(members):
        existing_sets = {frozenset(items) for items in members.tolist()}
        partners = _choose_partners(members, rng)
        slots = row * k + np.arange(k)
        change = np.stack([_cost_changes(members, table, slot, partners) for slot in slots])
        for flat_index in np.argsort(change, axis=None, kind="stable"):
            column, choice = divmod(int(flat_index), len(partners))
            if change[column, choice] >= SELF_PAIR_COUNT:
                break
            slot, partner = slots[column], partners[choice]
            _swap(members, table, slot, partner)
            new_sets = {
                frozenset(members[slot // k].tolist()),
                frozenset(members[partner // k].tolist()),
            }
            if len(new_sets) == 2 and not existing_sets & new_sets:
                break
            _swap(members, table, slot, partner)


def level_positions(members: Members, n: int) -> Members:
    """Exchange items inside tuples, in place, until positions are level; return the tuples.

    No item then stands in one position more than once more often than in another.

    >>> ordered = level_positions(np.array([[0, 1], [0, 2], [0, 3], [0, 4]], np.int32), 5)
    >>> int((ordered[:, 0] == 0).sum())
    2
    """
    k = members.shape[1]
    table = np.bincount((members * np.int64(k) + np.arange(k)).ravel(), minlength=n * k).reshape(
        n, k
    )
    uneven = np.flatnonzero(np.ptp(table, axis=1) > 1)
    if len(uneven):
        _level_uneven_positions(members, table, uneven)
    return members


def _level_uneven_positions(
    members: Members, table: NDArray[np.int64], uneven: NDArray[np.intp]
) -> None:
    order = np.argsort(members, axis=None, kind="stable")
    starts = np.searchsorted(members.reshape(-1)[order], np.arange(len(table) + 1))
    rows = order // members.shape[1]
    for item in uneven.tolist():
        while int(np.ptp(table[item])) > 1:
            over, under = int(table[item].argmax()), int(table[item].argmin())
            _flip_path(members, table, item, over, under, rows, starts)


def _flip_path(
    members: Members,
    table: NDArray[np.int64],
    item: int,
    over: int,
    under: int,
    rows: NDArray[np.intp],
    starts: NDArray[np.intp],
) -> None:
    """Exchange the positions `over` and `under` along a path of tuples that begins at `item`.

    Each exchange takes one off the item's surplus and hands it to the other item of the tuple. The
    path ends where that item had none: tuples are not used twice, so it ends.
    """
    used: set[int] = set()
    while table[item, over] - table[item, under] > 1:
        for row in rows[starts[item] : starts[item + 1]].tolist():
            if row not in used and members[row, over] == item:
                break
        partner = int(members[row, under])
        members[row, over], members[row, under] = partner, item
        used.add(row)
        table[item, over] -= 1
        table[item, under] += 1
        table[partner, under] -= 1
        table[partner, over] += 1
        item = partner


def _pair_columns(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the left and the right column of each of the K(K-1)/2 pairs of columns."""
    left, right = np.triu_indices(k, 1)
    return left, right


def pair_keys(members: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    """Return (T, K(K-1)/2) keys; two pairs of items have one key when they are the same two.

    >>> pair_keys(np.array([[0, 2, 1], [2, 0, 3]], np.int32), 4).tolist()
    [[2, 1, 6], [2, 11, 3]]
    """
    left, right = _pair_columns(members.shape[1])
    a, b = members[:, left], members[:, right]
    return np.minimum(a, b).astype(np.int64) * n + np.maximum(a, b)


def combination_keys(members: NDArray[np.int32], n: int, size: int) -> NDArray[np.int64]:
    """Return (T, C(K, size)) keys of the sets of `size` items; n ** size must fit into 63 bits."""
    columns = np.array(list(combinations(range(members.shape[1]), size)))
    ordered = np.sort(members, axis=1)[:, columns].astype(np.int64)
    key = ordered[..., 0]
    for column in range(1, size):
        key = key * n + ordered[..., column]
    return key
