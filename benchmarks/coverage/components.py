"""Intervals of variance components and of the reliability of the scores (giccs reliability --components)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from bws.components import Generalisability, components, generalisability
from bws.design import make_tuples
from bws.records import Judgments
from bws.scoring import score
from bws.simulation import simulate

UTILITIES_SD = 1.5
"""In units of the noise SD."""
TRUTH_STUDIES = 200
TRUTH_SEED = 1_000_000


@dataclass(frozen=True)
class Design:
    """Design of a study: items in groups of five (or one group), tuples, annotators."""

    items: int
    groups: int
    """Number of groups; 0: a single group."""
    k: int
    per_item: int
    """Tuples per item; in groups of five, 6 is the complete design of 3-tuples."""
    annotators: int
    per_tuple: int
    """Annotators per tuple; drawn at random if fewer than all."""
    tastes: float

    @property
    def setting(self) -> dict[str, object]:
        """Columns of the table."""
        return {
            "items": f"{self.groups} × 5" if self.groups else self.items,
            "K": self.k,
            "tuples per item": self.per_item,
            "annotators": self.annotators,
            "per tuple": self.per_tuple,
            "tastes": self.tastes,
        }

    def judgments(self, seed: int, items_seed: int) -> Judgments:
        """Return a study with items from one seed, and design and annotators from another."""
        names = [f"i{n:04d}" for n in range(self.items)]
        if self.groups:
            groups = [f"g{n // 5:03d}" for n in range(self.items)]
            tuples = make_tuples(
                names, self.k, groups=groups, count=5 * self.per_item // self.k, seed=seed
            )
        else:
            tuples = make_tuples(names, self.k, factor=self.per_item / self.k, seed=seed)
        random = np.random.default_rng([items_seed, 1])
        truth = UTILITIES_SD * random.normal(size=self.items)
        order = [int(item[1:]) for item in tuples.items]
        judgments = simulate(
            tuples, truth[order], self.annotators, noise=1.0, disagreement=self.tastes, seed=seed
        )
        if self.per_tuple == self.annotators:
            return judgments
        draw = np.random.default_rng([seed, 2]).random((len(tuples), self.annotators))
        judging = np.argsort(np.argsort(draw, axis=1), axis=1) < self.per_tuple
        return judgments.select(judging[judgments.tuple_of, judgments.annotator_of])

    def study(self, seed: int) -> Generalisability:
        """Return a study with new items, tuples and annotators."""
        return generalisability(self.judgments(seed, seed).canonical)


def _scores(judgments: Judgments) -> NDArray[np.float64]:
    scores = score(judgments)
    return scores.score[np.argsort(scores.items)]


@cache
def _truth(design: Design) -> dict[str, float]:
    """Return the true reliability and components, estimated from many studies.

    Reliability: the covariance of the scores of two studies of the same items, by other tuples and
    annotators, over their variance. The components: means of unbiased estimates.
    """
    covariances, variances, estimates = [], [], []
    for n in range(TRUTH_STUDIES):
        items = TRUTH_SEED + n
        first, second = (design.judgments(TRUTH_SEED + 2 * n + half, items) for half in (0, 1))
        covariance = np.cov(_scores(first), _scores(second))
        covariances.append(covariance[0, 1])
        variances.append((covariance[0, 0] + covariance[1, 1]) / 2)
        point = components(first.canonical)
        estimates.append([point.design, point.annotator, point.residual])
    names = ("design", "annotator", "residual")
    item = float(np.mean(covariances))
    return {
        "reliability": item / float(np.mean(variances)),
        "item": item,
        **dict(zip(names, np.mean(estimates, axis=0).tolist(), strict=True)),
    }


def _simulated(seed: int, design: Design, name: str) -> SimulatedStudy:
    study, truth = design.study(seed), _truth(design)[name]
    estimate = study.reliability if name == "reliability" else study.variances[name]
    printed = estimate.low == estimate.low
    covered = printed and estimate.low <= truth <= estimate.high
    return SimulatedStudy(int(covered), int(printed), bool(study.notes), estimate.value - truth)


def cells() -> list[Cell]:
    """Return the cells: complete and incomplete designs, with and without tastes."""
    groups = Design(150, 30, 3, 6, 5, 5, 0.5)
    single_group = Design(100, 0, 3, 6, 5, 5, 0.5)
    designs = [
        replace(groups, tastes=0.0),
        groups,
        replace(groups, annotators=3, per_tuple=3, tastes=1.0),
        replace(groups, annotators=20),
        replace(groups, per_item=3),
        replace(groups, annotators=2, per_tuple=2),
        single_group,
        replace(single_group, annotators=100, per_tuple=4),
    ]
    parts = [("reliability", design) for design in designs]
    parts += [(name, groups) for name in ("item", "design", "annotator", "residual")]
    return [
        Cell(f"--components: {name}", design.setting, partial(_simulated, design=design, name=name))
        for name, design in parts
    ]
