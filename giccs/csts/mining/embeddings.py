"""Where do embeddings come from: an array on disk, or a model that encodes the captions?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.csts.mining.captions import Captions
from giccs.models.abilities import DescribedModel, Model, VectorModel
from giccs.progress import Progress, silent

__all__ = ["encoded", "read_array", "source_means", "units_of"]

ROWS = 8_192
"""Rows that are checked or scaled at a time."""

Matrix = NDArray[np.float32]


def read_array(path: str | os.PathLike[str], rows: int, label: str) -> Matrix:
    """Read an ``.npy`` array of embeddings, a row for each of the `rows` things that `what` names.

    Raises InputError where it is no such array of numbers.
    """
    name = os.fspath(path)
    try:
        array = np.load(name, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(Problem(name, None, "no such file")) from None
    except (OSError, ValueError, EOFError):
        message = "is no array of numbers in NumPy's .npy format, as numpy.save writes it"
        raise InputError(Problem(name, None, message)) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or array.ndim != 2:
        message = "is not one array of numbers with two dimensions, rows and components"
        raise InputError(Problem(name, None, message))
    if len(array) != rows or not array.shape[1]:
        message = (
            f"has the shape {array.shape}; ({rows}, D) is needed, a row for each of the {label}"
        )
        raise InputError(Problem(name, None, message))
    return np.asarray(array)


def units_of(vectors: NDArray[Any], file: str, names: Sequence[str] | None = None) -> Matrix:
    """Return (N, D) vectors scaled to length 1, as float32.

    Raises InputError with every vector that has no direction (zero, or not finite), called by `names`.
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
        message = "has no direction: all of it is 0, or it is not finite"
        raise InputError(
            Problem(file, None, f"the embedding of {names[n] if names else f'row {n}'} {message}")
            for n in useless
        )
    return units


def encoded(model: Model, texts: Sequence[str], progress: Progress = silent) -> Matrix:
    """Return (N, D) vectors of N texts by a model of `giccs.models` that encodes; each text once.

    Raises InputError where the model compares texts without encoding them.
    """
    if not isinstance(model, VectorModel):
        model_text = model.description() if isinstance(model, DescribedModel) else ""
        message = (
            f"{model_text or 'makes no embeddings'}; take an encoder, for instance package:minilm"
        )
        raise InputError(Problem(model.name, None, message))
    if not texts:
        raise ValueError("there are no texts to encode")
    vectors: Matrix = model.vectors(texts, progress)
    return vectors


def source_means(units: Matrix, captions: Captions) -> Matrix:
    """Return (S, D) the mean of each source's (N, D) caption embeddings, each of which has length 1."""
    sums = np.add.reduceat(units, captions.starts[:-1], axis=0)
    return np.asarray(sums / captions.counts[:, None], dtype=np.float32)
