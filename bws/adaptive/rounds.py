"""Choice of the tuples of a round: Thompson–Swiss pairing, and random audit tuples.

Each pass draws utilities from the posterior, sorts the items of a group by them, and cuts the order into
tuples: items that the judgments cannot yet order meet. Drawing, instead of sorting by the mode, lets items
with few judgments meet opponents over a wider range (Thompson sampling). A pass contains each item once,
except for a remainder of fewer than K items with the most appearances.

Every fifth tuple of a round is an audit tuple: a random set of K items of a group. Audit tuples test the
model on questions that were not chosen to be hard (`bws.adaptive.stop`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from itertools import combinations
from math import ceil, comb

import numpy as np
from numpy.typing import NDArray

from bws.adaptive.model import Fit, fit
from bws.base.frames import Source
from bws.base.ids import id_of
from bws.design.balance import level_positions
from bws.design.extend import extend_tuples, new_tuple_names
from bws.files import Items, as_judgments, as_tuples
from bws.files.controls import name_list
from bws.records import Judgments, Tuples

FIRST_ROUND = {"round": "1", "purpose": "warmup", "seed": ""}
"""Values of the columns of a design without rounds."""
AUDIT_SHARE = 0.2
"""Share of audit tuples in a round."""
MIN_TUPLES_PER_ITEM = 4
"""Possible tuples per item below which a choice of tuples gains nothing."""
MAX_PASSES = 1000
MAX_TRIES = 50
"""Random exchanges to repair a tuple that exists already or contains items to be kept apart."""
Members = NDArray[np.int32]
Key = tuple[int, ...]


def next_round(
    judgments: Judgments | Source,
    tuples: Tuples | Source,
    count: int,
    *,
    keep_apart: Sequence[Sequence[str]] = (),
    seed: int = 0,
    control: Iterable[str] = (),
) -> Tuples:
    """Return the tuples of the next round, with the columns ``round``, ``purpose`` and ``seed``.

    judgments: the judgments so far; tuples: the tuples of all earlier rounds. count: number of tuples, of
    which a fifth (rounded up) are audit tuples. keep_apart: sets of items of which no tuple contains two.
    control: as in `read_judgments`; tuples with control items do not count, and none is chosen.

    No tuple repeats an earlier one. The positions of an item differ by at most one within the round. Equal
    judgments, tuples and seeds give equal rounds, in any order of rows. Raises ValueError if the groups have
    too few possible tuples for a choice, if no new tuples are left, or for judgments of other items or of
    other tuples, such as those of a round that is not among `tuples`.
    """
    control = name_list(control)
    judgments, tuples = without_controls(
        as_judgments(judgments, control), as_tuples(tuples, control)
    )
    tuples = in_canonical_order(tuples)
    if count < 1:
        raise ValueError(f"count is {count}; expected 1 or more")
    check_choice(tuples)
    number = last_round(tuples) + 1
    rng = np.random.Generator(np.random.PCG64([seed, number]))
    separate_pairs = _separate_pairs(tuples, keep_apart)
    fitted = fit(tuples, judgments)
    check_all_rounds(judgments, tuples)
    choice = _Choice(fitted, tuples, separate_pairs, rng)
    audit_count = ceil(AUDIT_SHARE * count)
    audit = choice.take(audit_count, choice.random_pass)
    adaptive = choice.take(count - audit_count, choice.swiss_pass)
    purpose = np.repeat(np.array(["adaptive", "audit"], dtype=object), [len(adaptive), audit_count])
    order = rng.permutation(count)
    members = rng.permuted(np.concatenate([adaptive, audit])[order], axis=1)
    return Tuples(
        ids=new_tuple_names(tuples, count),
        items=tuples.items,
        group_of_item=tuples.group_of_item,
        groups=tuples.groups,
        members=level_positions(members, len(tuples.items)),
        columns={
            "round": np.array([str(number)] * count, dtype=object),
            "purpose": purpose[order],
            "seed": np.array([str(seed)] * count, dtype=object),
        },
    )


def round_of_new_items(tuples: Tuples | Source, items: Items, *, seed: int = 0) -> Tuples:
    """Return a round whose tuples link new items to earlier ones, which keep their scale.

    tuples: the tuples of all earlier rounds. items: those of the study; the earlier ones are ignored. Half of
    the items of a tuple are new. A new item gets K appearances or one more, as in a first round of as many
    tuples as items; the purpose is ``warmup``, since no tuple depends on judgments. Equal tuples, sets of
    items and seeds give equal rounds. Raises ValueError as `extend_tuples`, and without new items.
    """
    tuples = in_canonical_order(as_tuples(tuples).without_controls())
    keys = zip(items.groups or [""] * len(items.items), items.items, strict=True)
    new = sorted(set(keys) - set(tuples.item_keys))
    if not new:
        raise ValueError("all items are in earlier rounds; expected new ones")
    groups, names = zip(*new, strict=True)
    joined = extend_tuples(join_rounds([tuples]), names, groups=groups, factor=1, seed=seed)
    is_added = np.arange(len(joined)) >= len(tuples)
    return replace(
        joined,
        ids=joined.ids[is_added],
        members=joined.members[is_added],
        columns={name: column[is_added] for name, column in joined.columns.items()},
    )


def without_controls(judgments: Judgments, tuples: Tuples) -> tuple[Judgments, Tuples]:
    """Return judgments and tuples without tuples with control items, which either may declare."""
    controls = {**tuples.controls, **judgments.tuples.controls}
    if not controls:
        return judgments, tuples
    judged = replace(judgments, tuples=judgments.tuples.with_controls(controls))
    judged, _ = judged.without_controls("adaptive rounds")
    used, tuple_of = np.unique(judged.tuple_of, return_inverse=True)
    rows = np.flatnonzero(~judged.tuples.has_control)
    ranks = np.searchsorted(rows, used)[tuple_of].astype(np.int32)
    judged = replace(judged, tuples=judged.tuples.without_controls(), tuple_of=ranks)
    return judged, tuples.with_controls(controls).without_controls()


def join_rounds(rounds: Sequence[Tuples]) -> Tuples:
    """Return the tuples of several rounds as one design.

    A design without the column ``round`` is round 1. Raises ValueError for tuples of different sizes, a tuple
    id in two rounds, or an item with a group in one round alone.
    """
    if len({design.k for design in rounds}) > 1:
        sizes = ", ".join(str(design.k) for design in rounds)
        raise ValueError(f"the rounds have tuples of {sizes} items; expected one size")
    ids = np.concatenate([design.ids for design in rounds])
    names, times = np.unique(ids.astype(str), return_counts=True)
    if (times > 1).any():
        raise ValueError(
            f"tuple id {str(names[times > 1][0])!r} is in two rounds; expected each once"
        )
    keys = [design.item_keys for design in rounds]
    grouped = {item for part in keys for group, item in part if group}
    if ungrouped := [
        item for part in keys for group, item in part if not group and item in grouped
    ]:
        raise ValueError(
            f"{len(ungrouped)} items have a group in one round and none in another, such as "
            f"{ungrouped[0]!r}; expected a group in all rounds or in none"
        )
    index = {
        key: number for number, key in enumerate(dict.fromkeys(k for part in keys for k in part))
    }
    groups = {
        group: number for number, group in enumerate(dict.fromkeys(group for group, _ in index))
    }
    members = [
        np.array([index[key] for key in part], np.int32)[design.members]
        for part, design in zip(keys, rounds, strict=True)
    ]
    joined = Tuples(
        ids=ids,
        items=np.array([item for _, item in index], dtype=object),
        group_of_item=np.array([groups[group] for group, _ in index], np.int32),
        groups=np.array(list(groups), dtype=object),
        members=np.concatenate(members),
        columns={
            name: np.concatenate([_column(design, name) for design in rounds])
            for name in FIRST_ROUND
        },
    )
    controls = {key: answer for design in rounds for key, answer in design.controls.items()}
    return joined.with_controls(controls) if controls else joined


def in_canonical_order(tuples: Tuples) -> Tuples:
    """Return the tuples with groups, and items within groups, in the sort order of their ids."""
    group_order = np.argsort(tuples.groups)
    rank = np.argsort(group_order)[tuples.group_of_item]
    order = np.lexsort((np.argsort(np.argsort(tuples.items)), rank))
    return replace(
        tuples,
        items=tuples.items[order],
        group_of_item=rank[order].astype(np.int32),
        groups=tuples.groups[group_order],
        members=np.argsort(order).astype(np.int32)[tuples.members],
    )


def _column(tuples: Tuples, name: str) -> NDArray[np.object_]:
    """Return a column of a round, for a design without rounds that of a first round."""
    return tuples.columns.get(name, np.full(len(tuples), FIRST_ROUND[name], dtype=object))


def last_round(tuples: Tuples) -> int:
    """Return the number of the last round; tuples without rounds are round 1."""
    return max(map(int, _column(tuples, "round")))


def check_choice(tuples: Tuples) -> None:
    """Raise ValueError if no group has enough possible tuples for a choice to gain anything."""
    size = int(np.bincount(tuples.group_of_item).max())
    possible = comb(size, tuples.k)
    if possible < MIN_TUPLES_PER_ITEM * size:
        raise ValueError(
            f"adaptive rounds gain nothing here: {size} items have only {possible} possible tuples of "
            f"{tuples.k}, which can all be judged; use them all (giccs design) and choose the number of "
            "annotators by the reliability that you need (giccs reliability --plan)"
        )


def check_all_rounds(judgments: Judgments, tuples: Tuples) -> None:
    """Raise ValueError if a judged tuple has the items of no tuple: its round is missing in `tuples`."""
    known_sets = set(_sets_of_items(tuples))
    sets, ids = _sets_of_items(judgments.tuples), judgments.tuples.ids
    refuse_unknown(
        [ids[row] for row in np.unique(judgments.tuple_of) if sets[row] not in known_sets]
    )


def refuse_unknown(unknown_ids: Sequence[str]) -> None:
    """Raise ValueError if there are ids of judged tuples that are not among the tuples of a study."""
    if unknown_ids:
        raise ValueError(
            f"{len(unknown_ids)} judged tuples are not among the tuples, such as {unknown_ids[0]!r}; "
            "pass the tuples of all rounds"
        )


def _sets_of_items(tuples: Tuples) -> list[frozenset[tuple[str, str]]]:
    keys = tuples.item_keys
    return [frozenset(keys[item] for item in row) for row in tuples.members.tolist()]


class _Choice:
    """Tuples of a round: candidates of passes that repeat no earlier tuple."""

    def __init__(
        self,
        fitted: Fit,
        tuples: Tuples,
        separate_pairs: Set[tuple[int, int]],
        rng: np.random.Generator,
    ) -> None:
        self.fitted, self.rng, self.k, self.separate_pairs = fitted, rng, tuples.k, separate_pairs
        self.used = set(map(_key, tuples.members.tolist()))
        self.appearances = np.bincount(tuples.members.ravel(), minlength=len(tuples.items))
        self.groups = [
            np.flatnonzero(tuples.group_of_item == group) for group in range(len(tuples.groups))
        ]

    def take(self, count: int, make_pass: Callable[[], list[list[int]]]) -> Members:
        """Return (count, K) new tuples of as many passes as needed; of the last pass, a random part."""
        taken: list[list[int]] = []
        for _ in range(MAX_PASSES):
            if len(taken) == count:
                return np.array(taken, np.int32).reshape(-1, self.k)
            candidates = make_pass()
            for row in self.rng.permutation(len(candidates))[: count - len(taken)].tolist():
                taken.append(candidates[row])
                self.used.add(_key(candidates[row]))
                self.appearances[candidates[row]] += 1
        raise ValueError(
            f"only {len(taken)} of {count} new tuples were found; ask for fewer, or relax the constraints"
        )

    def swiss_pass(self) -> list[list[int]]:
        """Return tuples of neighbours in the order of a draw."""
        return self._cut(self.fitted.draw(1, self.rng)[0])

    def random_pass(self) -> list[list[int]]:
        """Return tuples of random items."""
        return self._cut(self.rng.random(len(self.appearances)))

    def _cut(self, value: NDArray[np.float64]) -> list[list[int]]:
        """Return tuples of items with neighbouring values, within groups."""
        tie_breaker = self.rng.random(len(value))
        rows: list[list[int]] = []
        for items in self.groups:
            remainder = len(items) % self.k
            least_used = items[np.lexsort((tie_breaker[items], self.appearances[items]))]
            included = least_used[: len(items) - remainder]
            ordered = included[np.lexsort((tie_breaker[included], value[included]))]
            rows += self._repaired(ordered.reshape(-1, self.k).tolist())
        return rows

    def _repaired(self, rows: list[list[int]]) -> list[list[int]]:
        """Return the new tuples; forbidden ones exchange an item with a neighbour, or are omitted."""
        for index in range(len(rows)):
            for _ in range(MAX_TRIES):
                if self._is_allowed(rows[index]) or len(rows) == 1:
                    break
                neighbour = self._neighbour(index, len(rows))
                a, b = self.rng.integers(self.k, size=2).tolist()
                rows[index][a], rows[neighbour][b] = rows[neighbour][b], rows[index][a]
                if neighbour < index and not self._is_allowed(rows[neighbour]):
                    rows[index][a], rows[neighbour][b] = rows[neighbour][b], rows[index][a]
        return [row for row in rows if self._is_allowed(row)]

    def _neighbour(self, index: int, count: int) -> int:
        """Return the index of one of the two adjacent rows."""
        step = 1 if index == 0 or (index + 1 < count and self.rng.random() < 0.5) else -1
        return index + step

    def _is_allowed(self, row: list[int]) -> bool:
        key = _key(row)
        return key not in self.used and not (
            self.separate_pairs
            and any(pair in self.separate_pairs for pair in combinations(key, 2))
        )


def _separate_pairs(tuples: Tuples, keep_apart: Sequence[Sequence[str]]) -> set[tuple[int, int]]:
    """Return the pairs of items of a group that no tuple may contain."""
    indices: dict[str, dict[int, int]] = {}
    for number, (item, group) in enumerate(
        zip(tuples.items, tuples.group_of_item.tolist(), strict=True)
    ):
        indices.setdefault(item, {})[group] = number
    pairs = set()
    for item_set in keep_apart:
        items = sorted({id_of(item) for item in item_set})
        unknown = [item for item in items if item not in indices]
        if unknown:
            raise ValueError(f"unknown item {unknown[0]!r} in the constraints")
        for a, b in combinations(items, 2):
            for group in indices[a].keys() & indices[b].keys():
                low, high = sorted((indices[a][group], indices[b][group]))
                pairs.add((low, high))
    return pairs


def _key(row: Sequence[int]) -> Key:
    return tuple(sorted(row))
