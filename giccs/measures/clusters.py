"""Clusters of dialogues, such as domains: to which dialogues an interval generalises.

An interval over dialogues generalises to other dialogues of the same domains. If a model is better in some
domains than in others, it says nothing about further domains; for these, whole domains are omitted in the
jackknife. Clusters of unequal size carry as little information as their effective number (Carter, Schnepel
and Steigerwald 2017, Rev. Econ. Stat. 99), which determines the degrees of freedom of Student's t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bws.stats.clusters import MANY_CLUSTERS, MIN_CLUSTERS, effective_number, few_clusters_note

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

DIALOGUES = "dialogue"
CLUSTERS = {
    DIALOGUES: "dialogues",
    "domain": "domains",
    "source": "sources",
    "original_domain": "original domains",
    "language": "languages",
}
"""Name of a column of predictions -> plural name of its clusters."""
CLUSTER_COLUMNS = tuple(name for name in CLUSTERS if name != DIALOGUES)
"""Columns of predictions with the clusters of the dialogue."""
MIN_GROUPS = 6
"""Minimum number of clusters of several dialogues for an interval."""
PERMUTATIONS = 1999
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of D dialogues; each is omitted as a whole in the jackknife."""

    of_dialogue: Ints
    """(D,) index of the cluster of each dialogue, 0 … C-1."""
    unit: str = "dialogues"
    """Plural name of the clusters."""
    minimum: int = MIN_CLUSTERS
    """Minimum number of clusters for an interval."""

    @classmethod
    def single(cls, n_dialogues: int, unit: str = "dialogues") -> Clusters:
        """Return each dialogue as its own cluster."""
        return cls(np.arange(n_dialogues), unit)

    @classmethod
    def named(cls, names: Sequence[str], unit: str) -> Clusters:
        """Return clusters of dialogues with the same name, (D,).

        >>> domains = Clusters.named(["cars", "food", "cars"], "domains")
        >>> domains.count, domains.of_dialogue.tolist(), round(domains.effective, 2)
        (2, [0, 1, 0], 1.8)
        """
        return cls(np.unique([*names], return_inverse=True)[1].ravel(), unit, MIN_GROUPS)

    @cached_property
    def sizes(self) -> Ints:
        """Number of dialogues of each cluster, (C,)."""
        return np.bincount(self.of_dialogue)

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.sizes)

    @property
    def effective(self) -> float:
        """Effective number of clusters, (Σ n)² / Σ n²: that of equal clusters with the same information."""
        return effective_number(self.of_dialogue)

    @property
    def df(self) -> float:
        """Degrees of freedom of the variance between clusters, at least 1."""
        return max(1.0, self.effective - 1)

    @property
    def few_note(self) -> str:
        """Warning about an interval of few clusters, by their effective number; empty if they suffice.

        >>> Clusters(np.repeat(np.arange(21), [*range(1, 22)]), "domains").few_note
        '16 effective domains: the interval is approximate below 20'
        """
        if self.count < MANY_CLUSTERS:
            return few_clusters_note(self.count, self.unit)
        return few_clusters_note(int(self.effective + ROUNDING), f"effective {self.unit}")

    def select(self, rows: NDArray[np.bool_]) -> Clusters:
        """Return the clusters of the dialogues of `rows` (D,)."""
        kept = np.unique(self.of_dialogue[rows], return_inverse=True)[1].ravel()
        return replace(self, of_dialogue=kept)

    def sums(self, values: Floats) -> Floats:
        """Return (C,) sums of values per dialogue, (D,)."""
        return np.bincount(self.of_dialogue, values, self.count).astype(np.float64)


def heterogeneity_p(values: Floats, clusters: Clusters, *, seed: int = 0) -> float:
    """Return the p-value of equal means of values per dialogue (D,) in all clusters; NaN if untestable.

    The statistic is the sum of squares between clusters. Its distribution is that of random assignments of
    the dialogues to clusters of the same sizes, so the test has its level for any distribution of the values
    if clusters do not matter. It requires two clusters, and one with two dialogues. NaN values are left out.

    >>> rng = np.random.default_rng(0)
    >>> two = Clusters.named(["cars"] * 20 + ["food"] * 20, "domains")
    >>> heterogeneity_p(rng.normal(size=40) + np.repeat([0, 2], 20), two)
    0.0005
    """
    defined = ~np.isnan(values)
    clusters, values = clusters.select(defined), values[defined]
    if not 1 < clusters.count < len(values):
        return float("nan")
    centred = values - values.mean()
    scale = float(np.abs(centred).max()) or 1.0
    rng = np.random.default_rng(seed)
    orders = np.stack([centred, *(rng.permutation(centred) for _ in range(PERMUTATIONS))]) / scale
    is_member = clusters.of_dialogue[:, None] == np.arange(clusters.count)
    between = np.sum((orders @ is_member) ** 2 / clusters.sizes, axis=1)
    return float(np.mean(between >= between[0] - 1e-9))
