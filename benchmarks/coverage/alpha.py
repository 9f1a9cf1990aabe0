"""Coverage of the interval of Krippendorff's alpha, best and worst pooled.

Complete: dialogues of five items with all ten 3-tuples, new items in every study. Incomplete: the items and
designs of `scores`, without groups. Up to 20 annotators judge every tuple; of 100, five judge each tuple.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import product

import numpy as np

from benchmarks.coverage.cells import Cell, SimulatedStudy
from benchmarks.coverage.scores import (
    CROWD,
    GROUP_SIZE,
    TRUTH_SD,
    crowd,
    study_judgments,
)
from bws.chance_agreement import agreement
from bws.design import make_tuples
from bws.records import Judgments, Tuples
from bws.simulation import simulate

N_DIALOGUES = 30
LIMIT_STUDIES, LIMIT_DIALOGUES, LIMIT_ANNOTATORS = 20, 200, 40


def cells() -> list[Cell]:
    """Return the cells."""
    settings = product(("complete", "incomplete"), (3, 5, 20, CROWD), (0.0, 0.5, 1.0))
    names = ("design", "annotators", "tastes")
    return [
        Cell(
            "giccs agreement --intervals, alpha",
            dict(zip(names, setting, strict=True)),
            partial(_study, *setting),
        )
        for setting in settings
    ]


def _study(design: str, annotators: int, tastes: float, seed: int) -> SimulatedStudy:
    judgments = _judgments(design, annotators, tastes, seed)
    result = agreement(judgments, intervals=True).groups[0]
    alpha = result.alpha["both"]
    truth = _true_alpha(design, tastes)
    warned = any("the interval" in note for note in result.notes)
    return SimulatedStudy(int(alpha.low <= truth <= alpha.high), 1, warned, alpha.value - truth)


def _judgments(design: str, annotators: int, tastes: float, seed: int) -> Judgments:
    if design == "incomplete":
        return study_judgments(design, annotators, tastes, seed)
    judgments = _dialogues(N_DIALOGUES, annotators, tastes, seed)
    return crowd(judgments, seed) if annotators == CROWD else judgments


def _dialogues(count: int, annotators: int, tastes: float, seed: int) -> Judgments:
    """Simulate judgments of dialogues with new items."""
    tuples = _tuples(count)
    truth = TRUTH_SD * np.random.default_rng([seed, 4]).standard_normal(len(tuples.items))
    return simulate(tuples, truth, annotators, noise=1.0, disagreement=tastes, seed=seed)


@lru_cache
def _tuples(dialogues: int) -> Tuples:
    numbers = range(dialogues * GROUP_SIZE)
    groups = [f"g{number // GROUP_SIZE}" for number in numbers]
    return make_tuples([f"i{number}" for number in numbers], 3, groups=groups, count=10)


@lru_cache
def _true_alpha(design: str, tastes: float) -> float:
    """Return the mean alpha of large studies, over all dialogues or random tuples of the items."""
    seeds = range(10_000, 10_000 + LIMIT_STUDIES)
    studies = (
        _dialogues(LIMIT_DIALOGUES, LIMIT_ANNOTATORS, tastes, seed)
        if design == "complete"
        else study_judgments(design, LIMIT_ANNOTATORS, tastes, seed)
        for seed in seeds
    )
    values = [agreement(study).groups[0].alpha["both"].value for study in studies]
    return float(np.mean(values))
