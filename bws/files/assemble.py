"""Validation of rows: assignment of rows to tuples, and detection of invalid rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from bws.files.columns import MAX_ID, Faults, encode, quoted
from bws.files.controls import declared_controls, number_occurrences
from bws.records import Ints, Tuples

if TYPE_CHECKING:
    import polars as pl

MIN_K, MAX_K = 2, 12


def check_k(file: str, k: int) -> None:
    """Raise InputError if a tuple cannot have `k` items."""
    if not MIN_K <= k <= MAX_K:
        message = f"{k} items per row; expected {MIN_K} to {MAX_K}"
        raise InputError(Problem(file, None, message))


@dataclass(frozen=True, eq=False)
class Assembled:
    """The tuples of R rows, and the order of the items in each row."""

    tuples: Tuples
    tuple_of: Ints
    """(R,) index of the tuple; undefined for rows with faults."""
    row_of: NDArray[np.intp]
    """(R,) index into the D rows that differ from the preceding row."""
    codes: Ints
    """(K, D) item codes, in the order of the row, see `number_occurrences`."""
    n_ids: int
    """Number of ids; a code modulo this number is that of an item."""
    ids: NDArray[np.object_]
    """Ids of the item codes."""
    positions: NDArray[np.int8]
    """(K, D) position in `tuples.members` of the first, second, ... item of the row."""
    group_of_row: Ints
    """(D,) number of the group of each of these rows."""

    def n_reduced_items(self, wrong: NDArray[np.bool_], share: float) -> tuple[int, int]:
        """Return how many items lose more than `share` of their rows without those of `wrong`, and of how
        many."""
        keys = self.codes % self.n_ids + self.group_of_row.astype(np.int64) * self.n_ids
        _, item = np.unique(keys, return_inverse=True)
        item_of_row = item.reshape(keys.shape)[:, self.row_of]
        n_rows = np.bincount(item_of_row.ravel())
        n_lost = np.bincount(item_of_row[:, wrong].ravel(), minlength=len(n_rows))
        return int(np.count_nonzero(n_lost > share * n_rows)), len(n_rows)


def assemble_tuples(
    faults: Faults,
    items: Sequence[pl.Series],
    group: pl.Series | None,
    tuple_id: pl.Series | None,
    control: Iterable[str] = (),
    control_column: pl.Series | None = None,
    *,
    control_optional: bool = False,
) -> Assembled:
    """Assign R rows with K columns of item ids to tuples.

    control: control items, which may be repeated in a row, as well as those of `control_column`.
    control_optional: whether items of `control` may be in no row.

    Rows belong to the same tuple if they have the same tuple id or, without tuple ids, the same group and set
    of items. Faults are empty, too long or repeated items in a row, empty tuple ids, and tuple ids with a
    different group or different items in an earlier row. At least one row is required; the result is
    undefined if all rows have faults.
    """
    if tuple_id is not None and not (tuple_id != "").any():
        tuple_id = None
    columns = (*items, group, tuple_id, control_column)
    new, row_of = _new_rows([column for column in columns if column is not None])
    row_names = [faults.names[row] for row in new] if len(faults.names) else ()
    files = None if faults.files is None else faults.files[new]
    inner = Faults(faults.file, faults.lines[new], files=files, names=row_names)
    codes, ids = encode([_at(column, new) for column in items])
    n_ids = len(ids)
    group_of_row, groups = _encoded(inner, "group", group, new)
    declared = None if control_column is None else _at(control_column, new)
    controls, is_control = declared_controls(
        inner, codes, ids, group_of_row, control, declared, optional=control_optional
    )
    codes = number_occurrences(codes, n_ids, is_control)
    ids = np.tile(ids, 1 + int(codes.max(initial=0)) // max(n_ids, 1))
    _check_items(inner, codes, ids)
    inner.add_missing_groups(codes, ids, group_of_row, groups)
    name_of_row, names = _encoded(inner, "tuple_id", tuple_id, new)
    if tuple_id is None:
        name_of_row, names = _named_by_items(codes, group_of_row)
    else:
        missing = "tuple_id is empty; expected in all rows or in none"
        inner.add((names == "")[name_of_row], lambda _: missing)
    usable = ~inner.wrong | inner.wrong.all()  # Without a valid row, continue to find other faults.
    first, tuple_of = _first_rows(name_of_row, usable)
    positions, same = _find_positions(codes, first[tuple_of])
    same &= group_of_row == group_of_row[first[tuple_of]]
    inner.add(
        ~same & ~inner.wrong,
        lambda row: (
            f"this tuple_id has another group or other items in {inner.place(first[tuple_of[row]], row)}; "
            "expected the same"
        ),
    )
    faults.add_repeated(inner, row_of)
    tuples = _tuples(
        codes[:, first].T % max(n_ids, 1),
        ids[:n_ids],
        group_of_row[first],
        groups,
        names[name_of_row[first]],
    )
    if controls:
        tuples = tuples.with_controls(
            {(groups[group], ids[code]): answer for (group, code), answer in controls.items()}
        )
    return Assembled(tuples, tuple_of[row_of], row_of, codes, n_ids, ids, positions, group_of_row)


def _new_rows(columns: Sequence[pl.Series]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the D rows that differ from the preceding row, and for each row the one that it repeats.

    Files often list the judgments of a tuple consecutively, so this saves most of the lookups.
    """
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= (column[1:] != column[:-1]).to_numpy()
    return np.flatnonzero(new), np.cumsum(new) - 1


def _at(column: pl.Series, rows: NDArray[np.intp]) -> pl.Series:
    return column if len(rows) == len(column) else column.gather(rows)


def _encoded(
    faults: Faults, column_label: str, column: pl.Series | None, rows: NDArray[np.intp]
) -> tuple[Ints, NDArray[np.object_]]:
    """Return the codes and ids of a column, or a single empty id without a column."""
    if column is None:
        return np.zeros(len(rows), np.int32), np.array([""], dtype=object)
    (codes,), ids = encode([_at(column, rows)])
    _check_lengths(faults, column_label, codes, ids)
    return codes, ids


def _check_items(faults: Faults, codes: Ints, ids: NDArray[np.object_]) -> None:
    k = len(codes)
    for first_column, second_column in combinations(range(k), 2):
        faults.add(
            (codes[first_column] == codes[second_column]) & (ids != "")[codes[first_column]],
            lambda row, p=first_column, o=second_column: (  # type: ignore[misc]
                f"item{p + 1} and item{o + 1} are both {quoted(str(ids[codes[p, row]]))}; expected "
                "distinct items, except control items (--control)"
            ),
        )
    for first_column in range(k):
        empty = f"item{first_column + 1} is empty; every row must have {k} items"
        faults.add((ids == "")[codes[first_column]], lambda _, message=empty: message)  # type: ignore[misc]
        _check_lengths(faults, f"item{first_column + 1}", codes[first_column], ids)


def _check_lengths(faults: Faults, label: str, codes: Ints, ids: NDArray[np.object_]) -> None:
    if max(map(len, ids), default=0) <= MAX_ID:
        return
    faults.add(
        np.array([len(text) > MAX_ID for text in ids], bool)[codes],
        lambda row: f"{label} has {len(ids[codes[row]])} characters; expected at most {MAX_ID}",
    )


def _named_by_items(codes: Ints, group_of_row: Ints) -> tuple[Ints, NDArray[np.object_]]:
    """Return the set of items of each row, in the order of appearance, with names t1, t2, ..."""
    key = group_of_row.astype(np.int64)
    size = int(codes.max(initial=0)) + 1
    for column in np.sort(codes, axis=0):
        key = np.unique(key * size + column, return_inverse=True)[
            1
        ]  # Consecutive codes prevent an overflow.
    name_of_row = _by_appearance(key)
    count = int(name_of_row.max(initial=-1)) + 1
    width = len(str(count))
    return name_of_row, np.array([f"t{n:0{width}}" for n in range(1, count + 1)], dtype=object)


def _by_appearance(key: NDArray[np.int64]) -> Ints:
    """Return the keys as codes from 0 in the order of their first appearance."""
    if key.max(initial=0) <= len(key):  # A table is faster than sorting if it is not too large.
        inverse, first = key, np.full(int(key.max(initial=0)) + 1, len(key))
        first[key[::-1]] = np.arange(
            len(key) - 1, -1, -1
        )  # The value assigned last is kept: the first one.
    else:
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _first_rows(name_of_row: Ints, right: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Ints]:
    """Return the first valid row of each tuple, in the order of the rows, and the tuple of each row."""
    rows = np.flatnonzero(right)[::-1]
    first_of_name = np.full(int(name_of_row.max()) + 1, -1)
    first_of_name[name_of_row[rows]] = rows  # The value assigned last is kept: the first row.
    first = np.sort(first_of_name[first_of_name >= 0])
    tuple_of_name = np.full(len(first_of_name), -1, np.int32)
    tuple_of_name[name_of_row[first]] = np.arange(len(first))
    return first, tuple_of_name[name_of_row]


def _find_positions(
    codes: Ints, first: NDArray[np.intp]
) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Return the position of each item of a row in the row `first`, and whether both have the same set."""
    k, rows = codes.shape
    positions = np.repeat(np.arange(k, dtype=np.int8)[:, np.newaxis], rows, axis=1)
    same = np.ones(rows, bool)
    moved = np.flatnonzero((codes != codes[:, first]).any(axis=0))
    expected_codes = codes[:, first[moved]]
    for column in range(k):
        equal = expected_codes == codes[column, moved]
        positions[column, moved] = equal.argmax(axis=0)
        same[moved] &= equal.any(axis=0)  # The items are distinct, and their numbers are equal.
    return positions, same


def _tuples(
    codes: Ints,
    ids: NDArray[np.object_],
    group_of_tuple: Ints,
    groups: NDArray[np.object_],
    names: NDArray[np.object_],
) -> Tuples:
    """Return the tuples of (T, K) codes; an item is identified by its group and id."""
    pair = (codes + group_of_tuple[:, np.newaxis].astype(np.int64) * len(ids)).ravel()
    item = _by_appearance(pair)
    pair_of_item = np.empty(int(item.max()) + 1, np.int64)
    pair_of_item[item] = pair
    used, group_of_item = np.unique(pair_of_item // len(ids), return_inverse=True)
    return Tuples(
        ids=names,
        items=ids[pair_of_item % len(ids)],
        group_of_item=group_of_item.astype(np.int32),
        groups=groups[used],
        members=item.reshape(codes.shape),
    )
