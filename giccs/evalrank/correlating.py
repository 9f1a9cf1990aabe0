"""Which intrinsic score tells how a model will do downstream? (EvalRank's Tables 3, 6 and 11)

Spearman's rho over models, between each intrinsic score and the accuracy on each downstream set. Models are
no independent draws: a model and what whitening or another step made of it are one family, and the
bootstrap draws families. Other dependence is left in (vectors of one corpus in 50 and 300 dimensions, say),
so that intervals are rather too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.evalrank.scores import Column, some_of
from giccs.measures.comparison import paired_correlations
from giccs.measures.metrics import (
    CORRELATION_BOUNDS,
    Estimate,
    jackknife_estimate,
    weighted_spearman,
)
from giccs.models.postprocess.steps import family_of, is_postprocessed

__all__ = ["FEWEST", "Cell", "Correlations", "complete", "correlate", "missing", "unprocessed"]

FEWEST = 4
"""Models below which there is no correlation."""
RESAMPLES = 1000
FAMILIES = "families of models"

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Cell:
    """One intrinsic score beside one downstream set."""

    intrinsic: Column
    downstream: Column
    rho: Estimate
    """n: models that have both; ``families`` of them in its extra."""
    place: int = 0
    """1 for the best of the downstream set, 2 for the second best, else 0."""
    behind: Estimate | None = None
    """By how much the best rho is larger, over the models that have all three scores; None for the best."""


@dataclass(frozen=True, slots=True)
class Correlations:
    """All of them."""

    intrinsic: tuple[Column, ...]
    downstream: tuple[Column, ...]
    cells: tuple[Cell, ...]
    """Downstream set by downstream set."""
    left_out: tuple[str, ...] = ()
    """``COLUMN: REASON: MODELS`` of the scores that do not count."""

    @property
    def models(self) -> list[str]:
        """Return the models that have any of the scores, by name."""
        return models_of(self.intrinsic + self.downstream)

    def document(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        models = self.models
        return {
            "models": models,
            "families": len({family_of(model) for model in models}),
            "correlations": [
                {
                    "intrinsic": {"name": cell.intrinsic.address, "setting": cell.intrinsic.setting},
                    "downstream": {"name": cell.downstream.address, "setting": cell.downstream.setting},
                    "spearman": cell.rho.document(),
                    "place": cell.place or None,
                    "behind_best": cell.behind.document() if cell.behind else None,
                }
                for cell in self.cells
            ],
            "missing": missing(self.intrinsic + self.downstream),
            "left_out": list(self.left_out),
        }  # fmt: skip


def correlate(
    intrinsic: Sequence[Column],
    downstream: Sequence[Column],
    *,
    left_out: Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Correlations:
    """Correlate each intrinsic score with each downstream set, over the models that have both.

    A correlation of fewer than `FEWEST` models, or of scores that are all the same, is NaN with a reason.
    Intervals are those of `giccs.measures.metrics.correlations`, over families.
    `left_out`: what the columns do not hold, for the record.
    """
    cells: list[Cell] = []
    for set_ in downstream:
        column = [Cell(one, set_, _rho(one, set_, resamples, seed)) for one in intrinsic]
        cells += _compared(_placed(column), resamples, seed)
    return Correlations(tuple(intrinsic), tuple(downstream), tuple(cells), tuple(left_out))


def models_of(columns: Sequence[Column]) -> list[str]:
    """Return the models that have any of the scores, by name."""
    return sorted({model for column in columns for model in column.scores})


def missing(columns: Sequence[Column]) -> list[str]:
    """Return a line for each score that not all the models have."""
    models = models_of(columns)
    lines = []
    for column in columns:
        without = [model for model in models if model not in column.scores]
        share = f"{len(without)} of {len(models)} models"
        said = f"{column.task} {column.label}: missing for {share}: {some_of(without)}"
        lines += [said] if without else []
    return lines


def complete(columns: Sequence[Column]) -> list[Column]:
    """Return the columns with those models alone that have every score."""
    shared = set.intersection(*(set(column.scores) for column in columns)) if columns else set()
    return [_of(column, shared) for column in columns]


def unprocessed(columns: Sequence[Column]) -> list[Column]:
    """Return the columns without the models whose vectors were changed afterwards (Table 11)."""
    return [
        _of(column, {model for model in column.scores if not is_postprocessed(model)})
        for column in columns
    ]


def _of(column: Column, models: set[str]) -> Column:
    return replace(
        column, scores={model: s for model, s in column.scores.items() if model in models}
    )


def _rho(intrinsic: Column, downstream: Column, resamples: int, seed: int) -> Estimate:
    (x, y), family = _shared(intrinsic, downstream)
    n, families = len(x), len(set(family.tolist()))
    extra: Mapping[str, Any] = {"families": families}
    if reason := _why_undefined(x, y):
        return Estimate(math.nan, math.nan, math.nan, n, reason, extra)
    rho = weighted_spearman(x, y, family)
    found = jackknife_estimate(
        rho, n, families, unit=FAMILIES, bounds=CORRELATION_BOUNDS, resamples=resamples, seed=seed
    )
    return replace(found, extra=extra)


def _shared(*columns: Column) -> tuple[list[Floats], Ints]:
    """Return the scores of the models that have all, a row a column, and their families from 0."""
    first, *others = columns
    models = [model for model in first.scores if all(model in other.scores for other in others)]
    _, family = np.unique([family_of(model) for model in models] or [""], return_inverse=True)
    rows = [np.array([column.scores[model] for model in models], float) for column in columns]
    return rows, family[: len(models)]


def _why_undefined(*rows: Floats) -> str:
    if len(rows[0]) < FEWEST:
        return f"{len(rows[0])} models; a rank correlation needs {FEWEST}"
    same = any(np.ptp(row) == 0 for row in rows)
    return "all models have the same score" if same else ""


def _placed(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of a downstream set, its two largest values with their place; equals share one."""
    values = sorted({c.rho.value for c in cells if not math.isnan(c.rho.value)}, reverse=True)
    place = {value: n for n, value in enumerate(values[:2], start=1)}
    return [replace(cell, place=place.get(cell.rho.value, 0)) for cell in cells]


def _compared(cells: Sequence[Cell], resamples: int, seed: int) -> list[Cell]:
    best = next((cell for cell in cells if cell.place == 1), None)
    if best is None:
        return list(cells)
    return [
        cell if cell.place == 1 else replace(cell, behind=_behind(best, cell, resamples, seed))
        for cell in cells
    ]


def _behind(best: Cell, cell: Cell, resamples: int, seed: int) -> Estimate:
    (x, y, downstream), family = _shared(best.intrinsic, cell.intrinsic, cell.downstream)
    if reason := _why_undefined(x, y, downstream):
        return Estimate(math.nan, math.nan, math.nan, len(x), reason)
    found = paired_correlations(x, y, downstream, family, resamples=resamples, seed=seed)
    behind = found["spearman"]
    return replace(behind, reason=behind.reason.replace("dialogues", FAMILIES))
