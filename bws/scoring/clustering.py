"""Which judgments belong together: clusters for the error variance of scores.

| cluster | error of a score | V |
|---|---|---|
| both | other annotators and, where tuples were left out, other tuples | V_annotator + f (V_tuple - V_cell) |
| annotator | other annotators, the same tuples | V_annotator |
| tuple | the same annotators, other tuples | V_cell + f (V_tuple - V_cell) |
| judgment | the same tuples, all judgments independent | V_judgment |

A cell is an annotator's judgments of a tuple; V - V_cell is never taken below 0. f is the finite
population correction of the design (`bws.components`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bws.clusters import (
    MIN_CLUSTERS,
    ClusterVariance,
    ErrorVariance,
    few_clusters,
    too_few_clusters,
    two_way_variance,
)
from bws.components import design_left_out
from bws.problems import InputError, Problem
from bws.records import CanonicalJudgments, Judgments

__all__ = ["Cluster", "Clusters", "clusters_of", "default_cluster"]

Cluster = Literal["both", "annotator", "tuple", "judgment"]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Variance = Callable[[Integers], Floats]
"""(J,) numbers of clusters, from 0 -> (N,) variances between them, without correction for their number."""
REMEDIES = {
    "both": "cluster by tuple (then intervals hold for these annotators alone), or collect judgments "
    "of more annotators",
    "annotator": "cluster by tuple, or collect judgments of more annotators",
    "tuple": "cluster by annotator, or judge more tuples",
    "judgment": "collect more judgments",
}


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of J judgments of N items."""

    kind: Cluster
    items: Integers
    """(J, K) the items of each judgment."""
    rows: Integers
    """(J,) the number of each judgment's cluster, from 0: annotator, cell or judgment."""
    columns: Integers | None
    """(J,) the number of each judgment's tuple; None where tuples do not count as error."""
    cells: Integers
    """(J,) the number of each judgment's cell."""
    left_out: Floats
    """(N,) finite population correction of the design, 0 where it is complete."""

    def error_variance(self, variance: Variance, known: Floats | float = 0.0) -> ErrorVariance:
        """Combine the variances between clusters of each kind; NaN for an item of one cluster."""

        def between(labels: Integers) -> ClusterVariance:
            return ClusterVariance(variance(labels), self._per_item(labels))

        if self.columns is None or not self.left_out.any():
            return two_way_variance(between(self.rows), known=known)
        return two_way_variance(
            between(self.rows),
            between(self.columns),
            between(self.cells),
            left_out=self.left_out,
            known=known,
        )

    def _per_item(self, labels: Integers) -> Integers:
        """Return (N,) how many clusters judged each item."""
        size = int(labels.max(initial=0)) + 1
        pairs = np.unique(self.items * size + labels[:, None])
        return np.bincount(pairs // size, minlength=len(self.left_out)).astype(np.int64)

    @cached_property
    def too_few(self) -> NDArray[np.bool_]:
        """(N,) whether fewer than `MIN_CLUSTERS` clusters judged an item."""
        few: NDArray[np.bool_] = self._per_item(self.rows) < MIN_CLUSTERS
        if self.columns is None:
            return few
        return few | ((self.left_out > 0) & (self._per_item(self.columns) < MIN_CLUSTERS))

    @property
    def _counts(self) -> Iterator[tuple[int, str]]:
        """Yield the number of clusters of each kind that counts, and its name in the plural."""
        if self.kind != "tuple":
            name = "judgments" if self.kind == "judgment" else "annotators"
            yield int(self.rows.max(initial=-1)) + 1, name
        if self.columns is not None and (self.kind == "tuple" or self.left_out.any()):
            yield int(self.columns.max(initial=-1)) + 1, "tuples"

    @property
    def refusal(self) -> str:
        """Why no item has an interval; empty where some may have one."""
        reasons = [reason for count in self._counts if (reason := too_few_clusters(*count))]
        return f"{reasons[0]}; {REMEDIES[self.kind]}" if reasons else ""

    @property
    def notes(self) -> list[str]:
        """What to know of the intervals."""
        return [note for count in self._counts if (note := few_clusters(*count))]


def default_cluster(answers: CanonicalJudgments) -> tuple[Cluster, str]:
    """Return the clusters with all error that the judgments can show, and a note on what is missing."""
    tuples = np.any(answers.tuple_of != answers.tuple_of[:1])
    unknown = np.count_nonzero(answers.annotator_of < 0)
    if not unknown and answers.annotator_of.any():
        return ("both" if tuples else "annotator"), ""
    reason = f"{unknown} of {len(answers)} judgments name no annotator"
    if not unknown:
        reason = "all judgments are of one annotator"
    cluster: Cluster = "tuple" if tuples else "judgment"
    return cluster, f"{reason}: the intervals do not hold for other annotators"


def clusters_of(judgments: Judgments, cluster: Cluster) -> Clusters:
    """Return the clusters of judgments in canonical order; InputError where they cannot be clustered so."""
    answers = judgments.canonical
    _check(judgments, cluster)
    tuple_of, every = answers.tuple_of, np.arange(len(answers))
    named = not (answers.annotator_of < 0).any()
    keys = answers.annotator_of * len(answers.members) + tuple_of if named else every
    cells = np.unique(keys, return_inverse=True)[1].ravel()
    rows = {"tuple": cells, "judgment": every}.get(cluster, answers.annotator_of)
    return Clusters(
        cluster,
        answers.judged_items,
        rows,
        tuple_of if cluster in ("both", "tuple") else None,
        cells,
        design_left_out(answers),
    )


def _check(judgments: Judgments, cluster: Cluster) -> None:
    answers = judgments.canonical
    if cluster == "judgment" or not len(answers):
        return
    unknown = np.count_nonzero(answers.annotator_of < 0)
    problem = other = ""
    if cluster != "tuple":
        other = "tuple"
        if unknown:
            problem = f"{unknown} of {len(answers)} judgments name no annotator"
        elif not answers.annotator_of.any():
            problem = "all judgments are of one annotator"
    if not problem and cluster != "annotator" and not answers.tuple_of.any():
        problem, other = "all judgments are of one tuple", "annotator"
    if problem:
        message = f"{problem}, so that they cannot be clustered by {cluster}; cluster by {other}"
        raise InputError(Problem(judgments.source or "judgments", None, message))
