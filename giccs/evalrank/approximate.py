"""Approximate ranks of positives, for backgrounds too large for an exact comparison.

An inverted index (FAISS, IVFFlat) finds most of the `DEPTH` nearest neighbours of each anchor. If the
positive is among them, its rank is its rank among them; otherwise its rank is unknown but beyond `DEPTH`, so
Hits@k is defined and MRR is bounded. Both have an error due to neighbours that the index misses. To quantify
it, the ranks of a sample of pairs are computed exactly, and the share of equal ranks is reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.evalrank.prefilter import fit_prefilter
from giccs.evalrank.ranking import Ranks, compute_ranks
from giccs.evalrank.spaces import Similarity, Space, make_space
from giccs.progress import Progress, silent

__all__ = ["DEPTH", "EXACT_UP_TO", "approximate_ranks"]

EXACT_UP_TO = 1_000_000
"""Maximum number of background samples for an exact search; an index is used for larger backgrounds."""
DEPTH = 100
N_PROBED_LISTS = 64
"""Number of index lists searched per anchor."""
N_CHECKED_PAIRS = 1000
BLOCK_SIZE = 4096

Indices = NDArray[np.intp]


def approximate_ranks(
    vectors: NDArray[np.float32],
    pairs: Indices,
    similarity: Similarity,
    seed: int = 0,
    progress: Progress = silent,
    *,
    n_probed_lists: int = N_PROBED_LISTS,
) -> tuple[Ranks, dict[str, Any]]:
    """Return ranks like those of `compute_ranks`, and details of the search.

    A positive that is not among the `DEPTH` nearest neighbours has the last rank. In the details, ``equal``
    is the share of ``checked`` pairs, sampled with `seed`, whose rank is exact or beyond `DEPTH` in both
    searches. Raises InputError if FAISS is not installed.
    """
    space = make_space(vectors, similarity)
    background = np.flatnonzero(space.usable)
    rank, pessimistic = np.zeros((2, len(pairs)), np.int64)
    values = np.full(len(pairs), np.nan)
    rankable = np.flatnonzero(space.usable[pairs].all(axis=1))
    split = fit_prefilter(space, background)
    index = _index(split.candidates(background).full, n_probed_lists, seed)
    blocks = range(0, len(rankable), BLOCK_SIZE)
    for start in progress(blocks, "ranking", len(blocks)):
        block = rankable[start : start + BLOCK_SIZE]
        queries = split.queries(pairs[block, 0]).full
        nearest = _search_nearest(index, queries, background)
        rank[block], pessimistic[block], values[block] = _rank_nearest(
            space, pairs[block], nearest, len(background)
        )
    ranks = Ranks(rank, pessimistic, values, len(background), depth=DEPTH)
    sample = np.random.default_rng(seed).permutation(rankable)[:N_CHECKED_PAIRS]
    exact = compute_ranks(vectors, pairs[sample], similarity).rank
    same = (exact == rank[sample]) | ((exact > DEPTH) & (rank[sample] > DEPTH))
    equal = float(same.mean()) if len(sample) else float("nan")
    index_name = f"FAISS IVFFlat, {index.nprobe} of {index.nlist} lists"
    return ranks, {"index": index_name, "checked": len(sample), "equal": equal}


def _index(rows: NDArray[np.float32], n_probed_lists: int, seed: int) -> Any:
    try:
        import faiss
    except ImportError:
        message = "is not installed; install it with: pip install 'giccs[csts]'"
        raise InputError(Problem("faiss", None, message)) from None
    n_lists = max(1, min(int(4 * np.sqrt(len(rows))), len(rows) // 40))
    width = rows.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, n_lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = seed
    index.cp.max_points_per_centroid = 64
    index.train(rows)
    index.add(rows)
    index.nprobe = min(n_probed_lists, n_lists)
    return index


def _search_nearest(index: Any, queries: NDArray[np.float32], background: Indices) -> Indices:
    """Return (n, DEPTH + 1) indices, nearest first, usually including the anchor; -1 is a missing
    neighbour."""
    _, columns = index.search(queries, min(DEPTH + 1, len(background)))
    return np.where(columns >= 0, background[columns], -1)


def _rank_nearest(
    space: Space, pairs: Indices, nearest: Indices, last_rank: int
) -> tuple[Any, Any, Any]:
    """Return ranks, pessimistic ranks and similarities, with the comparison of the exact search."""
    anchor, positive = pairs.T
    positive_closeness = space.closeness(anchor, positive)
    pair_index, column = np.nonzero(
        (nearest >= 0) & (nearest != anchor[:, None]) & (nearest != positive[:, None])
    )
    margin = np.empty(len(pair_index))
    for start in range(0, len(pair_index), BLOCK_SIZE):
        block = slice(start, start + BLOCK_SIZE)
        candidates = nearest[pair_index[block], column[block]]
        margin[block] = (
            space.closeness(anchor[pair_index[block]], candidates)
            - positive_closeness[pair_index[block]]
        )
    slack = space.tie_tolerance(anchor)[pair_index]
    nearer = np.bincount(pair_index[margin > slack], minlength=len(pairs))
    tied = np.bincount(pair_index[np.abs(margin) <= slack], minlength=len(pairs))
    in_reach = (nearest == positive[:, None]).any(axis=1) & (nearer < DEPTH)
    rank = np.where(in_reach, 1 + nearer, last_rank)
    return (
        rank,
        np.where(in_reach, 1 + nearer + tied, last_rank),
        space.similarity(positive_closeness),
    )
