"""Embeddings of captions, from an array file or from a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.csts.mining.captions import Captions
from giccs.models.abilities import DescribedModel, Model, VectorModel
from giccs.progress import Progress, silent

ROWS = 8_192
"""Number of rows validated or scaled at a time."""

Matrix = NDArray[np.float32]


def read_array(path: str | os.PathLike[str], rows: int, label: str) -> Matrix:
    """Read an ``.npy`` array of embeddings with `rows` rows; `label` describes a row in messages.

    Raises InputError if the file is not a suitable array of numbers.
    """
    name = os.fspath(path)
    try:
        array = np.load(name, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(Problem(name, None, "no such file")) from None
    except (OSError, ValueError, EOFError):
        message = "not an array of numbers in NumPy's .npy format (numpy.save)"
        raise InputError(Problem(name, None, message)) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or array.ndim != 2:
        message = "not a single two-dimensional array of numbers"
        raise InputError(Problem(name, None, message))
    if len(array) != rows or not array.shape[1]:
        message = f"has the shape {array.shape}; expected ({rows}, D), one row per {label}"
        raise InputError(Problem(name, None, message))
    return np.asarray(array)


def units_of(vectors: NDArray[Any], file: str, names: Sequence[str] | None = None) -> Matrix:
    """Return (N, D) vectors scaled to length 1, as float32.

    Raises InputError with every vector that is zero or not finite; `names` are used in messages.
    """
    units = np.empty(vectors.shape, dtype=np.float32)
    useless: list[int] = []
    for at in range(0, len(vectors), ROWS):
        part = np.asarray(vectors[at : at + ROWS], dtype=np.float64)
        lengths = np.linalg.norm(part, axis=1, keepdims=True)
        usable = np.isfinite(lengths) & (lengths > 0)
        useless += (at + np.flatnonzero(~usable)).tolist()
        units[at : at + ROWS] = np.divide(part, lengths, out=np.zeros_like(part), where=usable)
    if useless:
        message = "is zero or not finite"
        raise InputError(
            Problem(file, None, f"the embedding of {names[n] if names else f'row {n}'} {message}")
            for n in useless
        )
    return units


def encoded(model: Model, texts: Sequence[str], progress: Progress = silent) -> Matrix:
    """Return (N, D) embeddings of N texts by a model of `giccs.models`; each distinct text is encoded once.

    Raises InputError if the model compares texts without encoding them.
    """
    if not isinstance(model, VectorModel):
        model_text = model.description() if isinstance(model, DescribedModel) else ""
        message = (
            f"{model_text or 'makes no embeddings'}; use an encoder, for example package:minilm"
        )
        raise InputError(Problem(model.name, None, message))
    if not texts:
        raise ValueError("there are no texts to encode")
    vectors: Matrix = model.vectors(texts, progress)
    return vectors


def source_means(units: Matrix, captions: Captions) -> Matrix:
    """Return (S, D) means of the (N, D) unit-length caption embeddings of each source."""
    sums = np.add.reduceat(units, captions.starts[:-1], axis=0)
    return np.asarray(sums / captions.counts[:, None], dtype=np.float32)
