"""Predictions of rows with hidden labels, in the format of the C-STS server.

The authors' programs write ``test_predictions.json``, a mapping from row indices to scores, which their
``make_test_submission.py`` submits. Indices count the rows of the file from 0. Scores may have any scale,
because the server computes correlations.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bws.base.problems import InputError, Problem
from bws.base.text import write_atomic
from giccs.measures.results import Result, Store

if TYPE_CHECKING:
    import polars

FILE = "test_predictions.json"
FOLDER = "submissions"
"""Subfolder of a results folder with one folder with `FILE` per result with hidden labels."""
INDEX = "index"
"""Column of prediction tables: index in its file of a row with a hidden label, else null."""
SCORES = ("prediction", "value")
"""Possible names of the score column."""


def scores_by_index(table: polars.DataFrame) -> dict[str, float]:
    """Return the scores of the rows with hidden labels, in the order of their indices.

    Empty if the table has none. Raises ValueError for scores that are not finite.

    >>> import polars
    >>> scores_by_index(polars.DataFrame({"index": [1, 0, None], "prediction": [0.5, 0.25, 0.0]}))
    {'0': 0.25, '1': 0.5}
    """
    if INDEX not in table.columns:
        return {}
    rows = table.filter(table[INDEX].is_not_null()).sort(INDEX)
    scores = rows[next(name for name in SCORES if name in table.columns)].to_numpy()
    if n_undefined := int((~np.isfinite(scores)).sum()):
        raise ValueError(f"{n_undefined} of {len(scores)} scores are not finite")
    return {str(index): float(score) for index, score in zip(rows[INDEX], scores, strict=True)}


def write_submission(
    store: Store, result: Result, folder: str | os.PathLike[str] | None = None
) -> Path | None:
    """Write the scores of a result's rows with hidden labels; return the file, or None without such rows.

    The file is ``submissions/NAME OF THE RESULT/test_predictions.json`` in `folder`, by default that of the
    store. Raises InputError for non-finite scores, which the server does not accept.
    """
    if not result.signature.get("hidden_labels"):
        return None
    name = store.path(result.model, result.task, result.signature).stem
    path = Path(folder or store.folder) / FOLDER / name / FILE
    table = result.predictions if result.predictions is not None else store.predictions(result)
    try:
        scores = scores_by_index(table)
    except ValueError as error:
        message = f"not written: {error}"
        raise InputError(Problem(str(path), None, message)) from None
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(scores, indent=4) + "\n")
    return path
