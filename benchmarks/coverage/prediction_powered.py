"""Coverage and width of prediction-powered and pooled scores, compared with people's judgments alone.

30 items have normal utilities. People judge one round of a design of fresh 4-tuples, each item in eight
tuples; a model judges six rounds. People's judgments have logistic noise and individual tastes. A judge has
utilities and noise of its own, drawn for every study; the equal one has people's utilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from benchmarks.coverage.extremes import ITEMS, is_in_part
from benchmarks.coverage.scores import is_approximate, item_numbers
from bws.design import fresh_rounds
from bws.records import Judgments, Scores, Tuples
from bws.scoring import score
from bws.scoring.choice import best_worst_logit
from bws.scoring.expected import expected_counting, expected_values
from bws.scoring.prediction_powered import mean_width, prediction_powered_scores
from bws.simulation import simulate

Floats = NDArray[np.float64]

N_ITEMS, K, ROUNDS, ANNOTATORS = 30, 4, 6, 20
TASTES = 0.5
N_DESIGNS = 20
"""Number of designs used in turn, each with its own utilities."""
TRUTH_TUPLES = 200_000
DRAWS = 20
"""Studies from which correlations and reliability are computed."""


@dataclass(frozen=True)
class People:
    """The utilities of a study, and the number of judgments per tuple."""

    sd: float
    """Standard deviation of the utilities, in logits."""
    per_tuple: int

    def utilities(self, seed: int) -> Floats:
        """Return the (N,) utilities of a study."""
        return self.sd * _standard_utilities(seed % N_DESIGNS)


@dataclass(frozen=True)
class Judge:
    """A simulated language model."""

    utilities: Callable[[Floats, np.random.Generator], Floats]
    """People's standardised utilities -> those of the judge."""
    noise: float = 1.0
    position_bias: float = 0.0


def _mixture(weight: float) -> Callable[[Floats, np.random.Generator], Floats]:
    """Return utilities with a correlation of `weight` with people's."""

    def utilities(people: Floats, rng: np.random.Generator) -> Floats:
        return weight * people + np.sqrt(1 - weight**2) * rng.standard_normal(len(people))

    return utilities


def _preferring_long(people: Floats, rng: np.random.Generator) -> Floats:
    """Return utilities that are half the length of an item, which is correlated with its utility by 0.5."""
    length = 0.5 * people + np.sqrt(0.75) * rng.standard_normal(len(people))
    return 0.5 * people + length


JUDGES = {
    "good": Judge(_mixture(0.85)),
    "biased": Judge(_preferring_long, position_bias=2.0),
    "noisy": Judge(_mixture(0.85), noise=5.0),
    "useless": Judge(_mixture(0.0)),
    "equal": Judge(_mixture(1.0)),
}
ALL = tuple(JUDGES)
STUDIES = (
    (People(1.5, 1), ALL),
    (People(1.5, 5), ALL),
    (People(2.75, 1), ("good", "useless", "equal")),
    (People(8, 1), ("equal",)),
)
"""People and the judges that are combined with them."""
EXTREME_SD = 2.75
"""Standard deviation of the utilities from which extreme items have their own cells."""
STATEMENTS = {False: "giccs score --model-judgments", True: "giccs score --model-judgments --pool"}


def cells() -> list[Cell]:
    """Return a cell per study, judge, statement and part of the items."""
    return [
        Cell(
            STATEMENTS[pool],
            {
                "SD": people.sd,
                "judgments per tuple": people.per_tuple,
                "reliability": _reliability(people),
                "judge": judge,
                "items": items,
                **_correlations(people.sd, judge),
            },
            partial(_study, pool, people, judge, items),
        )
        for people, judges in STUDIES
        for judge in judges
        for pool in STATEMENTS
        for items in (ITEMS if people.sd >= EXTREME_SD and not pool else ITEMS[:1])
    ]


def _study(pool: bool, people: People, judge: str, items: str, seed: int) -> SimulatedStudy:
    judgments = people_judgments(people, seed)
    scores = prediction_powered_scores(
        judgments, model_judgments(people.sd, judge, seed), pool=pool
    )
    assert scores.low is not None
    assert scores.high is not None
    truth = true_scores(people.sd, seed % N_DESIGNS)[item_numbers(judgments.tuples)]
    has_interval = ~np.isnan(scores.low) & is_in_part(items, truth)
    covered = (scores.low <= truth) & (truth <= scores.high)
    return SimulatedStudy(
        int(covered[has_interval].sum()),
        int(has_interval.sum()),
        is_approximate(scores, near_ends=items != ITEMS[0]),
        width=mean_width(scores) / mean_width(_people_alone(people, seed)),
    )


def model_judgments(sd: float, judge: str, seed: int) -> Judgments:
    """Return a judge's judgments of all rounds."""
    tuples, settings = _design(seed % N_DESIGNS), JUDGES[judge]
    models = simulate(
        tuples, _judge_utilities(sd, judge, seed)[item_numbers(tuples)], 1,
        noise=settings.noise, position_bias=settings.position_bias, seed=seed + 1_000_000,
    )  # fmt: skip
    return replace(models, annotators=np.array(["model:judge"], dtype=object))


def _judge_utilities(sd: float, judge: str, seed: int) -> Floats:
    rng = np.random.default_rng([seed, 1])
    return sd * JUDGES[judge].utilities(_standard_utilities(seed % N_DESIGNS), rng)


@lru_cache
def people_judgments(people: People, seed: int) -> Judgments:
    """Return people's judgments of the first round."""
    tuples = _design(seed % N_DESIGNS)
    judgments = simulate(
        tuples, people.utilities(seed)[item_numbers(tuples)], ANNOTATORS,
        noise=1.0, disagreement=TASTES, per_tuple=people.per_tuple, seed=seed,
    )  # fmt: skip
    return judgments.select(tuples.columns["round"][judgments.tuple_of] == "1")


@lru_cache
def _people_alone(people: People, seed: int) -> Scores:
    return score(people_judgments(people, seed), interval="model")


@lru_cache
def _design(seed: int) -> Tuples:
    return fresh_rounds([f"i{number}" for number in range(N_ITEMS)], K, ROUNDS, seed=seed)


@lru_cache
def _standard_utilities(draw: int) -> Floats:
    values: Floats = np.random.default_rng([draw, 7]).standard_normal(N_ITEMS)
    return values


@lru_cache
def true_scores(sd: float, draw: int) -> Floats:
    """Return (N,) expected values of random judgments by random annotators."""
    rng = np.random.default_rng(8)
    members = rng.random((TRUTH_TUPLES, N_ITEMS)).argpartition(K, axis=1)[:, :K]
    utility = sd * _standard_utilities(draw)[members] + TASTES * rng.standard_normal(members.shape)
    own = np.arange(members.size).reshape(members.shape)
    values = expected_values(utility.ravel(), own, best_worst_logit)
    sums = np.bincount(members.ravel(), values.ravel(), N_ITEMS)
    scores: Floats = sums / np.bincount(members.ravel(), minlength=N_ITEMS)
    return scores


@lru_cache
def _correlations(sd: float, judge: str) -> dict[str, str]:
    """Return the mean correlations of a judge's scores with the true scores, and within items.

    Within items: of an item's value in one person's judgment and its expected value under the judge's
    utilities, as deviations from the item's means.
    """
    people = simulate(
        _design(0), sd * _standard_utilities(0)[item_numbers(_design(0))], ANNOTATORS,
        noise=1.0, disagreement=TASTES, seed=1,
    ).canonical  # fmt: skip
    number = np.array([int(item[1:]) for item in people.items])
    actual = _deviations(people.values, people.judged_items)
    of_scores, within = [], []
    for seed in range(0, DRAWS * N_DESIGNS, N_DESIGNS):  # the utilities of the first design
        utility = _judge_utilities(sd, judge, seed) / JUDGES[judge].noise
        one_group = np.zeros(N_ITEMS, dtype=np.int64)
        judged = expected_counting(utility, one_group, K, best_worst_logit)
        of_scores.append(np.corrcoef(judged, true_scores(sd, seed % N_DESIGNS))[0, 1])
        expected = expected_values(utility[number], people.members, best_worst_logit)
        predicted = _deviations(expected[people.tuple_of], people.judged_items)
        within.append(np.corrcoef(actual, predicted)[0, 1])
    return {"r scores": f"{np.mean(of_scores):.2f}", "r within items": f"{np.mean(within):.2f}"}


@lru_cache
def _reliability(people: People) -> str:
    """Return the mean squared correlation of people's scores with the true scores."""
    squares = []
    for seed in range(DRAWS):
        judgments = people_judgments(people, seed)
        truth = true_scores(people.sd, seed % N_DESIGNS)[item_numbers(judgments.tuples)]
        squares.append(np.corrcoef(score(judgments).score, truth)[0, 1] ** 2)
    return f"{np.mean(squares):.2f}"


def _deviations(values: Floats, items: NDArray[np.int64]) -> Floats:
    """Return the values minus the means of their items, flat."""
    flat = items.ravel()
    mean = np.bincount(flat, values.ravel()) / np.bincount(flat)
    return np.asarray(values.ravel() - mean[flat])
