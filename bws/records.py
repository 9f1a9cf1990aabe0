"""Tuples, judgments and scores: the integer arrays used in computations, and their records.

Judgments have two orders: that of the source, which files, tables and messages preserve, and the canonical
order of the ids (`Judgments.canonical`). Computations use the canonical order, so that results are
independent of the order of rows in a file.

An item is identified by its group and its id: two dialogues may each have a candidate ``a``. Without groups,
every group is the empty string.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import FrameLibrary, HasFrame, Tabular, data_frame
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.base.tables import Column, ResultTable
from bws.model_annotators import SIMULATED_COMMENT, is_model, is_simulated
from bws.record_columns import ABSOLUTE, judgment_columns, score_columns, tuple_columns

if TYPE_CHECKING:
    from bws.files.variants import Variants

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


HUB_FACTOR = 20
"""Multiple of the median number of judgments from which an item is named as a probable control item."""
MAX_LISTED_NAMES = 5


@dataclass(frozen=True, eq=False, repr=False)
class Tuples(HasFrame):
    """T tuples of K items each, over N items in G groups."""

    ids: NDArray[np.object_]
    """(T,) unique tuple ids."""
    items: NDArray[np.object_]
    """(N,) item ids; the position of an item is its index in all other arrays."""
    group_of_item: Ints
    """(N,) index into `groups`."""
    groups: NDArray[np.object_]
    """(G,) unique group ids; a single empty string without groups."""
    members: Ints
    """(T, K) item indices; the members of a tuple are of one group and, except control items, distinct. The
    order is that of the first occurrence of the tuple in the source.
    """
    notes: tuple[str, ...] = ()
    """Notes on a new design: groups with fewer tuples than usual."""
    columns: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)
    """Columns of studies in rounds as text, (T,) each: ``round``, ``purpose`` (warmup, adaptive or audit) and
    ``seed``; empty for other designs.
    """
    controls: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Group and id of each control item, with the expected answer: best, worst or an empty string. Control
    items are the last of `items`.
    """
    control_column: NDArray[np.object_] | None = None
    """(T,) texts of the column ``control`` of a tuples file; None without this column."""

    @cached_property
    def n_scored(self) -> int:
        """Number of items that are not control items; these are the first of `items`."""
        if not self.controls:
            return len(self.items)
        return len(self.items) - sum(key in self.controls for key in self.item_keys)

    @cached_property
    def has_control(self) -> NDArray[np.bool_]:
        """(T,) whether a control item is in the tuple."""
        has_control: NDArray[np.bool_] = np.any(self.members >= self.n_scored, axis=1)
        return has_control

    def with_controls(self, controls: Mapping[tuple[str, str], str]) -> Tuples:
        """Return the tuples with these control items, by group and id, which become the last items."""
        is_control = np.array([key in controls for key in self.item_keys], bool)
        order = np.argsort(is_control, kind="stable")
        return replace(
            self,
            items=self.items[order],
            group_of_item=self.group_of_item[order],
            members=np.argsort(order).astype(np.int32)[self.members],
            controls=dict(controls),
        )

    def without_controls(self) -> Tuples:
        """Return the tuples without control items, over the other items."""
        if not self.controls:
            return self
        rows = np.flatnonzero(~self.has_control)
        return replace(
            self,
            ids=self.ids[rows],
            items=self.items[: self.n_scored],
            group_of_item=self.group_of_item[: self.n_scored],
            members=self.members[rows],
            columns={name: column[rows] for name, column in self.columns.items()},
            controls={},
            control_column=None,
        )

    @property
    def k(self) -> int:
        """Number of items per tuple."""
        return int(self.members.shape[1])

    def __len__(self) -> int:
        return int(self.members.shape[0])

    def __repr__(self) -> str:
        return f"<Tuples: {len(self)} of {self.k} items each, from {len(self.items)} items>"

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """Return a row per tuple, with the columns of `write_tuples`."""
        return data_frame(tuple_columns(self), library or self.frame_library)

    @cached_property
    def group_of_tuple(self) -> Ints:
        """(T,) index into `groups`."""
        return self.group_of_item[self.members[:, 0]]

    @property
    def item_keys(self) -> list[tuple[str, str]]:
        """(N,) group id and id of each item, which identify it."""
        return list(zip(self.groups[self.group_of_item], self.items, strict=True))

    @cached_property
    def item_sets(self) -> Longs:
        """(T,) number of the set of items of each tuple, the same for repeated tuples."""
        members = np.sort(self.members, axis=1).astype(np.int64)
        return _distinct_rows(members, len(self.items))[1]

    @property
    def n_repeated(self) -> int:
        """Number of tuples whose items are those of an earlier tuple."""
        return len(self) - len(np.unique(self.item_sets))

    def clusters(self, has_groups: bool | None = None) -> Longs:
        """Return (T,) numbers of clusters of dependent tuples: groups or, without groups, sets of items.

        has_groups: by default whether there are several groups.
        """
        has_groups = len(self.groups) > 1 if has_groups is None else has_groups
        return self.group_of_tuple.astype(np.int64) if has_groups else self.item_sets

    def rows(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield (tuple id, group id, item ids) per tuple."""
        for identity, group, members in zip(
            self.ids, self.groups[self.group_of_tuple], self.items[self.members], strict=True
        ):
            yield identity, group, tuple(members)


@dataclass(frozen=True, slots=True)
class Judgment:
    """One annotator's answer to one tuple."""

    items: tuple[str, ...]
    """The items in display order."""
    best: str
    worst: str
    annotator: str = ""
    """Id of the annotator; empty if unknown."""
    group: str = ""
    tuple_id: str = ""
    """Empty if the tuple is identified by its set of items."""


@dataclass(frozen=True, eq=False, repr=False)
class Judgments(HasFrame):
    """J valid judgments of T tuples by A annotators, in the order of the source.

    Results are computed from `canonical`; files, tables and messages preserve the order of the source.
    """

    tuples: Tuples
    tuple_of: Ints
    """(J,) index of the judged tuple."""
    best: NDArray[np.int8]
    """(J,) position of the best item in `tuples.members[tuple_of]`."""
    worst: NDArray[np.int8]
    """(J,) position of the worst item, never equal to `best`."""
    annotator_of: Ints
    """(J,) index into `annotators`; -1 if unknown."""
    annotators: NDArray[np.object_]
    """(A,) unique annotator ids."""
    shown: NDArray[np.int8] | None = None
    """(J, K) the display order: `shown[j, s]` is the position in `members` of the item displayed at
    position s. None if unknown.
    """
    columns: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)
    """Further columns as text, (J,) each: seconds, comment, assignment_id, and any others."""
    source: str = ""
    """The file of the judgments and its format."""
    left_out: tuple[Problem, ...] = ()
    """Reasons for skipped rows, with their lines."""
    items_left_out: tuple[str, ...] = ()
    """Items that occur only in skipped rows."""
    reading_notes: tuple[str, ...] = ()
    """How positions were understood, and what skipped rows have changed."""
    variants: Variants | None = None
    """Items that differ only in white space, case and punctuation; None if there are none."""
    lines: Longs | None = None
    """(J,) line of the source; None if unknown."""
    files: NDArray[np.object_] | None = None
    """(J,) file of each judgment, if they were read from several."""
    n_excluded: int = 0
    """Number of annotators whose judgments `bws.without_annotators` has left out."""
    allow_copies: bool = False
    """Whether `check_no_copies` permits copies: they are known to be judgments of their own."""

    def __len__(self) -> int:
        return int(self.tuple_of.shape[0])

    def __repr__(self) -> str:
        return f"<Judgments: {len(self)} of {len(self.tuples)} tuples by {len(self.annotators)} annotators>"

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """Return a row per judgment, with the columns of `write_judgments`."""
        return data_frame(judgment_columns(self), library or self.frame_library)

    @property
    def file(self) -> str:
        """The file of the judgments, for messages."""
        return self.source.rpartition(" (")[0] or self.source or "judgments"

    @cached_property
    def is_adaptive(self) -> bool:
        """Whether tuples were chosen from earlier judgments (column ``purpose``)."""
        return "purpose" in self.columns and bool((self.columns["purpose"] == "adaptive").any())

    def check_not_adaptive(self, what: str) -> None:
        """Raise ValueError if tuples were chosen from earlier judgments."""
        if self.is_adaptive:
            raise ValueError(
                note(
                    "{unit} is biased on adaptive tuples (column purpose), in which items meet opponents of "
                    "about equal merit; use method best-worst-logit with scale counting for scores, and "
                    "giccs stop for their precision",
                    unit=what,
                )
            )

    @cached_property
    def is_simulated(self) -> bool:
        """Whether all judgments are simulated, by the names of their annotators or by their comments."""
        by_name = np.array([*map(is_simulated, map(str, self.annotators)), False])[
            self.annotator_of
        ]
        comments = self.columns.get("comment", np.full(len(self), ""))
        return len(self) > 0 and bool((by_name | (comments == SIMULATED_COMMENT)).all())

    @cached_property
    def copies(self) -> tuple[Problem, ...]:
        """Judgments that occur again under other ids, one problem per kind; see `bws.copies`."""
        from bws.copies import find_copies

        return find_copies(self)

    def check_no_copies(self) -> None:
        """Raise InputError for copies, unless `allow_copies`: they would make judgments look consistent."""
        from bws.copies import certain_copies

        if not self.allow_copies and (copies := certain_copies(self)):
            remedy = "delete copies, or use --allow-copies if each is a judgment of its own"
            raise InputError(
                [replace(each, message=f"{each.message}; {remedy}") for each in copies]
            )

    @cached_property
    def by_model(self) -> NDArray[np.bool_]:
        """(J,) whether the annotator is a language model."""
        is_model_name = np.array([*map(is_model, self.annotators), False])
        by_model: NDArray[np.bool_] = is_model_name[self.annotator_of]
        return by_model

    @cached_property
    def has_repeated_calls(self) -> bool:
        """Whether a language model judged a tuple several times."""
        rows = np.flatnonzero(self.by_model)
        calls = self.annotator_of[rows].astype(np.int64) * len(self.tuples) + self.tuple_of[rows]
        return len(np.unique(calls)) < len(rows)

    def check_kind(self, expected: Literal["people", "language models"] | None = None) -> None:
        """Raise InputError for judgments that are not by `expected`; None: if both kinds are mixed."""
        n_by_models = int(np.count_nonzero(self.by_model))
        other, n_others = "language models", n_by_models
        if expected == "language models":
            other, n_others = "people", len(self) - n_by_models
        if n_others and (expected or n_others < len(self)):
            message = note(
                "{n:d} of {m:d} judgments are by {other}; expected those of {expected} alone (the annotator "
                "of a model is model:NAME@REVISION)",
                n=n_others,
                m=len(self),
                other=other,
                expected=expected or "people or of models",
            )
            raise InputError(Problem(self.source or "judgments", None, message))

    def with_controls_of(self, other: Judgments) -> Judgments:
        """Return the judgments with the control items of other judgments as well."""
        controls = {**other.tuples.controls, **self.tuples.controls}
        return replace(self, tuples=self.tuples.with_controls(controls)) if controls else self

    def without_controls(self, what: str) -> tuple[Judgments, list[str]]:
        """Return the judgments of tuples without control items, and a note if there are others.

        what: subject of the note. Raises InputError if all tuples have control items.
        """
        is_left_out = self.tuples.has_control[self.tuple_of]
        if not is_left_out.any():
            return self, []
        remark = note(
            "{unit}: without the {n:d} of {m:d} judgments of tuples with control items",
            unit=what,
            n=np.count_nonzero(is_left_out),
            m=len(self),
        )
        if is_left_out.all():
            message = f"{remark}; {note('none is left')}"
            raise InputError(Problem(self.source or "judgments", None, message))
        return self.select(~is_left_out), [remark]

    @property
    def notes(self) -> list[str]:
        """Notes of the reader, on the control items, and on an item that is probably one.

        An item is named if it has more than `HUB_FACTOR` times the median number of judgments: it links most
        tuples, which changes reliability and variance components.
        """
        tuples = self.tuples
        counts = np.bincount(self.tuple_of, minlength=len(tuples)).repeat(tuples.k)
        appearances = np.bincount(tuples.members.ravel(), counts, len(tuples.items)).astype(int)
        scored = appearances[: tuples.n_scored]
        notes = list(self.reading_notes)
        if n := int(np.count_nonzero(tuples.has_control[self.tuple_of])):
            names = _listed(list(dict.fromkeys(tuples.items[tuples.n_scored :].tolist())))
            notes.append(
                note(
                    "control items ({items}), in {n:d} of {m:d} judgments, have no scores and are in no "
                    "other result on items",
                    items=names,
                    n=n,
                    m=len(self),
                )
            )
        median = float(np.median(scored[scored > 0])) if scored.any() else 0.0
        hubs: Counter[str] = Counter()
        for item in np.flatnonzero(scored > HUB_FACTOR * median).tolist():
            hubs[tuples.items[item]] += int(scored[item])
        for name, count in hubs.items():
            notes.append(
                note(
                    "item {item} is in {n:d} judgments, the median item in {median:g}; if it is a control "
                    "item, use --control {option} (Python: control=[{item}])",
                    item=repr(name),
                    n=count,
                    median=median,
                    option=shlex.quote(name),
                )
            )
        return notes

    @cached_property
    def best_item(self) -> Ints:
        """(J,) index of the best item."""
        return self.tuples.members[self.tuple_of, self.best]

    @cached_property
    def worst_item(self) -> Ints:
        """(J,) index of the worst item."""
        return self.tuples.members[self.tuple_of, self.worst]

    @cached_property
    def canonical(self) -> CanonicalJudgments:
        """The judgments in canonical order, which is independent of the file.

        Raises InputError if people and language models are mixed, whose answers are never pooled unasked.

        >>> from bws.files import judgments_from_records
        >>> one, two = (Judgment(("b", "a", "c"), "b", worst) for worst in "ac")
        >>> first, again = (judgments_from_records(r).canonical for r in ([one, two], [two, one]))
        >>> first.items, first.members.tolist(), first.digest() == again.digest()
        (['a', 'b', 'c'], [[0, 1, 2]], True)
        """
        self.check_kind()
        return _in_canonical_order(self)

    @property
    def n_left_out(self) -> int:
        """Number of skipped rows; a row with several faults counts once."""
        rows = {(problem.file, problem.line, problem.row) for problem in self.left_out}
        unplaced = {(problem.file, None, None) for problem in self.left_out}  # Each is a row.
        count = sum((p.file, p.line, p.row) in unplaced for p in self.left_out)
        return len(rows - unplaced) + count

    def without_adaptive(self, what: str) -> tuple[Judgments, list[str]]:
        """Return the judgments of warm-up and audit tuples without control items, and notes on others.

        what: subject of the notes. Raises ValueError if all tuples were chosen from earlier judgments, and
        InputError if all tuples have control items.
        """
        judgments, notes = self.without_controls(what)
        if not judgments.is_adaptive:
            return judgments, notes
        rows = judgments.columns["purpose"] != "adaptive"
        if not rows.any():
            judgments.check_not_adaptive(what)
        remark = note(
            "{unit}: from the {n:d} judgments of warm-up and audit tuples alone; the {adaptive:d} of "
            "adaptive tuples, whose items are hard to order, would bias it",
            unit=what,
            n=np.count_nonzero(rows),
            adaptive=np.count_nonzero(~rows),
        )
        return judgments.select(rows), [*notes, remark]

    def select(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Judgments:
        """Return the judgments at `rows` (indices or a mask); items and tuples are unchanged."""
        return replace(
            self,
            tuple_of=self.tuple_of[rows],
            best=self.best[rows],
            worst=self.worst[rows],
            annotator_of=self.annotator_of[rows],
            shown=None if self.shown is None else self.shown[rows],
            columns={name: column[rows] for name, column in self.columns.items()},
            lines=None if self.lines is None else self.lines[rows],
            files=None if self.files is None else self.files[rows],
        )

    def records(self) -> Iterator[Judgment]:
        """Yield the judgments as records, with items in display order if it is known."""
        tuples = self.tuples
        for j, t in enumerate(self.tuple_of):
            members = tuples.members[t]
            order = range(tuples.k) if self.shown is None else self.shown[j]
            annotator = self.annotator_of[j]
            yield Judgment(
                items=tuple(tuples.items[members[position]] for position in order),
                best=tuples.items[members[self.best[j]]],
                worst=tuples.items[members[self.worst[j]]],
                annotator="" if annotator < 0 else self.annotators[annotator],
                group=tuples.groups[tuples.group_of_tuple[t]],
                tuple_id=tuples.ids[t],
            )


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of appearances and of best and worst judgments of N items; (N,) each."""

    appearances: Longs
    best: Longs
    worst: Longs

    def first(self, n: int) -> Counts:
        """Return the counts of the first n items."""
        return Counts(self.appearances[:n], self.best[:n], self.worst[:n])


@dataclass(frozen=True, eq=False)
class CanonicalJudgments:
    """J judgments of the N judged items, ordered by ids only and independent of the order of a file.

    All computations on judgments use these arrays.
    """

    origin: Longs
    """(N,) index of the item in `Judgments.tuples.items`; ascending by group id, then item id, with control
    items last.
    """
    items: list[str]
    """N item ids."""
    groups: list[str]
    """G group ids, ascending."""
    group_of: Longs
    """(N,) index into `groups`."""
    annotators: list[str]
    """A ids of annotators with judgments, ascending."""
    members: Longs
    """(T, K) item indices, ascending within a row; the rows are ascending and distinct: tuples with the
    same items are merged. Only control items can be repeated in a row.
    """
    tuple_of: Longs
    """(J,) index into `members`; judgments are sorted by tuple, best, worst and annotator."""
    best: Longs
    """(J,) position of the best item in its row of `members`."""
    worst: Longs
    """(J,) position of the worst item."""
    annotator_of: Longs
    """(J,) index into `annotators`, -1 if unknown."""
    n_controls: int = 0
    """Number of control items, which are the last of `items`."""

    @property
    def k(self) -> int:
        """Number of items per tuple."""
        return int(self.members.shape[1])

    @property
    def n_scored(self) -> int:
        """Number of items that are not control items; these are the first of `items`."""
        return len(self.items) - self.n_controls

    def __len__(self) -> int:
        return int(self.tuple_of.shape[0])

    @property
    def item_keys(self) -> list[tuple[str, str]]:
        """(N,) group id and id of each item, which identify it."""
        groups = (self.groups[group] for group in self.group_of)
        return list(zip(groups, self.items, strict=True))

    @property
    def judged_items(self) -> Longs:
        """(J, K) indices of the items in each judgment's tuple."""
        return self.members[self.tuple_of]

    @property
    def best_item(self) -> Longs:
        """(J,) index of the best item."""
        return self.members[self.tuple_of, self.best]

    @property
    def worst_item(self) -> Longs:
        """(J,) index of the worst item."""
        return self.members[self.tuple_of, self.worst]

    @property
    def values(self) -> Floats:
        """(J, K) values of the items in a judgment: 1 for the best, -1 for the worst, else 0."""
        position = np.arange(self.k)
        is_best, is_worst = (position == answer[:, None] for answer in (self.best, self.worst))
        values: Floats = is_best * 1.0 - is_worst
        return values

    def clusters(self, has_groups: bool | None = None) -> Longs:
        """Return (T,) numbers of clusters of dependent tuples, see `Tuples.clusters`."""
        has_groups = len(self.groups) > 1 if has_groups is None else has_groups
        return self.group_of[self.members[:, 0]] if has_groups else np.arange(len(self.members))

    @property
    def distinct_annotator_of(self) -> Longs:
        """(J,) `annotator_of`, with a distinct number from A for each judgment without annotator."""
        unknown = self.annotator_of < 0
        annotator_of = self.annotator_of.copy()
        annotator_of[unknown] = len(self.annotators) + np.arange(np.count_nonzero(unknown))
        return annotator_of

    def select(self, rows: Longs) -> CanonicalJudgments:
        """Return the judgments at `rows`, including repetitions; items are unchanged."""
        picked = {
            name: getattr(self, name)[rows]
            for name in ("tuple_of", "best", "worst", "annotator_of")
        }
        return replace(self, **picked)

    @cached_property
    def counts(self) -> Counts:
        """Return the numbers of appearances and of best and worst judgments of every item."""
        n, n_judgments = len(self.items), np.bincount(self.tuple_of, minlength=len(self.members))
        n_appearances = np.bincount(self.members.ravel(), n_judgments.repeat(self.k), minlength=n)
        best = np.bincount(self.best_item, minlength=n)
        worst = np.bincount(self.worst_item, minlength=n)
        return Counts(n_appearances.astype(np.int64), best, worst)

    def best_first(self) -> Longs:
        """Return (J, K) item indices: best first, worst last, the others ascending in between."""
        position = np.arange(self.k)
        answer = (position == self.best[:, None]) | (position == self.worst[:, None])
        middle = self.judged_items[~answer].reshape(len(self), self.k - 2)
        return np.column_stack((self.best_item, middle, self.worst_item))

    def comparisons(self) -> tuple[Longs, Longs]:
        """Return (J, 2K-3) winners and losers of the comparisons that each judgment implies, as item indices.

        The best item wins against every other item, and every other item wins against the worst.
        """
        ordered = self.best_first()
        best, middle, worst = ordered[:, :1], ordered[:, 1:-1], ordered[:, -1:]
        winner = np.hstack((np.broadcast_to(best, ordered[:, 1:].shape), middle))
        loser = np.hstack((ordered[:, 1:], np.broadcast_to(worst, middle.shape)))
        return winner, loser

    def digest(self) -> str:
        """Return the SHA-256 of the judgments' content, in hexadecimal.

        The hashed data are the JSON of `[K, groups, items, annotators]`, followed by `group_of`, `members`,
        `tuple_of`, `best`, `worst` and `annotator_of` as little-endian 32-bit integers. The digest is
        independent of the order of rows, items and annotators, of tuple ids, and of items without judgments.
        With control items, the list has their number as a last element.
        """
        n_controls = [self.n_controls] if self.n_controls else []
        texts = json.dumps([self.k, self.groups, self.items, self.annotators, *n_controls])
        state = hashlib.sha256(texts.encode("ascii"))
        numbers = (self.group_of, self.members, self.tuple_of, self.best, self.worst)
        for array in (*numbers, self.annotator_of):
            state.update(array.astype("<i4").tobytes())
        return state.hexdigest()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_LISTED_NAMES]) + (", ..." if len(names) > MAX_LISTED_NAMES else "")


def _in_canonical_order(judgments: Judgments) -> CanonicalJudgments:
    """Renumber judgments by the sort order (by code point) of their ids, dropping items without judgments."""
    tuples = judgments.tuples
    used = _distinct(judgments.tuple_of, len(tuples))
    origin = _sorted_items(tuples, _distinct(tuples.members[used], len(tuples.items)))
    origin = origin[np.argsort(origin >= tuples.n_scored, kind="stable")]
    groups, group_of = _renumbered(tuples.groups, tuples.group_of_item[origin])
    annotators, annotator_of = _renumbered(judgments.annotators, judgments.annotator_of)

    ranked = _inverse(origin, len(tuples.items))[tuples.members[used]]
    order = np.argsort(ranked, axis=1, kind="stable")
    positions = np.argsort(order, axis=1)
    members, number = _distinct_rows(np.take_along_axis(ranked, order, axis=1), len(origin))

    row = _inverse(used, len(tuples))[judgments.tuple_of]
    columns = (
        number[row],
        positions[row, judgments.best],
        positions[row, judgments.worst],
        annotator_of,
    )
    sizes = (len(members), tuples.k, tuples.k, len(annotators))
    items = tuples.items[origin].tolist()
    tuple_of, best, worst, annotator = _sorted_rows(columns, sizes)
    n_controls = int(np.count_nonzero(origin >= tuples.n_scored))
    return CanonicalJudgments(
        origin,
        items,
        groups,
        group_of,
        annotators,
        members,
        tuple_of,
        best,
        worst,
        annotator,
        n_controls,
    )


def _sorted_items(tuples: Tuples, tuple_indices: Longs) -> Longs:
    """Return the indices of judged items, ascending by group id and then item id."""
    ids = tuples.items[tuple_indices].tolist()
    by_id = tuple_indices[sorted(range(len(ids)), key=ids.__getitem__)]
    _, group = _renumbered(tuples.groups, tuples.group_of_item[by_id])
    return by_id[np.argsort(group, kind="stable")]


def _renumbered(ids: NDArray[np.object_], index: NDArray[np.int32]) -> tuple[list[str], Longs]:
    """Return the used ids in ascending order, and `index` mapped to them; -1 stays -1."""
    used = _distinct(index[index >= 0], len(ids))
    names = ids[used].tolist()
    order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    # An additional element at the end for the index -1.
    rank = np.append(_inverse(used[order], len(ids)), -1)
    return [names[i] for i in order], rank[index]


def _distinct(index: NDArray[np.int32], size: int) -> Longs:
    """Return the distinct numbers in ascending order; all are below `size`."""
    return np.flatnonzero(np.bincount(index.ravel(), minlength=size))


def _inverse(permutation: Longs, size: int) -> Longs:
    """Return (size,) the index of each number in `permutation`, -1 for missing numbers."""
    index = np.full(size, -1, dtype=np.int64)
    index[permutation] = np.arange(len(permutation))
    return index


def _distinct_rows(table: Longs, size: int) -> tuple[Longs, Longs]:
    """Return the distinct rows of `table` (entries below `size`) in ascending order, and the index of each
    row."""
    order = _row_order(tuple(_packed(table, size)))
    ordered = table[order]
    new = np.ones(len(table), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    number = np.empty(len(table), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return ordered[new], number


def _row_order(keys: tuple[Longs, ...]) -> Longs:
    """Return the indices that sort the rows; equal rows in any order."""
    order = np.argsort(keys[0])
    first = keys[0][order]
    settled = len(keys) == 1 or bool((first[1:] > first[:-1]).all())
    return order if settled else np.lexsort(keys[::-1])


def _packed(table: Longs, size: int) -> Iterator[Longs]:
    """Yield combined keys of several columns: fewer sort keys with the same order."""
    together = int(62 // np.log2(max(size, 2)))
    for start in range(0, table.shape[1], together):
        columns = table[:, start : start + together]
        yield columns @ (size ** np.arange(columns.shape[1] - 1, -1, -1, dtype=np.int64))


def _sorted_rows(columns: tuple[Longs, ...], sizes: tuple[int, ...]) -> Iterator[Longs]:
    """Yield the columns with their rows in ascending order; the last column may contain -1."""
    tuples, k, _, annotators = sizes
    shape = (max(tuples, 1), k, k, annotators + 1)
    key = np.ravel_multi_index((*columns[:-1], columns[-1] + 1), shape)
    *ordered, annotator = np.unravel_index(np.sort(key), shape)
    yield from ordered
    yield annotator - 1


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Tabular):
    """Scores of N items, with their counts."""

    items: NDArray[np.object_]
    groups: NDArray[np.object_]
    """(N,) group id of each item (not an index)."""
    score: Floats
    """(N,) NaN for items without judgments."""
    appearances: NDArray[np.int64]
    best: NDArray[np.int64]
    worst: NDArray[np.int64]
    low: Floats | None = None
    """(N,) lower limit of the 95 % interval; None if no interval was requested."""
    high: Floats | None = None
    notes: Sequence[str] = ()
    """Notes for readers: items without appearances, models that did not converge."""
    signature: Mapping[str, object] = field(default_factory=dict)
    """Everything that determines the scores: method, scale, seed, digest of the judgments, version."""
    rank_low: Floats | None = None
    """(N,) first rank of the item in its group that the intervals permit, 1 for the highest score; NaN for
    items without an interval, None if no ranks were requested.
    """
    rank_high: Floats | None = None
    """(N,) last rank that the intervals permit."""
    texts: NDArray[np.object_] | None = None
    """(N,) text of each item; None if unknown, empty where one is."""
    absolute_score: Floats | None = None
    """(N,) score on one scale for all groups, in [0, 1] (`bws.absolute`); None without anchors."""
    absolute_low: Floats | None = None
    """(N,) lower limit of its 95 % interval."""
    absolute_high: Floats | None = None

    def __len__(self) -> int:
        return int(self.score.shape[0])

    @property
    def item_keys(self) -> list[tuple[str, str]]:
        """(N,) group and id of each item."""
        return list(zip(self.groups.tolist(), self.items.tolist(), strict=True))

    def with_texts(self, texts: Mapping[tuple[str, str], str]) -> Scores:
        """Return the scores with the texts of the items.

        texts: by (group, item); by ("", item) for items of any group.
        """
        values = [texts.get(key, texts.get(("", key[1]), "")) for key in self.item_keys]
        return replace(self, texts=np.array(values, dtype=object))

    def highest_first(self, n: int | None = None) -> Scores:
        """Return the scores in descending order, those without a score last; n: only so many."""
        order = np.argsort(-self.score, kind="stable")[:n]  # NaN is last
        columns: dict[str, Any] = {
            name: column[order]
            for name, column in vars(self).items()
            if isinstance(column, np.ndarray)
        }
        return replace(self, **columns)

    def result_table(self) -> ResultTable:
        """Return a row per item, with the columns of `write_scores`; a group is shown if there are any."""
        columns = {name: column.to_list() for name, column in score_columns(self).items()}
        hidden = () if any(self.groups) else ("group",)
        rows = list(zip(*columns.values(), strict=True))
        with_decimals = ("score", "low", "high", *ABSOLUTE)
        table_columns = [
            Column(name, name, ".3f" if name in with_decimals else "", is_detail=name in hidden)
            for name in columns
        ]
        return ResultTable(table_columns, rows, self.notes, "Scores", "nan")
