"""Results of models and their predictions: names, order, metrics, and what is read of each table.

Used for every kind of task, by the pages "Models" and "Errors" and by the report.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from bws.problems import InputError, Problem
from giccs.benchmark.parquet import faults_in_words, read_table
from giccs.measures.metrics import LOWER_IS_BETTER, Estimate
from giccs.measures.results import Result, digest, history_of

__all__ = [
    "COLUMNS",
    "DIVISIONS",
    "METRICS",
    "NUMBERS",
    "best_first",
    "key",
    "metric_of",
    "names",
    "numbers_of",
    "read_predictions",
    "read_prompts",
]

METRICS = ("spearman", "pearson", "rank_spearman")
DIVISIONS = ("domain", "n_turns", "source")
NUMBERS = {
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
}
UNTOLD = frozenset(["task", "model", "history", "data"])
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
        key(result): f"{result.model}{_apart(result, same)}"
        for same in twins.values()
        for result in same
    }


def _apart(result: Result, twins: Sequence[Result]) -> str:
    fields = sorted(set().union(*(twin.signature for twin in twins)) - UNTOLD)
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
