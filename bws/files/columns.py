"""Columns of rows: texts as integer codes, what is wrong with rows, columns as delimited text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from bws.records import Ints, normal_id

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "MAX_ID",
    "Faults",
    "delimited",
    "encode",
    "quoted",
    "series",
    "shortened",
    "tabbed",
    "texts",
]

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


MAX_QUOTED = 60
"""Characters of a text in a message."""


class Faults:
    """What is wrong with the rows of a file."""

    def __init__(self, file: str, lines: NDArray[np.int64], others: Iterable[Problem] = ()) -> None:
        self.file, self.lines = file, lines
        self.wrong = np.zeros(len(lines), bool)
        """(R,) the rows that have a fault."""
        self._others = tuple(others)
        self._messages: list[tuple[int, str]] = []

    def add(self, rows: NDArray[np.bool_], message: Callable[[int], str]) -> None:
        """Note a fault of every row in the mask; `message` words it for one row."""
        self._messages += [(row, message(row)) for row in np.flatnonzero(rows).tolist()]
        self.wrong |= rows

    def add_repeats(
        self,
        keys: pl.Series | NDArray[np.int64],
        what: Callable[[int], str],
        present: NDArray[np.bool_],
    ) -> None:
        """Note each present row whose key an earlier row has; `what` names the key of a row."""
        import polars as pl

        column = pl.Series("key", keys)
        again = ~column.is_first_distinct().to_numpy() & present
        if again.any():
            row_of_first = pl.int_range(pl.len()).first().over("key")
            lines = self.lines[column.to_frame().select(row_of_first).to_series().to_numpy()]
            self.add(
                again, lambda row: f"repeats {what(row)} of line {lines[row]}; each must be unique"
            )

    def add_other(self, message: str) -> None:
        """Note something about the file as a whole."""
        self._others += (Problem(self.file, None, message),)

    def add_repeated(self, other: Faults, row_of: NDArray[np.intp]) -> None:
        """Note the faults of `other` for all rows that repeat its rows: row r repeats row_of[r]."""
        messages: dict[int, list[str]] = {}
        for row, message in other._messages:
            messages.setdefault(row, []).append(message)
        for row in np.flatnonzero(other.wrong[row_of]).tolist():
            self._messages += [(row, message) for message in messages[int(row_of[row])]]
        self.wrong |= other.wrong[row_of]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All faults and the other problems, by line."""
        lines = self.lines.tolist()
        found = [
            Problem(self.file, lines[row] or None, message, None if lines[row] else row)
            for row, message in self._messages
        ]
        return tuple(sorted([*self._others, *found], key=lambda problem: problem.line or 0))

    def stop(self, what: str, *, always: bool) -> None:
        """Raise InputError where no row is right, or, with `always`, where anything is wrong."""
        if self.wrong.all() or (always and (self._others or self._messages)):
            nothing = Problem(self.file, None, f"holds no {what}")
            raise InputError(self.problems or nothing)


def quoted(text: str) -> str:
    """Return a text for a message, in quotes and not too long.

    >>> quoted("a"), len(quoted("a" * 1000000))
    ("'a'", 62)
    """
    return repr(shortened(text))


def shortened(text: str) -> str:
    """Return a text of at most 60 characters; three dots stand for the end of a longer one."""
    return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 3]}..."


def delimited(columns: Mapping[str, pl.Series]) -> str:
    """Return CSV with a header; fields are quoted where they must be, NaN is an empty field."""
    import polars as pl

    numbers = pl.selectors.float()
    empty = pl.selectors.string().replace("", None)
    return pl.DataFrame(dict(columns)).with_columns(numbers.fill_nan(None), empty).write_csv()


def tabbed(columns: Mapping[str, pl.Series], file: str) -> str:
    """Return lines with tabs between the fields, no header, as K&M's programs read them.

    Raises InputError where a text holds a tab or a line break, which this format cannot carry.
    """
    import polars as pl

    frame = pl.DataFrame(dict(columns))
    for name in frame.columns:
        unfit = frame[name].filter(frame[name].cast(pl.String).str.contains(r"[\t\r\n]"))
        if len(unfit):
            message = f"{unfit[0]!r} holds a tab or a line break; the format km cannot carry it"
            raise InputError(Problem(file, None, message))
    return frame.write_csv(include_header=False, separator="\t", quote_style="never")


def series(values: Iterable[str]) -> pl.Series:
    """Return a column of text, of no rows also."""
    import polars as pl

    return pl.Series(list(values), dtype=pl.String)
