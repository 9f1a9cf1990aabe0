"""Data frames and records in place of files, and results as data frames.

A frame is read like the CSV file that it would be written to, so that the same checks apply. Line numbers of
messages are those of this file: the header is line 1, the first row line 2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeGuard, TypeVar

from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text

if TYPE_CHECKING:
    from bws.base.tables import ResultTable

Source = Any
"""A path, a pandas or Polars data frame, or a list of dicts, one per row; of judgments also several paths."""
FrameLibrary = Literal["pandas", "polars"]
EXPECTED = "a path, a pandas or Polars data frame, or a list of dicts"
MAX_SHOWN_ROWS = 20


def is_path(source: Source) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a source is the path of a file, and not a frame or records."""
    return isinstance(source, (str, os.PathLike))


def are_paths(source: Source) -> TypeGuard[Sequence[str | os.PathLike[str]]]:
    """Return whether a source is a list or tuple of paths."""
    return isinstance(source, (list, tuple)) and bool(source) and all(map(is_path, source))


def _library(value: object) -> str:
    """Return the name of the package that defines the type of a value."""
    return type(value).__module__.partition(".")[0]


def frame_bytes(source: Source) -> bytes:
    """Return a data frame or records as CSV; missing values are empty.

    The named index of a pandas frame becomes columns. Records may have different keys. Raises TypeError for
    anything else.

    >>> frame_bytes([{"item": "a", "score": 0.5}, {"item": "b"}])
    b'item,score\\na,0.5\\nb,\\n'
    """
    library = _library(source)
    if library == "pandas" and hasattr(source, "columns"):
        has_named_index = any(name is not None for name in source.index.names)
        frame = source.reset_index() if has_named_index else source
        return str(frame.to_csv(index=False, lineterminator="\n")).encode()
    if library == "polars" and hasattr(source, "write_csv"):
        return str(source.write_csv()).encode()
    if isinstance(source, Sequence) and all(isinstance(row, Mapping) for row in source):
        keys = list(dict.fromkeys(key for row in source for key in row))
        rows = ([row[key] if row.get(key) is not None else "" for key in keys] for row in source)
        return csv_text(rows, keys).encode()
    raise TypeError(f"expected {EXPECTED}; got {type(source).__name__}")


def check_source(source: Source, accepted: str) -> None:
    """Raise TypeError unless this is a path, a data frame or records; `accepted` names another type."""
    if (
        not is_path(source)
        and not hasattr(type(source), "columns")
        and not isinstance(source, Sequence)
    ):
        raise TypeError(f"expected {accepted}, {EXPECTED}; got {type(source).__name__}")


def frame_records(source: Source) -> list[dict[str, Any]]:
    """Return the rows of a data frame or records as dicts of plain values; missing values are None.

    Raises TypeError for anything else.

    >>> frame_records([{"item": "a", "score": float("nan")}])
    [{'item': 'a', 'score': None}]
    """
    library = _library(source)
    if library == "pandas" and hasattr(source, "columns"):
        _check_unique(list(map(str, source.columns)))
        source = source.to_dict("records")
    elif library == "polars" and hasattr(source, "to_dicts"):
        source = source.to_dicts()
    if not isinstance(source, Sequence) or not all(isinstance(row, Mapping) for row in source):
        raise TypeError(f"expected {EXPECTED}; got {type(source).__name__}")
    return [{str(key): _plain(value) for key, value in row.items()} for row in source]


def _check_unique(names: Sequence[str]) -> None:
    """Raise InputError if a data frame has several columns of one name."""
    if repeated_names := sorted({name for name in names if names.count(name) > 1}):
        message = f"the header repeats {', '.join(repeated_names)}; expected unique names"
        raise InputError(Problem("<data>", 1, message))


def _plain(value: Any) -> Any:
    """Return NumPy scalars and arrays as Python values, and missing values as None."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    is_missing = not isinstance(plain, (str, list, dict)) and plain != plain
    return None if is_missing else plain


def data_frame(columns: Mapping[str, Iterable[Any]], library: FrameLibrary = "pandas") -> Any:
    """Return columns as a data frame of a library; NaN and None are its missing values."""
    if library == "polars":
        import polars as pl

        return pl.DataFrame(columns, strict=False).fill_nan(None)
    if library != "pandas":
        raise ValueError(f"library is {library!r}; expected 'pandas' or 'polars'")
    try:
        import pandas as pd
    except ImportError:
        message = (
            "a pandas data frame needs pandas; install it with: pip install 'giccs[pandas]', or "
            "use to_frame('polars')"
        )
        raise ImportError(message) from None
    return pd.DataFrame({name: list(values) for name, values in columns.items()})


P = ParamSpec("P")
T = TypeVar("T")


class HasFrame:
    """A value with a data frame, by default of the library that its source is from."""

    frame_library: FrameLibrary = "pandas"
    """Library of `to_frame`, unless another one is requested."""


def frames_like_source(function: Callable[P, T]) -> Callable[P, T]:
    """Let the result of a function have Polars frames if the first argument is, or was read from, one."""

    @wraps(function)
    def with_library(*args: P.args, **kwargs: P.kwargs) -> T:
        result = function(*args, **kwargs)
        source = args[0] if args else next(iter(kwargs.values()), None)
        if _library(source) == "polars" or getattr(source, "frame_library", "") == "polars":
            object.__setattr__(result, "frame_library", "polars")
        return result

    return with_library


class Tabular(HasFrame):
    """A result that is one table: its text, HTML and data frame are those of `result_table`."""

    def result_table(self) -> ResultTable:
        """Return the result as a table."""
        raise NotImplementedError

    def table(self) -> str:
        """Return the table as text, with all rows and notes."""
        return str(self.result_table())

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """Return the table as a data frame with full precision.

        library: ``pandas`` or ``polars``; by default Polars for results of Polars frames, otherwise pandas.
        """
        return self.result_table().to_frame(library or self.frame_library)

    def __repr__(self) -> str:
        """Return the first rows and the notes as text."""
        return str(self.result_table().head(MAX_SHOWN_ROWS))

    def _repr_html_(self) -> str:
        """Return the first rows as HTML for notebooks."""
        return self.result_table().head(MAX_SHOWN_ROWS).html()
