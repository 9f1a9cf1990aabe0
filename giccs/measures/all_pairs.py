"""Paired tests of all pairs of models on the same items, adjusted for multiple testing.

Correlations: a paired t-test over dialogues. The standard error of the difference of two correlations is that
of the leave-one-dialogue-out jackknife (Efron and Tibshirani 1993, section 11.5), with D - 1 degrees of
freedom. Ranks are recomputed for each replicate, so the scales of the predictions are irrelevant. The same
dialogue is omitted for both models, so common effects cancel. Accuracies: the exact McNemar test, since a
dialogue is one question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bws.clusters import too_few_clusters_note
from giccs.measures.comparison import paired_shares
from giccs.measures.detectable import (
    ALPHA,
    dialogues_needed,
    mcnemar_detectable,
    questions_needed,
    t_detectable,
)
from giccs.measures.metrics import Statistic, weighted_spearman, within_dialogue_correlations

__all__ = [
    "PairDifference",
    "accuracy_pairs",
    "benjamini_hochberg",
    "holm",
    "rank_intervals",
    "significantly_better",
    "spearman_pairs",
    "within_dialogue_pairs",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

MAX_CHUNK_WEIGHTS = 50_000
"""Number of item weights in memory at a time; they fit into a cache."""
STDERR_TOLERANCE = 1e-12
"""Standard error up to which two models are treated as equal in all dialogues."""


@dataclass(frozen=True)
class PairDifference:
    """The difference between two rows of a leaderboard; NaN always has a reason."""

    first: int
    """Index of the row with the higher metric."""
    second: int
    value: float
    """Metric of `first` minus that of `second`, over the dialogues where both are defined."""
    n: int
    """Number of dialogues."""
    low: float = math.nan
    """Limits of the 95 % interval, not adjusted for the number of pairs."""
    high: float = math.nan
    stderr: float = math.nan
    p: float = math.nan
    """Two-sided, for this pair alone."""
    p_holm: float = math.nan
    p_bh: float = math.nan
    detectable: float = math.nan
    """Minimum detectable difference of one planned pair, with `POWER` at the level `ALPHA`."""
    needed: float = math.nan
    """Number of dialogues required to detect the target of the leaderboard, for one planned pair."""
    needed_all_pairs: float = math.nan
    """The same with the level divided by the number of pairs (Bonferroni)."""
    reason: str = ""

    @property
    def is_significant(self) -> bool:
        """Whether the models differ at the level `ALPHA`, adjusted by Holm for all pairs."""
        return self.p_holm < ALPHA


def spearman_pairs(
    predictions: Floats, score: Floats, dialogue: Ints, target: float
) -> list[PairDifference]:
    """Compare Spearman's rho over all items.

    predictions: (M, N), one row per model; score, dialogue: (N,), the latter with indices 0 … D-1, each used;
    target: difference for planning dialogues. Returns the pairs (0, 1), (0, 2) … (M-2, M-1).
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
    """Compare the mean within-dialogue rho; arrays as in `spearman_pairs`.

    A pair is compared over the dialogues where the rho of both is defined.
    """
    rho = [within_dialogue_correlations(prediction, score, dialogue) for prediction in predictions]
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
    """Compare accuracies by the exact McNemar test, or by the paired t-test for means of several answers.

    correct: (M, D), 1 for a correct answer and 0 for another, or the share of correct answers to a question.
    The interval is that of `paired_shares`, or of the t-test; score and dialogue are ignored.
    """
    n_pairs = math.comb(len(correct), 2)
    return _adjusted(
        [
            _mcnemar_tested(first, second, correct, target, n_pairs)
            if np.isin(correct[[first, second]], (0, 1)).all()
            else _means_tested(first, second, correct, target, n_pairs)
            for first, second in combinations(range(len(correct)), 2)
        ]
    )


def _leave_one_out(statistic: Statistic, n_dialogues: int, n_items: int) -> Floats:
    """Return (D,) values of a statistic, each without one dialogue."""
    rows = max(1, MAX_CHUNK_WEIGHTS // n_items)
    values = []
    for start in range(0, n_dialogues, rows):
        weights = np.ones((min(rows, n_dialogues - start), n_dialogues))
        weights[np.arange(len(weights)), start + np.arange(len(weights))] = 0
        values.append(statistic(weights))
    return np.concatenate(values)


def _t_tested(pair: PairDifference, stderr: float, target: float, n_pairs: int) -> PairDifference:
    """Return a pair with interval, p and power of the t-test, or with the reason why they are undefined."""
    from scipy.special import stdtr, stdtrit

    if reason := _untested_reason(pair, stderr):
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


def _untested_reason(pair: PairDifference, stderr: float) -> str:
    if few := too_few_clusters_note(pair.n, "dialogues"):
        return few
    if math.isnan(stderr):
        return "a correlation is undefined without one of the dialogues: no test"
    if stderr <= STDERR_TOLERANCE:
        return "the difference is the same in every dialogue: no standard error, no test"
    return ""


def _means_tested(
    first: int, second: int, values: Floats, target: float, n_pairs: int
) -> PairDifference:
    """Compare the means of one value per dialogue."""
    difference = values[first] - values[second]
    n = len(difference)
    pair = PairDifference(first, second, float(np.mean(difference)), n)
    stderr = float(np.std(difference, ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    return _t_tested(pair, stderr, target, n_pairs)


def _mcnemar_tested(
    first: int, second: int, correct: Floats, target: float, n_pairs: int
) -> PairDifference:
    shares = paired_shares(correct[first] == 1, correct[second] == 1)
    pair = PairDifference(first, second, shares.value, shares.n)
    discordant = (shares.extra["only_first"] + shares.extra["only_second"]) / shares.n
    if few := too_few_clusters_note(pair.n, "dialogues"):
        return replace(pair, reason=few)
    tested = replace(
        pair, low=shares.low, high=shares.high, stderr=shares.extra["stderr"], p=shares.extra["p"]
    )
    if not discordant:
        return replace(tested, reason="both are correct on the same questions: power is unknown")
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


def holm(p: Floats) -> Floats:
    """Return p-values (n,) adjusted by Holm (1979, Scand. J. Stat. 6): family-wise error, any dependence.

    NaN (an impossible test) stays NaN and does not count as a test.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()  # 3 · .01, 2 · .03, then at least as much
    [0.03, 0.06, 0.06]
    """
    order, n = _defined_in_order(p)
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(n, 0, -1)))
    return adjusted


def benjamini_hochberg(p: Floats) -> Floats:
    """Return p-values (n,) adjusted by Benjamini and Hochberg (1995, J. R. Stat. Soc. B 57).

    Rejecting at 0.05 limits the expected share of false rejections to 5 %. NaN as in `holm`.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(3).tolist()  # 3/1 · .01, 3/3 · .04, and less
    [0.03, 0.04, 0.04]
    """
    order, n = _defined_in_order(p)
    scaled = p[order] * n / np.arange(1, n + 1)
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return adjusted


def _defined_in_order(p: Floats) -> tuple[Ints, int]:
    n = int(np.count_nonzero(~np.isnan(p)))
    return np.argsort(p)[:n], n  # NaN is last.


def rank_intervals(better: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the lowest and highest rank (M,) of each model consistent with all pairwise decisions.

    better: (M, M), whether the row's model is significantly better than the column's. If the family-wise
    error of these decisions is 5 %, all intervals together contain the true ranks with a probability of 95 %
    (Al Mohamad, Goeman and van Zwet 2022, Biometrics 78; Mogstad, Romano, Shaikh and Wilhelm 2024, Rev. Econ.
    Stud. 91).

    >>> low, high = rank_intervals(np.array([[False, True], [False, False]]))
    >>> low.tolist(), high.tolist()
    ([1, 2], [1, 2])
    """
    return 1 + better.sum(axis=0), len(better) - better.sum(axis=1)


def significantly_better(pairs: Sequence[PairDifference], n_models: int) -> NDArray[np.bool_]:
    """Return (M, M) whether the row's model is significantly better than the column's."""
    better = np.zeros((n_models, n_models), dtype=bool)
    for pair in pairs:
        if pair.is_significant:
            first_is_better = pair.value > 0
            better[pair.first, pair.second] = first_is_better
            better[pair.second, pair.first] = not first_is_better
    return better
