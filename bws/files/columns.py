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
NORMAL_ASCII = (
    r"^(?:[!-~](?:[ -~]*[!-~])?)?$"  # printable ASCII without outer white space: normal already
)


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
    first_index = _first_indices(raw)
    order = np.argsort(first_index)[: np.count_nonzero(first_index < raw.size)]
    column, row = first_index[order] % len(columns), first_index[order] // len(columns)
    distinct_texts = stacked.gather(column * raw.shape[1] + row)
    normal, ids = _normalize_ids(distinct_texts)
    code_of_raw = np.zeros(len(first_index), np.int32)
    code_of_raw[order] = normal
    return code_of_raw[raw], ids


def _first_indices(raw: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return for each raw code where it first stands, reading row by row; `raw.size` where nowhere."""
    columns, rows = raw.shape
    first_index = np.full(int(raw.max()) + 1 if raw.size else 0, raw.size, np.int64)
    for column in range(columns):
        column_index = np.full(len(first_index), raw.size, np.int64)
        # of several values given to one index the last stays, hence the way backwards
        column_index[raw[column, ::-1]] = np.arange(rows - 1, -1, -1) * columns + column
        np.minimum(first_index, column_index, out=first_index)
    return first_index


def _normalize_ids(distinct_texts: pl.Series) -> tuple[Ints, NDArray[np.object_]]:
    """Return the code of each distinct text and the distinct normalised texts."""
    ids = texts(distinct_texts)
    abnormal = np.flatnonzero(~distinct_texts.str.contains(NORMAL_ASCII).to_numpy())
    if not len(abnormal):
        return np.arange(len(ids), dtype=np.int32), ids
    ids[abnormal] = [normal_id(text) for text in ids[abnormal]]
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

    def __init__(
        self, file: str, lines: NDArray[np.int64], file_problems: Iterable[Problem] = ()
    ) -> None:
        self.file, self.lines = file, lines
        self.is_invalid = np.zeros(len(lines), bool)
        """(R,) the rows that have a fault."""
        self._file_problems = tuple(file_problems)
        self._messages: list[tuple[int, str]] = []

    def add(self, rows: NDArray[np.bool_], message: Callable[[int], str]) -> None:
        """Note a fault of every row in the mask; `message` words it for one row."""
        self._messages += [(row, message(row)) for row in np.flatnonzero(rows).tolist()]
        self.is_invalid |= rows

    def add_repeats(
        self,
        keys: pl.Series | NDArray[np.int64],
        key_name: Callable[[int], str],
        present: NDArray[np.bool_],
    ) -> None:
        """Note each present row whose key an earlier row has; `what` names the key of a row."""
        import polars as pl

        column = pl.Series("key", keys)
        repeated = ~column.is_first_distinct().to_numpy() & present
        if repeated.any():
            row_of_first = pl.int_range(pl.len()).first().over("key")
            lines = self.lines[column.to_frame().select(row_of_first).to_series().to_numpy()]
            self.add(
                repeated,
                lambda row: f"repeats {key_name(row)} of line {lines[row]}; each must be unique",
            )

    def add_file_problem(self, message: str) -> None:
        """Note something about the file as a whole."""
        self._file_problems += (Problem(self.file, None, message),)

    def add_from_runs(self, run_faults: Faults, row_of: NDArray[np.intp]) -> None:
        """Note the faults of `other` for all rows that repeat its rows: row r repeats row_of[r]."""
        messages: dict[int, list[str]] = {}
        for row, message in run_faults._messages:
            messages.setdefault(row, []).append(message)
        for row in np.flatnonzero(run_faults.is_invalid[row_of]).tolist():
            self._messages += [(row, message) for message in messages[int(row_of[row])]]
        self.is_invalid |= run_faults.is_invalid[row_of]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All faults and the other problems, by line."""
        lines = self.lines.tolist()
        row_problems = [
            Problem(self.file, lines[row] or None, message, None if lines[row] else row)
            for row, message in self._messages
        ]
        return tuple(
            sorted([*self._file_problems, *row_problems], key=lambda problem: problem.line or 0)
        )

    def raise_if_invalid(self, row_kind: str, *, always: bool) -> None:
        """Raise InputError where no row is right, or, with `always`, where anything is wrong."""
        if self.is_invalid.all() or (always and (self._file_problems or self._messages)):
            no_rows = Problem(self.file, None, f"holds no {row_kind}")
            raise InputError(self.problems or no_rows)


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
        unsupported = frame[name].filter(frame[name].cast(pl.String).str.contains(r"[\t\r\n]"))
        if len(unsupported):
            message = (
                f"{unsupported[0]!r} holds a tab or a line break; the format km cannot carry it"
            )
            raise InputError(Problem(file, None, message))
    return frame.write_csv(include_header=False, separator="\t", quote_style="never")


def series(values: Iterable[str]) -> pl.Series:
    """Return a column of text, of no rows also."""
    import polars as pl

    return pl.Series(list(values), dtype=pl.String)
