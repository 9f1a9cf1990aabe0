"""The data of the views of pairwise STS: metrics, parts of the data, histories, two models compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from app.explorer.models.results import (
    NUMBERS,
    best_first,
    key,
    metric_of,
    names,
    numbers_of,
)
from giccs.measures.metrics import Estimate
from giccs.measures.results import Result, digest, history_of

__all__ = [
    "NEARER",
    "compared",
    "dialogue_index",
    "in_cells",
    "joined",
    "leaderboard",
    "pairs_of_histories",
    "parts",
    "ranks",
    "sample",
    "side_by_side",
]

NEARER = ("first", "second", "same")
ROUNDING = 1e-12
HISTORY_FIELDS = ("history", "template")
"""Of a pairwise signature: in what two histories differ."""


def leaderboard(results: Sequence[Result], metric: str) -> pl.DataFrame:
    """Return a row a result, best first: model, history, baseline, value, low, high, n, reason, key."""
    named = names(results)
    rows = [
        {
            "model": named[key(result)],
            "history": history_of(result),
            "baseline": result.model.startswith("baseline:"),
            **numbers_of(metric_of(result, metric)),
            "key": key(result),
        }
        for result in best_first(results, metric)
    ]
    first = {"model": pl.String, "history": pl.String, "baseline": pl.Boolean}
    return pl.DataFrame(rows, schema={**first, **NUMBERS, "key": pl.String})


def parts(results: Sequence[Result], metric: str, division: str) -> pl.DataFrame:
    """Return a row a part of the data and result: part, history, value, low, high, n, reason.

    Only divisions that tell the items apart are in a result; the frame is empty for others.
    """
    rows = [
        {
            "part": str(group.by[division]),
            "history": history_of(result),
            **numbers_of(group.metrics[metric]),
        }
        for result in results
        for group in result.groups
        if set(group.by) == {division} and metric in group.metrics
    ]
    return pl.DataFrame(rows, schema={"part": pl.String, "history": pl.String, **NUMBERS})


def pairs_of_histories(results: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Return (with, without) of each model that was asked both ways, all else being the same."""
    pairs: dict[str, dict[str, Result]] = {}
    for result in results:
        same = {field: of for field, of in result.signature.items() if field not in HISTORY_FIELDS}
        pairs.setdefault(digest(same), {})[history_of(result)] = result
    return [(pair["with"], pair["without"]) for pair in pairs.values() if len(pair) == 2]


def side_by_side(
    pairs: Sequence[tuple[Result, Result]],
    metric: str,
    differences: Sequence[Mapping[str, Estimate]],
) -> pl.DataFrame:
    """Return a row a model: with, without, and the difference as value, low, high, n, reason.

    differences: of each pair, as `giccs.measures.comparison.paired_correlations` returns them; where one is
    empty, its value is the difference of the two stored ones, without an interval.
    """
    named = names([one for pair in pairs for one in pair])
    rows = [
        {
            "model": named[key(first)],
            "with": metric_of(first, metric).value,
            "without": metric_of(second, metric).value,
            **numbers_of(difference.get(metric) or _plain_difference(first, second, metric)),
        }
        for (first, second), difference in zip(pairs, differences, strict=True)
    ]
    columns = {"model": pl.String, "with": pl.Float64, "without": pl.Float64}
    return pl.DataFrame(rows, schema={**columns, **NUMBERS})


def joined(
    items: pl.DataFrame, predictions: pl.DataFrame, name: str = "prediction"
) -> pl.DataFrame:
    """Return the items that have a prediction, with it, by item_id; a NaN is none.

    >>> items = pl.DataFrame({"item_id": ["a", "b"], "score": [0.0, 1.0]})
    >>> joined(items, pl.DataFrame({"item_id": ["b", "c"], "prediction": [0.5, 0.7]})).rows()
    [('b', 1.0, 0.5)]
    """
    found = predictions.select("item_id", pl.col("prediction").cast(pl.Float64).alias(name))
    return items.join(found.filter(pl.col(name).is_finite()), on="item_id", maintain_order="left")


def ranks(values: pl.Series) -> pl.Series:
    """Return fractional ranks: the share of the other values that lie below, ties at their mean; 0.5 alone.

    >>> ranks(pl.Series([0.2, 0.9, 0.9, 0.3])).round(3).to_list()
    [0.0, 0.833, 0.833, 0.333]
    """
    return (values.rank() - 1) / (len(values) - 1) if len(values) > 1 else values * 0.0 + 0.5


def dialogue_index(frame: pl.DataFrame) -> NDArray[np.intp]:
    """Return (N,) the index of each item's dialogue, 0 … D-1.

    >>> dialogue_index(pl.DataFrame({"dialogue_id": ["b", "a", "b"]})).tolist()
    [1, 0, 1]
    """
    return (frame["dialogue_id"].rank("dense") - 1).to_numpy().astype(np.intp)


def compared(items: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Return the items that both models predict, those on which they differ most first.

    Adds first, second: the predictions; rank_first, rank_second, rank_score: their fractional ranks and the
    scores'; difference: rank_first - rank_second; nearer: whose rank is nearer to the score's, ``first``,
    ``second``, or ``same``. Models that predict on different scales are comparable so.
    """
    both = joined(joined(items, first, "first"), second, "second")
    ranked = both.with_columns(
        ranks(both[column]).alias(f"rank_{column}") for column in ("first", "second", "score")
    )
    off = {
        name: (pl.col(f"rank_{name}") - pl.col("rank_score")).abs() for name in ("first", "second")
    }
    nearer = (
        pl.when(off["first"] < off["second"] - ROUNDING)
        .then(pl.lit("first"))
        .when(off["second"] < off["first"] - ROUNDING)
        .then(pl.lit("second"))
        .otherwise(pl.lit("same"))
    )
    return ranked.with_columns(
        difference=pl.col("rank_first") - pl.col("rank_second"), nearer=nearer
    ).sort(pl.col("difference").abs(), descending=True, maintain_order=True)


def in_cells(frame: pl.DataFrame, x: str, y: str, cells: int = 40) -> pl.DataFrame:
    """Return how many items lie in each cell of a grid over `x` and `y`; empty cells are left out.

    Columns x, x_to, y, y_to (named after the two) and items. The cells are of one size, from the least
    value to the greatest, which the last cell includes.

    >>> in_cells(pl.DataFrame({"a": [0.0, 0.1, 1.0], "b": [0.0, 0.2, 4.0]}), "a", "b", cells=2).rows()
    [(0.0, 0.5, 0.0, 2.0, 2), (0.5, 1.0, 2.0, 4.0, 1)]
    """
    grid = {axis: _edges(frame[axis], cells) for axis in (x, y)}
    place = [
        ((pl.col(axis) - low) / width).floor().clip(0, cells - 1).cast(pl.Int64).alias(axis)
        for axis, (low, width) in grid.items()
    ]
    counts = frame.select(place).group_by(x, y).agg(pl.len().alias("items")).sort(x, y)
    edges = [
        (low + (pl.col(axis) + step) * width).alias(f"{axis}{suffix}")
        for axis, (low, width) in grid.items()
        for step, suffix in ((0, ""), (1, "_to"))
    ]
    return counts.select(*edges, "items")


def sample(frame: pl.DataFrame, most: int, seed: int = 0) -> pl.DataFrame:
    """Return at most so many rows, drawn at random, in their order."""
    if len(frame) <= most:
        return frame
    drawn = np.random.default_rng(seed).choice(len(frame), size=most, replace=False)
    return frame[np.sort(drawn)]


def _edges(values: pl.Series, cells: int) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    return (low, (high - low) / cells) if high > low else (low - 0.5, 1 / cells)


def _plain_difference(first: Result, second: Result, metric: str) -> Estimate:
    value = metric_of(first, metric).value - metric_of(second, metric).value
    return Estimate(
        value, math.nan, math.nan, metric_of(first, metric).n, "not resampled: no interval"
    )
