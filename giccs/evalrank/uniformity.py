"""Alignment and uniformity of vectors (Wang and Isola 2020; EvalRank, sections 4.4 and C.2).

For vectors f of norm 1, with alpha = 2 and t = 2:

alignment   mean of |f(x) - f(y)|² over positive pairs, from 0 to 4
uniformity  log of the mean of exp(-2 |f(x) - f(y)|²) over pairs of background samples, from -8 to 0

Lower is better for both. A pair that occurs in both directions is used once. Pairs of a text with itself, and
texts without a vector or with a zero vector, are excluded. The interval of alignment accounts for pairs that
share a text. Uniformity is a U-statistic; its interval treats the texts as independent (Hoeffding 1948) and
is computed on the log scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.stats.clusters import Z_95, too_few_clusters_note
from bws.stats.estimates import Estimate
from giccs.evalrank.data import BACKGROUND, read_sentences, read_words
from giccs.evalrank.dependence import variances
from giccs.evalrank.records import RankingData
from giccs.evalrank.vector_cache import cached_vectors
from giccs.measures.results import TaskOutput
from giccs.models.abilities import VectorModel
from giccs.progress import Progress, silent
from giccs.tasks import TaskKind, TaskOptions
from giccs.tasks.refusals import missing_ability_reason

Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]
Indices = NDArray[np.intp]

ALPHA, TEMPERATURE = 2, 2
BLOCK_SIZE = 2048
"""Rows and columns of a block of products; 16 MiB in float32."""


def read(data: str) -> RankingData:
    """Read a folder of word pairs or sentence pairs, or a GiCCS benchmark."""
    words = Path(data, BACKGROUND["word"][0]).exists()
    return read_words(data) if words else read_sentences(data)


@dataclass(frozen=True, slots=True)
class Uniformity:
    """Alignment and uniformity of the vectors of ranking data."""

    name: str = field(default="uniformity", init=False)
    default_data: ClassVar[str] = "giccs-sample"
    read: ClassVar = staticmethod(read)

    def refuses(self, model: Any) -> str:
        """Return why the model is unsuitable, with a remedy, or an empty string."""
        return missing_ability_reason(model, VectorModel, self.name)

    def parameters(self, model: VectorModel, data: RankingData) -> dict[str, Any]:
        """Return the settings that the metrics depend on, besides model, data and version."""
        return {
            "setting": data.level,
            "alpha": ALPHA,
            "t": TEMPERATURE,
        }

    def measure(self, model: Any, data: RankingData, progress: Progress = silent) -> TaskOutput:
        """Compute the vectors of all texts, and their alignment and uniformity."""
        units, has_vector = normalize_vectors(cached_vectors(model, data.texts, progress))
        missing = len(has_vector) - int(np.count_nonzero(has_vector))
        metrics = {
            "alignment": alignment(units, data.pairs, has_vector),
            "uniformity": uniformity(units[has_vector], progress),
        }
        if missing:
            remark = note(
                "{n:d} of {total:d} texts excluded: no vector", n=missing, total=len(has_vector)
            )
            metrics["uniformity"] = metrics["uniformity"].with_notes(remark)
        return TaskOutput(
            metrics=metrics,
            environment={
                "texts_without_vector": missing,
            },
        )


def open_tasks(options: TaskOptions) -> list[Uniformity]:
    """Return the uniformity task."""
    return [Uniformity()]


TASK = TaskKind(open_tasks)


def normalize_vectors(vectors: Matrix) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return (N, D) vectors scaled to norm 1, and (N,) whether a vector is finite and non-zero."""
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    has_vector = np.isfinite(norms) & (norms > 0)
    scale = np.where(has_vector, norms, 1.0)[:, None]
    return (vectors / scale).astype(np.float32), has_vector


def alignment(
    units: Matrix, pairs: Indices, has_vector: NDArray[np.bool_] | None = None
) -> Estimate:
    """Return the mean squared distance of positive pairs, (M, 2) indices of (N, D) vectors of norm 1.

    has_vector: (N,) whether a text has a vector; pairs with other texts are excluded and counted in the
    reason.

    >>> units = np.eye(2, dtype=np.float32)
    >>> alignment(units, np.array([[0, 1], [1, 0]])).value, alignment(units, np.array([[0, 1]])).n
    (2.0, 1)
    """
    distinct = np.unique(np.sort(pairs, axis=1), axis=0)
    distinct = distinct[distinct[:, 0] != distinct[:, 1]]
    usable_pairs = distinct if has_vector is None else distinct[has_vector[distinct].all(axis=1)]
    n_left_out = len(distinct) - len(usable_pairs)
    reason = (
        note(
            "{n:d} of {total:d} pairs excluded: a text has no vector",
            n=n_left_out,
            total=len(distinct),
        )
        if n_left_out
        else ""
    )
    if not len(usable_pairs):
        return Estimate(math.nan, math.nan, math.nan, 0, reason or note("no pairs"))
    differences = units[usable_pairs[:, 0]].astype(np.float64) - units[usable_pairs[:, 1]]
    distances = np.einsum("nd,nd->n", differences, differences)
    mean, deviations = float(distances.mean()), distances - distances.mean()
    pair_variances = variances(deviations, *usable_pairs.T)
    standard_error = math.sqrt(max(pair_variances.shared_text, pair_variances.same_pair)) / len(
        usable_pairs
    )
    low, high = (
        max(0.0, mean - Z_95 * standard_error),
        min(4.0, mean + Z_95 * standard_error),
    )
    if few_note := too_few_clusters_note(len(usable_pairs), "pairs"):
        low = high = math.nan
        reason = "; ".join(filter(None, [reason, few_note]))
    return Estimate(mean, low, high, len(usable_pairs), reason, {"stderr": standard_error})


def uniformity(units: Matrix, progress: Progress = silent) -> Estimate:
    """Return the log mean Gaussian potential of all pairs of (N, D) vectors of norm 1.

    Products are computed in float32 blocks, sums in float64.

    >>> round(uniformity(np.array([[1, 0], [-1, 0]], dtype=np.float32)).value, 6)  # distance 2
    -8.0
    """
    n = len(units)
    if n < 2:
        reason = note("{n:d} vectors; uniformity requires two", n=n)
        return Estimate(math.nan, math.nan, math.nan, n, reason)
    means = _potential_sums(units, progress) / (n - 1)
    mean = float(means.mean())
    standard_error = 2 * float(means.std()) / (math.sqrt(n) * mean)
    value = min(0.0, max(-4.0 * TEMPERATURE, math.log(mean)))  # rounding must not leave the range
    low, high = (
        max(-4.0 * TEMPERATURE, value - Z_95 * standard_error),
        min(0.0, value + Z_95 * standard_error),
    )
    if few_note := too_few_clusters_note(n, "texts"):
        low = high = math.nan
    return Estimate(value, low, high, n, few_note, {"stderr": standard_error})


def _potential_sums(units: Matrix, progress: Progress) -> Floats:
    """Return (N,) sums of exp(-t · distance²) over all other vectors; each pair is computed once."""
    n = len(units)
    starts = range(0, n, BLOCK_SIZE)
    sums = np.zeros(n)
    blocks = [(a, b) for a in starts for b in starts if a <= b]
    for a, b in progress(blocks, "uniformity", len(blocks)):
        # |f - g|² = 2 - 2 f · g; rounding must not make it negative
        potential = units[a : a + BLOCK_SIZE] @ units[b : b + BLOCK_SIZE].T
        np.minimum(potential, 1, out=potential)
        np.exp(2 * TEMPERATURE * (potential - 1), out=potential)
        if a == b:
            np.fill_diagonal(potential, 0)
        sums[a : a + BLOCK_SIZE] += potential.sum(axis=1, dtype=np.float64)
        if a != b:
            sums[b : b + BLOCK_SIZE] += potential.sum(axis=0, dtype=np.float64)
    return sums
