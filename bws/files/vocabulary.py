"""Columns of ids as integers: each id once, normalised, in the order of its first appearance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.records import Ints, normal_id

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MAX_ID", "encode", "texts"]

MAX_ID = 10_000
"""The longest id that is taken for one."""
PLAIN = r"^(?:[!-~](?:[ -~]*[!-~])?)?$"  # printable ASCII without outer white space: normal already


def encode(columns: Sequence[pl.Series]) -> tuple[Ints, NDArray[np.object_]]:
    """Return (C, R) codes and the (N,) normalised ids that they stand for.

    All C columns of R texts share the ids; codes count from 0 in the order in which ids first appear,
    row by row. Texts that differ only by Unicode form or outer white space are one id.

    >>> import polars as pl
    >>> codes, ids = encode([pl.Series(["b", "a"]), pl.Series(["c", " b"])])
    >>> codes.tolist(), ids.tolist()
    ([[0, 2], [1, 0]], ['b', 'c', 'a'])
    """
    import polars as pl

    stacked = pl.concat(columns) if len(columns) > 1 else columns[0]
    raw = stacked.cast(pl.Categorical).to_physical().to_numpy().reshape(len(columns), -1)
    place = _first_places(raw)
    order = np.argsort(place)[: np.count_nonzero(place < raw.size)]
    column, row = place[order] % len(columns), place[order] // len(columns)
    written = stacked.gather(column * raw.shape[1] + row)
    normal, ids = _normalised(written)
    code_of_raw = np.zeros(len(place), np.int32)
    code_of_raw[order] = normal
    return code_of_raw[raw], ids


def _first_places(raw: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return for each raw code where it first stands, reading row by row; `raw.size` where nowhere."""
    columns, rows = raw.shape
    place = np.full(int(raw.max()) + 1 if raw.size else 0, raw.size, np.int64)
    for column in range(columns):
        here = np.full(len(place), raw.size, np.int64)
        # of several values given to one index the last stays, hence the way backwards
        here[raw[column, ::-1]] = np.arange(rows - 1, -1, -1) * columns + column
        np.minimum(place, here, out=place)
    return place


def _normalised(written: pl.Series) -> tuple[Ints, NDArray[np.object_]]:
    """Return the code of each distinct text and the distinct normalised texts."""
    ids = texts(written)
    odd = np.flatnonzero(~written.str.contains(PLAIN).to_numpy())
    if not len(odd):
        return np.arange(len(ids), dtype=np.int32), ids
    ids[odd] = [normal_id(text) for text in ids[odd]]
    codes: dict[str, int] = {}
    code = np.array([codes.setdefault(text, len(codes)) for text in ids], np.int32)
    return code, np.array(list(codes), dtype=object)


def texts(column: pl.Series) -> NDArray[np.object_]:
    """Return a column of text as an array of Python strings."""
    return np.array(column.to_list(), dtype=object)
