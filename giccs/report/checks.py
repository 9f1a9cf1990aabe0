"""Checks of results in continuous integration: thresholds of metrics, and comparisons with a baseline."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bws.base.notes import p_text
from bws.base.problems import suggestion
from bws.base.terminal import printable
from giccs.measures.formatting import limits
from giccs.measures.metrics import LOWER_IS_BETTER_METRICS
from giccs.measures.results import (
    Result,
    comparison_key,
    condition_of,
    history_of,
    model_of,
    newest_by,
    prompt_of,
    setting_of,
)
from giccs.report.metric_titles import metric_title
from giccs.report.model_comparison import DUPLICATE, Leaderboard, ModelComparison, SkippedResult
from giccs.tasks import result_kind

LEVEL = 0.05
"""Level of the one-sided test."""


@dataclass(frozen=True)
class Check:
    """A condition on a model."""

    model: str
    condition: str
    """What is required, for which task, data and history."""
    passed: bool
    message: str
    """The numbers, or why there are none."""

    def __str__(self) -> str:
        return f"{'passed' if self.passed else 'FAILED'}: {self.model}: {self.condition}: {self.message}"

    def document(self) -> dict[str, Any]:
        """Return the check as a JSON-serialisable dict."""
        return asdict(self)


def threshold_checks(results: Sequence[Result], thresholds: Mapping[str, float]) -> Iterator[Check]:
    """Yield a check that a metric reaches its threshold for each result that has it; NaN fails.

    Raises ValueError for a metric that no result has, and for one of which lower values are better.
    """
    known = dict.fromkeys(name for result in results for name in result.metrics)
    for metric, threshold in thresholds.items():
        if metric not in known:
            names = ", ".join(known) or "no results"
            raise ValueError(
                f"no result has {metric!r}{suggestion(metric, known)}; there are {names}"
            )
        if metric in LOWER_IS_BETTER_METRICS:
            raise ValueError(f"lower values of {metric} are better; expected another metric")
        for result in results:
            if metric not in result.metrics:
                continue
            estimate = result.metrics[metric]
            history = f", {history_of(result)} history" if history_of(result) else ""
            condition = f"{metric_title(metric)} of at least {threshold:g}, {result.task}{history}"
            message = (
                f"undefined: {estimate.reason}"
                if math.isnan(estimate.value)
                else f"{estimate.value:.3f} {limits(estimate)}"
            )
            yield Check(model_of(result), condition, estimate.value >= threshold, message)


def baseline_checks(comparison: ModelComparison, baseline: str) -> list[Check]:
    """Return a check for each other model that it is not significantly worse than the baseline.

    The test is that of the comparison (paired over dialogues), one-sided at `LEVEL` for each model by itself,
    by the last metric of each task: the mean within-dialogue rho, or the accuracy. A difference that cannot
    be tested fails, also because predictions are missing, NaN or all equal. Raises ValueError without the
    baseline, and if no other model can be compared with it.
    """
    boards = [
        board
        for board in comparison.leaderboards
        if board.metric == result_kind(board.task).comparison_metrics[-1]
    ]
    models = dict.fromkeys(model.model for board in boards for model in board.models)
    models |= dict.fromkeys(result.model for result in comparison.skipped)
    if baseline not in models:
        names = ", ".join(models) or "none"
        raise ValueError(
            f"no result of {baseline!r}{suggestion(baseline, models)}; expected one of {names}"
        )
    checks = [
        check for board in boards for check in _board_checks(board, comparison.skipped, baseline)
    ]
    if not checks:
        reasons = "; ".join(dict.fromkeys(result.reason for result in comparison.skipped))
        raise ValueError(
            f"no model can be compared with {baseline!r}{f': {reasons}' if reasons else ''}"
        )
    return checks


def newest(results: Sequence[Result]) -> list[Result]:
    """Return the newest result of each model, task, data, history and prompt, whatever its weights."""
    newest_results = newest_by(
        results,
        lambda each: (each.model, *comparison_key(each), setting_of(each), prompt_of(each)),
    )
    kept = {id(result) for result in newest_results.values()}
    return [result for result in results if id(result) in kept]


def _board_checks(
    board: Leaderboard, skipped: Iterable[SkippedResult], baseline: str
) -> Iterator[Check]:
    names = [model.model for model in board.models]
    history = f", {board.history} history" if board.history else ""
    condition = f"not worse than {baseline}, {board.task} on {board.data}{history}"
    if baseline in names:
        for result in skipped:
            if _is_of(result, board) and result.reason != DUPLICATE and result.model != baseline:
                yield Check(result.model, condition, False, f"not tested: {result.reason}")
    for pair in board.pairs:
        first, second = names[pair.first], names[pair.second]
        if (first == baseline) == (second == baseline):
            continue
        model, sign = (second, -1) if first == baseline else (first, 1)
        value, (low, high) = sign * pair.value, sorted([sign * pair.low, sign * pair.high])
        p = pair.p / 2 if value < 0 else 1 - pair.p / 2
        if math.isnan(pair.p):  # equal values are those of equal predictions
            message = (
                "no difference" if value == 0 else f"not tested: {pair.reason or 'no p-value'}"
            )
            yield Check(model, condition, value == 0, message)
            continue
        message = (
            f"difference in {metric_title(board.metric)} {value:+.3f} [{low:+.3f}, {high:+.3f}], "
            f"one-sided p {p_text(p)}"
        )
        yield Check(model, condition, not p < LEVEL, message)


def _is_of(result: SkippedResult, board: Leaderboard) -> bool:
    """Return whether a skipped result is on the data of a leaderboard, with its history and metric."""
    return (
        (result.task, result.content) == (board.task, board.content)
        and condition_of(result.history) in ("", board.history)
        and result.metric in ("", board.metric)
    )


def junit(checks: Iterable[Check]) -> str:
    """Return the checks as JUnit XML, which services for continuous integration display.

    Control characters, which XML does not permit, are escaped.
    """
    cases = list(checks)
    failed = sum(not check.passed for check in cases)
    suite = ElementTree.Element(
        "testsuite", name="giccs", tests=str(len(cases)), failures=str(failed), errors="0"
    )
    for check in cases:
        case = ElementTree.SubElement(
            suite, "testcase", classname=printable(check.model), name=printable(check.condition)
        )
        if not check.passed:
            ElementTree.SubElement(case, "failure", message=printable(check.message))
        else:
            ElementTree.SubElement(case, "system-out").text = printable(check.message)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
