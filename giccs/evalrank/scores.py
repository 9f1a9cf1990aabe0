"""Which scores do the stored results of many models have? A column a score, of all models that have it.

Results of one task that were asked differently stand in columns of their own: their ``setting``, or the
content of their data, differs. What differs otherwise (the seed of an interval, a version) makes no column;
of such results of one model the newest counts, and the others are counted as set aside.

A word-similarity score of a model that knows fewer than 200 pairs of the set is left out, as the paper leaves
out such sets (5.1), unless the set is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from giccs.evalrank.agreement import MIN_KNOWN_PAIRS
from giccs.measures.metrics import LOWER_IS_BETTER_METRICS, Estimate
from giccs.measures.results import Result

__all__ = [
    "DOWNSTREAM",
    "INTRINSIC",
    "ScoreColumn",
    "ScoreSelector",
    "ScoreTable",
    "collect_scores",
    "parse_selector",
    "shorten_list",
]

WORD_SIMILARITY = "word-similarity"
INTRINSIC: Mapping[str, tuple[tuple[str, ...], bool]] = {
    WORD_SIMILARITY: (("spearman",), True),
    "sentence-similarity": (("spearman",), True),
    "uniformity": (("alignment", "uniformity"), False),
    "evalrank-word": (("mrr", "hits@1", "hits@3"), False),
    "evalrank-sentence": (("mrr", "hits@1", "hits@3"), False),
}
"""Intrinsic task -> the metrics that are taken where none is named, and whether of each of its sets."""
DOWNSTREAM = "classification"
DOWNSTREAM_METRIC = "accuracy"
SET_KEY = "set"

GroupKey = tuple[tuple[str, str], ...]
"""What the items of a group have in common, as names and values; empty for all of the data."""


@dataclass(frozen=True, slots=True)
class ScoreSelector:
    """Which columns are wanted."""

    task: str
    metric: str | None = None
    """None: those of `INTRINSIC`."""
    group: str | None = None
    """None: each set, or all of the data, as `INTRINSIC` says; empty: all of the data."""

    def matches(self, result: Result, metric: str, by: GroupKey) -> bool:
        """Tell whether a number of a result is wanted."""
        metrics, of_sets = INTRINSIC.get(self.task, ((), False))
        if result.task != self.task or metric not in ((self.metric,) if self.metric else metrics):
            return False
        if self.group is not None:
            return ",".join(value for _, value in by) == self.group
        return tuple(name for name, _ in by) == (
            (SET_KEY,) if of_sets and _has_sets(result) else ()
        )

    def __str__(self) -> str:
        return ":".join(part for part in (self.task, self.metric, self.group) if part is not None)


@dataclass(frozen=True)
class ScoreColumn:
    """A score, and the models that have it."""

    task: str
    metric: str
    by: GroupKey
    setting: str
    """How it was asked, where that differs between columns of its task; and of which data."""
    scores: Mapping[str, float]
    """Model -> score, turned so that more is better."""

    @property
    def label(self) -> str:
        """Return how tables call it, beside the task."""
        default, _ = INTRINSIC.get(self.task, ((DOWNSTREAM_METRIC,), True))
        sign = "-" if self.metric in LOWER_IS_BETTER_METRICS else ""
        of_set = ", ".join(value for _, value in self.by)
        metric = "" if of_set and self.metric == default[0] else f"{sign}{self.metric}"
        setting = f"({self.setting})" if self.setting else ""
        return " ".join(part for part in (of_set, metric, setting) if part)

    @property
    def address(self) -> str:
        """Return how an option names it: ``TASK:METRIC:GROUP``."""
        return f"{self.task}:{self.metric}:{','.join(value for _, value in self.by)}".rstrip(":")


@dataclass(frozen=True)
class ScoreTable:
    """The columns that were asked for, and what was left out of them."""

    columns: tuple[ScoreColumn, ...]
    n_superseded: int
    """Results in place of which a newer one counts."""
    undefined: tuple[str, ...]
    """``COLUMN: REASON: MODELS`` for scores that are NaN or left out."""
    unmatched: tuple[ScoreSelector, ...]
    """What no result has."""


def _has_sets(result: Result) -> bool:
    return any(tuple(group.by) == (SET_KEY,) for group in result.groups)


def parse_selector(text: str) -> ScoreSelector:
    """Return what ``TASK[:METRIC[:GROUP]]`` asks for.

    >>> parse_selector("word-similarity:spearman:SIMLEX-999").group
    'SIMLEX-999'
    """
    task, *more = text.split(":", 2)
    return ScoreSelector(task, *more)


ResultKind = tuple[str, str, str]
"""Task, setting, data."""


def collect_scores(results: Sequence[Result], selectors: Sequence[ScoreSelector]) -> ScoreTable:
    """Return a column for each number that is wanted, in the order of `wanted`, then of the results."""
    of_task = [
        result for result in results if any(result.task == selector.task for selector in selectors)
    ]
    newest = _newest_results(of_task)
    scores_by_column: dict[tuple[int, ResultKind, str, GroupKey], dict[str, float]] = {}
    undefined: dict[str, list[str]] = {}
    for result in newest:
        for metric, by, estimate in _estimates(result):
            matching = [
                n for n, selector in enumerate(selectors) if selector.matches(result, metric, by)
            ]
            if not matching:
                continue
            score_name = " ".join([result.task, metric, *(name for _, name in by)])
            if reason := _exclusion_reason(result, by, estimate, selectors[matching[0]]):
                undefined.setdefault(f"{score_name}: {reason}", []).append(result.model)
                continue
            column = scores_by_column.setdefault(
                (matching[0], _result_kind(result), metric, by), {}
            )
            if math.isnan(value := estimate.value):
                undefined.setdefault(f"{score_name}: {estimate.reason}", []).append(result.model)
            else:
                column[result.model] = -value if metric in LOWER_IS_BETTER_METRICS else value
    names = _setting_labels(newest)
    columns = [
        ScoreColumn(kind[0], metric, by, names[kind], values)
        for (_, kind, metric, by), values in sorted(
            scores_by_column.items(), key=lambda one: one[0][0]
        )
    ]
    matched = {index for index, *_ in scores_by_column}
    missing = [selector for unmatched, selector in enumerate(selectors) if unmatched not in matched]
    lost = tuple(
        f"{undefined_lines}: {shorten_list(models)}"
        for undefined_lines, models in undefined.items()
    )
    return ScoreTable(tuple(columns), len(of_task) - len(newest), lost, tuple(missing))


def shorten_list(models: Sequence[str]) -> str:
    """Return the first three names, and how many there are where that is more.

    >>> shorten_list(["a", "b", "c", "d"])
    'a, b, c, ... (4 models)'
    """
    names = ", ".join(models[:3])
    return names if len(models) <= 3 else f"{names}, ... ({len(models)} models)"


def _newest_results(results: Sequence[Result]) -> list[Result]:
    """Return the newest result of each model and kind, by kind and model."""
    newest_by_key: dict[tuple[ResultKind, str], Result] = {}
    for result in sorted(results, key=lambda one: str(one.environment.get("when", ""))):
        newest_by_key[_result_kind(result), result.model] = result
    return [newest_by_key[key] for key in sorted(newest_by_key)]


def _result_kind(result: Result) -> ResultKind:
    signature = result.signature
    return result.task, str(signature.get("setting", "")), str(signature.get("data", ""))


def _estimates(result: Result) -> Iterator[tuple[str, GroupKey, Estimate]]:
    for metric, estimate in result.metrics.items():
        yield metric, (), estimate
    for group in result.groups:
        by = tuple((name, str(value)) for name, value in group.by.items())
        for metric, estimate in group.metrics.items():
            yield metric, by, estimate


def _exclusion_reason(
    result: Result, by: GroupKey, estimate: Estimate, selector: ScoreSelector
) -> str:
    """Return why a word-similarity score does not count; empty where it does, and for a set that is named."""
    if result.task != WORD_SIMILARITY:
        return ""
    is_mean = not by and _has_sets(result)
    if is_mean and "mean" not in result.signature:
        return "a mean over all sets, by an earlier version; evaluate again"
    if is_mean or selector.group is not None or estimate.n >= MIN_KNOWN_PAIRS:
        return ""
    return f"fewer than {MIN_KNOWN_PAIRS} known pairs"


def _setting_labels(results: Sequence[Result]) -> dict[ResultKind, str]:
    """Return for each kind of result what of setting and data tells it from others of its task."""
    kinds = {_result_kind(result): str(result.environment.get("data", "")) for result in results}
    names = {}
    for kind, data in kinds.items():
        task, setting, content = kind
        same_task = [other_kind for other_kind in kinds if other_kind[0] == task]
        labels = (
            [setting] if len({other_kind[1] for other_kind in same_task}) > 1 and setting else []
        )
        if len({other_kind[2] for other_kind in same_task}) > 1:
            same_name = [o for o in same_task if kinds[o] == data and o[2] != content]
            labels.append(f"{data} {content[:6]}" if same_name else data)
        names[kind] = ", ".join(labels)
    return names
