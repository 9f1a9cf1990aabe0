"""Batched encoding of texts, with each distinct text encoded once, and cosines of texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.models.abilities import LimitedModel, SidedModel, VectorModel
from giccs.models.encoder_prompts import EncoderPrompt, Side
from giccs.models.model_errors import out_of_memory
from giccs.progress import Progress

FIRST = 16
LARGEST = 4096
GAIN = 1.1
"""Minimum speed-up per character to keep a larger batch."""

Matrix = NDArray[np.float32]
Batches = Callable[[Sequence[Any]], Iterator[tuple[list[int], Matrix]]]
"""Yields (indices, vectors) per batch of the given distinct texts."""
EncoderInput = str | tuple[str, str]
"""A text, or a pair of texts encoded as one input."""


class BatchSize:
    """Adaptive batch size; fixed if specified by the user, except after an out-of-memory error."""

    def __init__(self, fixed: int | None = None) -> None:
        self.size = fixed or FIRST
        self.growing = fixed is None
        self._speed = 0.0
        self._is_first = True
        """Whether the next batch is the first one of its size, which a GPU plans and runs slowly."""

    def took(self, texts: int, characters: int, seconds: float) -> None:
        """Update the size after a successful batch; incomplete batches are ignored."""
        if not self.growing or texts < self.size:
            return
        speed = characters / max(seconds, 1e-9)
        if speed < GAIN * self._speed and self._is_first:
            self._is_first = False
            return
        self._is_first = True
        if speed < GAIN * self._speed:
            self.size //= 2
            self.growing = False
        elif self.size >= LARGEST:
            self.growing = False
        else:
            self._speed = speed
            self.size *= 2

    def failed(self, error: BaseException, texts: int) -> None:
        """Halve the size after a batch of `texts` ran out of memory; raise an error for a single text."""
        if texts == 1:
            raise MemoryError("a single text does not fit into memory") from error
        self.size = texts // 2
        self.growing = False


def encode_in_batches(
    encode: Callable[[Sequence[Any]], Matrix], texts: Sequence[EncoderInput], size: BatchSize
) -> Iterator[tuple[list[int], Matrix]]:
    """Yield (indices in `texts`, their vectors) per batch, the longest texts first.

    Texts of similar length are batched together to reduce padding. With the longest first, memory runs out at
    the start or not at all.
    """
    order = sorted(range(len(texts)), key=lambda place: -input_length(texts[place]))
    done = 0
    while done < len(order):
        batch_indices = order[done : done + size.size]
        batch = [texts[index] for index in batch_indices]
        start = time.perf_counter()
        try:
            vectors = encode(batch)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            size.failed(error, len(batch))
            continue
        size.took(len(batch), sum(map(input_length, batch)), time.perf_counter() - start)
        done += len(batch)
        yield batch_indices, vectors


def input_length(text: EncoderInput) -> int:
    """Return the number of characters of a text, or of a pair of texts."""
    return len(text) if isinstance(text, str) else sum(map(len, text))


def cosines(
    left: Sequence[EncoderInput],
    right: Sequence[EncoderInput],
    encode: Batches,
    progress: Progress,
) -> NDArray[np.float64]:
    """Return (N,) cosines of N pairs of texts; NaN if a vector is zero or not finite.

    `encode` yields (indices, vectors) per batch of the given distinct texts.
    """
    vectors = encoded([*left, *right], encode, progress)
    return row_cosines(vectors[: len(left)], vectors[len(left) :])


def encoded(texts: Sequence[EncoderInput], encode: Batches, progress: Progress) -> Matrix:
    """Return (N, D) vectors of N texts; `encode` yields (indices, vectors) per batch of the distinct ones."""
    distinct = list(dict.fromkeys(texts))
    vectors: list[Matrix | None] = [None] * len(distinct)
    for index, vector in progress(_one_by_one(encode(distinct)), "encoding", len(distinct)):
        vectors[index] = vector
    row = {text: index for index, text in enumerate(distinct)}
    matrix = np.stack([vector for vector in vectors if vector is not None])
    return matrix if len(distinct) == len(texts) else matrix[[row[text] for text in texts]]


def encoded_sides(
    targets: Sequence[EncoderInput],
    candidates: Sequence[EncoderInput],
    prompt: EncoderPrompt,
    encode_after: Callable[[Side], Batches],
    progress: Progress,
) -> tuple[Matrix, Matrix]:
    """Return (N, D) vectors of N targets and (M, D) vectors of M candidates, each as its side is encoded.

    `encode_after` returns the encoder of texts of a side. A text on both sides is encoded once if they are
    encoded alike.
    """
    if prompt.is_symmetric:
        vectors = encoded([*targets, *candidates], encode_after(prompt.target), progress)
        return vectors[: len(targets)], vectors[len(targets) :]
    return (
        encoded(targets, encode_after(prompt.target), progress),
        encoded(candidates, encode_after(prompt.candidate), progress),
    )


def _one_by_one(
    batches: Iterator[tuple[list[int], Matrix]],
) -> Iterator[tuple[int, Matrix]]:
    for batch_indices, vectors in batches:
        yield from zip(batch_indices, vectors, strict=True)


def side_vectors(
    model: VectorModel, targets: Sequence[Any], candidates: Sequence[Any], progress: Progress
) -> tuple[Matrix, Matrix]:
    """Return (N, D) vectors of N targets and (M, D) vectors of M candidates of any vector model."""
    if isinstance(model, SidedModel):
        return model.side_vectors(targets, candidates, progress)
    vectors = model.vectors([*targets, *candidates], progress)
    return vectors[: len(targets)], vectors[len(targets) :]


def fitting_pairs(
    model: Any, targets: Sequence[Any], candidates: Sequence[Any], progress: Progress
) -> NDArray[np.bool_]:
    """Return (N,) whether a model reads both inputs of each pair completely; True if its limit is
    unknown."""
    if isinstance(model, LimitedModel):
        return model.fits(targets, candidates, progress)
    return np.ones(len(targets), dtype=np.bool_)


def row_cosines(a: Matrix, b: Matrix) -> NDArray[np.float64]:
    """Return (N,) cosines of the rows of two (N, D) arrays; NaN if a vector is zero or not finite."""
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    dot = np.einsum("nd,nd->n", a64, b64)
    norms = np.sqrt(np.einsum("nd,nd->n", a64, a64) * np.einsum("nd,nd->n", b64, b64))
    usable = np.isfinite(norms) & (norms > 0)
    return np.where(usable, dot / np.where(usable, norms, 1.0), np.nan)


def row_dots(a: Matrix, b: Matrix) -> NDArray[np.float64]:
    """Return (N,) dot products of the rows of two (N, D) arrays; NaN if a vector has NaN."""
    dots: NDArray[np.float64] = np.einsum("nd,nd->n", a.astype(np.float64), b.astype(np.float64))
    return dots


def row_distances(a: Matrix, b: Matrix) -> NDArray[np.float64]:
    """Return (N,) Euclidean distances of the rows of two (N, D) arrays, negated: higher is more similar."""
    distances: NDArray[np.float64] = np.linalg.norm(a.astype(np.float64) - b, axis=1)
    return -distances


def row_manhattan_distances(a: Matrix, b: Matrix) -> NDArray[np.float64]:
    """Return (N,) Manhattan distances of the rows of two (N, D) arrays, negated."""
    distances: NDArray[np.float64] = np.abs(a.astype(np.float64) - b).sum(axis=1)
    return -distances


SIMILARITIES: Mapping[str, Callable[[NDArray[Any], NDArray[Any]], NDArray[np.float64]]] = {
    "cosine": row_cosines,
    "dot": row_dots,
    "euclidean": row_distances,
    "manhattan": row_manhattan_distances,
}
"""Similarities with which sentence-transformers saves encoders; distances are negative, as there."""


def vector_similarity(model: VectorModel) -> str:
    """Return the name of the similarity of a model's vectors: that of `SIMILARITIES` that it states, or the
    cosine."""
    stated = str(model.identity.get("similarity"))
    return stated if stated in SIMILARITIES else "cosine"


def in_one_batch(vectors: Callable[[Sequence[str]], Matrix]) -> Batches:
    """Return an encoder that yields all indices and vectors at once."""

    def batches(texts: Sequence[str]) -> Iterator[tuple[list[int], Matrix]]:
        yield list(range(len(texts))), vectors(texts)

    return batches
