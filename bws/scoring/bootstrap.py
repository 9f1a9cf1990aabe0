"""Percentile intervals from resampled clusters (Efron and Tibshirani 1993, section 13.3).

Each of R resamples draws as many clusters (annotators, or tuples) as there are, with replacement,
and takes all answers of a cluster as often as it was drawn. An item's interval goes from the 2.5 %
to the 97.5 % quantile (linearly interpolated) of its scores over those resamples in which it appears.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bws.scoring.answers import Answers
from bws.scoring.records import Floats, Integers, Interval, Method

__all__ = ["QUANTILES", "percentile_interval"]

QUANTILES = (0.025, 0.975)
TOGETHER = 16
"""Resamples drawn at once; part of what a seed means, as the random numbers come in this order."""
MOST_VALUES = 1 << 26
"""Scores of resamples that are held at once: 512 MiB."""


def percentile_interval(
    method: Method,
    answers: Answers,
    clusters: Integers,
    resamples: int,
    seed: int,
    **options: float,
) -> Interval:
    """Return the scores' 95 % intervals, and what to know of them.

    `clusters`: (J,) cluster numbers from 0. NaN for an item that only one cluster judged: no
    resample can show how its score varies. A method that is a formula on counts costs three sparse
    products a resample; the others are fitted anew to every resample.
    """
    if not len(answers):
        return Interval(np.empty(0), np.empty(0))
    shown = _by_cluster(answers.members[answers.tuple_of], clusters, len(answers.items))
    alone = np.diff(shown.indptr) < 2
    if method.formula is None:
        scores, notes = _refitted(method, answers, clusters, resamples, seed, options)
        low, high, present = _quantiles(scores)
    else:
        low, high, present = _from_counts(method, shown, answers, clusters, resamples, seed)
        notes = []
    low[alone], high[alone] = np.nan, np.nan
    return Interval(low, high, [*notes, *_notes(low, high, present, alone, resamples)])


def _by_cluster(items: Integers, clusters: Integers, n: int) -> Any:
    """Return sparse (N, C) counts of `items`, (J,) or (J, K), in each cluster."""
    from scipy.sparse import coo_array

    columns = np.repeat(clusters, items.size // max(len(clusters), 1))
    entries = (np.ones(items.size), (items.ravel(), columns))
    return coo_array(entries, shape=(n, clusters.max() + 1)).tocsr()


def _from_counts(
    method: Method, shown: Any, answers: Answers, clusters: Integers, resamples: int, seed: int
) -> tuple[Floats, Floats, Integers]:
    """Return `_quantiles` of the scores, some items after the other so that memory stays bounded."""
    assert method.formula is not None
    n = len(answers.items)
    best, worst = (
        _by_cluster(answers.members[answers.tuple_of, chosen], clusters, n)
        for chosen in (answers.best, answers.worst)
    )
    step = max(MOST_VALUES // resamples, 1)
    parts = []
    for start in range(0, n, step):
        counts = [table[start : start + step] for table in (shown, best, worst)]
        scores, done = np.empty((counts[0].shape[0], resamples)), 0
        for times in _weights(shown.shape[1], resamples, seed):  # for every part the same
            utility = method.formula(*(table @ times for table in counts))
            scores[:, done : done + times.shape[1]] = method.to_score(utility)
            done += times.shape[1]
        parts.append(_quantiles(scores))
    low, high, present = (np.concatenate(part) for part in zip(*parts, strict=True))
    return low, high, present


def _refitted(
    method: Method,
    answers: Answers,
    clusters: Integers,
    resamples: int,
    seed: int,
    options: dict[str, float],
) -> tuple[Floats, list[str]]:
    """Return (N, R) scores of each resample, and how many of the fits did not converge."""
    scores = np.empty((len(answers.items), resamples))
    failed = 0
    drawn = (times for few in _weights(clusters.max() + 1, resamples, seed) for times in few.T)
    for number, times in enumerate(drawn):
        rows = np.repeat(np.arange(len(answers)), times[clusters])
        found = method.fit(answers.take(rows), clusters=None, seed=seed, **options)
        scores[:, number] = method.to_score(found.utility)
        failed += not found.converged
    notes = [f"{failed} of {resamples} resamples did not converge"] if failed else []
    return scores, notes


def _weights(clusters: int, resamples: int, seed: int) -> Iterator[Integers]:
    """Yield (C, few) how often each cluster was drawn, until there were R columns."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for start in range(0, resamples, TOGETHER):
        few = min(TOGETHER, resamples - start)
        drawn = rng.integers(0, clusters, (few, clusters)) + clusters * np.arange(few)[:, None]
        yield np.bincount(drawn.ravel(), minlength=few * clusters).reshape(few, clusters).T


def _quantiles(scores: Floats) -> tuple[Floats, Floats, Integers]:
    """Return the quantiles of each row's numbers and how many numbers it has; sorts `scores`.

    >>> low, high, present = _quantiles(np.array([[1.0, np.nan, 0.0], [np.nan] * 3]))
    >>> low, high, present
    (array([0.025,   nan]), array([0.975,   nan]), array([2, 0]))
    """
    scores.sort(axis=1)  # NaN last
    present = scores.shape[1] - np.isnan(scores).sum(axis=1)
    last, rows = np.maximum(present - 1, 0), np.arange(len(scores))
    ends = []
    for quantile in QUANTILES:
        below = (quantile * last).astype(np.int64)
        share = quantile * last - below
        lower, upper = scores[rows, below], scores[rows, np.minimum(below + 1, last)]
        ends.append(lower + share * (upper - lower))
    return ends[0], ends[1], present


def _notes(
    low: Floats, high: Floats, present: Integers, alone: Any, resamples: int
) -> Iterator[str]:
    if alone.any():
        yield (
            f"{alone.sum()} items have no interval: a single cluster judged them, which says nothing "
            "of how their scores vary"
        )
    absent = resamples - present[~alone]
    if absent.any():
        yield (
            f"{np.count_nonzero(absent)} items are absent from some of the {resamples} resamples "
            f"(at most {absent.max()}); their intervals rest on the others"
        )
    same = np.count_nonzero(low == high)
    if same:
        yield (
            f"the intervals of {same} items have no width, as the items score the same in every "
            "resample; that is not certainty"
        )
