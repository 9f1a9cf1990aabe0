"""Coverage and width of prediction-powered and pooled scores, compared with people's judgments alone.

30 items have normal utilities with a standard deviation of 1.5 logits. People judge one round of a design of
fresh 4-tuples, each item in eight tuples; a model judges six rounds. People's judgments have logistic noise
and individual tastes. A judge has utilities and noise of its own, drawn for every study.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from bws.design import fresh_rounds
from bws.records import Judgments, Scores, Tuples
from bws.scoring import score
from bws.scoring.choice import best_worst_logit
from bws.scoring.expected import expected_counting, expected_values
from bws.scoring.prediction_powered import mean_width, prediction_powered_scores
from bws.simulation import simulate

__all__ = ["cells"]

Floats = NDArray[np.float64]

N_ITEMS, K, ROUNDS, ANNOTATORS = 30, 4, 6, 20
UTILITY_SD, TASTES = 1.5, 0.5
N_DESIGNS = 10
"""Number of designs used in turn, because creating a design takes longer than scoring."""
TRUTH_TUPLES = 200_000
DRAWS = 20
"""Studies from which correlations and reliability are computed."""


@dataclass(frozen=True)
class Judge:
    """A simulated language model."""

    utilities: Callable[[Floats, np.random.Generator], Floats]
    """People's utilities -> those of the judge."""
    noise: float = 1.0
    position_bias: float = 0.0


def _mixture(weight: float) -> Callable[[Floats, np.random.Generator], Floats]:
    """Return utilities with a correlation of `weight` with people's."""

    def utilities(people: Floats, rng: np.random.Generator) -> Floats:
        error = UTILITY_SD * rng.standard_normal(len(people))
        return weight * people + np.sqrt(1 - weight**2) * error

    return utilities


def _preferring_long(people: Floats, rng: np.random.Generator) -> Floats:
    """Return utilities that are half the length of an item, which is correlated with its utility by 0.5."""
    length = 0.5 * people + np.sqrt(0.75) * UTILITY_SD * rng.standard_normal(len(people))
    return 0.5 * people + length


JUDGES = {
    "good": Judge(_mixture(0.85)),
    "biased": Judge(_preferring_long, position_bias=2.0),
    "noisy": Judge(_mixture(0.85), noise=5.0),
    "useless": Judge(_mixture(0.0)),
}
STATEMENTS = {False: "bws-score --models", True: "bws-score --models --pool"}


def cells() -> list[Cell]:
    """Return a cell per number of judgments per tuple, judge and statement."""
    return [
        Cell(
            STATEMENTS[pool],
            {
                "judgments per tuple": per_tuple,
                "reliability": _reliability(per_tuple),
                "judge": name,
                **correlations,
            },
            partial(_study, pool, per_tuple, name),
        )
        for per_tuple in (1, 5)
        for name in JUDGES
        for correlations in [_correlations(name)]
        for pool in STATEMENTS
    ]


def _study(pool: bool, per_tuple: int, judge: str, seed: int) -> SimulatedStudy:
    people, models = _judgments(per_tuple, judge, seed)
    scores = prediction_powered_scores(people, models, pool=pool)
    assert scores.low is not None
    assert scores.high is not None
    truth = _true_scores()[_numbers(people.tuples)]
    has_interval = ~np.isnan(scores.low)
    covered = (scores.low <= truth) & (truth <= scores.high)
    return SimulatedStudy(
        int(covered[has_interval].sum()),
        int(has_interval.sum()),
        width=mean_width(scores) / mean_width(_people_alone(per_tuple, seed)),
    )


def _judgments(per_tuple: int, judge: str, seed: int) -> tuple[Judgments, Judgments]:
    """Simulate the judgments of people and of a model."""
    tuples, settings = _design(seed % N_DESIGNS), JUDGES[judge]
    utility = settings.utilities(_utilities(), np.random.default_rng([seed, 1]))
    models = simulate(
        tuples, utility[_numbers(tuples)], 1,
        noise=settings.noise, position_bias=settings.position_bias, seed=seed + 1_000_000,
    )  # fmt: skip
    named = replace(models, annotators=np.array(["model:judge"], dtype=object))
    return _people(per_tuple, seed), named


@lru_cache
def _people(per_tuple: int, seed: int) -> Judgments:
    tuples = _design(seed % N_DESIGNS)
    judgments = simulate(
        tuples, _utilities()[_numbers(tuples)], ANNOTATORS,
        noise=1.0, disagreement=TASTES, per_tuple=per_tuple, seed=seed,
    )  # fmt: skip
    return judgments.select(tuples.columns["round"][judgments.tuple_of] == "1")


@lru_cache
def _people_alone(per_tuple: int, seed: int) -> Scores:
    return score(_people(per_tuple, seed), interval="model")


@lru_cache
def _design(seed: int) -> Tuples:
    return fresh_rounds([f"i{number}" for number in range(N_ITEMS)], K, ROUNDS, seed=seed)


def _numbers(tuples: Tuples) -> NDArray[np.int64]:
    return np.array([int(item[1:]) for item in tuples.items])


@lru_cache
def _utilities() -> Floats:
    values: Floats = UTILITY_SD * np.random.default_rng(7).standard_normal(N_ITEMS)
    return values


@lru_cache
def _true_scores() -> Floats:
    """Return (N,) expected values of random judgments by random annotators."""
    members, values = _random_values(TRUTH_TUPLES)
    sums = np.bincount(members.ravel(), values.ravel(), N_ITEMS)
    scores: Floats = sums / np.bincount(members.ravel(), minlength=N_ITEMS)
    return scores


@lru_cache
def _random_values(n_tuples: int) -> tuple[NDArray[np.int64], Floats]:
    """Return (T, K) random tuples, and the expected values of their items for a random annotator each."""
    rng = np.random.default_rng(8)
    members = rng.random((n_tuples, N_ITEMS)).argpartition(K, axis=1)[:, :K]
    utility = _utilities()[members] + TASTES * rng.standard_normal(members.shape)
    own = np.arange(members.size).reshape(members.shape)
    return members, expected_values(utility.ravel(), own, best_worst_logit)


@lru_cache
def _correlations(judge: str) -> dict[str, str]:
    """Return the mean correlations of a judge's scores with the true scores, and within items.

    Within items: of an item's value in one person's judgment and its expected value under the judge's
    utilities, as deviations from the item's means.
    """
    people = simulate(
        _design(0), _utilities()[_numbers(_design(0))], ANNOTATORS,
        noise=1.0, disagreement=TASTES, seed=1,
    ).canonical  # fmt: skip
    number = np.array([int(item[1:]) for item in people.items])
    actual = _deviations(people.values, people.judged_items)
    of_scores, within = [], []
    for seed in range(DRAWS):
        utility = JUDGES[judge].utilities(_utilities(), np.random.default_rng([seed, 1]))
        utility = utility / JUDGES[judge].noise
        one_group = np.zeros(N_ITEMS, dtype=np.int64)
        judged = expected_counting(utility, one_group, K, best_worst_logit)
        of_scores.append(np.corrcoef(judged, _true_scores())[0, 1])
        expected = expected_values(utility[number], people.members, best_worst_logit)
        predicted = _deviations(expected[people.tuple_of], people.judged_items)
        within.append(np.corrcoef(actual, predicted)[0, 1])
    return {"r scores": f"{np.mean(of_scores):.2f}", "r within items": f"{np.mean(within):.2f}"}


@lru_cache
def _reliability(per_tuple: int) -> str:
    """Return the mean squared correlation of people's scores with the true scores."""
    squares = []
    for seed in range(DRAWS):
        people = _people(per_tuple, seed)
        truth = _true_scores()[_numbers(people.tuples)]
        squares.append(np.corrcoef(score(people).score, truth)[0, 1] ** 2)
    return f"{np.mean(squares):.2f}"


def _deviations(values: Floats, items: NDArray[np.int64]) -> Floats:
    """Return the values minus the means of their items, flat."""
    flat = items.ravel()
    mean = np.bincount(flat, values.ravel()) / np.bincount(flat)
    return np.asarray(values.ravel() - mean[flat])
