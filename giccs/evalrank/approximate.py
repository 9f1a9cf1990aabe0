"""At which rank is a positive, roughly, where the background is too large for all comparisons?

An inverted index (FAISS, IVFFlat) finds most of the nearest `DEPTH` of each anchor. A positive among them
has the rank that it has there; of another it is only known that it was not found, so that Hits@k stays
defined and MRR has bounds. Both are off by what the index misses: ranks of a sample of pairs are computed
exactly, and the share that is equal is reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.evalrank.coarse import split_of
from giccs.evalrank.ranking import Ranks, ranks_of
from giccs.evalrank.spaces import Similarity, Space, space_of
from giccs.progress import Progress, silent

__all__ = ["DEPTH", "EXACT_UP_TO", "approximate_ranks"]

EXACT_UP_TO = 1_000_000
"""Background samples; with more of them an index is searched."""
DEPTH = 100
PROBED = 64
"""Lists of the index that are searched for an anchor."""
CHECKED = 1000
AT_ONCE = 4096

Places = NDArray[np.intp]


def approximate_ranks(
    vectors: NDArray[np.float32],
    pairs: Places,
    similarity: Similarity,
    seed: int = 0,
    progress: Progress = silent,
    *,
    probed: int = PROBED,
) -> tuple[Ranks, dict[str, Any]]:
    """Return ranks as `ranks_of` does, and how they were found; InputError where FAISS is not installed.

    A positive that is not among the nearest `DEPTH` has the last rank of all. In the facts, ``equal`` is the
    share of ``checked`` pairs, drawn with `seed`, whose rank is the exact one (or beyond `DEPTH` in both).
    """
    space = space_of(vectors, similarity)
    background = np.flatnonzero(space.usable)
    rank, pessimistic = np.zeros((2, len(pairs)), np.int64)
    values = np.full(len(pairs), np.nan)
    rankable = np.flatnonzero(space.usable[pairs].all(axis=1))
    split = split_of(space, background)
    index = _index(split.candidates(background).whole, probed, seed)
    blocks = range(0, len(rankable), AT_ONCE)
    for at in progress(blocks, "ranking", len(blocks)):
        own = rankable[at : at + AT_ONCE]
        queries = split.queries(pairs[own, 0]).whole
        found = _nearest(index, queries, background)
        rank[own], pessimistic[own], values[own] = _ranks_among(
            space, pairs[own], found, len(background)
        )
    ranks = Ranks(rank, pessimistic, values, len(background), depth=DEPTH)
    sample = np.random.default_rng(seed).permutation(rankable)[:CHECKED]
    exact = ranks_of(vectors, pairs[sample], similarity).rank
    same = (exact == rank[sample]) | ((exact > DEPTH) & (rank[sample] > DEPTH))
    equal = float(same.mean()) if len(sample) else float("nan")
    index_name = f"FAISS IVFFlat, {index.nprobe} of {index.nlist} lists"
    return ranks, {"index": index_name, "checked": len(sample), "equal": equal}


def _index(rows: NDArray[np.float32], probed: int, seed: int) -> Any:
    try:
        import faiss
    except ImportError:
        message = "is not installed; install it with: pip install 'giccs[csts]'"
        raise InputError(Problem("faiss", None, message)) from None
    lists = max(1, min(int(4 * np.sqrt(len(rows))), len(rows) // 40))
    width = rows.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = seed
    index.cp.max_points_per_centroid = 64
    index.train(rows)
    index.add(rows)
    index.nprobe = min(probed, lists)
    return index


def _nearest(index: Any, queries: NDArray[np.float32], background: Places) -> Places:
    """Return (n, DEPTH + 1) places, nearest first, the anchor mostly among them; -1 is none."""
    _, found = index.search(queries, min(DEPTH + 1, len(background)))
    return np.where(found >= 0, background[found], -1)


def _ranks_among(space: Space, pairs: Places, found: Places, last: int) -> tuple[Any, Any, Any]:
    """Return ranks, pessimistic ranks and similarities, by the same comparison as the exact search."""
    anchor, positive = pairs.T
    own = space.closeness(anchor, positive)
    who, column = np.nonzero(
        (found >= 0) & (found != anchor[:, None]) & (found != positive[:, None])
    )
    more = np.empty(len(who))
    for at in range(0, len(who), AT_ONCE):
        part = slice(at, at + AT_ONCE)
        candidates = found[who[part], column[part]]
        more[part] = space.closeness(anchor[who[part]], candidates) - own[who[part]]
    slack = space.slack(anchor)[who]
    nearer = np.bincount(who[more > slack], minlength=len(pairs))
    tied = np.bincount(who[np.abs(more) <= slack], minlength=len(pairs))
    here = (found == positive[:, None]).any(axis=1) & (nearer < DEPTH)
    rank = np.where(here, 1 + nearer, last)
    return rank, np.where(here, 1 + nearer + tied, last), space.similarity(own)
