"""Rank sets: the ranks of an item within its group that are compatible with tests of all differences.

With n items in the group, the rank of an item (1 for the highest true score) is from 1 + (number of items
surely above) to n - (number surely below). An item is surely above another if the difference is significant
in the tests of all pairs (`bws.scoring.pair_tests`). Chatzi et al. (2024, Prediction-Powered Ranking of Large
Language Models) compare items by a joint confidence ellipsoid of the scores instead.

Items without a standard error may have any rank, as may two items that no chain of judgments connects, and
the items of connected sets that are too large for tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.records import Judgments, Scores
from bws.scoring.choice import MAX_STDERR_ITEMS, connected_labels
from bws.scoring.clustering import Clusters
from bws.scoring.methods import Floats, Utilities
from bws.scoring.pair_tests import order_counts

UNINFORMATIVE = 0.8
"""Share of the possible ranks above which a note says that the ranks are uninformative."""


def rank_texts(scores: Scores) -> list[str] | None:
    """Return the ranks of each item as text, such as 2–5; a dash if undefined, None if not requested."""
    if scores.rank_low is None or scores.rank_high is None:
        return None
    return [
        "–" if np.isnan(low) else f"{low:.0f}" if low == high else f"{low:.0f}–{high:.0f}"
        for low, high in zip(scores.rank_low, scores.rank_high, strict=True)
    ]


def add_rank_sets(
    scores: Scores, judgments: Judgments, clusters: Clusters | None, fitted: Utilities
) -> Scores:
    """Return the scores of all items of the judgments with rank sets, notes and signature.

    clusters: those of the judgments; None without judgments. fitted: the utilities of the judged items in
    canonical order, on any scale that increases with the scores, with their covariance.
    """
    canonical, n = judgments.canonical, len(scores)
    group_of = judgments.tuples.group_of_item[:n]
    origin = canonical.origin[: canonical.n_scored]
    set_of = np.full(n, -1)
    set_of[origin] = connected_labels(canonical)[: len(origin)]
    rank_low, rank_high = np.full((2, n), np.nan)
    if clusters and fitted.covariance:
        above, below = order_counts(fitted, clusters, group_of[origin], set_of[origin])
        rank_low[origin] = 1 + above
        rank_high[origin] = np.bincount(group_of)[group_of[origin]] - below
    return replace(
        scores,
        rank_low=rank_low,
        rank_high=rank_high,
        notes=[*scores.notes, *notes_on_ranks(rank_low, rank_high, group_of, set_of)],
        signature={**scores.signature, "ranks": True},
    )


def notes_on_ranks(
    rank_low: Floats,
    rank_high: Floats,
    group_of: NDArray[np.integer],
    set_of: NDArray[np.integer],
) -> Iterator[str]:
    """Yield an explanation of the ranks, and notes on items without tests and on unconnected groups."""
    within = "their group" if (group_of != group_of[:1]).any() else "all items"
    yield note(
        "ranks within {unit}, 1 for the highest score: those that tests permit which hold for all pairs of a "
        "group at once with 95 % (Holm); items whose difference is not significant may have either order",
        unit=within,
    )
    known = ~np.isnan(rank_low)
    permitted = (rank_high - rank_low + 1)[known].sum()
    possible = np.bincount(group_of, minlength=1)[group_of][known].sum()
    if permitted > UNINFORMATIVE * possible:
        yield note(
            "the ranks are uninformative: {permitted:.1f} of {possible:.1f} possible ranks per item; more "
            "annotators make them shorter",
            permitted=permitted / known.sum(),
            possible=possible / known.sum(),
        )
    if n_unknown := np.count_nonzero(np.isnan(rank_low)):
        yield note(
            "{n:d} items have no ranks, for lack of a standard error above 0; they may have any rank, which "
            "widens the ranks of the others of their group",
            n=n_unknown,
        )
    judged = set_of >= 0
    sizes = np.bincount(set_of[judged])
    if n_untested := sizes[sizes > MAX_STDERR_ITEMS].sum():
        yield note(
            "{n:d} items are connected by judgments to more than {most:d} items, too many for tests of all "
            "pairs; they may have any rank",
            n=n_untested,
            most=MAX_STDERR_ITEMS,
        )
    pairs = np.unique(np.column_stack((group_of, set_of))[judged], axis=0)
    if n_disconnected := np.count_nonzero(np.bincount(pairs[:, 0]) > 1):
        yield note(
            "the items of {n:d} groups are not all connected by judgments; those that are not may have any "
            "order",
            n=n_disconnected,
        )
