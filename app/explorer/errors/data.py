"""The data behind the page "Errors": residuals of ranks, and wrong answers to multiple-choice questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from app.explorer.models.data import dialogue_index, joined, ranks
from giccs.measures.metrics import mean_over_dialogues

__all__ = ["DIRECTIONS", "by_part", "largest", "residuals", "wrong"]

DIRECTIONS = ("both", "high", "low")
"""Errors to be shown: all, items that the model ranks too high, or too low."""


def residuals(items: pl.DataFrame, predictions: pl.DataFrame) -> pl.DataFrame:
    """Return the items that have a prediction, the largest error first.

    Adds prediction; rank_prediction and rank_score, each item's fractional rank by the model and by the
    scores (0 the least similar item, 1 the most); and residual, the first less the second: positive where
    the model finds an item more similar than people did. Predictions need no scale of their own for it.

    >>> items = pl.DataFrame({"item_id": ["a", "b", "c"], "score": [0.1, 0.5, 0.9]})
    >>> found = residuals(items, pl.DataFrame({"item_id": ["a", "b", "c"], "prediction": [7.0, 5.0, 6.0]}))
    >>> found.select("item_id", "residual").rows()
    [('a', 1.0), ('b', -0.5), ('c', -0.5)]
    """
    known = joined(items, predictions)
    ranked = known.with_columns(
        rank_prediction=ranks(known["prediction"]), rank_score=ranks(known["score"])
    )
    return ranked.with_columns(residual=pl.col("rank_prediction") - pl.col("rank_score")).sort(
        pl.col("residual").abs(), descending=True, maintain_order=True
    )


def largest(
    errors: pl.DataFrame,
    direction: str = "both",
    domains: Sequence[str] = (),
    lengths: Sequence[int] = (),
) -> pl.DataFrame:
    """Return the errors of a direction, of some domains and lengths only where any are given."""
    kept = {"both": pl.lit(True), "high": pl.col("residual") > 0, "low": pl.col("residual") < 0}
    found = errors.filter(kept[direction])
    if domains:
        found = found.filter(pl.col("domain").is_in(list(domains)))
    return found.filter(pl.col("n_turns").is_in(list(lengths))) if lengths else found


def by_part(errors: pl.DataFrame, division: str, resamples: int = 1000) -> pl.DataFrame:
    """Return a row a part of the data: part, value, low, high, n, reason, items, bias; largest value first.

    value: the mean over the part's dialogues of their mean absolute residual, with its 95 % interval from
    resampled dialogues; n: dialogues. bias: the mean residual over items, positive where the model ranks
    the part's items too high. Ranks at random, as chance has, would give a value of about 1/3.
    """
    rows = []
    for (part,), own in errors.sort(division).group_by(division, maintain_order=True):
        index = dialogue_index(own)
        sums = np.bincount(index, own["residual"].abs().to_numpy())
        found = mean_over_dialogues(sums / np.bincount(index), resamples=resamples)
        rows.append(
            {
                "part": str(part),
                "value": found.value,
                "low": found.low,
                "high": found.high,
                "n": found.n,
                "reason": found.reason,
                "items": len(own),
                "bias": own["residual"].mean(),
            }
        )
    return pl.DataFrame(rows, schema=BY_PART).sort("value", descending=True)


BY_PART = {
    "part": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
    "items": pl.Int64,
    "bias": pl.Float64,
}


def wrong(chosen: pl.DataFrame, history: str, items: pl.DataFrame) -> pl.DataFrame:
    """Return the wrongly answered questions, the surest mistake first.

    chosen: what `data.options` returns; items: of the benchmark. Columns dialogue_id,
    last_turn, chosen and right (the utterances), score_chosen, score_right and margin: how much likelier the
    model finds the option that it chose than the likeliest right one, in the units of the measure.
    """
    texts = items.select("dialogue_id", "utterance_id", "utterance", "last_turn")
    own = chosen.filter(pl.col("history") == history).join(
        texts, on=["dialogue_id", "utterance_id"], maintain_order="left"
    )
    picked, gold = own.filter("chosen"), own.filter("gold").sort("likelihood", descending=True)
    best = gold.unique("dialogue_id", keep="first", maintain_order=True)
    both = picked.filter(~pl.col("gold")).join(best, on="dialogue_id", suffix="_gold")
    return both.select(
        "dialogue_id",
        "last_turn",
        chosen=pl.col("utterance"),
        score_chosen=pl.col("score"),
        right=pl.col("utterance_gold"),
        score_right=pl.col("score_gold"),
        margin=pl.col("likelihood") - pl.col("likelihood_gold"),
    ).sort("margin", descending=True)
