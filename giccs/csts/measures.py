"""Metrics of predictions of C-STS labels: correlations and pair accuracy.

The two rows of a sentence pair share their sentences and are not independent, so intervals are over sentence
pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.stats.estimates import Estimate
from giccs.csts.data import INVALID, Dataset, Instance, pairs
from giccs.measures.clusters import Clusters
from giccs.measures.comparison import clustered_share
from giccs.measures.metrics import (
    CORRELATION_BOUNDS,
    SELECTED_KEY,
    Floats,
    Statistic,
    correlations,
    jackknife_estimate,
    weighted_pearson,
    weighted_spearman,
)

METRICS = ("spearman", "pearson", "pair_accuracy")

RESAMPLES = 1000
SEED = 0

Ints = NDArray[np.intp]


def csts_metrics(
    prediction: Floats, instances: Sequence[Instance], *, resamples: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """Compare predictions (N,), on any scale, with the labels of N instances; unlabelled ones are ignored.

    ``spearman`` and ``pearson`` are over all labelled rows (C-STS, section 5). ``pair_accuracy`` is an
    addition of giccs. It is over sentence pairs of exactly two labelled rows with different labels: the share
    in which the row with the higher label has the higher prediction. Equal predictions count one half.
    ``ties`` is their number, ``equal_labels`` the number of pairs with equal labels, and ``not_two_rows`` the
    number of sentence pairs with another number of rows. Intervals are those of
    `giccs.measures.metrics.correlations` over sentence pairs, and Wilson intervals for ``pair_accuracy``.

    NaN with a reason: fewer than two labelled rows; constant predictions or labels; a prediction of NaN; for
    ``pair_accuracy``, no such pair. Intervals require `MIN_CLUSTERS` sentence pairs.

    >>> rows = [Instance(str(n), "a", "b", "c", label, n // 2) for n, label in enumerate([5, 1, 2, 4])]
    >>> metrics = csts_metrics(np.array([0.9, 0.2, 0.4, 0.4]), rows, resamples=10)
    >>> round(metrics["spearman"].value, 3), metrics["pair_accuracy"].value
    (0.949, 0.75)
    >>> metrics["pair_accuracy"].extra["ties"]
    1
    """
    labelled_rows = [
        row for row, instance in enumerate(instances) if instance.label not in (None, INVALID)
    ]
    labelled = [instances[row] for row in labelled_rows]
    predicted = np.asarray(prediction, dtype=np.float64)[labelled_rows]
    _, pair = np.unique([instance.pair for instance in labelled], return_inverse=True)
    label = np.array([instance.label for instance in labelled], dtype=np.float64)
    estimates = correlations(
        predicted,
        label,
        pair.astype(np.intp),
        resamples=resamples,
        seed=seed,
        items=[instance.uid for instance in labelled],
    )
    accuracy = _pair_accuracy(predicted, labelled)
    return {
        "spearman": over_pairs(estimates["spearman"]),
        "pearson": over_pairs(estimates["pearson"]),
        "pair_accuracy": over_pairs(accuracy),
    }


def hidden_metrics() -> dict[str, Estimate]:
    """Return the metrics of `csts_metrics` as NaN, because the labels are hidden."""
    return {name: _undefined(0, note("labels are hidden"), {}) for name in METRICS}


def _pair_accuracy(prediction: Floats, instances: Sequence[Instance]) -> Estimate:
    rows: dict[int, list[int]] = {}
    for row, instance in enumerate(instances):
        rows.setdefault(instance.pair, []).append(row)
    twos = [two for two in rows.values() if len(two) == 2]
    different_labels = [
        sorted(two, key=lambda row: instances[row].label or 0)
        for two in twos
        if instances[two[0]].label != instances[two[1]].label
    ]
    counts = {
        "equal_labels": len(twos) - len(different_labels),
        "not_two_rows": len(rows) - len(twos),
    }
    if not different_labels:
        reason = note("no sentence pair has two different labels")
        return _undefined(0, reason, {"ties": 0} | counts)
    low, high = prediction[np.array(different_labels).T]
    if missing := int((np.isnan(low) | np.isnan(high)).sum()):
        reason = note("{n:d} sentence pairs have predictions of NaN", n=missing)
        return _undefined(len(different_labels), reason, counts)
    right = np.where(low == high, 0.5, (low < high).astype(np.float64))
    estimate = clustered_share(right, np.ones(len(right), dtype=np.intp))
    extra = {**estimate.extra, "chance": 0.5, "ties": int((low == high).sum()), **counts}
    return replace(estimate, extra=extra)


def _undefined(n: int, reason: str, extra: dict[str, int]) -> Estimate:
    return Estimate(math.nan, math.nan, math.nan, n, reason, extra)


def over_pairs(estimate: Estimate) -> Estimate:
    """Return the estimate with a reason that names sentence pairs as the sampling unit."""
    return replace(estimate, reason=estimate.reason.replace("dialogue", "sentence pair"))


def mean_metrics(
    predictions: Sequence[Floats], instances: Sequence[Instance], *, resamples: int = RESAMPLES
) -> dict[str, Estimate]:
    """Return the means over trainings of the metrics of `csts_metrics`, each with its ``sd`` (n-1).

    predictions: one (N,) array per training, for N labelled rows. The interval of the mean is over sentence
    pairs and reflects the sampling of the data; ``sd`` reflects the seeds. A mean is NaN if one of its values
    is NaN. For a single training, returns `csts_metrics`.

    >>> rows = [Instance(str(n), "a", "b", "c", label, n // 2) for n, label in enumerate([5, 1, 4, 2])]
    >>> metrics = mean_metrics([np.array([4, 1, 3, 2.0]), np.array([1, 4, 3, 2.0])], rows, resamples=10)
    >>> round(metrics["spearman"].value, 2), round(metrics["spearman"].extra["sd"], 2) # of 1 and -0.8
    (0.1, 1.27)
    """
    if len(predictions) == 1:
        return csts_metrics(predictions[0], instances, resamples=resamples, seed=SEED)
    singles = [
        csts_metrics(prediction, instances, resamples=0, seed=SEED) for prediction in predictions
    ]
    _, groups = np.unique([instance.pair for instance in instances], return_inverse=True)
    labels = np.array([instance.label for instance in instances], dtype=np.float64)

    def correlation(weighted: Callable[[Floats, Floats, Ints], Statistic]) -> Estimate:
        statistics = [
            weighted(prediction, labels, groups.astype(np.intp)) for prediction in predictions
        ]
        return jackknife_estimate(
            lambda weights: np.mean([of(weights) for of in statistics], axis=0),
            len(labels),
            Clusters.single(int(groups.max()) + 1, "sentence pairs"),
            bounds=CORRELATION_BOUNDS,
            resamples=resamples,
            seed=SEED,
        )

    def accuracy() -> Estimate:
        right = np.mean([_right(prediction, instances) for prediction in predictions], axis=0)
        return clustered_share(right, np.ones(len(right), dtype=np.intp), unit="sentence pairs")

    means = {
        "spearman": lambda: correlation(weighted_spearman),
        "pearson": lambda: correlation(weighted_pearson),
        "pair_accuracy": accuracy,
    }
    return {
        name: _with_spread(mean, [single[name] for single in singles])
        for name, mean in means.items()
    }


def selected_on(metrics: Mapping[str, Estimate], names: Sequence[str]) -> dict[str, Estimate]:
    """Mark metrics of the rows used for a selection; return them unchanged if nothing was selected.

    >>> estimate = Estimate(0.5, 0.4, 0.6, 10)
    >>> selected_on({"spearman": estimate}, ["settings", "epoch"])["spearman"].reason
    'settings and epoch selected on this split'
    """
    if not names:
        return dict(metrics)
    remark = note("{unit} selected on this split", unit=" and ".join(names))
    return {
        name: replace(
            estimate.with_notes(remark), extra={**estimate.extra, SELECTED_KEY: list(names)}
        )
        for name, estimate in metrics.items()
    }


def paired(instances: Sequence[Instance]) -> list[tuple[Instance, Instance]]:
    """Return (high, low) of the sentence pairs of exactly two rows with different labels."""
    dataset_pairs = pairs(Dataset("", tuple(instances)))
    return [(high, low) for high, low in dataset_pairs if high.label != low.label]


def _right(prediction: Floats, instances: Sequence[Instance]) -> Floats:
    """Return (M,) whether each of `paired` is ordered correctly; 0.5 for equal predictions."""
    row = {id(instance): number for number, instance in enumerate(instances)}
    instance_pairs = [(row[id(high)], row[id(low)]) for high, low in paired(instances)]
    high, low = np.array(instance_pairs, dtype=np.intp).reshape(-1, 2).T
    right: Floats = (np.sign(prediction[high] - prediction[low]) + 1) / 2
    return right


def _with_spread(mean: Callable[[], Estimate], singles: Sequence[Estimate]) -> Estimate:
    """Return a mean with the standard deviation over trainings, or NaN if one of them is NaN."""
    undefined = next((metric for metric in singles if math.isnan(metric.value)), None)
    if undefined is not None:
        return replace(undefined, extra={"seeds": len(singles)})
    chance = {name: singles[0].extra[name] for name in ("chance",) if name in singles[0].extra}
    sd = float(np.std([metric.value for metric in singles], ddof=1))
    return replace(mean(), extra={"sd": sd, "seeds": len(singles), **chance})
