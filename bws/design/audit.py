"""Audit of a design: statistics and findings."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Source, Tabular, frames_like_source
from bws.base.notes import note
from bws.base.tables import Column, ResultTable
from bws.design.balance import combination_keys, pair_keys
from bws.files import as_tuples
from bws.records import Tuples

MAX_COUNTED_TRIPLES = 50_000_000
TITLES = {
    "tuples": "tuples",
    "k": "items per tuple",
    "items": "items",
    "groups": "groups",
    "appearances_min": "appearances of an item, minimum",
    "appearances_max": "appearances of an item, maximum",
    "pairs": "pairs of items",
    "pairs_met": "pairs that occur",
    "pairs_repeated": "pairs that occur more than once",
    "pair_min": "occurrences of a pair, minimum",
    "pair_max": "occurrences of a pair, maximum",
    "triples_repeated": "triples that occur more than once",
    "duplicate_tuples": "tuples that repeat another",
    "components": "connected components",
    "position_spread": "largest difference of an item's counts in two positions",
}
"""Field of `Audit` -> its title in the table."""


@dataclass(frozen=True, repr=False)
class Audit(Tabular):
    """Statistics of a design; pairs and tuples are within groups."""

    tuples: int
    items: int
    groups: int
    k: int
    appearances_min: int
    appearances_max: int
    pairs: int
    """Possible pairs of items."""
    pairs_met: int
    pairs_repeated: int
    """Pairs in more than one tuple."""
    pair_min: int
    pair_max: int
    """Smallest and largest number of tuples that contain a pair."""
    triples_repeated: int | None
    """Triples in more than one tuple; None if there are too many to count."""
    duplicate_tuples: int
    """Tuples with the same items as an earlier tuple."""
    components: int
    """Connected components of the graph of items that share a tuple; one per group is expected."""
    position_spread: int
    """Largest difference, over items, between the counts of an item in two positions."""
    findings: tuple[str, ...]
    """Problems of the design; empty if there are none."""

    def document(self) -> dict[str, Any]:
        """Return the audit as a dict."""
        return asdict(self)

    def result_table(self) -> ResultTable:
        """Return a row per number; findings are notes."""
        values = self.document()
        columns = [
            Column("name", is_detail=True),
            Column("what", "design"),
            Column("value", "number", align="right"),
        ]
        rows = [
            (name, what, math.nan if values[name] is None else values[name])
            for name, what in TITLES.items()
        ]
        findings = [f"! {finding}" for finding in self.findings]
        return ResultTable(columns, rows, findings, "Audit of the design", "not counted")


@frames_like_source
def audit(tuples: Tuples | Source) -> Audit:
    """Audit a design; scales to a million items.

    tuples: `Tuples`, a path, a data frame, or records. Tuples with control items are not audited.

    >>> from bws.design import make_tuples
    >>> report = audit(make_tuples(["a", "b", "c", "d", "e"], 3, count=10))
    >>> report.duplicate_tuples, report.pair_min, report.pair_max, report.findings
    (0, 3, 3, ())
    """
    tuples = as_tuples(tuples).without_controls()
    n, members = len(tuples.items), tuples.members
    appearances = np.bincount(members.ravel(), minlength=n)
    sizes = np.bincount(tuples.group_of_item, minlength=len(tuples.groups))
    meetings = np.unique(pair_keys(members, n), return_counts=True)[1]
    pairs = int((sizes.astype(np.int64) * (sizes - 1) // 2).sum())
    facts: dict[str, Any] = {
        "tuples": len(tuples),
        "items": n,
        "groups": len(tuples.groups),
        "k": tuples.k,
        "appearances_min": int(appearances.min()),
        "appearances_max": int(appearances.max()),
        "pairs": pairs,
        "pairs_met": len(meetings),
        "pairs_repeated": int((meetings > 1).sum()),
        "pair_min": int(meetings.min()) if len(meetings) == pairs else 0,
        "pair_max": int(meetings.max()),
        "triples_repeated": _repeated_triples(members, n),
        "duplicate_tuples": tuples.n_repeated,
        "components": _components(members, n),
        "position_spread": _position_spread(members, n),
    }
    return Audit(**facts, findings=tuple(_findings(facts, tuples, appearances, sizes)))


def _repeated_triples(members: NDArray[np.int32], n: int) -> int | None:
    count, k = members.shape
    if n > 2_000_000 or count * comb(k, 3) > MAX_COUNTED_TRIPLES:
        return None
    if k < 3:
        return 0
    occurrences = np.unique(combination_keys(members, n, 3), return_counts=True)[1]
    return int((occurrences > 1).sum())


def _components(members: NDArray[np.int32], n: int) -> int:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    first = np.repeat(members[:, 0], members.shape[1] - 1)
    other_members = members[:, 1:].ravel()
    graph = coo_matrix((np.ones(len(first), np.int8), (first, other_members)), shape=(n, n))
    return int(connected_components(graph, directed=False, return_labels=False))


def _position_spread(members: NDArray[np.int32], n: int) -> int:
    k = members.shape[1]
    position_counts = np.bincount((members * np.int64(k) + np.arange(k)).ravel(), minlength=n * k)
    return int(np.ptp(position_counts.reshape(n, k), axis=1).max())


def _findings(
    facts: dict[str, Any],
    tuples: Tuples,
    appearances: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> list[str]:
    findings = []
    never = int((appearances == 0).sum())
    if never:
        findings.append(note("{n:d} items are in no tuple and will have no score", n=never))
    if facts["appearances_max"] - facts["appearances_min"] > 1 and _has_uneven_groups(
        tuples, appearances
    ):
        low, high = facts["appearances_min"], facts["appearances_max"]
        findings.append(
            note("appearances are uneven: {low:d} to {high:d} per item", low=low, high=high)
        )
    tuples_per_group = np.bincount(tuples.group_of_tuple, minlength=len(sizes))
    max_distinct = sum(
        min(int(t), comb(int(n), tuples.k)) for t, n in zip(tuples_per_group, sizes, strict=True)
    )
    if len(tuples) - facts["duplicate_tuples"] < max_distinct:
        findings.append(
            note(
                "{n:d} tuples repeat another although unused tuples exist",
                n=facts["duplicate_tuples"],
            )
        )
    elif facts["duplicate_tuples"]:
        findings.append(
            note(
                "{n:d} tuples repeat another: all distinct tuples are used",
                n=facts["duplicate_tuples"],
            )
        )
    if facts["components"] > facts["groups"]:
        findings.append(note("some items are not comparable, not even indirectly via other items"))
    if facts["groups"] == 1 and facts["pair_max"] > _level_pair_count(facts) + 1:
        findings.append(
            note(
                "pairs are uneven: {low:d} to {high:d} times per pair",
                low=facts["pair_min"],
                high=facts["pair_max"],
            )
        )
    if facts["position_spread"] > 1:
        findings.append(
            note(
                "positions are uneven: counts of an item differ by {n:d}",
                n=facts["position_spread"],
            )
        )
    return findings


def _has_uneven_groups(tuples: Tuples, appearances: NDArray[np.int64]) -> bool:
    """Return whether appearances differ by more than one within a group."""
    low = np.full(len(tuples.groups), np.iinfo(np.int64).max)
    high = np.zeros(len(tuples.groups), np.int64)
    np.minimum.at(low, tuples.group_of_item, appearances)
    np.maximum.at(high, tuples.group_of_item, appearances)
    return bool((high - low > 1).any())


def _level_pair_count(facts: dict[str, Any]) -> int:
    """Return the largest pair count of a maximally balanced design."""
    n_pairs = facts["tuples"] * facts["k"] * (facts["k"] - 1) // 2
    return int(-(-n_pairs // facts["pairs"]))
