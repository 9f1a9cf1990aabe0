"""Intervals of scores: estimate ± t standard errors on the scale of a method's utilities.

Standard errors are those of a method or of a cluster bootstrap (Efron and Tibshirani 1993, chapter 6). Each
of R resamples draws as many clusters as there are, with replacement, and repeats all judgments of a cluster
as often as it is drawn. The variance of an item's utility over the resamples that contain it is its variance
between clusters. For clusters of two kinds (annotators and tuples) there are R resamples of annotators, R of
tuples and R of their intersections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.base.progress import tracked
from bws.records import CanonicalJudgments
from bws.scoring.choice import MAX_STDERR_ITEMS, connected_labels, indices_by_label, joined_blocks
from bws.scoring.clustering import CONSERVATIVE_NOTE, MAX_OVERESTIMATE, Clusters
from bws.scoring.counting import (
    extreme_ends,
    pseudo_variance,
    squared_cluster_sums,
    unbeaten_ends,
)
from bws.scoring.methods import (
    METHODS,
    ErrorCovariance,
    Floats,
    Integers,
    Interval,
    Method,
    Utilities,
)
from bws.stats.clusters import MIN_CLUSTERS, t_quantile

IntervalSource = Literal["bootstrap", "model"]
EXTENDED = "{n:d} items near -1 or 1: their intervals reach Jeffreys' ends and are conservative"
EXTREME = 0.8
"""Score from which, without its sign, an item is near -1 or 1."""
RESAMPLE_BATCH_SIZE = 16
"""Resamples per batch; a change would change the results of a seed."""


def resolve_interval_source(
    method: str, interval: IntervalSource, bootstrap: int
) -> IntervalSource | None:
    """Return the source of intervals, or None for no intervals.

    Raises ValueError if the method does not support the source.
    """
    if bootstrap < 0:
        raise ValueError(f"bootstrap is {bootstrap}; expected a number of resamples, at least 0")
    if interval == "bootstrap":
        return "bootstrap" if bootstrap else None
    if bootstrap:
        raise ValueError(
            f"bootstrap is {bootstrap}, but interval='model' uses standard errors; choose one of them"
        )
    if not METHODS[method].has_stderr:
        supported = ", ".join(name for name, entry in METHODS.items() if entry.has_stderr)
        raise ValueError(
            f"method {method} has no standard errors; use the bootstrap or one of: {supported}"
        )
    return "model"


def compute_interval(
    method: Method,
    estimate: Utilities,
    score: Floats,
    clusters: Clusters,
    judgments: CanonicalJudgments | None = None,
) -> Interval:
    """Return estimate ± t standard errors as scores, extended to contain the score.

    t is the 97.5 % quantile of Student's t distribution with the degrees of freedom of each standard error.
    NaN, with a note, for items with fewer than `MIN_CLUSTERS` clusters.

    judgments: those of counting scores, whose intervals extend to Jeffreys' ends near -1 and 1
    (`extreme_ends` and `unbeaten_ends` of `bws.scoring.counting`).
    """
    df = np.full(len(score), np.inf) if estimate.df is None else estimate.df
    too_few = clusters.too_few[: len(score)]  # Control items are the last ones of the clusters.
    stderr = np.where(too_few, np.nan, np.asarray(estimate.stderr))
    t = t_quantile(df)
    low = np.minimum(method.to_score(estimate.utility - t * stderr), score)
    high = np.maximum(method.to_score(estimate.utility + t * stderr), score)
    notes = list(clusters.notes)
    if judgments is not None:
        appearances = judgments.counts.appearances[: len(score)]
        ends = [extreme_ends(estimate.utility, stderr, appearances, t)]
        if clusters.columns is not None:
            tuples = clusters.per_item(clusters.columns)[: len(score)]
            ends.append(unbeaten_ends(score, tuples, clusters.population_correction[: len(score)]))
        is_extended = np.zeros(len(score), dtype=bool)
        for end in ends:
            is_extended |= (end < low) | (end > high)
            low, high = np.where(end < low, end, low), np.where(end > high, end, high)
        n_extreme = int(np.count_nonzero(is_extended & (np.abs(score) > EXTREME)))
        notes += _conservative_notes(clusters, judgments, n_extreme)
    notes = [*estimate.notes, *_interval_notes(low, high, too_few), *notes]
    return Interval(low, high, notes, estimate.stderr_method)


def _conservative_notes(
    clusters: Clusters, judgments: CanonicalJudgments, n_extreme: int
) -> list[str]:
    notes = [note(EXTENDED, n=n_extreme)] if n_extreme else []
    items, counts = judgments.judged_items, judgments.counts
    mean = (counts.best - counts.worst) / np.maximum(counts.appearances, 1)
    influence = (judgments.values - mean[items]) / counts.appearances[items]
    variance = squared_cluster_sums(items, influence)
    is_conservative = clusters.overestimate(variance, judgments.tuple_of) > MAX_OVERESTIMATE
    return [*notes, CONSERVATIVE_NOTE] if is_conservative else notes


def _interval_notes(low: Floats, high: Floats, too_few: NDArray[np.bool_]) -> list[str]:
    notes = []
    if n_without_interval := np.count_nonzero(too_few):
        notes.append(
            note(
                "{n:d} items have no interval: fewer than {least:d} clusters per item",
                n=n_without_interval,
                least=MIN_CLUSTERS,
            )
        )
    if n_zero_width := np.count_nonzero(low == high):
        notes.append(
            note(
                "the intervals of {n:d} items have zero width, because all resamples give the same score; "
                "this does not imply certainty",
                n=n_zero_width,
            )
        )
    return notes


def bootstrap_errors(
    method: Method,
    estimate: Utilities,
    judgments: CanonicalJudgments,
    clusters: Clusters,
    resamples: int,
    seed: int,
    **options: float,
) -> Utilities:
    """Return the estimate with bootstrap standard errors and covariance, and notes on the resamples.

    A method with a formula on counts takes three sparse products per resample; other methods are refitted to
    every resample.
    """
    from scipy.sparse import diags_array

    notes: list[str] = []

    def batches(labels: Integers) -> Iterator[Floats]:
        if method.formula is None:
            return _refit_utilities(method, judgments, labels, resamples, seed, options, notes)
        return _utilities_from_counts(method, judgments, labels, resamples, seed)

    def variance(labels: Integers) -> Floats:
        return _variance(batches(labels), estimate.utility, resamples, ~clusters.too_few, notes)

    def between(labels: Integers) -> Any:
        utilities = np.concatenate(list(batches(labels)), axis=1)
        return _covariance(utilities - estimate.utility[:, None], connected_labels(judgments))

    counts = judgments.counts
    known_variance = np.zeros(len(judgments.items)) if method.formula is None else pseudo_variance(
        counts.appearances, counts.best, counts.worst
    )  # fmt: skip
    error = clusters.error_variance(variance, known_variance)
    return replace(
        estimate, stderr=np.sqrt(error.variance), df=error.df, stderr_method="bootstrap",
        notes=list(dict.fromkeys(notes)),
        covariance=ErrorCovariance(between, diags_array(known_variance).tocsr()),
    )  # fmt: skip


def _covariance(differences: Floats, label: Integers) -> Any:
    """Return the sparse (N, N) covariance of (N, R) utilities less their estimates, ignoring NaN.

    label: (N,) connected set of each item. 0 for items of different sets and of those that are too large.
    """
    item_sets = [items for items in indices_by_label(label) if len(items) <= MAX_STDERR_ITEMS]
    blocks = []
    for items in item_sets:
        present = ~np.isnan(differences[items])
        centred = differences[items] - np.nanmean(differences[items], axis=1, keepdims=True)
        centred[~present] = 0
        both = (present.astype(np.float64) @ present.T).clip(min=1)
        blocks.append(centred @ centred.T / both)
    return joined_blocks(item_sets, blocks, len(label))


def _variance(
    batches: Iterator[Floats],
    center: Floats,
    resamples: int,
    is_included: NDArray[np.bool_],
    notes: list[str],
) -> Floats:
    """Return (N,) the variance of the utilities in (N, batch) arrays of resamples, ignoring NaN.

    A note gives the number of items of `is_included` that are absent from some resamples.
    """
    present, total, squares = (np.zeros(len(center)) for _ in range(3))
    for utilities in batches:
        difference = utilities - center[:, None]
        appears = ~np.isnan(difference)
        difference[~appears] = 0
        present += appears.sum(axis=1)
        total += difference.sum(axis=1)
        squares += (difference**2).sum(axis=1)
    if (absent := (resamples - present) * is_included).any():
        notes.append(
            note(
                "{n:d} items are absent from some of the {resamples:d} resamples (at most {most:.0f}); their "
                "intervals are based on the others",
                n=np.count_nonzero(absent),
                resamples=resamples,
                most=absent.max(),
            )
        )
    n = np.where(present > 0, present, np.nan)
    variance: Floats = squares / n - (total / n) ** 2
    return np.maximum(variance, 0)


def _count_by_cluster(items: Integers, clusters: Integers, n: int) -> Any:
    """Return sparse (N, C) counts of `items`, (J,) or (J, K), per cluster."""
    from scipy.sparse import coo_array

    columns = np.repeat(clusters, items.size // max(len(clusters), 1))
    entries = (np.ones(items.size), (items.ravel(), columns))
    return coo_array(entries, shape=(n, clusters.max() + 1)).tocsr()


def _utilities_from_counts(
    method: Method, judgments: CanonicalJudgments, labels: Integers, resamples: int, seed: int
) -> Iterator[Floats]:
    """Yield (N, batch) utilities of resamples, computed from the counts of each."""
    assert method.formula is not None
    n = len(judgments.items)
    item_arrays = (
        judgments.judged_items,
        judgments.best_item,
        judgments.worst_item,
    )
    tables = [_count_by_cluster(items, labels, n) for items in item_arrays]
    for weights in _resample_weights(int(labels.max()) + 1, resamples, seed):
        yield method.formula(*(table @ weights for table in tables))


def _refit_utilities(
    method: Method,
    judgments: CanonicalJudgments,
    labels: Integers,
    resamples: int,
    seed: int,
    options: dict[str, float],
    notes: list[str],
) -> Iterator[Floats]:
    """Yield (N, 1) utilities of each resample; add a note on fits that did not converge."""
    n_failed = 0
    for batch in _resample_weights(int(labels.max()) + 1, resamples, seed):
        for weights in batch.T:
            rows = np.repeat(np.arange(len(judgments)), weights[labels])
            fitted = method.fit(judgments.select(rows), clusters=None, seed=seed, **options)
            n_failed += not fitted.converged
            yield fitted.utility[:, None]
    if n_failed:
        notes.append(note("{n:d} of {m:d} resamples did not converge", n=n_failed, m=resamples))


def _resample_weights(n_clusters: int, resamples: int, seed: int) -> Iterator[Integers]:
    """Yield (C, batch) draw counts of the clusters, R columns in all."""
    rng = np.random.Generator(np.random.PCG64(seed))
    starts = range(0, resamples, RESAMPLE_BATCH_SIZE)
    for start in tracked(starts, "batches of resamples", len(starts)):
        batch_size = min(RESAMPLE_BATCH_SIZE, resamples - start)
        draws = (
            rng.integers(0, n_clusters, (batch_size, n_clusters))
            + n_clusters * np.arange(batch_size)[:, None]
        )
        yield (
            np.bincount(draws.ravel(), minlength=batch_size * n_clusters)
            .reshape(batch_size, n_clusters)
            .T
        )
