"""At which rank is a positive among the background (EvalRank, section 4.2)?

rank = 1 + the number of candidates that are nearer to the anchor than the positive is. The anchor itself, by
its place, is no candidate; another text with the same vector is one. Ties: a candidate whose closeness
differs from the positive's by at most `spaces.TIE` is not nearer (optimistic, as the formula has it); the
pessimistic rank counts all of them before the positive.

The result is that of comparing all pairs in float64, and costs less than one float32 matrix product: a
candidate whose score there, or a bound on it, is farther from the positive's than both can be off is
settled by it (see `coarse`); all others are settled in float64. So it does not matter which routine
computed what, how wide a block was, or how many threads there were. Of products no more than a block of
queries by a block of candidates is held at a time; anchors with more than one positive are multiplied once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giccs.evalrank.coarse import ProductRows, fit_prefilter
from giccs.evalrank.spaces import Similarity, Space, make_space
from giccs.progress import Progress, silent

__all__ = ["QUERY_BLOCK_SIZE", "Ranks", "compute_ranks"]

QUERY_BLOCK_SIZE, CANDIDATE_BLOCK_SIZE = 1024, 16_384
"""Rows and columns of a block: 64 MiB of float32."""
MAX_EXACT_CANDIDATES = 128
"""Candidates of a block that are settled in float64 rather than by a product of whole rows."""
EXACT_BLOCK_SIZE = 8192
"""Comparisons in float64 at a time."""
MAX_PENDING_COMPARISONS = 2**18
"""Comparisons that wait for that, at most and those of one pair."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = NDArray[np.intp]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where M positives stand."""

    rank: Ints
    """(M,) from 1, ties in favour of the positive; 0 where a text of the pair has no vector."""
    pessimistic: Ints
    """(M,) likewise, ties against it."""
    similarity: Floats
    """(M,) of anchor and positive; NaN where there is none."""
    candidates: int
    """Background samples with a vector, the anchor included."""
    n_exact_comparisons: int = 0
    """Comparisons made in float64."""
    depth: int | None = None
    """Where only so many nearest were looked at: a rank beyond stands as the number of candidates."""


def compute_ranks(
    vectors: Matrix,
    pairs: Indices,
    similarity: Similarity = "cos",
    progress: Progress = silent,
    *,
    block: tuple[int, int] = (QUERY_BLOCK_SIZE, CANDIDATE_BLOCK_SIZE),
) -> Ranks:
    """Return the rank of each positive.

    vectors: (N, D) float32, the background. A row with a number that is not finite has no vector, nor, under
    the cosine, has a row of zeros: it is no candidate, and a pair with it has no rank.
    pairs: (M, 2) places of anchors and positives in it. block: queries and candidates at a time.

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
        search = _Search(space, pairs[rankable])
        for job in progress(search.jobs(*block), "ranking", search.n_jobs(*block)):
            search.count_block(*job)
        rank[rankable] = 1 + search.nearer
        pessimistic[rankable] = 1 + search.nearer + search.tied
        values[rankable] = space.similarity(search.closeness)
        return Ranks(rank, pessimistic, values, len(search.background), search.n_exact_comparisons)
    return Ranks(rank, pessimistic, values, int(np.count_nonzero(space.usable)))


class _Search:
    """Counts for each pair which candidates are nearer and which tie, block by block."""

    def __init__(self, space: Space, pairs: Indices) -> None:
        self._space = space
        self._anchor, self._positive = pairs.T
        self._anchors, query = np.unique(self._anchor, return_inverse=True)
        self._by_query = np.argsort(query, kind="stable")
        self._query = query[self._by_query]
        usable = np.flatnonzero(space.usable)
        # candidates of like length share a block, so that its bound is not that of the longest of all
        self.background = usable[np.argsort(space.lengths[usable], kind="stable")]
        self._column = np.full(len(space.usable), -1)
        self._column[self.background] = np.arange(len(self.background))
        self._prefilter = fit_prefilter(space, self.background)
        self._queries = self._prefilter.queries(self._anchors)
        self._n_unresolved, self._n_prefiltered = 0, 0
        self.closeness = self._closeness(self._anchor, self._positive)
        self._low, self._high = self._tie_bounds()
        self.nearer, self.tied = np.zeros((2, len(pairs)), np.int64)
        self.n_exact_comparisons = 0
        self._buffer = np.empty(0, np.float32)
        self._pending: list[tuple[int, Indices]] = []
        self._n_pending = 0

    def n_jobs(self, rows: int, columns: int) -> int:
        """Return how many jobs there are."""
        return -(-len(self._anchors) // rows) * -(-len(self.background) // columns)

    def jobs(self, rows: int, columns: int) -> Iterator[tuple[slice, int, ProductRows]]:
        """Yield each block: its anchors, its first candidate, and the candidates' rows."""
        for start in range(0, len(self.background), columns):
            candidates = self._prefilter.candidates(self.background[start : start + columns])
            for query_start in range(0, len(self._anchors), rows):
                yield (
                    slice(query_start, min(query_start + rows, len(self._anchors))),
                    start,
                    candidates,
                )

    def count_block(self, block: slice, start: int, candidates: ProductRows) -> None:
        """Add what a block of anchors finds in a block of candidates."""
        positions = slice(*np.searchsorted(self._query, [block.start, block.stop]))
        pairs, rows = self._by_query[positions], self._query[positions]
        longest = self._space.lengths[self.background[start + len(candidates.full) - 1]]
        heads = self._queries.heads, candidates.heads
        if (
            heads[0] is not None
            and heads[1] is not None
            and self._n_unresolved <= self._n_prefiltered / 2
        ):
            scores = self._scores(heads[0], rows, heads[1], start)
            low, _ = self._limits(pairs, self._prefilter.head_error, longest)
            unresolved = self._rule_out(pairs, scores, low, start)
            self._n_unresolved += int(np.count_nonzero(unresolved))
            self._n_prefiltered += len(unresolved)
            pairs, rows = pairs[unresolved], rows[unresolved]
        if len(pairs):
            scores = self._scores(self._queries.full, rows, candidates.full, start)
            low, high = self._limits(pairs, self._prefilter.full_error, longest)
            self._compare(pairs, scores, low, high, start)
        self._compare_pending()

    def _scores(
        self, queries: Matrix, rows: Indices, candidates: Matrix, start: int
    ) -> Iterator[Matrix]:
        """Return the scores of a pair's candidates for each pair; that of the anchor itself is -inf."""
        distinct, at = np.unique(rows, return_inverse=True)
        size = len(distinct) * len(candidates)
        if len(self._buffer) < size:  # one piece of memory for all blocks
            self._buffer = np.empty(size, np.float32)
        scores = self._buffer[:size].reshape(len(distinct), len(candidates))
        np.matmul(queries[distinct], candidates.T, out=scores)
        column = self._column[self._anchors[distinct]] - start
        inside = np.flatnonzero((column >= 0) & (column < len(candidates)))
        scores[inside, column[inside]] = -np.inf
        return (scores[row] for row in at)

    def _limits(self, pairs: Indices, relative: float, longest: float) -> tuple[Matrix, Matrix]:
        """Return the scores below and above which a candidate is farther and nearer for sure."""
        lengths = self._space.lengths[self._anchor[pairs]]
        error = self._prefilter.error(relative, lengths, longest)
        with np.errstate(over="ignore"):  # then every score lies between them
            low = (self._low[pairs] - error).astype(np.float32)
            high = (self._high[pairs] + error).astype(np.float32)
        return np.nextafter(low, np.float32(-np.inf)), np.nextafter(high, np.float32(np.inf))

    def _rule_out(
        self, pairs: Indices, scores: Iterator[Matrix], low: Matrix, start: int
    ) -> NDArray[np.bool_]:
        """Leave open what a bound does not rule out; return (n,) for which pairs that is too much."""
        unresolved = np.zeros(len(pairs), np.bool_)
        for index, (pair, pair_scores, min_score) in enumerate(
            zip(pairs, scores, low, strict=True)
        ):
            possible = pair_scores >= min_score
            n_possible = np.count_nonzero(possible)
            unresolved[index] = n_possible > MAX_EXACT_CANDIDATES
            if 0 < n_possible <= MAX_EXACT_CANDIDATES:
                self._defer(pair, start + np.flatnonzero(possible))
        return unresolved

    def _compare(
        self,
        pairs: Indices,
        scores: Iterator[Matrix],
        low: Matrix,
        high: Matrix,
        start: int,
    ) -> None:
        """Count who is nearer for sure; leave open who may be, or may tie."""
        for pair, pair_scores, min_score, max_score in zip(pairs, scores, low, high, strict=True):
            n_nearer = np.count_nonzero(pair_scores > max_score)
            self.nearer[pair] += n_nearer
            if np.count_nonzero(pair_scores >= min_score) > n_nearer:
                between = np.flatnonzero((pair_scores >= min_score) & (pair_scores <= max_score))
                self._defer(pair, start + between)

    def _defer(self, pair: int, columns: Indices) -> None:
        self._pending.append((pair, columns))
        self._n_pending += len(columns)
        if self._n_pending > MAX_PENDING_COMPARISONS:
            self._compare_pending()

    def _compare_pending(self) -> None:
        """Compare in float64 what the scores left open."""
        if not self._pending:
            return
        pair = np.repeat(
            [pair for pair, _ in self._pending], [len(deferred) for _, deferred in self._pending]
        )
        candidate = self.background[np.concatenate([deferred for _, deferred in self._pending])]
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
        """Return between which scores a candidate ties, with what float64 itself may be off."""
        slack = self._space.tie_tolerance(self._anchor)
        low, high = (
            self._space.score(self.closeness + tie, self._anchor) for tie in (-slack, slack)
        )
        lengths = self._space.lengths[self._anchor] + self._space.lengths[self._positive]
        error = 2.0**-50 * (self._queries.full.shape[1] + 8) * lengths**2
        return low - error, high + error

    def _closeness(self, anchors: Indices, candidates: Indices) -> Floats:
        steps = range(0, len(anchors), EXACT_BLOCK_SIZE)
        blocks = (slice(start, start + EXACT_BLOCK_SIZE) for start in steps)
        block_values = (
            self._space.closeness(anchors[block], candidates[block]) for block in blocks
        )
        return np.concatenate([np.empty(0), *block_values])
