"""Products of anchors and candidates in float32, compared with limits, by NumPy or on a device by PyTorch.

Both count the same for scores that are farther from the limits than the rounding errors, which the limits of
`giccs.evalrank.ranking` are for any order of summation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]
Matrix = NDArray[np.float32]
Compared = tuple[Indices, Indices, Indices]
"""(P,) numbers of scores above the upper limit of each pair, and the pairs and columns of the scores between
the limits."""


class Products(Protocol):
    """Scores of candidates for anchors."""

    def compare(
        self, rows: Indices, own: Indices, candidates: Matrix, low: Matrix, high: Matrix
    ) -> Compared:
        """Compare the scores of C candidates for P pairs with limits.

        rows: (P,) ascending indices of their anchors. own: (P,) column of the anchor itself, which is not
        compared; outside 0 to C - 1 if it is no candidate here. low, high: (P,) limits.
        """


class HostProducts:
    """Products by NumPy; queries: (Q, D) anchors."""

    def __init__(self, queries: Matrix) -> None:
        self._queries = queries
        self._buffer = np.empty(0, np.float32)  # one for all blocks

    def compare(
        self, rows: Indices, own: Indices, candidates: Matrix, low: Matrix, high: Matrix
    ) -> Compared:
        """Compare scores; see `Products`."""
        n_nearer = np.zeros(len(rows), np.intp)
        pairs, columns = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for pair, scores in enumerate(self._scores(rows, own, candidates)):
            n_nearer[pair] = np.count_nonzero(scores > high[pair])
            if np.count_nonzero(scores >= low[pair]) > n_nearer[pair]:
                between = np.flatnonzero((scores >= low[pair]) & (scores <= high[pair]))
                pairs.append(np.full(len(between), pair))
                columns.append(between)
        return n_nearer, np.concatenate(pairs), np.concatenate(columns)

    def _scores(self, rows: Indices, own: Indices, candidates: Matrix) -> Iterator[Matrix]:
        """Yield the scores (C,) of each pair."""
        distinct, first, at = np.unique(rows, return_index=True, return_inverse=True)
        size = len(distinct) * len(candidates)
        if len(self._buffer) < size:
            self._buffer = np.empty(size, np.float32)
        scores = self._buffer[:size].reshape(len(distinct), len(candidates))
        np.matmul(self._queries[distinct], candidates.T, out=scores)
        inside, column = _inside(own[first], len(candidates))
        scores[inside, column] = -np.inf
        return (scores[row] for row in at)


class DeviceProducts:
    """Products by PyTorch on a device, in float32 without TensorFloat-32; queries: (Q, D) anchors."""

    def __init__(self, queries: Matrix, device: str) -> None:
        import torch

        self._torch, self._device = torch, device
        self._queries = self._tensor(queries)
        self._candidates: tuple[Matrix, Any] | None = None

    def compare(
        self, rows: Indices, own: Indices, candidates: Matrix, low: Matrix, high: Matrix
    ) -> Compared:
        """Compare scores; see `Products`. Copies each array of candidates to the device once."""
        if self._candidates is None or self._candidates[0] is not candidates:
            self._candidates = candidates, self._tensor(candidates)
        distinct, first, at = np.unique(rows, return_index=True, return_inverse=True)
        with _full_precision(self._torch):
            scores = self._queries[self._tensor(distinct)] @ self._candidates[1].T
        inside, column = _inside(own[first], len(candidates))
        scores[self._tensor(inside), self._tensor(column)] = -np.inf
        if len(distinct) < len(rows):
            scores = scores[self._tensor(at)]
        lower, upper = self._tensor(low)[:, None], self._tensor(high)[:, None]
        n_nearer = (scores > upper).sum(dim=1)
        pairs, columns = ((scores >= lower) & (scores <= upper)).nonzero(as_tuple=True)
        return n_nearer.cpu().numpy(), pairs.cpu().numpy(), columns.cpu().numpy()

    def _tensor(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device)


def _inside(own: Indices, n_candidates: int) -> tuple[Indices, Indices]:
    """Return the anchors that are candidates, and their columns."""
    inside = np.flatnonzero((own >= 0) & (own < n_candidates))
    return inside, own[inside]


@contextmanager
def _full_precision(torch: Any) -> Iterator[None]:
    """Multiply float32 in float32, whatever the program has set."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
