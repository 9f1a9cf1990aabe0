"""Which candidates can a float32 matrix product rule out, and which not?

Rows are rounded to float32 and multiplied. In whatever order n products are added, their sum is off by less
than n u / (1 - n u) times the product of the two lengths, u = 2^-24 (Higham, Accuracy and Stability of
Numerical Algorithms, section 3.1). Every number was rounded once itself (2 u more); another 5 u cover what
float64 is off.

A quarter of the work rules most candidates out. With an orthonormal basis of h directions, that hold much
of the rows' length, a row splits into its h coordinates and a rest, and by Cauchy and Schwarz a score is at
most

    head(x) · head(j) + |rest(x)| |rest(j)| + offset(j),

which is again one inner product, of h + 2 numbers. Only where many candidates reach the positive's score by
this bound is the product of whole rows needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giccs.evalrank.spaces import Space

__all__ = ["Rows", "Split", "split_of"]

UNIT = 2.0**-24
"""Largest relative error of a rounding to float32."""
UNDERFLOW = 1e-30
"""More than what all products below the smallest float32 can lose."""
NARROW = 64
"""Numbers in a row up to which heads do not pay."""
SHARE = 4
"""A head is this part of a row."""
LEARNED_ON = 4096
AT_ONCE = 4096
"""Rows of float64 at a time."""

Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]
Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of some places, for one side of a matrix product."""

    whole: Matrix
    """(n, D + 1)"""
    heads: Matrix | None
    """(n, h + 2); None where heads do not pay."""


class Split:
    """How rows are laid out, and how far the products of such rows are off."""

    def __init__(self, space: Space, width: int, basis: Floats | None) -> None:
        self._space = space
        self._basis = basis
        self.whole_error = _relative_error(width + 1)
        self.head_error = _relative_error(0 if basis is None else basis.shape[1] + 2)

    def queries(self, places: Places) -> Rows:
        """Return rows of anchors."""
        return self._rows(places, np.ones(len(places)))

    def candidates(self, places: Places) -> Rows:
        """Return rows of candidates."""
        return self._rows(places, self._space.offsets(places))

    def error(self, relative: float, lengths: Floats, longest: float) -> Floats:
        """Return (n,) how far a product is off for anchors of `lengths` and candidates up to `longest`.

        An offset is at most half the square of the candidate's length.
        """
        return relative * longest * (lengths + longest / 2) + UNDERFLOW

    def _rows(self, places: Places, last: Floats) -> Rows:
        parts = [places[at : at + AT_ONCE] for at in range(0, len(places), AT_ONCE)]
        whole, heads = zip(*(self._part(part) for part in parts), strict=True)
        column = last[:, None].astype(np.float32)
        if self._basis is None:
            return Rows(np.hstack([np.concatenate(whole), column]), None)
        return Rows(
            np.hstack([np.concatenate(whole), column]), np.hstack([np.concatenate(heads), column])
        )

    def _part(self, places: Places) -> tuple[Matrix, Matrix | None]:
        rows = self._space.rows(places)
        if self._basis is None:
            return rows.astype(np.float32), None
        head = rows @ self._basis
        square = self._space.lengths[places] ** 2
        rest = np.maximum(square - np.einsum("nh,nh->n", head, head), 0.0)
        # a rest that is too long rules out less; so much more than float64 is off in the difference
        rest = np.sqrt(rest + 2.0**-36 * square)
        return rows.astype(np.float32), np.column_stack([head, rest]).astype(np.float32)


def split_of(space: Space, background: Places) -> Split:
    """Return the split of the rows of a background, whose basis is learned on up to 4,096 of them."""
    sample = background[:: -(-len(background) // LEARNED_ON)]
    rows = space.rows(sample)
    width = rows.shape[1]
    return Split(space, width, None if width <= NARROW else _basis(rows, width // SHARE))


def _basis(rows: Floats, h: int) -> Floats:
    """Return (D, h) orthonormal columns that hold much of the rows' length, by subspace iteration."""
    start = np.random.Generator(np.random.PCG64(0)).standard_normal((rows.shape[1], h))
    for _ in range(3):
        start = np.linalg.qr(rows.T @ (rows @ start))[0]
    return start


def _relative_error(width: int) -> float:
    roundings = (width + 7) * UNIT
    return roundings / (1 - roundings)
