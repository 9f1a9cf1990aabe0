"""Tuples, judgments and scores: the integer arrays that the computations work on, and their records.

An item is identified by its group and its id together: two dialogues may each have a candidate
``a``. Where there are no groups, every group is the empty string.
"""

from __future__ import annotations

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

__all__ = ["Judgment", "Judgments", "Scores", "Tuples", "normal_id"]

Ints = NDArray[np.int32]
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
    """J valid judgments of T tuples by A annotators."""

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
