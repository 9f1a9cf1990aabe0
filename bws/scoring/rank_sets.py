"""Rank sets: the ranks of an item within its group that are compatible with tests or intervals of all items.

With n items in the group, the rank of an item (1 for the highest true score) is from 1 + (number of items
surely above) to n - (number surely below). For counting scores and their logit forms with intervals from
counts, an item is surely above another if the difference is significant in the tests of all pairs
(`bws.scoring.pair_tests`). For other scores it is if their intervals do not overlap. These are simultaneous:
all items of a group are within theirs in 95 % of studies, by Bonferroni's correction
(`bws.scoring.intervals`), and the sets contain the true ranks more often than that. Chatzi et al. (2024,
Prediction-Powered Ranking of Large Language Models) compare items by a joint confidence ellipsoid of the
scores instead.

Items without an interval may have any rank, as may two items that no chain of judgments connects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bws.records import Judgments, Scores
from bws.scoring.choice import connected_labels
from bws.scoring.clustering import Clusters
from bws.scoring.methods import Floats, Interval
from bws.scoring.pair_tests import order_counts

INTERVALS = (
    "those that intervals permit which hold for all items of a group at once with 95 % (Bonferroni); items "
    "whose intervals overlap may have either order"
)
PAIRS = (
    "those that tests permit which hold for all pairs of a group at once with 95 % (Holm); items whose "
    "difference is not significant may have either order"
)
UNINFORMATIVE = 0.8
"""Share of the possible ranks above which a note says that the ranks are uninformative."""


def rank_sets(
    low: Floats, high: Floats, group_of: NDArray[np.integer], set_of: NDArray[np.integer]
) -> tuple[Floats, Floats]:
    """Return (N,) the lowest and the highest rank of each item within its group; NaN without an interval.

    low, high: (N,) ends of simultaneous intervals, NaN for items without one. Intervals that share an end
    overlap. group_of, set_of: (N,) numbers of each item's group and connected set, which is a part of a
    group. Only items of the same set are compared.

    >>> low, high = np.array([0.5, 0.1, -0.9, np.nan]), np.array([0.9, 0.6, -0.5, np.nan])
    >>> one_group = np.zeros(4, dtype=int)
    >>> [end.tolist() for end in rank_sets(low, high, one_group, one_group)]
    [[1.0, 1.0, 3.0, nan], [3.0, 3.0, 4.0, nan]]
    """
    rank_low = np.ones(len(low))
    rank_high = np.bincount(group_of, minlength=1)[group_of].astype(np.float64)
    for members in _members(set_of):
        known = members[~np.isnan(low[members])]
        n_not_above = np.searchsorted(np.sort(low[known]), high[known], side="right")
        rank_low[known] += len(known) - n_not_above
        rank_high[known] -= np.searchsorted(np.sort(high[known]), low[known], side="left")
    unknown = np.isnan(low)
    rank_low[unknown] = rank_high[unknown] = np.nan
    return rank_low, rank_high


def rank_texts(scores: Scores) -> list[str] | None:
    """Return the ranks of each item as text, such as 2–5; a dash if undefined, None if not requested."""
    if scores.rank_low is None or scores.rank_high is None:
        return None
    return [
        "–" if np.isnan(low) else f"{low:.0f}" if low == high else f"{low:.0f}–{high:.0f}"
        for low, high in zip(scores.rank_low, scores.rank_high, strict=True)
    ]


def _members(set_of: NDArray[np.integer]) -> Iterator[NDArray[np.int64]]:
    """Yield the items of each set."""
    order = np.argsort(set_of, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(set_of[order])) + 1)


def add_rank_sets(
    scores: Scores, judgments: Judgments, bounds: Interval, clusters: Clusters | None = None
) -> Scores:
    """Return the scores of all items of the judgments with rank sets, notes and signature.

    bounds: intervals of the judged items in canonical order, on any scale that increases with the scores.
    clusters: those of the judgments, if differences of counting scores are to be tested.
    """
    canonical, n = judgments.canonical, len(scores)
    group_of = judgments.tuples.group_of_item[:n]
    origin = canonical.origin[: canonical.n_scored]
    low, high = np.full((2, n), np.nan)
    if bounds.simultaneous is not None:
        low[origin], high[origin] = bounds.simultaneous
    set_of = np.full(n, -1)
    set_of[origin] = connected_labels(canonical)[: len(origin)]
    rank_low, rank_high = rank_sets(low, high, group_of, set_of)
    counts = clusters and order_counts(canonical, clusters, set_of[origin])
    if counts:
        rank_low[origin] = 1 + counts[0]
        rank_high[origin] = np.bincount(group_of)[group_of[origin]] - counts[1]
    return replace(
        scores,
        rank_low=rank_low,
        rank_high=rank_high,
        notes=[
            *scores.notes,
            *notes_on_ranks(rank_low, rank_high, group_of, set_of, PAIRS if counts else INTERVALS),
        ],
        signature={**scores.signature, "ranks": True},
    )


def notes_on_ranks(
    rank_low: Floats,
    rank_high: Floats,
    group_of: NDArray[np.integer],
    set_of: NDArray[np.integer],
    method: str,
) -> Iterator[str]:
    """Yield an explanation of the ranks, and notes on items without ranks and on unconnected groups.

    method: `PAIRS` or `INTERVALS`.
    """
    within = "their group" if (group_of != group_of[:1]).any() else "all items"
    yield f"ranks within {within}, 1 for the highest score: {method}"
    known = ~np.isnan(rank_low)
    permitted = (rank_high - rank_low + 1)[known].sum()
    possible = np.bincount(group_of, minlength=1)[group_of][known].sum()
    if permitted > UNINFORMATIVE * possible:
        yield (
            f"the ranks are uninformative: {permitted / known.sum():.1f} of {possible / known.sum():.1f} "
            "possible ranks per item; more annotators make them shorter"
        )
    if n_unknown := np.count_nonzero(np.isnan(rank_low)):
        yield (
            f"{n_unknown} items have no ranks, for lack of a standard error above 0; they may have any rank, "
            "which widens the ranks of the others of their group"
        )
    judged = set_of >= 0
    pairs = np.unique(np.column_stack((group_of, set_of))[judged], axis=0)
    if n_disconnected := np.count_nonzero(np.bincount(pairs[:, 0]) > 1):
        yield (
            f"the items of {n_disconnected} groups are not all connected by judgments; those that are not "
            "may have any order"
        )
