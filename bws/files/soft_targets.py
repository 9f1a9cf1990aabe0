"""Soft targets: shares of a tuple's annotators who selected each item as best and as worst; reading and
writing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.base.text import write_atomic
from bws.files.columns import Faults, delimited, encode, quoted
from bws.files.rows import missing
from bws.files.table import Table, read_table
from bws.record_columns import series
from bws.records import Judgments

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
COLUMNS = ("tuple_id", "group", "item", "annotations", "best", "worst", "p_best", "p_worst")
MAX_DIFFERENCE = 0.0051
"""Maximum difference between a share in a file, which may be rounded to two decimals, and that of the
counts."""


@dataclass(frozen=True, eq=False)
class SoftTargets:
    """R rows, one per judged tuple and item."""

    tuple_ids: NDArray[np.object_]
    """(R,)"""
    groups: NDArray[np.object_]
    """(R,) group ids; empty strings without groups."""
    items: NDArray[np.object_]
    """(R,) item ids."""
    annotations: Integers
    """(R,) number of judgments of the tuple."""
    best: Integers
    """(R,) number of judgments that selected the item as best."""
    worst: Integers
    """(R,) number of judgments that selected the item as worst."""
    source: str = ""
    """The file from which they were read."""

    def __len__(self) -> int:
        return len(self.items)

    @property
    def p_best(self) -> Floats:
        """(R,) best / annotations: the raw share, an unbiased estimate of P(best)."""
        return self.best / self.annotations

    @property
    def p_worst(self) -> Floats:
        """(R,) worst / annotations."""
        return self.worst / self.annotations


def soft_targets(judgments: Judgments) -> SoftTargets:
    """Count the answers per tuple and item, in the order of the tuples and their items.

    Tuples without judgments, and those with control items, have no rows. Shares are not smoothed, because
    smoothing would bias the targets of tuples with few annotations towards 1 / K; it can be applied to the
    counts.

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> rows = [Judgment(("a", "b", "c"), "a", "c"), Judgment(("a", "b", "c"), "a", "b")]
    >>> targets = soft_targets(judgments_from_records(rows))
    >>> targets.items.tolist(), targets.p_best.tolist(), targets.p_worst.tolist()
    (['a', 'b', 'c'], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5])
    """
    judgments, _ = judgments.without_controls("soft targets")
    tuples, k = judgments.tuples, judgments.tuples.k
    size = len(tuples) * k
    best, worst = (
        np.bincount(judgments.tuple_of.astype(np.int64) * k + answers, minlength=size)
        for answers in (judgments.best, judgments.worst)
    )
    annotations = np.bincount(judgments.tuple_of, minlength=len(tuples)).repeat(k)
    rows = np.flatnonzero(annotations)
    members = tuples.members.ravel()[rows]
    return SoftTargets(
        tuples.ids[rows // k],
        tuples.groups[tuples.group_of_item[members]],
        tuples.items[members],
        annotations[rows],
        best[rows],
        worst[rows],
    )


def write_soft_targets(targets: SoftTargets, path: str | os.PathLike[str]) -> None:
    """Write soft targets as CSV, atomically (``-`` is standard output)."""
    import polars as pl

    columns = {
        "tuple_id": series(targets.tuple_ids),
        "group": series(targets.groups),
        "item": series(targets.items),
        "annotations": pl.Series(targets.annotations),
        "best": pl.Series(targets.best),
        "worst": pl.Series(targets.worst),
        "p_best": pl.Series(targets.p_best),
        "p_worst": pl.Series(targets.p_worst),
    }
    write_atomic(path, delimited(columns))


def read_soft_targets(path: str | os.PathLike[str]) -> SoftTargets:
    """Read soft targets; the shares are validated and then computed from the counts.

    Raises InputError with every fault: empty ids, invalid counts, repeated items of a tuple, rows of a tuple
    with different groups or annotations, numbers of best or worst answers other than the annotations, and
    shares that contradict the counts.
    """
    table = read_table(path, COLUMNS).with_decimal_points(COLUMNS)
    if not set(COLUMNS) <= set(table.frame.columns):
        raise missing(table, "csv", ", ".join(COLUMNS), "soft-targets")
    faults = Faults(table.file, table.lines, table.problems)
    (tuple_of, item_of), names = encode([table.frame["tuple_id"], table.frame["item"]])
    (group_of,), groups = encode([table.frame["group"]])
    tuple_ids, items = names[tuple_of], names[item_of]
    faults.add((tuple_ids == "").astype(bool), lambda _: "tuple_id is empty")
    faults.add((items == "").astype(bool), lambda _: "item is empty")
    annotations, best, worst = (_counts(faults, table, n) for n in ("annotations", "best", "worst"))
    faults.stop("soft targets", always=True)
    targets = SoftTargets(tuple_ids, groups[group_of], items, annotations, best, worst, table.file)
    _check_tuples(faults, targets, tuple_of, item_of, group_of)
    for name, shares in (("p_best", targets.p_best), ("p_worst", targets.p_worst)):
        _check_shares(faults, name, table.frame[name], shares)
    faults.stop("soft targets", always=True)
    return targets


def _counts(faults: Faults, table: Table, name: str) -> NDArray[np.int64]:
    import polars as pl

    column = table.frame[name]
    values = column.str.strip_chars().cast(pl.Int64, strict=False)
    least = 1 if name == "annotations" else 0
    faults.add(
        ~(values >= least).fill_null(False).to_numpy(),
        lambda row: f"{name} is {quoted(column[row])}; expected an integer of at least {least}",
    )
    return values.fill_null(least).to_numpy()


def _check_tuples(
    faults: Faults,
    targets: SoftTargets,
    tuple_of: NDArray[np.int32],
    item_of: NDArray[np.int32],
    group_of: NDArray[np.int32],
) -> None:
    """Add faults for rows that contradict another row of their tuple; faults of a whole tuple are at its
    first row."""
    _, first, number = np.unique(tuple_of, return_index=True, return_inverse=True)
    first_row = first[number]
    pairs = tuple_of.astype(np.int64) * (int(item_of.max(initial=0)) + 1) + item_of

    def name(row: int) -> str:
        return f"tuple {quoted(targets.tuple_ids[row])}"

    faults.add_repeats(
        pairs,
        lambda row: f"the item {quoted(targets.items[row])} of {name(row)}",
        np.ones(len(targets), bool),
    )
    faults.add(
        group_of != group_of[first_row],
        lambda row: f"{name(row)} has another group in line {faults.lines[first_row[row]]}",
    )
    faults.add(
        targets.annotations != targets.annotations[first_row],
        lambda row: f"{name(row)} has other annotations in line {faults.lines[first_row[row]]}",
    )
    is_first = np.zeros(len(targets), bool)
    is_first[first] = True
    best, worst = (
        np.bincount(number, counts)[number].astype(np.int64)
        for counts in (targets.best, targets.worst)
    )
    faults.add(
        is_first & ((best != targets.annotations) | (worst != targets.annotations)),
        lambda row: (
            f"{name(row)} has {best[row]} best and {worst[row]} worst answers; expected "
            f"{targets.annotations[row]} each, one per annotation"
        ),
    )


def _check_shares(
    faults: Faults, name: str, column: pl.Series, shares: NDArray[np.float64]
) -> None:
    import polars as pl

    values = column.str.strip_chars().cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    faults.add(
        ~(np.abs(values - shares) <= MAX_DIFFERENCE),
        lambda row: (
            f"{name} is {quoted(column[row])}; expected {shares[row]:.4g}, the share of the counts"
        ),
    )
