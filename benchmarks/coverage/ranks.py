"""Simultaneous coverage of the ranks of `giccs score --ranks`: all true ranks of a group at once.

The studies are those of `benchmarks.coverage.scores` and, with the predictions of a judge, those of
`benchmarks.coverage.prediction_powered`; the true ranks are those of the true scores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage import prediction_powered
from benchmarks.coverage.cells import Cell, SimulatedStudy
from benchmarks.coverage.scores import (
    CROWD,
    GROUP_SIZE,
    N_ITEMS,
    RESAMPLES,
    is_approximate,
    item_numbers,
    study_judgments,
    true_scores,
)
from bws.records import Scores
from bws.scoring import score
from bws.scoring.prediction_powered import prediction_powered_scores

REQUIRED = (0.95, 1.0)
GROUP_SIZES = {"complete": GROUP_SIZE, "incomplete": N_ITEMS}
DRAWS = 10
"""Studies from which the mean number of ranks per item is computed."""
POWERED = prediction_powered.People(1.5, 5)
"""Studies with predictions."""
RankedStudy = tuple[Scores, NDArray[np.float64]]
"""Scores with ranks, and the true scores by item number."""


def cells() -> list[Cell]:
    """Return a cell per method, design, number of annotators and standard deviation of tastes."""
    intervals, bootstrap = "--intervals", f"--bootstrap {RESAMPLES}"
    settings = [*product(("counting",), (intervals,), GROUP_SIZES, (5, 20, CROWD), (0.0, 1.0))]
    settings += product(("best-worst-logit",), (intervals,), GROUP_SIZES, (5, 20, CROWD), (1.0,))
    models = ("plackett-luce", "bradley-terry")
    settings += product(models, (intervals,), ("incomplete",), (20,), (1.0,))
    settings += [
        ("counting", bootstrap, "complete", 5, 1.0),
        ("counting", bootstrap, "incomplete", 20, 1.0),
    ]
    return [_cell(*setting) for setting in settings] + [
        _powered_cell(judge) for judge in ("good", "biased")
    ]


def _cell(method: str, flag: str, design: str, annotators: int, tastes: float) -> Cell:
    study = partial(_scored, method, flag, design, annotators, tastes)
    return _ranks_cell(f"{method} {flag}", GROUP_SIZES[design], annotators, tastes, study)


def _powered_cell(judge: str) -> Cell:
    size, annotators = prediction_powered.N_ITEMS, prediction_powered.ANNOTATORS
    of_all, study = f"{POWERED.per_tuple} of {annotators}", partial(_powered, judge)
    statement = f"counting --model-judgments ({judge} judge)"
    return _ranks_cell(statement, size, of_all, prediction_powered.TASTES, study)


def _ranks_cell(
    statement: str,
    size: int,
    annotators: int | str,
    tastes: float,
    study: Callable[[int], RankedStudy],
) -> Cell:
    widths = [_mean_ranks(study(seed)[0]) for seed in range(DRAWS)]
    columns = {
        "group size": size,
        "annotators": annotators,
        "tastes": tastes,
        "ranks per item": f"{np.mean(widths):.1f}",
    }
    return Cell(f"{statement} --ranks", columns, partial(_simulated, study, size), REQUIRED)


def _simulated(study: Callable[[int], RankedStudy], size: int, seed: int) -> SimulatedStudy:
    scores, by_number = study(seed)
    truth = by_number.reshape(-1, size)
    numbers = item_numbers(scores)
    rank = 1 + (truth[:, :, None] < truth[:, None, :]).sum(axis=2).ravel()[numbers]
    assert scores.rank_low is not None
    assert scores.rank_high is not None
    is_missed = (rank < scores.rank_low) | (rank > scores.rank_high)
    n_covered = int(np.count_nonzero(np.bincount(numbers // size, is_missed) == 0))
    return SimulatedStudy(n_covered, len(truth), is_approximate(scores))


def _scored(
    method: str, flag: str, design: str, annotators: int, tastes: float, seed: int
) -> RankedStudy:
    judgments = study_judgments(design, annotators, tastes, seed)
    if flag == "--intervals":
        scores = score(judgments, method, interval="model", ranks=True)
    else:
        scores = score(judgments, method, bootstrap=RESAMPLES, seed=seed, ranks=True)
    return scores, true_scores(method, design, tastes)


def _powered(judge: str, seed: int) -> RankedStudy:
    scores = prediction_powered_scores(
        prediction_powered.people_judgments(POWERED, seed),
        prediction_powered.model_judgments(POWERED.sd, judge, seed),
        ranks=True,
    )
    return scores, prediction_powered.true_scores(POWERED.sd, seed % prediction_powered.N_DESIGNS)


def _mean_ranks(scores: Scores) -> float:
    assert scores.rank_low is not None
    assert scores.rank_high is not None
    return float(np.mean(scores.rank_high - scores.rank_low + 1))
