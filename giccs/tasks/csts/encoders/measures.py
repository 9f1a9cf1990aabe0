"""How well do several trainings follow the labels, on average?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from giccs.metrics import (
    Estimate,
    Statistic,
    estimated,
    resampled,
    weighted_pearson,
    weighted_spearman,
)
from giccs.tasks.csts.data import Dataset, pairs
from giccs.tasks.csts.measures import csts_metrics, over_pairs
from giccs.tasks.csts.records import Instance

__all__ = ["RESAMPLES", "mean_metrics", "paired"]

RESAMPLES = 1000
SEED = 0

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def mean_metrics(
    predictions: Sequence[Floats], instances: Sequence[Instance], *, resamples: int = RESAMPLES
) -> dict[str, Estimate]:
    """Return the means over trainings of what `csts_metrics` measures, each with its ``sd`` (n-1).

    predictions: one (N,) a training, of N labelled rows. The interval is that of the mean, over resampled
    sentence pairs: it says how much the data weigh; ``sd`` says how much the seed does. NaN where it is NaN
    for one of the trainings. Of one training it is `csts_metrics`.

    >>> rows = [Instance(str(n), "a", "b", "c", label, n // 2) for n, label in enumerate([5, 1, 4, 2])]
    >>> found = mean_metrics([np.array([4, 1, 3, 2.0]), np.array([1, 4, 3, 2.0])], rows, resamples=10)
    >>> round(found["spearman"].value, 2), round(found["spearman"].extra["sd"], 2) # of 1 and -0.8
    (0.1, 1.27)
    """
    if len(predictions) == 1:
        return csts_metrics(predictions[0], instances, resamples=resamples, seed=SEED)
    singles = [csts_metrics(one, instances, resamples=0, seed=SEED) for one in predictions]
    _, groups = np.unique([one.pair for one in instances], return_inverse=True)
    statistics = [_statistics(one, instances, groups.astype(np.intp)) for one in predictions]
    drawn = {name: [np.empty(0)] for name in singles[0]}
    for weights in resampled(int(groups.max()) + 1, resamples, SEED):
        for name, values in drawn.items():
            values.append(np.mean([of[name](weights) for of in statistics], axis=0))
    return {
        name: _mean([single[name] for single in singles], np.concatenate(values))
        for name, values in drawn.items()
    }


def paired(instances: Sequence[Instance]) -> list[tuple[Instance, Instance]]:
    """Return (high, low) of the sentence pairs with exactly two rows whose labels differ.

    Rows with equal labels have no higher one.
    """
    both = pairs(Dataset("", tuple(instances)))
    return [(high, low) for high, low in both if high.label != low.label]


def _statistics(
    prediction: Floats, instances: Sequence[Instance], groups: Ints
) -> dict[str, Statistic]:
    labels = np.array([one.label for one in instances], dtype=np.float64)
    return {
        "spearman": weighted_spearman(prediction, labels, groups),
        "pearson": weighted_pearson(prediction, labels, groups),
        "pair_accuracy": _weighted_accuracy(prediction, instances, groups),
    }


def _weighted_accuracy(
    prediction: Floats, instances: Sequence[Instance], groups: Ints
) -> Statistic:
    """Return the share of `paired` in the right order, equal predictions half, under weights of the pairs."""
    place = {id(one): row for row, one in enumerate(instances)}
    both = [(place[id(high)], place[id(low)]) for high, low in paired(instances)]
    high, low = np.array(both, dtype=np.intp).reshape(-1, 2).T
    right = (np.sign(prediction[high] - prediction[low]) + 1) / 2

    def accuracy(weights: Floats) -> Floats:
        counts = weights[:, groups[high]]
        total = counts.sum(axis=1)
        return np.where(total > 0, counts @ right / np.maximum(total, 1.0), math.nan)

    return accuracy


def _mean(singles: Sequence[Estimate], drawn: Floats) -> Estimate:
    """Return the mean of single trainings, with the interval of what resamples gave."""
    undefined = next((one for one in singles if math.isnan(one.value)), None)
    if undefined is not None:
        return replace(undefined, extra={"seeds": len(singles)})
    values = np.array([one.value for one in singles])
    n_units = 2 if len(drawn) else 1  # without resamples there was one sentence pair, or none
    found = estimated(float(values.mean()), drawn, singles[0].n, n_units)
    chance = {name: singles[0].extra[name] for name in ("chance",) if name in singles[0].extra}
    sd = float(np.std(values, ddof=1))
    return replace(over_pairs(found), extra={"sd": sd, "seeds": len(singles), **chance})
