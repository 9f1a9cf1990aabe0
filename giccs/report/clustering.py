"""Results with intervals over clusters of dialogues, such as domains, and notes on their population.

The intervals of stored results are over dialogues. `over_clusters` computes those over domains, sources or
languages from the predictions; the unit is in the signature, from which differences of results take it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note, p_text
from bws.base.problems import InputError, Problem
from bws.base.progress import tracked
from bws.stats.estimates import Estimate
from bws.stats.multiple_tests import holm
from giccs.measures.clusters import CLUSTERS, DIALOGUES, Clusters, heterogeneity_p
from giccs.measures.comparison import paired_accuracies, share_over_clusters
from giccs.measures.metrics import (
    CORRELATION_BOUNDS,
    correlations,
    mean_over_dialogues,
    order_metrics,
    with_excluded,
)
from giccs.measures.results import Result, Store, history_of, model_of
from giccs.report.chosen_options import DialogueValues, correct_answers, dialogue_values
from giccs.tasks import result_kind
from giccs.tasks.pairwise import ORDERS

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]

SIGNIFICANCE_LEVEL = 0.05
TESTED_COLUMNS = ("domain", "source")
"""Columns of predictions whose clusters are tested for different results."""
DomainTest = tuple[str, str, float]
"""Label of the tested values, column of the clusters, and p-value."""
DomainTests = dict[int, list[DomainTest]]
"""``id`` of a result -> its tests."""


def unit_of(results: Sequence[Result]) -> str:
    """Return the plural name of the units of the intervals: ``dialogues``, ``domains`` …"""
    return CLUSTERS.get(_column(results[0]), "") if results else ""


def population_note(results: Sequence[Result], further: Sequence[str] = ()) -> str:
    """Return the sentence to which population the intervals of results on the same data generalise.

    further: notes on what other intervals of the table generalise to.
    """
    unit = unit_of(results)
    population = (
        note("Intervals and tests generalise to other dialogues of the same domains")
        if unit == CLUSTERS[DIALOGUES]
        else note("Intervals and tests generalise to other {unit}", unit=unit)
    )
    return f"{'; '.join([population, *further])}."


def clusters_of(result: Result, dialogue_ids: Sequence[str]) -> Clusters | None:
    """Return the clusters of dialogues over which a result has intervals; None for dialogues."""
    column = _column(result)
    return None if column == DIALOGUES else _clusters(result, dialogue_ids, column)


def over_clusters(results: Sequence[Result], column: str) -> list[Result]:
    """Return results with intervals over the clusters of a column of `CLUSTERS`, without groups of items.

    results: with their predictions. Results on other data than dialogues are unchanged. Values stay the same.
    Raises InputError for results without predictions or without the column, ValueError for another column.
    """
    if column not in CLUSTERS:
        raise ValueError(f"cluster is {column!r}; expected one of {', '.join(CLUSTERS)}")
    if column == DIALOGUES:
        return [*results]
    return [
        CLUSTERED[kind](with_unit(result, column)) if kind in CLUSTERED else result
        for result in results
        for kind in (result_kind(result.task).tables,)
    ]


def with_predictions_of_dialogues(results: Sequence[Result], store: Store) -> list[Result]:
    """Return the results, with the predictions of those on dialogues, from which intervals are computed."""
    return [
        store.with_predictions(result)
        if result.predictions is None and result_kind(result.task).tables in CLUSTERED
        else result
        for result in results
    ]


def domain_notes(results: Sequence[Result], tested: DomainTests | None = None) -> list[str]:
    """Return a note per result whose values differ between domains or sources, in intervals over dialogues.

    Each result with predictions is tested (`heterogeneity_p`) by the terms of Spearman's rho over all items
    or, for multiple choice, by the correct answers. The p-values are adjusted by Holm for all tests. Tests
    in `tested` are not computed again; new ones are added.
    """
    tested = {} if tested is None else tested
    untested = [result for result in results if id(result) not in tested]
    for result in tracked(untested, "differences between domains", len(untested)):
        tested[id(result)] = list(_domain_tests(result))
    tests = [test for result in results for test in tested[id(result)]]
    adjusted = holm(np.array([p for _, _, p in tests]))
    return [
        f"{label} differs between {CLUSTERS[column]} (permutation test, p {p_text(p)}): the intervals hold "
        f"for these {CLUSTERS[column]} only; --cluster {column} gives those for others"
        for (label, column, _), p in zip(tests, adjusted, strict=True)
        if p < SIGNIFICANCE_LEVEL
    ]


def _domain_tests(result: Result) -> Iterator[DomainTest]:
    """Yield the tests of a result with predictions and intervals over dialogues."""
    if _column(result) != DIALOGUES or result.predictions is None:
        return
    columns = [name for name in TESTED_COLUMNS if name in result.predictions.columns]
    if columns:
        for label, ids, values in _tested_values(result):
            for column in columns:
                yield label, column, heterogeneity_p(values, _clusters(result, ids, column))


def _column(result: Result) -> str:
    """Return the column of the clusters of a result, ``dialogue`` by default."""
    interval: Mapping[str, Any] = result.signature.get("interval") or {}
    return str(interval.get("unit", DIALOGUES))


def with_unit(result: Result, column: str) -> Result:
    """Return a result whose signature states the column of its clusters; InputError without the column."""
    table = result.predictions
    if table is None or column not in table.columns:
        missing = "its predictions are missing" if table is None else f"no column {column}"
        message = f"{missing}; compute it again with giccs eval --force"
        raise InputError(Problem(f"{model_of(result)}, {result.task}", None, message))
    interval = {**(result.signature.get("interval") or {}), "unit": column}
    signature: Any = {**result.signature, "interval": interval}
    return replace(result, signature=signature)


def _clusters(result: Result, dialogue_ids: Sequence[str], column: str) -> Clusters:
    assert result.predictions is not None
    pairs = result.predictions.select("dialogue_id", column).unique("dialogue_id")
    name_of = dict(pairs.rows())
    return Clusters.named([name_of[name] or "" for name in dialogue_ids], CLUSTERS[column])


def _pairwise_arrays(result: Result) -> tuple[polars.DataFrame, list[str], NDArray[np.intp]]:
    """Return the rows with predictions, the ids of their dialogues, and the index of each item's dialogue."""
    assert result.predictions is not None
    table = result.predictions.filter(~result.predictions["prediction"].is_nan())
    ids, dialogue = np.unique(table["dialogue_id"].to_numpy(), return_inverse=True)
    return table, ids.tolist(), dialogue.ravel()


def _pairwise(result: Result) -> Result:
    assert result.predictions is not None
    if math.isnan(result.metrics["spearman"].value):
        return replace(result, groups=())
    table, ids, dialogue = _pairwise_arrays(result)
    prediction, score = (table[name].to_numpy() for name in ("prediction", "score"))
    clusters = clusters_of(result, ids)
    items = table["item_id"].to_list()
    estimates = correlations(prediction, score, dialogue, items=items, clusters=clusters)
    if ORDERS[0] in table.columns:
        orders = table.select(ORDERS).to_numpy()
        estimates |= order_metrics(orders, score, dialogue, clusters=clusters)
    n_excluded = len(result.predictions) - len(table)
    estimates = with_excluded(estimates, n_excluded, "pairs", "an utterance")
    return replace(result, metrics={**result.metrics, **estimates}, groups=())


def _choices(result: Result) -> Result:
    conditions = {
        str(group.by["history"]): group for group in result.groups if set(group.by) == {"history"}
    }
    values = {history: dialogue_values(result, history) for history in conditions}
    groups = tuple(
        replace(group, metrics=_choice_metrics(result, group.metrics, [values[history]]))
        for history, group in conditions.items()
    )
    metrics = _choice_metrics(result, result.metrics, [*values.values()])
    return replace(result, metrics=metrics, groups=groups)


def _choice_metrics(
    result: Result, stored: Mapping[str, Estimate], conditions: Sequence[DialogueValues]
) -> dict[str, Estimate]:
    """Return metrics, averaged over conditions, or their difference, with intervals over clusters."""
    ids = conditions[0].ids
    clusters = clusters_of(result, ids)
    assert clusters is not None
    metrics = {}
    for name, estimate in stored.items():
        first, *others = (each.values[name.removesuffix("_difference")] for each in conditions)
        if math.isnan(estimate.value):
            metrics[name] = estimate
            continue
        mean = np.mean([first, *others], axis=0)
        if name == "rank_spearman_difference":
            new = mean_over_dialogues(first - others[0], clusters=clusters)
        elif name.endswith("_difference"):
            new = paired_accuracies(first, others[0], clusters=clusters)
        elif name == "rank_spearman":
            new = mean_over_dialogues(mean, bounds=CORRELATION_BOUNDS, clusters=clusters)
        else:
            defined = ~np.isnan(mean)
            new = share_over_clusters(mean[defined], clusters.select(defined))
        metrics[name] = _with_interval(estimate, new)
    return metrics


def _with_interval(stored: Estimate, new: Estimate) -> Estimate:
    """Return a stored estimate with the interval, standard error and test of a new one."""
    reason = "; ".join(dict.fromkeys(filter(None, [stored.reason, new.reason])))
    numbers = {name: new.extra[name] for name in ("stderr", "p", "test") if name in new.extra}
    return replace(
        stored, low=new.low, high=new.high, reason=reason, extra={**stored.extra, **numbers}
    )


def _tested_values(result: Result) -> Iterator[tuple[str, list[str], Floats]]:
    """Yield a label, ids of dialogues and their values for the test of clusters."""
    kind = result_kind(result.task).tables
    if kind == "pairs" and not math.isnan(result.metrics["spearman"].value):
        table, ids, dialogue = _pairwise_arrays(result)
        ranks = [table[name].rank().to_numpy() for name in ("prediction", "score")]
        x, y = ((each - each.mean()) / each.std() for each in ranks)
        terms = x * y - np.mean(x * y) * (x**2 + y**2) / 2
        history = history_of(result)
        label = f"{model_of(result)}{f', {history} history' if history else ''}: Spearman ρ"
        yield label, ids, np.bincount(dialogue, terms).astype(np.float64)
    elif kind == "choices":
        for group in result.groups:
            if set(group.by) == {"history"} and not math.isnan(group.metrics["accuracy"].value):
                ids, correct = correct_answers(result, str(group.by["history"]))
                label = f"{model_of(result)}, {group.by['history']} history: accuracy"
                yield label, ids, correct


CLUSTERED: Mapping[str, Callable[[Result], Result]] = {"pairs": _pairwise, "choices": _choices}
"""Tables of a kind of results -> function that computes their intervals over clusters."""
