"""How near are two vectors, and as which inner product can that be had?

Under both similarities of section 4.2, who is nearer to x is who has the larger score x · j + o(j), with
rows and an offset o that depend on the similarity. That score is for matrix products (see `coarse`); what
is compared in the end is the closeness, in float64.

cos: rows of length 1, no offset. cos-centred: the same, less the mean of all rows, as the published program
has it for sentences.
l2: S = 1 / (1 + d) falls as the distance d grows, and so does -d², so that the ranks are the same. With
rows c centred and scaled to at most 1, c_x · c_j - |c_j|² / 2 = (|c_x|² - d²) / 2. Digits cancel in it; the
closeness comes from differences, in which none do.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "SIMILARITIES",
    "TIE",
    "CosineSpace",
    "DistanceSpace",
    "Similarity",
    "Space",
    "make_space",
]

Similarity = Literal["cos", "cos-centred", "l2"]
SIMILARITIES = ("cos", "cos-centred", "l2")
TIE = 1e-6
"""Closeness within which two candidates are equally near: some ten roundings of a float32.

An encoder gives the same sentence other last bits in another batch: without a tolerance those decide.
"""
BLOCK_ROWS = 4096
"""Rows that are turned into float64 at a time."""

Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]
Indices = NDArray[np.intp]


class Space(Protocol):
    """Vectors (N, D) under a similarity; places are rows."""

    lengths: Floats
    """(N,) norms of the rows of scores."""
    usable: NDArray[np.bool_]
    """(N,) whether a row has similarities at all."""

    def rows(self, indices: Indices) -> Floats:
        """Return (n, D) rows whose inner products, with the offset, are scores."""
        ...

    def offsets(self, indices: Indices) -> Floats:
        """Return (n,) what a candidate's score has beside the inner product."""
        ...

    def closeness(self, anchors: Indices, candidates: Indices) -> Floats:
        """Return (n,) what is compared, in float64: larger is nearer."""
        ...

    def tie_tolerance(self, anchors: Indices) -> Floats:
        """Return (n,) how much closeness may differ and still be a tie."""
        ...

    def score(self, closeness: Floats, anchors: Indices) -> Floats:
        """Return (n,) the score that belongs to a closeness."""
        ...

    def similarity(self, closeness: Floats) -> Floats:
        """Return (n,) S of section 4.2."""
        ...


class CosineSpace:
    """Cosine similarity; a vector of length 0 has none."""

    def __init__(self, vectors: Matrix) -> None:
        self._vectors = vectors
        self._norms = _norms(vectors)
        self.usable = np.isfinite(self._norms) & (self._norms > 0)
        self.lengths = np.ones(len(vectors))

    def rows(self, indices: Indices) -> Floats:
        """Return (n, D) rows of length 1."""
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
    """Similarity 1 / (1 + Euclidean distance); ties are relative to the anchor's length."""

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
        """Return (n, D) rows less their mean, scaled by a power of 2."""
        rows = self._vectors[indices] - self._centre
        rows *= self._scale
        return rows

    def offsets(self, indices: Indices) -> Floats:
        """Return minus half the squared length."""
        return np.asarray(-(self.lengths[indices] ** 2) / 2, dtype=np.float64)

    def closeness(self, anchors: Indices, candidates: Indices) -> Floats:
        """Return (n,) negative distances, from the differences themselves: nothing cancels."""
        a, b = (self._vectors[rows].astype(np.float64) for rows in (anchors, candidates))
        a -= b
        return np.asarray(-np.sqrt(np.einsum("nd,nd->n", a, a)), dtype=np.float64)

    def tie_tolerance(self, anchors: Indices) -> Floats:
        """Return `TIE` times the anchor's length."""
        return TIE * self._norms[anchors]

    def score(self, closeness: Floats, anchors: Indices) -> Floats:
        """Return (|c|² - d²) / 2; a closeness above 0 is taken for 0."""
        distances = np.minimum(closeness, 0.0) * self._scale
        return np.asarray((self.lengths[anchors] ** 2 - distances**2) / 2, dtype=np.float64)

    def similarity(self, closeness: Floats) -> Floats:
        """Return 1 / (1 + d)."""
        return np.asarray(1 / (1 - closeness), dtype=np.float64)


def make_space(vectors: Matrix, similarity: Similarity) -> Space:
    """Return the space of (N, D) float32 vectors; ValueError for another shape, type or similarity."""
    if vectors.ndim != 2 or vectors.dtype != np.float32:
        actual = f"{vectors.dtype} of shape {vectors.shape}"
        raise ValueError(f"vectors are {actual}; float32 of shape (N, D) is allowed")
    if similarity not in SIMILARITIES:
        raise ValueError(f"similarity is {similarity!r}; allowed: {', '.join(SIMILARITIES)}")
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
    """Return (D,) the float64 mean of the usable rows; zeros where there is none."""
    if not usable.any():
        return np.zeros(vectors.shape[1])
    mean: Floats = np.mean(vectors, axis=0, dtype=np.float64, where=usable[:, None])
    return mean


def _row_blocks(n: int) -> list[slice]:
    return [slice(start, start + BLOCK_ROWS) for start in range(0, n, BLOCK_ROWS)]


def _norms(vectors: Matrix, centre: Floats | None = None) -> Floats:
    """Return (N,) float64 norms of rows, less the centre; not finite where a number is not."""
    norms = np.empty(len(vectors))
    for block in _row_blocks(len(vectors)):
        rows = vectors[block].astype(np.float64)
        rows = rows if centre is None else rows - centre
        with np.errstate(invalid="ignore"):  # inf - inf: such rows are not usable
            norms[block] = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return norms
