"""Columns of rows: texts as integer codes, faults of rows, and columns as delimited text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.records import Ints

if TYPE_CHECKING:
    import polars as pl

MAX_ID = 10_000
"""Maximum length of an id."""
# Printable ASCII without surrounding white space is already normalised.
PLAIN = r"^(?:[!-~](?:[ -~]*[!-~])?)?$"


def encode(columns: Sequence[pl.Series]) -> tuple[Ints, NDArray[np.object_]]:
    """Return (C, R) codes and the (N,) normalised ids that they denote.

    All C columns of R texts share the ids. Codes count from 0 in the order in which ids first appear, row by
    row. Texts that differ only in Unicode normalisation or surrounding white space have the same id.

    >>> import polars as pl
    >>> codes, ids = encode([pl.Series(["b", "a"]), pl.Series(["c", " b"])])
    >>> codes.tolist(), ids.tolist()
    ([[0, 2], [1, 0]], ['b', 'c', 'a'])
    """
    import polars as pl

    stacked = pl.concat(columns) if len(columns) > 1 else columns[0]
    raw = stacked.cast(pl.Categorical).to_physical().to_numpy().reshape(len(columns), -1)
    first_index = _first_places(raw)
    order = np.argsort(first_index)[: np.count_nonzero(first_index < raw.size)]
    column, row = first_index[order] % len(columns), first_index[order] // len(columns)
    raw_texts = stacked.gather(column * raw.shape[1] + row)
    normal, ids = _normalised(raw_texts)
    code_of_raw = np.zeros(len(first_index), np.int32)
    code_of_raw[order] = normal
    return code_of_raw[raw], ids


def _first_places(raw: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the first index of each raw code, row by row; `raw.size` for unused codes."""
    columns, rows = raw.shape
    first_index = np.full(int(raw.max()) + 1 if raw.size else 0, raw.size, np.int64)
    for column in range(columns):
        indices = np.full(len(first_index), raw.size, np.int64)
        # Of several values assigned to an index, the last is kept; therefore in reverse order.
        indices[raw[column, ::-1]] = np.arange(rows - 1, -1, -1) * columns + column
        np.minimum(first_index, indices, out=first_index)
    return first_index


def _normalised(raw_texts: pl.Series) -> tuple[Ints, NDArray[np.object_]]:
    """Return the code of each distinct text and the distinct normalised texts."""
    ids = texts(raw_texts)
    odd = np.flatnonzero(~raw_texts.str.contains(PLAIN).to_numpy())
    if not len(odd):
        return np.arange(len(ids), dtype=np.int32), ids
    ids[odd] = [normal_id(text) for text in ids[odd]]
    codes: dict[str, int] = {}
    code = np.array([codes.setdefault(text, len(codes)) for text in ids], np.int32)
    return code, np.array(list(codes), dtype=object)


def texts(column: pl.Series) -> NDArray[np.object_]:
    """Return a column of text as an array of Python strings."""
    return np.array(column.to_list(), dtype=object)


MAX_LINES = 5
"""Number of lines in a message."""
MAX_QUOTED = 60
"""Maximum number of characters of a quoted text in a message."""


def listed_lines(lines: Sequence[int]) -> str:
    """Return the first lines of a list, for messages.

    >>> listed_lines([4, 7]), listed_lines(range(2, 9))
    ('4, 7', '2, 3, 4, 5, 6, ...')
    """
    first = ", ".join(map(str, lines[:MAX_LINES]))
    return f"{first}, ..." if len(lines) > MAX_LINES else first


class Faults:
    """Faults of the rows of a file."""

    def __init__(
        self,
        file: str,
        lines: NDArray[np.int64],
        other_problems: Iterable[Problem] = (),
        *,
        files: NDArray[np.object_] | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Store the lines of the rows.

        files: the file of each row if there are several. names: the name of each row in a file without lines.
        """
        self.file, self.lines, self.files, self.names = file, lines, files, names
        self.wrong = np.zeros(len(lines), bool)
        """(R,) mask of rows with faults."""
        self._others = tuple(other_problems)
        self._messages: list[tuple[int, str]] = []

    def place(self, row: int, seen_from: int) -> str:
        """Return the location of a row for a message on another row."""
        if len(self.names):
            return self.names[row]
        if self.files is None or self.files[row] == self.files[seen_from]:
            return f"line {self.lines[row]}"
        return f"{self.files[row]}:{self.lines[row]}"

    def add(self, rows: NDArray[np.bool_], message: Callable[[int], str]) -> None:
        """Add a fault for every row in the mask; `message` returns its text for a row."""
        self._messages += [(row, message(row)) for row in np.flatnonzero(rows).tolist()]
        self.wrong |= rows

    def add_repeats(
        self,
        keys: pl.Series | NDArray[np.int64],
        key_text: Callable[[int], str],
        present: NDArray[np.bool_],
    ) -> None:
        """Add a fault for each present row whose key occurs earlier; `key_text` describes the key of a
        row."""
        import polars as pl

        column = pl.Series("key", keys)
        again = ~column.is_first_distinct().to_numpy() & present
        if again.any():
            row_of_first = pl.int_range(pl.len()).first().over("key")
            first = column.to_frame().select(row_of_first).to_series().to_numpy()
            self.add(
                again,
                lambda row: (
                    f"repeats {key_text(row)} of {self.place(first[row], row)}; each must be unique"
                ),
            )

    def add_missing_groups(
        self, codes: Ints, ids: NDArray[np.object_], group_of: Ints, groups: NDArray[np.object_]
    ) -> None:
        """Add a fault for each row without group that has an item which has a group in another row.

        Such an item would count as two items, each with part of the rows. codes: (C, R) items of each row, as
        indices of `ids`; group_of: (R,) indices of `groups`, of which the empty one is no group.
        """
        grouped = np.flatnonzero((groups != "")[group_of])
        if not 0 < len(grouped) < len(group_of):
            return
        known, first = np.unique(codes[:, grouped].T, return_index=True)
        row_of_first = np.full(len(ids), -1)
        row_of_first[known] = grouped[first // len(codes)]
        in_group = row_of_first[codes]
        in_group[:, grouped] = -1

        def message(row: int) -> str:
            column = int(np.argmax(in_group[:, row] >= 0))
            other = in_group[column, row]
            return (
                f"item {quoted(str(ids[codes[column, row]]))} has no group; in {self.place(other, row)} its "
                f"group is {quoted(str(groups[group_of[other]]))}; expected a group in both or in neither"
            )

        in_both: NDArray[np.bool_] = np.any(in_group >= 0, axis=0)
        self.add(in_both, message)

    def add_other(self, message: str) -> None:
        """Add a problem of the whole file."""
        self._others += (Problem(self.file, None, message),)

    def add_repeated(self, repeated_faults: Faults, row_of: NDArray[np.intp]) -> None:
        """Add the faults of `repeated_faults` to all rows that repeat its rows: row r repeats row_of[r]."""
        messages: dict[int, list[str]] = {}
        for row, message in repeated_faults._messages:
            messages.setdefault(row, []).append(message)
        for row in np.flatnonzero(repeated_faults.wrong[row_of]).tolist():
            self._messages += [(row, message) for message in messages[int(row_of[row])]]
        self.wrong |= repeated_faults.wrong[row_of]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return all faults and other problems, by line."""
        lines = self.lines.tolist()
        files = [self.file] * len(lines) if self.files is None else self.files.tolist()
        order = {name: number for number, name in enumerate(dict.fromkeys(files))}
        row_problems = [
            Problem(
                files[row],
                lines[row] or None,
                f"{self.names[row]}: {message}" if len(self.names) else message,
                None if lines[row] else row,
            )
            for row, message in self._messages
        ]
        problems = [*self._others, *row_problems]
        return tuple(sorted(problems, key=lambda each: (order.get(each.file, 0), each.line or 0)))

    def stop(self, description: str, *, always: bool) -> None:
        """Raise InputError if no row is valid or, with `always`, if there is any problem."""
        if self.wrong.all() or (always and (self._others or self._messages)):
            nothing = Problem(self.file, None, f"no {description}")
            raise InputError(self.problems or nothing)


def quoted(text: str) -> str:
    """Return a text for a message, quoted and shortened.

    >>> quoted("a"), len(quoted("a" * 1000000))
    ("'a'", 62)
    """
    return repr(shortened(text))


def shortened(text: str) -> str:
    """Return a text shortened to at most 60 characters, ending in three dots if text was removed."""
    return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 3]}..."


def delimited(columns: Mapping[str, pl.Series]) -> str:
    """Return CSV with a header; fields are quoted if necessary, and NaN is an empty field."""
    import polars as pl

    numbers = pl.selectors.float()
    empty = pl.selectors.string().replace("", None)
    return pl.DataFrame(dict(columns)).with_columns(numbers.fill_nan(None), empty).write_csv()


def tabbed(columns: Mapping[str, pl.Series], file: str) -> str:
    """Return tab-separated lines without header, as read by K&M's programs.

    Raises InputError for text with a tab or a line break, which this format cannot represent.
    """
    import polars as pl

    frame = pl.DataFrame(dict(columns))
    for name in frame.columns:
        unfit = frame[name].filter(frame[name].cast(pl.String).str.contains(r"[\t\r\n]"))
        if len(unfit):
            message = (
                f"{unfit[0]!r} contains a tab or a line break, which the format km cannot represent"
            )
            raise InputError(Problem(file, None, message))
    return frame.write_csv(include_header=False, separator="\t", quote_style="never")
