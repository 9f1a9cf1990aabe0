"""Vectors with fewer dimensions, or in a lower precision.

Truncation keeps the first dimensions, which Matryoshka models are trained for (Kusupati et al. 2022). Vectors
of length 1 are normalised again afterwards. Quantisation follows `quantize_embeddings` of
sentence-transformers, and mteb: int8 divides the range of each dimension into 255 steps of equal size, from
-128 to 127; binary is 1 for positive numbers and 0 for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.models.abilities import (
    LimitedModel,
    PairModel,
    ServedModel,
    SidedModel,
    TextPairModel,
    VectorModel,
)
from giccs.models.encoding import SIMILARITIES, fitting_pairs, side_vectors, vector_similarity
from giccs.progress import Progress

Vectors = NDArray[np.float32]
CALIBRATION = "int8, ranges of the encoded texts"
UNIT_TOLERANCE = 0.01
"""Maximum difference of the length of normalised vectors from 1, also in half precision."""


class CompressedModel(PairModel, SidedModel, TextPairModel, LimitedModel):
    """A model whose vectors are truncated and then quantised; the similarity remains that of the model.

    The ranges of int8 are those of all texts of one call, so that the two sides of a pair share them.
    """

    name: str

    def __init__(self, model: VectorModel, dimensions: int | None, embeddings: str) -> None:
        self.name = model.name
        self._model = model
        self._dimensions = dimensions
        self._embeddings = embeddings

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the vectors."""
        settings: dict[str, Any] = {**self._model.identity, "similarity": self._similarity}
        if self._dimensions is not None:
            settings["dimensions"] = self._dimensions
        if self._embeddings != "float32":
            settings["embeddings"] = CALIBRATION if self._embeddings == "int8" else self._embeddings
        return settings

    def environment(self) -> Mapping[str, Any]:
        """Return the environment of the model."""
        return self._model.environment()

    def separates_pairs(self) -> bool:
        """Return whether the tokenizer of the model puts a separator between two texts."""
        return isinstance(self._model, TextPairModel) and self._model.separates_pairs()

    def is_symmetric(self) -> bool:
        """Return whether the model encodes both sides alike."""
        return not isinstance(self._model, SidedModel) or self._model.is_symmetric()

    def pair_scores(
        self, left: Sequence[Any], right: Sequence[Any], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the similarity of each pair."""
        return SIMILARITIES[self._similarity](*self.side_vectors(left, right, progress))

    def vectors(self, texts: Sequence[Any], progress: Progress) -> Vectors:
        """Return (N, K) vectors of N texts."""
        return self._compressed(self._model.vectors(texts, progress))

    def side_vectors(
        self,
        targets: Sequence[Any],
        candidates: Sequence[Any],
        progress: Progress,
    ) -> tuple[Vectors, Vectors]:
        """Return (N, K) and (M, K) vectors of targets and candidates."""
        both = np.concatenate(side_vectors(self._model, targets, candidates, progress))
        vectors = self._compressed(both)
        return vectors[: len(targets)], vectors[len(targets) :]

    def fits(
        self, targets: Sequence[Any], candidates: Sequence[Any], progress: Progress
    ) -> NDArray[np.bool_]:
        """Return (N,) whether the model reads both texts of each pair completely."""
        return fitting_pairs(self._model, targets, candidates, progress)

    @property
    def _similarity(self) -> str:
        return vector_similarity(self._model)

    def _compressed(self, vectors: Vectors) -> Vectors:
        if self._dimensions is not None:
            if self._dimensions > vectors.shape[1]:
                message = (
                    f"has {vectors.shape[1]} dimensions, fewer than --dimensions {self._dimensions}"
                )
                raise InputError(Problem(self.name, None, message))
            vectors = truncated(vectors, self._dimensions)
        return quantised(vectors, self._embeddings)


class CompressedServedModel(CompressedModel, ServedModel):
    """A `CompressedModel` on a server, with the requests and the cost of the server's model."""

    _model: ServedModel  # type: ignore[assignment]

    def usage(self) -> str:
        """Return requests, tokens and cost of the last call as one line."""
        return self._model.usage()


def compressed(model: VectorModel, dimensions: int | None, embeddings: str) -> CompressedModel:
    """Return a model with truncated and quantised vectors."""
    kind = CompressedServedModel if isinstance(model, ServedModel) else CompressedModel
    return kind(model, dimensions, embeddings)


def truncated(vectors: Vectors, dimensions: int) -> Vectors:
    """Return the first dimensions of (N, D) vectors; if all have length 1, of length 1 again.

    >>> truncated(np.array([[0.6, 0.0, 0.8]], dtype=np.float32), 2)
    array([[1., 0.]], dtype=float32)
    >>> truncated(np.array([[3.0, 0.0, 4.0]], dtype=np.float32), 2)
    array([[3., 0.]], dtype=float32)
    """
    lengths = np.linalg.norm(vectors, axis=1)
    is_normalised = bool((np.abs(lengths[np.isfinite(lengths)] - 1) < UNIT_TOLERANCE).all())
    first = vectors[:, :dimensions]
    if not is_normalised:
        return first
    norms = np.linalg.norm(first, axis=1, keepdims=True)
    return np.asarray(first / np.where(norms > 0, norms, 1), dtype=np.float32)


def quantised(vectors: Vectors, embeddings: str) -> Vectors:
    """Return (N, D) vectors as float32, int8 or binary numbers; rows with NaN remain NaN.

    >>> vectors = np.array([[0.0, -1.0], [0.5, 1.0], [1.0, np.nan]], dtype=np.float32)
    >>> quantised(vectors, "binary")[:2].tolist(), quantised(vectors, "int8")[0].tolist()
    ([[0.0, 0.0], [1.0, 1.0]], [-128.0, -128.0])
    """
    if embeddings == "float32":
        return vectors
    defined = np.isfinite(vectors).all(axis=1)
    rows = vectors[defined]
    result = np.full(vectors.shape, np.nan, dtype=np.float32)
    if embeddings == "binary":
        result[defined] = rows > 0
    elif len(rows):
        low, high = rows.min(axis=0), rows.max(axis=0)
        steps = (high - low) / 255
        steps = np.where(steps == 0, 1, steps)
        result[defined] = np.clip(np.floor((rows - low) / steps), 0, 255) - 128
    return result
