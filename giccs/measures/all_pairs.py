"""Families of paired tests of models on the same items, adjusted for multiple testing.

The difference, interval and p-value of a pair are those of `giccs.measures.comparison`. Correlations: a
paired t-test over dialogues. The standard error of the difference of two correlations is that of the
leave-one-dialogue-out jackknife (Efron and Tibshirani 1993, section 11.5), corrected for up to 60 dialogues,
with D - 1 degrees of freedom. Ranks are recomputed for each replicate, so the scales of the predictions are
irrelevant. The same dialogue is omitted for both models, so common effects cancel. Accuracies: the exact
McNemar test, since a dialogue is one question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.base.progress import tracked
from bws.stats.estimates import Estimate
from bws.stats.multiple_tests import benjamini_hochberg, holm
from giccs.measures.clusters import Clusters
from giccs.measures.comparison import (
    paired_accuracies,
    spearman_replicates,
    within_dialogue_difference,
)
from giccs.measures.detectable import (
    ALPHA,
    dialogues_needed,
    mcnemar_detectable,
    questions_needed,
    t_detectable,
)
from giccs.measures.metrics import difference_estimate, within_dialogue_correlations

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Pairs = Sequence[tuple[int, int]]


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
    predictions: Floats,
    score: Floats,
    dialogue: Ints,
    target: float,
    pairs: Pairs | None = None,
    clusters: Clusters | None = None,
) -> list[PairDifference]:
    """Compare Spearman's rho over all items, as `giccs.measures.comparison.paired_correlations` does.

    predictions: (M, N), one row per model; score, dialogue: (N,), the latter with indices 0 … D-1, each used;
    target: difference for planning dialogues; pairs: rows that are compared, a family of tests. By default
    all: (0, 1), (0, 2) … (M-2, M-1). clusters: those of the D dialogues that are omitted together.
    """
    n_dialogues = int(dialogue.max()) + 1
    models = [
        spearman_replicates(prediction, score, dialogue, clusters=clusters)
        for prediction in tracked(predictions, "models", len(predictions))
    ]
    compared = pairs or all_pairs(len(models))
    return _adjusted(
        [
            _t_tested(
                pair,
                difference_estimate(models[pair[0]] - models[pair[1]], len(score)),
                n_dialogues,
                target,
                len(compared),
            )
            for pair in tracked(compared, "pairs of models", len(compared))
        ]
    )


def within_dialogue_pairs(
    predictions: Floats,
    score: Floats,
    dialogue: Ints,
    target: float,
    pairs: Pairs | None = None,
    clusters: Clusters | None = None,
) -> list[PairDifference]:
    """Compare the mean within-dialogue rho; arguments as in `spearman_pairs`.

    A pair is compared over the dialogues where the rho of both is defined.
    """
    rho = [
        within_dialogue_correlations(prediction, score, dialogue)
        for prediction in tracked(predictions, "models", len(predictions))
    ]
    compared, sizes = pairs or all_pairs(len(rho)), np.bincount(dialogue)
    estimates = [
        within_dialogue_difference(rho[first], rho[second], sizes, clusters=clusters)
        for first, second in tracked(compared, "pairs of models", len(compared))
    ]
    return _adjusted(
        [
            _t_tested(pair, estimate, estimate.size, target, len(compared))
            for pair, estimate in zip(compared, estimates, strict=True)
        ]
    )


def accuracy_pairs(
    correct: Floats,
    score: Floats,
    dialogue: Ints,
    target: float,
    pairs: Pairs | None = None,
    clusters: Clusters | None = None,
) -> list[PairDifference]:
    """Compare accuracies by `giccs.measures.comparison.paired_accuracies`.

    correct: (M, D), 1 for a correct answer and 0 for another, or the share of correct answers to a question.
    score and dialogue are ignored; target, pairs and clusters are those of `spearman_pairs`.
    """
    compared = pairs or all_pairs(len(correct))
    estimates = [
        paired_accuracies(correct[first], correct[second], clusters=clusters)
        for first, second in tracked(compared, "pairs of models", len(compared))
    ]
    return _adjusted(
        [
            _mcnemar_tested(pair, estimate, target, len(compared))
            if estimate.extra["test"] == "McNemar"
            else _t_tested(pair, estimate, estimate.size, target, len(compared))
            for pair, estimate in zip(compared, estimates, strict=True)
        ]
    )


def all_pairs(n: int) -> list[tuple[int, int]]:
    """Return the pairs (0, 1), (0, 2) … (n-2, n-1)."""
    return list(combinations(range(n), 2))


def _pair(pair: tuple[int, int], estimate: Estimate, n: int) -> PairDifference:
    names = ("value", "low", "high", "reason")
    numbers = {name: getattr(estimate, name) for name in names}
    numbers |= {name: estimate.extra.get(name, math.nan) for name in ("stderr", "p")}
    return PairDifference(*pair, n=n, **numbers)


def _t_tested(
    pair: tuple[int, int], estimate: Estimate, n: int, target: float, n_pairs: int
) -> PairDifference:
    """Return a difference over n dialogues with the power of the t-test, if it has an interval."""
    tested = _pair(pair, estimate, n)
    if math.isnan(tested.p):
        return tested
    df = estimate.extra["df"]
    detectable = t_detectable(tested.stderr, df + 1)
    if df + 1 < n:  # In clusters: the number of dialogues depends on that of clusters.
        return replace(tested, detectable=detectable)
    return replace(
        tested,
        detectable=detectable,
        needed=dialogues_needed(tested.stderr, n, target),
        needed_all_pairs=dialogues_needed(tested.stderr, n, target, alpha=ALPHA / n_pairs),
    )


def _mcnemar_tested(
    pair: tuple[int, int], estimate: Estimate, target: float, n_pairs: int
) -> PairDifference:
    tested = _pair(pair, estimate, estimate.size)
    discordant = (estimate.extra["only_first"] + estimate.extra["only_second"]) / estimate.size
    if not discordant:
        reason = note("both are correct on the same questions: power is unknown")
        return replace(tested, reason=reason)
    return replace(
        tested,
        detectable=mcnemar_detectable(tested.n, discordant),
        needed=questions_needed(discordant, target),
        needed_all_pairs=questions_needed(discordant, target, alpha=ALPHA / n_pairs),
    )


def _adjusted(pairs: list[PairDifference]) -> list[PairDifference]:
    p = np.array([pair.p for pair in pairs])
    return [
        replace(pair, p_holm=float(by_holm), p_bh=float(by_bh))
        for pair, by_holm, by_bh in zip(pairs, holm(p), benjamini_hochberg(p), strict=True)
    ]


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
