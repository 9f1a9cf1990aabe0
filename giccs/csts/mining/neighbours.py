"""Nearest sources of each source, by the cosine of their embeddings.

All pairs of S embeddings of D numbers require 2 S² D operations. At 50 to 100 GFLOP/s for one thread, a
million captions, five per source, with 384 numbers each (S = 200,000; 3.1e13 operations) take five to ten
minutes. Up to `EXACT_UP_TO` sources the search is exact. For more sources an inverted index is used. Its cost
grows with S to the power of 1.5 for a constant number of probed lists; its recall is estimated on a sample.
`benchmarks/csts_pairs.py` measures both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.progress import Progress, silent

EXACT_UP_TO = 200_000
"""Maximum number of sources for an exact search."""
BLOCK_BYTES = 64 * 2**20
"""Size of a block of cosines in the exact search; peak memory is about three times as large."""
RECALL_WANTED = 0.95
TUNED_ON, CHECKED_ON = 200, 1000

Search = Literal["auto", "exact", "index"]
Indices = NDArray[np.int64]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The K nearest sources of each of S sources."""

    indices: Indices
    """(S, K) nearest first; ties in the order of the file. -1: not found."""
    method: str
    """Description of the search method."""
    recall: float = 1.0
    """Share of the true neighbours found, from 0 to 1; estimated on a sample for an index."""
    recall_on: int | None = None
    """Number of sources in that sample; None for an exact search."""


def nearest(
    units: Matrix, k: int, search: Search = "auto", seed: int = 0, progress: Progress = silent
) -> Neighbours:
    """Return the k nearest other sources of each source, or all others if there are fewer.

    units: (S, D) embeddings of length 1. search: ``auto`` is exact up to `EXACT_UP_TO` sources.

    >>> units = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
    >>> nearest(units, 1).indices.ravel().tolist()
    [1, 0, 1]
    """
    if k < 1:
        raise ValueError(f"k is {k}; expected 1 or more")
    k = min(k, len(units) - 1)
    if search == "index" or (search == "auto" and len(units) > EXACT_UP_TO):
        return indexed_neighbours(units, k, seed, progress)
    return Neighbours(exact_neighbours(units, k, progress), "exact")


def exact_neighbours(
    units: Matrix, k: int, progress: Progress = silent, queries: Indices | None = None
) -> Indices:
    """Return the (Q, k) nearest sources of `queries`, by default of all; memory is bounded.

    Ties in float32 are resolved in the order of the file.
    """
    queries = np.arange(len(units)) if queries is None else queries
    step = max(1, BLOCK_BYTES // (4 * len(units)))
    blocks = (queries[at : at + step] for at in range(0, len(queries), step))
    total = -(-len(queries) // step)
    neighbours = [_nearest_of(units, block, k) for block in progress(blocks, "neighbours", total)]
    return np.concatenate(neighbours)


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


def indexed_neighbours(
    units: Matrix, k: int, seed: int = 0, progress: Progress = silent
) -> Neighbours:
    """Return the k nearest sources found by an inverted index (FAISS, IVFFlat with 4 √S lists).

    The number of probed lists is the smallest that finds `RECALL_WANTED` of the true neighbours of 200
    sources. The reported recall is that of 1,000 others. Both samples depend on `seed`.

    Raises InputError if FAISS is not installed.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    sampled_rows = rng.permutation(len(units))[: TUNED_ON + CHECKED_ON]
    tuned_on, checked_on = np.split(sampled_rows, [min(TUNED_ON, len(sampled_rows) // 2)])
    index = _index(units, seed)
    _probe_enough(index, units, k, tuned_on)
    step = 4096
    blocks = (np.arange(at, min(at + step, len(units))) for at in range(0, len(units), step))
    total = -(-len(units) // step)
    neighbours = [_looked_up(index, units, b, k) for b in progress(blocks, "neighbours", total)]
    indices = np.concatenate(neighbours)
    recall = _recall(indices[checked_on], exact_neighbours(units, k, queries=checked_on))
    method = f"FAISS IVFFlat, {index.nprobe} of {index.nlist} lists"
    return Neighbours(indices, method, recall, len(checked_on))


def _index(units: Matrix, seed: int) -> Any:
    try:
        import faiss
    except ImportError:
        message = "is not installed; install it with: pip install 'giccs[csts]'"
        raise InputError(Problem("faiss", None, message)) from None
    lists = min(int(4 * np.sqrt(len(units))), max(1, len(units) // 40))
    width = units.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = seed
    index.cp.max_points_per_centroid = 64
    index.train(units)
    index.add(units)
    return index


def _probe_enough(index: Any, units: Matrix, k: int, queries: Indices) -> None:
    """Double the number of probed lists until the required recall is reached."""
    true = exact_neighbours(units, k, queries=queries)
    index.nprobe = 1
    while index.nprobe < index.nlist:
        if _recall(_looked_up(index, units, queries, k), true) >= RECALL_WANTED:
            return
        index.nprobe = min(2 * index.nprobe, index.nlist)


def _looked_up(index: Any, units: Matrix, block: Indices, k: int) -> Indices:
    """Return (Q, k) neighbours without the query itself, which is usually its own nearest neighbour."""
    _, indices = index.search(units[block], k + 1)
    itself = indices == block[:, None]
    itself[~itself.any(axis=1), -1] = True  # If ties displace the query itself, drop the farthest.
    return np.asarray(indices[~itself].reshape(len(block), k), dtype=np.int64)


def _recall(indices: Indices, true: Indices) -> float:
    hits = sum(len(np.intersect1d(*rows)) for rows in zip(indices, true, strict=True))
    return hits / true.size


def source_pairs(indices: Indices) -> tuple[Indices, Indices]:
    """Return the (P,) first and second sources of all pairs of neighbours, each unordered pair once.

    A pair is included if one source is among the nearest of the other. First < second; sorted.

    >>> [side.tolist() for side in source_pairs(np.array([[1], [0], [1]]))]
    [[0, 1], [1, 2]]
    """
    sources, k = indices.shape
    own_sources = np.repeat(np.arange(sources, dtype=np.int64), k)
    neighbour_sources = indices.ravel()
    own_sources, neighbour_sources = (
        own_sources[neighbour_sources >= 0],
        neighbour_sources[neighbour_sources >= 0],
    )
    keys = np.unique(
        np.minimum(own_sources, neighbour_sources) * sources
        + np.maximum(own_sources, neighbour_sources)
    )
    first, second = np.divmod(keys, sources)
    return first, second
