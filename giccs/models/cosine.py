"""Similarity of texts by the cosine of their vectors, each distinct text encoded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from giccs.progress import Progress

__all__ = ["cosines"]

Batches = Callable[[Sequence[str]], Iterator[tuple[list[int], NDArray[np.float32]]]]


def cosines(
    left: Sequence[str], right: Sequence[str], encode: Batches, progress: Progress
) -> NDArray[np.float64]:
    """Return (N,) cosines of N pairs of texts; NaN where a vector is zero or not finite.

    `encode` yields (places, vectors) a batch for the distinct texts it is given.
    """
    texts = list(dict.fromkeys([*left, *right]))
    vectors: list[NDArray[np.float32] | None] = [None] * len(texts)
    for place, vector in progress(_one_by_one(encode(texts)), "encoding", len(texts)):
        vectors[place] = vector
    matrix = np.stack([vector for vector in vectors if vector is not None])
    row = {text: place for place, text in enumerate(texts)}
    return _row_cosines(matrix[[row[text] for text in left]], matrix[[row[text] for text in right]])


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
