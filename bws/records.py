"""Tuples, judgments and scores: the integer arrays that the computations work on, and their records.

Judgments have two orders: that of the source, which files, tables and messages keep, and the canonical
order of the ids (`Judgments.canonical`), in which everything is computed, so that no result depends on how a
file is sorted.

An item is identified by its group and its id together: two dialogues may each have a candidate
``a``. Where there are no groups, every group is the empty string.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.problems import Problem

if TYPE_CHECKING:
    from bws.variants import Variants

__all__ = [
    "CanonicalJudgments",
    "Counts",
    "Judgment",
    "Judgments",
    "Scores",
    "Tuples",
    "normal_id",
]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


def normal_id(text: str) -> str:
    """Return the form in which ids are compared: Unicode NFC without outer white space.

    >>> normal_id(" u\u0308ber ") == "über"
    True
    """
    return unicodedata.normalize("NFC", text).strip()


@dataclass(frozen=True, eq=False)
class Tuples:
    """T tuples of K items each, over N items in G groups."""

    ids: NDArray[np.object_]
    """(T,) tuple ids, each once."""
    items: NDArray[np.object_]
    """(N,) item ids; an item's place here is its index everywhere else."""
    group_of_item: Ints
    """(N,) index into `groups`."""
    groups: NDArray[np.object_]
    """(G,) group ids, each once; a single empty string where there are no groups."""
    members: Ints
    """(T, K) item indices; all members of a tuple are distinct and of one group. The order is the
    order in which the tuple's items were first written."""
    notes: tuple[str, ...] = ()
    """What a user of a new design must know: groups that have fewer tuples than usual."""

    @property
    def k(self) -> int:
        """Items in a tuple."""
        return int(self.members.shape[1])

    def __len__(self) -> int:
        return int(self.members.shape[0])

    @cached_property
    def group_of_tuple(self) -> Ints:
        """(T,) index into `groups`."""
        return self.group_of_item[self.members[:, 0]]

    @cached_property
    def n_repeated(self) -> int:
        """The number of tuples whose items are those of an earlier tuple."""
        ordered = np.sort(self.members, axis=1)
        ordered = ordered[np.lexsort(ordered.T)]
        return int((ordered[1:] == ordered[:-1]).all(axis=1).sum())

    def rows(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield (tuple id, group id, item ids) a tuple."""
        for identity, group, members in zip(
            self.ids, self.groups[self.group_of_tuple], self.items[self.members], strict=True
        ):
            yield identity, group, tuple(members)


@dataclass(frozen=True, slots=True)
class Judgment:
    """One annotator's answer to one tuple."""

    items: tuple[str, ...]
    """The items in the order in which they were shown."""
    best: str
    worst: str
    annotator: str = ""
    """Who answered; empty where it is not known."""
    group: str = ""
    tuple_id: str = ""
    """Empty: the tuple is known by its set of items."""


@dataclass(frozen=True, eq=False)
class Judgments:
    """J valid judgments of T tuples by A annotators, in the order in which they were written.

    Numbers are computed from `canonical`; files, tables and messages keep the order of the source.
    """

    tuples: Tuples
    tuple_of: Ints
    """(J,) index of the judged tuple."""
    best: NDArray[np.int8]
    """(J,) position of the best item in `tuples.members[tuple_of]`."""
    worst: NDArray[np.int8]
    """(J,) position of the worst item, never equal to `best`."""
    annotator_of: Ints
    """(J,) index into `annotators`; -1 where the source names none."""
    annotators: NDArray[np.object_]
    """(A,) annotator ids, each once."""
    shown: NDArray[np.int8] | None = None
    """(J, K) the order on the annotator's screen: `shown[j, s]` is the position in `members` of the item
    shown at place s. None: the source does not tell."""
    columns: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)
    """Further columns as text, (J,) each: seconds, comment, assignment_id, and whatever else was there."""
    source: str = ""
    """The file (and the format it was taken for) that the judgments came from."""
    left_out: tuple[Problem, ...] = ()
    """Why rows were not used, each reason with its line."""
    items_left_out: tuple[str, ...] = ()
    """Items that are in rows that were not used, and in no others."""
    variants: Variants | None = None
    """Items that differ in white space, case and punctuation only; None where there are none."""

    def __len__(self) -> int:
        return int(self.tuple_of.shape[0])

    @cached_property
    def best_item(self) -> Ints:
        """(J,) index of the item chosen best."""
        return self.tuples.members[self.tuple_of, self.best]

    @cached_property
    def worst_item(self) -> Ints:
        """(J,) index of the item chosen worst."""
        return self.tuples.members[self.tuple_of, self.worst]

    @cached_property
    def canonical(self) -> CanonicalJudgments:
        """The judgments in the order that no file determines.

        >>> one, two = (Judgment(("b", "a", "c"), "b", worst) for worst in "ac")
        >>> first, again = (Judgments.from_records(r).canonical for r in ([one, two], [two, one]))
        >>> first.items, first.members.tolist(), first.digest() == again.digest()
        (['a', 'b', 'c'], [[0, 1, 2]], True)
        """
        return _in_canonical_order(self)

    @property
    def n_left_out(self) -> int:
        """How many rows were not used; a row with several faults is one."""
        rows = {(problem.file, problem.line, problem.row) for problem in self.left_out}
        unplaced = {(problem.file, None, None) for problem in self.left_out}  # each is a row
        count = sum((p.file, p.line, p.row) in unplaced for p in self.left_out)
        return len(rows - unplaced) + count

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Judgments:
        """Return the judgments at `rows` (indices or a mask); items and tuples stay as they are."""
        return replace(
            self,
            tuple_of=self.tuple_of[rows],
            best=self.best[rows],
            worst=self.worst[rows],
            annotator_of=self.annotator_of[rows],
            shown=None if self.shown is None else self.shown[rows],
            columns={name: column[rows] for name, column in self.columns.items()},
        )

    @classmethod
    def from_records(cls, records: Iterable[Judgment]) -> Judgments:
        """Build the arrays from records; ValueError names every record that is not a valid judgment.

        >>> judged = Judgments.from_records([
        ...     Judgment(("a", "b", "c"), best="a", worst="c", annotator="w1"),
        ...     Judgment(("c", "b", "a"), best="a", worst="b", annotator="w2"),
        ... ])
        >>> len(judged.tuples), len(judged)
        (1, 2)
        >>> judged.tuples.items[judged.worst_item].tolist()
        ['c', 'b']
        """
        from bws.files import judgments_from_records  # the checks are the same as for a file

        return judgments_from_records(records)

    def records(self) -> Iterator[Judgment]:
        """Yield the judgments as records, items in the order shown where that is known."""
        tuples = self.tuples
        for j, t in enumerate(self.tuple_of):
            members = tuples.members[t]
            order = range(tuples.k) if self.shown is None else self.shown[j]
            annotator = self.annotator_of[j]
            yield Judgment(
                items=tuple(tuples.items[members[place]] for place in order),
                best=tuples.items[members[self.best[j]]],
                worst=tuples.items[members[self.worst[j]]],
                annotator="" if annotator < 0 else self.annotators[annotator],
                group=tuples.groups[tuples.group_of_tuple[t]],
                tuple_id=tuples.ids[t],
            )


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each of N items was shown, chosen best and chosen worst; (N,) each."""

    appearances: Longs
    best: Longs
    worst: Longs


@dataclass(frozen=True, eq=False)
class CanonicalJudgments:
    """J judgments of the N judged items, ordered by ids alone: not by how a file was sorted.

    Everything that is computed from judgments is computed from these arrays.
    """

    origin: Longs
    """(N,) index of the item in `Judgments.tuples.items`; ascending by group id, then item id."""
    items: list[str]
    """N item ids."""
    groups: list[str]
    """G group ids, ascending."""
    group_of: Longs
    """(N,) index into `groups`."""
    annotators: list[str]
    """A ids of those who judged, ascending."""
    members: Longs
    """(T, K) item indices, ascending in a row; the rows ascend and are distinct: tuples with the
    same items are one."""
    tuple_of: Longs
    """(J,) index into `members`; the judgments ascend by tuple, best, worst and annotator."""
    best: Longs
    """(J,) position of the best item in its row of `members`."""
    worst: Longs
    """(J,) position of the worst item."""
    annotator_of: Longs
    """(J,) index into `annotators`, -1 where unknown."""

    @property
    def k(self) -> int:
        """Items in a tuple."""
        return int(self.members.shape[1])

    def __len__(self) -> int:
        return int(self.tuple_of.shape[0])

    @property
    def judged_items(self) -> Longs:
        """(J, K) the items of each judgment's tuple."""
        return self.members[self.tuple_of]

    @property
    def best_item(self) -> Longs:
        """(J,) index of the item chosen best."""
        return self.members[self.tuple_of, self.best]

    @property
    def worst_item(self) -> Longs:
        """(J,) index of the item chosen worst."""
        return self.members[self.tuple_of, self.worst]

    @property
    def values(self) -> Floats:
        """(J, K) what a judgment says of its items: 1 for the best, -1 for the worst, else 0."""
        position = np.arange(self.k)
        is_best, is_worst = (position == chosen[:, None] for chosen in (self.best, self.worst))
        values: Floats = is_best * 1.0 - is_worst
        return values

    @property
    def distinct_annotator_of(self) -> Longs:
        """(J,) `annotator_of`, but for judgments that name none: another number from A on for each."""
        unknown = self.annotator_of < 0
        annotator_of = self.annotator_of.copy()
        annotator_of[unknown] = len(self.annotators) + np.arange(np.count_nonzero(unknown))
        return annotator_of

    def take(self, rows: Longs) -> CanonicalJudgments:
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
        best = np.bincount(self.best_item, minlength=n)
        worst = np.bincount(self.worst_item, minlength=n)
        return Counts(shown.astype(np.int64), best, worst)

    def best_first(self) -> Longs:
        """Return (J, K) item indices: the best first, the worst last, the others ascending between."""
        place = np.arange(self.k)
        chosen = (place == self.best[:, None]) | (place == self.worst[:, None])
        middle = self.judged_items[~chosen].reshape(len(self), self.k - 2)
        return np.column_stack((self.best_item, middle, self.worst_item))

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


def _in_canonical_order(judgments: Judgments) -> CanonicalJudgments:
    """Renumber judgments by the sort order (by code point) of their ids; unjudged items go."""
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
    return CanonicalJudgments(origin, items, groups, group_of, annotators, members, *rows)


def _sorted_items(tuples: Tuples, judged: Longs) -> Longs:
    """Return the judged items' indices, ascending by group id and then item id."""
    ids = tuples.items[judged].tolist()
    by_id = judged[sorted(range(len(ids)), key=ids.__getitem__)]
    _, group = _renumbered(tuples.groups, tuples.group_of_item[by_id])
    return by_id[np.argsort(group, kind="stable")]


def _renumbered(ids: NDArray[np.object_], index: NDArray[np.int32]) -> tuple[list[str], Longs]:
    """Return the used ids ascending, and `index` into them; -1 stays -1."""
    used = _distinct(index[index >= 0], len(ids))
    names = ids[used].tolist()
    order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    # One place more, at the end: where -1 looks.
    rank = np.append(_inverse(used[order], len(ids)), -1)
    return [names[i] for i in order], rank[index]


def _distinct(index: NDArray[np.int32], size: int) -> Longs:
    """Return the distinct numbers, ascending; all are below `size`."""
    return np.flatnonzero(np.bincount(index.ravel(), minlength=size))


def _inverse(places: Longs, size: int) -> Longs:
    """Return (size,) the index at which each number stands in `places`, -1 where it does not."""
    index = np.full(size, -1, dtype=np.int64)
    index[places] = np.arange(len(places))
    return index


def _distinct_rows(table: Longs, size: int) -> tuple[Longs, Longs]:
    """Return the distinct rows of `table` (entries below `size`) ascending, and each row's number."""
    order = _row_order(tuple(_packed(table, size)))
    ordered = table[order]
    new = np.ones(len(table), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    number = np.empty(len(table), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return ordered[new], number


def _row_order(keys: tuple[Longs, ...]) -> Longs:
    """Return where the rows stand in ascending order; equal rows in any order."""
    order = np.argsort(keys[0])
    first = keys[0][order]
    settled = len(keys) == 1 or bool((first[1:] > first[:-1]).all())
    return order if settled else np.lexsort(keys[::-1])


def _packed(table: Longs, size: int) -> Iterator[Longs]:
    """Yield keys of several columns each: fewer keys to sort by, in the same order."""
    together = int(62 // np.log2(max(size, 2)))
    for start in range(0, table.shape[1], together):
        columns = table[:, start : start + together]
        yield columns @ (size ** np.arange(columns.shape[1] - 1, -1, -1, dtype=np.int64))


def _sorted_rows(columns: tuple[Longs, ...], sizes: tuple[int, ...]) -> Iterator[Longs]:
    """Yield the columns with their rows in ascending order; the last column may hold -1."""
    tuples, k, _, annotators = sizes
    shape = (max(tuples, 1), k, k, annotators + 1)
    key = np.ravel_multi_index((*columns[:-1], columns[-1] + 1), shape)
    *ordered, annotator = np.unravel_index(np.sort(key), shape)
    yield from ordered
    yield annotator - 1


@dataclass(frozen=True, eq=False)
class Scores:
    """A score for each of N items, with the counts behind it."""

    items: NDArray[np.object_]
    groups: NDArray[np.object_]
    """(N,) the group id of each item (not an index)."""
    score: Floats
    """(N,) NaN where the item was never judged."""
    appearances: NDArray[np.int64]
    best: NDArray[np.int64]
    worst: NDArray[np.int64]
    low: Floats | None = None
    """(N,) lower end of the 95 % interval; None where none was asked for."""
    high: Floats | None = None
    notes: Sequence[str] = ()
    """What a reader of the scores must know: items never shown, models that did not converge."""
    signature: Mapping[str, object] = field(default_factory=dict)
    """All that produced the scores: method, scale, seed, digest of the judgments, version."""

    def __len__(self) -> int:
        return int(self.score.shape[0])
