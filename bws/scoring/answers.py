"""Judgments in an order of their own, so that no result depends on how a file was sorted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bws.records import Judgments, Tuples

__all__ = ["Answers", "Counts", "in_order"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each of N items was shown, chosen best and chosen worst; (N,) each."""

    appearances: Integers
    best: Integers
    worst: Integers


@dataclass(frozen=True, eq=False)
class Answers:
    """J judgments over the N items that were judged; all indices follow the ids' sort order."""

    origin: Integers
    """(N,) where the item stands in `Judgments.tuples.items`; ascending by group id, then item id."""
    items: list[str]
    """N item ids."""
    groups: list[str]
    """G group ids, ascending."""
    group_of: Integers
    """(N,) index into `groups`."""
    annotators: list[str]
    """A ids of those who judged, ascending."""
    members: Integers
    """(T, K) item indices, ascending in a row; the rows ascend and are distinct: tuples with the
    same items are one."""
    tuple_of: Integers
    """(J,) index into `members`; the judgments ascend by tuple, best, worst and annotator."""
    best: Integers
    """(J,) position of the best item in its row of `members`."""
    worst: Integers
    """(J,) position of the worst item."""
    annotator_of: Integers
    """(J,) index into `annotators`, -1 where unknown."""

    @property
    def k(self) -> int:
        """Items in a tuple."""
        return int(self.members.shape[1])

    def __len__(self) -> int:
        return int(self.tuple_of.shape[0])

    def take(self, rows: Integers) -> Answers:
        """Return the judgments at `rows`, repeated as often as they stand there; items stay."""
        picked = {
            name: getattr(self, name)[rows]
            for name in ("tuple_of", "best", "worst", "annotator_of")
        }
        return replace(self, **picked)

    @cached_property
    def counts(self) -> Counts:
        """How often every item was shown, chosen best and chosen worst."""
        n, judged = len(self.items), np.bincount(self.tuple_of, minlength=len(self.members))
        shown = np.bincount(self.members.ravel(), judged.repeat(self.k), minlength=n)
        best = np.bincount(self.members[self.tuple_of, self.best], minlength=n)
        worst = np.bincount(self.members[self.tuple_of, self.worst], minlength=n)
        return Counts(shown.astype(np.int64), best, worst)

    def best_first(self) -> Integers:
        """Return (J, K) item indices: the best first, the worst last, the others ascending between."""
        place = np.arange(self.k)
        chosen = (place == self.best[:, None]) | (place == self.worst[:, None])
        shown = self.members[self.tuple_of]
        middle = shown[~chosen].reshape(len(self), self.k - 2)
        rows = np.arange(len(self))
        return np.column_stack((shown[rows, self.best], middle, shown[rows, self.worst]))

    def digest(self) -> str:
        """Return the SHA-256 of the judgments' content, in hexadecimal.

        Hashed are, one after the other: the JSON of `[K, groups, items, annotators]`; then
        `group_of`, `members`, `tuple_of`, `best`, `worst` and `annotator_of` as little-endian
        32-bit integers. The order of rows, items and annotators, tuple ids, and items that nobody
        judged do not change it.
        """
        texts = json.dumps([self.k, self.groups, self.items, self.annotators])
        state = hashlib.sha256(texts.encode("ascii"))
        numbers = (self.group_of, self.members, self.tuple_of, self.best, self.worst)
        for array in (*numbers, self.annotator_of):
            state.update(array.astype("<i4").tobytes())
        return state.hexdigest()


def in_order(judgments: Judgments) -> Answers:
    """Renumber judgments by the sort order (by code point) of their ids; unjudged items go.

    >>> from bws.records import Judgment, Judgments
    >>> one, two = (Judgment(("b", "a", "c"), "b", worst) for worst in "ac")
    >>> first, again = (in_order(Judgments.from_records(r)) for r in ([one, two], [two, one]))
    >>> first.items, first.members.tolist(), first.digest() == again.digest()
    (['a', 'b', 'c'], [[0, 1, 2]], True)
    """
    tuples = judgments.tuples
    used = _distinct(judgments.tuple_of, len(tuples))
    origin = _sorted_items(tuples, _distinct(tuples.members[used], len(tuples.items)))
    groups, group_of = _renumbered(tuples.groups, tuples.group_of_item[origin])
    annotators, annotator_of = _renumbered(judgments.annotators, judgments.annotator_of)

    ranked = _inverse(origin, len(tuples.items))[tuples.members[used]]
    order = np.argsort(ranked, axis=1)
    place = np.argsort(order, axis=1)
    members, number = _distinct_rows(np.take_along_axis(ranked, order, axis=1), len(origin))

    row = _inverse(used, len(tuples))[judgments.tuple_of]
    columns = (number[row], place[row, judgments.best], place[row, judgments.worst], annotator_of)
    sizes = (len(members), tuples.k, tuples.k, len(annotators))
    items = tuples.items[origin].tolist()
    rows = _sorted_rows(columns, sizes)
    return Answers(origin, items, groups, group_of, annotators, members, *rows)


def _sorted_items(tuples: Tuples, judged: Integers) -> Integers:
    """Return the judged items' indices, ascending by group id and then item id."""
    ids = tuples.items[judged].tolist()
    by_id = judged[sorted(range(len(ids)), key=ids.__getitem__)]
    _, group = _renumbered(tuples.groups, tuples.group_of_item[by_id])
    return by_id[np.argsort(group, kind="stable")]


def _renumbered(ids: NDArray[np.object_], index: NDArray[np.int32]) -> tuple[list[str], Integers]:
    """Return the used ids ascending, and `index` into them; -1 stays -1."""
    used = _distinct(index[index >= 0], len(ids))
    names = ids[used].tolist()
    order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    # One place more, at the end: where -1 looks.
    rank = np.append(_inverse(used[order], len(ids)), -1)
    return [names[i] for i in order], rank[index]


def _distinct(index: NDArray[np.int32], size: int) -> Integers:
    """Return the distinct numbers, ascending; all are below `size`."""
    return np.flatnonzero(np.bincount(index.ravel(), minlength=size))


def _inverse(places: Integers, size: int) -> Integers:
    """Return (size,) the index at which each number stands in `places`, -1 where it does not."""
    index = np.full(size, -1, dtype=np.int64)
    index[places] = np.arange(len(places))
    return index


def _distinct_rows(table: Integers, size: int) -> tuple[Integers, Integers]:
    """Return the distinct rows of `table` (entries below `size`) ascending, and each row's number."""
    order = _row_order(tuple(_packed(table, size)))
    ordered = table[order]
    new = np.ones(len(table), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    number = np.empty(len(table), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return ordered[new], number


def _row_order(keys: tuple[Integers, ...]) -> Integers:
    """Return where the rows stand in ascending order; equal rows in any order."""
    order = np.argsort(keys[0])
    first = keys[0][order]
    settled = len(keys) == 1 or bool((first[1:] > first[:-1]).all())
    return order if settled else np.lexsort(keys[::-1])


def _packed(table: Integers, size: int) -> Iterator[Integers]:
    """Yield keys of several columns each: fewer keys to sort by, in the same order."""
    together = int(62 // np.log2(max(size, 2)))
    for start in range(0, table.shape[1], together):
        columns = table[:, start : start + together]
        yield columns @ (size ** np.arange(columns.shape[1] - 1, -1, -1, dtype=np.int64))


def _sorted_rows(columns: tuple[Integers, ...], sizes: tuple[int, ...]) -> Iterator[Integers]:
    """Yield the columns with their rows in ascending order; the last column may hold -1."""
    tuples, k, _, annotators = sizes
    shape = (max(tuples, 1), k, k, annotators + 1)
    key = np.ravel_multi_index((*columns[:-1], columns[-1] + 1), shape)
    *ordered, annotator = np.unravel_index(np.sort(key), shape)
    yield from ordered
    yield annotator - 1
