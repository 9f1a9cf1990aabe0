"""Expected reliability of a planned design, by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bws.components import components
from bws.design import fresh_rounds, make_tuples
from bws.records import Floats, Judgments
from bws.scoring import score
from bws.simulation import Model, simulate
from bws.split_half import Correlation, reliability

N_TRIALS = 10


@dataclass(frozen=True, eq=False)
class Power:
    """Expected results of a design; each value is a distribution over simulated studies."""

    tuples: int
    annotations: int
    """Total number of judgments."""
    pearson: Correlation
    """Split-half reliability: the correlation of scores from two halves of the judgments."""
    spearman: Correlation
    scores: Correlation
    """Reliability of the scores from all judgments, by `bws.components`, including the errors of the design
    and of annotators.
    """
    truth_pearson: Correlation
    """Correlation of the scores from all judgments with the true scores."""
    truth_spearman: Correlation

    def document(self) -> dict[str, Any]:
        """Return the result as plain dicts."""
        return {
            "tuples": self.tuples,
            "annotations": self.annotations,
            "reliability": {
                "pearson": self.pearson.document(),
                "spearman": self.spearman.document(),
            },
            "spearman_brown": {
                "pearson": self.pearson.spearman_brown,
                "spearman": self.spearman.spearman_brown,
            },
            "scores": self.scores.document(),
            "truth": {
                "pearson": self.truth_pearson.document(),
                "spearman": self.truth_spearman.document(),
            },
        }


def power(
    n_items: int,
    k: int,
    factor: float | None = None,
    annotators: int = 5,
    *,
    noise: float = 0.25,
    model: Model = "gumbel",
    disagreement: float = 0.0,
    careless: float = 0.0,
    fresh: bool = False,
    repeats: int = 10,
    seed: int = 0,
) -> Power:
    """Simulate a study `repeats` times; return its split-half reliability and its correlation with the truth.

    The true scores of the `n_items` items are evenly spaced from -1 to 1. Tuples of `k` items, `factor` per
    item, are made by `make_tuples` and judged by `simulate`, each by every annotator; the items are scored
    by counting. `disagreement` and `careless` are options of `simulate`: individual tastes and random
    judgments. Split-half reliability is that of `bws.reliability`, split by annotation. The halves share
    tuples and annotators, so it is higher than the reliability of the `scores`. With one annotator both are
    NaN.

    fresh: each annotator judges tuples of their own, the rounds of `fresh_rounds`, which are scored by the
    best–worst logit on counting's scale. Split-half reliability is then split by tuple, and the reliability
    of the `scores` NaN, because no tuple has two judgments. The noise is the main unknown: choose it such
    that the simulated reliability matches that of a pilot study.

    Raises ValueError for arguments out of range.

    >>> result = power(50, 4, annotators=4, seed=1)
    >>> result.tuples, result.annotations
    (100, 400)
    >>> result.truth_pearson.mean > result.pearson.mean > 0.8
    True
    >>> fresh = power(50, 4, annotators=4, fresh=True, seed=1)  # as many judgments
    >>> fresh.annotations, fresh.truth_pearson.mean > result.truth_pearson.mean
    (400, True)
    """
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; expected at least 1")
    items = [f"i{n}" for n in range(n_items)]
    if fresh:
        tuples = fresh_rounds(items, k, annotators, factor=factor, seed=seed)
    else:
        tuples = make_tuples(items, k, factor=factor, seed=seed)
    truth = np.linspace(-1, 1, n_items)[[int(item[1:]) for item in tuples.items]]
    seeds = np.random.Generator(np.random.PCG64(seed)).integers(2**31, size=repeats).tolist()
    results = []
    for trial_seed in seeds:
        judgments = simulate(
            tuples,
            truth,
            annotators,
            noise=noise,
            model=model,
            disagreement=disagreement,
            careless=careless,
            seed=trial_seed,
        )
        if fresh:
            judgments = _own_rounds(judgments)
            scores = score(judgments, "best-worst-logit", scale="counting").score
        else:
            scores = score(judgments).score
        split_half = reliability(
            judgments,
            split="tuple" if fresh else "annotation",
            trials=N_TRIALS,
            seed=trial_seed,
        ).groups[0]
        truth_correlations = _correlations(scores, truth)
        results.append(
            [
                split_half.pearson.mean,
                split_half.spearman.mean,
                components(judgments.canonical).reliability,
                *truth_correlations,
            ]
        )
    columns = [Correlation(column) for column in np.array(results).T]
    return Power(len(tuples), len(judgments), *columns)


def _own_rounds(judgments: Judgments) -> Judgments:
    """Return the judgments of each annotator in the round of the same number."""
    round_of = judgments.tuples.columns["round"].astype(np.int64) - 1
    return judgments.select(round_of[judgments.tuple_of] == judgments.annotator_of)


def _correlations(scores: Floats, truth: Floats) -> tuple[float, float]:
    """Return Pearson's and Spearman's correlation over the items with scores."""
    from scipy.stats import pearsonr, spearmanr

    is_scored = ~np.isnan(scores)
    pair = scores[is_scored], truth[is_scored]
    return float(pearsonr(*pair).statistic), float(spearmanr(*pair).statistic)
