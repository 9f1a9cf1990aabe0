"""Losses of a training: squared error of the labels, and quadruplet loss of pairs."""

from __future__ import annotations

import torch
from torch import Tensor


def rescaled(labels: Tensor) -> Tensor:
    """Return labels 1 … 5 as 0 … 1: (label - 1) / 4, as in the authors' program.

    A cosine can be -1, but texts about one scene rarely point in opposite directions. Encoders return about 0
    for unrelated texts, and with targets of 0 … 1 the zero-shot cosines start near their targets.

    >>> rescaled(torch.tensor([1, 3, 5])).tolist()
    [0.0, 0.5, 1.0]
    """
    return (labels.to(torch.get_default_dtype()) - 1) / 4


def mse(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the mean squared error of (N,) scores with respect to the rescaled labels."""
    return torch.mean((scores - rescaled(labels).to(scores.dtype)) ** 2)


def quad(scores: Tensor, pairs: Tensor, margin: float) -> Tensor:
    """Return the mean of max(λ + cos(n1, n2) - cos(p1, p2), 0) over pairs; 0 without pairs.

    scores: (N,) cosines of rows. pairs: (P, 2) indices of the row with the higher label, p, and the row with
    the lower label, n, of one sentence pair.

    >>> quad(torch.tensor([0.9, 0.2]), torch.tensor([[0, 1]]), margin=1.0).item() # 1 + 0.2 - 0.9
    0.3000...
    """
    if not len(pairs):
        return scores.sum() * 0.0  # A differentiable zero on the same device.
    high, low = scores[pairs[:, 0]], scores[pairs[:, 1]]
    return torch.clamp(margin + low - high, min=0).mean()


def objective(name: str, scores: Tensor, labels: Tensor, pairs: Tensor, margin: float) -> Tensor:
    """Return ``mse``, ``quad`` or ``quad+mse``; the last is their sum, each with weight 1."""
    if name == "mse":
        return mse(scores, labels)
    if name == "quad":
        return quad(scores, pairs, margin)
    return quad(scores, pairs, margin) + mse(scores, labels)
