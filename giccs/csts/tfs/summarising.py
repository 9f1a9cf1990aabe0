"""What the scores of many comparisons say: how often features apply, and whether scores go with labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from giccs.csts.records import INVALID
from giccs.csts.tfs.scoring import Contribution, Score
from giccs.csts.tfs.structures import LOWEST

if TYPE_CHECKING:
    from giccs.measures.metrics import Estimate

__all__ = ["FeatureUse", "Summary", "summary"]


@dataclass(frozen=True, slots=True)
class FeatureUse:
    """How often a feature of a condition applies, and how similar its values then are."""

    condition: str
    name: str
    applies: int
    not_applicable: int
    similarity: float
    """Mean label; NaN where the feature never applies."""
    share: float
    """Mean share of the weights in the scores that it counts in; NaN where there is none."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What many scores are like."""

    comparisons: int
    scored: int
    undefined: Mapping[str, int]
    """Reason -> comparisons that have no score for it."""
    mean: float
    lowest: float
    highest: float
    below_scale: int
    """Scores below 1, which only ``zero`` gives."""
    one_sided: int
    """Features that only one of two sentences gives a value."""
    features: tuple[FeatureUse, ...]
    """In the order of their first occurrence."""
    labelled: int
    """Comparisons with a label from 1 to 5."""
    invalid: int
    """Comparisons labelled -1."""
    agreement: Mapping[str, Estimate]
    """``pearson`` and ``spearman`` of scores and labels; empty where there is no label."""

    def document(self) -> dict[str, Any]:
        """Return the summary as JSON has it."""
        names = [name for name in self.__slots__ if name not in ("features", "agreement")]
        return {
            **{name: getattr(self, name) for name in names},
            "features": [
                {key: getattr(use, key) for key in use.__slots__} for use in self.features
            ],
            "agreement": {name: found.document() for name, found in self.agreement.items()},
        }


def summary(scores: Sequence[Score]) -> Summary:
    """Sum up scores, and correlate them with the labels where there are any.

    Mean, lowest and highest are NaN where nothing is scored. The correlations are over comparisons with a
    score and a label from 1 to 5; their intervals resample sentence pairs, since the conditions of one pair
    are not independent (`giccs.measures.metrics.correlations`).
    """
    values = [one.value for one in scores if not one.reason]
    features = [feature for one in scores for feature in one.comparison.features]
    return Summary(
        comparisons=len(scores),
        scored=len(values),
        undefined=Counter(one.reason for one in scores if one.reason),
        mean=_mean(values),
        lowest=min(values, default=math.nan),
        highest=max(values, default=math.nan),
        below_scale=sum(value < LOWEST for value in values),
        one_sided=sum(feature.one_sided for feature in features),
        features=tuple(_uses(scores)),
        labelled=sum(one.comparison.labelled for one in scores),
        invalid=sum(one.comparison.label == INVALID for one in scores),
        agreement=_agreement(scores),
    )


def _uses(scores: Sequence[Score]) -> Iterator[FeatureUse]:
    found: dict[tuple[str, str], list[Contribution]] = {}
    for one in scores:
        for part in one.contributions:
            found.setdefault((one.comparison.condition, part.feature.name), []).append(part)
    for (condition, name), parts in found.items():
        labels = [part.feature.similarity for part in parts if part.feature.similarity is not None]
        shares = [part.share for part in parts if not math.isnan(part.share)]
        yield FeatureUse(
            condition, name, len(labels), len(parts) - len(labels), _mean(labels), _mean(shares)
        )


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan


def _agreement(scores: Sequence[Score]) -> dict[str, Estimate]:
    import numpy as np

    from giccs.csts.measures import over_pairs
    from giccs.measures.metrics import correlations

    compared = [one for one in scores if one.comparison.labelled and not one.reason]
    if not compared:
        return {}
    pairs: dict[tuple[str, str], int] = {}
    sides = [(one.comparison.sentence1, one.comparison.sentence2) for one in compared]
    found = correlations(
        np.array([one.value for one in compared]),
        np.array([one.comparison.label for one in compared], dtype=np.float64),
        np.array([pairs.setdefault(side, len(pairs)) for side in sides]),
    )
    return {name: over_pairs(found[name]) for name in ("pearson", "spearman")}
