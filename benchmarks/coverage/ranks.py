"""Simultaneous coverage of the ranks of `bws-score --ranks`: all true ranks of a group at once.

The studies are those of `benchmarks.coverage.scores`; the true ranks are those of the true scores.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from benchmarks.coverage.cells import Cell, SimulatedStudy
from benchmarks.coverage.scores import (
    CROWD,
    GROUP_SIZE,
    N_ITEMS,
    is_approximate,
    item_numbers,
    study_judgments,
    true_scores,
)
from bws.records import Scores
from bws.scoring import score

REQUIRED = (0.95, 1.0)
GROUP_SIZES = {"complete": GROUP_SIZE, "incomplete": N_ITEMS}
DRAWS = 10
"""Studies from which the mean number of ranks per item is computed."""


def cells() -> list[Cell]:
    """Return a cell per method, design, number of annotators and standard deviation of tastes."""
    settings = [*product(("counting",), GROUP_SIZES, (5, 20, CROWD), (0.0, 1.0))]
    settings += product(("best-worst-logit",), GROUP_SIZES, (20, CROWD), (1.0,))
    return [_cell(*setting) for setting in settings]


def _cell(method: str, design: str, annotators: int, tastes: float) -> Cell:
    setting = (method, design, annotators, tastes)
    widths = [_mean_ranks(_scores(*setting, seed)) for seed in range(DRAWS)]
    columns = {
        "group size": GROUP_SIZES[design],
        "annotators": annotators,
        "tastes": tastes,
        "ranks per item": f"{np.mean(widths):.1f}",
    }
    return Cell(f"{method} --intervals --ranks", columns, partial(_study, *setting), REQUIRED)


def _study(method: str, design: str, annotators: int, tastes: float, seed: int) -> SimulatedStudy:
    scores, size = _scores(method, design, annotators, tastes, seed), GROUP_SIZES[design]
    truth = true_scores(method, design, tastes).reshape(-1, size)
    numbers = item_numbers(scores)
    rank = 1 + (truth[:, :, None] < truth[:, None, :]).sum(axis=2).ravel()[numbers]
    assert scores.rank_low is not None
    assert scores.rank_high is not None
    is_missed = (rank < scores.rank_low) | (rank > scores.rank_high)
    n_covered = int(np.count_nonzero(np.bincount(numbers // size, is_missed) == 0))
    return SimulatedStudy(n_covered, len(truth), is_approximate(scores))


def _scores(method: str, design: str, annotators: int, tastes: float, seed: int) -> Scores:
    judgments = study_judgments(design, annotators, tastes, seed)
    return score(judgments, method, interval="model", ranks=True)


def _mean_ranks(scores: Scores) -> float:
    assert scores.rank_low is not None
    assert scores.rank_high is not None
    return float(np.mean(scores.rank_high - scores.rank_low + 1))
