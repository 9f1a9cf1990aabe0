"""The intervals of scores: estimate ± t standard errors on the scale of a method's utilities.

Standard errors are those of a method, or of the bootstrap from resampled clusters (Efron and Tibshirani
1993, chapter 6). Each of R resamples draws as many clusters as there are, with replacement, and takes all
answers of a cluster as often as it was drawn. The variance of an item's utility over those resamples in
which it appears is its variance between clusters. With clusters of two kinds (annotators and tuples) there
are R resamples of annotators, R of tuples and R of the cells where they meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bws.clusters import MIN_CLUSTERS, t_quantile
from bws.records import CanonicalJudgments
from bws.scoring.clustering import Clusters
from bws.scoring.counting import pseudo_variance
from bws.scoring.methods import METHODS, Floats, Integers, Interval, Method, Utilities

__all__ = ["Source", "bootstrap_errors", "interval_of", "interval_source"]

Source = Literal["bootstrap", "model"]
TOGETHER = 16
"""Resamples drawn at once; part of what a seed means, as the random numbers come in this order."""


def interval_source(method: str, interval: Source, bootstrap: int) -> Source | None:
    """Return what to take intervals from, None where none are wanted; ValueError where it cannot be."""
    if bootstrap < 0:
        raise ValueError(f"bootstrap is {bootstrap}; it is a number of resamples: 0 or more")
    if interval == "bootstrap":
        return "bootstrap" if bootstrap else None
    if bootstrap:
        raise ValueError(
            f"bootstrap is {bootstrap} but the interval is to come from standard errors; ask for one"
        )
    if not METHODS[method].has_stderr:
        able = ", ".join(name for name, other in METHODS.items() if other.has_stderr)
        raise ValueError(
            f"method {method} has no standard errors; use the bootstrap, or one of: {able}"
        )
    return "model"


def interval_of(method: Method, estimate: Utilities, score: Floats, clusters: Clusters) -> Interval:
    """Return the ends of estimate ± t standard errors as scores, widened to contain the score.

    t is the 97.5 % quantile of Student's t for the degrees of freedom of each standard error. NaN for items
    that fewer than `MIN_CLUSTERS` clusters judged; the notes say so.
    """
    df = np.full(len(score), np.inf) if estimate.df is None else estimate.df
    reach = t_quantile(df) * np.asarray(estimate.stderr)
    reach[clusters.too_few] = np.nan
    low = np.minimum(method.to_score(estimate.utility - reach), score)
    high = np.maximum(method.to_score(estimate.utility + reach), score)
    notes = [*estimate.notes, *_notes(low, high, clusters), *clusters.notes]
    return Interval(low, high, notes, estimate.stderr_method)


def _notes(low: Floats, high: Floats, clusters: Clusters) -> list[str]:
    notes = []
    if few := np.count_nonzero(clusters.too_few):
        notes.append(
            f"{few} items have no interval: fewer than {MIN_CLUSTERS} clusters judged them"
        )
    if same := np.count_nonzero(low == high):
        notes.append(
            f"the intervals of {same} items have no width, as the items score the same in every "
            "resample; that is not certainty"
        )
    return notes


def bootstrap_errors(
    method: Method,
    estimate: Utilities,
    answers: CanonicalJudgments,
    clusters: Clusters,
    resamples: int,
    seed: int,
    **options: float,
) -> Utilities:
    """Return the estimate with bootstrap standard errors, and notes on the resamples.

    A method that is a formula on counts costs three sparse products per resample; the others are fitted
    anew to every resample.
    """
    notes: list[str] = []

    def variance(labels: Integers) -> Floats:
        if method.formula is None:
            batches = _refitted(method, answers, labels, resamples, seed, options, notes)
        else:
            batches = _from_counts(method, answers, labels, resamples, seed)
        return _variance(batches, estimate.utility, resamples, ~clusters.too_few, notes)

    count = answers.counts
    known = 0.0 if method.formula is None else pseudo_variance(
        count.appearances, count.best, count.worst
    )  # fmt: skip
    error = clusters.error_variance(variance, known)
    return replace(
        estimate, stderr=np.sqrt(error.variance), df=error.df, stderr_method="bootstrap",
        notes=list(dict.fromkeys(notes)),
    )  # fmt: skip


def _variance(
    batches: Iterator[Floats],
    center: Floats,
    resamples: int,
    counted: NDArray[np.bool_],
    notes: list[str],
) -> Floats:
    """Return (N,) the variance of the utilities in (N, few) batches of resamples, NaN left out.

    A note says how many of the `counted` items are absent from some resamples.
    """
    present, total, squares = (np.zeros(len(center)) for _ in range(3))
    for utilities in batches:
        difference = utilities - center[:, None]
        appears = ~np.isnan(difference)
        difference[~appears] = 0
        present += appears.sum(axis=1)
        total += difference.sum(axis=1)
        squares += (difference**2).sum(axis=1)
    if (absent := (resamples - present) * counted).any():
        notes.append(
            f"{np.count_nonzero(absent)} items are absent from some of the {resamples} resamples "
            f"(at most {absent.max():.0f}); their intervals rest on the others"
        )
    n = np.where(present > 0, present, np.nan)
    variance: Floats = squares / n - (total / n) ** 2
    return np.maximum(variance, 0)


def _by_cluster(items: Integers, clusters: Integers, n: int) -> Any:
    """Return sparse (N, C) counts of `items`, (J,) or (J, K), in each cluster."""
    from scipy.sparse import coo_array

    columns = np.repeat(clusters, items.size // max(len(clusters), 1))
    entries = (np.ones(items.size), (items.ravel(), columns))
    return coo_array(entries, shape=(n, clusters.max() + 1)).tocsr()


def _from_counts(
    method: Method, answers: CanonicalJudgments, labels: Integers, resamples: int, seed: int
) -> Iterator[Floats]:
    """Yield (N, few) utilities of resamples, from the counts of each."""
    assert method.formula is not None
    n = len(answers.items)
    chosen = (
        answers.judged_items,
        answers.best_item,
        answers.worst_item,
    )
    tables = [_by_cluster(items, labels, n) for items in chosen]
    for times in _weights(int(labels.max()) + 1, resamples, seed):
        yield method.formula(*(table @ times for table in tables))


def _refitted(
    method: Method,
    answers: CanonicalJudgments,
    labels: Integers,
    resamples: int,
    seed: int,
    options: dict[str, float],
    notes: list[str],
) -> Iterator[Floats]:
    """Yield (N, 1) utilities of each resample; note how many of the fits did not converge."""
    failed = 0
    for batch in _weights(int(labels.max()) + 1, resamples, seed):
        for times in batch.T:
            rows = np.repeat(np.arange(len(answers)), times[labels])
            fitted = method.fit(answers.take(rows), clusters=None, seed=seed, **options)
            failed += not fitted.converged
            yield fitted.utility[:, None]
    if failed:
        notes.append(f"{failed} of {resamples} resamples did not converge")


def _weights(clusters: int, resamples: int, seed: int) -> Iterator[Integers]:
    """Yield (C, few) how often each cluster was drawn, until there were R columns."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for start in range(0, resamples, TOGETHER):
        few = min(TOGETHER, resamples - start)
        drawn = rng.integers(0, clusters, (few, clusters)) + clusters * np.arange(few)[:, None]
        yield np.bincount(drawn.ravel(), minlength=few * clusters).reshape(few, clusters).T
