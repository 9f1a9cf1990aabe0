"""Selection of results by model, task, history condition and data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from bws.base.problems import suggestion
from giccs.measures.results import (
    Result,
    Signature,
    condition_of,
    data_of,
    digest,
    history_of,
    model_of,
)

MIN_FINGERPRINT_DIGITS = 6
BOTH = "both"


def select_results(
    results: Sequence[Result],
    with_predictions: Callable[[Result], Result] = lambda result: result,
    *,
    model: Sequence[str] = (),
    task: Sequence[str] = (),
    history: Sequence[str] = (),
    data: Sequence[str] = (),
) -> list[Result]:
    """Return the results with one of the models, one of the tasks, and so on; empty lists select all.

    model: names in results, with or without settings (``m`` or ``m, 4 bits``). history: ``with`` and
    ``without``; of a multiple-choice result with both, the other condition is left out, as in an evaluation
    with one condition. data: names, or at least six first digits of a fingerprint.
    with_predictions: returns a result with its predictions, before a condition is left out.

    Raises ValueError for a value that no result has, with the existing ones, and if no result has all.
    """
    names_of: Mapping[str, Callable[[Result], Iterable[str]]] = {
        "model": lambda result: (result.model, model_of(result)),
        "task": lambda result: (result.task,),
        "history": _histories,
        "data": lambda result: (data_of(result), *_fingerprints(result, data)),
    }
    chosen = {"model": model, "task": task, "history": history, "data": data}
    for field, values in chosen.items():
        known = list(dict.fromkeys(name for result in results for name in names_of[field](result)))
        for value in values:
            if value not in known:
                expected = ", ".join(known) or "nothing: no result has one"
                message = f"--{field}: no result of {value!r}{suggestion(value, known)}"
                raise ValueError(f"{message}; expected {expected}")
    selected = [
        result
        for result in results
        if all(
            not values or set(values) & set(names_of[field](result))
            for field, values in chosen.items()
        )
    ]
    if not selected:
        options = ", ".join(f"--{field}" for field, values in chosen.items() if values)
        raise ValueError(f"no result matches {options} together")
    if len(set(history)) == 1:
        selected = [_with_history(result, history[0], with_predictions) for result in selected]
    distinct: dict[str, Result] = {}
    for result in selected:
        distinct.setdefault(digest(result.signature), result)
    return list(distinct.values())


def _histories(result: Result) -> list[str]:
    condition = condition_of(history_of(result))
    return ["with", "without"] if condition == BOTH else [condition] if condition else []


def _fingerprints(result: Result, data: Sequence[str]) -> list[str]:
    """Return the given beginnings of the fingerprint of a result's data."""
    content = str(result.signature.get("data", ""))
    return [
        value
        for value in data
        if len(value) >= MIN_FINGERPRINT_DIGITS and content.startswith(value)
    ]


def _with_history(
    result: Result, history: str, with_predictions: Callable[[Result], Result]
) -> Result:
    """Return a result of both conditions as that of one of them; others unchanged."""
    if result.signature.get("history") != BOTH:
        return result
    groups = [group for group in result.groups if group.by.get("history") == history]
    (whole,) = (group for group in groups if set(group.by) == {"history"})
    signature: dict[str, Any] = {**result.signature, "history": history}
    predictions = with_predictions(result).predictions
    if predictions is not None:
        predictions = predictions.filter(predictions["history"] == history)
    return replace(
        result,
        metrics=whole.metrics,
        groups=tuple(groups),
        signature=cast(Signature, signature),
        predictions=predictions,
    )
