"""Coverage and width of prediction-powered correlations, compared with people's scores alone.

Dialogues of five candidates, or of two to eight, with normal or skewed qualities. Scores of people and of a
judge, and a model's predictions are qualities with errors; the errors of predictions have a part that a
dialogue's items share. The biased judge prefers long candidates, as does the model. The true value is that of
people's scores in TRUTH dialogues.
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
MAX_CANDIDATES = {"5": CANDIDATES, "2–8": 8, "2–8, skewed": 8}
MIN_CANDIDATES = 2
TRUTH = 50_000
TRUTH_SEED = 1_000_000
STUDIES = 1000
JUDGE_ERRORS = {"good": 0.7, "biased": 0.7, "noisy": 3.0, "useless": 1.0}
JUDGES = tuple(JUDGE_ERRORS)
SIZES = ((400, 40), (200, 40), (120, 60))
"""Numbers of all dialogues, and of those that people scored."""
STUDIES_OF_JUDGES = (
    *((judge, "5", *size) for size in SIZES for judge in JUDGES),
    *((judge, "2–8", 200, judged) for judged in (20, 40) for judge in ("good", "biased")),
    *((judge, "2–8, skewed", 200, 40) for judge in ("good", "biased")),
)
"""Judge, number of candidates and shape of the scores, and size."""
METRICS = ("pearson", "spearman", "rank_spearman")


def cells() -> list[Cell]:
    """Return a cell per study and metric."""
    return [
        Cell(
            f"giccs report --people, {metric}",
            {
                "dialogues": f"{judged} of {dialogues}",
                "candidates": candidates,
                "judge": judge,
                "r scores": f"{_score_correlation(judge, candidates):.2f}",
                "true value": f"{_true_values(judge, candidates)[metric].value:.3f}",
            },
            partial(_study, metric, judge, candidates, dialogues, judged),
            studies=STUDIES,
        )
        for judge, candidates, dialogues, judged in STUDIES_OF_JUDGES
        for metric in METRICS
    ]


def _study(
    metric: str, judge: str, candidates: str, dialogues: int, judged: int, seed: int
) -> SimulatedStudy:
    found = _powered(judge, candidates, dialogues, judged, seed)[metric]
    truth = _true_values(judge, candidates)[metric].value
    estimate = found.powered
    return SimulatedStudy(
        int(estimate.low <= truth <= estimate.high),
        int(not np.isnan(estimate.low)),
        warned=bool(estimate.reason),
        bias=estimate.value - truth,
        width=(estimate.high - estimate.low) / (found.people.high - found.people.low),
    )


@lru_cache(maxsize=10_000)
def _powered(
    judge: str, candidates: str, dialogues: int, judged: int, seed: int
) -> dict[str, PoweredEstimate]:
    prediction, of_judge, people, dialogue = simulated_scores(judge, dialogues, seed, candidates)
    by_people = np.where(dialogue < judged, people, np.nan)
    return powered_correlations(prediction, of_judge, by_people, dialogue)


@lru_cache
def _true_values(judge: str, candidates: str) -> dict[str, Estimate]:
    prediction, _, people, dialogue = simulated_scores(judge, TRUTH, TRUTH_SEED, candidates)
    return correlations(prediction, people, dialogue, resamples=0)


@lru_cache
def _score_correlation(judge: str, candidates: str) -> float:
    """Return the correlation of the judge's scores with people's."""
    _, of_judge, people, _ = simulated_scores(judge, TRUTH, TRUTH_SEED, candidates)
    return float(np.corrcoef(of_judge, people)[0, 1])


def simulated_scores(
    judge: str, dialogues: int, seed: int, candidates: str = "5"
) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
    """Return (N,) predictions, the judge's scores, people's scores, and the items' dialogues."""
    rng = np.random.default_rng(seed)
    shape = (dialogues, MAX_CANDIDATES[candidates])
    quality, length, *errors = rng.normal(size=(5, *shape))
    if candidates.endswith("skewed"):
        quality = np.exp(0.7 * quality)
    people = quality + 0.3 * errors[0]
    prediction = quality + 0.8 * errors[1] + 0.3 * rng.normal(size=(dialogues, 1))
    of_judge = JUDGE_ERRORS[judge] * errors[2]
    if judge != "useless":
        of_judge = of_judge + quality
    if judge == "biased":
        of_judge, prediction = of_judge + length, prediction + 0.5 * length
    is_candidate = np.ones(shape, dtype=bool)
    if candidates != "5":
        sizes = rng.integers(MIN_CANDIDATES, shape[1] + 1, (dialogues, 1))
        is_candidate = np.arange(shape[1]) < sizes
    dialogue = np.nonzero(is_candidate)[0]
    return prediction[is_candidate], of_judge[is_candidate], people[is_candidate], dialogue
