"""Which topic is an answer pair about? (L-CSTS, section 4.2, step 1)

The paper: k-means (Arthur and Vassilvitskii 2007, so started by k-means++) over the embeddings of the
concatenated answers. Chosen here, where it says nothing: scikit-learn's KMeans, 10 starts, of which the
tightest is kept, over vectors of unit length (as those of the paper's encoder are anyway).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from giccs.csts.errors.records import Floats, Ints

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

__all__ = ["N_INIT", "assigned", "distinct", "topics", "unit"]

N_INIT = 10
"""Starts of k-means; the one with the smallest sum of squared distances is kept."""


def topics(both: Floats, k: int, seed: int) -> KMeans:
    """Return k-means of (N, D) vectors of answer pairs in `k` clusters.

    Raises ValueError where there are fewer than `k` distinct vectors.
    """
    from sklearn.cluster import KMeans

    most = distinct(both)
    if not 1 <= k <= most:
        raise ValueError(f"k is {k}; from 1 to {most}, the number of distinct vectors, is allowed")
    return KMeans(n_clusters=k, init="k-means++", n_init=N_INIT, random_state=seed).fit(unit(both))


def assigned(clusters: KMeans, both: Floats) -> Ints:
    """Return (N,) the cluster of each vector, from 0: the one with the nearest centre."""
    return np.asarray(clusters.predict(unit(both)), dtype=np.intp)


def distinct(both: Floats) -> int:
    """Return how many different vectors there are: the most clusters that k-means can find.

    >>> distinct(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))  # the first two point the same way
    2
    """
    return len(np.unique(np.round(unit(both), 6), axis=0))


def unit(vectors: Floats) -> Floats:
    """Return (N, D) vectors scaled to length 1."""
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))
