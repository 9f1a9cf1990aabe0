"""Coverage of the noise ceiling for scores by choice models; see `benchmarks.coverage.ceiling` for counting.

Also computes the correlation of a model that knows the true utilities. It is below the ceiling over all
items, because scores only compare items within a dialogue.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.coverage.ceiling import Setting, benchmark_of, cells_of, study
from benchmarks.coverage.cells import Cell
from giccs.measures.ceiling import noise_ceiling
from giccs.measures.metrics import correlations

LOGIT = partial(Setting, method="best-worst-logit")
ON_COUNTING_SCALE = partial(LOGIT, scale="counting")
SETTINGS = (
    ON_COUNTING_SCALE(30, 5, 3, 2, 5),
    ON_COUNTING_SCALE(60, 5, 3, 2, 5, utilities=2.75),
    LOGIT(60, 5, 3, 2, 2),
    LOGIT(30, 5, 3, 2, 3, tastes=0.5),
    ON_COUNTING_SCALE(60, 5, 3, 2, 5, tastes=1),
    LOGIT(30, 5, 3, 2, 20, tastes=1, per_tuple=4),
    LOGIT(30, 6, 4, 2.5, 2, tastes=0.5),
    LOGIT(30, 5, 3, 1, 5),
    ON_COUNTING_SCALE(20, 8, 4, 2, 3, tastes=0.5),
    LOGIT(30, 5, 3, 1, 2),
    LOGIT(1, 120, 3, 2, 5, utilities=2.75),
    LOGIT(1, 120, 4, 1, 4, utilities=2.75),
    ON_COUNTING_SCALE(1, 120, 4, 2, 4, utilities=2.75),
    LOGIT(1, 120, 4, 2, 20, tastes=1, per_tuple=4),
    LOGIT(1, 120, 4, 4, 2, utilities=2.75),
    LOGIT(1, 120, 5, 2, 4, utilities=2.75),
    Setting(30, 5, 3, 2, 5, method="maxdiff"),
)

KNOWN_SETTINGS = (Setting(60, 5, 3, 2, 5), LOGIT(60, 5, 3, 2, 5))
KNOWN_STUDIES = 100


def cells() -> list[Cell]:
    """Return a cell for each setting and coefficient."""
    return cells_of(SETTINGS)


def further() -> list[dict[str, str]]:
    """Return the rows of a table of the mean correlations of the items' true utilities with their scores."""
    correlations_of = ("ceiling, r", "r of utilities", "within-group ρ")
    rows = []
    for setting in KNOWN_SETTINGS:
        mean_correlations = np.mean(
            [_reached(setting, seed) for seed in range(KNOWN_STUDIES)], axis=0
        )
        described = setting.described()
        row = {"scores": setting.method}
        row |= {name: str(described[name]) for name in ("groups", "utilities")}
        values = (f"{value:.3f}" for value in mean_correlations)
        rows.append(row | dict(zip(correlations_of, values, strict=True)))
    return rows


def _reached(setting: Setting, seed: int) -> tuple[float, float, float]:
    """Return the ceiling; r of utilities and scores over all items; mean within-group Spearman's rho."""
    judgments, utility = study(setting, seed)
    benchmark = benchmark_of(setting, judgments)
    scores = np.array([item.score for item in benchmark.items])
    group = np.arange(len(scores)) // setting.size
    result = correlations(utility, scores, group)
    ceiling = noise_ceiling(judgments, benchmark)["pearson"].value
    return ceiling, result["pearson"].value, result["rank_spearman"].value
