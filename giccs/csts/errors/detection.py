"""Detection of suspicious labels: topics of answer pairs and rank labels (L-CSTS, sections 4.2 and 4.3).

Topics. The paper uses k-means (Arthur and Vassilvitskii 2007, so initialised by k-means++) on embeddings of
the concatenated answers. Unspecified details are chosen here: scikit-learn's KMeans with 10 initialisations,
of which the one with the smallest inertia is kept, on vectors of unit length (as returned by the paper's
encoder).

Rank labels. "We rank all the answer pairs based on their embedding similarity and map the ranking of each
answer pair to a new label (called rank label) on a scale from 1 to 5 based on a predefined ranking
distribution", inside each cluster; "20% of lowest ranked instances has rank label 1" under the even one.

Unspecified details are chosen here: pairs with equal similarity (to six decimals, the precision of 32-bit
vectors) share their mean rank and therefore their label. A distribution is that of the complete training
half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bws.base.rows import csv_text
from giccs.csts.data import LABELS
from giccs.csts.errors.answers import UNKNOWN, AnswerPair, Floats, Ints, Vectors

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

DISTRIBUTIONS = ("even", "original", "reannotated")
"""Distributions that map ranks to labels (L-CSTS, 4.3)."""

N_INIT = 10
"""Initialisations of k-means; the one with the smallest sum of squared distances is kept."""

DECIMALS = 6

NEIGHBOURS = 3
TYPICAL = 3
DISTANCE_ROWS = 1024
"""Rows of a distance matrix computed at a time."""
SUSPECT_COLUMNS = (
    "uid", "label", "rank_label", "gap", "similarity", "cluster", "rank", "cluster_size", "truth",
    "condition", "answer1", "answer2", "neighbours", "reason",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Suspect:
    """An instance whose rank label differs from its label, and the reasons."""

    pair: AnswerPair
    rank_label: int
    """Label from 1 to 5 according to the rank of the answers' similarity."""
    similarity: float
    """Cosine of the two answers."""
    cluster: int
    """Topic of the answers, from 0."""
    rank: float
    """Rank of the similarity in the cluster, from 1 (least similar); ties share their mean rank."""
    size: int
    """Number of pairs in the cluster."""
    neighbours: tuple[AnswerPair, ...]
    """Nearest pairs of the cluster by both answers, nearest first."""
    truth: int | None = None
    """The reannotated label, if known."""

    @property
    def gap(self) -> int:
        """Difference between label and rank label, in steps of the scale."""
        return abs(self.rank_label - self.pair.label)

    @property
    def reason(self) -> str:
        """Return a sentence with the reason why the label is suspicious."""
        return (
            f"rank {self.rank:g} of {self.size} by similarity in cluster {self.cluster} "
            f"corresponds to {self.rank_label}, but the label is {self.pair.label}"
        )


def topics(vectors: Floats, k: int, seed: int) -> KMeans:
    """Return k-means of (N, D) vectors of answer pairs in `k` clusters.

    Raises ValueError for fewer than `k` distinct vectors.
    """
    from sklearn.cluster import KMeans

    most = distinct(vectors)
    if not 1 <= k <= most:
        raise ValueError(f"k is {k}; expected 1 to {most}, the number of distinct vectors")
    return KMeans(n_clusters=k, init="k-means++", n_init=N_INIT, random_state=seed).fit(
        unit(vectors)
    )


def assigned(clusters: KMeans, vectors: Floats) -> Ints:
    """Return (N,) indices, from 0, of the cluster with the nearest centre."""
    return np.asarray(clusters.predict(unit(vectors)), dtype=np.intp)


def distinct(vectors: Floats) -> int:
    """Return the number of distinct vectors, which is the maximum number of clusters.

    >>> distinct(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))  # the first two have the same direction
    2
    """
    return len(np.unique(np.round(unit(vectors), 6), axis=0))


def unit(vectors: Floats) -> Floats:
    """Return (N, D) vectors scaled to length 1."""
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))


def similarities(first: Floats, second: Floats) -> Floats:
    """Return (N,) cosines of the rows of two (N, D) arrays."""
    return np.asarray(np.einsum("nd,nd->n", unit(first), unit(second)))


def ranks(similarity: Floats, cluster: Ints) -> Floats:
    """Return (N,) ranks of the similarities within their clusters, from 1 (least similar); ties are averaged.

    >>> ranks(np.array([0.9, 0.2, 0.9, 0.5]), np.array([0, 0, 0, 1]))
    array([2.5, 1. , 2.5, 1. ])
    """
    from scipy.stats import rankdata

    rank_values = np.empty(len(similarity))
    rounded = np.round(similarity, DECIMALS)
    for cluster_index in np.unique(cluster):
        inside = cluster == cluster_index
        rank_values[inside] = rankdata(rounded[inside])
    return rank_values


def rank_labels(similarity: Floats, cluster: Ints, counts: Ints) -> Ints:
    """Return (N,) rank labels, 1 to 5.

    counts: (5,), the distribution as label counts; equal counts are the even distribution.

    Rank r of n is at the quantile (r - ½) / n. Its label is the first one whose cumulative share reaches this
    quantile. The comparison uses integers, so rounding has no effect.

    >>> rank_labels(np.array([0.1, 0.5, 0.3, 0.9, 0.7]), np.zeros(5, int), np.ones(5, int))
    array([1, 3, 2, 5, 4])
    >>> rank_labels(np.array([0.1, 0.5, 0.3, 0.9]), np.zeros(4, int), np.array([1, 0, 0, 0, 1]))
    array([1, 5, 1, 5])
    """
    doubled = np.rint(2 * ranks(similarity, cluster) - 1).astype(np.int64)
    size = np.bincount(cluster)[cluster]
    through = np.cumsum(counts)
    below = through * (2 * size)[:, None] < (doubled * through[-1])[:, None]
    return np.asarray(below.sum(axis=1) + LABELS[0], dtype=np.intp)


def predefined(distribution: str, label: Ints, truth: Ints) -> Ints:
    """Return (5,) label counts that define the shares of a distribution (4.3).

    truth: (N,), `UNKNOWN` for instances that were not reannotated.
    """
    if distribution == "even":
        return np.ones(len(LABELS), dtype=np.intp)
    source = {"original": label, "reannotated": truth}[distribution]
    is_known = source != UNKNOWN
    if not is_known.any():
        raise ValueError(f"the {distribution} distribution requires labels, but there are none")
    return np.bincount(source[is_known] - LABELS[0], minlength=len(LABELS))


@dataclass(frozen=True, slots=True)
class Cluster:
    """A topic (Table 7) and its number of suspicious labels."""

    number: int
    pairs: int
    suspicious: int
    typical: tuple[str, ...]
    """The most frequent answers."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Results of the detection in N instances."""

    suspects: tuple[Suspect, ...]
    """In descending order of the gap, then in the order of the instances."""
    clusters: tuple[Cluster, ...]
    rank_labels: Ints
    """(N,) rank labels of all instances."""


def find_suspects(
    pairs: Sequence[AnswerPair],
    vectors: Vectors,
    k: int,
    distribution: str,
    *,
    truth: Ints | None = None,
    seed: int = 0,
) -> Findings:
    """Cluster and rank all N pairs together; labels that differ from their rank labels are suspicious.

    truth: (N,) reannotated labels, 0 for missing ones; the reannotated distribution uses the known ones.

    Raises ValueError for an unknown distribution, one without labels, or an impossible `k`.
    """
    if distribution not in DISTRIBUTIONS:
        allowed = ", ".join(DISTRIBUTIONS)
        raise ValueError(f"unknown distribution {distribution!r}; expected one of {allowed}")
    label = np.array([pair.label for pair in pairs], dtype=np.intp)
    known_labels = np.full(len(pairs), UNKNOWN) if truth is None else truth
    cluster = assigned(topics(vectors.joint, k, seed), vectors.joint)
    counts = predefined(distribution, label, known_labels)
    similarity = similarities(vectors.first, vectors.second)
    ranked = rank_labels(similarity, cluster, counts)
    rank_values, size = ranks(similarity, cluster), np.bincount(cluster, minlength=k)
    rows = np.flatnonzero(ranked != label)
    suspects = [
        Suspect(
            pair=pairs[row],
            rank_label=int(ranked[row]),
            similarity=float(similarity[row]),
            cluster=int(cluster[row]),
            rank=float(rank_values[row]),
            size=int(size[cluster[row]]),
            neighbours=tuple(pairs[neighbour] for neighbour in near),
            truth=int(known_labels[row]) or None,
        )
        for row, near in zip(rows.tolist(), _nearest(vectors.joint, cluster, rows), strict=True)
    ]
    return Findings(
        suspects=tuple(sorted(suspects, key=lambda one: -one.gap)),
        clusters=tuple(_cluster(n, pairs, cluster, ranked != label) for n in range(k)),
        rank_labels=ranked,
    )


def _nearest(vectors: Floats, cluster: Ints, rows: Ints) -> list[list[int]]:
    """Return for each of `rows` the nearest other rows of its cluster, nearest first, at most
    `NEIGHBOURS`."""
    directions = unit(vectors)
    nearest: dict[int, list[int]] = {}
    for cluster_index in np.unique(cluster[rows]):
        members, cluster_rows = (
            np.flatnonzero(cluster == cluster_index),
            rows[cluster[rows] == cluster_index],
        )
        for start in range(0, len(cluster_rows), DISTANCE_ROWS):
            part = cluster_rows[start : start + DISTANCE_ROWS]
            closeness = directions[part] @ directions[members].T
            closeness[members[None, :] == part[:, None]] = -np.inf  # Exclude the row itself.
            order = np.argsort(-closeness, axis=1, kind="stable")[:, :NEIGHBOURS]
            nearest |= {
                int(row): members[near[near != _position_of(members, row)]].tolist()
                for row, near in zip(part, order, strict=True)
            }
    return [nearest[int(row)] for row in rows]


def _position_of(members: Ints, row: int) -> int:
    return int(np.searchsorted(members, row))


def _cluster(
    number: int, pairs: Sequence[AnswerPair], cluster: Ints, suspicious: np.ndarray
) -> Cluster:
    rows = np.flatnonzero(cluster == number).tolist()
    answers = Counter(
        answer.casefold() for row in rows for answer in (pairs[row].answer1, pairs[row].answer2)
    )
    return Cluster(
        number=number,
        pairs=len(rows),
        suspicious=int(np.count_nonzero(suspicious[rows])),
        typical=tuple(answer for answer, _ in answers.most_common(TYPICAL)),
    )


def suspects_csv(suspects: Sequence[Suspect]) -> str:
    """Return suspicious instances as CSV, one per row, in descending order of the gap.

    ``neighbours`` are uid=label, nearest first, separated by ``;``.
    """
    return csv_text(map(_row, suspects), SUSPECT_COLUMNS)


def _row(suspect: Suspect) -> tuple[object, ...]:
    near = ";".join(f"{pair.uid}={pair.label}" for pair in suspect.neighbours)
    return (
        suspect.pair.uid, suspect.pair.label, suspect.rank_label, suspect.gap, f"{suspect.similarity:.6f}",
        suspect.cluster, f"{suspect.rank:g}", suspect.size, suspect.truth or "",
        suspect.pair.condition, suspect.pair.answer1,
        suspect.pair.answer2, near, suspect.reason,
    )  # fmt: skip
