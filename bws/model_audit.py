"""Audit of a language model from its own judgments: positions, orders, repeated calls and prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.base.tables import Cell, Column, ResultTable
from bws.raw_agreement import chance_of_equal_answers
from bws.records import Judgments
from bws.stats.clusters import clustered_share, few_clusters_note, too_few_clusters_note
from bws.stats.estimates import Estimate

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

NO_SHARES = note("no shares of positions: the order of the items is unknown")
COMPARED_CALLS = {
    "orders": "another order",
    "calls": "a repeated call",
    "prompts": "another prompt",
}
"""Kinds of pairs of judgments of one tuple: the same prompt in another order; the same prompt and order; and
another prompt in the same order and run."""


@dataclass(frozen=True, slots=True)
class PositionShare:
    """Shares of the answers at one position on the page; without position bias, both are 1/K."""

    best: Estimate
    worst: Estimate


@dataclass(frozen=True, slots=True)
class Consistency:
    """Shares of equal answers of the model to one tuple; NaN without pairs of judgments."""

    pairs: int
    tuples: int
    best: Estimate
    worst: Estimate
    joint: Estimate
    """Same best and same worst."""

    def document(self) -> dict[str, Any]:
        """Return the shares as a JSON-serialisable dict."""
        estimates = {"best": self.best, "worst": self.worst, "joint": self.joint}
        return {"pairs": self.pairs, "tuples": self.tuples} | {
            name: each.document() for name, each in estimates.items()
        }


@dataclass(frozen=True, eq=False)
class ModelAudit:
    """Audit of one model."""

    judgments: int
    tuples: int
    positions: tuple[PositionShare, ...]
    """From the first to the last position; empty if the order is unknown."""
    consistency: dict[str, Consistency]
    """For each of `COMPARED_CALLS`."""
    k: int
    """Number of items per tuple."""
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the audit as a JSON-serialisable dict."""
        chance = chance_of_equal_answers(self.k)
        return {
            "judgments": self.judgments,
            "tuples": self.tuples,
            "positions": [
                {"best": each.best.document(), "worst": each.worst.document()}
                for each in self.positions
            ],
            "consistency": {name: each.document() for name, each in self.consistency.items()},
            "chance": {"answer": chance["best"], "joint": chance["joint"]},
            "notes": list(self.notes),
        }

    def position_table(self) -> ResultTable:
        """Return the shares of the answers at each position."""
        rows: list[list[Cell]] = [
            [f"shown {number} of {self.k}", each.best, each.worst, 1 / self.k]
            for number, each in enumerate(self.positions, start=1)
        ]
        columns = [
            Column("position", "position"),
            *_best_and_worst(),
            Column("chance", "chance", ".3f", align="right"),
        ]
        notes = [] if rows else [NO_SHARES]
        return ResultTable(columns, rows, notes, "Answers of the model per position", "–")

    def consistency_table(self) -> ResultTable:
        """Return the shares of equal answers of the model, and of random answers."""
        rows: list[list[Cell]] = [
            [
                COMPARED_CALLS[name],
                *(each.pairs, each.tuples, each.best, each.worst, each.joint),
            ]
            for name, each in self.consistency.items()
        ]
        rows.append(["chance", None, None, *chance_of_equal_answers(self.k).values()])
        columns = [
            Column("compared_with", "same answer in"),
            Column("pairs", "pairs", align="right"),
            Column("tuples", "tuples", align="right"),
            *_best_and_worst(),
            Column("joint", "both", ".3f", align="right"),
        ]
        return ResultTable(columns, rows, self.notes, "Consistency of the model", "–")


def _best_and_worst() -> list[Column]:
    return [Column(name, name, ".3f", align="right") for name in ("best", "worst")]


def model_audit(judgments: Judgments, *, has_groups: bool | None = None) -> ModelAudit:
    """Return the audit of the judgments of one model.

    has_groups: whether clusters of dependent tuples are groups; by default if there are several.

    Positions: shares of the best and worst answers at each position of the order shown. If each item is shown
    in each position equally often, all are 1/K without position bias.

    Consistency: of the pairs of judgments of one tuple, the share with the same best, the same worst, and
    both. The pairs are those with the same prompt and another order; with the same prompt and order
    (repeated calls); and with another prompt, in the same order and run. A tuple counts once, with the share
    of its pairs.

    Intervals generalise to other groups, or tuples without groups. Shares are NaN without pairs, with a note
    that says why.
    """
    if has_groups is None:
        has_groups = len(judgments.tuples.groups) > 1
    tuple_of = judgments.tuples.item_sets[judgments.tuple_of]
    cluster_of = judgments.tuples.clusters(has_groups)[judgments.tuple_of]
    calls = _Calls(judgments, tuple_of, cluster_of)
    consistency = {
        name: calls.consistency(is_compared)
        for name, is_compared in _comparisons(judgments).items()
    }
    unit, n_clusters = ("groups" if has_groups else "tuples"), len(np.unique(cluster_of))
    few = too_few_clusters_note(n_clusters, unit) or few_clusters_note(n_clusters, unit)
    notes = [*_missing_notes(judgments, consistency), *([few] if few else [])]
    return ModelAudit(
        len(judgments),
        len(np.unique(tuple_of)),
        tuple(_position_shares(judgments, cluster_of)),
        consistency,
        judgments.tuples.k,
        tuple(notes),
    )


def _position_shares(judgments: Judgments, cluster_of: Longs) -> Iterator[PositionShare]:
    if judgments.shown is None:
        return
    best, worst = (
        np.argmax(judgments.shown == answer[:, None], axis=1)
        for answer in (judgments.best, judgments.worst)
    )
    for position in range(judgments.tuples.k):
        shares = (
            clustered_share((answers == position).astype(np.float64), cluster_of)
            for answers in (best, worst)
        )
        yield PositionShare(*shares)


Compared = Callable[[Longs, Longs], Bools]
"""Whether two judgments of one tuple (indices) are compared."""


def _comparisons(judgments: Judgments) -> dict[str, Compared]:
    """Return which pairs are compared, for each of `COMPARED_CALLS`."""
    order, prompt, run = _orders(judgments), _codes(judgments, "prompt"), _codes(judgments, "run")
    is_known = judgments.shown is not None
    return {
        "orders": lambda a, b: is_known & (order[a] != order[b]) & (prompt[a] == prompt[b]),
        "calls": lambda a, b: is_known & (order[a] == order[b]) & (prompt[a] == prompt[b]),
        "prompts": lambda a, b: (
            (order[a] == order[b]) & (prompt[a] != prompt[b]) & (run[a] == run[b])
        ),
    }


def _orders(judgments: Judgments) -> Longs:
    """Return (J,) numbers of the orders of items shown; all 0 if unknown."""
    if judgments.shown is None:
        return np.zeros(len(judgments), np.int64)
    members = judgments.tuples.members[judgments.tuple_of]
    shown = np.take_along_axis(members, judgments.shown.astype(np.int64), axis=1)
    return np.unique(shown, axis=0, return_inverse=True)[1].ravel()


def _codes(judgments: Judgments, column: str) -> Longs:
    """Return (J,) numbers of the values of a column; all 0 without the column."""
    if column not in judgments.columns:
        return np.zeros(len(judgments), np.int64)
    return np.unique(judgments.columns[column].astype(str), return_inverse=True)[1].ravel()


@dataclass(frozen=True, eq=False)
class _Calls:
    """Judgments with the number of their tuple and of their cluster."""

    judgments: Judgments
    tuple_of: Longs
    cluster_of: Longs

    def consistency(self, is_compared: Compared) -> Consistency:
        """Return the consistency over the pairs of judgments of one tuple that are compared."""
        first, second = self._pairs()
        chosen = is_compared(first, second)
        first, second = first[chosen], second[chosen]
        best, worst = self.judgments.best_item, self.judgments.worst_item
        same_best, same_worst = best[first] == best[second], worst[first] == worst[second]
        tuples, tuple_of = np.unique(self.tuple_of[first], return_inverse=True)
        tuple_of, n = tuple_of.ravel(), np.bincount(tuple_of.ravel(), minlength=len(tuples))
        cluster_of = np.zeros(len(tuples), np.int64)
        cluster_of[tuple_of] = self.cluster_of[first]
        estimates = (
            clustered_share(np.bincount(tuple_of, same, len(tuples)) / n, cluster_of)
            for same in (same_best, same_worst, same_best & same_worst)
        )
        return Consistency(len(first), len(tuples), *estimates)

    def _pairs(self) -> tuple[Longs, Longs]:
        """Return the indices of all pairs of judgments of one tuple."""
        order = np.argsort(self.tuple_of, kind="stable")
        ordered = self.tuple_of[order]
        first, second = [], []
        for distance in range(1, int(np.bincount(ordered).max(initial=0))):
            rows = np.flatnonzero(ordered[distance:] == ordered[:-distance])
            first.append(order[rows])
            second.append(order[rows + distance])
        none = np.zeros(0, np.int64)
        return np.concatenate([none, *first]), np.concatenate([none, *second])


def _missing_notes(judgments: Judgments, consistency: dict[str, Consistency]) -> Iterator[str]:
    needs = {
        "orders": note("no tuple was judged in two orders with one prompt"),
        "calls": note("no tuple was judged twice in one order with one prompt"),
        "prompts": note("no tuple was judged with two prompts in one order and run"),
    }
    for name, each in consistency.items():
        if not each.pairs:
            is_unknown = judgments.shown is None and name != "prompts"
            reason = note("the order of the items is unknown") if is_unknown else needs[name]
            yield f"{COMPARED_CALLS[name]}: {reason}"
