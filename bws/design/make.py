"""Tuples for a list of items, inside each group where there are groups."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bws.design.balance import balanced
from bws.design.canonical import canonical
from bws.design.positions import level_positions
from bws.records import Tuples, normal_id

__all__ = ["make_tuples", "tuple_names"]

log = logging.getLogger(__name__)

MIN_K, MAX_K = 2, 12
Members = NDArray[np.int32]


def make_tuples(
    items: Sequence[str],
    k: int,
    *,
    factor: float = 2.0,
    count: int | None = None,
    groups: Sequence[str] | None = None,
    seed: int = 0,
    compat: Literal["km"] | None = None,
    apart: Sequence[Sequence[str]] = (),
    together: Sequence[Sequence[str]] = (),
) -> Tuples:
    """Make a balanced design of K-tuples; the same for a seed wherever it is made.

    For N items there are ``int(0.5 + factor * N)`` tuples, or `count` where that is given. With `groups` (the
    group of each item) there is a design of its own, of that size, inside each group. In each: the items
    of a tuple are distinct; tuples are distinct while enough exist; appearances differ by at most one;
    pairs meet as equally often as can be; an item stands in each position equally often, to within one
    (paper section 3.2: 2N distinct 3-tuples of N = 5, each item in six).

    compat: ``km`` makes the design as the canonical scripts do, positions as they come.
    apart: sets of items of which no tuple holds two. together: sets of at most K items that stand
    together in a tuple at least once. With either, tuples are not promised to be distinct.

    Raises ValueError for repeated or empty ids, K outside 2 … 12, groups smaller than K, constraints that
    cannot be held.

    >>> design = make_tuples(["a", "b", "c", "d", "e"], 3, count=10)
    >>> len(design), np.bincount(design.members.ravel()).tolist()
    (10, [6, 6, 6, 6, 6])
    """
    ids, group_of_item, names = _checked(items, k, factor, count, groups)
    rng = np.random.Generator(np.random.PCG64(seed))
    if compat and (apart or together):
        raise ValueError("compat='km' knows no constraints; leave out apart and together")
    rules = _Constraints(ids, group_of_item, apart, together)
    parts: dict[int, Members] = {}
    for n, of_group in _by_size(group_of_item, len(names)):
        size = int(0.5 + factor * n) if count is None else count
        if size < 1:
            raise ValueError(f"factor {factor} makes no tuple of {n} items; a larger one does")
        log.debug("%d tuples of %d for %d items in each of %d groups", size, k, n, len(of_group))
        alike = [group for group in of_group if compat is None and group not in rules.groups]
        if alike:
            prototype = level_positions(balanced(n, k, size, rng), n)
            drawn = _relabelled(prototype, n, len(alike), rng)
            parts |= dict(zip(alike, drawn, strict=True))
        for group in sorted(set(of_group) - set(alike)):
            parts[group] = _own_design(n, k, size, rng, compat, rules, group)
    where = np.split(
        np.argsort(group_of_item, kind="stable"), np.cumsum(np.bincount(group_of_item))[:-1]
    )
    members = np.concatenate([where[group][parts[group]] for group in range(len(names))])
    return Tuples(
        ids=tuple_names(len(members)),
        items=ids,
        group_of_item=group_of_item,
        groups=names,
        members=members.astype(np.int32),
    )


def tuple_names(count: int, before: int = 0) -> NDArray[np.object_]:
    """Return ``t1``, ``t2``, … with leading zeros, so that they sort; `before` are taken already."""
    width = len(str(before + count))
    return np.array([f"t{n:0{width}}" for n in range(before + 1, before + count + 1)], dtype=object)


def _checked(
    items: Sequence[str],
    k: int,
    factor: float,
    count: int | None,
    groups: Sequence[str] | None,
) -> tuple[NDArray[np.object_], NDArray[np.int32], NDArray[np.object_]]:
    """Return (N,) ids, (N,) index of the group, (G,) group ids."""
    if not MIN_K <= k <= MAX_K:
        raise ValueError(f"k is {k}; {MIN_K} to {MAX_K} items in a tuple are allowed")
    if count is None and not factor > 0:
        raise ValueError(f"factor is {factor}; it must be above 0")
    if count is not None and count < 1:
        raise ValueError(f"count is {count}; it must be 1 or more")
    if groups is not None and len(groups) != len(items):
        raise ValueError(f"{len(groups)} groups for {len(items)} items; each item needs one")
    ids = np.array([normal_id(item) for item in items], dtype=object)
    group_ids = [normal_id(group) for group in groups] if groups is not None else [""] * len(ids)
    number = {name: place for place, name in enumerate(dict.fromkeys(group_ids))}
    group_of_item = np.array([number[name] for name in group_ids], np.int32)
    seen = set(zip(group_ids, ids, strict=True))
    if len(seen) < len(ids) or "" in ids:
        raise ValueError("an item is empty or is there twice in its group; each must be there once")
    for name, size in zip(number, np.bincount(group_of_item).tolist(), strict=True):
        if size < k:
            where = f"group {name!r} has" if groups is not None else "there are"
            raise ValueError(f"{where} {size} items; tuples of {k} need {k} or more")
    if not len(ids):
        raise ValueError(f"there are 0 items; tuples of {k} need {k} or more")
    return ids, group_of_item, np.array(list(number), dtype=object)


def _by_size(group_of_item: NDArray[np.int32], groups: int) -> list[tuple[int, list[int]]]:
    """Return (items in a group, the groups that have as many), smallest first."""
    sizes = np.bincount(group_of_item, minlength=groups)
    return [(int(size), np.flatnonzero(sizes == size).tolist()) for size in np.unique(sizes)]


def _relabelled(design: Members, n: int, times: int, rng: np.random.Generator) -> Members:
    """Return (times, T, K) copies of a design, each with items, tuples and positions drawn anew.

    What is level stays level whatever the items are called, so one search serves all groups of a size.
    """
    count, k = design.shape
    names = np.argsort(rng.random((times, n)), axis=1).astype(np.int32)
    rows = np.argsort(rng.random((times, count)), axis=1)
    columns = np.argsort(rng.random((times, k)), axis=1)
    named = names[np.arange(times)[:, None, None], design[None]]
    ordered = np.take_along_axis(named, rows[:, :, None], axis=1)
    return np.take_along_axis(ordered, columns[:, None, :], axis=2)


class _Constraints:
    """Sets of items to keep apart or together, as numbers inside their group."""

    def __init__(
        self,
        ids: NDArray[np.object_],
        group_of_item: NDArray[np.int32],
        apart: Sequence[Sequence[str]],
        together: Sequence[Sequence[str]],
    ) -> None:
        self.apart: dict[int, list[list[int]]] = {}
        self.together: dict[int, list[list[int]]] = {}
        if apart or together:
            place = _places(ids, group_of_item)
            for sets, of_group in ((apart, self.apart), (together, self.together)):
                for chosen in sets:
                    group, numbers = _in_one_group([normal_id(item) for item in chosen], place)
                    of_group.setdefault(group, []).append(numbers)
        self.groups = self.apart.keys() | self.together.keys()


def _places(
    ids: NDArray[np.object_], group_of_item: NDArray[np.int32]
) -> dict[str, list[tuple[int, int]]]:
    """Return for each id (group, number of the item in its group); an id may be in several groups."""
    seen: dict[int, int] = {}
    place: dict[str, list[tuple[int, int]]] = {}
    for item, group in zip(ids, group_of_item.tolist(), strict=True):
        place.setdefault(item, []).append((group, seen.setdefault(group, 0)))
        seen[group] += 1
    return place


def _in_one_group(
    chosen: Sequence[str], place: dict[str, list[tuple[int, int]]]
) -> tuple[int, list[int]]:
    unknown = [item for item in chosen if item not in place]
    if unknown:
        raise ValueError(f"there is no item {unknown[0]!r} to keep apart or together")
    common = set.intersection(*({group for group, _ in place[item]} for item in chosen))
    if len(common) != 1:
        raise ValueError(
            f"items {', '.join(chosen)} are not in one group; constraints hold inside a group"
        )
    group = common.pop()
    return group, [number for item in chosen for where, number in place[item] if where == group]


def _own_design(
    n: int,
    k: int,
    size: int,
    rng: np.random.Generator,
    compat: Literal["km"] | None,
    rules: _Constraints,
    group: int,
) -> Members:
    if compat == "km":
        return canonical(n, k, size, rng)
    if compat is not None:
        raise ValueError(f"compat is {compat!r}; 'km' is allowed")
    apart, together = rules.apart.get(group, []), rules.together.get(group, [])
    members = balanced(n, k, size, rng, apart, together)
    return level_positions(rng.permutation(rng.permuted(members, axis=1)), n)
