"""Soft targets: the shares of a tuple's annotators who chose each item as best and as worst."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bws.records import Judgments

__all__ = ["SoftTargets", "soft_targets"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SoftTargets:
    """R rows, one per judged tuple and item."""

    tuple_ids: NDArray[np.object_]
    """(R,)"""
    groups: NDArray[np.object_]
    """(R,) group ids; empty strings where there are no groups."""
    items: NDArray[np.object_]
    """(R,) item ids."""
    annotations: Integers
    """(R,) judgments of the tuple."""
    best: Integers
    """(R,) judgments of the tuple that chose the item as best."""
    worst: Integers
    """(R,) judgments of the tuple that chose the item as worst."""
    source: str = ""
    """The file that they were read from."""

    def __len__(self) -> int:
        return len(self.items)

    @property
    def p_best(self) -> Floats:
        """(R,) best / annotations: the raw share, which estimates P(best) without bias."""
        return self.best / self.annotations

    @property
    def p_worst(self) -> Floats:
        """(R,) worst / annotations."""
        return self.worst / self.annotations


def soft_targets(judgments: Judgments) -> SoftTargets:
    """Count the answers per tuple and item, in the order of the tuples and their items.

    Tuples that nobody judged have no rows. Shares are not smoothed: smoothing would pull the targets of
    tuples with few annotations towards 1 / K, and users can do so from the counts.

    >>> from bws.records import Judgment, Judgments
    >>> rows = [Judgment(("a", "b", "c"), "a", "c"), Judgment(("a", "b", "c"), "a", "b")]
    >>> targets = soft_targets(Judgments.from_records(rows))
    >>> targets.items.tolist(), targets.p_best.tolist(), targets.p_worst.tolist()
    (['a', 'b', 'c'], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5])
    """
    tuples, k = judgments.tuples, judgments.tuples.k
    size = len(tuples) * k
    best, worst = (
        np.bincount(judgments.tuple_of.astype(np.int64) * k + chosen, minlength=size)
        for chosen in (judgments.best, judgments.worst)
    )
    annotations = np.bincount(judgments.tuple_of, minlength=len(tuples)).repeat(k)
    rows = np.flatnonzero(annotations)
    members = tuples.members.ravel()[rows]
    return SoftTargets(
        tuples.ids[rows // k],
        tuples.groups[tuples.group_of_item[members]],
        tuples.items[members],
        annotations[rows],
        best[rows],
        worst[rows],
    )
