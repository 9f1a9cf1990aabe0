"""Coverage of the intervals of scores: counting, its bootstrap, and choice models.

The utilities are normal with standard deviation 1.5 logits, the same in all studies of a cell. Complete:
groups of 5 items with all ten 3-tuples. Incomplete: 40 items in 80 4-tuples, with 40
designs in turn. Up to 20 annotators judge every tuple; of 100, five judge each tuple.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from bws.base.notes import pattern
from bws.design import make_tuples
from bws.records import Judgments, Scores, Tuples
from bws.scoring import score, utilities
from bws.scoring.clustering import CONSERVATIVE_NOTE
from bws.scoring.intervals import EXTENDED
from bws.simulation import simulate
from bws.stats.clusters import FEW

Floats = NDArray[np.float64]

N_ITEMS, GROUP_SIZE = 40, 5
TRUTH_SD = 1.5
TUPLE_SIZES = {"complete": 3, "incomplete": 4}
CROWD, JUDGMENTS_PER_TUPLE = 100, 5
OPPONENT_DRAWS = 10_000
LIMIT_ANNOTATORS = {"complete": 4000, "incomplete": 400}
LIMIT_FACTOR = 20
RESAMPLES = 100
N_DESIGNS = 40
"""Number of incomplete designs used in turn, because creating a design takes longer than scoring."""


def cells() -> list[Cell]:
    """Return the cells of counting, its bootstrap and the choice models."""
    crowds = list(product(("complete", "incomplete"), (5, 20, CROWD), (0.0, 0.5, 1.0)))
    refused = [("complete", 3, 0.5), ("incomplete", 3, 0.5)]
    cell_list = [_cell("counting", "--intervals", *setting) for setting in (*refused, *crowds)]
    cell_list += [
        _cell("counting", f"--bootstrap {RESAMPLES}", *setting)
        for setting in (("complete", 5, 1.0), ("incomplete", 5, 0.0), ("incomplete", 20, 1.0))
    ]
    cell_list += [
        _cell(method, "--intervals --cluster judgment", "incomplete", 5, 0.0)
        for method in ("best-worst-logit", "maxdiff", "plackett-luce")
    ]
    settings = [("complete", 5, 1.0), *product(("incomplete",), (5, CROWD), (0.0, 1.0))]
    models = [*product(("best-worst-logit", "plackett-luce"), settings)]
    models += [("maxdiff", ("incomplete", 5, 0.0)), ("bradley-terry", ("incomplete", 5, 1.0))]
    return cell_list + [_cell(method, "--intervals", *setting) for method, setting in models]


def _cell(method: str, flags: str, design: str, annotators: int, tastes: float) -> Cell:
    setting: dict[str, Any] = {"design": design, "annotators": annotators, "tastes": tastes}
    return Cell(f"{method} {flags}", setting, partial(_study, method, flags, **setting))


def _study(
    method: str, flags: str, seed: int, *, design: str, annotators: int, tastes: float
) -> SimulatedStudy:
    own_data = method == "maxdiff"
    judgments = study_judgments(design, annotators, tastes, seed)
    if own_data:
        judgments = _maxdiff(judgments, seed)
    options: dict[str, Any] = {"interval": "model"}
    if "--bootstrap" in flags:
        options = {"bootstrap": RESAMPLES, "seed": seed}
    if "judgment" in flags:
        options["cluster"] = "judgment"
    scores = score(judgments, method, **options)
    assert scores.low is not None
    assert scores.high is not None
    truth = true_scores(method, design, tastes)[item_numbers(judgments.tuples)]
    is_scored = ~np.isnan(scores.low)
    covered = (scores.low <= truth) & (truth <= scores.high)
    return SimulatedStudy(
        int(covered[is_scored].sum()), int(is_scored.sum()), is_approximate(scores)
    )


def is_approximate(scores: Scores, *, near_ends: bool = False) -> bool:
    """Return whether a note says that the intervals are approximate or conservative.

    near_ends: whether all intervals are of scores near -1 and 1; other intervals do not count as noted by
    what is printed about those.
    """
    templates = (FEW, CONSERVATIVE_NOTE, EXTENDED) if near_ends else (FEW, CONSERVATIVE_NOTE)
    patterns = [pattern(template) for template in templates]
    return any(each.search(printed) for each in patterns for printed in scores.notes)


@lru_cache
def _utilities() -> Floats:
    values: Floats = TRUTH_SD * np.random.default_rng(7).standard_normal(N_ITEMS)
    return values


def item_numbers(source: Tuples | Scores) -> NDArray[np.int64]:
    return np.array([int(item[1:]) for item in source.items])


@lru_cache
def _tuples(design: str, seed: int, factor: float = 2) -> Tuples:
    items = [f"i{number}" for number in range(N_ITEMS)]
    if design == "complete":
        groups = [f"g{number // GROUP_SIZE}" for number in range(N_ITEMS)]
        return make_tuples(items, 3, groups=groups, count=10, seed=seed)
    return make_tuples(items, 4, factor=factor, seed=seed)


def study_judgments(
    design: str, annotators: int, tastes: float, seed: int, utility: Floats | None = None
) -> Judgments:
    """Simulate the judgments of a study; each of `CROWD` annotators judges a part of the tuples."""
    tuples = _tuples(design, seed % N_DESIGNS)
    truth = (_utilities() if utility is None else utility)[item_numbers(tuples)]
    judgments = simulate(tuples, truth, annotators, noise=1.0, disagreement=tastes, seed=seed)
    return crowd(judgments, seed) if annotators == CROWD else judgments


def crowd(judgments: Judgments, seed: int) -> Judgments:
    """Keep the judgments of `JUDGMENTS_PER_TUPLE` random annotators per tuple."""
    order = np.random.default_rng([seed, 1]).random((len(judgments.tuples), CROWD)).argsort(axis=1)
    selected = np.arange(len(order))[:, None] * CROWD + order[:, :JUDGMENTS_PER_TUPLE]
    return judgments.select(np.sort(selected.ravel()))


def _maxdiff(judgments: Judgments, seed: int) -> Judgments:
    """Draw new best and worst items by the MaxDiff logit."""
    utility = _utilities()[item_numbers(judgments.tuples)]
    u = utility[judgments.tuples.members[judgments.tuple_of]]
    k = u.shape[1]
    gumbel = np.random.default_rng([seed, 2]).gumbel(size=(len(u), k, k))
    value = u[:, :, None] - u[:, None, :] + gumbel
    value[:, range(k), range(k)] = -np.inf
    best, worst = np.divmod(value.reshape(len(u), -1).argmax(axis=1), k)
    types = judgments.best.dtype, judgments.worst.dtype
    return replace(judgments, best=best.astype(types[0]), worst=worst.astype(types[1]))


@lru_cache
def true_scores(method: str, design: str, tastes: float) -> Floats:
    """Return (N,) the true scores of the items, by item number.

    Counting: the expected value of a judgment over opponents and annotators. Models: the scores of the
    centred utilities if the model generated the judgments, else of the estimate from very many judgments.
    """
    if method == "counting":
        return expected_scores(_utilities(), design, tastes)
    if not tastes and method in ("best-worst-logit", "maxdiff"):
        return np.tanh((_utilities() - _utilities().mean()) / 2)
    tuples = _tuples(design, 1, LIMIT_FACTOR)
    numbers = item_numbers(tuples)
    judgments = simulate(
        tuples, _utilities()[numbers], LIMIT_ANNOTATORS[design],
        noise=1.0, disagreement=tastes, seed=1,
    )  # fmt: skip
    truth = np.empty(N_ITEMS)
    truth[numbers] = np.tanh(utilities(judgments, method, prior=100.0).utility / 2)
    return truth


def expected_scores(utility: Floats, design: str, tastes: float) -> Floats:
    """Return (N,) the expected counting scores, by item number."""
    return np.array([_expected_value(utility, item, design, tastes) for item in range(N_ITEMS)])


def _expected_value(utility: Floats, item: int, design: str, tastes: float) -> float:
    """Return P(best) - P(worst) of an item."""
    random = np.random.default_rng([item, 3])
    first = item // GROUP_SIZE * GROUP_SIZE
    group = range(first, first + GROUP_SIZE) if design == "complete" else range(N_ITEMS)
    opponents = np.array([opponent for opponent in group if opponent != item])
    k = TUPLE_SIZES[design]
    samples = random.permuted(np.tile(opponents, (OPPONENT_DRAWS, 1)), axis=1)[:, : k - 1]
    items = np.column_stack((np.full(OPPONENT_DRAWS, item), samples))
    merit = utility[items] + tastes * random.standard_normal(items.shape)
    return float(values_in_tuples(merit)[:, 0].mean())


def values_in_tuples(merit: Floats) -> Floats:
    """Return (R, K) P(best) - P(worst) of items with (R, K) merits in the best-worst logit."""
    best = _shares(merit)
    value = best.copy()
    k = merit.shape[1]
    for first in range(k):
        others = [item for item in range(k) if item != first]
        value[:, others] -= best[:, [first]] * _shares(-merit[:, others])
    return value


def _shares(merit: Floats) -> Floats:
    weight = np.exp(merit - merit.max(axis=1, keepdims=True))
    shares: Floats = weight / weight.sum(axis=1, keepdims=True)
    return shares
