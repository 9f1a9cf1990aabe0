"""Linking of batches: scores of several batches on the scale of the first, through shared items.

A score compares an item with the items of its own batch, so scores of batches with different items are not
comparable. Items in both batches link them. Mean–sigma linking (Marco 1977) maps a batch by x -> a + b x,
such that the shared items get the mean and standard deviation that they have on the scale of the first
batch. Unlike regression it is symmetric: noise in the scores of shared items does not shrink the slope.

If all judgments are available, it is better to score them together with a choice model: then every
comparison links the batches, not only the scores of the shared items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bws.base.notes import note
from bws.records import Scores
from bws.scoring.methods import Floats
from bws.stats.constancy import is_constant

Key = tuple[str, str]


def anchor(scores_by_batch: Sequence[Scores]) -> list[Scores]:
    """Map the scores and intervals of all batches to the scale of the first.

    Items are identified by group id and item id. Batches are processed in order; each is linked by all items
    that it shares with earlier batches. An item has its score in the first batch that contains it. Mapped
    scores can be outside [-1, 1] (or [0, 1]); they are not clipped, and a note gives their number.

    Raises ValueError if a batch shares fewer than two scored items with earlier batches, if all shared items
    have the same score in one of the two, or if the batches have different methods or scales.

    >>> def batch(**score):
    ...     zeros = np.zeros(len(score), dtype=np.int64)
    ...     ids = np.array([*score], dtype=object), np.array([""] * len(score), dtype=object)
    ...     return Scores(*ids, np.array([*score.values()]), zeros, zeros, zeros)
    >>> first, second = anchor([batch(a=-0.5, b=0.0, c=0.5), batch(b=-0.4, c=0.6, d=1.0)])
    >>> second.score.round(3).tolist()  # b and c: -0.4 -> 0 and 0.6 -> 0.5, so that x -> 0.2 + x / 2
    [0.0, 0.5, 0.7]
    """
    _check_comparable(scores_by_batch)
    reference_scores: dict[Key, float] = {}
    anchored: list[Scores] = []
    for batch_number, scores in enumerate(scores_by_batch, start=1):
        mapped = _link_batch(scores, reference_scores, batch_number) if anchored else scores
        pairs = zip(mapped.item_keys, mapped.score.tolist(), strict=True)
        reference_scores = {key: score for key, score in pairs if score == score} | reference_scores
        anchored.append(mapped)
    return anchored


def _check_comparable(scores_by_batch: Sequence[Scores]) -> None:
    for name in ("method", "scale"):
        values = {str(scores.signature.get(name)) for scores in scores_by_batch}
        if len(values) > 1:
            raise ValueError(
                f"the batches have different {name}s ({', '.join(sorted(values))}); score all of "
                f"them with one {name}"
            )


def _link_batch(scores: Scores, reference_scores: dict[Key, float], batch_number: int) -> Scores:
    reference = np.array([reference_scores.get(key, np.nan) for key in scores.item_keys])
    shared = ~np.isnan(reference) & ~np.isnan(scores.score)
    slope, offset = _mean_sigma(scores.score[shared], reference[shared], batch_number)

    def to_reference_scale(values: Floats) -> Floats:
        return offset + slope * values

    low, high = (
        None if end is None else to_reference_scale(end) for end in (scores.low, scores.high)
    )
    link = {"slope": slope, "offset": offset, "shared": int(shared.sum())}
    score = to_reference_scale(scores.score)
    return replace(
        scores,
        score=score,
        low=low,
        high=high,
        notes=[*scores.notes, *_range_notes(score, scores.signature.get("scale"))],
        signature={**scores.signature, "anchor": link},
    )


def _mean_sigma(
    batch_scores: Floats, reference_scores: Floats, batch_number: int
) -> tuple[float, float]:
    """Return slope b and offset a of mean–sigma linking: b = sd(reference) / sd(batch)."""
    if len(batch_scores) < 2 or is_constant(batch_scores) or is_constant(reference_scores):
        raise ValueError(
            f"batch {batch_number} shares {len(batch_scores)} scored items with earlier batches, with "
            f"{len(np.unique(batch_scores))} different scores in this batch and "
            f"{len(np.unique(reference_scores))} in the earlier ones; expected at least two shared items "
            "with different scores"
        )
    slope = float(reference_scores.std() / batch_scores.std())
    return slope, float(reference_scores.mean() - slope * batch_scores.mean())


def _range_notes(score: Floats, scale: object) -> list[str]:
    lowest = 0 if scale == "unit" else -1
    outside = np.count_nonzero((score < lowest) | (score > 1))
    if not outside:
        return []
    return [
        note(
            "{n:d} anchored scores are outside [{lowest:d}, 1], the range of the scale",
            n=outside,
            lowest=lowest,
        )
    ]
