"""How well do predictions fit the labels of C-STS? Correlations, and which row of a pair is the more similar.

The two rows of a sentence pair share their sentences, so they are not independent: intervals are
over sentence pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from giccs.csts.records import LABELS, Instance
from giccs.measures.comparison import clustered_share
from giccs.measures.metrics import Estimate, Floats, correlations

__all__ = ["csts_metrics", "hidden_metrics", "over_pairs"]

METRICS = ("spearman", "pearson", "pair_accuracy")


def csts_metrics(
    prediction: Floats, instances: Sequence[Instance], *, resamples: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """Measure predictions (N,), on any scale, by the labels of N instances; rows without one do not count.

    ``spearman`` and ``pearson`` are over all labelled rows (C-STS, section 5). ``pair_accuracy`` is ours: of
    the sentence pairs of exactly two labelled rows, whose labels differ, the share where the row with the
    higher label has the higher prediction. Equal predictions count half; their number is ``ties``, that of
    pairs with equal labels ``equal_labels``, that of sentence pairs with another number of rows
    ``not_two_rows``. Intervals: those of `giccs.measures.metrics.correlations`,
    over sentence pairs; of ``pair_accuracy`` Wilson's.

    NaN with a reason: fewer than two labelled rows, predictions or labels that are all the same, a prediction
    that is NaN; for ``pair_accuracy`` no such pair. An interval needs `MIN_CLUSTERS` sentence pairs.

    >>> rows = [Instance(str(n), "a", "b", "c", label, n // 2) for n, label in enumerate([5, 1, 2, 4])]
    >>> found = csts_metrics(np.array([0.9, 0.2, 0.4, 0.4]), rows, resamples=10)
    >>> round(found["spearman"].value, 3), found["pair_accuracy"].value, found["pair_accuracy"].extra["ties"]
    (0.949, 0.75, 1)
    """
    kept = [row for row, one in enumerate(instances) if one.label in LABELS]
    labelled = [instances[row] for row in kept]
    known = np.asarray(prediction, dtype=np.float64)[kept]
    _, pair = np.unique([one.pair for one in labelled], return_inverse=True)
    label = np.array([one.label for one in labelled], dtype=np.float64)
    found = correlations(known, label, pair.astype(np.intp), resamples=resamples, seed=seed)
    accuracy = _pair_accuracy(known, labelled)
    return {
        "spearman": over_pairs(found["spearman"]),
        "pearson": over_pairs(found["pearson"]),
        "pair_accuracy": over_pairs(accuracy),
    }


def hidden_metrics() -> dict[str, Estimate]:
    """Return the metrics of `csts_metrics`, NaN since the labels are hidden."""
    return {name: _undefined(0, "labels are hidden", {}) for name in METRICS}


def _pair_accuracy(prediction: Floats, instances: Sequence[Instance]) -> Estimate:
    rows: dict[int, list[int]] = {}
    for row, one in enumerate(instances):
        rows.setdefault(one.pair, []).append(row)
    twos = [two for two in rows.values() if len(two) == 2]
    apart = [
        sorted(two, key=lambda row: instances[row].label or 0)
        for two in twos
        if instances[two[0]].label != instances[two[1]].label
    ]
    counts = {"equal_labels": len(twos) - len(apart), "not_two_rows": len(rows) - len(twos)}
    if not apart:
        return _undefined(0, "no sentence pair has two different labels", {"ties": 0} | counts)
    low, high = prediction[np.array(apart).T]
    if missing := int(np.isnan(low + high).sum()):
        return _undefined(
            len(apart), f"{missing} sentence pairs have predictions that are NaN", counts
        )
    right = np.where(low == high, 0.5, (low < high).astype(np.float64))
    found = clustered_share(right, np.ones(len(right), dtype=np.intp))
    extra = {**found.extra, "chance": 0.5, "ties": int((low == high).sum()), **counts}
    return replace(found, extra=extra)


def _undefined(n: int, reason: str, extra: dict[str, int]) -> Estimate:
    return Estimate(math.nan, math.nan, math.nan, n, reason, extra)


def over_pairs(found: Estimate) -> Estimate:
    """Return the estimate with its reason in the words of this task: what is drawn are sentence pairs."""
    return replace(found, reason=found.reason.replace("dialogue", "sentence pair"))
