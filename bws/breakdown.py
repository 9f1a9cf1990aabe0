"""The parts of the judgments that metadata tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.records import Judgments

__all__ = ["By", "breakdown", "part_name"]

By = Mapping[str, NDArray[np.object_]]
"""A column's name to (T,) values, one for each of `Judgments.tuples`."""


def breakdown(judgments: Judgments, by: By | None) -> Iterator[tuple[dict[str, Any], Judgments]]:
    """Yield the whole, then the judgments of each combination of values that occurs, sorted.

    ValueError where a column has not a value for each tuple.

    >>> from bws.records import Judgment, Judgments
    >>> rows = [Judgment(("a", "b"), "a", "b"), Judgment(("c", "d"), "d", "c")]
    >>> turns = np.array(["5", "3"], dtype=object)
    >>> for values, part in breakdown(Judgments.from_records(rows), {"turns": turns}):
    ...     print(values, part.tuples.items[part.best_item].tolist())
    {} ['a', 'd']
    {'turns': '3'} ['d']
    {'turns': '5'} ['a']
    """
    n_tuples = len(judgments.tuples)
    for name, column in (by or {}).items():
        if len(column) != n_tuples:
            message = f"by: {name} has {len(column)} values; give one for each of {n_tuples} tuples"
            raise ValueError(message)
    yield {}, judgments
    if by:
        judged = np.unique(judgments.tuple_of)
        found = list(zip(*(column[judged] for column in by.values()), strict=True))
        number = {combination: n for n, combination in enumerate(sorted(set(found)))}
        part_of = np.full(n_tuples, -1)
        part_of[judged] = [number[combination] for combination in found]
        for combination, n in number.items():
            rows = part_of[judgments.tuple_of] == n
            yield dict(zip(by, combination, strict=True)), judgments.take(rows)


def part_name(values: Mapping[str, Any]) -> str:
    """Return how tables and notes call a part: ``source=CROWDSS, n_turns=3``, or ``all``."""
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "all"
