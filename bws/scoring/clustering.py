"""Clusters of judgments for the error variance of scores.

| cluster | error of a score | V |
|---|---|---|
| both | other annotators and, for incomplete designs, other tuples | V_annotator + f (V_tuple - V_cell) |
| annotator | other annotators, the same tuples | V_annotator |
| tuple | the same annotators, other tuples | V_cell + f (V_tuple - V_cell) |
| judgment | the same tuples, all judgments independent | V_judgment |

A cell contains the judgments of one annotator on one tuple; V_tuple - V_cell is clipped at 0. f is the
finite population correction of the design (`bws.components`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.components import finite_population_correction
from bws.records import CanonicalJudgments, Judgments
from bws.stats.clusters import (
    MIN_CLUSTERS,
    ClusterVariance,
    ErrorVariance,
    few_clusters_note,
    too_few_clusters_note,
    two_way_variance,
)

Cluster = Literal["both", "annotator", "tuple", "judgment"]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
VarianceFunction = Callable[[Integers], Floats]
"""(J,) cluster indices, from 0 -> (N,) variances between clusters, not corrected for their number."""
MAX_OVERESTIMATE = 0.1
"""Share by which the error variances of counts may be too large without a note."""
CONSERVATIVE_NOTE = note(
    "the intervals are conservative: annotators judged only some of the tuples of an item, and differences "
    "between these tuples count as differences between annotators"
)
REMEDIES = {
    "both": note(
        "cluster by tuple (intervals then apply to these annotators only), or collect judgments of more "
        "annotators"
    ),
    "annotator": note("cluster by tuple, or collect judgments of more annotators"),
    "tuple": note("cluster by annotator, or judge more tuples"),
    "judgment": note("collect more judgments"),
}


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of J judgments of N items."""

    kind: Cluster
    items: Integers
    """(J, K) the items of each judgment."""
    rows: Integers
    """(J,) index of each judgment's cluster, from 0: annotator, cell or judgment."""
    columns: Integers | None
    """(J,) index of each judgment's tuple; None if tuples do not count as error."""
    cells: Integers
    """(J,) index of each judgment's cell."""
    population_correction: Floats
    """(N,) finite population correction of the design; 0 for a complete design."""

    def between(self, variance: VarianceFunction) -> tuple[ClusterVariance, ...]:
        """Return the variances between rows and, if tuples count as error, columns and cells."""
        labels: tuple[Integers, ...] = (self.rows,)
        if self.columns is not None and self.population_correction.any():
            labels = (self.rows, self.columns, self.cells)
        return tuple(ClusterVariance(variance(label), self.per_item(label)) for label in labels)

    def error_variance(
        self, variance: VarianceFunction, known_variance: Floats | float = 0.0
    ) -> ErrorVariance:
        """Combine the variances between clusters of each kind; NaN for items with a single cluster."""
        return two_way_variance(
            *self.between(variance),
            population_correction=self.population_correction,
            known_variance=known_variance,
        )

    def per_item(self, labels: Integers) -> Integers:
        """Return (N,) the number of clusters per item."""
        size = int(labels.max(initial=0)) + 1
        pairs = np.unique(self.items * size + labels[:, None])
        return np.bincount(pairs // size, minlength=len(self.population_correction)).astype(
            np.int64
        )

    @cached_property
    def too_few(self) -> NDArray[np.bool_]:
        """(N,) whether fewer than `MIN_CLUSTERS` clusters contain the item."""
        few: NDArray[np.bool_] = self.per_item(self.rows) < MIN_CLUSTERS
        if self.columns is None:
            return few
        return few | (
            (self.population_correction > 0) & (self.per_item(self.columns) < MIN_CLUSTERS)
        )

    def overestimate(self, variance: VarianceFunction, tuple_of: Integers) -> float:
        """Return by which share the mean error variance is too large; 0 if the design makes it small.

        The variance between annotators who judged different tuples contains the variance between these
        tuples. In a design with most of all tuples, a part 1 - f of the latter is no error. It is estimated
        from V_tuple - V_cell; where most tuples have one judgment, the share is an upper bound.

        variance: that of counts. tuple_of: (J,) the tuple of each judgment.
        """
        correction = self.population_correction * (self.columns is not None)
        in_design = np.maximum(1 - correction, 0)
        if in_design.max(initial=0) <= MAX_OVERESTIMATE:  # also that of the share
            return 0.0
        tuples, cells, rows = (
            ClusterVariance(variance(labels), self.per_item(labels))
            for labels in (tuple_of, self.cells, self.rows)
        )
        is_used = (tuples.clusters > 1) & (rows.clusters > 1)
        is_not_judged = 1 - cells.clusters / np.maximum(rows.clusters * tuples.clusters, 1)
        further = cells.clusters / np.maximum(tuples.clusters, 1) - 1
        between = tuples.corrected - cells.corrected
        has_one = further[is_used].size and np.median(further[is_used]) < 1
        excess = rows.corrected if has_one else between / np.where(further > 0, further, np.inf)
        share = (in_design * is_not_judged * excess)[is_used].sum()
        total = (rows.corrected + correction * np.maximum(between, 0))[is_used].sum()
        return float(share / total) if total > 0 else 0.0

    @property
    def _cluster_counts(self) -> Iterator[tuple[int, str]]:
        """Yield the number and the plural name of each relevant kind of clusters."""
        if self.kind != "tuple":
            name = "judgments" if self.kind == "judgment" else "annotators"
            yield int(self.rows.max(initial=-1)) + 1, name
        if self.columns is not None and (self.kind == "tuple" or self.population_correction.any()):
            yield int(self.columns.max(initial=-1)) + 1, "tuples"

    @property
    def no_interval_reason(self) -> str:
        """The reason why no item has an interval; empty if intervals are possible."""
        reasons = [
            reason for count in self._cluster_counts if (reason := too_few_clusters_note(*count))
        ]
        return f"{reasons[0]}; {REMEDIES[self.kind]}" if reasons else ""

    @property
    def notes(self) -> list[str]:
        """Notes on the precision of the intervals."""
        return [few for count in self._cluster_counts if (few := few_clusters_note(*count))]


def default_cluster(judgments: CanonicalJudgments) -> tuple[Cluster, str]:
    """Return the clusters that contain all observable error, and a note on missing sources of error."""
    has_several_tuples = np.any(judgments.tuple_of != judgments.tuple_of[:1])
    n_unknown = np.count_nonzero(judgments.annotator_of < 0)
    if not n_unknown and judgments.annotator_of.any():
        return ("both" if has_several_tuples else "annotator"), ""
    cluster: Cluster = "tuple" if has_several_tuples else "judgment"
    if n_unknown:
        return cluster, note(
            "{n:d} of {m:d} judgments have no annotator: the intervals do not apply to other annotators",
            n=n_unknown,
            m=len(judgments),
        )
    return cluster, note(
        "all judgments are of one annotator: the intervals do not apply to other annotators"
    )


def cluster_judgments(judgments: Judgments, cluster: Cluster) -> Clusters:
    """Return the clusters of judgments in canonical order.

    Raises InputError if the judgments cannot be clustered in this way.
    """
    canonical = judgments.canonical
    _check_clusters(judgments, cluster)
    tuple_of, all_rows = canonical.tuple_of, np.arange(len(canonical))
    has_annotators = not (canonical.annotator_of < 0).any()
    keys = (
        canonical.annotator_of * len(canonical.members) + tuple_of if has_annotators else all_rows
    )
    cells = np.unique(keys, return_inverse=True)[1].ravel()
    rows = {"tuple": cells, "judgment": all_rows}.get(cluster, canonical.annotator_of)
    return Clusters(
        cluster,
        canonical.judged_items,
        rows,
        tuple_of if cluster in ("both", "tuple") else None,
        cells,
        np.pad(finite_population_correction(canonical), (0, canonical.n_controls)),
    )


def _check_clusters(judgments: Judgments, cluster: Cluster) -> None:
    canonical = judgments.canonical
    if cluster == "judgment" or not len(canonical):
        return
    n_unknown = np.count_nonzero(canonical.annotator_of < 0)
    problem = alternative = ""
    if cluster != "tuple":
        alternative = "tuple"
        if n_unknown:
            problem = f"{n_unknown} of {len(canonical)} judgments have no annotator"
        elif not canonical.annotator_of.any():
            problem = "all judgments are of one annotator"
    if not problem and cluster != "annotator" and not canonical.tuple_of.any():
        problem, alternative = "all judgments are of one tuple", "annotator"
    if problem:
        message = f"{problem}, so they cannot be clustered by {cluster}; cluster by {alternative}"
        raise InputError(Problem(judgments.source or "judgments", None, message))
