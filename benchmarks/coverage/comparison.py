"""Error rate and power of `giccs report --compare`.

A simulated model predicts the utility of an item, with a slope and an offset per dialogue and errors that
are partly shared by all models. Scores are ranks of noisy utilities within dialogues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from giccs.measures.all_pairs import (
    PairDifference,
    accuracy_pairs,
    rank_intervals,
    significantly_better,
    spearman_pairs,
    within_dialogue_pairs,
)
from giccs.measures.detectable import ALPHA
from giccs.measures.metrics import weighted_spearman, within_dialogue_correlations

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

ITEMS = 5
"""Items per dialogue."""
LARGE = 200_000
"""Number of dialogues for the true difference of a planned study."""
MEDIUM = 20_000
"""Number of dialogues on which different models are calibrated to be equal."""
PILOT = 60
"""Number of dialogues of the pilot study."""


@dataclass(frozen=True)
class Kind:
    """Parameters of a simulated model."""

    quality: float = 1.0
    """Mean slope of the predictions on the utility."""
    offset: float = 0.5
    """Standard deviation of the offsets of dialogues."""
    shared: float = 0.7
    """Standard deviation of the shared errors."""


@dataclass(frozen=True)
class Metric:
    """A compared metric: function of the command, and value in a large population."""

    name: str
    pairs: Callable[[Floats, Floats, Ints, float], list[PairDifference]]
    value: Callable[[Floats, Floats, Ints], float]


def _rho(prediction: Floats, score: Floats, dialogue: Ints) -> float:
    everything = np.ones((1, int(dialogue.max()) + 1))
    return float(weighted_spearman(prediction, score, dialogue)(everything)[0])


def _rho_within(prediction: Floats, score: Floats, dialogue: Ints) -> float:
    return float(np.nanmean(within_dialogue_correlations(prediction, score, dialogue)))


def _correct(predictions: Floats, score: Floats) -> Floats:
    """Return (…, D), 1 where the item with the highest prediction has the highest score of its dialogue."""
    blocks = predictions.reshape(*predictions.shape[:-1], -1, ITEMS)
    scores = np.broadcast_to(score.reshape(-1, ITEMS), blocks.shape)
    chosen_scores = np.take_along_axis(scores, blocks.argmax(axis=-1)[..., None], axis=-1)[..., 0]
    return (chosen_scores == scores.max(axis=-1)).astype(np.float64)


def _accuracy(prediction: Floats, score: Floats, dialogue: Ints) -> float:
    return float(_correct(prediction, score).mean())


def _accuracy_pairs(
    predictions: Floats, score: Floats, dialogue: Ints, target: float
) -> list[PairDifference]:
    return accuracy_pairs(_correct(predictions, score), score, dialogue, target)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("Spearman ρ", spearman_pairs, _rho),
        Metric("ρ within dialogues", within_dialogue_pairs, _rho_within),
        Metric("accuracy", _accuracy_pairs, _accuracy),
    )
}


def _leaderboard(
    rng: np.random.Generator, kinds: Sequence[Kind], dialogues: int
) -> tuple[Floats, Floats, Ints]:
    """Return predictions (M, N), scores (N,) and the dialogue of each item."""
    dialogue = np.repeat(np.arange(dialogues), ITEMS)
    size = (len(kinds), dialogues)
    utility = rng.normal(size=len(dialogue))
    judged_scores = (utility + 0.3 * rng.normal(size=len(dialogue))).reshape(dialogues, ITEMS)
    score = judged_scores.argsort(axis=1).argsort(axis=1).ravel() / (ITEMS - 1)
    quality, offset, shared = (
        np.array([getattr(kind, name) for kind in kinds])[:, None]
        for name in ("quality", "offset", "shared")
    )
    slope = quality * np.exp(0.5 * rng.normal(size=size))
    errors = shared * rng.normal(size=len(dialogue)) + rng.normal(size=(len(kinds), len(dialogue)))
    offsets = offset * rng.normal(size=size)
    return slope[:, dialogue] * utility + offsets[:, dialogue] + errors, score, dialogue


@cache
def _true_value(kind: Kind, metric: str, dialogues: int) -> float:
    predictions, score, dialogue = _leaderboard(np.random.default_rng(0), [kind], dialogues)
    return METRICS[metric].value(predictions[0], score, dialogue)


@cache
def _equal_kind(metric: str) -> Kind:
    """Return a kind without offsets and with small shared errors that has the same true value as `Kind()`."""
    low, high = 0.1, 3.0
    true_value = _true_value(Kind(), metric, MEDIUM)
    for _ in range(12):
        quality = (low + high) / 2
        kind = Kind(quality, offset=0.0, shared=0.2)
        too_low = _true_value(kind, metric, MEDIUM) < true_value
        low, high = (quality, high) if too_low else (low, quality)
    return kind


def _equal(metric: str, dialogues: int, alike: bool, seed: int) -> SimulatedStudy:
    """Compare ten equal models; a hit is a study without significant pairs."""
    kinds = [Kind()] * 5 + [Kind() if alike else _equal_kind(metric)] * 5
    data = _leaderboard(np.random.default_rng([seed, dialogues]), kinds, dialogues)
    pairs = METRICS[metric].pairs(*data, 0.1)
    differ = any(pair.is_significant for pair in pairs)
    return SimulatedStudy(int(not differ), 1, warned=any(pair.reason for pair in pairs))


def _ranked(metric: str, dialogues: int, seed: int) -> SimulatedStudy:
    """Compare ten unequal models, best first; a hit is a rank interval that contains the true rank."""
    kinds = [Kind(quality) for quality in np.linspace(1.6, 0.4, 10)]
    data = _leaderboard(np.random.default_rng([seed, dialogues]), kinds, dialogues)
    better = significantly_better(METRICS[metric].pairs(*data, 0.1), len(kinds))
    low, high = rank_intervals(better)
    rank = np.arange(1, len(kinds) + 1)
    return SimulatedStudy(int(np.all((low <= rank) & (rank <= high))), 1)


def _planned(metric: str, quality: float, seed: int) -> SimulatedStudy:
    """Plan a study from a pilot for the true difference; a hit is a significant result."""
    kinds = [Kind(), Kind(quality)]
    higher, lower = (_true_value(kind, metric, LARGE) for kind in kinds)
    difference = higher - lower
    rng = np.random.default_rng([seed, PILOT])
    (pilot,) = METRICS[metric].pairs(*_leaderboard(rng, kinds, PILOT), difference)
    (pair,) = METRICS[metric].pairs(*_leaderboard(rng, kinds, int(pilot.needed)), difference)
    return SimulatedStudy(int(pair.p < ALPHA and pair.value > 0), 1)


def cells() -> list[Cell]:
    """Return leaderboards of equal and of unequal models, and planned studies."""
    at_least, power = (0.95, 1.0), (0.77, 0.83)
    equal = [
        ("Spearman ρ", 8, True),
        ("Spearman ρ", 12, True),
        ("Spearman ρ", 30, True),
        ("Spearman ρ", 60, True),
        ("Spearman ρ", 60, False),
    ]
    equal += [("Spearman ρ", 200, True), ("ρ within dialogues", 30, True)]
    equal += [("ρ within dialogues", 60, True), ("accuracy", 60, True)]
    return [
        *(
            Cell(
                "ten equal models, no pair told apart",
                {"metric": metric, "dialogues": n, "models": "alike" if alike else "unlike"},
                partial(_equal, metric, n, alike),
                at_least,
                1000 if n == 60 else 0,
            )
            for metric, n, alike in equal
        ),
        *(
            Cell(
                "ten unequal models, all true ranks in their intervals",
                {"metric": metric, "dialogues": 60, "models": "unlike"},
                partial(_ranked, metric, 60),
                at_least,
            )
            for metric in METRICS
        ),
        *(
            Cell(
                "two models told apart, study planned with power 80 %",
                {"metric": metric, "dialogues": f"planned from {PILOT}", "models": "unlike"},
                partial(_planned, metric, quality),
                power,
                1000,
            )
            for metric, quality in (
                ("Spearman ρ", 0.7),
                ("ρ within dialogues", 0.75),
                ("accuracy", 0.6),
            )
        ),
    ]
