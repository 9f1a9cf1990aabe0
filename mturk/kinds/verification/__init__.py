"""HITs that verify conditions: whether a condition applies to two sentences, and their similarity.

C-STS, section 2.2.2 (stage 3) and appendix C.2; the texts of the page are our own.
"""

from __future__ import annotations

from mturk.kinds import HitKind
from mturk.kinds.similarity import SimilarityKind

__all__ = ["KIND"]


class Verification(SimilarityKind):
    """HITs with the similarity of two sentences under a condition, unless it does not apply."""

    file = "verification.csv"


KIND: HitKind = Verification()
