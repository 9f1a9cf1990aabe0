"""What is known of an instance whose label is checked, and what is said where the label is suspicious."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DISTRIBUTIONS", "UNKNOWN", "AnswerPair", "Floats", "Ints", "Suspect", "Vectors"]

Floats = NDArray[np.floating]
Ints = NDArray[np.intp]

DISTRIBUTIONS = ("even", "original", "reannotated")
"""By which the ranks become labels (L-CSTS, 4.3)."""
UNKNOWN = 0
"""In arrays of true labels: the instance was not reannotated."""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """What was answered for the two sentences of an instance, and the label it was given."""

    uid: str
    label: int
    """1 to 5, as annotated; this is what is doubted."""
    answer1: str
    answer2: str
    condition: str = ""
    """For people who read the findings; nothing is computed from it."""
    line: int | None = None
    """Where it stands in its file."""


@dataclass(frozen=True, eq=False, slots=True)
class Vectors:
    """What an encoder makes of N answer pairs; all (N, D), finite and not zero."""

    first: Floats
    second: Floats
    both: Floats
    """Of the two answers as one text (4.2: "concatenated and then encoded into a single embedding")."""

    def __post_init__(self) -> None:
        shapes = [matrix.shape for matrix in (self.first, self.second, self.both)]
        if len(set(shapes)) > 1 or self.first.ndim != 2:
            raise ValueError(f"the shapes are {shapes}; three equal (N, D) are allowed")
        for name in ("first", "second", "both"):
            bad = unusable(getattr(self, name))
            if len(bad):
                message = f"{name}[{bad[0]}] is zero or not finite, and {len(bad) - 1} more rows"
                raise ValueError(f"{message}; every vector must have a direction")

    def __len__(self) -> int:
        return len(self.first)

    def rows(self, chosen: Ints) -> Vectors:
        """Return the vectors of some of the pairs."""
        return Vectors(self.first[chosen], self.second[chosen], self.both[chosen])


def unusable(vectors: Floats) -> Ints:
    """Return the rows of (N, D) vectors that are zero or not finite.

    >>> unusable(np.array([[1.0, 0.0], [0.0, 0.0], [np.nan, 1.0]]))
    array([1, 2])
    """
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    return np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))


@dataclass(frozen=True, slots=True)
class Suspect:
    """An instance whose rank label differs from its label, and the reasons."""

    pair: AnswerPair
    rank_label: int
    """What the rank of its answers' similarity says, 1 to 5."""
    similarity: float
    """Cosine of the two answers."""
    cluster: int
    """Topic of its answers, from 0."""
    rank: float
    """Place of the similarity in the cluster, from 1 (least alike); ties share the mean of their places."""
    size: int
    """Pairs in the cluster."""
    neighbours: tuple[AnswerPair, ...]
    """Those of the cluster whose two answers are closest to its two answers, closest first."""
    truth: int | None = None
    """The reannotated label, where there is one."""

    @property
    def gap(self) -> int:
        """How many steps of the scale the label is off."""
        return abs(self.rank_label - self.pair.label)

    @property
    def reason(self) -> str:
        """Return in a sentence why the label is suspicious."""
        return (
            f"rank {self.rank:g} of {self.size} by similarity in cluster {self.cluster} "
            f"is a {self.rank_label}, and the label is {self.pair.label}"
        )
