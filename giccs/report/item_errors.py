"""The items with the largest errors of a result, for any task with predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from giccs.tasks import ResultKind

if TYPE_CHECKING:
    import polars

Measure = Literal["rank_difference", "wrong", "rank"]
SET = "set"
"""Column of the data set of an item, for tasks with several."""


@dataclass(frozen=True)
class ItemErrors:
    """Items by decreasing error."""

    table: polars.DataFrame
    """The predictions, after the column ``error``."""
    measure: Measure
    """``rank_difference``: rank of the prediction minus rank of the true value in their set, both 0 for the
    lowest and 1 for the highest; positive if the model overestimates the item. ``wrong``: 1 for a wrong label
    and 0 for the right one. ``rank``: the rank of the true answer, from 1."""
    n_missing: int
    """Number of items without a prediction or a true value, which are not in the table."""


def item_errors(predictions: polars.DataFrame, kind: ResultKind) -> ItemErrors | None:
    """Return the items by decreasing absolute error, equal ones in their order; None without such columns.

    Ranks are used because predictions may be on any scale. An item alone in its set has the rank 0.5.

    >>> import polars as pl
    >>> table = pl.DataFrame({"uid": ["a", "b", "c"], "prediction": [0.1, 0.3, 0.2], "label": [1, 2, 5]})
    >>> item_errors(table, ResultKind("metrics")).table.select("uid", "error").rows()
    [('b', 0.5), ('c', -0.5), ('a', 0.0)]
    """
    import polars as pl

    predicted, true = kind.item_columns
    measure: Measure = "rank"
    columns = [predicted, *([true] if true else [])]
    if not {*columns} <= {*predictions.columns}:
        return None
    defined = predictions.filter(pl.all_horizontal(_is_defined(predictions, columns)))
    if not true:
        error = pl.col(predicted)
    elif predictions.schema[predicted].is_numeric() and predictions.schema[true].is_numeric():
        error, measure = _rank(defined, predicted) - _rank(defined, true), "rank_difference"
    else:
        error = (pl.col(predicted).cast(pl.String) != pl.col(true).cast(pl.String)).cast(pl.Int64)
        measure = "wrong"
    table = defined.select(error.alias("error"), pl.all().exclude("error")).sort(
        pl.col("error").abs(), descending=True, maintain_order=True
    )
    return ItemErrors(table, measure, len(predictions) - len(defined))


def _is_defined(predictions: polars.DataFrame, columns: Sequence[str]) -> list[polars.Expr]:
    import polars as pl

    conditions = [
        pl.col(column).is_not_nan() if predictions.schema[column].is_float() else pl.lit(True)
        for column in columns
    ]
    return conditions + [pl.col(column).is_not_null() for column in columns]


def _rank(table: polars.DataFrame, column: str) -> polars.Expr:
    """Return the rank of a column in each set, 0 for the lowest and 1 for the highest."""
    import polars as pl

    groups = [SET] if SET in table.columns else [pl.lit(0)]
    count = pl.len().over(groups)
    rank = (pl.col(column).rank().over(groups) - 1) / (count - 1)
    return pl.when(count > 1).then(rank).otherwise(0.5)
