"""Do two conditions differ? Shares and correlations, their paired differences, the exact McNemar test."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bws.clusters import too_few_clusters_note
from giccs.measures.metrics import (
    Estimate,
    Statistic,
    correlations,
    jackknife_estimate,
    mean_over_dialogues,
    weighted_pearson,
    weighted_spearman,
    within_dialogue_correlations,
)

__all__ = [
    "clustered_share",
    "mcnemar",
    "paired_correlations",
    "paired_shares",
    "share",
    "wilson",
]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

Z = 1.959963984540054
"""The 97.5 percentile of the normal distribution: intervals are at 95 %."""
UNDEFINED_RHO_REASON = (
    "predictions of one of the two, or scores, are all the same, or there is one item"
)


def share(correct: Bools) -> Estimate:
    """Return the share of independent questions answered rightly (n,), with Wilson's interval.

    ``stderr`` is sqrt(p(1-p)/(n-1)), the ± of the paper's Table 6 and of lm-evaluation-harness; NaN for
    one question.

    >>> found = share(np.array([True] * 4 + [False] * 26))
    >>> print(f"{found.value:.3f} ± {found.extra['stderr']:.3f} [{found.low:.3f}, {found.high:.3f}]")
    0.133 ± 0.063 [0.053, 0.297]
    """
    n = len(correct)
    if not n:
        return Estimate(math.nan, math.nan, math.nan, 0, "no questions", {"stderr": math.nan})
    p = float(np.mean(correct))
    low, high = wilson(int(np.count_nonzero(correct)), n)
    stderr = math.sqrt(p * (1 - p) / (n - 1)) if n > 1 else math.nan
    return Estimate(p, low, high, n, extra={"stderr": stderr})


def clustered_share(
    correct: Floats, answers: Ints, remark: str = "", unit: str = "dialogues"
) -> Estimate:
    """Return the share of right answers where answers come in clusters, with Wilson's interval.

    right, answers: (C,) right answers of each cluster, halves allowed, and all its answers, at least 1. The
    interval is Wilson's for the effective number of independent answers, p(1-p) / stderr² and at most
    all answers; where no cluster differs from another, the number of clusters (Franco, Little, Louis and Slud
    2019, J. Surv. Stat. Methodol. 7). ``stderr`` is the linearised one of the ratio over clusters (C-1).

    >>> found = clustered_share(np.array([1.0, 2, 0, 2, 2]), np.array([1, 2, 2, 2, 2]))
    >>> f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]", found.n
    ('0.778 [0.306, 0.965]', 5)
    """
    clusters, total = len(correct), float(np.sum(answers))
    if not clusters:
        return Estimate(
            math.nan, math.nan, math.nan, 0, remark or "no answers", {"stderr": math.nan}
        )
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


def wilson(correct: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share `right` / n (Wilson 1927, J. Am. Stat. Assoc. 22).

    It keeps inside [0, 1], and has a width also where none or all are right.

    >>> [round(limit, 3) for limit in wilson(0, 10)]
    [0.0, 0.278]
    """
    p, weight = correct / n, Z * Z / n
    middle = (p + weight / 2) / (1 + weight)
    half = Z * math.sqrt(p * (1 - p) / n + weight / (4 * n)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p of the exact McNemar test.

    `only_first` questions are right under the first condition alone, `only_second` under the second
    alone. Where the conditions do not differ, each is a toss of a fair coin: p is twice the smaller
    tail of Binomial(only_first + only_second, 1/2), at most 1; 1 where there is no such question.

    >>> round(mcnemar(1, 5), 5)  # 2 · (1 + 6) / 2⁶
    0.21875
    """
    from scipy.special import bdtr

    smaller, n_discordant = min(only_first, only_second), only_first + only_second
    return min(1.0, 2 * float(bdtr(smaller, n_discordant, 0.5)))


def paired_shares(first: Bools, second: Bools) -> Estimate:
    """Return the share of `first` less that of `second`, (n,) each, question by question.

    The interval is that of Agresti and Min (2005, Stat. Med. 24): half a question is added to each
    cell of the 2 × 2 table, so that it has a width also where no answer differs. ``stderr`` is that of
    the mean of the n differences (n-1), ``p`` the exact McNemar test's, ``only_first`` and
    ``only_second`` the counts that it rests on.

    >>> found = paired_shares(np.array([True, True, False]), np.array([True, False, False]))
    >>> found.extra["only_first"], found.extra["only_second"], found.extra["p"]
    (1, 0, 1.0)
    """
    n = len(first)
    b, c = int(np.count_nonzero(first & ~second)), int(np.count_nonzero(second & ~first))
    extra = {"stderr": math.nan, "p": mcnemar(b, c), "only_first": b, "only_second": c}
    if not n:
        return Estimate(math.nan, math.nan, math.nan, 0, "no questions", extra)
    if n > 1:
        extra["stderr"] = math.sqrt(((b + c) - (b - c) ** 2 / n) / (n * (n - 1)))
    middle = (b - c) / (n + 2)
    half = Z * math.sqrt((b + c + 1) - (b - c) ** 2 / (n + 2)) / (n + 2)
    return Estimate((b - c) / n, max(-1.0, middle - half), min(1.0, middle + half), n, extra=extra)


def paired_correlations(
    first: Floats,
    second: Floats,
    score: Floats,
    dialogue: Ints,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Return how much better `first` correlates with the scores than `second`, item by item.

    All arrays are (N,); `dialogue` holds indices 0 … D-1, each used. ``pearson`` and ``spearman`` are
    differences of the correlations over all items, ``rank_spearman`` the mean over dialogues of the
    difference of the correlations inside them; dialogues where one of the two is not defined are left out
    and counted in the reason. Intervals are those of `giccs.measures.metrics.jackknife_interval`,
    difference ± t · ``stderr``; each resample leaves the same dialogues out for both, and stderr is
    corrected by `giccs.measures.metrics.quadratic_excess`. `resamples`, `seed`: as in
    `giccs.measures.metrics.correlations`.

    NaN with a reason where a correlation is not defined, and an interval of few dialogues, or where the two
    models differ in few dialogues.

    >>> score, dialogue = np.array([0.1, 0.4, 0.5, 0.8]), np.array([0, 0, 1, 1])
    >>> found = paired_correlations(score, -score, score, dialogue, resamples=10)
    >>> found["spearman"].value, found["rank_spearman"].value  # 1 - (-1)
    (2.0, 2.0)
    """
    model_correlations = [
        correlations(model, score, dialogue, resamples=0) for model in (first, second)
    ]
    for estimates in model_correlations:
        if math.isnan(estimates["pearson"].value):
            return estimates
    n, n_dialogues = len(score), int(dialogue.max()) + 1
    differences = {}
    for name, correlation in (("pearson", weighted_pearson), ("spearman", weighted_spearman)):
        first_statistic, second_statistic = (
            correlation(first, score, dialogue),
            correlation(second, score, dialogue),
        )
        differences[name] = jackknife_estimate(
            _difference(first_statistic, second_statistic),
            n,
            n_dialogues,
            paired=True,
            resamples=resamples,
            seed=seed,
        )
    within = [within_dialogue_correlations(model, score, dialogue) for model in (first, second)]
    differences["rank_spearman"] = mean_over_dialogues(
        within[0] - within[1], resamples=resamples, seed=seed, missing_reason=UNDEFINED_RHO_REASON
    )
    return differences


def _difference(first: Statistic, second: Statistic) -> Statistic:
    return lambda weights: first(weights) - second(weights)
