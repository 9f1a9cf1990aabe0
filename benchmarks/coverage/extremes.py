"""Coverage of the intervals of counting scores by the size of the true score.

The studies are those of `benchmarks.coverage.scores` with utilities of other distributions. Each cell has
many draws of utilities in turn.
"""

from __future__ import annotations

from functools import cache, lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cells import Cell, SimulatedStudy
from benchmarks.coverage.scores import (
    CROWD,
    N_ITEMS,
    Floats,
    expected_scores,
    is_approximate,
    item_numbers,
    study_judgments,
)
from bws.scoring import score

DRAWS = 200
"""Draws of utilities per cell. Three would contain few extreme items, each with few designs."""
EXTREME = 0.8
"""True score above which an item is extreme, without sign."""
TASTES = 0.5
DISTRIBUTIONS = ("normal", "t2", "log-normal")
ITEMS = ("all", f"over {EXTREME}", "top")


def cells() -> list[Cell]:
    """Return the cells of each distribution, standard deviation, design and part of the items."""
    settings = product(
        DISTRIBUTIONS,
        (1.5, 2.75),
        (("complete", 20), ("complete", CROWD), ("incomplete", 20)),
        ITEMS,
    )
    return [
        _cell(distribution, sd, *study, items)
        for distribution, sd, study, items in settings
        if study[0] == "complete" or items != "all"
    ]


def _cell(distribution: str, sd: float, design: str, annotators: int, items: str) -> Cell:
    setting: dict[str, Any] = {
        "utilities": distribution, "SD": sd, "design": design, "annotators": annotators, "items": items,
    }  # fmt: skip
    simulate = partial(_study, distribution, sd, design, annotators, items)
    return Cell("counting --intervals", setting, simulate)


@lru_cache
def _utilities(distribution: str, sd: float, draw: int) -> Floats:
    """Return (N,) centred utilities; sd scales t₂ and log-normal values by fixed factors."""
    random = np.random.default_rng([draw, 5])
    values = {
        "normal": lambda: random.standard_normal(N_ITEMS),
        "t2": lambda: random.standard_t(2, N_ITEMS) / 1.5,
        "log-normal": lambda: random.lognormal(size=N_ITEMS) / 2.16,
    }[distribution]()
    utilities: Floats = sd * (values - values.mean())
    return utilities


@cache
def _truth(distribution: str, sd: float, draw: int, design: str) -> Floats:
    return expected_scores(_utilities(distribution, sd, draw), design, TASTES)


def _study(
    distribution: str, sd: float, design: str, annotators: int, items: str, seed: int
) -> SimulatedStudy:
    draw = seed % DRAWS
    utility = _utilities(distribution, sd, draw)
    judgments = study_judgments(design, annotators, TASTES, seed, utility)
    scores = score(judgments, interval="model")
    truth = _truth(distribution, sd, draw, design)[item_numbers(scores)]
    assert scores.low is not None
    assert scores.high is not None
    part = is_in_part(items, truth)
    covered = (scores.low <= truth) & (truth <= scores.high) & part
    n_known = np.count_nonzero(part & ~np.isnan(scores.low))
    is_noted = is_approximate(scores, near_ends=items != ITEMS[0])
    return SimulatedStudy(int(covered.sum()), int(n_known), is_noted)


def is_in_part(items: str, truth: Floats) -> NDArray[np.bool_]:
    """Return (N,) whether each true score is in a part of the items."""
    parts: dict[str, NDArray[np.bool_]] = {
        "all": np.ones(len(truth), dtype=bool),
        ITEMS[1]: abs(truth) > EXTREME,
        "top": truth == truth.max(),
    }
    return parts[items]
