"""Correlation of intrinsic scores with downstream accuracies over models (EvalRank's Tables 3, 6 and 11).

Spearman's rho is computed over models, for each pair of an intrinsic score and a downstream set. Models are
not
independent: a model and its post-processed variants (whitening, for example) form a family, and the jackknife
leaves out families. Other dependence, such as that of vectors of 50 and 300 dimensions from the same corpus,
is not accounted for, so the intervals tend to be too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.stats.constancy import is_constant
from bws.stats.estimates import Estimate
from giccs.evalrank.scores import ScoreColumn, model_family, shorten_list
from giccs.measures.clusters import Clusters
from giccs.measures.comparison import paired_correlations
from giccs.measures.metrics import CORRELATION_BOUNDS, jackknife_estimate, weighted_spearman
from giccs.models.postprocess.steps import is_postprocessed

MIN_MODELS = 4
"""Minimum number of models for a correlation."""
RESAMPLES = 1000
FAMILY_UNIT = "families of models"

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class CorrelationCell:
    """Correlation of an intrinsic score with the accuracy on a downstream set."""

    intrinsic: ScoreColumn
    downstream: ScoreColumn
    rho: Estimate
    """Correlation over the `n` models that have both scores; ``extra`` contains the number of
    ``families``."""
    rank: int = 0
    """1 for the highest correlation with the downstream set, 2 for the second highest, otherwise 0."""
    difference: Estimate | None = None
    """Difference to the highest rho, over the models with all three scores; None for the highest."""


@dataclass(frozen=True, slots=True)
class Correlations:
    """Correlations of all intrinsic scores with all downstream sets."""

    intrinsic: tuple[ScoreColumn, ...]
    downstream: tuple[ScoreColumn, ...]
    cells: tuple[CorrelationCell, ...]
    """Cells ordered by downstream set, then by intrinsic score."""
    left_out: tuple[str, ...] = ()
    """Excluded scores as ``COLUMN: REASON: MODELS``."""

    @property
    def models(self) -> list[str]:
        """Models with at least one of the scores, sorted by name."""
        return models_of(self.intrinsic + self.downstream)

    def document(self) -> dict[str, Any]:
        """Return the correlations as a JSON-serialisable dictionary."""
        models = self.models
        return {
            "models": models,
            "families": len({model_family(model) for model in models}),
            "correlations": [
                {
                    "intrinsic": {"name": cell.intrinsic.address, "setting": cell.intrinsic.setting},
                    "downstream": {"name": cell.downstream.address, "setting": cell.downstream.setting},
                    "spearman": cell.rho.document(),
                    "place": cell.rank or None,
                    "behind_best": cell.difference.document() if cell.difference else None,
                }
                for cell in self.cells
            ],
            "missing": missing_score_notes(self.intrinsic + self.downstream),
            "left_out": list(self.left_out),
        }  # fmt: skip


def correlate(
    intrinsic: Sequence[ScoreColumn],
    downstream: Sequence[ScoreColumn],
    *,
    left_out: Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Correlations:
    """Correlate each intrinsic score with each downstream set, over the models with both scores.

    A correlation of fewer than `FEWEST` models, or of constant scores, is NaN with a reason.
    Intervals are jackknife intervals over families. `left_out` lists scores excluded from the columns.
    """
    cells: list[CorrelationCell] = []
    for target in downstream:
        column = [
            CorrelationCell(score, target, _correlate_columns(score, target, resamples, seed))
            for score in intrinsic
        ]
        cells += _compare_with_best(_rank_cells(column), resamples, seed)
    return Correlations(tuple(intrinsic), tuple(downstream), tuple(cells), tuple(left_out))


def models_of(columns: Sequence[ScoreColumn]) -> list[str]:
    """Return the models with at least one of the scores, sorted by name."""
    return sorted({model for column in columns for model in column.scores})


def missing_score_notes(columns: Sequence[ScoreColumn]) -> list[str]:
    """Return a message for each score that is missing for some of the models."""
    models = models_of(columns)
    lines = []
    for column in columns:
        missing_models = [model for model in models if model not in column.scores]
        share = f"{len(missing_models)} of {len(models)} models"
        line = f"{column.task} {column.label}: missing for {share}: {shorten_list(missing_models)}"
        lines += [line] if missing_models else []
    return lines


def keep_complete_models(columns: Sequence[ScoreColumn]) -> list[ScoreColumn]:
    """Return the columns, restricted to the models with all scores."""
    shared = set.intersection(*(set(column.scores) for column in columns)) if columns else set()
    return [_restrict_models(column, shared) for column in columns]


def drop_postprocessed(columns: Sequence[ScoreColumn]) -> list[ScoreColumn]:
    """Return the columns without models with post-processed vectors (Table 11)."""
    return [
        _restrict_models(column, {model for model in column.scores if not is_postprocessed(model)})
        for column in columns
    ]


def _restrict_models(column: ScoreColumn, models: set[str]) -> ScoreColumn:
    return replace(
        column, scores={model: s for model, s in column.scores.items() if model in models}
    )


def _correlate_columns(
    intrinsic: ScoreColumn, downstream: ScoreColumn, resamples: int, seed: int
) -> Estimate:
    (x, y), family = _shared_scores(intrinsic, downstream)
    n, families = len(x), len(set(family.tolist()))
    extra: Mapping[str, Any] = {"families": families}
    if reason := _undefined_reason(x, y):
        return Estimate(math.nan, math.nan, math.nan, n, reason, extra)
    rho = weighted_spearman(x, y, family)
    estimate = jackknife_estimate(
        rho,
        n,
        Clusters.single(families, FAMILY_UNIT),
        bounds=CORRELATION_BOUNDS,
        resamples=resamples,
        seed=seed,
    )
    return replace(estimate, extra=extra)


def _shared_scores(*columns: ScoreColumn) -> tuple[list[Floats], Ints]:
    """Return the scores of the models in all columns, one array per column, and the models' family
    numbers."""
    first, *other_columns = columns
    models = [
        model for model in first.scores if all(model in column.scores for column in other_columns)
    ]
    _, family = np.unique([model_family(model) for model in models] or [""], return_inverse=True)
    rows = [np.array([column.scores[model] for model in models], float) for column in columns]
    return rows, family[: len(models)]


def _undefined_reason(*rows: Floats) -> str:
    if len(rows[0]) < MIN_MODELS:
        return note(
            "{n:d} models; a rank correlation needs {least:d}", n=len(rows[0]), least=MIN_MODELS
        )
    return note("all models have the same score") if any(map(is_constant, rows)) else ""


def _rank_cells(cells: Sequence[CorrelationCell]) -> list[CorrelationCell]:
    """Return the cells of a downstream set with ranks for the two largest values; equal values share a
    rank."""
    values = sorted({c.rho.value for c in cells if not math.isnan(c.rho.value)}, reverse=True)
    ranks = {value: n for n, value in enumerate(values[:2], start=1)}
    return [replace(cell, rank=ranks.get(cell.rho.value, 0)) for cell in cells]


def _compare_with_best(
    cells: Sequence[CorrelationCell], resamples: int, seed: int
) -> list[CorrelationCell]:
    best = next((cell for cell in cells if cell.rank == 1), None)
    if best is None:
        return list(cells)
    return [
        cell
        if cell.rank == 1
        else replace(cell, difference=_difference_to_best(best, cell, resamples, seed))
        for cell in cells
    ]


def _difference_to_best(
    best: CorrelationCell, cell: CorrelationCell, resamples: int, seed: int
) -> Estimate:
    (x, y, downstream), family = _shared_scores(best.intrinsic, cell.intrinsic, cell.downstream)
    if reason := _undefined_reason(x, y, downstream):
        return Estimate(math.nan, math.nan, math.nan, len(x), reason)
    differences = paired_correlations(x, y, downstream, family, resamples=resamples, seed=seed)
    difference = differences["spearman"]
    return replace(difference, reason=difference.reason.replace("dialogues", FAMILY_UNIT))
