"""What simulated workers hold to be true of sentence pairs."""

from __future__ import annotations

import os

from bws.files.table import read_table
from bws.problems import InputError, Problem
from mturk.csts.sentences import CONDITION, SENTENCES, pair_id

__all__ = ["sentence_truth"]

INTENDED = {"high": 5.0, "low": 1.0}


def sentence_truth(path: str | os.PathLike[str]) -> dict[tuple[str, str], float] | None:
    """Return (pair id, condition) -> similarity from 1 to 5; None where the table is not of sentence pairs.

    It comes from the column label (rows without one are left out) or, as in collected conditions, from
    intended: high is 5 and low 1. Raises InputError with every value that is neither.
    """
    table = read_table(path)
    if not {*SENTENCES, CONDITION} <= set(table.frame.columns):
        return None
    column = next((name for name in ("label", "intended") if name in table.frame.columns), None)
    if column is None:
        message = "has neither a column label nor intended; one is needed for the truth"
        raise InputError(Problem(table.file, 1, message))
    found: dict[tuple[str, str], float] = {}
    problems = list(table.problems)
    cells = [table.frame[name].to_list() for name in (*SENTENCES, CONDITION, column)]
    for line, one, two, condition, written in zip(table.lines.tolist(), *cells, strict=True):
        value = _value(written.strip())
        if value is not None:
            found[pair_id(one, two), condition] = value
        elif written.strip():
            message = f"{column} is {written!r}; 1 to 5, high and low are allowed"
            problems.append(Problem(table.file, line, message))
    if problems:
        raise InputError(problems)
    return found


def _value(written: str) -> float | None:
    if written in INTENDED:
        return INTENDED[written]
    try:
        value = float(written)
    except ValueError:
        return None
    return value if 1 <= value <= 5 else None
