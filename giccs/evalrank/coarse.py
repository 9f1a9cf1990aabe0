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

__all__ = ["Prefilter", "ProductRows", "fit_prefilter"]

UNIT_ROUNDOFF = 2.0**-24
"""Largest relative error of a rounding to float32."""
UNDERFLOW_MARGIN = 1e-30
"""More than what all products below the smallest float32 can lose."""
MAX_UNSPLIT_WIDTH = 64
"""Numbers in a row up to which heads do not pay."""
HEAD_DIVISOR = 4
"""A head is this part of a row."""
BASIS_SAMPLE_ROWS = 4096
BLOCK_ROWS = 4096
"""Rows of float64 at a time."""

Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class ProductRows:
    """Rows of some places, for one side of a matrix product."""

    full: Matrix
    """(n, D + 1)"""
    heads: Matrix | None
    """(n, h + 2); None where heads do not pay."""


class Prefilter:
    """How rows are laid out, and how far the products of such rows are off."""

    def __init__(self, space: Space, width: int, basis: Floats | None) -> None:
        self._space = space
        self._basis = basis
        self.full_error = _relative_error(width + 1)
        self.head_error = _relative_error(0 if basis is None else basis.shape[1] + 2)

    def queries(self, indices: Indices) -> ProductRows:
        """Return rows of anchors."""
        return self._make_rows(indices, np.ones(len(indices)))

    def candidates(self, indices: Indices) -> ProductRows:
        """Return rows of candidates."""
        return self._make_rows(indices, self._space.offsets(indices))

    def error(self, relative: float, lengths: Floats, longest: float) -> Floats:
        """Return (n,) how far a product is off for anchors of `lengths` and candidates up to `longest`.

        An offset is at most half the square of the candidate's length.
        """
        return relative * longest * (lengths + longest / 2) + UNDERFLOW_MARGIN

    def _make_rows(self, indices: Indices, last_column: Floats) -> ProductRows:
        blocks = [
            indices[start : start + BLOCK_ROWS] for start in range(0, len(indices), BLOCK_ROWS)
        ]
        full_rows, heads = zip(*(self._split_block(block) for block in blocks), strict=True)
        column = last_column[:, None].astype(np.float32)
        if self._basis is None:
            return ProductRows(np.hstack([np.concatenate(full_rows), column]), None)
        return ProductRows(
            np.hstack([np.concatenate(full_rows), column]),
            np.hstack([np.concatenate(heads), column]),
        )

    def _split_block(self, indices: Indices) -> tuple[Matrix, Matrix | None]:
        rows = self._space.rows(indices)
        if self._basis is None:
            return rows.astype(np.float32), None
        head = rows @ self._basis
        square = self._space.lengths[indices] ** 2
        residual = np.maximum(square - np.einsum("nh,nh->n", head, head), 0.0)
        # a rest that is too long rules out less; so much more than float64 is off in the difference
        residual = np.sqrt(residual + 2.0**-36 * square)
        return rows.astype(np.float32), np.column_stack([head, residual]).astype(np.float32)


def fit_prefilter(space: Space, background: Indices) -> Prefilter:
    """Return the split of the rows of a background, whose basis is learned on up to 4,096 of them."""
    sample = background[:: -(-len(background) // BASIS_SAMPLE_ROWS)]
    rows = space.rows(sample)
    width = rows.shape[1]
    return Prefilter(
        space,
        width,
        None if width <= MAX_UNSPLIT_WIDTH else _fit_basis(rows, width // HEAD_DIVISOR),
    )


def _fit_basis(rows: Floats, h: int) -> Floats:
    """Return (D, h) orthonormal columns that hold much of the rows' length, by subspace iteration."""
    basis = np.random.Generator(np.random.PCG64(0)).standard_normal((rows.shape[1], h))
    for _ in range(3):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    return basis


def _relative_error(width: int) -> float:
    roundings = (width + 7) * UNIT_ROUNDOFF
    return roundings / (1 - roundings)
