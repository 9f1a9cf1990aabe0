"""Post-processing that is a linear map: whitening, all-but-the-top, principal component removal.

All are computed in 64 bits from the mean and the covariance of the vectors they are fitted on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giccs.models.postprocess.spelling import COMPONENTS

__all__ = ["LINEAR", "Affine", "Moments", "all_but_the_top", "moments", "pc_removal", "whitening"]

Matrix = NDArray[np.float64]
ROWS = 8192


@dataclass(frozen=True, slots=True)
class Moments:
    """What a linear step is fitted on."""

    n: int
    mean: Matrix
    """(D,)"""
    covariance: Matrix
    """(D, D), with n - 1 in the denominator."""


@dataclass(frozen=True, slots=True)
class Affine:
    """``(x - offset) @ matrix``."""

    offset: Matrix
    """(D,)"""
    matrix: Matrix
    """(D, K)"""
    warning: str = ""
    """What of the step could not be done as asked."""

    def __call__(self, vectors: NDArray[np.floating]) -> Matrix:
        """Return (N, K) the images of (N, D) vectors."""
        image: Matrix = (vectors.astype(np.float64) - self.offset) @ self.matrix
        return image


def moments(vectors: NDArray[np.floating]) -> Moments:
    """Return the moments of (N, D) vectors; N at least 2. A mapped matrix is read in pieces."""
    n, width = vectors.shape
    if n < 2:
        raise ValueError(f"{n} vectors; at least 2 different ones are needed for a covariance")
    pieces = [slice(start, start + ROWS) for start in range(0, n, ROWS)]
    mean = (
        sum((vectors[piece].sum(axis=0, dtype=np.float64) for piece in pieces), np.zeros(width)) / n
    )
    scatter = np.zeros((width, width))
    for piece in pieces:
        centred = vectors[piece].astype(np.float64) - mean
        scatter += centred.T @ centred
    return Moments(n, mean, scatter / (n - 1))


def whitening(of: Moments, k: int | None = None) -> Affine:
    """Return the map after which the covariance is the identity, in the `k` first principal directions.

    Su et al. 2021, "Whitening Sentence Representations": W = U diag(1/sqrt(s)), of which K columns stay
    (all by default). Directions without variance cannot be scaled to 1; they are left out, and the
    warning says so. N vectors vary in at most N - 1 directions, and with all of those every two of them
    are equally far apart and all cosines are -1/(N - 1): so many are refused.
    """
    width = len(of.mean)
    _check(k, width)
    values, axes, rank = _principal(of.covariance, of.n - 1)
    asked = k or width
    kept = min(asked, rank)
    if kept == of.n - 1:
        raise ValueError(
            f"{of.n} texts are too few for {asked} dimensions: all would be equally far apart; "
            f"a K below {of.n - 1} or more texts are needed"
        )
    warning = f"{kept} of {asked} dimensions: the vectors vary in no more" if kept < asked else ""
    return Affine(of.mean, axes[:, :kept] / np.sqrt(values[:kept]), warning)


def all_but_the_top(of: Moments, k: int | None = None) -> Affine:
    """Return the map that removes the mean and the `k` first principal components (2 by default).

    Mu and Viswanath 2018, "All-but-the-Top". They advise D/100 components; the default is that of
    EvalRank's program. The components are those of the centred vectors.
    """
    k = COMPONENTS if k is None else k
    _check(k, len(of.mean) - 1)
    _, axes, rank = _principal(of.covariance, of.n - 1)
    return Affine(of.mean, _without(axes[:, : min(k, rank)]), _fewer(k, rank))


def pc_removal(of: Moments, k: int | None = None) -> Affine:
    """Return the map that removes the `k` first principal directions of the raw vectors (2 by default).

    Arora et al. 2017, "A Simple but Tough-to-Beat Baseline", remove the first singular vector of the
    matrix of sentence vectors, which are not centred; the default is that of EvalRank's program.
    """
    k = COMPONENTS if k is None else k
    _check(k, len(of.mean) - 1)
    second = of.covariance * (of.n - 1) / of.n + np.outer(of.mean, of.mean)
    _, axes, rank = _principal(second, of.n)
    return Affine(np.zeros_like(of.mean), _without(axes[:, : min(k, rank)]), _fewer(k, rank))


LINEAR: dict[str, Callable[[Moments, int | None], Affine]] = {
    "whitening": whitening,
    "abtt": all_but_the_top,
    "pcr": pc_removal,
}
"""Name of a step -> what fits it."""


def _principal(symmetric: Matrix, most: int) -> tuple[Matrix, Matrix, int]:
    """Return eigenvalues, falling, their vectors as columns, and how many are not rounding.

    The vectors came in 32 bits: a deviation below D times their precision of the largest is none.
    """
    values, axes = np.linalg.eigh(symmetric)
    values, axes = values[::-1], axes[:, ::-1]
    floor = values[0] * (len(values) * np.finfo(np.float32).eps) ** 2
    rank = min(most, int(np.sum(values > max(floor, 0.0))))
    if not rank:
        raise ValueError("the vectors are all the same; at least 2 different ones are needed")
    return values, axes, rank


def _without(axes: Matrix) -> Matrix:
    matrix: Matrix = np.eye(len(axes)) - axes @ axes.T
    return matrix


def _fewer(k: int, rank: int) -> str:
    return f"{rank} of {k} components: the vectors vary in no more" if rank < k else ""


def _check(k: int | None, most: int) -> None:
    if k is not None and not 1 <= k <= most:
        raise ValueError(f"K is {k}; a whole number from 1 to {most} is allowed for these vectors")
