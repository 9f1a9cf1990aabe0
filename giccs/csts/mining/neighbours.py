"""Nearest sources of each source, by the cosine of their embeddings.

The search is exact: all pairs of S embeddings of D numbers require 2 S² D operations, at 50 to 100 GFLOP/s
for one thread. The 83,000 images of COCO take about two minutes (`benchmarks/csts_pairs.py --large`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from giccs.progress import Progress, silent

BLOCK_BYTES = 64 * 2**20
"""Size of a block of cosines; peak memory is about three times as large."""

Indices = NDArray[np.int64]
Matrix = NDArray[np.float32]


def nearest(units: Matrix, k: int, progress: Progress = silent) -> Indices:
    """Return the (S, k) nearest other sources of each source, or all others if there are fewer.

    units: (S, D) embeddings of length 1. Nearest first; ties in float32 are resolved in the order of the
    file. Memory is bounded.

    >>> units = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
    >>> nearest(units, 1).ravel().tolist()
    [1, 0, 1]
    """
    if k < 1:
        raise ValueError(f"k is {k}; expected 1 or more")
    k = min(k, len(units) - 1)
    sources = np.arange(len(units))
    step = max(1, BLOCK_BYTES // (4 * len(units)))
    blocks = (sources[at : at + step] for at in range(0, len(units), step))
    total = -(-len(units) // step)
    return np.concatenate(
        [_nearest_of(units, block, k) for block in progress(blocks, "neighbours", total)]
    )


def _nearest_of(units: Matrix, block: Indices, k: int) -> Indices:
    cosines = units[block] @ units.T
    cosines[np.arange(len(block)), block] = -np.inf
    return _largest(cosines, k)


def _largest(values: Matrix, k: int) -> Indices:
    """Return (Q, k) columns of the largest values of each row, in descending order, then by column."""
    width = values.shape[1]
    least = np.partition(values, width - k, axis=1)[:, width - k]
    rows, columns = np.nonzero(
        values >= least[:, None]
    )  # The k largest values of each row, and more for ties.
    order = np.lexsort((columns, -values[rows, columns], rows))
    begins = np.searchsorted(rows, np.arange(len(values)))
    ranked = columns[order][begins[:, None] + np.arange(k)]
    return np.asarray(ranked, dtype=np.int64)


def source_pairs(indices: Indices) -> tuple[Indices, Indices]:
    """Return the (P,) first and second sources of all pairs of neighbours, each unordered pair once.

    A pair is included if one source is among the nearest of the other. First < second; sorted.

    >>> [side.tolist() for side in source_pairs(np.array([[1], [0], [1]]))]
    [[0, 1], [1, 2]]
    """
    sources, k = indices.shape
    own_sources = np.repeat(np.arange(sources, dtype=np.int64), k)
    neighbour_sources = indices.ravel()
    keys = np.unique(
        np.minimum(own_sources, neighbour_sources) * sources
        + np.maximum(own_sources, neighbour_sources)
    )
    first, second = np.divmod(keys, sources)
    return first, second
