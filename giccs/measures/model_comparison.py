"""Which models differ? All pairs of results of one task on the same items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bws.clusters import MIN_CLUSTERS
from giccs.measures.all_pairs import accuracy_pairs, spearman_pairs, within_dialogue_pairs
from giccs.measures.leaderboard import (
    Leaderboard,
    ModelComparison,
    PairDifference,
    RankedModel,
    SkippedResult,
)
from giccs.measures.metrics import Estimate
from giccs.measures.multiplicity import rank_intervals
from giccs.measures.result_labels import asked, data_of, history_of, is_choice, model_of, prompt_of
from giccs.measures.results import Result, digest

__all__ = ["METRICS", "TARGET", "compare", "significantly_better"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

TARGET = 0.02
"""Difference for which dialogues are planned."""

PairsOf = Callable[[Floats, Floats, Ints, float], list[PairDifference]]
METRICS: Mapping[str, Mapping[str, PairsOf]] = {
    "pairwise-sts": {"spearman": spearman_pairs, "rank_spearman": within_dialogue_pairs},
    "multiple-choice-sts": {"accuracy": accuracy_pairs},
}
"""Task -> the metrics by which its models are compared."""


def compare(results: Sequence[Result], *, target: float = TARGET) -> ModelComparison:
    """Compare all pairs of results of one task on the same items (data of the same fingerprint).

    results: with their predictions. Pairwise STS is compared by Spearman's rho over all items and by the
    mean rho within dialogues; multiple choice by accuracy, each history as a row of its own. target:
    difference for which the number of dialogues is planned.

    >>> from giccs.benchmark import read_benchmark
    >>> from giccs.models import open_model
    >>> from giccs.tasks.pairwise import PairwiseSTS
    >>> data, task = read_benchmark("giccs-sample"), PairwiseSTS(resamples=10)
    >>> results = [task.evaluate(open_model(f"baseline:{name}"), data) for name in ("chance", "char-ngram")]
    >>> board = compare(results).leaderboards[0]
    >>> board.metric, [(model.model, model.rank_low, model.rank_high) for model in board.models]
    ('spearman', [('baseline:char-ngram', 1, 1), ('baseline:chance', 2, 2)])
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault(asked(result), []).append(result)
    leaderboards: list[Leaderboard] = []
    skipped: list[SkippedResult] = []
    for (task, _), group in groups.items():
        rows, unusable = _usable_rows(group)
        skipped += unusable
        if reason := _too_few(rows):
            skipped += [_skipped(row.result, reason, row.history) for row in rows]
            continue
        for metric, pairs_of in METRICS.get(task, {}).items():
            defined = [row for row in rows if not math.isnan(row.metrics[metric].value)]
            rest = [row for row in rows if math.isnan(row.metrics[metric].value)]
            skipped += [
                _skipped(row.result, row.metrics[metric].reason, row.history, metric)
                for row in rest
            ]
            if reason := _too_few(defined):
                skipped += [_skipped(row.result, reason, row.history, metric) for row in defined]
            else:
                leaderboards.append(_leaderboard(defined, metric, pairs_of, target))
    return ModelComparison(tuple(leaderboards), tuple(skipped))


@dataclass(frozen=True, eq=False)
class _Row:
    """A result, of multiple choice under one history, as arrays over items in the order of their ids."""

    result: Result
    history: str
    metrics: Mapping[str, Estimate]
    ids: tuple[str, ...]
    """Of items; of multiple choice, of dialogues."""
    dialogue: Ints
    """Index of each item's dialogue, 0 … D-1."""
    values: Floats
    """Predictions; of multiple choice, 1 for a correct answer and 0 for another."""
    score: Floats
    """Of the items; of multiple choice, the highest of the options."""


def _usable_rows(results: Sequence[Result]) -> tuple[list[_Row], list[SkippedResult]]:
    """Return the rows of results of one task and content, and the results that have none."""
    rows: list[_Row] = []
    skipped: list[SkippedResult] = []
    for result in results:
        if reason := _why_unusable(result):
            skipped.append(_skipped(result, reason))
            continue
        new = [*_choice_rows(result)] if is_choice(result) else [_pairwise_row(result)]
        first = rows[0] if rows else new[0]
        if all(row.ids == first.ids and np.array_equal(row.score, first.score) for row in new):
            rows += new
        else:
            reason = f"its predictions are of other items than those of {model_of(first.result)}"
            skipped.append(_skipped(result, reason))
    return rows, skipped


def _why_unusable(result: Result) -> str:
    if result.task not in METRICS:
        return f"only results of {' and '.join(METRICS)} are compared"
    if result.predictions is None:
        return "its predictions are missing"
    if "dialogue_id" not in result.predictions.columns:
        remedy = "compute it again with giccs-eval --force"
        return (
            f"its predictions have no column dialogue_id (written by an earlier version): {remedy}"
        )
    return ""


def _too_few(rows: Sequence[_Row]) -> str:
    """Return why rows cannot be compared; empty where there are none."""
    if len(rows) == 1:
        return "there is no other result of this task on the same items"
    dialogues = int(rows[0].dialogue.max()) + 1 if rows else MIN_CLUSTERS
    if dialogues < MIN_CLUSTERS:
        return f"{dialogues} dialogues: a comparison needs {MIN_CLUSTERS}"
    return ""


def _skipped(result: Result, reason: str, history: str = "", metric: str = "") -> SkippedResult:
    task, content = asked(result)
    history = history or history_of(result)
    return SkippedResult(model_of(result), history, task, data_of(result), content, metric, reason)


def _pairwise_row(result: Result) -> _Row:
    assert result.predictions is not None
    table = result.predictions.sort("item_id")
    return _Row(
        result,
        history_of(result),
        result.metrics,
        tuple(table["item_id"]),
        (table["dialogue_id"].rank("dense") - 1).to_numpy().astype(np.intp),
        table["prediction"].to_numpy().astype(np.float64),
        table["score"].to_numpy().astype(np.float64),
    )


def _choice_rows(result: Result) -> Iterator[_Row]:
    """Yield a row per history.

    The chosen option has the highest log-likelihood on average over the orders; of several it is the one
    that is shown first, as in the metrics.
    """
    import polars as pl

    assert result.predictions is not None
    options = result.predictions.group_by(
        ["history", "dialogue_id", "utterance_id"], maintain_order=True
    ).agg(pl.col("logprob").mean(), pl.col("gold", "score").first())
    for group in result.groups:
        if set(group.by) != {"history"}:
            continue
        own = options.filter(pl.col("history") == group.by["history"])
        questions = own.sort("dialogue_id", maintain_order=True).partition_by("dialogue_id")
        correct = [q["gold"][int(np.argmax(q["logprob"].to_numpy()))] for q in questions]
        yield _Row(
            result,
            str(group.by["history"]),
            group.metrics,
            tuple(question["dialogue_id"][0] for question in questions),
            np.arange(len(questions)),
            np.array(correct, dtype=np.float64),
            np.array([question["score"].max() for question in questions], dtype=np.float64),
        )


def _leaderboard(
    rows: Sequence[_Row], metric: str, pairs_of: PairsOf, target: float
) -> Leaderboard:
    ordered = sorted(rows, key=lambda row: (-row.metrics[metric].value, *_label(row)))
    first = ordered[0]
    pairs = pairs_of(np.stack([row.values for row in ordered]), first.score, first.dialogue, target)
    better = significantly_better(pairs, len(rows))
    low, high = rank_intervals(better)
    models = tuple(
        RankedModel(*label, row.metrics[metric], int(low[i]), int(high[i]), not better[0, i])
        for i, (label, row) in enumerate(zip(_unique_labels(ordered), ordered, strict=True))
    )
    task, content = asked(first.result)
    dialogues = int(first.dialogue.max()) + 1
    return Leaderboard(
        task, data_of(first.result), content, metric, len(first.ids), dialogues, target, models, tuple(pairs),
    )  # fmt: skip


def significantly_better(pairs: Sequence[PairDifference], n_models: int) -> NDArray[np.bool_]:
    """Return (M, M): whether the model of the row is significantly better than that of the column."""
    better = np.zeros((n_models, n_models), dtype=bool)
    for pair in pairs:
        if pair.is_significant:
            first_is_better = pair.value > 0
            better[pair.first, pair.second] = first_is_better
            better[pair.second, pair.first] = not first_is_better
    return better


def _label(row: _Row) -> tuple[str, str]:
    name = model_of(row.result)
    return (f"{name} ({prompt_of(row.result)})" if is_choice(row.result) else name), row.history


def _unique_labels(rows: Sequence[_Row]) -> list[tuple[str, str]]:
    """Return (model, history) per row; equal ones with the first digits of their signature's digest."""
    labels = [_label(row) for row in rows]
    return [
        (f"{model} #{digest(row.result.signature)[:6]}", history)
        if labels.count((model, history)) > 1
        else (model, history)
        for (model, history), row in zip(labels, rows, strict=True)
    ]
