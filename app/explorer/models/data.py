"""The data of the page "Models": results by name and order, and the tables behind each view.

Used by the pages "Models" and "Errors" and by the report; needs no Streamlit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.benchmark.parquet import faults_in_words, read_table
from giccs.measures.comparison import paired_shares
from giccs.measures.metrics import LOWER_IS_BETTER, Estimate
from giccs.measures.results import Result, digest, history_of

__all__ = [
    "COLUMNS",
    "DIVISIONS",
    "MEASURES",
    "METRICS",
    "NEARER",
    "NUMBERS",
    "Letters",
    "accuracies",
    "answered",
    "best_first",
    "compared",
    "dialogue_index",
    "in_cells",
    "joined",
    "key",
    "leaderboard",
    "letters",
    "metric_of",
    "names",
    "numbers_of",
    "options",
    "paired",
    "pairs_of_histories",
    "parts",
    "questions",
    "ranks",
    "read_predictions",
    "read_prompts",
    "sample",
    "side_by_side",
]

METRICS = ("spearman", "pearson", "rank_spearman")
NEARER = ("first", "second", "same")
ROUNDING = 1e-12
HISTORY_FIELDS = ("history", "template")
"""Of a pairwise signature: in what two histories differ."""
MEASURES: Mapping[str, pl.Expr] = {
    "accuracy": pl.col("logprob"),
    "accuracy_tokens": pl.col("logprob") / pl.col("tokens"),
    "accuracy_bytes": pl.col("logprob") / pl.col("bytes"),
    "accuracy_pmi": pl.col("logprob") - pl.col("logprob_alone"),
}
"""Name of an accuracy -> how likely an option is by it; as `giccs.tasks.questions.MEASURES` has it."""
QUESTION = ("history", "dialogue_id")
FEWEST_EXPECTED = 5
"""Pearson's chi-square needs so many expected of each kind (Cochran 1954, Biometrics 10)."""
DIVISIONS = ("domain", "n_turns", "source")
NUMBERS = {
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
}
COMMON_FIELDS = frozenset(["task", "model", "history", "data"])
"""What of a signature a name need not tell: it tells model and history, and the rest is the same for all."""
COLUMNS: Mapping[str, Mapping[str, type[pl.DataType]]] = {
    "pairs": {"item_id": pl.String, "prediction": pl.Float64},
    "choices": {
        "dialogue_id": pl.String,
        "utterance_id": pl.String,
        "history": pl.String,
        "order": pl.Int64,
        "letter": pl.String,
        "answer": pl.String,
        "logprob": pl.Float64,
        "tokens": pl.Int64,
        "bytes": pl.Int64,
        "chosen": pl.Boolean,
        "gold": pl.Boolean,
        "score": pl.Float64,
        "logprob_alone": pl.Float64,
    },
}
"""`ResultKind.tables` -> the columns of predictions that the views read: all but the prompts."""


def key(result: Result) -> str:
    """Return what names a result in a link: the first 12 hexadecimal digits of its signature's digest."""
    return digest(result.signature)[:12]


def names(results: Sequence[Result]) -> dict[str, str]:
    """Return a name for each result by its key: the model, and what tells it from others of the same model.

    The history stays out of it. Results that share model and history are told apart by their settings, or by
    the fields of their signatures in which they differ: ``all-minilm (dtype bfloat16)``.
    """
    twins: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        twins.setdefault((result.task, result.model, history_of(result)), []).append(result)
    return {
        key(result): f"{result.model}{_distinction(result, same)}"
        for same in twins.values()
        for result in same
    }


def _distinction(result: Result, twins: Sequence[Result]) -> str:
    fields = sorted(set().union(*(twin.signature for twin in twins)) - COMMON_FIELDS)
    settings = [str(twin.signature.get("setting", "")) for twin in twins]
    if len(set(settings)) == len(twins) > 1:
        return f" ({result.signature.get('setting', '')})"
    told = [
        f"{field} {_plain(result.signature.get(field))}"
        for field in fields
        if len({str(twin.signature.get(field)) for twin in twins}) > 1
    ]
    return f" ({', '.join(told)})" if told else ""


def _plain(value: object) -> str:
    """Return a field of a signature as words.

    >>> _plain({"name": "figure2-de-1", "sha256": "4b7d"})
    'figure2-de-1'
    """
    if isinstance(value, Mapping):
        return str(value.get("name", ", ".join(f"{name} {of}" for name, of in value.items())))
    return str(value)


def metric_of(result: Result, metric: str) -> Estimate:
    """Return a metric of a result; NaN with a reason where it has none of this name."""
    undefined = Estimate(math.nan, math.nan, math.nan, 0, "not computed")
    return result.metrics.get(metric, undefined)


def best_first(results: Sequence[Result], metric: str = METRICS[0]) -> list[Result]:
    """Return the results, best by a metric first; those without a number last."""
    return sorted(results, key=lambda result: (_best_first(result, metric), result.model))


def numbers_of(found: Estimate) -> dict[str, object]:
    """Return an estimate as cells of the columns `NUMBERS`."""
    numbers = {"value": found.value, "low": found.low, "high": found.high}
    return numbers | {"n": found.n, "reason": found.reason}


def _best_first(result: Result, metric: str) -> float:
    value = metric_of(result, metric).value
    order = value if metric in LOWER_IS_BETTER else -value
    return math.inf if math.isnan(value) else order


def read_predictions(path: str | os.PathLike[str], kind: str) -> pl.DataFrame:
    """Return the `COLUMNS` of a table of giccs-eval; InputError if it is missing, broken or another one."""
    columns = COLUMNS[kind]
    try:
        table = read_table(Path(path), list(columns))
        with faults_in_words():
            return table.select(pl.col(name).cast(kind) for name, kind in columns.items())
    except FileNotFoundError:
        message = (
            "is missing; the result beside it says how to make it again with giccs-eval --force"
        )
    except (ValueError, OSError) as error:
        message = f"holds no predictions that can be read ({error})"
    raise InputError(Problem(os.fspath(path), None, message))


def read_prompts(path: str | os.PathLike[str], dialogue_id: str) -> pl.DataFrame:
    """Return what was asked about a dialogue: history, order, prompt, prompt_alone; InputError as above."""
    wanted = ["history", "order", "prompt", "prompt_alone"]
    try:
        with faults_in_words():
            rows = pl.scan_parquet(Path(path)).filter(pl.col("dialogue_id") == dialogue_id)
            return rows.select(wanted).unique(maintain_order=True).collect()
    except (ValueError, OSError) as error:
        message = f"holds no prompts that can be read ({error})"
    raise InputError(Problem(os.fspath(path), None, message))


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


def accuracies(results: Sequence[Result], measure: str) -> pl.DataFrame:
    """Return a row a result and history, best first: model, history, value, low, high, n, reason, chance."""
    named = names(results)
    rows = [
        {
            "model": named[key(result)],
            "history": str(group.by["history"]),
            **numbers_of(group.metrics[measure]),
            "chance": group.metrics[measure].extra.get("chance", math.nan),
        }
        for result in results
        for group in result.groups
        if set(group.by) == {"history"} and measure in group.metrics
    ]
    first = {"model": pl.String, "history": pl.String}
    schema = {**first, **NUMBERS, "chance": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema)
    return frame.sort(pl.col("value").fill_nan(None), descending=True, nulls_last=True)


def options(predictions: pl.DataFrame, measure: str = "accuracy") -> pl.DataFrame:
    """Return a row an option of each question, orders averaged: what the model finds of it in the end.

    Columns history, dialogue_id, utterance_id, letter (in the first order shown), answer, likelihood (by
    the measure), logprob, tokens, bytes, gold, score and chosen: the likeliest option, the first shown of
    several. A question of which some likelihood is not a number has no option chosen (null).
    """
    by_option = (
        predictions.sort("order", maintain_order=True)
        .with_columns(likelihood=MEASURES[measure])
        .group_by(*QUESTION, "utterance_id", maintain_order=True)
        .agg(
            pl.first("letter", "answer", "gold", "score"),
            pl.mean("likelihood", "logprob", "tokens", "bytes"),
        )
        .sort(*QUESTION, "letter")
    )
    known = pl.col("likelihood").is_not_nan().all().over(QUESTION)
    best = pl.col("likelihood").arg_max().over(QUESTION) == pl.int_range(pl.len()).over(QUESTION)
    return by_option.with_columns(chosen=pl.when(known).then(best))


def answered(chosen: pl.DataFrame) -> pl.DataFrame:
    """Return a row a question: history, dialogue_id, right; null where nothing was chosen.

    chosen: what `options` returns.
    """
    right = (pl.col("chosen") & pl.col("gold")).any(ignore_nulls=False)
    return chosen.group_by(*QUESTION, maintain_order=True).agg(right=right)


def questions(chosen: pl.DataFrame) -> dict[str, dict[str, bool | None]]:
    """Return for each dialogue, under each history, whether it was answered rightly."""
    found: dict[str, dict[str, bool | None]] = {}
    for history, dialogue_id, right in answered(chosen).iter_rows():
        found.setdefault(dialogue_id, {})[history] = right
    return found


@dataclass(frozen=True)
class Letters:
    """How often each letter was chosen, and how often it was right."""

    frame: pl.DataFrame
    """letter, chosen, gold, expected; over all orders. A question with two right options counts half for
    each; expected: one by the number of options, for each question that has the letter."""
    questions: int
    p: float
    """Of Pearson's chi-square: are letters chosen alike often in the first order? NaN: see `reason`."""
    reason: str = ""
    """Why p is NaN: ``few`` questions, or ``lengths`` that differ."""


def letters(predictions: pl.DataFrame, history: str) -> Letters:
    """Count letters under a history; the order of the options was drawn at random for each question.

    The test takes each question once, in the first order, so that its answers are independent.
    """
    own = predictions.filter(pl.col("history") == history).with_columns(
        k=pl.len().over("dialogue_id", "order"),
        right=pl.col("gold") / pl.col("gold").sum().over("dialogue_id", "order"),
    )
    frame = _counts(own)
    first = _counts(own.filter(pl.col("order") == 0))
    p, reason = _test(first, own["k"].n_unique())
    return Letters(frame, own["dialogue_id"].n_unique(), p, reason)


def paired(
    first: pl.DataFrame, second: pl.DataFrame, history: str
) -> tuple[Estimate, pl.DataFrame, int]:
    """Return by how much more often the first model is right, over the questions that both answer.

    first, second: what `options` returns. Also returns a row a question that only one answers rightly
    (dialogue_id, right: ``first`` or ``second``), and how many questions are left out.
    """
    one, other = (answered(frame).filter(pl.col("history") == history) for frame in (first, second))
    both = one.join(other, on="dialogue_id", suffix="_second", maintain_order="left")
    known = both.drop_nulls(["right", "right_second"])
    estimate = paired_shares(known["right"].to_numpy(), known["right_second"].to_numpy())
    differing = known.filter(pl.col("right") != pl.col("right_second"))
    who = pl.when("right").then(pl.lit("first")).otherwise(pl.lit("second"))
    left_out = len(one) + len(other.join(one, on="dialogue_id", how="anti")) - len(known)
    return estimate, differing.select("dialogue_id", right=who), left_out


def _counts(own: pl.DataFrame) -> pl.DataFrame:
    return (
        own.group_by("letter")
        .agg(
            chosen=pl.col("chosen").sum().cast(pl.Int64),
            gold=pl.col("right").sum(),
            expected=(1 / pl.col("k")).sum(),
        )
        .sort("letter")
    )


def _test(counts: pl.DataFrame, lengths: int) -> tuple[float, str]:
    if lengths != 1:
        return math.nan, "lengths"
    if counts["expected"].min() < FEWEST_EXPECTED:  # type: ignore[operator]
        return math.nan, "few"
    from scipy.special import chdtrc

    off = (counts["chosen"] - counts["expected"]) ** 2 / counts["expected"]
    return float(chdtrc(len(counts) - 1, off.sum())), ""
