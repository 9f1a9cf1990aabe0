"""Scores of several batches on the scale of the first, through the items that they share.

A score says how an item fares against the items of its own batch, so that scores of batches with
different items do not compare. Items that stand in both batches link them: mean–sigma linking
(Marco 1977) maps a batch by x -> a + b x so that the shared items get the mean and the standard
deviation that they have on the scale of the first batch. Unlike a regression it is symmetrical:
noise in the shared items' scores does not shrink the slope.

Where all judgments are at hand, scoring them together by a choice model is better still: then every
comparison links, not only the shared items' scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bws.records import Scores
from bws.scoring.methods import Floats

__all__ = ["anchor"]

Key = tuple[str, str]


def anchor(scores_by_batch: Sequence[Scores]) -> list[Scores]:
    """Map the scores (and intervals) of all batches to the scale of the first.

    Items are the same where group id and item id are. The batches are taken in order; each is
    linked by all items that it shares with those before it, an item counting with its score in
    the first batch that has it. Mapped scores can lie outside [-1, 1] (or [0, 1]); a note says how
    many do. They are not clipped, which would bend the scale.

    Raises ValueError where a batch has fewer than two scored items in common with those before it,
    or where the shared items all score the same in one of the two; and where the batches were
    scored by different methods or on different scales.

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
        pairs = zip(_keys(mapped), mapped.score.tolist(), strict=True)
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


def _keys(scores: Scores) -> list[Key]:
    return list(zip(scores.groups.tolist(), scores.items.tolist(), strict=True))


def _link_batch(scores: Scores, reference_scores: dict[Key, float], batch_number: int) -> Scores:
    reference = np.array([reference_scores.get(key, np.nan) for key in _keys(scores)])
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
    """Return slope b and offset a of mean–sigma linking: b = sd(there) / sd(here)."""
    if len(batch_scores) < 2 or not np.ptp(batch_scores) > 0 or not np.ptp(reference_scores) > 0:
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
    return [f"{outside} anchored scores lie outside [{lowest}, 1], the scale of the first batch"]
