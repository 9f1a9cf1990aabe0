"""The history of a study: scores, reliability and agreement after the first judgments.

The judgments are in the order in which they were collected, as far as it is known: by time, or by row of the
file. Rows that are sorted by tuple say nothing about this order; then the first judgments of all tuples are
first, followed by their second ones, and so on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Tabular
from bws.base.notes import note
from bws.base.progress import tracked
from bws.base.tables import Column, ResultTable
from bws.chance_agreement import NO_PAIRED_TUPLE, agreement
from bws.components import generalisability
from bws.planning import check_target
from bws.records import Judgments, Scores
from bws.scoring import score
from bws.stats.estimates import Estimate

N_FRAMES = 10
NO_JUDGMENTS = note("there are no judgments")


@dataclass(frozen=True, eq=False)
class Frame:
    """The state of a study after its first judgments."""

    n: int
    """Number of judgments."""
    scores: Scores
    """In [0, 1], with 95 % intervals; NaN for items without judgments."""
    reliability: Estimate
    """From variance components; NaN with a reason, also if an item of the study has no judgment yet."""
    agreement: Estimate
    """Krippendorff's alpha of best and worst."""

    def document(self) -> dict[str, Any]:
        """Return the numbers without the scores as a JSON-serialisable dict."""
        return {
            "judgments": self.n,
            "reliability": self.reliability.document(),
            "agreement": self.agreement.document(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class StudyHistory(Tabular):
    """The states of a study after 10 %, 20 %, ... of its judgments."""

    frames: tuple[Frame, ...]
    """By number of judgments; the last one has all."""
    target: float
    """Target reliability."""
    order: str
    """How the judgments are ordered."""

    @property
    def index_at_target(self) -> int | None:
        """Index of the first frame from which on all have at least the target reliability; None: none."""
        index = None
        for number in range(len(self.frames) - 1, -1, -1):
            if not self.frames[number].reliability.value >= self.target:  # also NaN
                break
            index = number
        return index

    @property
    def sentence(self) -> str:
        """After how many judgments the target is reached, or why it is not."""
        last, index = self.frames[-1], self.index_at_target
        if math.isnan(last.reliability.value):
            reason = last.reliability.reason
            if reason.startswith("no reliability"):
                return reason
            return note("no reliability: {reason}", reason=reason)
        if index is None:
            return note(
                "a reliability of {target:g} is not reached after {n:d} judgments: {r:.3f}",
                target=self.target,
                n=last.n,
                r=last.reliability.value,
            )
        frame = self.frames[index]
        if index == 0 or math.isnan(self.frames[index - 1].reliability.value):
            return note(
                "a reliability of {target:g} is reached after {n:d} of {total:d} judgments, or before",
                target=self.target,
                n=frame.n,
                total=last.n,
            )
        return note(
            "a reliability of {target:g} is reached between {before:d} and {n:d} of {total:d} judgments",
            target=self.target,
            before=self.frames[index - 1].n,
            n=frame.n,
            total=last.n,
        )

    @property
    def notes(self) -> list[str]:
        """When the target is reached, the order, and why there are no numbers after few judgments."""
        last_of: dict[str, int] = {}
        for frame in self.frames:
            for estimate in (frame.reliability, frame.agreement):
                if math.isnan(estimate.value):
                    last_of[estimate.reason] = frame.n
        missing = (
            note("after {n:d} judgments: {reason}", n=n, reason=reason)
            for reason, n in last_of.items()
        )
        return [self.sentence, self.order, *missing]

    def document(self) -> dict[str, Any]:
        """Return the history without scores as a JSON-serialisable dict."""
        index = self.index_at_target
        return {
            "target": self.target,
            "reached": None if index is None else self.frames[index].n,
            "frames": [frame.document() for frame in self.frames],
            "notes": self.notes,
        }

    def result_table(self) -> ResultTable:
        """Return a row per frame."""
        columns = [Column("judgments", "judgments", align="right")]
        columns += [Column("scored", "items with a score", align="right")]
        columns += [
            Column(name, title, ".3f", align="right")
            for name, title in (
                ("reliability", "reliability"),
                ("low", "2.5 %"),
                ("high", "97.5 %"),
                ("alpha", "alpha"),
            )
        ]
        rows = [
            [
                frame.n,
                int(np.count_nonzero(~np.isnan(frame.scores.score))),
                *(getattr(frame.reliability, name) for name in ("value", "low", "high")),
                frame.agreement.value,
            ]
            for frame in self.frames
        ]
        title = "Reliability and agreement after the first judgments"
        return ResultTable(columns, rows, self.notes, title, "nan")


def study_history(
    judgments: Judgments,
    target: float = 0.9,
    *,
    times: NDArray[np.float64] | None = None,
    n_frames: int = N_FRAMES,
) -> StudyHistory:
    """Return the scores, their reliability and the agreement after equal steps of the judgments.

    times: (J,) time of each judgment, NaN if unknown (last); by default, the order of the rows, see above.

    Raises ValueError for adaptive studies, whose reliability is biased, without judgments, and for a target
    that is not between 0 and 1.
    """
    check_target(target)
    judgments.check_not_adaptive("the history of the reliability")
    if not len(judgments):
        raise ValueError(NO_JUDGMENTS)
    rows, order = collection_order(judgments, times)
    sizes = np.unique(np.linspace(0, len(rows), n_frames + 1).round().astype(int)[1:])
    n_items = int(np.count_nonzero(judgments.canonical.origin < judgments.tuples.n_scored))
    parts = (judgments.select(rows[:n]) for n in sizes.tolist() if n)
    steps = tracked(parts, "steps", int(np.count_nonzero(sizes)))
    return StudyHistory(tuple(_frame(part, n_items) for part in steps), target, order)


def collection_order(
    judgments: Judgments, times: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.int64], str]:
    """Return (J,) the rows in the order of collection, and a note on it; times: see `study_history`."""
    rows = np.arange(len(judgments))
    if times is not None:
        return np.argsort(times, kind="stable"), note("order of the judgments: by time")
    if is_sorted_by_tuple(judgments):
        return np.argsort(turns(judgments.tuple_of), kind="stable"), note(
            "order of the judgments: the rows are sorted by tuple, so the first judgment of each tuple comes "
            "first, then the second"
        )
    return rows, note("order of the judgments: that of the rows")


def is_sorted_by_tuple(judgments: Judgments) -> bool:
    """Return whether the rows are sorted by tuple, so that their order says nothing about the time."""
    turn = turns(judgments.tuple_of)
    n_runs = 1 + int(np.count_nonzero(np.diff(judgments.tuple_of)))
    return bool(turn.max(initial=0) and n_runs == np.count_nonzero(turn == 0))


def turns(tuple_of: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return (J,) the number of earlier judgments of the same tuple (or annotator).

    >>> turns(np.array([0, 1, 0, 0, 1])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(tuple_of, kind="stable")
    ordered = tuple_of[order]
    first = np.searchsorted(ordered, ordered)
    turn = np.empty(len(order), dtype=np.int64)
    turn[order] = np.arange(len(order)) - first
    return turn


def _frame(judgments: Judgments, n_items: int) -> Frame:
    """Return the state after these judgments. n_items: number of items that have judgments in the end."""
    scores = score(judgments, scale="unit", interval="model")
    missing = n_items - int(np.count_nonzero(~np.isnan(scores.score)))
    if missing:
        reason = note("{n:d} of {m:d} items have no judgment yet", n=missing, m=n_items)
        reliability = Estimate(math.nan, reason=reason)
    else:
        study = generalisability(judgments.canonical)
        reliability = study.reliability
        if math.isnan(reliability.value):
            reliability = replace(reliability, reason="; ".join(study.notes[:1]))
    (group, *_) = agreement(judgments, intervals=False).groups
    alpha = group.alpha["both"]
    if math.isnan(alpha.value):
        alpha = replace(alpha, reason=NO_PAIRED_TUPLE)
    return Frame(len(judgments), scores, reliability, alpha)
