"""Where the rows of delimited text begin and how many fields they have, without reading the fields."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layout", "layout_of"]

LINE_FEED, QUOTE = ord("\n"), ord('"')
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class Layout(NamedTuple):
    """The rows of a text, empty lines among them."""

    lines: Ints
    """(R,) the line on which each row begins, from 0."""
    widths: Ints
    """(R,) the number of its fields; 1 for an empty line."""


def layout_of(body: bytes, separator: str, *, quoted: bool) -> Layout | None:
    """Return the layout of a text that ends with a line feed; None where quotes are not around fields.

    quoted: whether a line feed or separator between quotes is part of a field. It is where an odd number
    of quotes stands before it, as a quote inside a field is written twice.

    >>> layout = layout_of(b'a,"b,1"\\n"c\\n2",d\\n\\ne,f\\n', ",", quoted=True)
    >>> layout.lines.tolist(), layout.widths.tolist()
    ([0, 1, 3, 4], [2, 2, 1, 2])
    >>> layout_of(b'5" pipe, 6" pipe\\n', ",", quoted=True) is None
    True
    """
    text = np.frombuffer(body, np.uint8)
    breaks, marks = text == LINE_FEED, text == ord(separator)
    line_ends = row_ends = np.flatnonzero(breaks)
    if quoted:
        if not _around_fields(text, breaks | marks):
            return None
        outside = np.bitwise_and(np.cumsum(text == QUOTE, dtype=np.uint8), 1) == 0
        marks &= outside
        row_ends = np.flatnonzero(breaks & outside)
    before = np.searchsorted(np.flatnonzero(marks), row_ends)
    lines = np.searchsorted(line_ends, row_ends) + 1
    return Layout(np.append(0, lines[:-1]), np.diff(before, prepend=0) + 1)


def _around_fields(text: Bytes, limits: NDArray[np.bool_]) -> bool:
    """Tell whether quotes come in pairs that begin and end a field, or are doubled inside one."""
    quotes = np.flatnonzero(text == QUOTE)
    if len(quotes) % 2:
        return False
    limits = limits | (text == QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    return bool((limits[opening - 1] | (opening == 0)).all() and limits[closing + 1].all())
