"""Names of columns that are in use, and how a column is found by them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = [
    "ANNOTATOR", "BEST", "GROUP", "ITEM", "SCORE", "TUPLE", "WORST", "first_of", "numbered", "plain",
]  # fmt: skip

BEST = ("best", "bestitem", "most", "mostrelated", "bestpair")
WORST = ("worst", "worstitem", "least", "leastrelated", "worstpair")
PEOPLE = ("annotator", "worker", "participant", "user")
ANNOTATOR = tuple(f"{person}{suffix}" for person in PEOPLE for suffix in ("", "id"))
TUPLE = ("tupleid", "tuple")
GROUP = ("group", "dialogueid")
ITEM, SCORE = ("item", "itemid", "utteranceid"), ("score",)


def plain(name: str) -> str:
    """Return a column's name without case, spaces and punctuation.

    >>> plain("Most_Related"), plain("best-pair")
    ('mostrelated', 'bestpair')
    """
    return re.sub(r"[\W_]+", "", name).lower()


def first_of(columns: Iterable[str], wanted: Sequence[str]) -> str | None:
    """Return the column whose plain name is wanted most; None where there is none.

    >>> first_of(["Worst", "BestItem"], BEST)
    'BestItem'
    """
    named = {plain(column): column for column in columns}
    return next((named[name] for name in wanted if name in named), None)


def numbered(columns: Iterable[str], prefix: str = r".*?") -> list[str]:
    """Return the columns named by the prefix (a pattern) and 1, 2, 3, ..., in this order.

    Empty where a number is missing or comes twice.

    >>> numbered(["item2", "item1", "best"], "item")
    ['item1', 'item2']
    >>> numbered(["SentPair1", "SemPair2", "Best"])
    ['SentPair1', 'SemPair2']
    """
    matches = [(re.fullmatch(rf"{prefix}[ _.-]?(\d{{1,3}})", name, re.I), name) for name in columns]
    found = sorted((int(match[1]), name) for match, name in matches if match)
    right = [number for number, _ in found] == list(range(1, len(found) + 1))
    return [name for _, name in found] if right else []
