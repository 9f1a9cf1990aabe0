"""Intervals of correlations over dialogues and annotators.

Each study has new dialogues of five candidates and new annotators. The utility of a candidate is normal (SD
1.5), and candidates have a feature (SD 1), such as their length. An annotator chooses by a best-worst logit
of utility + taste (normal, per candidate) + slant * feature, where the slant (normal) is constant per
annotator. The model predicts utility + error + feature. The true value is the mean correlation over PANELS
other panels of the same number of annotators, each with TRUTH separate dialogues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from bws.records import Judgments, Tuples
from bws.stats.estimates import Estimate
from giccs.benchmark import SAMPLE, Benchmark, read_benchmark
from giccs.benchmark.items import Item
from giccs.measures.annotator_uncertainty import correlations_over_annotators
from giccs.measures.metrics import correlations

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CANDIDATES = 5
TUPLES = np.array(list(combinations(range(CANDIDATES), 3)))
"""(10, 3) all 3-tuples of a dialogue."""
UTILITIES = 1.5
ERROR = 1.0
PANELS, TRUTH = 200, 500
FIRST_PANEL = 1_000_000
"""First seed of the panels for the true value; seeds of the studies are smaller."""
COEFFICIENTS = ("pearson", "spearman", "rank_spearman")


@dataclass(frozen=True)
class Setting:
    """Settings of a study."""

    dialogues: int
    annotators: int
    tastes: float = 0.0
    """Standard deviation of the annotators' tastes."""
    slants: float = 0.0
    """Standard deviation of the annotators' coefficients of the feature (slants)."""
    per_dialogue: int = 0
    """Random annotators per dialogue; 0: all annotators."""
    tuples: int = len(TUPLES)
    """Number of random tuples per dialogue."""

    def described(self) -> Mapping[str, object]:
        """Return the columns of the table."""
        some = f"{self.per_dialogue} of " if self.per_dialogue else ""
        return {
            "dialogues": self.dialogues,
            "tuples": f"{self.tuples} of {len(TUPLES)}",
            "annotators": f"{some}{self.annotators}",
            "tastes": f"{self.tastes:g}",
            "slants": f"{self.slants:g}",
        }


def cells() -> list[Cell]:
    """Return the cells of both intervals."""
    sizes = [Setting(dialogues, annotators) for dialogues in (30, 60) for annotators in (5, 20)]
    with_tastes = [replace(size, tastes=tastes) for size in sizes for tastes in (0, 0.5, 1)]
    slanted = [replace(size, tastes=0.5, slants=0.5) for size in sizes]
    slanted += [Setting(60, annotators, tastes=0.5, slants=1) for annotators in (5, 20)]
    partial_judges = [
        Setting(60, 20, tastes=1, per_dialogue=5),
        Setting(60, 20, tastes=0.5, slants=0.5, per_dialogue=5),
        Setting(30, 20, tastes=1, per_dialogue=5, tuples=6),
    ]
    over_both = [*with_tastes, *slanted, *partial_judges]
    single_taste = [*(setting for setting in with_tastes if setting.tastes == 1), *slanted]
    return [
        _cell(setting, name, over_annotators)
        for settings, over_annotators in ((over_both, True), (single_taste, False))
        for setting in settings
        for name in COEFFICIENTS
    ]


def _cell(setting: Setting, name: str, over_annotators: bool) -> Cell:
    over = "dialogues and annotators" if over_annotators else "dialogues alone"
    described = {**setting.described(), "true value": f"{_truth(setting)[name]:.3f}"}
    simulate = partial(_study, setting, name, over_annotators)
    return Cell(f"{name} over {over}", described, simulate)


def _study(setting: Setting, name: str, over_annotators: bool, seed: int) -> SimulatedStudy:
    estimate = _estimates(setting, seed)[over_annotators][name]
    truth = _truth(setting)[name]
    return SimulatedStudy(
        int(estimate.low <= truth <= estimate.high),
        int(estimate.low == estimate.low),
        bool(estimate.reason),
        estimate.value - truth,
    )


@lru_cache(maxsize=100_000)
def _estimates(
    setting: Setting, seed: int
) -> tuple[Mapping[str, Estimate], Mapping[str, Estimate]]:
    """Return the estimates over dialogues alone, and over dialogues and annotators."""
    prediction, judgments, benchmark = study(setting, seed)
    score = np.array([item.score for item in benchmark.items])
    dialogue = np.repeat(np.arange(setting.dialogues), CANDIDATES)
    (result,) = correlations_over_annotators(judgments, benchmark, [prediction])
    return correlations(prediction, score, dialogue), result


def study(setting: Setting, seed: int) -> tuple[Floats, Judgments, Benchmark]:
    """Return (N,) predictions, the judgments, and the benchmark with their counting scores."""
    prediction, best, worst, is_judged = _simulated(setting, seed)
    score = _counting(best, worst, is_judged)
    benchmark = Benchmark("simulated", tuple(map(_item, range(len(score)), score.tolist())))
    return prediction, _judgments(best, worst, is_judged), benchmark


def predictions_and_scores(setting: Setting, seed: int) -> tuple[Floats, Floats]:
    """Return (N,) predictions and counting scores."""
    prediction, best, worst, is_judged = _simulated(setting, seed)
    return prediction, _counting(best, worst, is_judged)


@cache
def _truth(setting: Setting) -> dict[str, float]:
    """Return the mean correlations over many panels of annotators."""
    dialogue = np.repeat(np.arange(TRUTH), CANDIDATES)
    values = []
    for seed in range(FIRST_PANEL, FIRST_PANEL + PANELS):
        prediction, score = predictions_and_scores(replace(setting, dialogues=TRUTH), seed)
        result = correlations(prediction, score, dialogue, resamples=0)
        values.append([result[name].value for name in COEFFICIENTS])
    return dict(zip(COEFFICIENTS, np.mean(values, axis=0).tolist(), strict=True))


def _simulated(setting: Setting, seed: int) -> tuple[Floats, Ints, Ints, NDArray[np.bool_]]:
    """Return predictions (5 D,); best, worst and mask of judgments: (D, A, 10)."""
    random = np.random.default_rng(seed)
    shape = (setting.dialogues, CANDIDATES)
    utility, feature, error = (scale * random.normal(size=shape) for scale in (UTILITIES, 1, ERROR))
    slant = setting.slants * random.normal(size=(setting.annotators, 1))
    taste = setting.tastes * random.normal(size=(setting.dialogues, setting.annotators, CANDIDATES))
    merit = (utility[:, None] + slant * feature[:, None] + taste)[:, :, TUPLES]
    best = np.argmax(merit + random.gumbel(size=merit.shape), axis=-1)
    badness = random.gumbel(size=merit.shape) - merit
    np.put_along_axis(badness, best[..., None], -np.inf, axis=-1)
    worst = np.argmax(badness, axis=-1)
    judges = random.random((setting.dialogues, setting.annotators)).argsort(axis=1)
    order = random.random((setting.dialogues, len(TUPLES))).argsort(axis=1)
    is_judged = judges[:, :, None] < (setting.per_dialogue or setting.annotators)
    return (
        (utility + error + feature).ravel(),
        best,
        worst,
        is_judged & (order < setting.tuples)[:, None],
    )


def _counting(best: Ints, worst: Ints, is_judged: NDArray[np.bool_]) -> Floats:
    """Return (5 D,) counting scores in [0, 1]."""
    dialogue, _, number = np.nonzero(is_judged)
    members = dialogue[:, None] * CANDIDATES + TUPLES[number]
    rows, size = np.arange(len(members)), len(best) * CANDIDATES
    won, lost = (np.bincount(members[rows, of[is_judged]], minlength=size) for of in (best, worst))
    score: Floats = 0.5 + (won - lost) / np.bincount(members.ravel(), minlength=size) / 2
    return score


def _judgments(best: Ints, worst: Ints, is_judged: NDArray[np.bool_]) -> Judgments:
    dialogue, annotator, number = np.nonzero(is_judged)
    return Judgments(
        tuples=_tuples(len(best)),
        tuple_of=(dialogue * len(TUPLES) + number).astype(np.int32),
        best=best[is_judged].astype(np.int8),
        worst=worst[is_judged].astype(np.int8),
        annotator_of=annotator.astype(np.int32),
        annotators=np.array([f"a{n}" for n in range(best.shape[1])], dtype=object),
    )


@cache
def _tuples(dialogues: int) -> Tuples:
    members = np.arange(dialogues)[:, None, None] * CANDIDATES + TUPLES
    names = [[f"{kind}{n:04}" for n in range(dialogues * 10)] for kind in ("t", "i", "d")]
    ids, items, groups = (np.array(name, dtype=object) for name in names)
    return Tuples(
        ids,
        items[: dialogues * CANDIDATES],
        np.repeat(np.arange(dialogues, dtype=np.int32), CANDIDATES),
        groups[:dialogues],
        members.reshape(-1, 3).astype(np.int32),
    )


def _item(number: int, score: float) -> Item:
    name, dialogue = f"i{number:04}", f"d{number // CANDIDATES:04}"
    return replace(_like(), item_id=name, utterance_id=name, dialogue_id=dialogue, score=score)


@cache
def _like() -> Item:
    return read_benchmark(SAMPLE).items[0]
