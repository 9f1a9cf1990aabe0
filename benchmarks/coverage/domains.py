"""Coverage of intervals over domains: `--cluster domain` of `giccs eval` and `giccs report`.

Each study has new domains with the same number of dialogues of five candidates. In a domain, the errors of
the model's predictions and of the judge's scores are multiplied by a log-normal factor. The true value is
that of TRUTH dialogues, each in its own domain; for annotators, the mean over PANELS other panels of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.annotators import CANDIDATES, Setting, predictions_and_scores, study
from benchmarks.coverage.annotators import TRUTH as PANEL_DIALOGUES
from benchmarks.coverage.cells import Cell, SimulatedStudy
from bws.stats.estimates import Estimate
from giccs.measures.annotator_uncertainty import correlations_over_annotators
from giccs.measures.clusters import MIN_GROUPS, Clusters
from giccs.measures.metrics import correlations
from giccs.measures.prediction_powered import powered_accuracy, powered_correlations

Floats = NDArray[np.float64]

SPREAD = 0.5
"""Standard deviation of the logarithm of a domain's factor."""
PEOPLE_ERROR, JUDGE_ERROR, ERROR = 0.3, 0.6, 0.8
TRUTH, TRUTH_SEED = 30_000, 1_000_000
PANELS = 50
STUDIES = 1000


@dataclass(frozen=True)
class Design:
    """Numbers of dialogues, domains and people's dialogues or annotators."""

    dialogues: int
    domains: int
    judged: int = 0
    """Dialogues that people scored; 0: all."""
    annotators: int = 0
    """Annotators of the scores, with slants; 0: scores without judgments."""

    @property
    def clusters(self) -> Clusters:
        """The domains."""
        return Clusters(np.arange(self.dialogues) % self.domains, "domains", MIN_GROUPS)

    @property
    def setting(self) -> Setting:
        """The annotators' tastes and slants."""
        return Setting(self.dialogues, self.annotators, tastes=0.5, slants=0.5)


DESIGNS = {
    "giccs eval --cluster domain": (Design(60, 6), Design(60, 12), Design(200, 20)),
    "giccs report --people --cluster domain": (Design(200, 12, 60), Design(200, 20, 60)),
    "giccs report --judgments --cluster domain": (Design(60, 12, 0, 5), Design(60, 20, 0, 20)),
}
METRICS = ("pearson", "spearman", "rank_spearman")


def cells() -> list[Cell]:
    """Return a cell per command, design and metric."""
    return [
        Cell(
            f"{command}, {metric}",
            {
                "dialogues": design.dialogues,
                "domains": design.domains,
                "of people": design.judged or "all",
                "annotators": design.annotators or "none",
            },
            partial(_study, design, metric),
            studies=STUDIES,
        )
        for command, designs in DESIGNS.items()
        for design in designs
        for metric in (*METRICS, *(["accuracy"] if design.judged else []))
    ]


def _study(design: Design, metric: str, seed: int) -> SimulatedStudy:
    estimate, truth = _estimates(design, seed)[metric], _truth(design)[metric]
    return SimulatedStudy(
        int(estimate.low <= truth <= estimate.high),
        int(not np.isnan(estimate.low)),
        bool(estimate.reason),
        estimate.value - truth,
    )


@lru_cache(maxsize=10_000)
def _estimates(design: Design, seed: int) -> dict[str, Estimate]:
    if design.annotators:
        return _over_annotators(design, seed)
    factor, clusters = _factors(design, seed), design.clusters
    prediction, judge, people, dialogue = _scores(factor[:, clusters.of_dialogue], seed)
    if not design.judged:
        return correlations(prediction, people, dialogue, clusters=clusters)
    is_scored = np.random.default_rng([seed, 2]).permutation(design.dialogues) < design.judged
    by_people = np.where(is_scored[dialogue], people, np.nan)
    powered = powered_correlations(prediction, judge, by_people, dialogue, clusters=clusters)
    by_judge, by_key = _is_right(prediction, judge), _is_right(prediction, people)
    key = np.where(is_scored, by_key, np.nan)
    accuracy = powered_accuracy(by_judge, key, clusters)
    return {name: each.powered for name, each in {**powered, "accuracy": accuracy}.items()}


def _factors(design: Design, seed: int) -> Floats:
    """Return (2, G) factors of the model's and of the judge's errors in each domain."""
    random = np.random.default_rng([seed, 1])
    factors: Floats = np.exp(SPREAD * random.normal(size=(2, design.domains)))
    return factors


def _scores(factor: Floats, seed: int) -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
    """Return (N,) predictions, the judge's scores, people's scores and dialogues, given (2, D) factors."""
    random = np.random.default_rng(seed)
    quality, *errors = random.normal(size=(4, factor.shape[1], CANDIDATES))
    prediction = quality + ERROR * factor[0][:, None] * errors[0]
    judge = quality + JUDGE_ERROR * factor[1][:, None] * errors[1]
    people = quality + PEOPLE_ERROR * errors[2]
    dialogue = np.repeat(np.arange(factor.shape[1]), CANDIDATES)
    return prediction.ravel(), judge.ravel(), people.ravel(), dialogue


def _is_right(prediction: Floats, score: Floats) -> Floats:
    """Return (D,) 1 if the highest prediction of a dialogue is that of the item with the highest score."""
    chosen, best = (each.reshape(-1, CANDIDATES).argmax(axis=1) for each in (prediction, score))
    return (chosen == best).astype(np.float64)


def _over_annotators(design: Design, seed: int) -> dict[str, Estimate]:
    prediction, judgments, benchmark = study(design.setting, seed)
    factor = _factors(design, seed)[0, design.clusters.of_dialogue]
    noisy = prediction + _further_error(factor, seed)
    (found,) = correlations_over_annotators(judgments, benchmark, [noisy], clusters=design.clusters)
    return found


def _further_error(factor: Floats, seed: int) -> Floats:
    """Return (N,) further errors of predictions, given (D,) factors."""
    errors = np.random.default_rng([seed, 3]).normal(size=(len(factor), CANDIDATES))
    return (factor[:, None] * errors).ravel()


@lru_cache
def _truth(design: Design) -> dict[str, float]:
    """Return the true value of each metric."""
    if design.annotators:
        return _truth_of_panels(design)
    whole = Design(TRUTH, TRUTH)
    prediction, _, people, dialogue = _scores(_factors(whole, TRUTH_SEED), TRUTH_SEED)
    found = correlations(prediction, people, dialogue, resamples=0)
    accuracy = float(_is_right(prediction, people).mean())
    return {**{name: each.value for name, each in found.items()}, "accuracy": accuracy}


def _truth_of_panels(design: Design) -> dict[str, float]:
    many = Design(PANEL_DIALOGUES, PANEL_DIALOGUES, 0, design.annotators)
    dialogue = np.repeat(np.arange(PANEL_DIALOGUES), CANDIDATES)
    values = []
    for seed in range(TRUTH_SEED, TRUTH_SEED + PANELS):
        prediction, score = predictions_and_scores(many.setting, seed)
        noisy = prediction + _further_error(_factors(many, seed)[0], seed)
        found = correlations(noisy, score, dialogue, resamples=0)
        values.append([found[name].value for name in METRICS])
    return dict(zip(METRICS, np.mean(values, axis=0).tolist(), strict=True))
