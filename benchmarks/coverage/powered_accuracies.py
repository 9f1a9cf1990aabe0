"""Coverage and width of prediction-powered accuracies, compared with people's key alone.

The dialogues, scores and models of `benchmarks.coverage.powered_correlations`; the model chooses the
candidate with the highest prediction, and the correct one has the highest score.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from benchmarks.coverage.powered_correlations import (
    CANDIDATES,
    JUDGES,
    SIZES,
    TRUTH,
    TRUTH_SEED,
    simulated_scores,
)
from giccs.measures.prediction_powered import powered_accuracy

Floats = NDArray[np.float64]

STUDIES = 4000


def cells() -> list[Cell]:
    """Return a cell per size and judge."""
    return [
        Cell(
            "giccs report --people, accuracy",
            {
                "dialogues": f"{judged} of {dialogues}",
                "judge": judge,
                "same key": f"{_share_of_same_keys(judge):.2f}",
                "true value": f"{_true_value(judge):.3f}",
            },
            partial(_study, judge, dialogues, judged),
            studies=STUDIES,
        )
        for dialogues, judged in (*SIZES, (60, 20))
        for judge in JUDGES
    ]


def _study(judge: str, dialogues: int, judged: int, seed: int) -> SimulatedStudy:
    choice, of_judge, of_people = _options(judge, dialogues, seed)
    by_people = np.where(np.arange(dialogues) < judged, choice == of_people, np.nan)
    found = powered_accuracy((choice == of_judge).astype(np.float64), by_people)
    truth, estimate = _true_value(judge), found.powered
    return SimulatedStudy(
        int(estimate.low <= truth <= estimate.high),
        1,
        warned=bool(estimate.reason),
        bias=estimate.value - truth,
        width=(estimate.high - estimate.low) / (found.people.high - found.people.low),
    )


@lru_cache
def _true_value(judge: str) -> float:
    choice, _, of_people = _options(judge, TRUTH, TRUTH_SEED)
    return float(np.mean(choice == of_people))


@lru_cache
def _share_of_same_keys(judge: str) -> float:
    """Return the share of dialogues in which the judge and people have the same correct candidate."""
    _, of_judge, of_people = _options(judge, TRUTH, TRUTH_SEED)
    return float(np.mean(of_judge == of_people))


def _options(judge: str, dialogues: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Return (D,) the candidate with the highest prediction, score of the judge, and score of people."""
    *values, _ = simulated_scores(judge, dialogues, seed)
    prediction, of_judge, of_people = (
        each.reshape(dialogues, CANDIDATES).argmax(axis=1).astype(np.float64) for each in values
    )
    return prediction, of_judge, of_people
