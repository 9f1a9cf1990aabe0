"""Selection of candidate sentence pairs for conditional similarity from captions.

Deshpande et al. (2023), section 2.2.1 and appendix A.2: each source of captions (in the paper, an image) is
paired with its k nearest sources, and each caption with each caption of the other source. Pairs that are too
similar, too dissimilar, too short or of too different lengths are removed.

Cost of a million captions, five for each of S = 200,000 sources, with k = 64 as for COCO and embeddings of
384
numbers: 200,000 x 64 = 12.8 million neighbours are 6.4 to 12.8 million unordered pairs of sources, and up to
320 million pairs of captions. They are processed in chunks of about 250,000. Memory holds the embeddings (1.5
GB for the captions, 0.3 GB for the sources), the captions and their words (0.4 GB) and the pairs of sources
(0.2 GB; 0.8 GB during sorting). The neighbours require 2 x 200,000² x 384 = 3.1e13 operations, the distances
of the texts 2 x 3.2e8 x 384 = 2.5e11.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from bws.base.text import write_with
from giccs.csts.mining.captions import Captions
from giccs.csts.mining.filters import FILTERS, Bags, ious, passes, ratios
from giccs.csts.mining.thresholds import Thresholds
from giccs.progress import Progress, silent

CHUNK = 250_000
"""Number of caption pairs processed at a time."""

Indices = NDArray[np.int64]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Captions and pairs of neighbouring sources."""

    captions: Captions
    texts: Matrix
    """(N, D) embeddings of the captions, of unit length."""
    bags: Bags
    first: Indices
    """(P,) the source of each pair that comes first in the file; sorted."""
    second: Indices
    """(P,) the other source of each pair."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """M pairs of captions with their measures."""

    first: Indices
    """(M,) the caption of the source that comes first in the file."""
    second: Indices
    """(M,) the caption of the other source."""
    iou: NDArray[np.float64]
    d_text: NDArray[np.float64]
    """To six decimals, the precision of float32 embeddings."""
    ratio: NDArray[np.float64]
    length: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.first)

    def select(self, indices: Indices) -> Pairs:
        """Return the selected pairs."""
        return Pairs(*(getattr(self, each.name)[indices] for each in fields(self)))


@dataclass
class Tally:
    """Counts of accepted and rejected pairs of captions."""

    candidates: int = 0
    in_order: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FILTERS, 0))
    """Number of pairs rejected by each filter among those that passed the preceding filters."""
    rejected_only_by: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FILTERS, 0))
    """Number of pairs rejected by each filter among all candidates."""
    repeated: int = 0
    """Number of passing pairs skipped because other sources have the same two sentences."""
    passed: int = 0

    def count(self, passing: NDArray[np.bool_]) -> None:
        """Add a chunk: (4, M) whether each pair passes each filter."""
        still = np.ones(passing.shape[1], dtype=bool)
        self.candidates += len(still)
        for name, good in zip(FILTERS, passing, strict=True):
            self.rejected_only_by[name] += int((~good).sum())
            self.in_order[name] += int((still & ~good).sum())
            still &= good


def mine(
    candidates: Candidates, thresholds: Thresholds, tally: Tally, progress: Progress = silent
) -> Iterator[Pairs]:
    """Yield the pairs of captions that pass every filter, chunk by chunk, and count in `tally`.

    Only the first of several pairs with the same two sentences, in either order, is kept.
    """
    identity, shared = _text_identity(candidates.captions.texts)
    seen: set[int] = set()
    chunks = list(_chunks(candidates))
    for chunk in progress(chunks, "filters", len(chunks)):
        pairs = _measured(candidates, chunk)
        passing = passes(thresholds, pairs.length, pairs.ratio, pairs.iou, pairs.d_text)
        tally.count(passing)
        pairs = pairs.select(np.flatnonzero(passing.all(axis=0)))
        new = _new(pairs, identity, shared, seen)
        tally.repeated += int((~new).sum())
        tally.passed += int(new.sum())
        yield pairs.select(np.flatnonzero(new))


def _chunks(candidates: Candidates) -> Iterator[slice]:
    """Yield groups of source pairs with about `CHUNK` caption pairs each."""
    counts = candidates.captions.counts
    ends = np.cumsum(counts[candidates.first] * counts[candidates.second])
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        yield slice(start, stop)
        start = stop


def _measured(candidates: Candidates, chunk: slice) -> Pairs:
    firsts, seconds, distances = [], [], []
    first, second = candidates.first[chunk], candidates.second[chunk]
    starts = candidates.captions.starts
    sources, begins = np.unique(first, return_index=True)
    for source, partners in zip(sources, np.split(second, begins[1:]), strict=True):
        source_captions = np.arange(starts[source], starts[source + 1])
        partner_captions = _ranges(starts[partners], starts[partners + 1])
        firsts.append(np.repeat(source_captions, len(partner_captions)))
        seconds.append(np.tile(partner_captions, len(source_captions)))
        cosines = candidates.texts[source_captions] @ candidates.texts[partner_captions].T
        distances.append(cosines.ravel())
    a, b = np.concatenate(firsts), np.concatenate(seconds)
    d_text = np.round(1 - np.concatenate(distances).astype(np.float64), 6)
    bags = candidates.bags
    length = np.minimum(bags.length[a], bags.length[b])
    return Pairs(a, b, ious(bags, a, b), np.maximum(d_text, 0), ratios(bags, a, b), length)


def _ranges(begins: Indices, ends: Indices) -> Indices:
    """Return the concatenated ranges from `begins` to `ends`.

    >>> _ranges(np.array([3, 10]), np.array([5, 13])).tolist()
    [3, 4, 10, 11, 12]
    """
    counts = ends - begins
    before = np.cumsum(counts) - counts
    numbers: Indices = np.arange(counts.sum()) + np.repeat(begins - before, counts)
    return numbers


def _text_identity(texts: tuple[str, ...]) -> tuple[Indices, NDArray[np.bool_]]:
    """Return (N,) identifiers, equal for equal texts, and whether each text occurs more than once."""
    numbers: dict[str, int] = {}
    each = (numbers.setdefault(text, len(numbers)) for text in texts)
    identity = np.fromiter(each, dtype=np.int64, count=len(texts))
    return identity, np.bincount(identity)[identity] > 1


def _new(
    pairs: Pairs, identity: Indices, shared: NDArray[np.bool_], seen: set[int]
) -> NDArray[np.bool_]:
    """Return which pairs have new pairs of sentences, and remember these.

    Source pairs are distinct. Sentences can recur only if one of them has two sources, so only those are
    remembered.
    """
    new = np.ones(len(pairs), dtype=bool)
    a, b = identity[pairs.first], identity[pairs.second]
    keys = np.minimum(a, b) * len(identity) + np.maximum(a, b)
    for index in np.flatnonzero(shared[pairs.first] | shared[pairs.second]).tolist():
        key = int(keys[index])
        new[index] = key not in seen
        seen.add(key)
    return new


def sampled(chunks: Iterable[Pairs], number: int, seed: int = 0) -> Pairs:
    """Return a random sample of `number` pairs without replacement, in their original order.

    Each pair gets a random key and the smallest keys are kept, so that at most `number` pairs are in memory.
    All pairs are returned if there are no more.
    """
    if number < 1:
        raise ValueError(f"number is {number}; expected 1 or more")
    rng = np.random.Generator(np.random.PCG64(seed))
    sample, draws = _none(), np.empty(0)
    for chunk in chunks:
        sample = _joined(sample, chunk)
        draws = np.concatenate([draws, rng.random(len(chunk))])
        if len(sample) > number:
            least = np.sort(np.argpartition(draws, number - 1)[:number])
            sample, draws = sample.select(least), draws[least]
    return sample


def _none() -> Pairs:
    no_indices, real = np.empty(0, np.int64), np.empty(0, np.float64)
    return Pairs(no_indices, no_indices, real, real, real, np.empty(0, np.int32))


def _joined(pairs: Pairs, new_pairs: Pairs) -> Pairs:
    names = [each.name for each in fields(Pairs)]
    return Pairs(*(np.concatenate([getattr(pairs, n), getattr(new_pairs, n)]) for n in names))


def write_pairs(
    path: str | os.PathLike[str], candidates: Candidates, chunks: Iterable[Pairs]
) -> int:
    """Write pairs to a CSV file chunk by chunk, atomically; return their number.

    The columns: sentence1, sentence2, source1, source2, iou, d_text, ratio, length.
    """
    import polars as pl

    captions = candidates.captions
    texts = pl.Series(captions.texts, dtype=pl.String)
    names = pl.Series(captions.sources, dtype=pl.String)
    owner = np.repeat(np.arange(len(captions.sources)), captions.counts)
    n_written = 0

    def write(temporary: str) -> None:
        nonlocal n_written
        with open(temporary, "wb") as file:
            for header, pairs in _first_marked(chunks):
                frame = pl.DataFrame(
                    {
                        "sentence1": texts.gather(pairs.first),
                        "sentence2": texts.gather(pairs.second),
                        "source1": names.gather(owner[pairs.first]),
                        "source2": names.gather(owner[pairs.second]),
                        "iou": pairs.iou,
                        "d_text": pairs.d_text,
                        "ratio": pairs.ratio,
                        "length": pairs.length,
                    }
                )
                frame.write_csv(file, include_header=header)
                n_written += len(pairs)

    write_with(path, write)
    return n_written


def _first_marked(chunks: Iterable[Pairs]) -> Iterator[tuple[bool, Pairs]]:
    """Yield the chunks with a flag for the first; an empty first chunk if there are none."""
    header = True
    for chunk in chunks:
        yield header, chunk
        header = False
    if header:
        yield True, _none()
