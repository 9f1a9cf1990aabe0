"""From rows as a file writes them to judgments: whatever is wrong is found here."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bws.files.answers import chosen_places
from bws.files.assemble import assemble_tuples, check_k
from bws.files.faults import Faults, quoted
from bws.files.rows import Rows
from bws.files.shown import orders_shown
from bws.files.vocabulary import encode, texts
from bws.problems import InputError, Problem
from bws.records import Ints, Judgments, Tuples
from bws.variants import Variants, variants_of
from bws.variants import merge_variants as merged_rows

__all__ = ["OnInvalid", "judgments_of"]

log = logging.getLogger(__name__)

OnInvalid = Literal["error", "skip"]
ROOM = 1 << 26


def judgments_of(
    rows: Rows, on_invalid: OnInvalid = "error", *, merge_variants: bool = False
) -> Judgments:
    """Check rows and return the valid judgments.

    on_invalid: ``error`` raises InputError with every fault of every row; ``skip`` leaves these rows out
    and lists their faults in `left_out`; items, tuples and annotators of these rows only are not there
    either. InputError also where no row is valid.
    merge_variants: whether items that differ in white space, case and punctuation only are one item, see
    `bws.variants`.
    """
    if on_invalid not in ("error", "skip"):
        raise ValueError(f"on_invalid is {on_invalid!r}; 'error' and 'skip' are allowed")
    if not len(rows.lines):
        nothing = [Problem(rows.file, None, "holds no judgments")]
        raise InputError(rows.problems or nothing)
    k = len(rows.items)
    check_k(rows.file, k)
    rows, merged = merged_rows(rows) if merge_variants else (rows, None)
    faults = Faults(rows.file, rows.lines, rows.problems)
    found = assemble_tuples(faults, rows.items, rows.group, rows.tuple_id)
    best = chosen_places(faults, rows, "best", rows.best, found)
    worst = chosen_places(faults, rows, "worst", rows.worst, found)
    faults.add(
        (best == worst) & (best >= 0),
        lambda row: f"best and worst are both {quoted(str(rows.best[row]))}; they must differ",
    )
    annotator_of, annotators = _annotators(rows)
    _check_once(faults, found.tuple_of, annotator_of, annotators)
    shown = orders_shown(faults, rows, found)
    if on_invalid == "error" and faults.wrong.any() and (known := variants_of(found.ids.tolist())):
        faults.add_other(known.message())
    faults.stop("judgments", always=on_invalid == "error")
    log.debug(
        "%s (%s): %d rows, %d tuples of %d, %d items, %d annotators; %d rows with faults",
        rows.file, rows.form, len(rows.lines), len(found.tuples), k, len(found.tuples.items),
        len(annotators), np.count_nonzero(faults.wrong),
    )  # fmt: skip
    judgments = Judgments(
        tuples=found.tuples,
        tuple_of=found.tuple_of,
        best=found.place[best, found.row_of],
        worst=found.place[worst, found.row_of],
        annotator_of=annotator_of,
        annotators=annotators,
        shown=shown,
        columns={name: texts(column) for name, column in rows.columns.items()},
        source=f"{rows.file} ({rows.form})",
        left_out=faults.problems,
    )
    if faults.wrong.any():
        judgments = _without_unused(judgments.take(~faults.wrong))
    if merged is None:
        return replace(judgments, variants=_variants(judgments))
    n_items = merged.n_items - len(judgments.items_left_out)
    return replace(judgments, variants=replace(merged, n_items=n_items))


def _variants(judgments: Judgments) -> Variants | None:
    tuples = judgments.tuples
    times = np.bincount(judgments.tuple_of, minlength=len(tuples))
    counts = np.bincount(tuples.members.ravel(), times.repeat(tuples.k), len(tuples.items))
    return variants_of(tuples.items.tolist(), tuples.group_of_item, counts.astype(np.int64))


def _without_unused(judgments: Judgments) -> Judgments:
    """Return the judgments without tuples, items, groups and annotators that none of them is about."""
    tuples = judgments.tuples
    used, tuple_of = np.unique(judgments.tuple_of, return_inverse=True)
    items, members = np.unique(tuples.members[used], return_inverse=True)
    groups, group_of_item = np.unique(tuples.group_of_item[items], return_inverse=True)
    people, annotator_of = np.unique(judgments.annotator_of, return_inverse=True)
    unnamed = int(people[:1].tolist() == [-1])  # -1 comes first, and stays
    return replace(
        judgments,
        items_left_out=tuple(np.delete(tuples.items, items).tolist()),
        tuples=Tuples(
            ids=tuples.ids[used],
            items=tuples.items[items],
            group_of_item=group_of_item.astype(np.int32),
            groups=tuples.groups[groups],
            members=members.reshape(len(used), tuples.k).astype(np.int32),
        ),
        tuple_of=tuple_of.astype(np.int32),
        annotator_of=(annotator_of - unnamed).astype(np.int32),
        annotators=judgments.annotators[people[unnamed:]],
    )


def _annotators(rows: Rows) -> tuple[Ints, NDArray[np.object_]]:
    """Return each row's annotator, -1 where none is named, and the annotators."""
    if rows.annotator is None:
        return np.full(len(rows.lines), -1, np.int32), np.empty(0, dtype=object)
    (codes,), ids = encode([rows.annotator])
    new = np.cumsum(ids != "", dtype=np.int32) - 1
    new[ids == ""] = -1
    return new[codes], ids[ids != ""]


def _check_once(
    faults: Faults, tuple_of: Ints, annotator_of: Ints, annotators: NDArray[np.object_]
) -> None:
    """Note the rows in which an annotator judges a tuple that he or she has judged before."""
    import polars as pl

    rows = np.flatnonzero(~faults.wrong & (annotator_of >= 0))
    key = tuple_of[rows].astype(np.int64) * len(annotators) + annotator_of[rows]
    if _distinct(key, int(tuple_of.max()) * len(annotators) + len(annotators)):
        return
    again = ~pl.Series(key).is_first_distinct().to_numpy()
    earlier = dict(zip(key[~again].tolist(), faults.lines[rows[~again]].tolist(), strict=True))
    key_of_row = dict(zip(rows[again].tolist(), key[again].tolist(), strict=True))
    mask = np.zeros(len(tuple_of), bool)
    mask[rows[again]] = True
    faults.add(
        mask,
        lambda row: (
            f"annotator {quoted(annotators[annotator_of[row]])} has judged this tuple in line "
            f"{earlier[key_of_row[row]]}; one judgment a person and tuple is allowed"
        ),
    )


def _distinct(keys: NDArray[np.int64], size: int) -> bool:
    """Tell whether keys below `size` are all different, by ticking them off where there is room."""
    import polars as pl

    if size > ROOM:
        return pl.Series(keys).n_unique() == len(keys)
    seen = np.zeros(size, bool)
    seen[keys] = True
    return int(np.count_nonzero(seen)) == len(keys)
