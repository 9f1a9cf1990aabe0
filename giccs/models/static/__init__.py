"""Word vectors as models: a file of vectors, a word's vector, a sentence as the mean of its words'.

static:glove.6B.300d.txt    static:GoogleNews-vectors-negative300.bin.gz    static:crawl-300d-2M.vec
static:FOLDER               a .npy matrix beside its words (.txt, a word a line, or .parquet)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bws.problems import InputError, Problem
from giccs.models.static.bag import RULES, Lookup
from giccs.models.static.model import Coverage, StaticModel

if TYPE_CHECKING:
    from giccs.models import ModelOptions

__all__ = ["RULES", "Coverage", "Lookup", "StaticModel", "open_static"]


def open_static(name: str, place: str | Path, options: ModelOptions) -> StaticModel:
    """Return the word vectors in a file or folder; they are read once they are asked for.

    None of the options changes what word vectors say. Raises InputError where nothing is there.
    """
    path = Path(place).expanduser()
    if not str(place) or not path.exists():
        message = "no such file; write static:FILE (GloVe, word2vec or fastText vectors)"
        raise InputError(Problem(str(place) or name, None, message))
    return StaticModel(name, path)
