"""Correlations with intervals that also generalise to other annotators.

An interval over dialogues generalises to other dialogues with the same annotators. Effects of an annotator in
a single dialogue, such as an opinion on one candidate, also vary between dialogues and are included. Effects
of an annotator in all dialogues are not: careless judgments, or a preference for short candidates that the
model shares. Their variance is added here, as for two-way clusters (Cameron, Gelbach and Miller 2011, J. Bus.
Econ. Stat. 29).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.base.progress import tracked
from bws.records import Judgments
from bws.stats.clusters import few_clusters_note, too_few_clusters_note
from bws.stats.estimates import Estimate
from giccs.benchmark import Benchmark
from giccs.measures.clusters import CLUSTERS, DIALOGUES, Clusters
from giccs.measures.judged_items import ACROSS_DIALOGUES_REMARK, JudgedItems, judged_items
from giccs.measures.metrics import (
    CORRELATION_BOUNDS,
    WEIGHTED_CORRELATIONS,
    correlations,
    leave_out_weights,
    to_unbounded,
)
from giccs.measures.results import Result

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

MAX_DIALOGUE_BLOCKS = 50
"""Number of groups of dialogues in the jackknife that separates annotators from dialogues."""
UNDEFINED = note("undefined or at its bound without some of the annotators: no interval")


def correlations_over_annotators(
    judgments: Judgments,
    benchmark: Benchmark,
    predictions: Sequence[Floats],
    *,
    resamples: int = 1000,
    seed: int = 0,
    clusters: Clusters | None = None,
) -> list[dict[str, Estimate]]:
    """Return per model the result of `correlations`, with intervals over dialogues and annotators.

    predictions: per model (N,), in the order of the benchmark's items. The interval is for the mean
    correlation with the scores of the same number of other annotators, over other dialogues of the same
    population. If all tuples have items of one dialogue, it also covers other tuples. ``extra`` contains the
    number of ``annotators``.

    The variance between annotators is added to the variance of Fisher's z over dialogues (`correlations`,
    with the same `resamples`, `seed` and `clusters` of the dialogues). It is (A-1)/A times the sum over A
    annotators of the squared change without the annotator (relative to the mean change), minus the variance
    of this change over clusters, by a jackknife, and at least 0. Each variance has its own t quantile, with
    A-1 degrees of freedom for the added one (`jackknife_interval`). Annotators need not have judged all
    items.

    No interval, with a reason: as in `correlations`; scores other than counting scores; fewer than five
    annotators; an item judged by a single annotator; correlations that are undefined or at a bound without an
    annotator. The reason warns of fewer than 20 annotators, judgments without annotator, and tuples with
    items of several dialogues. Raises InputError if the scores were not computed from the judgments
    (`judged_items`).

    >>> from giccs.benchmark import read_benchmark
    >>> from giccs.measures.ceiling import load_judgments
    >>> sample = read_benchmark("giccs-sample")
    >>> lengths = np.array([float(len(item.utterance)) for item in sample.items])
    >>> (metrics,) = correlations_over_annotators(load_judgments(sample), sample, [lengths])
    >>> metrics["pearson"].low < metrics["pearson"].value < metrics["pearson"].high
    True
    >>> metrics["pearson"].reason
    '5 annotators: the interval is approximate below 20'
    """
    judged_data = judged_items(judgments, benchmark)
    score = np.array([item.score for item in benchmark.items])
    every = clusters or Clusters.single(len(benchmark.dialogue_ids))
    without = _scores_without_annotator(judged_data)
    no_interval_reason = (
        _not_counting_reason(judged_data.method)
        or too_few_clusters_note(len(without), "annotators")
        or _single_annotator_reason(without)
    )
    estimates = []
    for prediction in tracked(predictions, "models", len(predictions)):
        variances = (
            {}
            if no_interval_reason
            else _variances_between_annotators(prediction, without, judged_data.dialogue, every)
        )
        added = {
            name: (variance, len(without) - 1)
            for name, variance in variances.items()
            if not math.isnan(variance)
        }
        coefficients = correlations(
            prediction, score, judged_data.dialogue,
            resamples=resamples, seed=seed, added=added, clusters=clusters,
        )  # fmt: skip
        estimates.append(
            {
                name: _with_remarks(
                    estimate, judged_data, "" if name in added else no_interval_reason or UNDEFINED
                )
                for name, estimate in coefficients.items()
            }
        )
    return estimates


def results_over_annotators(
    results: Sequence[Result],
    judgments: Judgments,
    benchmark: Benchmark,
    column: str = DIALOGUES,
) -> list[Result]:
    """Return results of pairwise STS on the benchmark with the metrics of `correlations_over_annotators`.

    column: that of `giccs.measures.clusters.CLUSTERS` whose clusters of dialogues are omitted together.
    Results on other data and those without predictions are skipped; groups are empty. Raises InputError as in
    `correlations_over_annotators`, and for predictions of items that are not in the benchmark.
    """
    usable = [
        result
        for result in results
        if result.signature.get("data") == benchmark.fingerprint and result.predictions is not None
    ]
    predictions = [_predictions(result, benchmark) for result in usable]
    clusters = None
    if column != DIALOGUES:
        name_of = {item.dialogue_id: getattr(item, column) or "" for item in benchmark.items}
        clusters = Clusters.named([name_of[i] for i in benchmark.dialogue_ids], CLUSTERS[column])
    metrics = correlations_over_annotators(judgments, benchmark, predictions, clusters=clusters)
    return [
        replace(result, metrics=new_metrics, groups=())
        for result, new_metrics in zip(usable, metrics, strict=True)
    ]


def _predictions(result: Result, benchmark: Benchmark) -> Floats:
    """Return (N,) predictions in the order of the benchmark's items."""
    assert result.predictions is not None
    prediction_of_item = dict(zip(*result.predictions["item_id", "prediction"], strict=True))
    ids = [item.item_id for item in benchmark.items]
    if prediction_of_item.keys() != set(ids):
        message = f"the items of its predictions differ from those of {benchmark.name}"
        raise InputError(Problem(result.model, None, message))
    return np.array([prediction_of_item[item_id] for item_id in ids], dtype=np.float64)


def _with_remarks(
    estimate: Estimate, judged_data: JudgedItems, no_interval_reason: str
) -> Estimate:
    """Return an estimate with remarks on its interval; without interval if `no_interval_reason` is given."""
    estimate = replace(estimate, extra={"annotators": len(judged_data.canonical.annotators)})
    if math.isnan(estimate.low):
        return estimate
    if no_interval_reason:
        return replace(estimate, low=math.nan, high=math.nan, reason=no_interval_reason)
    return estimate.with_notes(*_remarks(judged_data))


def _scores_without_annotator(judged_data: JudgedItems) -> Floats:
    """Return (A, N) counting scores of the items without each annotator; NaN for items without other
    judgments."""
    scores = np.empty((len(judged_data.canonical.annotators), len(judged_data.index)))
    for annotator in tracked(range(len(scores)), "annotators", len(scores)):
        other_rows = np.flatnonzero(judged_data.canonical.annotator_of != annotator)
        counts = judged_data.canonical.select(other_rows).counts
        with np.errstate(invalid="ignore"):
            score = (counts.best - counts.worst) / counts.appearances
        scores[annotator] = score[judged_data.index]
    return scores


def _not_counting_reason(method: str) -> str:
    if method == "counting":
        return ""
    return note(
        "the scores are those of {method}: no interval, which requires counting scores",
        method=method,
    )


def _single_annotator_reason(without: Floats) -> str:
    n_items = int(np.count_nonzero(np.isnan(without).any(axis=0)))
    if not n_items:
        return ""
    return note("{n:d} items were judged by a single annotator: no interval", n=n_items)


def _variances_between_annotators(
    prediction: Floats, without: Floats, dialogue: Ints, clusters: Clusters
) -> dict[str, float]:
    """Return by coefficient the variance of z between annotators; NaN if undefined."""
    weights = np.concatenate(
        [np.ones((1, int(dialogue.max()) + 1)), *leave_out_weights(clusters, MAX_DIALOGUE_BLOCKS)]
    )
    variances = {}
    for name, statistic in WEIGHTED_CORRELATIONS.items():
        scores = tracked(without, "annotators", len(without))
        values = np.array([statistic(prediction, score, dialogue)(weights) for score in scores])
        variances[name] = _variance_between(to_unbounded(values, CORRELATION_BOUNDS))
    return variances


def _variance_between(z: Floats) -> float:
    """Return the variance between annotators from (A, 1 + B).

    A row contains z without an annotator, for all dialogues and without each of B blocks of clusters.
    """
    n, blocks = len(z), z.shape[1] - 1
    if not blocks or not np.isfinite(z).all():
        return math.nan
    changes = z - z.mean(axis=0)
    over_dialogues = (blocks - 1) * np.var(changes[:, 1:], axis=1)
    return max(0.0, (n - 1) / n * float(np.sum(changes[:, 0] ** 2 - over_dialogues)))


def _remarks(judged_data: JudgedItems) -> Iterator[str]:
    """Yield remarks on the annotators and the design for readers of the intervals."""
    if few := few_clusters_note(len(judged_data.canonical.annotators), "annotators"):
        yield few
    if judged_data.n_anonymous:
        yield note(
            "{n:d} of {total:d} judgments have no annotator: the interval excludes differences between these "
            "annotators",
            n=judged_data.n_anonymous,
            total=len(judged_data.canonical),
        )
    if not judged_data.has_tuples_within_dialogues:
        yield ACROSS_DIALOGUES_REMARK
