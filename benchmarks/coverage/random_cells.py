"""Coverage in forty cells drawn at random from the ranges of the designs.

Scores, ranks and ceilings: groups of four to ten items or a single group, five to forty annotators, tastes,
careless annotators and missing judgments. Correlations: dialogues of two to twelve candidates, some of which
are missing. Each study of scores has its own utilities and design. The seed was chosen after the methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage import ceiling
from benchmarks.coverage.cells import Cell, SimulatedStudy
from benchmarks.coverage.scores import is_approximate
from bws.records import Judgments
from bws.scoring import score
from bws.simulation import simulate
from giccs.measures.metrics import correlations
from giccs.measures.prediction_powered import powered_correlations

Floats = NDArray[np.float64]

SEED = 432_026
KINDS = {"scores": 12, "correlations": 12, "people": 6, "ranks": 6, "ceiling": 4}
"""Kinds of cells and their numbers."""
STUDIES = {"scores": 200, "correlations": 1000, "people": 1000, "ranks": 200, "ceiling": 200}
COEFFICIENTS = ("pearson", "spearman", "rank_spearman")
TRUTH, TRUTH_SEED = 30_000, 1_000_000


def cells() -> list[Cell]:
    """Return the random cells."""
    random = np.random.default_rng(SEED)
    makers = {"correlations": _correlation_cell, "people": _people_cell, "ceiling": _ceiling_cell}
    return [
        makers[kind](random) if kind in makers else _score_cell(random, kind)
        for kind, count in KINDS.items()
        for _ in range(count)
    ]


def _cell(kind: str, statement: str, setting: str, simulate_study: Any, **options: Any) -> Cell:
    studies = STUDIES[kind]
    return Cell(statement, {"setting": setting}, simulate_study, studies=studies, **options)


@dataclass(frozen=True)
class Design:
    """A study of scores with careless annotators' answers and missing judgments."""

    setting: ceiling.Setting
    careless: float
    """Share of random answers."""
    missing: float
    """Share of missing judgments."""

    def __str__(self) -> str:
        columns = self.setting.described()
        parts = [f"{name} {value}" for name, value in columns.items()]
        return ", ".join([*parts, f"careless {self.careless:g}, missing {self.missing:g}"])


def _random_setting(random: np.random.Generator) -> ceiling.Setting:
    is_single = random.random() < 0.4
    groups, size = (1, random.integers(30, 81)) if is_single else (random.integers(8, 31), 0)
    size = int(size or random.integers(4, 11))
    k = int(random.integers(3, min(size, 6)))
    factor = min(float(random.choice([1, 1.5, 2, 3])), comb(size, k) / size)
    annotators = int(random.choice([5, 8, 12, 20, 40]))
    return ceiling.Setting(
        int(groups), size, k, factor, annotators,
        tastes=float(random.choice([0, 0.5, 1])),
        utilities=float(random.choice([1, 1.5, 2.75])),
        per_tuple=int(random.integers(4, 8)) if annotators > 8 else 0,
    )  # fmt: skip


def _score_cell(random: np.random.Generator, kind: str) -> Cell:
    design = Design(
        _random_setting(random), float(random.choice([0, 0.1, 0.2])), float(random.choice([0, 0.1]))
    )
    if kind == "ranks":
        study = partial(_ranks, design)
        statement = "counting --intervals --ranks"
        return _cell(kind, statement, str(design), study, required=(0.95, 1.0))
    return _cell(kind, "counting --intervals", str(design), partial(_scores, design))


@lru_cache(maxsize=10_000)
def _study(design: Design, seed: int) -> tuple[Judgments, Floats]:
    """Return judgments and (N,) true scores."""
    setting = design.setting
    tuples = ceiling.design_of(setting, seed)
    judgments = simulate(
        tuples, _utility(setting, seed), setting.annotators, noise=1.0, disagreement=setting.tastes,
        careless=design.careless, per_tuple=setting.per_tuple or None, seed=seed,
    )  # fmt: skip
    is_present = np.random.default_rng([seed, 4]).random(len(judgments)) >= design.missing
    return judgments.select(is_present), (1 - design.careless) * _expected(setting, seed)


def _utility(setting: ceiling.Setting, seed: int) -> Floats:
    n_items = setting.groups * setting.size
    return np.asarray(setting.utilities * np.random.default_rng([seed, 6]).normal(size=n_items))


def _expected(setting: ceiling.Setting, seed: int) -> Floats:
    return ceiling.expected_counting_scores(setting, _utility(setting, seed), seed)


def _scores(design: Design, seed: int) -> SimulatedStudy:
    judgments, truth = _study(design, seed)
    scores = score(judgments, interval="model")
    assert scores.low is not None
    assert scores.high is not None
    covered = (scores.low <= truth) & (truth <= scores.high)
    n_known = int(np.count_nonzero(~np.isnan(scores.low)))
    return SimulatedStudy(int(covered.sum()), n_known, is_approximate(scores))


def _ranks(design: Design, seed: int) -> SimulatedStudy:
    judgments, truth = _study(design, seed)
    scores = score(judgments, interval="model", ranks=True)
    assert scores.rank_low is not None
    assert scores.rank_high is not None
    group_of = judgments.tuples.group_of_item[: len(truth)]
    is_above = (truth[:, None] < truth) & (group_of[:, None] == group_of)
    rank = 1 + is_above.sum(axis=1)
    is_missed = (rank < scores.rank_low) | (rank > scores.rank_high)
    n_right = int(np.count_nonzero(np.bincount(group_of, is_missed) == 0))
    return SimulatedStudy(n_right, int(group_of.max()) + 1, is_approximate(scores))


def _ceiling_cell(random: np.random.Generator) -> Cell:
    setting, name = _random_setting(random), str(random.choice(["pearson", "spearman"]))
    design = str(Design(setting, 0.0, 0.0))
    return _cell(
        "ceiling", f"noise ceiling, {name}", design, partial(ceiling.simulated, setting, name)
    )


@dataclass(frozen=True)
class Dialogues:
    """Dialogues of 2 … `candidates` candidates, and the errors of predictions."""

    dialogues: int
    candidates: int
    item_error: float
    dialogue_error: float
    missing: float
    """Share of missing candidates."""
    judged: int = 0
    """Number of dialogues that people judge; 0 without a judge."""

    def __str__(self) -> str:
        parts = f"{self.judged} of " if self.judged else ""
        errors = f"errors {self.item_error:g} and {self.dialogue_error:g} per dialogue"
        sizes = f"{self.dialogues} dialogues of 2–{self.candidates} candidates"
        return f"{parts}{sizes}, {errors}, missing {self.missing:g}"


def _random_dialogues(random: np.random.Generator) -> dict[str, Any]:
    return {
        "candidates": int(random.integers(4, 13)),
        "item_error": float(random.choice([0.3, 0.8, 2.0])),
        "dialogue_error": float(random.choice([0, 0.3, 0.8])),
        "missing": float(random.choice([0, 0.1])),
    }


def _correlation_cell(random: np.random.Generator) -> Cell:
    dialogues = int(random.choice([10, 20, 30, 60, 100]))
    data, name = Dialogues(dialogues, **_random_dialogues(random)), str(random.choice(COEFFICIENTS))
    study = partial(_correlation, data, name)
    return _cell("correlations", f"giccs eval, {name}", str(data), study)


def _people_cell(random: np.random.Generator) -> Cell:
    dialogues, judged = int(random.choice([100, 200, 400])), int(random.choice([20, 30, 60]))
    data = Dialogues(dialogues, **_random_dialogues(random), judged=judged)
    name = str(random.choice(COEFFICIENTS))
    study = partial(_correlation, data, name)
    return _cell("people", f"giccs report --people, {name}", str(data), study)


def _correlation(data: Dialogues, name: str, seed: int) -> SimulatedStudy:
    prediction, judge, people, dialogue = _simulated(data, data.dialogues, seed)
    if data.judged:
        by_people = np.where(dialogue < data.judged, people, np.nan)
        estimate = powered_correlations(prediction, judge, by_people, dialogue)[name].powered
    else:
        estimate = correlations(prediction, people, dialogue)[name]
    truth = _truth(data)[name]
    is_covered = estimate.low <= truth <= estimate.high
    bias = estimate.value - truth
    return SimulatedStudy(
        int(is_covered), int(not np.isnan(estimate.low)), bool(estimate.reason), bias
    )


@lru_cache
def _truth(data: Dialogues) -> dict[str, float]:
    prediction, _, people, dialogue = _simulated(data, TRUTH, TRUTH_SEED)
    estimates = correlations(prediction, people, dialogue, resamples=0)
    return {name: estimate.value for name, estimate in estimates.items()}


def _simulated(
    data: Dialogues, dialogues: int, seed: int
) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
    """Return (N,) predictions, scores of a judge and of people, and the items' dialogues."""
    random = np.random.default_rng(seed)
    shape = (dialogues, data.candidates)
    quality, *errors = random.normal(size=(4, *shape))
    quality = quality + 0.5 * random.normal(size=(dialogues, 1))
    people, judge = quality + 0.3 * errors[0], quality + 0.8 * errors[1]
    shared = data.dialogue_error * random.normal(size=(dialogues, 1))
    prediction = quality + data.item_error * errors[2] + shared
    position = np.arange(data.candidates)
    is_item = position < random.integers(2, data.candidates + 1, (dialogues, 1))
    is_item &= (position < 2) | (random.random(shape) >= data.missing)
    return prediction[is_item], judge[is_item], people[is_item], np.nonzero(is_item)[0]
