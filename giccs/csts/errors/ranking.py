"""How does the rank of a similarity become a label from 1 to 5? (L-CSTS, sections 4.2 and 4.3)

"We rank all the answer pairs based on their embedding similarity and map the ranking of each answer pair
to a new label (called rank label) on a scale from 1 to 5 based on a predefined ranking distribution", inside
each cluster; "20% of lowest ranked instances has rank label 1" under the even one.

Chosen here, where the paper says nothing: pairs with the same similarity (to six decimals, which is what
32-bit vectors tell apart) share the mean of their ranks and so the label; and a distribution is that of the
whole training half unless it is asked for by cluster.
"""

from __future__ import annotations

import numpy as np

from giccs.csts.errors.clustering import unit
from giccs.csts.errors.records import Floats, Ints
from giccs.csts.records import LABELS

__all__ = ["label_counts", "rank_labels", "ranks", "similarities"]

DECIMALS = 6


def similarities(first: Floats, second: Floats) -> Floats:
    """Return (N,) cosines of the rows of two (N, D) arrays."""
    return np.asarray(np.einsum("nd,nd->n", unit(first), unit(second)))


def label_counts(labels: Ints, cluster: Ints, k: int, *, by_cluster: bool) -> Ints:
    """Return (k, 5) how often each label occurs: over all pairs, or `by_cluster` in each cluster.

    A cluster without any label gets the counts of all pairs.

    >>> label_counts(np.array([1, 1, 5]), np.array([0, 1, 1]), 2, by_cluster=True)
    array([[1, 0, 0, 0, 0],
           [1, 0, 0, 0, 1]])
    """
    cells = cluster * len(LABELS) + labels - LABELS[0]
    counts = np.bincount(cells, minlength=k * len(LABELS)).reshape(k, len(LABELS))
    whole = counts.sum(axis=0, keepdims=True)
    kept = counts.any(axis=1, keepdims=True) if by_cluster else np.zeros((k, 1), dtype=bool)
    return np.where(kept, counts, whole)


def ranks(similarity: Floats, cluster: Ints) -> Floats:
    """Return (N,) the rank of each similarity inside its cluster, from 1 (least alike); ties share the mean.

    >>> ranks(np.array([0.9, 0.2, 0.9, 0.5]), np.array([0, 0, 0, 1]))
    array([2.5, 1. , 2.5, 1. ])
    """
    from scipy.stats import rankdata

    found = np.empty(len(similarity))
    rounded = np.round(similarity, DECIMALS)
    for one in np.unique(cluster):
        inside = cluster == one
        found[inside] = rankdata(rounded[inside])
    return found


def rank_labels(similarity: Floats, cluster: Ints, counts: Ints) -> Ints:
    """Return (N,) the rank label, 1 to 5, of each pair.

    counts: (K, 5), the distribution of each cluster as counts of the labels; all the same is the even one.

    Rank r of n stands at (r - ½) / n of the way up; its label is the first one through which the
    distribution reaches as far. Compared in whole numbers, so that rounding decides nothing.

    >>> rank_labels(np.array([0.1, 0.5, 0.3, 0.9, 0.7]), np.zeros(5, int), np.ones((1, 5), int))
    array([1, 3, 2, 5, 4])
    >>> rank_labels(np.array([0.1, 0.5, 0.3, 0.9]), np.zeros(4, int), np.array([[1, 0, 0, 0, 1]]))
    array([1, 5, 1, 5])
    """
    doubled = np.rint(2 * ranks(similarity, cluster) - 1).astype(np.int64)
    size = np.bincount(cluster, minlength=len(counts))[cluster]
    through = np.cumsum(counts, axis=1)[cluster]  # (N, 5)
    below = through * (2 * size)[:, None] < (doubled * through[:, -1])[:, None]
    return np.asarray(below.sum(axis=1) + LABELS[0], dtype=np.intp)
