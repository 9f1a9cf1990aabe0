"""Comparison of all pairs of results of one task on the same items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.clusters import MIN_CLUSTERS
from giccs.measures.all_pairs import (
    PairDifference,
    accuracy_pairs,
    rank_intervals,
    significantly_better,
    spearman_pairs,
    within_dialogue_pairs,
)
from giccs.measures.detectable import ALPHA, POWER
from giccs.measures.metrics import Estimate
from giccs.measures.results import (
    Result,
    comparison_key,
    data_of,
    digest,
    history_of,
    model_of,
    prompt_of,
)
from giccs.report.chosen_options import chosen_options
from giccs.tasks import TASKS, result_kind

__all__ = [
    "TARGET_DIFFERENCE",
    "Leaderboard",
    "ModelComparison",
    "RankedModel",
    "SkippedResult",
    "compare",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

TARGET_DIFFERENCE = 0.02
"""Difference for planning the number of dialogues."""

PairTests = Callable[[Floats, Floats, Ints, float], list[PairDifference]]
TESTS: Mapping[str, PairTests] = {
    "spearman": spearman_pairs,
    "rank_spearman": within_dialogue_pairs,
    "accuracy": accuracy_pairs,
}
"""Metric -> tests of all pairs of models; `giccs.tasks.ResultKind` lists the metrics of a task."""


@dataclass(frozen=True)
class RankedModel:
    """A row of a leaderboard."""

    model: str
    """Unique within the leaderboard together with `history`."""
    history: str
    estimate: Estimate
    """The metric in the stored result."""
    rank_low: int
    rank_high: int
    """Lowest and highest rank consistent with all pairwise decisions; 1 is the best."""
    ties_first: bool
    """Whether the first model is not significantly better; True for the first itself."""
    key: str = ""
    """First 12 hexadecimal digits of the digest of the result's signature."""

    def document(self) -> dict[str, Any]:
        """Return the row as a dict."""
        ranks = {"rank_low": self.rank_low, "rank_high": self.rank_high}
        model = {"model": self.model, "history": self.history}
        return model | self.estimate.document() | ranks | {"ties_first": self.ties_first}


@dataclass(frozen=True)
class Leaderboard:
    """The models of one task, data set and metric, best first, and all their pairs."""

    task: str
    data: str
    content: str
    """Fingerprint of the data: equal values mean the same items."""
    metric: str
    items: int
    """Number of items; for multiple choice, of questions."""
    dialogues: int
    target: float
    """Difference for `PairDifference.needed`."""
    models: tuple[RankedModel, ...]
    pairs: tuple[PairDifference, ...]

    @property
    def tied(self) -> frozenset[int]:
        """Indices of the rows that are equal to the first or, by a test, not significantly different."""
        return frozenset(
            pair.second
            for pair in self.pairs
            if pair.first == 0
            and not pair.is_significant
            and (not math.isnan(pair.p) or pair.value == 0)
        )

    def pair(self, first: int, second: int) -> PairDifference:
        """Return the pair of two rows, by their indices; `first` is the smaller index."""
        return next(pair for pair in self.pairs if (pair.first, pair.second) == (first, second))

    def document(self) -> dict[str, Any]:
        """Return the leaderboard as a dict; pairs name rows by index."""
        field_names = ("task", "data", "content", "metric", "items", "dialogues", "target")
        return {
            **{name: getattr(self, name) for name in field_names},
            "power": POWER,
            "alpha": ALPHA,
            "models": [model.document() for model in self.models],
            "pairs": [asdict(pair) for pair in self.pairs],
            "notes": self.notes(),
        }

    def notes(self) -> list[str]:
        """Return notes on the tests, their power, and undefined values."""
        return [*self._test_notes(), *self._power_notes(), *self._reason_notes()]

    def _test_notes(self) -> Iterator[str]:
        test = (
            "exact McNemar test and Agresti–Min interval"
            if self.metric == "accuracy"
            else "paired t-test over dialogues with the jackknife standard error"
        )
        n_tested = sum(not math.isnan(pair.p) for pair in self.pairs)
        yield f"Difference, p: {test}. Holm, BH: p adjusted for the pairs of this table ({n_tested})."
        yield (
            "†: not significantly different from the best model (Holm, 5 %). ranks: consistent with all "
            "pairwise decisions, with 95 % confidence for all models together."
        )

    def _power_notes(self) -> Iterator[str]:
        condition = f"power {POWER}, two-sided level {ALPHA}, one planned pair"
        if detectable := _defined(pair.detectable for pair in self.pairs):
            yield f"Minimum detectable difference ({condition}): {_range(detectable, '.3f')}."
        needed = _defined(pair.needed for pair in self.pairs)
        needed_all_pairs = _defined(pair.needed_all_pairs for pair in self.pairs)
        if needed:
            all_pairs_text = (
                f"; for all pairs at once (Bonferroni): {_range(needed_all_pairs, ',.0f')}"
            )
            yield (
                f"Dialogues to detect a difference of {self.target:g} ({condition}): "
                f"{_range(needed, ',.0f')}"
                f"{all_pairs_text if needed_all_pairs and len(self.pairs) > 1 else ''}."
            )

    def _reason_notes(self) -> Iterator[str]:
        pairs: dict[str, list[str]] = {}
        for pair in self.pairs:
            if pair.reason:
                pairs.setdefault(pair.reason, []).append(f"{pair.first + 1}–{pair.second + 1}")
        yield from (f"{', '.join(labels)}: {reason}." for reason, labels in pairs.items())


@dataclass(frozen=True)
class SkippedResult:
    """A result that is not compared, with the reason."""

    model: str
    history: str
    task: str
    data: str
    content: str
    metric: str
    """The metric concerned; empty for all."""
    reason: str

    def __str__(self) -> str:
        by = f" by {self.metric}" if self.metric else ""
        history = f" ({self.history} history)" if self.history else ""
        return (
            f"Not compared{by}: {self.model}{history}, {self.task} on {self.data}: {self.reason}."
        )


@dataclass(frozen=True)
class ModelComparison:
    """All leaderboards of some results."""

    leaderboards: tuple[Leaderboard, ...]
    skipped: tuple[SkippedResult, ...]

    def document(self) -> dict[str, Any]:
        """Return the comparison as a dict."""
        return {
            "comparisons": [leaderboard.document() for leaderboard in self.leaderboards],
            "skipped": [asdict(result) for result in self.skipped],
        }


def _defined(numbers: Iterator[float]) -> list[float]:
    return [number for number in numbers if not math.isnan(number)]


def _range(numbers: list[float], format_spec: str) -> str:
    """Return minimum, maximum and median of the numbers, or a single number if all are equal.

    >>> _range([0.25, 0.5, 0.125], ".2f"), _range([2.0], ".2f")
    ('0.12 to 0.50 (median 0.25)', '2.00')
    """
    least, greatest = format(min(numbers), format_spec), format(max(numbers), format_spec)
    return (
        least
        if least == greatest
        else f"{least} to {greatest} (median {median(numbers):{format_spec}})"
    )


def compare(results: Sequence[Result], *, target: float = TARGET_DIFFERENCE) -> ModelComparison:
    """Compare all pairs of results of one task on the same items (data with the same fingerprint).

    results: with their predictions. Pairwise STS is compared by Spearman's rho over all items and by the mean
    within-dialogue rho; multiple choice by accuracy, with one row per history. target: difference for
    planning the number of dialogues.

    >>> from giccs.benchmark import read_benchmark
    >>> from giccs.models import open_model
    >>> from giccs.evaluation.task_results import evaluate_task
    >>> from giccs.tasks.pairwise import PairwiseSTS
    >>> data = read_benchmark("giccs-sample")
    >>> models = map(open_model, ("baseline:chance", "baseline:char-ngram"))
    >>> results = [evaluate_task(PairwiseSTS(resamples=10), model, data) for model in models]
    >>> board = compare(results).leaderboards[0]
    >>> board.metric, [(model.model, model.rank_low, model.rank_high) for model in board.models]
    ('spearman', [('baseline:char-ngram', 1, 1), ('baseline:chance', 2, 2)])
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault(comparison_key(result), []).append(result)
    leaderboards: list[Leaderboard] = []
    skipped: list[SkippedResult] = []
    for (task, _), group in groups.items():
        rows, unusable = _usable_rows(group)
        skipped += unusable
        if reason := _too_few_reason(rows):
            skipped += [_skipped(row.result, reason, row.history) for row in rows]
            continue
        for metric in result_kind(task).comparison_metrics:
            defined = [row for row in rows if not math.isnan(row.metrics[metric].value)]
            undefined = [row for row in rows if math.isnan(row.metrics[metric].value)]
            skipped += [
                _skipped(row.result, row.metrics[metric].reason, row.history, metric)
                for row in undefined
            ]
            if reason := _too_few_reason(defined):
                skipped += [_skipped(row.result, reason, row.history, metric) for row in defined]
            elif defined:
                leaderboards.append(_leaderboard(defined, metric, target))
    return ModelComparison(tuple(leaderboards), tuple(skipped))


@dataclass(frozen=True, eq=False)
class _Row:
    """A result as arrays over items sorted by id; for multiple choice, under one history."""

    result: Result
    history: str
    metrics: Mapping[str, Estimate]
    ids: tuple[str, ...]
    """Ids of the items; for multiple choice, of the dialogues."""
    dialogue: Ints
    """Index of each item's dialogue, 0 … D-1."""
    values: Floats
    """Predictions; for multiple choice, 1 for a correct answer and 0 for another."""
    score: Floats
    """Scores of the items; for multiple choice, the highest of the options."""


def _usable_rows(results: Sequence[Result]) -> tuple[list[_Row], list[SkippedResult]]:
    """Return the rows of results of one task and content, and the skipped results."""
    rows: list[_Row] = []
    skipped: list[SkippedResult] = []
    for result in results:
        if reason := _unusable_reason(result):
            skipped.append(_skipped(result, reason))
            continue
        result_rows = [*_rows(result)]
        first = rows[0] if rows else result_rows[0]
        if all(
            row.ids == first.ids and np.array_equal(row.score, first.score) for row in result_rows
        ):
            rows += result_rows
        else:
            reason = f"the items of its predictions differ from those of {model_of(first.result)}"
            skipped.append(_skipped(result, reason))
    return rows, skipped


def _unusable_reason(result: Result) -> str:
    if not result_kind(result.task).comparison_metrics:
        compared = [task for task in TASKS if result_kind(task).comparison_metrics]
        return f"only results of {' and '.join(compared)} are compared"
    if result.predictions is None:
        return "its predictions are missing"
    if "dialogue_id" not in result.predictions.columns:
        remedy = "compute it again with giccs-eval --force"
        return f"its predictions have no column dialogue_id (from an earlier version): {remedy}"
    return ""


def _too_few_reason(rows: Sequence[_Row]) -> str:
    """Return why there are too few rows for a comparison, or an empty string."""
    if len(rows) == 1:
        return "no other result of this task on the same items"
    dialogues = int(rows[0].dialogue.max()) + 1 if rows else MIN_CLUSTERS
    if dialogues < MIN_CLUSTERS:
        return f"{dialogues} dialogues: a comparison requires {MIN_CLUSTERS}"
    return ""


def _skipped(result: Result, reason: str, history: str = "", metric: str = "") -> SkippedResult:
    task, content = comparison_key(result)
    history = history or history_of(result)
    return SkippedResult(model_of(result), history, task, data_of(result), content, metric, reason)


def _rows(result: Result) -> Iterator[_Row]:
    if result_kind(result.task).tables == "choices":
        yield from _choice_rows(result)
    else:
        yield _pairwise_row(result)


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
    """Yield one row per history; the value is the share of orders with a correct choice."""
    for group in result.groups:
        if set(group.by) != {"history"}:
            continue
        questions = list(chosen_options(result, str(group.by["history"])))
        correct = [question.filter("gold")["chosen"].sum() for question in questions]
        yield _Row(
            result,
            str(group.by["history"]),
            group.metrics,
            tuple(question["dialogue_id"][0] for question in questions),
            np.arange(len(questions)),
            np.array(correct, dtype=np.float64),
            np.array([question["score"].max() for question in questions], dtype=np.float64),
        )


def _leaderboard(rows: Sequence[_Row], metric: str, target: float) -> Leaderboard:
    ordered = sorted(rows, key=lambda row: (-row.metrics[metric].value, *_label(row)))
    first = ordered[0]
    values = np.stack([row.values for row in ordered])
    pairs = TESTS[metric](values, first.score, first.dialogue, target)
    better = significantly_better(pairs, len(rows))
    low, high = rank_intervals(better)
    models = tuple(
        RankedModel(
            *label,
            row.metrics[metric],
            int(low[i]),
            int(high[i]),
            not better[0, i],
            digest(row.result.signature)[:12],
        )
        for i, (label, row) in enumerate(zip(_unique_labels(ordered), ordered, strict=True))
    )
    task, content = comparison_key(first.result)
    dialogues = int(first.dialogue.max()) + 1
    return Leaderboard(
        task, data_of(first.result), content, metric, len(first.ids), dialogues, target, models, tuple(pairs),
    )  # fmt: skip


def _label(row: _Row) -> tuple[str, str]:
    name = model_of(row.result)
    prompt = prompt_of(row.result)
    return (f"{name} ({prompt})" if prompt else name), row.history


def _unique_labels(rows: Sequence[_Row]) -> list[tuple[str, str]]:
    """Return (model, history) per row; equal ones with the first digits of their signature's digest."""
    labels = [_label(row) for row in rows]
    return [
        (f"{model} #{digest(row.result.signature)[:6]}", history)
        if labels.count((model, history)) > 1
        else (model, history)
        for (model, history), row in zip(labels, rows, strict=True)
    ]
