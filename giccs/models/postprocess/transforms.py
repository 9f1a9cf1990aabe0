"""Transformations fitted on vectors: whitening, all-but-the-top, principal component removal, a flow.

The first three are linear and computed in 64 bits from the mean and the covariance. The flow (Li et al. 2020,
"On the Sentence Embeddings from Pre-trained Language Models", BERT-flow) is an invertible map to a standard
Gaussian: coupling layers are trained by maximum likelihood with a frozen encoder, and the latent variable
replaces the vector. The original uses Glow with additive couplings in TensorFlow. This implementation uses
affine couplings (RealNVP, from zuko) after a standardisation of each dimension, like the data-dependent
initialisation of Glow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.models.postprocess.steps import COMPONENTS

Matrix = NDArray[np.float64]
ROWS = 8192
"""Number of vectors per block when summing moments."""
FLOW_ROWS = 4096
"""Number of vectors per batch of the flow."""
COUPLINGS = 4
HIDDEN = 64
EPOCHS = 3
LEAST_STEPS = 200
BATCH = 64
RATE = 1e-3


@dataclass(frozen=True, slots=True)
class Moments:
    """Moments on which a linear step is fitted."""

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
    """Description of a requested step that could only be fitted partly."""

    def __call__(self, vectors: NDArray[np.floating]) -> Matrix:
        """Return (N, K) transformed vectors of (N, D) vectors."""
        image: Matrix = (vectors.astype(np.float64) - self.offset) @ self.matrix
        return image


def moments(vectors: NDArray[np.floating]) -> Moments:
    """Return the moments of (N, D) vectors; N at least 2. A memory-mapped matrix is read in blocks."""
    n, width = vectors.shape
    if n < 2:
        raise ValueError(f"{n} vectors; expected at least 2 different ones for a covariance")
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
    """Return the map to an identity covariance, in the first `k` principal directions.

    Su et al. 2021, "Whitening Sentence Representations": W = U diag(1/sqrt(s)), of which K columns are kept
    (all by default). Directions without variance cannot be scaled to 1; they are dropped with a warning. N
    vectors vary in at most N - 1 directions. With all of these, all pairs are equally distant and all cosines
    are -1/(N - 1); this is an error.
    """
    width = len(of.mean)
    _check(k, width)
    values, axes, rank = _principal(of.covariance, of.n - 1)
    requested_k = k or width
    n_components = min(requested_k, rank)
    if n_components == of.n - 1:
        raise ValueError(
            f"{of.n} texts are too few for {requested_k} dimensions: all pairs would be equally distant; "
            f"use K below {of.n - 1} or more texts"
        )
    warning = (
        f"{n_components} of {requested_k} dimensions: the vectors vary in no others"
        if n_components < requested_k
        else ""
    )
    return Affine(of.mean, axes[:, :n_components] / np.sqrt(values[:n_components]), warning)


def all_but_the_top(of: Moments, k: int | None = None) -> Affine:
    """Return the map that removes the mean and the first `k` principal components (2 by default).

    Mu and Viswanath 2018, "All-but-the-Top". They recommend D/100 components; the default is that of
    EvalRank's program. The components are those of the centred vectors.
    """
    k = COMPONENTS if k is None else k
    _check(k, len(of.mean) - 1)
    _, axes, rank = _principal(of.covariance, of.n - 1)
    return Affine(of.mean, _without(axes[:, : min(k, rank)]), _fewer(k, rank))


def pc_removal(of: Moments, k: int | None = None) -> Affine:
    """Return the map that removes the first `k` principal directions of the raw vectors (2 by default).

    Arora et al. 2017, "A Simple but Tough-to-Beat Baseline", remove the first singular vector of the matrix
    of uncentred sentence vectors; the default is that of EvalRank's program.
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
"""Name of a step -> function that fits it."""


def _principal(symmetric: Matrix, most: int) -> tuple[Matrix, Matrix, int]:
    """Return the eigenvalues in descending order, the eigenvectors as columns, and the numerical rank.

    Vectors have 32 bits: a deviation below D times their precision, relative to the largest, is treated as
    zero.
    """
    values, axes = np.linalg.eigh(symmetric)
    values, axes = values[::-1], axes[:, ::-1]
    floor = values[0] * (len(values) * np.finfo(np.float32).eps) ** 2
    rank = min(most, int(np.sum(values > max(floor, 0.0))))
    if not rank:
        raise ValueError("the vectors are all equal; expected at least 2 different ones")
    return values, axes, rank


def _without(axes: Matrix) -> Matrix:
    matrix: Matrix = np.eye(len(axes)) - axes @ axes.T
    return matrix


def _fewer(k: int, rank: int) -> str:
    return f"{rank} of {k} components: the vectors vary in no others" if rank < k else ""


def _check(k: int | None, most: int) -> None:
    if k is not None and not 1 <= k <= most:
        raise ValueError(f"K is {k}; expected an integer from 1 to {most} for these vectors")


@dataclass(frozen=True)
class GaussianFlow:
    """An invertible map to a standard Gaussian."""

    mean: Matrix
    """(D,)"""
    scale: Matrix
    """(D,); 1 for constant dimensions."""
    flow: Any
    """zuko's flow, in 64 bits."""
    likelihoods: tuple[float, float] = (np.nan, np.nan)
    """Mean log-likelihood of a vector, in nats, before and after training."""
    warning: str = ""

    def __call__(self, vectors: NDArray[np.floating]) -> Matrix:
        """Return (N, D) latent variables of (N, D) vectors."""
        return self._mapped(
            (vectors.astype(np.float64) - self.mean) / self.scale, self.flow().transform
        )

    def inverse(self, latent: Matrix) -> Matrix:
        """Return the vectors with the given latent variables."""
        return self._mapped(latent, self.flow().transform.inv) * self.scale + self.mean

    def log_likelihood(self, vectors: NDArray[np.floating]) -> float:
        """Return the mean log-likelihood of (N, D) vectors, in nats."""
        import torch

        standard = torch.from_numpy((vectors.astype(np.float64) - self.mean) / self.scale)
        with torch.inference_mode():
            inner = float(self.flow().log_prob(standard).mean())
        return inner - float(np.log(self.scale).sum())

    @staticmethod
    def _mapped(vectors: Matrix, transform: Any) -> Matrix:
        import torch

        with torch.inference_mode():
            parts = [
                transform(torch.from_numpy(vectors[start : start + FLOW_ROWS])).numpy()
                for start in range(0, len(vectors), FLOW_ROWS)
            ]
        return np.concatenate(parts)


def fit_flow(vectors: NDArray[np.floating], seed: int) -> GaussianFlow:
    """Return a flow trained on (N, D) vectors; deterministic for a given seed and number of threads.

    It does not depend on the order of the vectors.
    Raises ValueError for fewer than two different vectors, or fewer than two dimensions.
    """
    if vectors.shape[1] < 2 or (vectors == vectors[0]).all():
        raise ValueError("a flow requires two dimensions and at least 2 different vectors")
    vectors = vectors[np.lexsort(vectors.T)]
    mean, scale = vectors.mean(axis=0, dtype=np.float64), vectors.std(axis=0, dtype=np.float64)
    still = scale <= np.finfo(np.float32).eps * scale.max()
    scale = np.where(still, 1.0, scale)
    flow = GaussianFlow(mean, scale, _flow(vectors.shape[1], seed))
    before = flow.log_likelihood(vectors)
    _train(flow, vectors, seed)
    likelihoods = before, flow.log_likelihood(vectors)
    return replace(flow, likelihoods=likelihoods, warning=_warning(vectors, still))


def _warning(vectors: NDArray[np.floating], still: NDArray[np.bool_]) -> str:
    n, width = vectors.shape
    few = [f"{n} texts are few for {width} dimensions: the flow overfits"]
    constant = [f"{int(still.sum())} dimensions are constant"]
    return "; ".join(few * (n <= width) + constant * bool(still.any()))


def _flow(width: int, seed: int) -> Any:
    import torch
    import zuko  # type: ignore[import-untyped, unused-ignore]

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        flow = zuko.flows.RealNVP(width, transforms=COUPLINGS, hidden_features=(HIDDEN,))
        for module in flow.modules():
            if isinstance(module, zuko.nn.MLP):  # As in Glow, training starts from the identity.
                torch.nn.init.zeros_(module[-1].weight)
                torch.nn.init.zeros_(module[-1].bias)
    return flow.double()


def _train(start: GaussianFlow, vectors: NDArray[np.floating], seed: int) -> None:
    import torch

    data = torch.from_numpy((vectors.astype(np.float64) - start.mean) / start.scale)
    optimizer = torch.optim.Adam(start.flow.parameters(), lr=RATE)
    for batch_indices in _batches(len(data), seed):
        optimizer.zero_grad()
        (-start.flow().log_prob(data[batch_indices]).mean()).backward()
        optimizer.step()


def _batches(n: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of the training batches: `EPOCHS` passes, or more up to `LEAST_STEPS`."""
    draw = np.random.default_rng(seed)
    epochs = max(EPOCHS, -(-LEAST_STEPS // -(-n // BATCH)))
    for _ in range(epochs):
        order = draw.permutation(n)
        for start in range(0, n, BATCH):
            yield order[start : start + BATCH]
