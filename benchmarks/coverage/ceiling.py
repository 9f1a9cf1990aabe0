"""Coverage of the noise ceiling's interval for models that know the true scores, and its bias.

Each study draws new items, new annotators and, for incomplete designs, one of five designs. The true score
of an item is its expected counting score over all tuples of its group (or random ones in large groups) and
new annotators for each. The true value of a cell is the mean correlation of the scores with the true scores
over TRUTHS separate studies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from benchmarks.coverage.scores import values_in_tuples
from bws.design import make_tuples
from bws.records import Judgments, Scores, Tuples
from bws.scoring import METHODS, Scale, score, utilities
from bws.scoring.expected import expected_counting
from bws.simulation import simulate
from giccs.benchmark import SAMPLE, Benchmark, read_benchmark
from giccs.benchmark.items import Item
from giccs.measures.ceiling import noise_ceiling

Floats = NDArray[np.float64]

TRUTHS = 100
FIRST_TRUTH = 1_000_000
"""First seed of the studies for the true value; seeds of the intervals are smaller."""
RANDOM_TUPLES = 5000
"""Random tuples per item for a true score. With 1000, its error lowers correlations by .0015."""
FEW_TUPLES = 100
"""Maximum number of tuples per group for true scores from all tuples."""
TASTES_DRAWN = 2000
"""New annotators of all tuples for a true score, in such groups."""
DESIGNS = 5
LIMIT_FACTOR, LIMIT_ANNOTATORS, LIMIT_PRIOR = 20, 300, 100.0
"""Tuples per item, annotators and prior for the true utilities of a misspecified model."""


@dataclass(frozen=True)
class Setting:
    """Settings of a study: groups of items, each with a separate design, judged by annotators."""

    groups: int
    size: int
    k: int
    factor: float
    annotators: int
    tastes: float = 0.0
    """Standard deviation of the annotators' tastes."""
    utilities: float = 1.5
    """Standard deviation of the utilities, in logits of a choice."""
    per_tuple: int = 0
    """Random annotators per tuple; 0: all annotators."""
    loads: float = 0.0
    """Standard deviation of the logarithms of the annotators' loads, with `per_tuple`."""
    method: str = "counting"
    scale: Scale = "unit"

    @property
    def complete(self) -> bool:
        """Whether all `k`-subsets of a group are judged."""
        return comb(self.size, self.k) == self.factor * self.size

    @property
    def _scores(self) -> str:
        return self.method if self.scale == "unit" else f"{self.method}, counting's scale"

    def described(self) -> Mapping[str, object]:
        """Return the columns of the table."""
        design = "complete" if self.complete else f"factor {self.factor:g}"
        per_tuple = f"{self.per_tuple} of {self.annotators}" if self.per_tuple else self.annotators
        return {
            **({} if self.method == "counting" else {"scores": self._scores}),
            "groups": f"{self.groups} × {self.size}",
            "tuples": f"{self.k} items, {design}",
            "annotators": per_tuple,
            "tastes": f"{self.tastes:g}",
            "loads": f"{self.loads:g}",
            "utilities": f"{self.utilities:g}",
        }


SETTINGS = (
    Setting(30, 5, 3, 2, 5),
    Setting(60, 5, 3, 2, 5, utilities=2.75),
    Setting(30, 5, 3, 2, 3, tastes=0.5),
    Setting(60, 5, 3, 2, 5, tastes=1),
    Setting(30, 5, 3, 2, 20, tastes=1, per_tuple=4),
    Setting(30, 6, 4, 2.5, 2, tastes=0.5),
    Setting(30, 5, 3, 1, 5),
    Setting(20, 8, 4, 2, 3, tastes=0.5),
    Setting(1, 120, 3, 2, 5, utilities=2.75),
    Setting(1, 120, 4, 1, 4, utilities=2.75),
    Setting(1, 120, 4, 2, 4, utilities=2.75),
    Setting(1, 120, 4, 2, 20, tastes=1, per_tuple=4),
    Setting(1, 120, 4, 4, 2, utilities=2.75),
    Setting(1, 120, 5, 2, 4, utilities=2.75),
    Setting(30, 5, 3, 2, 30, tastes=0.5, per_tuple=5, loads=1),
    Setting(1, 100, 4, 2, 30, tastes=0.5, per_tuple=4, loads=1),
)


def cells() -> list[Cell]:
    """Return a cell for each setting and coefficient."""
    return cells_of(SETTINGS)


def cells_of(settings: Iterable[Setting]) -> list[Cell]:
    """Return a cell for each setting and coefficient."""
    return [
        Cell(f"noise ceiling, {name}", setting.described(), partial(simulated, setting, name))
        for setting in settings
        for name in ("pearson", "spearman")
    ]


def simulated(setting: Setting, name: str, seed: int) -> SimulatedStudy:
    low, high, value, warned = _ceilings(setting, seed)[name]
    truth = _truth(setting)[name]
    return SimulatedStudy(int(low <= truth <= high), int(low == low), warned, value - truth)


@cache
def _ceilings(setting: Setting, seed: int) -> dict[str, tuple[float, float, float, bool]]:
    judgments, _ = study(setting, seed)
    ceilings = noise_ceiling(judgments, benchmark_of(setting, judgments))
    return {
        name: (ceiling.low, ceiling.high, ceiling.value, bool(ceiling.reason))
        for name, ceiling in ceilings.items()
    }


@cache
def _truth(setting: Setting) -> dict[str, float]:
    """Return the mean Pearson's r and Spearman's rho of scores with true scores."""
    from scipy.stats import spearmanr

    reached = {"pearson": 0.0, "spearman": 0.0}
    for seed in range(FIRST_TRUTH, FIRST_TRUTH + TRUTHS):
        judgments, utility = study(setting, seed)
        observed = _scores(setting, judgments).score
        true = _true_scores(setting, judgments.tuples, utility, seed)
        reached["pearson"] += float(np.corrcoef(observed, true)[0, 1]) / TRUTHS
        reached["spearman"] += float(spearmanr(observed, true)[0]) / TRUTHS
    return reached


def study(setting: Setting, seed: int) -> tuple[Judgments, Floats]:
    """Return the judgments and the utilities of the items."""
    random = np.random.default_rng(seed)
    tuples = design_of(setting, seed % DESIGNS)
    utility = setting.utilities * random.standard_normal(len(tuples.items))
    judgments = simulate(
        tuples, utility, setting.annotators, noise=1, disagreement=setting.tastes, seed=seed
    )
    if setting.per_tuple:
        loads = np.exp(setting.loads * random.standard_normal(setting.annotators))
        waiting = random.exponential(size=(len(tuples), setting.annotators)) / loads
        order = np.argsort(waiting, axis=1)
        judgments = judgments.select(np.argsort(order, axis=1).ravel() < setting.per_tuple)
    return judgments, utility


@cache
def design_of(setting: Setting, seed: int) -> Tuples:
    n = setting.groups * setting.size
    names = [f"g{item // setting.size:03}" for item in range(n)] if setting.groups > 1 else None
    items = [f"i{item:03}" for item in range(n)]
    return make_tuples(items, setting.k, factor=setting.factor, groups=names, seed=seed)


def _scores(setting: Setting, judgments: Judgments) -> Scores:
    return score(judgments, setting.method, scale=setting.scale)


def benchmark_of(setting: Setting, judgments: Judgments) -> Benchmark:
    """Return a benchmark with the scores in [0, 1]; without groups, each item is a separate dialogue."""
    scores = _scores(setting, judgments)
    shares = scores.score if setting.scale == "unit" else (scores.score + 1) / 2
    return Benchmark(
        "simulated",
        tuple(
            replace(
                _like(), item_id=item, utterance_id=item, dialogue_id=group or item, score=value
            )
            for item, group, value in zip(scores.items, scores.groups, shares.tolist(), strict=True)
        ),
    )


@cache
def _like() -> Item:
    return read_benchmark(SAMPLE).items[0]


def _true_scores(setting: Setting, tuples: Tuples, utility: Floats, seed: int) -> Floats:
    """Return (N,) the scores in the limit of many annotators, tuples and judgments."""
    if setting.method == "counting":
        return expected_counting_scores(setting, utility, seed)
    limit_scores = _limit(setting, tuples, utility, seed)
    stages = METHODS[setting.method].stages
    if setting.scale == "unit" or stages is None:
        return np.asarray(np.tanh(limit_scores / 2))
    group = np.arange(len(limit_scores)) // setting.size
    return expected_counting(limit_scores, group, setting.k, stages)


def _limit(setting: Setting, tuples: Tuples, utility: Floats, seed: int) -> Floats:
    """Return (N,) the utilities in the limit of many judgments, centred per group."""
    if not setting.tastes and setting.method == "best-worst-logit":
        by_group = utility.reshape(setting.groups, setting.size)
        return (by_group - by_group.mean(axis=1, keepdims=True)).ravel()
    factor = min(LIMIT_FACTOR, comb(setting.size, setting.k) / setting.size)
    many = design_of(replace(setting, factor=factor), 0)
    index_of = {item: number for number, item in enumerate(tuples.items.tolist())}
    indices = np.array([index_of[item] for item in many.items.tolist()])
    judgments = simulate(
        many, utility[indices], LIMIT_ANNOTATORS, noise=1, disagreement=setting.tastes, seed=seed
    )
    limit_scores = np.empty(len(utility))
    limit_scores[indices] = utilities(judgments, setting.method, prior=LIMIT_PRIOR).utility
    return limit_scores


def expected_counting_scores(setting: Setting, utility: Floats, seed: int) -> Floats:
    """Return (N,) the expected counting score of every item."""
    random = np.random.default_rng([seed, 1])
    groups = np.arange(len(utility)).reshape(setting.groups, setting.size)
    if comb(setting.size, setting.k) <= FEW_TUPLES:
        together = np.array(list(combinations(range(setting.size), setting.k)))
        members = groups[:, together].reshape(-1, setting.k)
        annotators = TASTES_DRAWN if setting.tastes else 1
        taste = setting.tastes * random.standard_normal((annotators, len(utility)))
        merit = (utility + taste)[:, members].reshape(-1, setting.k)
        members = np.tile(members, (annotators, 1))
    else:
        dealt = np.concatenate([random.permuted(groups, axis=1) for _ in range(RANDOM_TUPLES)])
        members = dealt[:, : setting.size // setting.k * setting.k].reshape(-1, setting.k)
        merit = utility[members] + setting.tastes * random.standard_normal(members.shape)
    total = np.bincount(members.ravel(), values_in_tuples(merit).ravel(), len(utility))
    return total / np.bincount(members.ravel(), minlength=len(utility))
