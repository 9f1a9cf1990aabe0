"""Items that are pairs of sentences, in one text form for all formats."""

from __future__ import annotations

import ast
import warnings

from bws.base.ids import normal_id

BETWEEN = " ||| "


def pair_id(first: str, second: str) -> str:
    """Return the id of a pair of sentences: NFC, single spaces, and a separator.

    >>> pair_id(" A dog  barks.", "It rains.")
    'A dog barks. ||| It rains.'
    """
    return BETWEEN.join(" ".join(normal_id(text).split()) for text in (first, second))


def pair_of_list(cell: str) -> str:
    """Return the id of a pair written as a Python list; any other text is normalised in the same way.

    >>> pair_of_list("['A dog barks.', 'It rains.']")
    'A dog barks. ||| It rains.'
    >>> pair_of_list("['A dog barks")
    "['A dog barks"
    """
    try:
        with warnings.catch_warnings():  # Backslashes in sentences are not faults.
            warnings.simplefilter("ignore")
            value = ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value):
        return pair_id(*value)
    return " ".join(normal_id(cell).split())
