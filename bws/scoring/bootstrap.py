"""Bootstrap standard errors from resampled clusters (Efron and Tibshirani 1993, chapter 6).

Each of R resamples draws as many clusters as there are, with replacement, and takes all answers of a
cluster as often as it was drawn. The variance of an item's utility over those resamples in which it appears
is its variance between clusters. With clusters of two kinds (annotators and tuples) there are R resamples
of annotators, R of tuples and R of the cells where they meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.scoring.answers import Answers
from bws.scoring.clustering import Clusters
from bws.scoring.counting import pseudo_variance
from bws.scoring.methods import Floats, Integers, Method, Utilities

__all__ = ["bootstrap_errors"]

TOGETHER = 16
"""Resamples drawn at once; part of what a seed means, as the random numbers come in this order."""


def bootstrap_errors(
    method: Method,
    estimate: Utilities,
    answers: Answers,
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
    method: Method, answers: Answers, labels: Integers, resamples: int, seed: int
) -> Iterator[Floats]:
    """Yield (N, few) utilities of resamples, from the counts of each."""
    assert method.formula is not None
    n = len(answers.items)
    chosen = (
        answers.members[answers.tuple_of],
        answers.members[answers.tuple_of, answers.best],
        answers.members[answers.tuple_of, answers.worst],
    )
    tables = [_by_cluster(items, labels, n) for items in chosen]
    for times in _weights(int(labels.max()) + 1, resamples, seed):
        yield method.formula(*(table @ times for table in tables))


def _refitted(
    method: Method,
    answers: Answers,
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
