"""Which vectors has a model already given? They are kept on disk: another classifier costs no encoding.

A file a model and list of texts, in the folder ``vectors`` of giccs's cache: NumPy's own format, single
precision, about 4 · D bytes a text. Whoever wants the room back deletes the folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bws.command import json_ready
from bws.textio import write_with
from giccs.caching import cache_folder
from giccs.progress import Progress

__all__ = ["Vectoriser", "cached_vectors"]

Floats = NDArray[np.float32]


class Vectoriser(Protocol):
    """A model that gives vectors."""

    @property
    def name(self) -> str:
        """As the user called it."""
        ...

    @property
    def identity(self) -> Any:
        """What its vectors depend on."""
        ...

    def vectors(self, texts: Sequence[str], progress: Progress) -> Floats:
        """Return (N, D); NaN in the rows of texts that it knows nothing of."""
        ...


def cached_vectors(model: Vectoriser, texts: Sequence[str], progress: Progress) -> Floats:
    """Return (N, D) the vectors of N texts; each distinct text is encoded once, and never again.

    All distinct texts are given to the model at once, in the order in which they first come: a model that
    whitens its vectors fits that to them.
    """
    place = {text: n for n, text in enumerate(dict.fromkeys(texts))}
    path = cache_folder() / "vectors" / f"{_key(model, list(place))}.npy"
    found = _kept(path, len(place))
    if found is None:
        found = np.asarray(model.vectors(list(place), progress), dtype=np.float32)
        _keep(found, path)
    return found[[place[text] for text in texts]]


def _key(model: Vectoriser, texts: Sequence[str]) -> str:
    about = [model.name, json_ready(model.identity), version("giccs"), texts]
    text = json.dumps(about, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _kept(path: Path, n: int) -> Floats | None:
    """Return what is kept; None where nothing is, or nothing that can be used."""
    try:
        found: Floats = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return found if found.ndim == 2 and len(found) == n and found.dtype == np.float32 else None


def _keep(vectors: Floats, path: Path) -> None:
    def save(temporary: str) -> None:
        with open(temporary, "wb") as file:
            np.save(file, vectors, allow_pickle=False)

    write_with(path, save)
