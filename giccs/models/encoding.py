"""Vectors of texts in batches, each distinct text encoded once, and cosines of texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.progress import Progress

__all__ = [
    "BatchSize",
    "EncoderInput",
    "cosines",
    "encode_in_batches",
    "encoded",
    "in_one_batch",
    "out_of_memory",
]

FIRST = 16
LARGEST = 4096
GAIN = 1.1
"""A larger batch must be this much faster per character to be kept."""

Matrix = NDArray[np.float32]
Batches = Callable[[Sequence[Any]], Iterator[tuple[list[int], Matrix]]]
"""Yields (places, vectors) per batch of the distinct texts that it is given."""
EncoderInput = str | tuple[str, str]
"""A text, or a pair of texts that is encoded as one input."""


class BatchSize:
    """The size of the next batch; fixed where the user said one, except that memory has the last word."""

    def __init__(self, fixed: int | None = None) -> None:
        self.size = fixed or FIRST
        self.growing = fixed is None
        self._speed = 0.0

    def took(self, texts: int, characters: int, seconds: float) -> None:
        """Learn from a batch that went through; one that was not full teaches nothing."""
        if not self.growing or texts < self.size:
            return
        speed = characters / max(seconds, 1e-9)
        if speed < GAIN * self._speed:
            self.size //= 2
            self.growing = False
        elif self.size >= LARGEST:
            self.growing = False
        else:
            self._speed = speed
            self.size *= 2

    def failed(self, error: BaseException, texts: int) -> None:
        """Halve after a batch of `texts` that did not fit into memory; one text alone is an error."""
        if texts == 1:
            raise MemoryError("one text alone does not fit into memory") from error
        self.size = texts // 2
        self.growing = False


def encode_in_batches(
    encode: Callable[[Sequence[Any]], Matrix], texts: Sequence[EncoderInput], size: BatchSize
) -> Iterator[tuple[list[int], Matrix]]:
    """Yield (places in `texts`, their vectors) a batch, the longest texts first.

    Texts of one length go together, so that little of a batch is padding; with the longest first,
    memory ends at the start or not at all.
    """
    order = sorted(range(len(texts)), key=lambda place: -_length(texts[place]))
    done = 0
    while done < len(order):
        places = order[done : done + size.size]
        batch = [texts[place] for place in places]
        start = time.perf_counter()
        try:
            vectors = encode(batch)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            size.failed(error, len(batch))
            continue
        size.took(len(batch), sum(map(_length, batch)), time.perf_counter() - start)
        done += len(batch)
        yield places, vectors


def _length(text: EncoderInput) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def out_of_memory(error: BaseException) -> bool:
    """Tell a lack of memory from other faults; torch reports the CPU's as a plain RuntimeError."""
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in words)


def cosines(
    left: Sequence[EncoderInput],
    right: Sequence[EncoderInput],
    encode: Batches,
    progress: Progress,
) -> NDArray[np.float64]:
    """Return (N,) cosines of N pairs of texts; NaN where a vector is zero or not finite.

    `encode` yields (places, vectors) a batch for the distinct texts it is given.
    """
    vectors = encoded([*left, *right], encode, progress)
    return _row_cosines(vectors[: len(left)], vectors[len(left) :])


def encoded(texts: Sequence[EncoderInput], encode: Batches, progress: Progress) -> Matrix:
    """Return (N, D) vectors of N texts; `encode` yields (places, vectors) a batch for the distinct ones."""
    distinct = list(dict.fromkeys(texts))
    vectors: list[Matrix | None] = [None] * len(distinct)
    for place, vector in progress(_one_by_one(encode(distinct)), "encoding", len(distinct)):
        vectors[place] = vector
    row = {text: place for place, text in enumerate(distinct)}
    matrix = np.stack([vector for vector in vectors if vector is not None])
    return matrix if len(distinct) == len(texts) else matrix[[row[text] for text in texts]]


def _one_by_one(
    batches: Iterator[tuple[list[int], Matrix]],
) -> Iterator[tuple[int, Matrix]]:
    for places, vectors in batches:
        yield from zip(places, vectors, strict=True)


def _row_cosines(a: Matrix, b: Matrix) -> NDArray[np.float64]:
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    dot = np.einsum("nd,nd->n", a64, b64)
    norms = np.sqrt(np.einsum("nd,nd->n", a64, a64) * np.einsum("nd,nd->n", b64, b64))
    usable = np.isfinite(norms) & (norms > 0)
    return np.where(usable, dot / np.where(usable, norms, 1.0), np.nan)


def in_one_batch(vectors: Callable[[Sequence[str]], Matrix]) -> Batches:
    """Return what yields the places of all texts and their vectors, once."""

    def batches(texts: Sequence[str]) -> Iterator[tuple[list[int], Matrix]]:
        yield list(range(len(texts))), vectors(texts)

    return batches
