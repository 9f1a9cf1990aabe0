"""MRR, Hits@k and mean rank (EvalRank, section 4.2), with intervals.

A pair with a text that has no vector is a miss (1 / rank = 0) and is excluded from the mean rank.

The jackknife leaves out unordered pairs, that is, both directions of a pair together. Pairs also share single
texts: the 5,514 published word pairs contain 2,774 words. Leaving out connected components of the graph of
pairs is not feasible, because one component contains 3,516 pairs. Resampling texts would triple the variance
where no text is shared. Therefore, the interval is widened by a ratio of standard errors: the one with all
pairs that share a text dependent (see `dependence`), divided by the one of unordered pairs. On the published
data the ratio is at most 1.1 for sentences and 1.3 for words.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.stats.estimates import Estimate
from giccs.evalrank.dependence import variances
from giccs.evalrank.ranking import Ranks
from giccs.measures.clusters import Clusters
from giccs.measures.metrics import SHARE_BOUNDS, jackknife_interval, leave_out_weights

HITS = (1, 3, 10)
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def estimate_metrics(
    ranks: Ranks, pairs: Indices, *, n_without_vector: int = 0, resamples: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """Return ``mrr``, ``hits@1``, ``hits@3``, ``hits@10`` and ``mean_rank`` of M pairs (M, 2).

    n_without_vector: number of background samples without a vector, which are not candidates; reported in the
        reason.

    `extra` contains ``pessimistic``, the value with all ties against the positive; ``ties``, the number of
    pairs with a different rank in that case; and, if pairs lack a vector, ``known``, the value of the other
    pairs.

    >>> ranks = Ranks(np.array([1, 2, 0]), np.array([2, 2, 0]), np.array([.9, .8, np.nan]), 9)
    >>> found = estimate_metrics(ranks, np.array([[0, 1], [1, 0], [2, 0]]), resamples=10)
    >>> found["mrr"].value, found["mrr"].n, found["mrr"].extra["known"], found["hits@1"].extra["ties"]
    (0.5, 3, 0.75, 1)
    >>> found["mean_rank"].value, found["mean_rank"].n, found["mean_rank"].reason
    (1.5, 2, '1 of 3 pairs are excluded: a text has no vector; 1 pairs: no interval, which needs 5')
    """
    has_rank = ranks.rank > 0
    best, worst = _metric_values(ranks.rank), _metric_values(ranks.pessimistic)
    if not has_rank.any():
        reason = (
            note("no pair has a vector for both texts")
            if len(pairs)
            else note("there are no pairs")
        )
        undefined = Estimate(math.nan, math.nan, math.nan, len(pairs), reason)
        return dict.fromkeys(best, undefined)
    missing = len(pairs) - int(np.count_nonzero(has_rank))
    ties = int(np.count_nonzero(ranks.pessimistic > ranks.rank))
    metrics = {}
    for name, values in best.items():
        included = has_rank if name == "mean_rank" else np.ones_like(has_rank)
        extra = {"pessimistic": float(worst[name][included].mean()), "ties": ties}
        if missing and name != "mean_rank":
            extra["known"] = float(values[has_rank].mean())
        notes = []
        if missing and name == "mean_rank":
            notes.append(
                note(
                    "{n:d} of {total:d} pairs are excluded: a text has no vector",
                    n=missing,
                    total=len(pairs),
                )
            )
        elif missing:
            notes.append(
                note(
                    "{n:d} of {total:d} pairs are misses: a text has no vector",
                    n=missing,
                    total=len(pairs),
                )
            )
        if n_without_vector:
            notes.append(
                note("{n:d} background texts have no vector and are excluded", n=n_without_vector)
            )
        metrics[name] = _estimate_mean(
            values, included, pairs, "; ".join(notes), extra, resamples, seed
        )
    return metrics


def _metric_values(rank: NDArray[np.int64]) -> dict[str, Floats]:
    """Return the (M,) values that are averaged, by metric."""
    has_rank = rank > 0
    hits = {f"hits@{k}": has_rank & (rank <= k) for k in HITS}
    values = {"mrr": has_rank / np.maximum(rank, 1), **hits, "mean_rank": rank}
    return {name: column.astype(np.float64) for name, column in values.items()}


def _estimate_mean(
    values: Floats,
    included: NDArray[np.bool_],
    pairs: Indices,
    reason: str,
    extra: dict[str, Any],
    resamples: int,
    seed: int,
) -> Estimate:
    """Return the mean of the included values, with an interval widened for pairs that share texts."""
    mean, n = float(values[included].mean()), int(np.count_nonzero(included))
    units = _unordered_pairs(pairs)
    _, unit_index = np.unique(units[included], return_inverse=True)
    sums, numbers = np.bincount(unit_index, values[included]), np.bincount(unit_index)
    bounds = SHARE_BOUNDS if float(np.max(values)) <= 1 else None
    clusters = Clusters.single(len(sums), "pairs")
    estimate = jackknife_interval(
        mean,
        (
            (weights @ sums) / (weights @ numbers)
            for weights in leave_out_weights(clusters, resamples, seed)
        ),
        n,
        clusters,
        reason,
        bounds=bounds,
        widening=_interval_widening((values - mean) * included, pairs),
    )
    low = estimate.low if bounds else float(np.maximum(estimate.low, 1.0))  # the minimum rank
    return replace(estimate, low=low, extra=extra)


def _unordered_pairs(pairs: Indices) -> Indices:
    """Return (M,) numbers of the unordered pairs."""
    _, unit = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)
    return np.asarray(unit.ravel(), dtype=np.intp)


def _interval_widening(contributions: Floats, pairs: Indices) -> float:
    """Return the factor by which dependence of pairs that share a text increases the standard error."""
    pair_variances = variances(contributions, *pairs.T)
    return (
        math.sqrt(max(1.0, pair_variances.shared_text / pair_variances.same_pair))
        if pair_variances.same_pair > 0
        else 1.0
    )
