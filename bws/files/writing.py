"""Columns as delimited text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bws.problems import InputError, Problem

if TYPE_CHECKING:
    import polars as pl

__all__ = ["delimited", "series", "tabbed"]


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
