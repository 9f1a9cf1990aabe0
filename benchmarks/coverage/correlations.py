"""Coverage of intervals of correlations with scores, and of paired differences of two models.

A study has dialogues of five candidates. The spread of similarities differs between dialogues; scores are
counting
scores: multiples of 1/60 whose sum is the same in every dialogue. A model's prediction is the similarity
with random errors per item and per dialogue. The true value is computed from TRUTH dialogues.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from bws.stats.estimates import Estimate
from giccs.measures.comparison import paired_correlations
from giccs.measures.metrics import correlations

Floats = NDArray[np.float64]
Data = tuple[Floats, Floats, Floats, NDArray[np.intp]]

CANDIDATES = 5
TRUTH = 50_000
MORE_STUDIES = 5_000
CLOSE = {
    ("rank_spearman", 30, "relative", 0.0),
    ("rank_spearman", 30, "absolute", 0.0),
    ("rank_spearman", 30, "ties", 0.0),
    ("spearman", 30, "absolute", 0.0),
    ("spearman", 60, "absolute", 0.0),
    ("spearman", 30, "relative", 1.0),
    ("spearman", 200, "relative", 1.0),
    ("spearman", 30, "absolute", 1.0),
}
"""Cells that 1,000 studies left undecided: coefficient, dialogues, predictions, error of the second model."""
COEFFICIENTS = ("pearson", "spearman", "rank_spearman")
ERRORS = {
    "relative": (0.1, 0.0, None),
    "absolute": (0.15, 0.0, None),
    "ties": (0.15, 0.0, 4),
    "middle": (0.6, 0.5, None),
    "low": (2.8, 1.0, None),
}
"""Predictions -> standard deviations of the item's and the dialogue's error, and levels per unit.

Relative predictions are centred per dialogue, like scores.
"""
SECOND = 1.3
"""Error of the second model for a nonzero difference; the first model has error 1."""


def cells() -> list[Cell]:
    """Return a cell per prediction, number of dialogues and coefficient, alone and as a difference."""
    return [
        Cell(
            f"{coefficient}{', difference of two models' if coefficient_value else ''}",
            {"dialogues": dialogues, "predictions": predictions, "true value": f"{truth:.3f}"},
            partial(study, coefficient, dialogues, predictions, coefficient_value),
            studies=MORE_STUDIES
            if (coefficient, dialogues, predictions, coefficient_value) in CLOSE
            else 0,
        )
        for coefficient_value in (0.0, 1.0, SECOND)
        for predictions, sizes in SIZES.items()
        for dialogues in sizes
        if coefficient_value != SECOND or dialogues == 30
        for coefficient in COEFFICIENTS
        for truth in [true_value(coefficient, predictions, coefficient_value)]
    ]


SIZES = {
    "relative": (5, 10, 20, 30, 60, 200),
    "absolute": (30, 60),
    "ties": (30,),
    "middle": (30, 60),
    "low": (30, 60, 200),
}
"""Predictions -> numbers of dialogues."""


def study(
    coefficient: str, dialogues: int, predictions: str, second_error: float, seed: int
) -> SimulatedStudy:
    """Simulate one study, with a second model unless its error is 0."""
    estimate = _estimates(dialogues, predictions, second_error, seed)[coefficient]
    truth = true_value(coefficient, predictions, second_error)
    printed = not np.isnan(estimate.low)
    return SimulatedStudy(
        int(estimate.low <= truth <= estimate.high),
        int(printed),
        warned=bool(estimate.reason),
        bias=estimate.value - truth,
    )


def true_value(coefficient: str, predictions: str, second_error: float) -> float:
    """Return the value over TRUTH dialogues; 0 for the difference of two models with equal errors."""
    if second_error == 1:
        return 0.0
    return _estimates(TRUTH, predictions, second_error, 1_000_000, resamples=0)[coefficient].value


@lru_cache(maxsize=100_000)
def _estimates(
    dialogues: int, predictions: str, second_error: float, seed: int, resamples: int = 1000
) -> dict[str, Estimate]:
    """Return all coefficients of a study, one per cell."""
    first, second, score, dialogue = simulated(dialogues, predictions, second_error, seed)
    if second_error:
        return paired_correlations(first, second, score, dialogue, resamples=resamples)
    return correlations(first, score, dialogue, resamples=resamples)


def simulated(dialogues: int, predictions: str, second_error: float, seed: int) -> Data:
    """Return predictions of two models, scores (N,) each, and the items' dialogues."""
    rng = np.random.default_rng(seed)
    shape = (dialogues, CANDIDATES)
    similarity = rng.normal(size=shape) * np.exp(rng.normal(0, 0.4, (dialogues, 1)))
    signal = np.tanh(0.9 * similarity)
    score = _counting(signal + rng.normal(0, 0.12, shape))
    if predictions == "relative":
        signal = signal - signal.mean(axis=1, keepdims=True)
    shared = rng.normal(size=shape)  # half of the variance of the item errors
    item, of_dialogue, levels = ERRORS[predictions]
    models = []
    for error in (1.0, second_error or 1.0):
        own_error = (shared + rng.normal(size=shape)) / np.sqrt(2)
        value = signal + error * item * own_error + of_dialogue * rng.normal(size=(dialogues, 1))
        models.append(value if levels is None else np.round(levels * value) / levels)
    return (
        *(m.ravel() for m in models),
        score.ravel(),
        np.repeat(np.arange(dialogues), CANDIDATES),
    )


def _counting(value: Floats) -> Floats:
    """Return scores in [0, 1], multiples of 1/60, with mean 0.5 in every dialogue."""
    centred = value - value.mean(axis=1, keepdims=True)
    sixtieths = np.round(60 * np.clip(0.5 + 0.4 * centred, 0, 1))
    missing = 30 * CANDIDATES - sixtieths.sum(axis=1)
    for column in range(CANDIDATES):
        moved = np.clip(sixtieths[:, column] + missing, 0, 60)
        missing = missing - (moved - sixtieths[:, column])
        sixtieths[:, column] = moved
    return np.asarray(sixtieths / 60)
