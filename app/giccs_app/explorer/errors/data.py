"""The data of the page "Errors": residuals of ranks, and wrong answers to multiple-choice questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from giccs.measures.metrics import mean_over_dialogues
from giccs_app.explorer.models.data import dialogue_index, join_predictions, ranks

DIRECTIONS = ("both", "high", "low")
"""Directions of errors: all, items that the model ranks too high, or too low."""


def residuals(items: pl.DataFrame, predictions: pl.DataFrame) -> pl.DataFrame:
    """Return the items with a prediction, sorted by decreasing absolute residual.

    Adds prediction; rank_prediction and rank_score, the fractional ranks by the model and by the scores (0
    for the least similar item, 1 for the most similar); and residual, rank_prediction - rank_score: positive
    if the model overestimates the similarity. Predictions may be on any scale.

    >>> items = pl.DataFrame({"item_id": ["a", "b", "c"], "score": [0.1, 0.5, 0.9]})
    >>> found = residuals(items, pl.DataFrame({"item_id": ["a", "b", "c"], "prediction": [7.0, 5.0, 6.0]}))
    >>> found.select("item_id", "residual").rows()
    [('a', 1.0), ('b', -0.5), ('c', -0.5)]
    """
    predicted_items = join_predictions(items, predictions)
    ranked = predicted_items.with_columns(
        rank_prediction=ranks(predicted_items["prediction"]),
        rank_score=ranks(predicted_items["score"]),
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
    """Return the errors of a direction, optionally only of some domains and numbers of turns."""
    conditions = {
        "both": pl.lit(True),
        "high": pl.col("residual") > 0,
        "low": pl.col("residual") < 0,
    }
    selected = errors.filter(conditions[direction])
    if domains:
        selected = selected.filter(pl.col("domain").is_in(list(domains)))
    return selected.filter(pl.col("n_turns").is_in(list(lengths))) if lengths else selected


def by_subset(errors: pl.DataFrame, division: str) -> pl.DataFrame:
    """Return one row per subset: part, value, low, high, n, reason, items, bias; largest value first.

    value: mean over dialogues of the mean absolute residual, with a 95 % interval over dialogues; n: number
    of dialogues. bias: mean residual over items, positive if the model ranks the items too high. Random ranks
    give a value of about 1/3.
    """
    rows = []
    for (subset,), subset_errors in errors.sort(division).group_by(division, maintain_order=True):
        index = dialogue_index(subset_errors)
        sums = np.bincount(index, subset_errors["residual"].abs().to_numpy())
        estimate = mean_over_dialogues(sums / np.bincount(index))
        rows.append(
            {
                "part": str(subset),
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
                "reason": estimate.reason,
                "items": len(subset_errors),
                "bias": subset_errors["residual"].mean(),
            }
        )
    return pl.DataFrame(rows, schema=SUBSET_SCHEMA).sort("value", descending=True)


SUBSET_SCHEMA = {
    "part": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
    "items": pl.Int64,
    "bias": pl.Float64,
}


def wrong_answers(all_options: pl.DataFrame, history: str, items: pl.DataFrame) -> pl.DataFrame:
    """Return the incorrectly answered questions, the largest margin first.

    all_options: as returned by `option_likelihoods`; items: of the benchmark. Columns: item_id (of the chosen
    utterance), dialogue_id, last_turn, chosen and right (the utterances), score_chosen, score_right and
    margin (likelihood of the chosen option minus that of the most likely gold option, in the units of the
    measure).
    """
    texts = items.select("item_id", "dialogue_id", "utterance_id", "utterance", "last_turn")
    choices = all_options.filter(pl.col("history") == history).join(
        texts, on=["dialogue_id", "utterance_id"], maintain_order="left"
    )
    chosen_options, gold = (
        choices.filter("chosen"),
        choices.filter("gold").sort("likelihood", descending=True),
    )
    best = gold.unique("dialogue_id", keep="first", maintain_order=True)
    mistakes = chosen_options.filter(~pl.col("gold")).join(best, on="dialogue_id", suffix="_gold")
    return mistakes.select(
        "item_id",
        "dialogue_id",
        "last_turn",
        chosen=pl.col("utterance"),
        score_chosen=pl.col("score"),
        right=pl.col("utterance_gold"),
        score_right=pl.col("score_gold"),
        margin=pl.col("likelihood") - pl.col("likelihood_gold"),
    ).sort("margin", descending=True)
