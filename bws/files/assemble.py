"""From rows of text to checked arrays: which rows are the same tuple, which answers are valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.files.columns import MAX_ID, Faults, encode, quoted
from bws.problems import InputError, Problem
from bws.records import Ints, Tuples

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MAX_K", "Assembled", "assemble_tuples", "check_k"]

MIN_K, MAX_K = 2, 12


def check_k(file: str, k: int) -> None:
    """Raise InputError where a tuple cannot have as many items."""
    if not MIN_K <= k <= MAX_K:
        message = f"{k} items in a row; {MIN_K} to {MAX_K} are allowed"
        raise InputError(Problem(file, None, message))


@dataclass(frozen=True, eq=False)
class Assembled:
    """The tuples of R rows, and how each row writes its tuple."""

    tuples: Tuples
    tuple_of: Ints
    """(R,) index of the tuple; not to be used where the row has a fault."""
    row_of: NDArray[np.intp]
    """(R,) index into the D rows that do not repeat the tuple of the row before, as they are called below."""
    codes: Ints
    """(K, D) the items as codes, in the order of the row."""
    ids: NDArray[np.object_]
    """The ids behind the codes."""
    place: NDArray[np.int8]
    """(K, D) the position in `tuples.members` of the row's first, second, ... item."""


def assemble_tuples(
    faults: Faults,
    items: Sequence[pl.Series],
    group: pl.Series | None,
    tuple_id: pl.Series | None,
) -> Assembled:
    """Find out which tuples R rows are of, given K columns of item ids.

    Rows are of one tuple when they have the same tuple id; where there are no tuple ids, when they have
    the same group and set of items. Notes as faults: items that are empty, too long or twice in a
    row; tuple ids that are empty or had another group or other items before. There must be a row; where
    all have faults, the result is of no use.
    """
    if tuple_id is not None and not (tuple_id != "").any():
        tuple_id = None
    new, row_of = _new_rows([column for column in (*items, group, tuple_id) if column is not None])
    inner = Faults(faults.file, faults.lines[new])
    codes, ids = encode([_at(column, new) for column in items])
    _check_items(inner, codes, ids)
    group_of_row, groups = _encoded(inner, "group", group, new)
    name_of_row, names = _encoded(inner, "tuple_id", tuple_id, new)
    if tuple_id is None:
        name_of_row, names = _named_by_items(codes, group_of_row)
    else:
        missing = "tuple_id is empty; give it in every row or in none"
        inner.add((names == "")[name_of_row], lambda _: missing)
    usable = ~inner.wrong | inner.wrong.all()  # with no right row, go on: there may be other faults
    first, tuple_of = _first_rows(name_of_row, usable)
    place, same = _places(codes, first[tuple_of])
    same &= group_of_row == group_of_row[first[tuple_of]]
    inner.add(
        ~same & ~inner.wrong,
        lambda row: (
            "this tuple_id has another group or other items in line "
            f"{inner.lines[first[tuple_of[row]]]}; a tuple keeps both"
        ),
    )
    faults.add_repeated(inner, row_of)
    tuples = _tuples(codes[:, first].T, ids, group_of_row[first], groups, names[name_of_row[first]])
    return Assembled(tuples, tuple_of[row_of], row_of, codes, ids, place)


def _new_rows(columns: Sequence[pl.Series]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the D rows that differ from the row before, and for each row which of them it repeats.

    Files often give a tuple's judgments one after the other; looking its ids up once saves much time.
    """
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= (column[1:] != column[:-1]).to_numpy()
    return np.flatnonzero(new), np.cumsum(new) - 1


def _at(column: pl.Series, rows: NDArray[np.intp]) -> pl.Series:
    return column if len(rows) == len(column) else column.gather(rows)


def _encoded(
    faults: Faults, what: str, column: pl.Series | None, rows: NDArray[np.intp]
) -> tuple[Ints, NDArray[np.object_]]:
    """Return the codes and ids of a column; of none, a single empty id."""
    if column is None:
        return np.zeros(len(rows), np.int32), np.array([""], dtype=object)
    (codes,), ids = encode([_at(column, rows)])
    _check_lengths(faults, what, codes, ids)
    return codes, ids


def _check_items(faults: Faults, codes: Ints, ids: NDArray[np.object_]) -> None:
    k = len(codes)
    for place, other in combinations(range(k), 2):
        faults.add(
            (codes[place] == codes[other]) & (ids != "")[codes[place]],
            lambda row, p=place, o=other: (  # type: ignore[misc]
                f"item{p + 1} and item{o + 1} are both {quoted(str(ids[codes[p, row]]))}; "
                "the items of a tuple must be distinct"
            ),
        )
    for place in range(k):
        empty = f"item{place + 1} is empty; every row must have {k} items"
        faults.add((ids == "")[codes[place]], lambda _, message=empty: message)  # type: ignore[misc]
        _check_lengths(faults, f"item{place + 1}", codes[place], ids)


def _check_lengths(faults: Faults, what: str, codes: Ints, ids: NDArray[np.object_]) -> None:
    if max(map(len, ids), default=0) <= MAX_ID:
        return
    faults.add(
        np.array([len(text) > MAX_ID for text in ids], bool)[codes],
        lambda row: f"{what} has {len(ids[codes[row]])} characters; at most {MAX_ID} are allowed",
    )


def _named_by_items(codes: Ints, group_of_row: Ints) -> tuple[Ints, NDArray[np.object_]]:
    """Return which set of items each row has, in the order of appearance, and names t1, t2, ..."""
    key = group_of_row.astype(np.int64)
    size = int(codes.max(initial=0)) + 1
    for column in np.sort(codes, axis=0):
        key = np.unique(key * size + column, return_inverse=True)[1]  # dense again: no overflow
    name_of_row = _by_appearance(key)
    count = int(name_of_row.max(initial=-1)) + 1
    width = len(str(count))
    return name_of_row, np.array([f"t{n:0{width}}" for n in range(1, count + 1)], dtype=object)


def _by_appearance(key: NDArray[np.int64]) -> Ints:
    """Return the keys as codes from 0 in the order of their first appearance."""
    if key.max(initial=0) <= len(key):  # a table is quicker than sorting, where it is not too long
        inverse, first = key, np.full(int(key.max(initial=0)) + 1, len(key))
        first[key[::-1]] = np.arange(len(key) - 1, -1, -1)  # the last value given stays: the first
    else:
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _first_rows(name_of_row: Ints, right: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Ints]:
    """Return the first right row of each tuple, in the order of the rows, and each row's tuple."""
    rows = np.flatnonzero(right)[::-1]
    first_of_name = np.full(int(name_of_row.max()) + 1, -1)
    first_of_name[name_of_row[rows]] = rows  # the last value given stays: the first row
    first = np.sort(first_of_name[first_of_name >= 0])
    tuple_of_name = np.full(len(first_of_name), -1, np.int32)
    tuple_of_name[name_of_row[first]] = np.arange(len(first))
    return first, tuple_of_name[name_of_row]


def _places(codes: Ints, first: NDArray[np.intp]) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Return where each item of a row stands in the row `first`, and whether both have the same set."""
    k, rows = codes.shape
    place = np.repeat(np.arange(k, dtype=np.int8)[:, np.newaxis], rows, axis=1)
    same = np.ones(rows, bool)
    moved = np.flatnonzero((codes != codes[:, first]).any(axis=0))
    wanted = codes[:, first[moved]]
    for column in range(k):
        equal = wanted == codes[column, moved]
        place[column, moved] = equal.argmax(axis=0)
        same[moved] &= equal.any(axis=0)  # the items are distinct, and as many
    return place, same


def _tuples(
    codes: Ints,
    ids: NDArray[np.object_],
    group_of_tuple: Ints,
    groups: NDArray[np.object_],
    names: NDArray[np.object_],
) -> Tuples:
    """Return the tuples of (T, K) codes; an item is a group and an id together."""
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
