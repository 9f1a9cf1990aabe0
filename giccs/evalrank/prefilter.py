"""Error bounds of float32 matrix products, which exclude most candidates from the exact comparison.

Rows are rounded to float32 and multiplied. For any order of summation, the error of a sum of n products is
less than n u / (1 - n u) times the product of the two norms, u = 2^-24 (Higham, Accuracy and Stability of
Numerical Algorithms, section 3.1). Rounding the numbers to float32 adds 2 u; another 5 u cover the errors of
float64.

A product of a quarter of the size excludes most candidates. Given an orthonormal basis of h directions that
capture much of the rows' norms, a row consists of its h coordinates (head) and a residual. By the
Cauchy-Schwarz inequality, a score is at most

    head(x) · head(j) + |residual(x)| |residual(j)| + offset(j),

which is an inner product of h + 2 numbers. The product of full rows is only needed if this bound exceeds the
positive's score for many candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giccs.evalrank.spaces import Space

__all__ = ["Prefilter", "ProductRows", "fit_prefilter"]

UNIT_ROUNDOFF = 2.0**-24
"""Maximum relative error of rounding to float32."""
UNDERFLOW_MARGIN = 1e-30
"""Upper bound of the error caused by underflow of products in float32."""
MAX_UNSPLIT_WIDTH = 64
"""Maximum row width for which heads are not worthwhile."""
HEAD_DIVISOR = 4
"""Row width divided by head width."""
BASIS_SAMPLE_ROWS = 4096
BLOCK_ROWS = 4096
"""Number of rows converted to float64 at a time."""

Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class ProductRows:
    """Rows of one factor of a matrix product."""

    full: Matrix
    """Full rows and offsets, shape (n, D + 1)."""
    heads: Matrix | None
    """Heads, residual norms and offsets, shape (n, h + 2); None if heads are not worthwhile."""


class Prefilter:
    """Layout of rows for matrix products, with the error bounds of these products."""

    def __init__(self, space: Space, width: int, basis: Floats | None) -> None:
        self._space = space
        self._basis = basis
        self.full_error = _relative_error(width + 1)
        self.head_error = _relative_error(0 if basis is None else basis.shape[1] + 2)

    def queries(self, indices: Indices) -> ProductRows:
        """Return the rows of anchors."""
        return self._make_rows(indices, np.ones(len(indices)))

    def candidates(self, indices: Indices) -> ProductRows:
        """Return the rows of candidates."""
        return self._make_rows(indices, self._space.offsets(indices))

    def error(self, relative: float, lengths: Floats, longest: float) -> Floats:
        """Return (n,) error bounds of products, for anchor norms `lengths` and candidates up to `longest`.

        An offset is at most half the squared norm of the candidate.
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
        # a margin for the float64 error of the difference; a larger residual only weakens the bound
        residual = np.sqrt(residual + 2.0**-36 * square)
        return rows.astype(np.float32), np.column_stack([head, residual]).astype(np.float32)


def fit_prefilter(space: Space, background: Indices) -> Prefilter:
    """Return the prefilter of a background; the basis is fitted to up to 4,096 of its rows."""
    sample = background[:: -(-len(background) // BASIS_SAMPLE_ROWS)]
    rows = space.rows(sample)
    width = rows.shape[1]
    return Prefilter(
        space,
        width,
        None if width <= MAX_UNSPLIT_WIDTH else _fit_basis(rows, width // HEAD_DIVISOR),
    )


def _fit_basis(rows: Floats, h: int) -> Floats:
    """Return (D, h) orthonormal columns that capture much of the rows' norms, by subspace iteration."""
    basis = np.random.Generator(np.random.PCG64(0)).standard_normal((rows.shape[1], h))
    for _ in range(3):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    return basis


def _relative_error(width: int) -> float:
    roundings = (width + 7) * UNIT_ROUNDOFF
    return roundings / (1 - roundings)
