"""The options that a model chose in multiple-choice questions, from its predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from giccs.measures.results import Result

if TYPE_CHECKING:
    import polars

__all__ = ["chosen_options"]


def chosen_options(result: Result, history: str) -> Iterator[polars.DataFrame]:
    """Yield the options of each question, in display order, sorted by dialogue.

    Columns: dialogue_id, utterance_id, gold, score, and ``chosen``, the share of the orders in which the
    option was chosen. Without generated answers it is 1 for the option with the highest mean log-likelihood
    over the orders; ties are resolved in display order, as in the metrics.
    """
    import polars as pl

    assert result.predictions is not None
    is_generated = "outcome" in result.predictions
    options = (
        result.predictions.filter(pl.col("history") == history)
        .group_by(["dialogue_id", "utterance_id"], maintain_order=True)
        .agg(pl.mean("chosen" if is_generated else "logprob"), pl.col("gold", "score").first())
        .sort("dialogue_id", maintain_order=True)
    )
    for question in options.partition_by("dialogue_id", maintain_order=True):
        if is_generated:
            yield question
            continue
        choice = int(np.argmax(question["logprob"].to_numpy()))
        chosen = pl.Series("chosen", np.arange(len(question)) == choice).cast(pl.Float64)
        yield question.with_columns(chosen)
