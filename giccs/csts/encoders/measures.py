"""How well do several trainings follow the labels, on average?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from giccs.csts.data import Dataset, pairs
from giccs.csts.measures import csts_metrics
from giccs.csts.records import Instance
from giccs.measures.comparison import clustered_share
from giccs.measures.metrics import (
    CORRELATION,
    SELECTED,
    Estimate,
    Statistic,
    jackknifed,
    weighted_pearson,
    weighted_spearman,
)

__all__ = ["RESAMPLES", "mean_metrics", "paired", "selected_on"]

RESAMPLES = 1000
SEED = 0

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def mean_metrics(
    predictions: Sequence[Floats], instances: Sequence[Instance], *, resamples: int = RESAMPLES
) -> dict[str, Estimate]:
    """Return the means over trainings of what `csts_metrics` measures, each with its ``sd`` (n-1).

    predictions: one (N,) a training, of N labelled rows. The interval is that of the mean, over
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
    labels = np.array([one.label for one in instances], dtype=np.float64)

    def correlation(weighted: Callable[[Floats, Floats, Ints], Statistic]) -> Estimate:
        statistics = [weighted(one, labels, groups.astype(np.intp)) for one in predictions]
        return jackknifed(
            lambda weights: np.mean([of(weights) for of in statistics], axis=0),
            len(labels),
            int(groups.max()) + 1,
            unit="sentence pairs",
            bounds=CORRELATION,
            resamples=resamples,
            seed=SEED,
        )

    def accuracy() -> Estimate:
        right = np.mean([_right(one, instances) for one in predictions], axis=0)
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
    """Mark metrics of the rows by which something was selected; return them unchanged if nothing was.

    >>> one = Estimate(0.5, 0.4, 0.6, 10)
    >>> selected_on({"spearman": one}, ["settings", "epoch"])["spearman"].reason
    'settings and epoch selected on this split'
    """
    if not names:
        return dict(metrics)
    remark = f"{' and '.join(names)} selected on this split"
    return {
        name: replace(
            estimate,
            reason="; ".join(filter(None, [estimate.reason, remark])),
            extra={**estimate.extra, SELECTED: list(names)},
        )
        for name, estimate in metrics.items()
    }


def paired(instances: Sequence[Instance]) -> list[tuple[Instance, Instance]]:
    """Return (high, low) of the sentence pairs with exactly two rows whose labels differ.

    Rows with equal labels have no higher one.
    """
    both = pairs(Dataset("", tuple(instances)))
    return [(high, low) for high, low in both if high.label != low.label]


def _right(prediction: Floats, instances: Sequence[Instance]) -> Floats:
    """Return (M,) whether each of `paired` is in the right order; equal predictions 0.5."""
    row = {id(one): number for number, one in enumerate(instances)}
    both = [(row[id(high)], row[id(low)]) for high, low in paired(instances)]
    high, low = np.array(both, dtype=np.intp).reshape(-1, 2).T
    right: Floats = (np.sign(prediction[high] - prediction[low]) + 1) / 2
    return right


def _with_spread(mean: Callable[[], Estimate], singles: Sequence[Estimate]) -> Estimate:
    """Return a mean with the standard deviation of single trainings; NaN where one of them is NaN."""
    undefined = next((one for one in singles if math.isnan(one.value)), None)
    if undefined is not None:
        return replace(undefined, extra={"seeds": len(singles)})
    chance = {name: singles[0].extra[name] for name in ("chance",) if name in singles[0].extra}
    sd = float(np.std([one.value for one in singles], ddof=1))
    return replace(mean(), extra={"sd": sd, "seeds": len(singles), **chance})
