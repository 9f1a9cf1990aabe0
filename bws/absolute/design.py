"""The plan of anchors: which candidates each person answers after the tuples of a dialogue."""

from __future__ import annotations

import math
import re

import numpy as np

from bws.absolute.files import Kind, PlannedAnchor
from bws.records import Tuples

DESIGNS = ("rating:2", "mark")
"""Designs that pages of studies ask."""
RATING = re.compile("rating:([1-9][0-9]?)")


def plan_anchors(tuples: Tuples, design: str, *, seed: int = 0) -> tuple[PlannedAnchor, ...]:
    """Return the anchors of every group for as many persons as it has items; further persons begin again.

    ``rating:N``: N items per person, which rotate. In a random order of the K items, person s = 0, 1, ...
    rates the N items from N s on (modulo K; shifted by one when this begins again before all items were
    first). Hence, after any number of persons, two items differ by at most one rating, and each is rated N
    times by K persons: once in each position on the page. Pages ask ``rating:2``.
    ``mark``: all items for every person, in an order that rotates.

    Raises ValueError for a single group, and for groups of a single item, or fewer than N. Control items have
    no anchors.

    >>> from bws.design import make_tuples
    >>> design = make_tuples(list("abcde" * 2), 3, groups=["d1"] * 5 + ["d2"] * 5)
    >>> plan = [row for row in plan_anchors(design, "rating:2") if row.group == "d1"]
    >>> sorted("".join(row.items[0] for row in plan)), sorted("".join(row.items[1] for row in plan))
    (['a', 'b', 'c', 'd', 'e'], ['a', 'b', 'c', 'd', 'e'])
    """
    rating = RATING.fullmatch(design)
    if design != "mark" and rating is None:
        raise ValueError(f"design is {design!r}; expected rating:N, such as rating:2, or mark")
    kind: Kind = "rating" if rating else "mark"
    if len(tuples.groups) < 2:
        raise ValueError("one group; expected several, which anchors relate to each other")
    rng = np.random.Generator(np.random.PCG64(seed))
    scored = tuples.group_of_item[: tuples.n_scored]
    plan: list[PlannedAnchor] = []
    for group in range(len(tuples.groups)):
        items = tuples.items[rng.permutation(np.flatnonzero(scored == group))]
        n = int(rating[1]) if rating else len(items)
        if len(items) < max(n, 2):
            raise ValueError(
                f"group {tuples.groups[group]!r} has {len(items)} items; expected at least {max(n, 2)}"
            )
        plan += [
            PlannedAnchor(
                tuples.groups[group], person + 1, kind, tuple(np.roll(items, -start)[:n].tolist())
            )
            for person, start in enumerate(_starts(len(items), n if rating else 1))
        ]
    return tuple(plan)


def _starts(k: int, n: int) -> list[int]:
    """Return the first place of each person's n items in the order of the k items of the group.

    >>> _starts(5, 2), _starts(4, 2), _starts(4, 1)
    ([0, 2, 4, 1, 3], [0, 2, 1, 3], [0, 1, 2, 3])
    """
    cycle = k // math.gcd(k, n)
    return [(n * person + person // cycle) % k for person in range(k)]
