"""In which order a tuple's items were shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bws.files.assemble import Assembled
from bws.files.faults import Faults, quoted
from bws.files.rows import Rows
from bws.files.writing import series
from bws.records import normal_id

if TYPE_CHECKING:
    import polars as pl

__all__ = ["orders_shown", "respelled_order"]


def orders_shown(faults: Faults, rows: Rows, found: Assembled) -> NDArray[np.int8] | None:
    """Return (J, K) which position of the tuple was shown first, second, ...; None where not told."""
    if rows.as_shown:
        return found.place.T[found.row_of]
    if rows.shown is None or not (rows.shown != "").any():
        return None
    written = rows.shown
    order = _orders_alike(written, rows.items)
    wrong = (np.sort(order, axis=1) != np.arange(len(rows.items))).any(axis=1)
    for row in np.flatnonzero(wrong & ~faults.wrong):  # other Unicode forms, ids with semicolons
        items = found.ids[found.codes[:, found.row_of[row]]].tolist()
        places = _order_of(normal_id(written[int(row)]), items)
        if places:
            order[row], wrong[row] = places, False
    faults.add(
        wrong & ~faults.wrong,
        lambda row: (
            f"shown is {quoted(str(written[row]))}; it must be the row's items in some order, "
            "with ; between them, in every row or in none"
        ),
    )
    return found.place.T[found.row_of[:, np.newaxis], order]


def respelled_order(
    shown: pl.Series, before: Sequence[pl.Series], after: Sequence[pl.Series]
) -> pl.Series:
    """Return the orders shown in the new spellings of the items; one that cannot be read stays as it is."""
    changed = np.any([(b != a).to_numpy() for b, a in zip(before, after, strict=True)], axis=0)
    texts = shown.to_list()
    for row in np.flatnonzero(changed & (shown != "").to_numpy()).tolist():
        places = _order_of(normal_id(texts[row]), [normal_id(column[row]) for column in before])
        if places:
            texts[row] = ";".join(after[place][row] for place in places)
    return series(texts)


def _orders_alike(shown: pl.Series, items: Sequence[pl.Series]) -> NDArray[np.int8]:
    """Return (J, K) the place in the row of each part of `shown`, -1 where no item is written like it."""
    parts = shown.str.splitn(";", len(items)).struct.unnest()
    order = np.full((len(shown), len(items)), -1, np.int8)
    for column, part in enumerate(parts.iter_columns()):
        for place, item in enumerate(items):
            order[(part == item).fill_null(False).to_numpy(), column] = place
    return order


def _order_of(text: str, items: Sequence[str]) -> list[int] | None:
    """Return the places in `items` in the order in which `text` joins them with semicolons.

    >>> _order_of("b;a; c", ["a", "b", "c"]), _order_of("y;x;y", ["y", "x;y"]), _order_of("a", ["b"])
    ([1, 0, 2], [0, 1], None)
    """

    def rest(text: str, left: Sequence[int]) -> list[int] | None:
        if not left:
            return [] if text == "" else None
        for place in left:
            after = text.strip().removeprefix(items[place]).lstrip()
            if text.strip().startswith(items[place]) and after[:1] in (";", ""):
                found = rest(after[1:], [other for other in left if other != place])
                if found is not None:
                    return [place, *found]
        return None

    return rest(text, range(len(items)))
