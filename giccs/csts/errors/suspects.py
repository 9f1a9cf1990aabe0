"""Which labels differ from the rank label, and why? (L-CSTS, section 4.2, step 3)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from giccs.csts.errors.clustering import assigned, topics, unit
from giccs.csts.errors.evaluation import predefined
from giccs.csts.errors.ranking import rank_labels, ranks, similarities
from giccs.csts.errors.records import (
    DISTRIBUTIONS,
    UNKNOWN,
    AnswerPair,
    Floats,
    Ints,
    Suspect,
    Vectors,
)

__all__ = ["Cluster", "Findings", "find_suspects"]

NEIGHBOURS = 3
TYPICAL = 3
AT_ONCE = 1024
"""Rows of a matrix of distances held at a time."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A topic (Table 7), and how many labels in it are suspicious."""

    number: int
    pairs: int
    suspicious: int
    typical: tuple[str, ...]
    """Its most frequent answers."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found in N instances."""

    suspects: tuple[Suspect, ...]
    """The furthest off first, else in the order of the instances."""
    clusters: tuple[Cluster, ...]
    rank_labels: Ints
    """(N,) of every instance, suspicious or not."""


def find_suspects(
    pairs: Sequence[AnswerPair],
    vectors: Vectors,
    k: int,
    distribution: str,
    *,
    truth: Ints | None = None,
    by_cluster: bool = False,
    seed: int = 0,
) -> Findings:
    """Cluster, rank and compare all N pairs together; a label other than the rank label is suspicious.

    truth: (N,) reannotated labels, 0 where there is none; the reannotated distribution takes its shares
    from those that there are.

    Raises ValueError for an unknown distribution, one without labels, or a `k` that cannot be.
    """
    if distribution not in DISTRIBUTIONS:
        allowed = ", ".join(DISTRIBUTIONS)
        raise ValueError(f"the distribution is {distribution!r}; {allowed} are allowed")
    label = np.array([pair.label for pair in pairs], dtype=np.intp)
    known = np.full(len(pairs), UNKNOWN) if truth is None else truth
    cluster = assigned(topics(vectors.both, k, seed), vectors.both)
    counts = predefined(distribution, label, known, cluster, k, by_cluster=by_cluster)
    similarity = similarities(vectors.first, vectors.second)
    ranked = rank_labels(similarity, cluster, counts)
    place, size = ranks(similarity, cluster), np.bincount(cluster, minlength=k)
    rows = np.flatnonzero(ranked != label)
    suspects = [
        Suspect(
            pair=pairs[row],
            rank_label=int(ranked[row]),
            similarity=float(similarity[row]),
            cluster=int(cluster[row]),
            rank=float(place[row]),
            size=int(size[cluster[row]]),
            neighbours=tuple(pairs[other] for other in near),
            truth=int(known[row]) or None,
        )
        for row, near in zip(rows.tolist(), _nearest(vectors.both, cluster, rows), strict=True)
    ]
    return Findings(
        suspects=tuple(sorted(suspects, key=lambda one: -one.gap)),
        clusters=tuple(_cluster(n, pairs, cluster, ranked != label) for n in range(k)),
        rank_labels=ranked,
    )


def _nearest(both: Floats, cluster: Ints, rows: Ints) -> list[list[int]]:
    """Return for each of `rows` the closest others of its cluster, closest first, at most `NEIGHBOURS`."""
    directions = unit(both)
    found: dict[int, list[int]] = {}
    for one in np.unique(cluster[rows]):
        members, asked = np.flatnonzero(cluster == one), rows[cluster[rows] == one]
        for start in range(0, len(asked), AT_ONCE):
            part = asked[start : start + AT_ONCE]
            closeness = directions[part] @ directions[members].T
            closeness[members[None, :] == part[:, None]] = -np.inf  # not itself
            order = np.argsort(-closeness, axis=1, kind="stable")[:, :NEIGHBOURS]
            found |= {
                int(row): members[near[near != _own(members, row)]].tolist()
                for row, near in zip(part, order, strict=True)
            }
    return [found[int(row)] for row in rows]


def _own(members: Ints, row: int) -> int:
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
