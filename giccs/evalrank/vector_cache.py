"""Which vectors has a model already given? They are kept on disk: another similarity costs no encoding.

A file a model and list of texts, in the folder ``vectors`` of giccs's cache: NumPy's own format with a
checksum (.npz, not packed), single precision, about 4 · D bytes a text. A damaged file is made again. Whoever
wants the room back deletes the folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bws.command import json_ready
from bws.textio import write_with
from giccs.caching import cache_folder
from giccs.models.abilities import VectorModel
from giccs.models.postprocess import Processed
from giccs.models.vocabulary import TokenCounts, count_tokens, counted_tokens
from giccs.progress import Progress

__all__ = ["cached_vectors"]

log = logging.getLogger(__name__)

Floats = NDArray[np.float32]


def cached_vectors(model: VectorModel, texts: Sequence[str], progress: Progress) -> Floats:
    """Return (N, D) the vectors of N texts; each distinct text is encoded once, and never again.

    All distinct texts are taken together, in the order in which they first come: a step behind a model is
    fitted to them. What is kept is what the model gave before its steps, so that models which differ in
    steps only share it, and the model can tell of every fit.
    """
    index = {text: n for n, text in enumerate(dict.fromkeys(texts))}
    vectors = _distinct_vectors(model, list(index), progress)
    return vectors if len(index) == len(texts) else vectors[[index[text] for text in texts]]


def _distinct_vectors(model: VectorModel, texts: Sequence[str], progress: Progress) -> Floats:
    if isinstance(model, Processed):
        return model.changed(_distinct_vectors(model.before, texts, progress))
    path = cache_folder() / "vectors" / f"{_key(model, texts)}.npz"
    vectors = _load(path, len(texts))
    log.debug(
        "vectors of %d texts by %s: %s %s",
        len(texts), model.name, "none at" if vectors is None else "kept at", path,
    )  # fmt: skip
    if vectors is None:
        with counted_tokens() as counts:
            vectors = np.asarray(model.vectors(texts, progress), dtype=np.float32)
        _save(vectors, counts, path)
    return vectors


def _key(model: VectorModel, texts: Sequence[str]) -> str:
    key_content = [model.name, json_ready(model.identity), version("giccs"), texts]
    text = json.dumps(key_content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _load(path: Path, n: int) -> Floats | None:
    """Return what is kept; None where nothing is, or nothing that can be used.

    The tokens of the texts count as if they were read again.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:  # reading to the end checks the checksum
            vectors: Floats = archive["vectors"]
            tokens, unknown = map(int, archive["tokens"])
    except Exception:  # there is none, or whatever a damaged one leads to: it is made again
        return None
    if vectors.ndim != 2 or len(vectors) != n or vectors.dtype != np.float32:
        return None
    count_tokens(tokens, unknown)
    return vectors


def _save(vectors: Floats, counts: TokenCounts, path: Path) -> None:
    def save(temporary: str) -> None:
        with open(temporary, "wb") as file:
            np.savez(file, vectors=vectors, tokens=np.array([counts.tokens, counts.unknown]))

    write_with(path, save)
