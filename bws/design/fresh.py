"""Rounds of fresh tuples: each round is a balanced design, and no tuple occurs in two rounds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.progress import tracked
from bws.design.balance import (
    ExchangeRules,
    exchange,
    level_positions,
    pair_keys,
    remove_repeated_tuples,
)
from bws.design.make import Constraints, make_tuples, not_distinct, tuple_names
from bws.records import Tuples

Members = NDArray[np.int32]


def fresh_rounds(
    items: Sequence[str],
    k: int,
    rounds: int,
    *,
    factor: float | None = None,
    count: int | None = None,
    groups: Sequence[str] | None = None,
    keep_apart: Sequence[Sequence[str]] = (),
    seed: int = 0,
) -> Tuples:
    """Make `rounds` balanced designs without common tuples; each tuple is meant for one annotator.

    For the same number of judgments, fresh tuples give better scores than several judgments of each tuple: R
    rounds replace R annotators per tuple. `factor` or `count` is the size of a round; the other arguments are
    those of `make_tuples`. Pairs of items are not repeated as long as that can be avoided. The column
    ``round`` numbers the rounds, and ``purpose`` is ``warmup``: no tuple depends on judgments.

    Raises ValueError as `make_tuples`, and if a group has too few distinct tuples.

    >>> design = fresh_rounds([f"i{n}" for n in range(20)], 4, 3)
    >>> len(design), design.n_repeated, np.bincount(design.members.ravel()).tolist() == [24] * 20
    (120, 0, True)
    """
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}; expected 1 or more")
    settings: dict[str, Any] = {
        "factor": factor, "count": count, "groups": groups, "keep_apart": keep_apart
    }  # fmt: skip
    first = make_tuples(items, k, seed=seed, **settings)
    _check_sizes(first, rounds)
    constraints = Constraints(first.items, first.group_of_item, keep_apart, ())
    members = [first.members]
    for number in tracked(range(2, rounds + 1), "rounds", rounds - 1):
        rng = np.random.Generator(np.random.PCG64([seed, number]))
        repeated = make_tuples(items, k, seed=int(rng.integers(2**31)), **settings)
        members.append(_without_repeats(first, np.concatenate(members), repeated, constraints, rng))
    n_tuples = rounds * len(first)
    round_of = np.repeat(np.arange(1, rounds + 1), len(first))
    return Tuples(
        ids=tuple_names(n_tuples),
        items=first.items,
        group_of_item=first.group_of_item,
        groups=first.groups,
        members=np.concatenate(members),
        columns={
            "round": round_of.astype(str).astype(object),
            "purpose": np.full(n_tuples, "warmup", dtype=object),
            "seed": np.full(n_tuples, str(seed), dtype=object),
        },
    )


def _check_sizes(first: Tuples, rounds: int) -> None:
    """Raise ValueError if a group has fewer distinct tuples than all rounds need."""
    sizes = np.bincount(first.group_of_item)
    counts = np.bincount(first.group_of_tuple, minlength=len(sizes))
    for name, size, count in zip(first.groups, sizes.tolist(), counts.tolist(), strict=True):
        if rounds * count > comb(size, first.k):
            location = f"group {name!r}: " if name else ""
            reason = not_distinct(rounds * count, comb(size, first.k)).split(";")[0]
            raise ValueError(
                f"{location}{size} items, tuples of {first.k}: {reason}; ask for fewer rounds, or let "
                "several annotators judge each tuple"
            )


def _without_repeats(
    first: Tuples,
    earlier: Members,
    design: Tuples,
    constraints: Constraints,
    rng: np.random.Generator,
) -> Members:
    """Return the tuples of a design, with items exchanged within groups until none repeats an earlier one."""
    members = design.members.copy()
    n = len(first.items)
    index = np.argsort(first.group_of_item, kind="stable")
    starts = np.searchsorted(first.group_of_item[index], np.arange(len(first.groups)))
    for group in range(len(first.groups)):
        rows = np.flatnonzero(design.group_of_tuple == group)
        old = earlier[first.group_of_item[earlier[:, 0]] == group]
        separate_pairs = [
            starts[group] + np.array(pair)
            for item_set in constraints.separate.get(group, ())
            for pair in combinations(sorted(set(item_set)), 2)
        ]
        keys = [a * n + b for a, b in index[separate_pairs].tolist()] if separate_pairs else []
        forbidden = np.unique(np.array(keys, np.int64))
        members[rows] = _renewed(members[rows], old, n, forbidden, rng)
    return level_positions(rng.permuted(members, axis=1), n)


def _renewed(
    members: Members,
    earlier: Members,
    n: int,
    forbidden: NDArray[np.int64],
    rng: np.random.Generator,
) -> Members:
    improved = members.copy()
    pairs = np.unique(pair_keys(earlier, n))
    has_new_pairs = len(pairs) + pair_keys(members, n).size <= comb(len(np.unique(members)), 2)
    rules = ExchangeRules(forbid_repeats=True, existing_pairs=pairs, forbidden_pairs=forbidden)
    if has_new_pairs and exchange(improved, n, rng, rules):
        return improved
    both = np.concatenate([earlier, members])
    movable = np.zeros(both.shape, dtype=bool)
    movable[len(earlier) :] = True
    rules = ExchangeRules(forbidden_pairs=forbidden, movable=movable)
    if not remove_repeated_tuples(both, n, rng, rules):
        raise ValueError(
            "no round of new tuples was found; ask for fewer rounds or tuples, or relax the constraints"
        )
    return both[len(earlier) :]
