"""Order the items inside tuples so that each item stands in each position equally often.

That is always possible to within one: tuples and items form a bipartite graph, and positions are an
equitable colouring of its edges. An item that stands too often in one position exchanges places with another
item of a tuple, which may hand the surplus on: an alternating path, as in König's proof.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["level_positions"]

Members = NDArray[np.int32]


def level_positions(members: Members, n: int) -> Members:
    """Exchange items inside tuples, in place, until positions are level; return the tuples.

    No item then stands in one position more than once more often than in another.

    >>> ordered = level_positions(np.array([[0, 1], [0, 2], [0, 3], [0, 4]], np.int32), 5)
    >>> int((ordered[:, 0] == 0).sum())
    2
    """
    k = members.shape[1]
    table = np.bincount((members * np.int64(k) + np.arange(k)).ravel(), minlength=n * k).reshape(
        n, k
    )
    uneven = np.flatnonzero(np.ptp(table, axis=1) > 1)
    if len(uneven):
        _mend(members, table, uneven)
    return members


def _mend(members: Members, table: NDArray[np.int64], uneven: NDArray[np.intp]) -> None:
    order = np.argsort(members, axis=None, kind="stable")
    starts = np.searchsorted(members.reshape(-1)[order], np.arange(len(table) + 1))
    rows = order // members.shape[1]
    for item in uneven.tolist():
        while int(np.ptp(table[item])) > 1:
            over, under = int(table[item].argmax()), int(table[item].argmin())
            _flip_path(members, table, item, over, under, rows, starts)


def _flip_path(
    members: Members,
    table: NDArray[np.int64],
    item: int,
    over: int,
    under: int,
    rows: NDArray[np.intp],
    starts: NDArray[np.intp],
) -> None:
    """Exchange the positions `over` and `under` along a path of tuples that begins at `item`.

    Each exchange takes one off the item's surplus and hands it to the other item of the tuple. The
    path ends where that item had none: tuples are not used twice, so it ends.
    """
    used: set[int] = set()
    while table[item, over] - table[item, under] > 1:
        for row in rows[starts[item] : starts[item + 1]].tolist():
            if row not in used and members[row, over] == item:
                break
        other = int(members[row, under])
        members[row, over], members[row, under] = other, item
        used.add(row)
        table[item, over] -= 1
        table[item, under] += 1
        table[other, under] -= 1
        table[other, over] += 1
        item = other
