"""Scores of stored results, one column per score with all models that have it.

Results of a task with different settings (``setting``) or different data have separate columns. Other
differences, such as the seed of an interval or the version, do not: the newest result of a model is used, and
older ones are counted as superseded.

Word-similarity scores of models with fewer than 200 known pairs of a set are excluded, as the paper excludes
such sets (5.1), unless the set is requested by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bws.stats.estimates import Estimate
from giccs.evalrank.agreement import MIN_KNOWN_PAIRS
from giccs.measures.metrics import LOWER_IS_BETTER_METRICS
from giccs.measures.results import DEFAULT_POOLINGS, Result, newest_by
from giccs.models.postprocess.steps import family_of

WORD_SIMILARITY = "word-similarity"
INTRINSIC: Mapping[str, tuple[tuple[str, ...], bool]] = {
    WORD_SIMILARITY: (("spearman",), True),
    "sentence-similarity": (("spearman",), True),
    "uniformity": (("alignment", "uniformity"), False),
    "evalrank-word": (("mrr", "hits@1", "hits@3"), False),
    "evalrank-sentence": (("mrr", "hits@1", "hits@3"), False),
}
"""Default metrics by intrinsic task, and whether they are taken per set."""
DOWNSTREAM = "classification"
DOWNSTREAM_METRIC = "accuracy"
SET_KEY = "set"
POOLING = re.compile(r" \([\w ]+ pooling\)$")
"""End of the name of a model with another pooling."""

GroupKey = tuple[tuple[str, str], ...]
"""Names and values that define a group of items; empty for all data."""


@dataclass(frozen=True, slots=True)
class ScoreSelector:
    """Selector of score columns by task, metric and group."""

    task: str
    metric: str | None = None
    """Name of the metric; None for the default metrics in `INTRINSIC`."""
    group: str | None = None
    """Name of the group; empty for all data; None for each set or all data, as specified in `INTRINSIC`."""

    def matches(self, result: Result, metric: str, by: GroupKey) -> bool:
        """Return whether the selector includes a metric of a result."""
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
    """A score of several models."""

    task: str
    metric: str
    by: GroupKey
    setting: str
    """Setting and data, if these differ between columns of the task."""
    scores: Mapping[str, float]
    """Score by model, with the sign changed if lower values are better."""

    @property
    def label(self) -> str:
        """Name of the score in tables, next to the task."""
        default, _ = INTRINSIC.get(self.task, ((DOWNSTREAM_METRIC,), True))
        sign = "-" if self.metric in LOWER_IS_BETTER_METRICS else ""
        of_set = ", ".join(value for _, value in self.by)
        metric = "" if of_set and self.metric == default[0] else f"{sign}{self.metric}"
        setting = f"({self.setting})" if self.setting else ""
        return " ".join(part for part in (of_set, metric, setting) if part)

    @property
    def address(self) -> str:
        """Name of the score in options: ``TASK:METRIC:GROUP``."""
        return f"{self.task}:{self.metric}:{','.join(value for _, value in self.by)}".rstrip(":")


@dataclass(frozen=True)
class ScoreTable:
    """Selected columns, with excluded and missing scores."""

    columns: tuple[ScoreColumn, ...]
    n_superseded: int
    """Number of results for which a newer one was used."""
    undefined: tuple[str, ...]
    """Scores that are NaN or excluded, as ``COLUMN: REASON: MODELS``."""
    unmatched: tuple[ScoreSelector, ...]
    """Selectors without a matching result."""


def _has_sets(result: Result) -> bool:
    return any(tuple(group.by) == (SET_KEY,) for group in result.groups)


def parse_selector(text: str) -> ScoreSelector:
    """Parse a selector ``TASK[:METRIC[:GROUP]]``.

    >>> parse_selector("word-similarity:spearman:SIMLEX-999").group
    'SIMLEX-999'
    """
    task, *more = text.split(":", 2)
    return ScoreSelector(task, *more)


ResultKind = tuple[str, str, str]
"""Task, setting, data."""


def collect_scores(results: Sequence[Result], selectors: Sequence[ScoreSelector]) -> ScoreTable:
    """Return a column for each selected score, in the order of the selectors, then of the results."""
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
                undefined.setdefault(f"{score_name}: {reason}", []).append(scored_model(result))
                continue
            column = scores_by_column.setdefault(
                (matching[0], _result_kind(result), metric, by), {}
            )
            if math.isnan(value := estimate.value):
                undefined.setdefault(f"{score_name}: {estimate.reason}", []).append(
                    scored_model(result)
                )
            else:
                column[scored_model(result)] = (
                    -value if metric in LOWER_IS_BETTER_METRICS else value
                )
    names = _setting_labels(newest)
    columns = [
        ScoreColumn(kind[0], metric, by, names[kind], values)
        for (_, kind, metric, by), values in sorted(
            scores_by_column.items(), key=lambda entry: entry[0][0]
        )
    ]
    matched = {index for index, *_ in scores_by_column}
    missing = [selector for index, selector in enumerate(selectors) if index not in matched]
    undefined_lines = tuple(
        f"{description}: {shorten_list(models)}" for description, models in undefined.items()
    )
    return ScoreTable(tuple(columns), len(of_task) - len(newest), undefined_lines, tuple(missing))


def scored_model(result: Result) -> str:
    """Return the name of the model, with its pooling before its steps if it is not the default.

    >>> signature = {"pooling": "cls, as requested"}
    >>> scored_model(Result("m+whitening:768", "csts", {}, (), signature, {}, 0.0))
    'm (cls pooling)+whitening:768'
    """
    pooling = str(result.signature.get("pooling", ""))
    if pooling in DEFAULT_POOLINGS:
        return result.model
    base = family_of(result.model)
    return f"{base} ({pooling.partition(',')[0]} pooling){result.model.removeprefix(base)}"


def model_family(model: str) -> str:
    """Return the name of a `scored_model` without pooling and steps, which all its variants share.

    >>> model_family("m (cls pooling)+whitening:768")
    'm'
    """
    return POOLING.sub("", family_of(model))


def shorten_list(models: Sequence[str]) -> str:
    """Return the first three names, followed by the total number if there are more.

    >>> shorten_list(["a", "b", "c", "d"])
    'a, b, c, ... (4 models)'
    """
    names = ", ".join(models[:3])
    return names if len(models) <= 3 else f"{names}, ... ({len(models)} models)"


def _newest_results(results: Sequence[Result]) -> list[Result]:
    """Return the newest result of each kind and model, sorted by kind and model."""
    newest = newest_by(results, lambda result: (_result_kind(result), scored_model(result)))
    return [newest[key] for key in sorted(newest)]


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
    """Return why a word-similarity score is excluded, or an empty string; sets requested by name are
    included."""
    if result.task != WORD_SIMILARITY:
        return ""
    is_mean = not by and _has_sets(result)
    if is_mean and "mean" not in result.signature:
        return "mean over all sets by an earlier version; evaluate again"
    if is_mean or selector.group is not None or estimate.size >= MIN_KNOWN_PAIRS:
        return ""
    return f"fewer than {MIN_KNOWN_PAIRS} known pairs"


def _setting_labels(results: Sequence[Result]) -> dict[ResultKind, str]:
    """Return the setting and data that distinguish each kind of result from others of the same task."""
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
