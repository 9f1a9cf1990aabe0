"""An invertible map from vectors to a standard Gaussian, learned from the vectors themselves.

Li et al. 2020, "On the Sentence Embeddings from Pre-trained Language Models" (BERT-flow): a flow of
coupling layers is trained by maximum likelihood while the encoder stays as it is; the latent variable
takes the place of the vector. Theirs is Glow with additive couplings in TensorFlow; here affine couplings
(RealNVP, from zuko) stand behind a standardisation of each dimension, which is the start that Glow takes
from its data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["COUPLINGS", "EPOCHS", "HIDDEN", "GaussianFlow", "fit_flow"]

COUPLINGS = 4
HIDDEN = 64
EPOCHS = 3
LEAST_STEPS = 200
BATCH = 64
RATE = 1e-3
ROWS = 4096

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianFlow:
    """The map, both ways."""

    mean: Matrix
    """(D,)"""
    scale: Matrix
    """(D,); 1 where a dimension does not vary."""
    flow: Any
    """zuko's flow, in 64 bits."""
    likelihoods: tuple[float, float] = (np.nan, np.nan)
    """Mean log-likelihood of a vector, in nats, before training and after."""
    warning: str = ""

    def __call__(self, vectors: NDArray[np.floating]) -> Matrix:
        """Return (N, D) the latent variables of (N, D) vectors."""
        return self._mapped(
            (vectors.astype(np.float64) - self.mean) / self.scale, self.flow().transform
        )

    def inverse(self, latent: Matrix) -> Matrix:
        """Return the vectors that the map sends to `latent`."""
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
                transform(torch.from_numpy(vectors[start : start + ROWS])).numpy()
                for start in range(0, len(vectors), ROWS)
            ]
        return np.concatenate(parts)


def fit_flow(vectors: NDArray[np.floating], seed: int) -> GaussianFlow:
    """Return a flow trained on (N, D) vectors; the same for a seed and a number of threads.

    Raises ValueError where there are fewer than two different vectors, or fewer than two dimensions.
    """
    if vectors.shape[1] < 2 or (vectors == vectors[0]).all():
        raise ValueError("a flow needs two dimensions and at least 2 different vectors")
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
    few = [f"{n} texts are few for {width} dimensions: the flow learns them by heart"]
    constant = [f"{int(still.sum())} dimensions do not vary"]
    return "; ".join(few * (n <= width) + constant * bool(still.any()))


def _flow(width: int, seed: int) -> Any:
    import torch
    import zuko  # type: ignore[import-untyped, unused-ignore]

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        flow = zuko.flows.RealNVP(width, transforms=COUPLINGS, hidden_features=(HIDDEN,))
        for module in flow.modules():
            if isinstance(module, zuko.nn.MLP):  # as in Glow: training starts from the identity
                torch.nn.init.zeros_(module[-1].weight)
                torch.nn.init.zeros_(module[-1].bias)
    return flow.double()


def _train(start: GaussianFlow, vectors: NDArray[np.floating], seed: int) -> None:
    import torch

    data = torch.from_numpy((vectors.astype(np.float64) - start.mean) / start.scale)
    optimizer = torch.optim.Adam(start.flow.parameters(), lr=RATE)
    for places in _batches(len(data), seed):
        optimizer.zero_grad()
        (-start.flow().log_prob(data[places]).mean()).backward()
        optimizer.step()


def _batches(n: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield the places of the training batches: `EPOCHS` times all, or more up to `LEAST_STEPS`."""
    draw = np.random.default_rng(seed)
    epochs = max(EPOCHS, -(-LEAST_STEPS // -(-n // BATCH)))
    for _ in range(epochs):
        order = draw.permutation(n)
        for start in range(0, n, BATCH):
            yield order[start : start + BATCH]
