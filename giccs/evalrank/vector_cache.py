"""Disk cache of text vectors, which avoids encoding the same texts again for another task or similarity.

The folder ``vectors`` of the giccs cache contains one file per model and list of texts, in NumPy's format
with checksums (.npz, uncompressed, single precision), about 4 · D bytes per text. Damaged files are replaced.
The folder can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bws.base.commands import json_ready
from bws.base.text import write_with
from giccs.caching import cache_folder
from giccs.models.abilities import VectorModel
from giccs.models.postprocess import Processed
from giccs.models.vocabulary import TokenCounts, count_tokens, counted_tokens
from giccs.progress import Progress

log = logging.getLogger(__name__)

Floats = NDArray[np.float32]

COUNTS = tuple(field.name for field in fields(TokenCounts))
"""Names of the stored token counts; files of earlier versions have the first three."""


def cached_vectors(model: VectorModel, texts: Sequence[str], progress: Progress) -> Floats:
    """Return (N, D) vectors of N texts, from the cache if possible; each distinct text is encoded once.

    Post-processing steps are fitted to the distinct texts, in order of first occurrence. Vectors are cached
    before post-processing, so models that differ in their steps only share them, and every fit is reported.
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
        len(texts), model.name, "not cached at" if vectors is None else "cached at", path,
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
    """Return the cached vectors, or None if they are missing or unusable.

    Cached token counts are added to the current ones, as if the texts were encoded again.
    """
    try:
        with np.load(
            path, allow_pickle=False
        ) as archive:  # reading the arrays verifies the checksums
            vectors: Floats = archive["vectors"]
            counts = dict(zip(COUNTS, map(int, archive["tokens"]), strict=False))
    except Exception:  # missing, or any error caused by a damaged file, which is replaced
        return None
    if vectors.ndim != 2 or len(vectors) != n or vectors.dtype != np.float32 or counts.get("full"):
        return None
    count_tokens(**counts)
    return vectors


def _save(vectors: Floats, counts: TokenCounts, path: Path) -> None:
    def save(temporary: str) -> None:
        with open(temporary, "wb") as file:
            np.savez(
                file, vectors=vectors, tokens=np.array([getattr(counts, name) for name in COUNTS])
            )

    write_with(path, save)
