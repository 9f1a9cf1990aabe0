"""Files of the STS Benchmark (Cer et al. 2017), the control of C-STS: sentence pairs without a condition.

``sts-train.csv``, ``sts-dev.csv`` (the validation split) and ``sts-test.csv`` have no header and no quotes.
Columns are separated by tabs: genre, file, year, number, score from 0 to 5, the two sentences, and sometimes
their sources; or only the score and the two sentences, as in translations.

Scores are mapped to the scale of C-STS, 1 + 4 · score / 5, so that the targets of trainings are score / 5, as
in the authors' program. Correlations do not depend on it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from bws.base.problems import Problem
from bws.base.text import display_name, read_text

FILES = {"train": "sts-train.csv", "validation": "sts-dev.csv", "test": "sts-test.csv"}
SCALE = (0.0, 5.0)
LAYOUTS = {3: (0, 1, 2), 7: (4, 5, 6)}
"""Minimum number of columns -> positions of the score and of the sentences."""


class RatedRow(NamedTuple):
    """A rated sentence pair and its line."""

    line: int
    score: float
    sentence1: str
    sentence2: str


def label_of(score: float) -> float:
    """Return a score from 0 to 5 on the scale from 1 to 5.

    >>> label_of(0.0), label_of(2.5), label_of(5.0)
    (1.0, 3.0, 5.0)
    """
    return 1 + 4 * score / 5


def score_of(label: float) -> float:
    """Return the score of a label, with three decimals.

    >>> score_of(label_of(4.75))
    4.75
    """
    return round((label - 1) * 5 / 4, 3)


def read_rated_rows(path: str | os.PathLike[str]) -> tuple[list[RatedRow], list[Problem]]:
    """Return the rows of a file and the problems of its lines; empty lines are ignored."""
    rows: list[RatedRow] = []
    problems: list[Problem] = []
    for line, text in enumerate(read_text(Path(path)).split("\n"), 1):
        cells = [cell.strip() for cell in text.split("\t")]
        if cells == [""]:
            continue
        layout = LAYOUTS.get(7 if len(cells) >= 7 else len(cells))
        row = _row(line, [cells[index] for index in layout]) if layout else None
        if row is None:
            message = "expected a score from 0 to 5 and two sentences, in columns separated by tabs"
            problems.append(Problem(display_name(path), line, message))
        else:
            rows.append(row)
    return rows, problems


def _row(line: int, cells: list[str]) -> RatedRow | None:
    try:
        score = float(cells[0])
    except ValueError:
        return None
    return RatedRow(line, score, *cells[1:]) if SCALE[0] <= score <= SCALE[1] else None
