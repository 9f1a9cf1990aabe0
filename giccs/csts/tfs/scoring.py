"""The score of two feature structures: a weighted sum (L-CSTS section 6.1, Figure 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from giccs.csts.tfs.structures import Comparison, Feature

__all__ = ["RULES", "Contribution", "Score", "score"]

RULES: Mapping[str, str] = {
    "renormalise": "their weight is shared out among the features that apply: 1 to 5",
    "zero": "they keep their weight and add 0 to the score: 0 to 5",
}
"""What becomes of features that do not apply. Figure 6 cannot tell: its N/A feature has no weight."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one feature adds to the score."""

    feature: Feature
    share: float
    """Its weight as a share of the weights that count; NaN where it does not count."""
    value: float
    """Similarity times share; NaN where the feature does not count."""


@dataclass(frozen=True, slots=True)
class Score:
    """The similarity of a comparison, and how it comes about."""

    comparison: Comparison
    value: float
    """From 1 to 5, with ``zero`` from 0 to 5; NaN with a reason."""
    reason: str
    """Why there is no score; empty where there is one."""
    contributions: tuple[Contribution, ...]
    """One a feature, in the order of the comparison; their sum is the score."""

    def document(self) -> dict[str, Any]:
        """Return the score as JSON has it."""
        one = self.comparison
        return {
            "uid": one.uid,
            "condition": one.condition,
            "score": self.value,
            **({"reason": self.reason} if self.reason else {}),
            "label": one.label,
            "features": [_row(contribution) for contribution in self.contributions],
        }


def _row(contribution: Contribution) -> dict[str, Any]:
    feature = contribution.feature
    return {
        "feature": feature.name,
        "value1": feature.value1,
        "value2": feature.value2,
        "similarity": feature.similarity,
        "weight": feature.weight,
        "share": contribution.share,
        "contribution": contribution.value,
    }


def score(comparison: Comparison, na: str = "renormalise") -> Score:
    """Return the weighted mean of the features' similarities; the weights need not sum to 1.

    `na` is one of `RULES`, and says what features that do not apply do. ``renormalise``: sum of weight times
    similarity, by the sum of the weights, both over the features that apply. ``zero``: the same sum, by the
    weights of all features. Where the weights of all features sum to 1, ``zero`` is the plain weighted sum.

    NaN with a reason: no feature applies; the weights that count sum to 0; with ``zero``, a feature that
    does not apply has no weight. ValueError where `na` is another word. The arithmetic is exact in the
    decimal numbers as they are written, and rounded once.

    >>> figure6 = Comparison("figure-6", "Animal", "…", "…", (
    ...     Feature("type", "dog", "dog", 5, 0.6), Feature("color", None, None, None, None),
    ...     Feature("count", 1, 1, 5, 0.2), Feature("position", "sitting", "in the air", 1, 0.2)))
    >>> found = score(figure6)
    >>> [part.value for part in found.contributions], found.value
    ([3.0, nan, 1.0, 0.2], 4.2)
    """
    if na not in RULES:
        raise ValueError(f"na is {na!r}; allowed are {', '.join(RULES)}")
    counted = [one for one in comparison.features if one.applies or na == "zero"]
    total = sum(_exact(one.weight) for one in counted)
    reason = _why_undefined(counted, total)
    if reason:
        parts = tuple(Contribution(one, math.nan, math.nan) for one in comparison.features)
        return Score(comparison, math.nan, reason, parts)
    shares = [_exact(one.weight) / total for one in counted]
    similarity = sum(
        share * _exact(one.similarity) for share, one in zip(shares, counted, strict=True)
    )
    share_of = {one.name: share for one, share in zip(counted, shares, strict=True)}
    parts = tuple(_contribution(one, share_of.get(one.name)) for one in comparison.features)
    return Score(comparison, float(similarity), "", parts)


def _contribution(feature: Feature, share: Fraction | None) -> Contribution:
    if share is None:
        return Contribution(feature, math.nan, math.nan)
    return Contribution(feature, float(share), float(share * _exact(feature.similarity)))


def _exact(number: float | None) -> Fraction:
    """Return the number that is written: 0.6 is 3/5, not the nearest binary fraction; nothing is 0."""
    return Fraction(0) if number is None else Fraction(repr(number))


def _why_undefined(counted: Sequence[Feature], total: Fraction | int) -> str:
    if not any(feature.applies for feature in counted):
        return "no feature applies"
    without = [feature.name for feature in counted if feature.weight is None]
    if without:
        return f"{', '.join(without)} without a weight; zero needs that of every feature"
    return "" if total else "the weights that count sum to 0"
