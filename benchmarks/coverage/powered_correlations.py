"""Coverage and width of prediction-powered correlations, compared with people's scores alone.

Dialogues of five candidates with normal qualities. Scores of people and of a judge, and a model's predictions
are qualities with errors; the errors of predictions have a part that a dialogue's items share. The biased
judge prefers long candidates, as does the model. The true value is that of people's scores in TRUTH
dialogues.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from bws.stats.estimates import Estimate
from giccs.measures.metrics import correlations
from giccs.measures.prediction_powered import PoweredEstimate, powered_correlations

Floats = NDArray[np.float64]

CANDIDATES = 5
TRUTH = 50_000
TRUTH_SEED = 1_000_000
STUDIES = 1000
SIZES = ((400, 40), (200, 40), (120, 60))
"""Numbers of all dialogues, and of those that people scored."""
JUDGE_ERRORS = {"good": 0.7, "biased": 0.7, "noisy": 3.0, "useless": 1.0}
JUDGES = tuple(JUDGE_ERRORS)
METRICS = ("pearson", "spearman", "rank_spearman")


def cells() -> list[Cell]:
    """Return a cell per size, judge and metric."""
    return [
        Cell(
            f"giccs-report --people, {metric}",
            {
                "dialogues": f"{judged} of {dialogues}",
                "judge": judge,
                "r scores": f"{_score_correlation(judge):.2f}",
                "true value": f"{_true_values(judge)[metric].value:.3f}",
            },
            partial(_study, metric, judge, dialogues, judged),
            studies=STUDIES,
        )
        for dialogues, judged in SIZES
        for judge in JUDGES
        for metric in METRICS
    ]


def _study(metric: str, judge: str, dialogues: int, judged: int, seed: int) -> SimulatedStudy:
    found = _powered(judge, dialogues, judged, seed)[metric]
    truth = _true_values(judge)[metric].value
    estimate = found.powered
    return SimulatedStudy(
        int(estimate.low <= truth <= estimate.high),
        int(not np.isnan(estimate.low)),
        warned=bool(estimate.reason),
        bias=estimate.value - truth,
        width=(estimate.high - estimate.low) / (found.people.high - found.people.low),
    )


@lru_cache(maxsize=10_000)
def _powered(judge: str, dialogues: int, judged: int, seed: int) -> dict[str, PoweredEstimate]:
    prediction, of_judge, people, dialogue = simulated_scores(judge, dialogues, seed)
    by_people = np.where(dialogue < judged, people, np.nan)
    return powered_correlations(prediction, of_judge, by_people, dialogue)


@lru_cache
def _true_values(judge: str) -> dict[str, Estimate]:
    prediction, _, people, dialogue = simulated_scores(judge, TRUTH, TRUTH_SEED)
    return correlations(prediction, people, dialogue, resamples=0)


@lru_cache
def _score_correlation(judge: str) -> float:
    """Return the correlation of the judge's scores with people's."""
    _, of_judge, people, _ = simulated_scores(judge, TRUTH, TRUTH_SEED)
    return float(np.corrcoef(of_judge, people)[0, 1])


def simulated_scores(
    judge: str, dialogues: int, seed: int
) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
    """Return (N,) predictions, the judge's scores, people's scores, and the items' dialogues."""
    rng = np.random.default_rng(seed)
    shape = (dialogues, CANDIDATES)
    quality, length, *errors = rng.normal(size=(5, *shape))
    people = quality + 0.3 * errors[0]
    prediction = quality + 0.8 * errors[1] + 0.3 * rng.normal(size=(dialogues, 1))
    of_judge = JUDGE_ERRORS[judge] * errors[2]
    if judge != "useless":
        of_judge = of_judge + quality
    if judge == "biased":
        of_judge, prediction = of_judge + length, prediction + 0.5 * length
    dialogue = np.repeat(np.arange(dialogues), CANDIDATES)
    return prediction.ravel(), of_judge.ravel(), people.ravel(), dialogue
