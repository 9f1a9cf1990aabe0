"""Ranks as computed by the published program of EvalRank, which differ from those of the paper's definition.

This module reproduces the behaviour of github.com/BinWang28/EvalRank-Embedding-Evaluation for comparison; no
other result depends on it. The program differs from section 4.2 of the paper as follows:

- It computes the similarity of a positive (inner product of two rows, norm of a difference) and those of the
  background (matrix-vector product, norms along an axis) by different routines, and the background contains
  the positive. The last bits differ, so the copy of the positive often ranks above it, which adds 1 to the
  rank.
- The anchor is a candidate, which compensates for ranks that start at 0. If it does not score above the
  positive because their vectors are equal, a rank of 0 is replaced with 1.
- It subtracts the mean vector: that of the background from sentences, that of the model's vocabulary from
  words. This changes cosines but not distances; `cos-centred` is this cosine with ranks by the definition.
- Sentences of unknown words only have the value 1e-9 in each dimension. Unknown words are represented by the
  mean vector, so two unknown words have distance 0, and with l2 such a pair has rank 1.
- Zero vectors have the cosine NaN. A positive with a zero vector has rank 1; a candidate with a zero vector
  counts as closer.

The mean over words is computed here over the known words of the background, since models do not expose their
vocabulary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.evalrank.ranking import Ranks
from giccs.evalrank.records import Level
from giccs.evalrank.spaces import Similarity
from giccs.progress import Progress, silent

Vectors = NDArray[np.floating[Any]]


def reference_ranks(
    vectors: NDArray[np.float32],
    pairs: NDArray[np.intp],
    similarity: Similarity,
    level: Level,
    progress: Progress = silent,
) -> tuple[Ranks, int]:
    """Return the ranks (M,) of positives, and the number of positives whose own copy ranks above them.

    vectors: (N, D) vectors of the background, NaN if unknown.
    pairs: (M, 2) row indices of anchors and positives.

    There are no ties, since the last bit of a float32 decides. Each pair requires a product of the whole
    background and a vector.

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
        # n minus the insertion index of the positive in the sorted scores (side="right", NaN last)
        above = ~(background <= positive[index]) & ~np.isnan(positive[index])
        rank[index] = max(1, int(np.count_nonzero(above)))
        n_copies_above += int(background[y] > positive[index])
    return Ranks(rank, rank, positive, len(vectors)), n_copies_above


def _prepare_vectors(vectors: NDArray[np.float32], similarity: Similarity, level: Level) -> Vectors:
    has_vector = np.asarray(np.isfinite(vectors).all(axis=1))
    if not has_vector.any():
        has_vector[:] = True  # there is no mean to fill with: every score is NaN
    filled: Vectors = vectors
    if level == "sentence":
        if not has_vector.all():
            # the program converts all vectors to float64 if any sentence is unknown
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
