"""Which ranks does the published program of EvalRank give, and why are they not those of its definition?

Written from what that program does (github.com/BinWang28/EvalRank-Embedding-Evaluation), to show the
difference; no result of ours rests on it. It differs from section 4.2 of the paper in this:

- It scores a positive by one routine (an inner product of two rows; the norm of a difference) and the
  background by another (a matrix by a vector; norms along an axis), and the positive is in the background.
  The last bits differ, so that the positive's own copy often ranks above it: a rank too many.
- The anchor stays among the candidates and makes up for ranks that are not counted from 1. Where it does not
  score above the positive, because their vectors are the same, a rank of 0 becomes 1.
- It subtracts the mean vector: of the background from sentences, of the model's vocabulary from words.
  Cosines change with that, distances do not; `cos-centred` is that cosine, by the definition.
- A sentence of unknown words only is 1e-9 in each dimension. Every unknown word is the mean vector, so that
  two unknown words are as near as can be: under l2 such a pair counts as found at rank 1.
- A vector of zeros has NaN for a cosine; as a positive it counts as found, as a candidate as nearer.

The mean over words is here that of the known words of the background: a model does not tell its vocabulary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.evalrank.ranking import Ranks
from giccs.evalrank.records import Level
from giccs.evalrank.spaces import Similarity
from giccs.progress import Progress, silent

__all__ = ["reference_ranks"]

Vectors = NDArray[np.floating[Any]]


def reference_ranks(
    vectors: NDArray[np.float32],
    pairs: NDArray[np.intp],
    similarity: Similarity,
    level: Level,
    progress: Progress = silent,
) -> tuple[Ranks, int]:
    """Return the ranks (M,) of positives, and for how many their own copy ranks above them.

    vectors: (N, D) with NaN where nothing is known; pairs: (M, 2) places. There are no ties: the last bit of
    a float32 decides. It takes a product of the whole background by one vector a pair.

    >>> vectors = np.array([[2, 0], [4, 3], [3, 4], [8, 7]], np.float32)
    >>> reference_ranks(vectors, np.array([[0, 3]]), "l2", "sentence")[0].rank.tolist()
    [3]
    """
    prepared = _prepare_vectors(vectors, similarity, level)
    score = _closeness if similarity == "l2" else _inner_products
    rank, positive = np.empty(len(pairs), np.int64), np.empty(len(pairs))
    n_copies_above = 0
    for index, (x, y) in enumerate(progress(pairs, "ranking as published", len(pairs))):
        positive[index], background = score(prepared, x, y)
        # n less the place of the positive in the sorted scores, NaN last, to the right of what equals it
        above = ~(background <= positive[index]) & ~np.isnan(positive[index])
        rank[index] = max(1, int(np.count_nonzero(above)))
        n_copies_above += int(background[y] > positive[index])
    return Ranks(rank, rank, positive, len(vectors)), n_copies_above


def _prepare_vectors(vectors: NDArray[np.float32], similarity: Similarity, level: Level) -> Vectors:
    has_vector = np.asarray(np.isfinite(vectors).all(axis=1))
    if not has_vector.any():
        has_vector[:] = True  # nothing to fill with: every score is NaN
    filled: Vectors = vectors
    if level == "sentence":
        if not has_vector.all():
            # where one sentence is unknown all vectors become float64 there
            filled = np.where(has_vector[:, None], vectors.astype(np.float64), 1e-9)
        filled = filled - filled.mean(axis=0)
    else:
        filled = vectors - vectors[has_vector].mean(axis=0)
    if similarity != "l2":
        with np.errstate(invalid="ignore", divide="ignore"):
            filled = filled / np.linalg.norm(filled, axis=1)[:, None]
    if level == "word":
        filled = np.where(has_vector[:, None], filled, filled[has_vector].mean(axis=0))
    return filled


def _inner_products(vectors: Vectors, x: int, y: int) -> tuple[float, Vectors]:
    return float(np.dot(vectors[x], vectors[y])), np.dot(vectors, vectors[x])


def _closeness(vectors: Vectors, x: int, y: int) -> tuple[float, Vectors]:
    positive = 1 / (np.linalg.norm(vectors[x] - vectors[y]) + 1)
    return float(positive), 1 / (np.linalg.norm(vectors - vectors[x], axis=1) + 1)
