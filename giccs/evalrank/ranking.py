"""Exact ranks of positives among the background (EvalRank, section 4.2).

The rank is 1 + the number of candidates closer to the anchor than the positive. The anchor itself is excluded
by its index; other texts with the same vector are candidates. Candidates whose closeness differs from that of
the positive by at most `spaces.TIE` are ties: they do not count as closer (optimistic rank, as in the paper's
formula), and all of them count as closer in the pessimistic rank.

The result equals that of comparing all pairs in float64, at the cost of one float32 matrix product. A float32
score decides a comparison if its distance from the score of the positive exceeds the error bound; the
remaining comparisons are made in float64. Ranks therefore do not depend on the BLAS routine, the block size
or the number of threads. Memory is limited to the product of one block of queries and one block of
candidates; anchors with several positives are multiplied once.

For any order of summation, the error of a sum of n products is less than n u / (1 - n u) times the product of
the two norms, u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). Rounding the
numbers to float32 adds 2 u; another 5 u cover the errors of float64. The products can be computed on a GPU:
the ranks are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giccs.evalrank.products import DeviceProducts, HostProducts, Products
from giccs.evalrank.spaces import Similarity, Space, make_space
from giccs.progress import Progress, silent

QUERY_BLOCK_SIZE, CANDIDATE_BLOCK_SIZE = 1024, 16_384
"""Rows and columns of a block; 64 MiB in float32."""
DEVICE_BLOCK_SIZES = 2048, 65_536
"""The same on a GPU; 512 MiB."""
UNIT_ROUNDOFF = 2.0**-24
"""Maximum relative error of rounding to float32."""
UNDERFLOW_MARGIN = 1e-30
"""Upper bound of the error caused by underflow of products in float32."""
EXACT_BLOCK_SIZE = 8192
"""Number of float64 comparisons at a time."""
MAX_PENDING_COMPARISONS = 2**18
"""Number of pending float64 comparisons at which they are executed."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = NDArray[np.intp]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of M positives."""

    rank: Ints
    """(M,) ranks from 1, ties in favour of the positive; 0 if a text of the pair has no vector."""
    pessimistic: Ints
    """(M,) ranks with ties against the positive."""
    similarity: Floats
    """(M,) similarities of anchor and positive; NaN if undefined."""
    candidates: int
    """Number of background samples with a vector, including the anchor."""
    n_exact_comparisons: int = 0
    """Number of comparisons in float64."""


def compute_ranks(
    vectors: Matrix,
    pairs: Indices,
    similarity: Similarity = "cos",
    progress: Progress = silent,
    *,
    block: tuple[int, int] | None = None,
    device: str = "",
) -> Ranks:
    """Return the rank of each positive.

    vectors: (N, D) float32 vectors of the background. Rows with a non-finite value and, with the cosine, rows
        of zeros are excluded from the candidates, and pairs with such a row have no rank.
    pairs: (M, 2) row indices of anchors and positives.
    block: numbers of queries and candidates per block, by default `block_size`.
    device: device of PyTorch for the products in float32, such as ``cuda``; by default they are NumPy's.

    >>> vectors = np.array([[1, 0], [4, 3], [3, 4], [8, 6]], np.float32)
    >>> ranks = compute_ranks(vectors, np.array([[0, 1], [0, 2], [1, 0]]))
    >>> ranks.rank.tolist(), ranks.pessimistic.tolist(), ranks.similarity.round(2).tolist()
    ([1, 3, 3], [2, 3, 3], [0.8, 0.6, 0.8])
    """
    space = make_space(vectors, similarity)
    rankable = np.flatnonzero(space.usable[pairs].all(axis=1))
    rank, pessimistic = np.zeros((2, len(pairs)), np.int64)
    values = np.full(len(pairs), np.nan)
    if len(rankable):
        search = _Search(space, pairs[rankable], device)
        block = block or block_size(device)
        for job in progress(search.jobs(*block), "ranking", search.n_jobs(*block)):
            search.count_block(*job)
        search.compare_pending()
        rank[rankable] = 1 + search.nearer
        pessimistic[rankable] = 1 + search.nearer + search.tied
        values[rankable] = space.similarity(search.closeness)
        return Ranks(rank, pessimistic, values, len(search.background), search.n_exact_comparisons)
    return Ranks(rank, pessimistic, values, int(np.count_nonzero(space.usable)))


def block_size(device: str) -> tuple[int, int]:
    """Return the numbers of queries and candidates per block; device: as of `compute_ranks`."""
    return DEVICE_BLOCK_SIZES if device else (QUERY_BLOCK_SIZE, CANDIDATE_BLOCK_SIZE)


def product_rows(space: Space, indices: Indices, last: Floats) -> Matrix:
    """Return (n, D + 1) float32 rows and a last column: ones for anchors, offsets for candidates."""
    blocks = range(0, len(indices), EXACT_BLOCK_SIZE)
    rows = [space.rows(indices[at : at + EXACT_BLOCK_SIZE]).astype(np.float32) for at in blocks]
    return np.hstack([np.concatenate(rows), last[:, None].astype(np.float32)])


def product_error(width: int, lengths: Floats, longest: float) -> Floats:
    """Return (n,) error bounds of products of `width` numbers, for anchor norms `lengths` and candidates up
    to `longest`; an offset is at most half the squared norm of the candidate.
    """
    roundings = (width + 7) * UNIT_ROUNDOFF
    relative = roundings / (1 - roundings)
    return relative * longest * (lengths + longest / 2) + UNDERFLOW_MARGIN


class _Search:
    """Blockwise search that counts the closer and the tied candidates of each pair."""

    def __init__(self, space: Space, pairs: Indices, device: str) -> None:
        self._space = space
        self._anchor, self._positive = pairs.T
        self._anchors, query = np.unique(self._anchor, return_inverse=True)
        self._by_query = np.argsort(query, kind="stable")
        self._query = query[self._by_query]
        usable = np.flatnonzero(space.usable)
        # sorted by norm: the error bound of a block depends on the largest norm in it
        self.background = usable[np.argsort(space.lengths[usable], kind="stable")]
        self._column = np.full(len(space.usable), -1)
        self._column[self.background] = np.arange(len(self.background))
        queries = product_rows(space, self._anchors, np.ones(len(self._anchors)))
        self._width = queries.shape[1]
        self._products: Products = (
            DeviceProducts(queries, device) if device else HostProducts(queries)
        )
        self.closeness = self._closeness(self._anchor, self._positive)
        self._low, self._high = self._tie_bounds()
        self.nearer, self.tied = np.zeros((2, len(pairs)), np.int64)
        self.n_exact_comparisons = 0
        self._pending: list[tuple[Indices, Indices]] = []
        self._n_pending = 0

    def n_jobs(self, rows: int, columns: int) -> int:
        """Return the number of blocks."""
        return -(-len(self._anchors) // rows) * -(-len(self.background) // columns)

    def jobs(self, rows: int, columns: int) -> Iterator[tuple[slice, int, Matrix]]:
        """Yield the anchors, the first candidate and the candidate rows of each block."""
        for start in range(0, len(self.background), columns):
            indices = self.background[start : start + columns]
            candidates = product_rows(self._space, indices, self._space.offsets(indices))
            for query_start in range(0, len(self._anchors), rows):
                yield (
                    slice(query_start, min(query_start + rows, len(self._anchors))),
                    start,
                    candidates,
                )

    def count_block(self, block: slice, start: int, candidates: Matrix) -> None:
        """Add the counts of a block of anchors and a block of candidates."""
        positions = slice(*np.searchsorted(self._query, [block.start, block.stop]))
        pairs, rows = self._by_query[positions], self._query[positions]
        longest = self._space.lengths[self.background[start + len(candidates) - 1]]
        low, high = self._limits(pairs, longest)
        own = self._column[self._anchors[rows]] - start
        n_nearer, undecided, columns = self._products.compare(rows, own, candidates, low, high)
        self.nearer[pairs] += n_nearer
        for at in range(0, len(columns), MAX_PENDING_COMPARISONS):
            part = slice(at, at + MAX_PENDING_COMPARISONS)
            self._pending.append((pairs[undecided[part]], start + columns[part]))
            self._n_pending += len(columns[part])
            if self._n_pending >= MAX_PENDING_COMPARISONS:
                self.compare_pending()

    def _limits(self, pairs: Indices, longest: float) -> tuple[Matrix, Matrix]:
        """Return the scores below and above which a candidate is certainly farther and closer."""
        lengths = self._space.lengths[self._anchor[pairs]]
        error = product_error(self._width, lengths, longest)
        with np.errstate(over="ignore"):  # infinite limits decide no comparison
            low = (self._low[pairs] - error).astype(np.float32)
            high = (self._high[pairs] + error).astype(np.float32)
        return np.nextafter(low, np.float32(-np.inf)), np.nextafter(high, np.float32(np.inf))

    def compare_pending(self) -> None:
        """Execute the deferred comparisons in float64."""
        if not self._pending:
            return
        pair = np.concatenate([pairs for pairs, _ in self._pending])
        candidate = self.background[np.concatenate([columns for _, columns in self._pending])]
        self._pending, self._n_pending = [], 0
        is_other = (candidate != self._positive[pair]) & (candidate != self._anchor[pair])
        pair, candidate = pair[is_other], candidate[is_other]
        margin = self._closeness(self._anchor[pair], candidate) - self.closeness[pair]
        slack = self._space.tie_tolerance(self._anchor[pair])
        m = len(self.nearer)
        self.nearer += np.bincount(pair[margin > slack], minlength=m)
        self.tied += np.bincount(pair[np.abs(margin) <= slack], minlength=m)
        self.n_exact_comparisons += len(pair)

    def _tie_bounds(self) -> tuple[Floats, Floats]:
        """Return the scores between which a candidate may tie, extended by the float64 error."""
        slack = self._space.tie_tolerance(self._anchor)
        low, high = (
            self._space.score(self.closeness + tie, self._anchor) for tie in (-slack, slack)
        )
        lengths = self._space.lengths[self._anchor] + self._space.lengths[self._positive]
        error = 2.0**-50 * (self._width + 8) * lengths**2
        return low - error, high + error

    def _closeness(self, anchors: Indices, candidates: Indices) -> Floats:
        steps = range(0, len(anchors), EXACT_BLOCK_SIZE)
        blocks = (slice(start, start + EXACT_BLOCK_SIZE) for start in steps)
        block_values = (
            self._space.closeness(anchors[block], candidates[block]) for block in blocks
        )
        return np.concatenate([np.empty(0), *block_values])
