"""Results with equal predictions: a model that was evaluated under two names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bws.base.problems import Problem
from giccs.measures.results import Result, comparison_key, data_of, history_of, model_of

if TYPE_CHECKING:
    import polars as pl

PREDICTED = ("prediction", "logprob")


def equal_predictions(results: Sequence[Result]) -> Iterator[Problem]:
    """Yield a problem for each result whose predictions are those of an earlier result of another model.

    Results are compared within task, data and history. Constant predictions are ignored.
    """
    first: dict[object, Result] = {}
    for result in results:
        predicted = None if result.predictions is None else _predicted(result.predictions)
        if predicted is None:
            continue
        digest = predicted.hash_rows().to_numpy().tobytes()
        earlier = first.setdefault((comparison_key(result), history_of(result), digest), result)
        if model_of(earlier) != model_of(result):
            yield Problem(
                data_of(result),
                None,
                f"{model_of(result)} and {model_of(earlier)} have the same predictions ({result.task}); "
                "ranks and the correction for the number of comparisons count them as two models",
            )


def _predicted(table: pl.DataFrame) -> pl.DataFrame | None:
    """Return the predictions with their ids in the order of the ids; None without varying predictions."""
    name = next((name for name in PREDICTED if name in table.columns), None)
    if name is None or table[name].n_unique() < 2:
        return None
    ids = [
        column
        for column in ("item_id", "dialogue_id", "utterance_id", "history")
        if column in table.columns
    ]
    return table.select(*ids, name).sort(ids)
