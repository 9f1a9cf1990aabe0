"""Safe reading of Parquet files from untrusted sources.

A few bytes can represent gigabytes of equal values, and a damaged file makes the reader panic with an unusual
exception. This module limits the size and converts such errors to ValueError.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bws.base.file_uses import note_read
from bws.base.problems import InputError, Location, Problem
from bws.files.schema import Row

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)

MAX_ROWS = 20_000_000
MAX_BYTES = 4 * 2**30
"""Maximum size of all values in bytes, including repetitions."""


def read_table(source: Path | bytes, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return a table, or some of its columns.

    Raises ValueError with one line if it is not a Parquet file, lacks a column, or has more than `MAX_ROWS`
    rows or `MAX_BYTES` bytes, and FileNotFoundError if it does not exist.
    """
    import polars as pl

    if isinstance(source, Path):
        note_read(source)
    if (rows := count_rows(source)) > MAX_ROWS:
        raise ValueError(f"{rows:,} rows; expected at most {MAX_ROWS:,}")
    with polars_errors_as_value_errors():
        table = pl.read_parquet(source, columns=None if columns is None else list(columns))
    if (size := table.estimated_size()) > MAX_BYTES:
        raise ValueError(f"its values require {size:,} bytes; expected at most {MAX_BYTES:,}")
    if isinstance(source, Path):
        log.debug("read %s: %d rows, %d bytes in memory", source, rows, size)
    return table


def count_rows(source: Path | bytes) -> int:
    """Return the number of rows in the metadata of a file, without reading them; errors as for
    `read_table`."""
    import polars as pl

    with polars_errors_as_value_errors():
        return int(pl.scan_parquet(source).select(pl.len()).collect().item())


def parquet_rows(path: Path) -> Iterator[Row]:
    """Yield each row of a Parquet file, counted from 1; raise InputError for other files."""
    try:
        frame = read_table(path)
    except (ValueError, OSError) as error:
        raise InputError(Problem(str(path), None, f"not a valid Parquet file ({error})")) from None
    for line, values in enumerate(frame.iter_rows(named=True), start=1):
        yield Row(Location(str(path), line), values)


@contextmanager
def polars_errors_as_value_errors() -> Iterator[None]:
    """Convert Polars' exceptions for damaged files, including panics, to ValueError with one line."""
    from polars.exceptions import PanicException, PolarsError

    try:
        yield
    except FileNotFoundError:
        raise
    except (PolarsError, PanicException, OSError) as error:
        raise ValueError(str(error).partition("\n")[0]) from None
