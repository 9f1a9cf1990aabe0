"""Vectors of texts, each distinct text encoded once, and the cosine of two texts' vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.models.batching import EncoderInput
from giccs.progress import Progress

__all__ = ["cosines", "encoded"]

Batches = Callable[[Sequence[Any]], Iterator[tuple[list[int], NDArray[np.float32]]]]


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


def encoded(
    texts: Sequence[EncoderInput], encode: Batches, progress: Progress
) -> NDArray[np.float32]:
    """Return (N, D) vectors of N texts; `encode` yields (places, vectors) a batch for the distinct ones."""
    distinct = list(dict.fromkeys(texts))
    vectors: list[NDArray[np.float32] | None] = [None] * len(distinct)
    for place, vector in progress(_one_by_one(encode(distinct)), "encoding", len(distinct)):
        vectors[place] = vector
    row = {text: place for place, text in enumerate(distinct)}
    matrix = np.stack([vector for vector in vectors if vector is not None])
    return matrix if len(distinct) == len(texts) else matrix[[row[text] for text in texts]]


def _one_by_one(
    batches: Iterator[tuple[list[int], NDArray[np.float32]]],
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    for places, vectors in batches:
        yield from zip(places, vectors, strict=True)


def _row_cosines(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float64]:
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    dot = np.einsum("nd,nd->n", a64, b64)
    norms = np.sqrt(np.einsum("nd,nd->n", a64, a64) * np.einsum("nd,nd->n", b64, b64))
    usable = np.isfinite(norms) & (norms > 0)
    return np.where(usable, dot / np.where(usable, norms, 1.0), np.nan)
