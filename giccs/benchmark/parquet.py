"""How is a Parquet file read that a stranger may have written?

A few bytes can stand for gigabytes of equal values, and a damaged file makes the reader panic, which is no
exception of the usual kind. Here the first is bounded and the second becomes a sentence.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bws.files.schema import Row
from bws.problems import InputError, Location, Problem

if TYPE_CHECKING:
    import polars as pl

__all__ = ["count_rows", "parquet_rows", "polars_errors_as_value_errors", "read_table"]

log = logging.getLogger(__name__)

MAX_ROWS = 20_000_000
MAX_BYTES = 4 * 2**30
"""Bytes of all values, each counted as often as it stands there."""


def read_table(source: Path | bytes, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return a table, or these columns of it.

    ValueError, in a line, where it is no Parquet file, has not these columns, or more than `MAX_ROWS` rows or
    `MAX_BYTES` bytes; FileNotFoundError where there is no file.
    """
    import polars as pl

    if (rows := count_rows(source)) > MAX_ROWS:
        raise ValueError(f"{rows:,} rows; at most {MAX_ROWS:,} are read")
    with polars_errors_as_value_errors():
        table = pl.read_parquet(source, columns=None if columns is None else list(columns))
    if (size := table.estimated_size()) > MAX_BYTES:
        raise ValueError(f"its values would take {size:,} bytes; at most {MAX_BYTES:,} are read")
    if isinstance(source, Path):
        log.debug("read %s: %d rows, %d bytes in memory", source, rows, size)
    return table


def count_rows(source: Path | bytes) -> int:
    """Return how many rows a file says it has, without reading them; errors as of `read_table`."""
    import polars as pl

    with polars_errors_as_value_errors():
        return int(pl.scan_parquet(source).select(pl.len()).collect().item())


def parquet_rows(path: Path) -> Iterator[Row]:
    """Yield each row of a Parquet file, counted from 1; InputError where it is none."""
    try:
        frame = read_table(path)
    except (ValueError, OSError) as error:
        raise InputError(Problem(str(path), None, f"is no Parquet file ({error})")) from None
    for line, values in enumerate(frame.iter_rows(named=True), start=1):
        yield Row(Location(str(path), line), values)


@contextmanager
def polars_errors_as_value_errors() -> Iterator[None]:
    """Turn whatever Polars makes of a broken file, its panics too, into a ValueError of one line."""
    from polars.exceptions import PanicException, PolarsError

    try:
        yield
    except FileNotFoundError:
        raise
    except (PolarsError, PanicException, OSError) as error:
        raise ValueError(str(error).partition("\n")[0]) from None
