"""Similarities of vectors, expressed as inner products.

For both similarities of section 4.2, the candidate closer to x is the one with the larger score x · j + o(j),
where rows and the offset o depend on the similarity. Scores are computed by matrix products (see
`ranking`); the final comparison uses the closeness, in float64.

cos: rows have norm 1, and there is no offset. cos-centred: the mean of all rows is subtracted first, as the
published program does for sentences.
l2: S = 1 / (1 + d) decreases with the distance d, as does -d², so both yield the same ranks. For centred rows
c, scaled to norms of at most 1, c_x · c_j - |c_j|² / 2 = (|c_x|² - d²) / 2. This formula suffers from
cancellation, so the closeness is computed from differences.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Similarity = Literal["cos", "cos-centred", "l2"]
SIMILARITIES = ("cos", "cos-centred", "l2")
TIE = 1e-6
"""Maximum difference in closeness of tied candidates, about ten float32 rounding errors.

The last bits of an encoder's vectors depend on the batch; without a tolerance they would decide ties.
"""
BLOCK_ROWS = 4096
"""Number of rows converted to float64 at a time."""

Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]
Indices = NDArray[np.intp]


class Space(Protocol):
    """Vectors (N, D) with a similarity; arguments are row indices."""

    lengths: Floats
    """(N,) norms of the rows used for scores."""
    usable: NDArray[np.bool_]
    """(N,) whether the similarities of a row are defined."""

    def rows(self, indices: Indices) -> Floats:
        """Return (n, D) rows whose inner products plus offsets are scores."""
        ...

    def offsets(self, indices: Indices) -> Floats:
        """Return (n,) offsets of the scores of candidates."""
        ...

    def closeness(self, anchors: Indices, candidates: Indices) -> Floats:
        """Return (n,) closeness of anchors and candidates in float64; larger is closer."""
        ...

    def tie_tolerance(self, anchors: Indices) -> Floats:
        """Return (n,) maximum differences in closeness of tied candidates."""
        ...

    def score(self, closeness: Floats, anchors: Indices) -> Floats:
        """Return (n,) scores equivalent to the given closeness."""
        ...

    def similarity(self, closeness: Floats) -> Floats:
        """Return (n,) similarities S of section 4.2."""
        ...


class CosineSpace:
    """Cosine similarity, undefined for zero vectors."""

    def __init__(self, vectors: Matrix) -> None:
        self._vectors = vectors
        self._norms = _norms(vectors)
        self.usable = np.isfinite(self._norms) & (self._norms > 0)
        self.lengths = np.ones(len(vectors))

    def rows(self, indices: Indices) -> Floats:
        """Return (n, D) rows of norm 1."""
        return np.divide(self._vectors[indices], self._norms[indices, None], dtype=np.float64)

    def offsets(self, indices: Indices) -> Floats:
        """Return zeros."""
        return np.zeros(len(indices))

    def closeness(self, anchors: Indices, candidates: Indices) -> Floats:
        """Return (n,) cosines."""
        a, b = (self._vectors[rows].astype(np.float64) for rows in (anchors, candidates))
        dots = np.einsum("nd,nd->n", a, b)
        return np.asarray(dots / self._norms[anchors] / self._norms[candidates], dtype=np.float64)

    def tie_tolerance(self, anchors: Indices) -> Floats:
        """Return `TIE`."""
        return np.full(len(anchors), TIE)

    def score(self, closeness: Floats, anchors: Indices) -> Floats:
        """Return the cosine itself."""
        return closeness

    def similarity(self, closeness: Floats) -> Floats:
        """Return the cosine itself."""
        return closeness


class DistanceSpace:
    """Similarity 1 / (1 + Euclidean distance), with a tie tolerance relative to the anchor's norm."""

    def __init__(self, vectors: Matrix) -> None:
        self._vectors = vectors
        self._norms = _norms(vectors)
        self.usable = np.isfinite(self._norms)
        self._centre = _mean_row(vectors, self.usable)
        self.lengths = _norms(vectors, self._centre)
        longest = self.lengths[self.usable].max(initial=0.0)
        self._scale = 2.0 ** -np.ceil(np.log2(longest)) if longest > 0 else 1.0
        self.lengths *= self._scale

    def rows(self, indices: Indices) -> Floats:
        """Return (n, D) centred rows, scaled by a power of 2."""
        rows = self._vectors[indices] - self._centre
        rows *= self._scale
        return rows

    def offsets(self, indices: Indices) -> Floats:
        """Return half the squared norms, negated."""
        return np.asarray(-(self.lengths[indices] ** 2) / 2, dtype=np.float64)

    def closeness(self, anchors: Indices, candidates: Indices) -> Floats:
        """Return (n,) negative distances, computed from differences to avoid cancellation."""
        a, b = (self._vectors[rows].astype(np.float64) for rows in (anchors, candidates))
        a -= b
        return np.asarray(-np.sqrt(np.einsum("nd,nd->n", a, a)), dtype=np.float64)

    def tie_tolerance(self, anchors: Indices) -> Floats:
        """Return `TIE` times the anchor's norm."""
        return TIE * self._norms[anchors]

    def score(self, closeness: Floats, anchors: Indices) -> Floats:
        """Return (|c|² - d²) / 2, with closeness clipped to at most 0."""
        distances = np.minimum(closeness, 0.0) * self._scale
        return np.asarray((self.lengths[anchors] ** 2 - distances**2) / 2, dtype=np.float64)

    def similarity(self, closeness: Floats) -> Floats:
        """Return 1 / (1 + d)."""
        return np.asarray(1 / (1 - closeness), dtype=np.float64)


def make_space(vectors: Matrix, similarity: Similarity) -> Space:
    """Return the space of (N, D) float32 vectors; raise ValueError for invalid shapes, types or
    similarities."""
    if vectors.ndim != 2 or vectors.dtype != np.float32:
        actual = f"{vectors.dtype} of shape {vectors.shape}"
        raise ValueError(f"vectors are {actual}; expected float32 of shape (N, D)")
    if similarity not in SIMILARITIES:
        raise ValueError(f"unknown similarity {similarity!r}; expected {', '.join(SIMILARITIES)}")
    if similarity == "l2":
        return DistanceSpace(vectors)
    return CosineSpace(vectors if similarity == "cos" else _center(vectors))


def _center(vectors: Matrix) -> Matrix:
    centre = _mean_row(vectors, np.asarray(np.isfinite(vectors).all(axis=1)))
    centred = np.empty_like(vectors)
    for block in _row_blocks(len(vectors)):
        centred[block] = vectors[block] - centre
    return centred


def _mean_row(vectors: Matrix, usable: NDArray[np.bool_]) -> Floats:
    """Return (D,) the float64 mean of the usable rows; zeros if there are none."""
    if not usable.any():
        return np.zeros(vectors.shape[1])
    mean: Floats = np.mean(vectors, axis=0, dtype=np.float64, where=usable[:, None])
    return mean


def _row_blocks(n: int) -> list[slice]:
    return [slice(start, start + BLOCK_ROWS) for start in range(0, n, BLOCK_ROWS)]


def _norms(vectors: Matrix, centre: Floats | None = None) -> Floats:
    """Return (N,) float64 norms of rows after subtracting the centre; not finite if a value is not."""
    norms = np.empty(len(vectors))
    for block in _row_blocks(len(vectors)):
        rows = vectors[block].astype(np.float64)
        rows = rows if centre is None else rows - centre
        with np.errstate(invalid="ignore"):  # inf - inf: such rows are not usable
            norms[block] = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return norms
