"""Comparison of all pairs of results with one history on the same items, and effects of the history."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.base.tables import Explanation
from bws.stats.clusters import MIN_CLUSTERS
from bws.stats.estimates import Estimate
from giccs.measures.all_pairs import (
    PairDifference,
    accuracy_pairs,
    rank_intervals,
    significantly_better,
    spearman_pairs,
    within_dialogue_pairs,
)
from giccs.measures.clusters import CLUSTERS, DIALOGUES, Clusters
from giccs.measures.detectable import ALPHA, POWER
from giccs.measures.metrics import NAN_PREDICTIONS
from giccs.measures.results import (
    MISSING_PREDICTIONS,
    Result,
    comparison_key,
    condition_of,
    data_of,
    digest,
    history_of,
    model_of,
    prompt_of,
)
from giccs.report.chosen_options import chosen_options, correct_answers
from giccs.report.clustering import DomainTests, clusters_of, domain_notes, population_note, unit_of
from giccs.report.setting_effects import HISTORY_FIELDS, setting_key
from giccs.tasks import TASKS, result_kind

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

TARGET_DIFFERENCE = 0.02
"""Difference for planning the number of dialogues."""
DUPLICATE = note("another result has the same model, settings and history")
"""Reason for which a result is skipped although the same one is compared."""

PairTests = Callable[..., list[PairDifference]]
TESTS: Mapping[str, PairTests] = {
    "spearman": spearman_pairs,
    "rank_spearman": within_dialogue_pairs,
    "accuracy": accuracy_pairs,
}
"""Metric -> tests of pairs of models, by default all; `giccs.tasks.ResultKind` lists a task's metrics."""


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
class Family:
    """Tests of one task, data set and metric whose p-values are adjusted together."""

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
    clusters: str
    """Plural name of the units of the intervals and tests, ``dialogues`` by default."""
    population: str
    """Sentence on the population to which they generalise."""
    domains: tuple[str, ...]
    """Notes on models whose values differ between domains."""

    @property
    def tests(self) -> Mapping[str, PairDifference]:
        """Label -> tested difference."""
        raise NotImplementedError

    def document(self) -> dict[str, Any]:
        """Return the common keys of the document of a family."""
        names = ("task", "data", "content", "metric", "items", "dialogues", "target", "clusters")
        numbers = {name: getattr(self, name) for name in names}
        return {**numbers, "power": POWER, "alpha": ALPHA, "notes": self.notes()}

    def notes(self) -> list[str]:
        """Return notes on the tests, their power, and undefined values."""
        tests = [*self._test_notes(), *self._power_notes(), *self._reason_notes()]
        return [*tests, Explanation(self.population), *self.domains]

    def _test_notes(self) -> Iterator[str]:
        test = (
            "exact McNemar test and Agresti–Min interval"
            if self.metric == "accuracy" and self.clusters == CLUSTERS[DIALOGUES]
            else f"paired t-test over {self.clusters} with the jackknife standard error"
        )
        n_tested = sum(not math.isnan(pair.p) for pair in self.tests.values())
        yield Explanation(
            f"Difference, p: {test}. Holm, BH: p adjusted for the {self.unit} of this table ({n_tested})."
        )

    def _power_notes(self) -> Iterator[str]:
        pairs = self.tests.values()
        condition = f"power {POWER}, two-sided level {ALPHA}, one planned pair"
        if detectable := _defined(pair.detectable for pair in pairs):
            yield f"Minimum detectable difference ({condition}): {_range(detectable, '.3f')}."
        needed = _defined(pair.needed for pair in pairs)
        needed_all_pairs = _defined(pair.needed_all_pairs for pair in pairs)
        if needed:
            all_pairs_text = (
                f"; for all {self.unit} at once (Bonferroni): {_range(needed_all_pairs, ',.0f')}"
            )
            yield (
                f"Dialogues to detect a difference of {self.target:g} ({condition}): "
                f"{_range(needed, ',.0f')}"
                f"{all_pairs_text if needed_all_pairs and len(pairs) > 1 else ''}."
            )

    def _reason_notes(self) -> Iterator[str]:
        reasons: dict[str, list[str]] = {}
        for label, pair in self.tests.items():
            if pair.reason:
                reasons.setdefault(pair.reason, []).append(label)
        for reason, labels in reasons.items():
            named = f"all {self.unit}" if len(labels) == len(self.tests) > 1 else ", ".join(labels)
            yield f"{named}: {reason}."

    unit: ClassVar[str]
    """Plural name of what is tested."""


@dataclass(frozen=True)
class Leaderboard(Family):
    """The models of one task, data set, history condition and metric, best first, and all their pairs."""

    models: tuple[RankedModel, ...]
    pairs: tuple[PairDifference, ...]
    history: str = ""
    """History condition of all models: ``with``, ``without``, or empty for other tasks."""
    unit: ClassVar[str] = "pairs"

    @property
    def tests(self) -> Mapping[str, PairDifference]:
        """Row numbers from 1, ``1–2`` -> difference."""
        return {f"{pair.first + 1}–{pair.second + 1}": pair for pair in self.pairs}

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
        models = [model.document() for model in self.models]
        pairs = [asdict(pair) for pair in self.pairs]
        return super().document() | {"history": self.history, "models": models, "pairs": pairs}

    def _test_notes(self) -> Iterator[str]:
        yield from super()._test_notes()
        yield Explanation(
            "†: not significantly different from the best model (Holm, 5 %). ranks: consistent with all "
            "pairwise decisions, with 95 % confidence for all models together."
        )


@dataclass(frozen=True)
class HistoryEffect:
    """The difference that the history makes for a model."""

    model: str
    history: str
    """Condition with history and its encoding: ``with (speakers)``."""
    with_history: Estimate
    without_history: Estimate
    difference: PairDifference
    """With minus without."""

    def document(self) -> dict[str, Any]:
        """Return the effect as a dict."""
        difference = asdict(self.difference)
        return {
            "model": self.model,
            "history": self.history,
            "with": self.with_history.document(),
            "without": self.without_history.document(),
            **{name: difference[name] for name in difference if name not in ("first", "second")},
        }


@dataclass(frozen=True)
class HistoryEffects(Family):
    """The effects of the history on models of one task, data set and metric, best without history first."""

    effects: tuple[HistoryEffect, ...]
    unit: ClassVar[str] = "models"

    @property
    def tests(self) -> Mapping[str, PairDifference]:
        """Row number from 1 -> difference."""
        return {str(n): effect.difference for n, effect in enumerate(self.effects, start=1)}

    def document(self) -> dict[str, Any]:
        """Return the family as a dict."""
        return super().document() | {"effects": [effect.document() for effect in self.effects]}


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
        values = asdict(self)
        if self.metric and self.history:
            return note(
                "Not compared by {metric}: {model} ({history} history), {task} on {data}: {reason}.",
                **values,
            )
        if self.metric:
            return note("Not compared by {metric}: {model}, {task} on {data}: {reason}.", **values)
        if self.history:
            return note(
                "Not compared: {model} ({history} history), {task} on {data}: {reason}.", **values
            )
        return note("Not compared: {model}, {task} on {data}: {reason}.", **values)


@dataclass(frozen=True)
class ModelComparison:
    """All leaderboards of some results."""

    leaderboards: tuple[Leaderboard, ...]
    skipped: tuple[SkippedResult, ...]
    history_effects: tuple[HistoryEffects, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the comparison as a dict."""
        return {
            "comparisons": [leaderboard.document() for leaderboard in self.leaderboards],
            "history_effects": [family.document() for family in self.history_effects],
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
    """Compare all pairs of results of one task and history condition on the same items.

    results: with their predictions. Items are the same if the data have the same fingerprint. Pairwise STS is
    compared by Spearman's rho over all items and by the mean within-dialogue rho, multiple choice by
    accuracy. Results with and without history are families of their own, and so are the effects of the
    history: each result with history against the one without that is otherwise equal. Results of one model
    with other prompts, poolings, dimensions or encodings of the history are rivals. target: difference for
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
    effects: list[HistoryEffects] = []
    for (task, _), group in groups.items():
        rows, unusable = _usable_rows(group)
        tested: DomainTests = {}
        skipped += unusable
        conditions = [
            [row for row in rows if row.condition == condition]
            for condition in sorted({row.condition for row in rows}, reverse=True)
        ]
        few = {id(row): _too_few_reason(condition) for condition in conditions for row in condition}
        skipped += [_skipped(row.result, few[id(row)], row.history) for row in rows if few[id(row)]]
        for metric in result_kind(task).comparison_metrics:
            for condition in conditions:
                comparable = [row for row in condition if not few[id(row)]]
                defined = [row for row in comparable if not row.undefined_reason(metric)]
                skipped += [
                    _skipped(row.result, reason, row.history, metric)
                    for row in comparable
                    if (reason := row.undefined_reason(metric))
                ]
                if reason := _too_few_reason(defined):
                    skipped += [
                        _skipped(row.result, reason, row.history, metric) for row in defined
                    ]
                elif defined:
                    leaderboards.append(_leaderboard(defined, metric, target, tested))
            effects += _history_effects(
                [row for row in rows if not row.undefined_reason(metric)], metric, target, tested
            )
    return ModelComparison(tuple(leaderboards), tuple(skipped), tuple(effects))


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
    clusters: Clusters | None
    """Clusters of the dialogues in intervals and tests; None for each dialogue alone."""

    @property
    def condition(self) -> str:
        """History condition, without its encoding."""
        return condition_of(self.history)

    @property
    def key(self) -> str:
        """Digest of the settings other than the history condition."""
        is_pairwise = result_kind(self.result.task).tables == "pairs"
        return setting_key(self.result, HISTORY_FIELDS if is_pairwise else HISTORY_FIELDS[:1])

    def undefined_reason(self, metric: str) -> str:
        """Return why a metric is not defined for all items, or an empty string."""
        if math.isnan(self.metrics[metric].value):
            return self.metrics[metric].reason
        missing = int(np.count_nonzero(np.isnan(self.values)))
        return note(NAN_PREDICTIONS, n=missing) if missing else ""


def _usable_rows(results: Sequence[Result]) -> tuple[list[_Row], list[SkippedResult]]:
    """Return the rows of results of one task and content, and the skipped results."""
    rows: list[_Row] = []
    skipped: list[SkippedResult] = []
    known: set[tuple[str, str]] = set()
    for result in results:
        if reason := _unusable_reason(result):
            skipped.append(_skipped(result, reason))
            continue
        result_rows = [*_rows(result)]
        first = rows[0] if rows else result_rows[0]
        if all(
            row.ids == first.ids and np.array_equal(row.score, first.score) for row in result_rows
        ):
            copies = [row for row in result_rows if (row.key, row.history) in known]
            skipped += [_skipped(result, DUPLICATE, row.history) for row in copies]
            rows += [row for row in result_rows if row not in copies]
            known |= {(row.key, row.history) for row in result_rows}
        else:
            reason = note(
                "the items of its predictions differ from those of {model}",
                model=model_of(first.result),
            )
            skipped.append(_skipped(result, reason))
    return rows, skipped


def _unusable_reason(result: Result) -> str:
    if not result_kind(result.task).comparison_metrics:
        compared = [task for task in TASKS if result_kind(task).comparison_metrics]
        return note("only results of {tasks} are compared", tasks=" and ".join(compared))
    if result.predictions is None:
        return note(MISSING_PREDICTIONS)
    if "dialogue_id" not in result.predictions.columns:
        return note(
            "its predictions have no column dialogue_id (from an earlier version): compute it again with "
            "giccs eval --force"
        )
    return ""


def _too_few_reason(rows: Sequence[_Row]) -> str:
    """Return why there are too few rows for a comparison, or an empty string."""
    if len(rows) == 1:
        return (
            note("no other result of this task and history on the same items")
            if rows[0].history
            else note("no other result of this task on the same items")
        )
    return _too_few_dialogues(rows)


def _too_few_dialogues(rows: Sequence[_Row]) -> str:
    dialogues = int(rows[0].dialogue.max()) + 1 if rows else MIN_CLUSTERS
    if dialogues < MIN_CLUSTERS:
        return note(
            "{n:d} dialogues: a comparison requires {least:d}", n=dialogues, least=MIN_CLUSTERS
        )
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
        clusters_of(result, np.unique(table["dialogue_id"].to_numpy()).tolist()),
    )


def _choice_rows(result: Result) -> Iterator[_Row]:
    """Yield one row per history; the value is the share of orders with a correct choice."""
    for group in result.groups:
        if set(group.by) != {"history"}:
            continue
        questions = list(chosen_options(result, str(group.by["history"])))
        ids, correct = correct_answers(result, str(group.by["history"]))
        yield _Row(
            result,
            str(group.by["history"]),
            group.metrics,
            tuple(ids),
            np.arange(len(questions)),
            correct,
            np.array([question["score"].max() for question in questions], dtype=np.float64),
            clusters_of(result, ids),
        )


def history_titles(boards: Sequence[Leaderboard]) -> list[str]:
    """Return the history condition of each leaderboard for its title, empty if its data have only one."""
    conditions = {(board.task, board.content, board.history) for board in boards}
    data = [(task, content) for task, content, _ in conditions]
    return [
        f", {board.history} history" if data.count((board.task, board.content)) > 1 else ""
        for board in boards
    ]


def _history_effects(
    rows: Sequence[_Row], metric: str, target: float, tested: DomainTests
) -> list[HistoryEffects]:
    """Return the family of the effects of the history on a metric, if a result has both conditions."""
    without = {row.key: row for row in rows if row.condition == "without"}
    pairs = [
        (row, without[row.key]) for row in rows if row.condition == "with" and row.key in without
    ]
    if not pairs or _too_few_dialogues(rows):
        return []
    pairs.sort(key=lambda pair: (-pair[1].metrics[metric].value, *_label(pair[0])))
    values = np.stack([row.values for pair in pairs for row in pair])
    indices = [(2 * n, 2 * n + 1) for n in range(len(pairs))]
    first = rows[0]
    arrays = values, first.score, first.dialogue
    differences = TESTS[metric](*arrays, target, indices, clusters=first.clusters)
    labels = _unique_labels([row for row, _ in pairs])
    effects = tuple(
        HistoryEffect(*label, row.metrics[metric], other.metrics[metric], difference)
        for label, (row, other), difference in zip(labels, pairs, differences, strict=True)
    )
    return [HistoryEffects(**_family(rows, metric, target, tested), effects=effects)]


def _family(
    rows: Sequence[_Row], metric: str, target: float, tested: DomainTests
) -> dict[str, Any]:
    """Return the fields of a `Family` of rows on the same items."""
    row, results = rows[0], list({id(row.result): row.result for row in rows}.values())
    task, content = comparison_key(row.result)
    return {
        "task": task,
        "data": data_of(row.result),
        "content": content,
        "metric": metric,
        "items": len(row.ids),
        "dialogues": int(row.dialogue.max()) + 1,
        "target": target,
        "clusters": unit_of(results),
        "population": population_note(results),
        "domains": tuple(domain_notes(results, tested)),
    }


def _leaderboard(
    rows: Sequence[_Row], metric: str, target: float, tested: DomainTests
) -> Leaderboard:
    ordered = sorted(rows, key=lambda row: (-row.metrics[metric].value, *_label(row)))
    first = ordered[0]
    values = np.stack([row.values for row in ordered])
    pairs = TESTS[metric](values, first.score, first.dialogue, target, clusters=first.clusters)
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
    return Leaderboard(
        **_family(ordered, metric, target, tested),
        models=models,
        pairs=tuple(pairs),
        history=first.condition,
    )


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
