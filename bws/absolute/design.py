"""The plan of anchors: which candidates each person answers after the tuples of a dialogue."""

from __future__ import annotations

import numpy as np

from bws.absolute.files import Kind, PlannedAnchor
from bws.records import Tuples

DESIGNS: dict[str, Kind] = {"rating:2": "rating", "mark": "mark"}
"""Name of a design -> kind of its anchors."""
N_RATED = 2


def plan_anchors(tuples: Tuples, design: str, *, seed: int = 0) -> tuple[PlannedAnchor, ...]:
    """Return the anchors of every group for as many persons as it has items; further persons begin again.

    ``rating:2``: two items per person, which rotate. In a random order of the K items, person s = 0, 1, ...
    rates the items 2 s and 2 s + 1 (modulo K; for even K one further in the second half). Hence, after any
    number of persons, two items differ by at most one rating, and each is rated twice by K persons: once
    as the first and once as the second on the page.
    ``mark``: all items for every person, in an order that rotates.

    Raises ValueError for a single group, and for groups of a single item. Control items have no anchors.

    >>> from bws.design import make_tuples
    >>> design = make_tuples(list("abcde" * 2), 3, groups=["d1"] * 5 + ["d2"] * 5)
    >>> plan = [row for row in plan_anchors(design, "rating:2") if row.group == "d1"]
    >>> sorted("".join(row.items[0] for row in plan)), sorted("".join(row.items[1] for row in plan))
    (['a', 'b', 'c', 'd', 'e'], ['a', 'b', 'c', 'd', 'e'])
    """
    if design not in DESIGNS:
        raise ValueError(f"design is {design!r}; expected {' or '.join(DESIGNS)}")
    if len(tuples.groups) < 2:
        raise ValueError("one group; expected several, which anchors relate to each other")
    rng = np.random.Generator(np.random.PCG64(seed))
    scored = tuples.group_of_item[: tuples.n_scored]
    plan: list[PlannedAnchor] = []
    for group in range(len(tuples.groups)):
        items = tuples.items[rng.permutation(np.flatnonzero(scored == group))]
        if len(items) < N_RATED:
            raise ValueError(
                f"group {tuples.groups[group]!r} has {len(items)} items; expected at least two"
            )
        n_chosen = N_RATED if DESIGNS[design] == "rating" else len(items)
        plan += [
            PlannedAnchor(
                tuples.groups[group], person + 1, DESIGNS[design],
                tuple(np.roll(items, -start)[:n_chosen].tolist()),
            )
            for person, start in enumerate(_starts(len(items), DESIGNS[design]))
        ]  # fmt: skip
    return tuple(plan)


def _starts(k: int, kind: Kind) -> list[int]:
    """Return the first place of each person's items in the order of the group.

    >>> _starts(5, "rating"), _starts(4, "rating")
    ([0, 2, 4, 1, 3], [0, 2, 1, 3])
    """
    if kind == "mark":
        return list(range(k))
    return [(2 * person + (k % 2 == 0 and 2 * person >= k)) % k for person in range(k)]
