"""Comparison of two conditions: shares, correlations, paired differences, and the exact McNemar test."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.stats.clusters import Z_95, t_quantile, too_few_clusters_note
from bws.stats.estimates import Estimate
from giccs.measures.clusters import Clusters
from giccs.measures.metrics import (
    Replicates,
    difference_estimate,
    infinite_reason,
    mean_difference,
    mean_over_dialogues,
    replicates,
    undefined_correlations,
    weighted_pearson,
    weighted_spearman,
    with_coarse_note,
    with_tails_note,
    within_dialogue_correlations,
)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

UNDEFINED_RHO_REASON = note(
    "predictions of one of the two, or scores, are constant, or there is one item"
)


def share(correct: Bools) -> Estimate:
    """Return the share of correct answers to independent questions (n,), with Wilson's interval.

    ``stderr`` is sqrt(p(1-p)/(n-1)), the ± of the paper's Table 6 and of lm-evaluation-harness; NaN for one
    question.

    >>> estimate = share(np.array([True] * 4 + [False] * 26))
    >>> f"{estimate.value:.3f} ± {estimate.extra['stderr']:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
    '0.133 ± 0.063 [0.053, 0.297]'
    """
    n = len(correct)
    if not n:
        reason = note("no questions")
        return Estimate(math.nan, math.nan, math.nan, 0, reason, {"stderr": math.nan})
    p = float(np.mean(correct))
    low, high = wilson(int(np.count_nonzero(correct)), n)
    stderr = math.sqrt(p * (1 - p) / (n - 1)) if n > 1 else math.nan
    return Estimate(p, low, high, n, extra={"stderr": stderr})


def clustered_share(
    correct: Floats, answers: Ints, remark: str = "", unit: str = "dialogues"
) -> Estimate:
    """Return the share of correct answers that occur in clusters, with Wilson's interval.

    correct, answers: (C,) number of correct answers per cluster, halves allowed, and of all answers, at least
    1. The interval is Wilson's for the effective number of independent answers, p(1-p) / stderr² and at most
    all answers; if the clusters do not differ, the number of clusters (Franco, Little, Louis and Slud 2019,
    J. Surv. Stat. Methodol. 7). ``stderr`` is the linearised one of the ratio over clusters (C-1).

    >>> estimate = clustered_share(np.array([1.0, 2, 0, 2, 2]), np.array([1, 2, 2, 2, 2]))
    >>> f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]", estimate.n
    ('0.778 [0.306, 0.965]', 5)
    """
    clusters, total = len(correct), float(np.sum(answers))
    if not clusters:
        reason = remark or note("no answers")
        return Estimate(math.nan, math.nan, math.nan, 0, reason, {"stderr": math.nan})
    p = float(np.sum(correct)) / total
    squares = float(np.sum((correct - p * answers) ** 2))
    stderr = math.sqrt(clusters / (clusters - 1) * squares) / total if clusters > 1 else math.nan
    low = high = math.nan
    too_few = too_few_clusters_note(clusters, unit)
    if not too_few:
        effective = min(total, p * (1 - p) / stderr**2) if stderr > 0 else clusters
        low, high = wilson(p * effective, effective)
    reason = "; ".join(filter(None, [remark, too_few]))
    return Estimate(p, low, high, clusters, reason, {"stderr": stderr})


def share_over_clusters(correct: Floats, clusters: Clusters) -> Estimate:
    """Return the mean of the shares of correct answers per dialogue (D,), for other clusters of dialogues.

    The interval is Wilson's for the effective number of answers p(1-p) / stderr², with Student's t (Korn and
    Graubard 1998, Surv. Methodol. 24); ``stderr`` and the degrees of freedom are those of the jackknife over
    clusters. If the clusters do not differ, the number is that of clusters.

    >>> domains = Clusters.named("aabbccddeeff", "domains")
    >>> estimate = share_over_clusters(np.array([1.0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1]), domains)
    >>> f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]", estimate.reason
    ('0.750 [0.422, 0.925]', '6 domains: the interval is approximate below 20')
    """
    mean = mean_over_dialogues(correct, clusters=clusters)
    stderr, p = mean.extra["stderr"], mean.value
    reason = too_few_clusters_note(clusters.count, clusters.unit, clusters.minimum)
    low = high = math.nan
    if not reason:
        effective = p * (1 - p) / stderr**2 if stderr > 0 else clusters.count
        low, high = wilson(p * effective, effective, float(t_quantile(np.array(clusters.df))))
        reason = clusters.few_note
    return Estimate(p, low, high, mean.n, reason, {"stderr": stderr})


def wilson(correct: float, n: float, quantile: float = Z_95) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share `correct` / n (Wilson 1927, J. Am. Stat. Assoc. 22).

    It is within [0, 1], and has a positive width also for shares of 0 and 1. quantile: by default that of the
    normal distribution.

    >>> [round(limit, 3) for limit in wilson(0, 10)]
    [0.0, 0.278]
    """
    p, weight = correct / n, quantile**2 / n
    middle = (p + weight / 2) / (1 + weight)
    half = quantile * math.sqrt(p * (1 - p) / n + weight / (4 * n)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value of the exact McNemar test.

    `only_first` questions are correct only under the first condition, `only_second` only under the second.
    Under the null hypothesis, p is twice the smaller tail of Binomial(only_first + only_second, 1/2), at most
    1; it is 1 without such questions.

    >>> round(mcnemar(1, 5), 5)  # 2 · (1 + 6) / 2⁶
    0.21875
    """
    from scipy.special import bdtr

    smaller, n_discordant = min(only_first, only_second), only_first + only_second
    return min(1.0, 2 * float(bdtr(smaller, n_discordant, 0.5)))


def paired_shares(first: Bools, second: Bools) -> Estimate:
    """Return the share of `first` minus that of `second`, paired by question, (n,) each.

    The interval is that of Agresti and Min (2005, Stat. Med. 24): half a question is added to each cell of
    the 2 × 2 table, so that its width is positive even if no answer differs. ``stderr`` is that of the mean
    of the n differences (n-1), ``p`` is from the exact McNemar test, and ``only_first`` and ``only_second``
    are its counts.

    >>> estimate = paired_shares(np.array([True, True, False]), np.array([True, False, False]))
    >>> estimate.extra["only_first"], estimate.extra["only_second"], estimate.extra["p"]
    (1, 0, 1.0)
    """
    n = len(first)
    b, c = int(np.count_nonzero(first & ~second)), int(np.count_nonzero(second & ~first))
    extra = {"stderr": math.nan, "p": mcnemar(b, c), "only_first": b, "only_second": c}
    if not n:
        return Estimate(math.nan, math.nan, math.nan, 0, note("no questions"), extra)
    if n > 1:
        extra["stderr"] = math.sqrt(((b + c) - (b - c) ** 2 / n) / (n * (n - 1)))
    middle = (b - c) / (n + 2)
    half = Z_95 * math.sqrt((b + c + 1) - (b - c) ** 2 / (n + 2)) / (n + 2)
    return Estimate((b - c) / n, max(-1.0, middle - half), min(1.0, middle + half), n, extra=extra)


def paired_accuracies(
    first: Floats, second: Floats, *, resamples: int = 1000, clusters: Clusters | None = None
) -> Estimate:
    """Return the mean of `first` minus that of `second`, paired by question, (n,) shares of correct answers.

    For answers that are right or wrong (1 or 0), that of `paired_shares`; for shares of several answers to a
    question, and over `clusters` of the questions, that of `mean_difference`. ``test`` is the test of ``p``:
    ``McNemar`` or ``t``.

    >>> estimate = paired_accuracies(np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]))
    >>> round(estimate.value, 3), estimate.extra["test"], estimate.extra["only_first"]
    (0.333, 'McNemar', 1)
    """
    if clusters is None and np.isin([first, second], (0, 1)).all():
        estimate, test = paired_shares(first == 1, second == 1), "McNemar"
    else:
        difference = mean_difference(first - second, resamples=resamples, clusters=clusters)
        estimate, test = difference, "t"
    counts = {
        "only_first": int(np.count_nonzero(first > second)),
        "only_second": int(np.count_nonzero(first < second)),
    }
    return replace(estimate, extra={**estimate.extra, "test": test, **counts})


def paired_correlations(
    first: Floats,
    second: Floats,
    score: Floats,
    dialogue: Ints,
    *,
    resamples: int = 1000,
    seed: int = 0,
    clusters: Clusters | None = None,
) -> dict[str, Estimate]:
    """Return the differences between the correlations of `first` and `second` with the scores.

    All arrays are (N,); `dialogue` contains indices 0 … D-1, each used. ``pearson`` and ``spearman`` are
    differences of the correlations over all items (`giccs.measures.metrics.difference_estimate`),
    ``rank_spearman`` is that of `within_dialogue_difference`. Each replicate omits the same dialogues for
    both. `resamples`, `seed`, `clusters`: as in `giccs.measures.metrics.correlations`.

    NaN with a reason for undefined correlations; intervals are NaN for few dialogues, or if the two models
    differ in few dialogues.

    >>> score, dialogue = np.array([0.1, 0.4, 0.5, 0.8]), np.array([0, 0, 1, 1])
    >>> differences = paired_correlations(score, -score, score, dialogue, resamples=10)
    >>> differences["spearman"].value, differences["rank_spearman"].value  # 1 - (-1)
    (2.0, 2.0)
    """
    for model in (first, second):
        if undefined := undefined_correlations(model, score, dialogue):
            return undefined
    n, every = len(score), clusters or Clusters.single(int(dialogue.max()) + 1)
    settings: Any = {"resamples": resamples, "seed": seed}
    pearson, spearman = (
        [replicates(of(model, score, dialogue), every, **settings) for model in (first, second)]
        for of in (weighted_pearson, weighted_spearman)
    )
    rho, other_rho = (
        within_dialogue_correlations(model, score, dialogue) for model in (first, second)
    )
    infinite = infinite_reason(first) or infinite_reason(second)
    return {
        "pearson": with_tails_note(
            difference_estimate(pearson[0] - pearson[1], n, infinite, has_heavy_tails=True),
            first,
            second,
            score,
        ),
        "spearman": difference_estimate(spearman[0] - spearman[1], n),
        "rank_spearman": within_dialogue_difference(
            rho, other_rho, np.bincount(dialogue), resamples=resamples, clusters=clusters
        ),
    }


def spearman_replicates(
    prediction: Floats,
    score: Floats,
    dialogue: Ints,
    *,
    resamples: int = 1000,
    seed: int = 0,
    clusters: Clusters | None = None,
) -> Replicates:
    """Return Spearman's rho over all items with its replicates.

    Arguments as in `paired_correlations`. Differences of the replicates of several models need no further
    ranks.
    """
    statistic = weighted_spearman(prediction, score, dialogue)
    every = clusters or Clusters.single(int(dialogue.max()) + 1)
    return replicates(statistic, every, resamples, seed)


def within_dialogue_difference(
    first: Floats,
    second: Floats,
    sizes: Ints,
    *,
    resamples: int = 1000,
    clusters: Clusters | None = None,
) -> Estimate:
    """Return the mean over dialogues of the difference of within-dialogue correlations, (D,) each.

    sizes: (D,) numbers of items. Interval and ``p`` are those of `mean_difference`. Dialogues where one of
    the two is undefined are excluded and counted in the reason, which also warns if few dialogues of two or
    three items differ (`giccs.measures.metrics.with_coarse_note`).
    """
    differences = first - second
    estimate = mean_difference(
        differences, resamples=resamples, missing_reason=UNDEFINED_RHO_REASON, clusters=clusters
    )
    is_defined = ~np.isnan(differences)
    return with_coarse_note(estimate, sizes[is_defined], differences[is_defined])
