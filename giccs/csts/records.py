"""What one question of C-STS is: two sentences, a condition and how similar they are under it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["INVALID", "LABELS", "Instance"]

LABELS = (1, 2, 3, 4, 5)
"""The Likert scale (C-STS, 2.2.2): 1 most dissimilar, 5 most similar."""
INVALID = -1
"""The label of the reannotated set where the condition does not apply to the sentences (L-CSTS, 3.3)."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One row of C-STS.

    >>> Instance("0", "A red kite.", "A red bus.", "the color of the object", 5, 0).label
    5
    """

    uid: str
    """Unique in its data set: the file's own, or the number of the row, counted from 0."""
    sentence1: str
    sentence2: str
    condition: str
    label: int | None
    """1 to 5; -1 (`INVALID`) where a reannotation calls the condition invalid; None is not labelled."""
    pair: int
    """Which sentence pair, counted from 0 in the order of the file."""
