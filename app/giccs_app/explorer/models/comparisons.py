"""Cached comparisons of all pairs of results, as in `giccs.report.model_comparison`."""

from __future__ import annotations

from collections.abc import Sequence

from bws.base.problems import InputError, Problem
from giccs.measures.results import Result
from giccs.report.model_comparison import ModelComparison, compare
from giccs_app.explorer.caching import cached
from giccs_app.explorer.models.data import key
from giccs_app.explorer.models.selection import predictions_path
from giccs_app.explorer.study import Study


def compare_results(
    study: Study, results: Sequence[Result]
) -> tuple[ModelComparison, list[Problem]]:
    """Return the comparison of all pairs of the results, and the problems of unreadable predictions."""
    return _compare(study, stamp_of(study, results), tuple(results))


def stamp_of(study: Study, results: Sequence[Result]) -> str:
    """Return a text that changes with the results and their predictions."""
    states = []
    for result in results:
        path = predictions_path(study, result)
        states.append((key(result), str(path), path.stat().st_mtime_ns if path.exists() else 0))
    return repr(states)


def with_predictions(study: Study, result: Result) -> Result:
    """Return a result with its predictions, if they exist; raises InputError as `Store.predictions`."""
    assert study.store is not None
    return study.store.with_predictions(result)


@cached
def _compare(
    study: Study, stamp: str, _results: tuple[Result, ...]
) -> tuple[ModelComparison, list[Problem]]:
    predicted: list[Result] = []
    problems: list[Problem] = []
    for result in _results:
        try:
            predicted.append(with_predictions(study, result))
        except InputError as error:
            problems += error.problems
    return compare(predicted), problems
