"""Paired tests of all pairs of models on the same items.

Correlations: a paired t-test over dialogues. The standard error of the difference of two correlations is
that of the jackknife that leaves out one dialogue at a time (Efron and Tibshirani 1993, section 11.5),
with D - 1 degrees of freedom. The ranks are computed anew without the dialogue, so that the scales of the
predictions are of no importance, and both models lose the same dialogue, so that what they have in common
cancels. Accuracies: the exact McNemar test, since a dialogue is one question.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bws.clusters import too_few_clusters
from giccs.measures.comparison import paired_shares
from giccs.measures.detectable import (
    ALPHA,
    dialogues_needed,
    mcnemar_detectable,
    questions_needed,
    t_detectable,
)
from giccs.measures.leaderboard import PairDifference
from giccs.measures.metrics import Statistic, rank_correlation_inside, weighted_spearman
from giccs.measures.multiplicity import benjamini_hochberg, holm

__all__ = ["accuracy_pairs", "spearman_pairs", "within_dialogue_pairs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

CHUNK = 50_000
"""Weights of items held at a time: as many as a cache holds."""
ROUNDING = 1e-12
"""Standard error at and below which two models do not differ in any dialogue."""


def spearman_pairs(
    predictions: Floats, score: Floats, dialogue: Ints, target: float
) -> list[PairDifference]:
    """Compare Spearman's rho over all items.

    predictions: (M, N), of each model; score, dialogue: (N,), the latter indices 0 … D-1, each used;
    target: difference for which dialogues are planned. Returns the pairs (0, 1), (0, 2) … (M-2, M-1).
    """
    n_dialogues, n_pairs = int(dialogue.max()) + 1, math.comb(len(predictions), 2)
    rho, without = np.empty(len(predictions)), np.empty((len(predictions), n_dialogues))
    for model, prediction in enumerate(predictions):
        statistic = weighted_spearman(prediction, score, dialogue)
        rho[model] = statistic(np.ones((1, n_dialogues)))[0]
        without[model] = _leave_one_out(statistic, n_dialogues, len(score))
    pairs = []
    for first, second in combinations(range(len(predictions)), 2):
        jackknife = without[first] - without[second]
        variance = (n_dialogues - 1) ** 2 / n_dialogues * np.var(jackknife, ddof=1)
        pair = PairDifference(first, second, float(rho[first] - rho[second]), n_dialogues)
        pairs.append(_t_tested(pair, math.sqrt(variance), target, n_pairs))
    return _adjusted(pairs)


def within_dialogue_pairs(
    predictions: Floats, score: Floats, dialogue: Ints, target: float
) -> list[PairDifference]:
    """Compare the mean over dialogues of the rho within them; arrays as in `spearman_pairs`.

    A pair is compared over the dialogues where the rho of both is defined.
    """
    rho = [rank_correlation_inside(prediction, score, dialogue) for prediction in predictions]
    pairs = []
    for first, second in combinations(range(len(rho)), 2):
        difference = rho[first] - rho[second]
        defined = difference[~np.isnan(difference)]
        if not len(defined):
            reason = "no dialogue in which both are defined"
            pairs.append(PairDifference(first, second, math.nan, 0, reason=reason))
            continue
        pair = PairDifference(first, second, float(np.mean(defined)), len(defined))
        stderr = float(np.std(defined, ddof=1)) / math.sqrt(len(defined)) if pair.n > 1 else 0.0
        pairs.append(_t_tested(pair, stderr, target, math.comb(len(rho), 2)))
    return _adjusted(pairs)


def accuracy_pairs(
    correct: Floats, score: Floats, dialogue: Ints, target: float
) -> list[PairDifference]:
    """Compare accuracies by the exact McNemar test.

    correct: (M, D), 1 for a correct answer and 0 for another. The interval is that of `paired_shares`;
    score and dialogue are not used.
    """
    n_pairs = math.comb(len(correct), 2)
    return _adjusted(
        [
            _mcnemar_tested(first, second, correct, target, n_pairs)
            for first, second in combinations(range(len(correct)), 2)
        ]
    )


def _leave_one_out(statistic: Statistic, n_dialogues: int, n_items: int) -> Floats:
    """Return (D,) a statistic without each of the dialogues."""
    rows = max(1, CHUNK // n_items)
    parts = []
    for start in range(0, n_dialogues, rows):
        weights = np.ones((min(rows, n_dialogues - start), n_dialogues))
        weights[np.arange(len(weights)), start + np.arange(len(weights))] = 0
        parts.append(statistic(weights))
    return np.concatenate(parts)


def _t_tested(pair: PairDifference, stderr: float, target: float, n_pairs: int) -> PairDifference:
    """Return a pair with interval, p and power of the t-test; with the reason where there is none."""
    from scipy.special import stdtr, stdtrit

    if reason := _why_untested(pair, stderr):
        return replace(pair, reason=reason)
    half = float(stdtrit(pair.n - 1, 1 - ALPHA / 2)) * stderr
    return replace(
        pair,
        low=pair.value - half,
        high=pair.value + half,
        stderr=stderr,
        p=2 * float(stdtr(pair.n - 1, -abs(pair.value) / stderr)),
        detectable=t_detectable(stderr, pair.n),
        needed=dialogues_needed(stderr, pair.n, target),
        needed_all_pairs=dialogues_needed(stderr, pair.n, target, alpha=ALPHA / n_pairs),
    )


def _why_untested(pair: PairDifference, stderr: float) -> str:
    if few := too_few_clusters(pair.n, "dialogues"):
        return few
    if math.isnan(stderr):
        return "a correlation is not defined without one of the dialogues: no test"
    if stderr <= ROUNDING:
        return "the difference is the same in every dialogue: no standard error, no test"
    return ""


def _mcnemar_tested(
    first: int, second: int, correct: Floats, target: float, n_pairs: int
) -> PairDifference:
    shares = paired_shares(correct[first] == 1, correct[second] == 1)
    pair = PairDifference(first, second, shares.value, shares.n)
    discordant = (shares.extra["only_first"] + shares.extra["only_second"]) / shares.n
    if few := too_few_clusters(pair.n, "dialogues"):
        return replace(pair, reason=few)
    tested = replace(
        pair, low=shares.low, high=shares.high, stderr=shares.extra["stderr"], p=shares.extra["p"]
    )
    if not discordant:
        return replace(tested, reason="both are correct on the same questions: no power is known")
    return replace(
        tested,
        detectable=mcnemar_detectable(pair.n, discordant),
        needed=questions_needed(discordant, target),
        needed_all_pairs=questions_needed(discordant, target, alpha=ALPHA / n_pairs),
    )


def _adjusted(pairs: list[PairDifference]) -> list[PairDifference]:
    p = np.array([pair.p for pair in pairs])
    return [
        replace(pair, p_holm=float(by_holm), p_bh=float(by_bh))
        for pair, by_holm, by_bh in zip(pairs, holm(p), benjamini_hochberg(p), strict=True)
    ]
