"""The noise ceiling of scores by choice models, as `benchmarks.coverage.ceiling` has it for counting."""

from __future__ import annotations

from functools import partial

from benchmarks.coverage.ceiling import Setting, cells_of
from benchmarks.coverage.cells import Cell

__all__ = ["SETTINGS", "cells"]

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


def cells() -> list[Cell]:
    """Return a cell for each setting and coefficient."""
    return cells_of(SETTINGS)
