"""How many of people's judgments a language model saves for the same width of the scores' intervals.

Two quantities decide. *Explained* is the share of the error variance V of people's scores that predictions
remove if the model judges very many tuples: the squared correlation of predicted and actual values within
items, over tuples and annotators. If people judge a share s of all tuples, prediction-powered scores have the
error variance a V with a = 1 - (1 - s) explained (`bws.scoring.prediction_powered`), so that a J judgments
replace J. Pooled scores (`bws.scoring.pooling`) have the error variance a V τ² / (a V + τ²), with the
residual variance τ² of people's true scores around the regression on the model's scores; a (1 - V/τ²) J
judgments replace J. With the reliability R of people's scores and the correlation r of the model's scores
with people's true scores, V/τ² = (1 - R) / (R (1 - r²)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bws.base.frames import Source, Tabular, frames_like_source
from bws.base.notes import note
from bws.base.tables import Cell, Column, ResultTable
from bws.files import as_judgments
from bws.planning import whole_number
from bws.records import CanonicalJudgments, Judgments
from bws.scoring import score
from bws.scoring.clustering import Clusters, cluster_judgments, default_cluster
from bws.scoring.methods import METHODS, Floats
from bws.scoring.pooling import MIN_POOLED_ITEMS, shrink
from bws.scoring.prediction_powered import (
    PREDICTOR,
    PoweredScores,
    Predictions,
    error_terms,
    expected_model_scores,
    items_in,
    predicted_values,
)
from bws.simulation import simulate_model, truth_of_items, without_group_means
from bws.split_half import correlate

MIN_PREDICTED_SHARE = 1e-12
"""Variance of predicted values, relative to that of people's values, below which it is a rounding error."""
SHARES = (0.1, 0.2, 0.3, 0.5, 1.0)
"""Shares of all tuples that people judge."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelSavings(Tabular):
    """People's judgments that are needed with a model, for the width of the intervals without it."""

    judgments: int
    """People's judgments without the model."""
    explained: float
    """Share of the error variance that predictions explain; NaN if unknown."""
    error_ratio: float
    """V/τ²; NaN if unknown."""
    reason: str = ""
    """Reason for unknown values."""
    reliability: float = math.nan
    """Reliability of the scores of people's judgments, if it is assumed or simulated; otherwise NaN."""

    def powered(self, share: float) -> float:
        """Return the judgments for prediction-powered scores, if people judge a share of all tuples."""
        return self.judgments * (1 - (1 - share) * self.explained)

    def pooled(self, share: float) -> float:
        """Return the judgments needed for pooled scores; NaN if V is not below τ²."""
        if not self.error_ratio < 1:
            return math.nan
        return self.powered(share) * (1 - self.error_ratio)

    def document(self) -> dict[str, Any]:
        """Return the savings as a JSON-serialisable dict."""
        rows = [
            {"share": s, "prediction_powered": self.powered(s), "pooled": self.pooled(s)}
            for s in SHARES
        ]
        return {
            "judgments": self.judgments,
            "explained": self.explained,
            "error_ratio": self.error_ratio,
            "reliability": self.reliability,
            "needed": rows,
            "notes": list(self.notes()),
        }

    def notes(self) -> Iterator[str]:
        """Yield notes on the quantities, and on missing ones."""
        if self.reason:
            yield f"savings unknown: {self.reason}"
            return
        yield note(
            "judgments by people for the interval width of {n:d} judgments by people alone, if people judge "
            "this share of all tuples and the model all of them; pooled scores are right on average over the "
            "items only",
            n=self.judgments,
        )
        yield note(
            "the model explains {share:.1%} of the error variance of people's scores; their error variance "
            "is {ratio:.2f} of the variance of their true scores around the model's",
            share=self.explained,
            ratio=self.error_ratio,
        )
        if not math.isnan(self.reliability):
            yield note(
                "reliability of the scores of {n:d} judgments: {reliability:.2f}",
                n=self.judgments,
                reliability=self.reliability,
            )
        if not self.error_ratio < 1:
            yield note(
                "no number for pooled scores: the true scores differ from the model's by less than the errors"
            )

    def result_table(self) -> ResultTable:
        """Return a row per share of tuples judged by people."""
        columns = [
            Column("share", "tuples judged by people", ".0f", " %", align="right"),
            Column("powered", "judgments, prediction-powered", ".0f", align="right"),
            Column("powered_saving", "saving", ".0f", " %", align="right"),
            Column("pooled", "judgments, pooled", ".0f", align="right"),
            Column("pooled_saving", "saving", ".0f", " %", align="right"),
        ]
        rows: list[list[Cell]] = []
        for share in SHARES:
            row: list[Cell] = [100 * share]
            for needed in (self.powered(share), self.pooled(share)):
                whole = whole_number(needed) if math.isfinite(needed) else needed
                row += [whole, 100 * (1 - needed / self.judgments)]
            rows.append(row)
        return ResultTable(columns, rows, list(self.notes()), "Savings of people's judgments", "–")


def planned_savings(
    judgments: int,
    *,
    reliability: float,
    score_correlation: float,
    within_correlation: float = 0.0,
) -> ModelSavings:
    """Return the savings in a planned study.

    judgments: people's judgments without a model. reliability: of their scores, in (0, 1).
    score_correlation: of the model's scores with people's true scores. within_correlation: of predicted and
    actual values of an item over its tuples and judgments (0.2 to 0.4 if one person judges each tuple and
    the scores correlate by 0.8). Raises ValueError for numbers out of range.

    >>> plan = planned_savings(1000, reliability=0.9, score_correlation=0.8, within_correlation=0.3)
    >>> round(plan.powered(0.2)), round(plan.pooled(1.0))
    (928, 691)
    """
    if judgments < 1:
        raise ValueError(f"judgments is {judgments}; expected at least 1")
    if not 0 < reliability < 1:
        raise ValueError(f"reliability is {reliability}; expected a number between 0 and 1")
    for name, value in (("score", score_correlation), ("within", within_correlation)):
        if not 0 <= value < 1:
            raise ValueError(f"{name}_correlation is {value}; expected a number from 0 to below 1")
    ratio = (1 - reliability) / (reliability * (1 - score_correlation**2))
    return ModelSavings(judgments, within_correlation**2, ratio, reliability=reliability)


def simulated_savings(
    people: Judgments, truth: Floats, score_correlation: float, *, seed: int = 0
) -> ModelSavings:
    """Return the savings in simulated judgments, with a simulated model that judges the same tuples.

    truth: (N,) the true score of every item. score_correlation: of the model's scores with them, see
    `bws.simulation.simulate_model`. The reliability is the squared correlation of people's scores with the
    true ones within groups. Raises ValueError as `bws.simulation.correlated_scores`; unknown as
    `pilot_savings`.
    """
    model = simulate_model(people.tuples, truth, score_correlation, seed=seed)
    scores = truth_of_items(score(people), people.tuples)
    reliability = correlate(scores, without_group_means(people.tuples, truth)) ** 2
    return replace(pilot_savings(people, model), reliability=reliability)


@frames_like_source
def pilot_savings(people: Judgments | Source, models: Judgments | Source) -> ModelSavings:
    """Return the savings estimated from a pilot study, of as many judgments as people made in it.

    people, models: judgments as for `bws.prediction_powered_scores`; the models may have judged the same
    tuples only. Unknown, with a reason, without at least 5 annotators and 10 items with intervals.
    """
    people, _ = as_judgments(people).without_controls("savings")
    models, _ = as_judgments(models).with_controls_of(people).without_controls("savings")
    people.check_not_adaptive("counting")
    judged, by_models = people.canonical, models.canonical
    clusters = cluster_judgments(people, default_cluster(judged)[0])
    unknown = ModelSavings(len(people), math.nan, math.nan, clusters.no_interval_reason)
    if unknown.reason:
        return unknown
    utility = METHODS[PREDICTOR].fit(by_models, clusters=None, seed=0).utility
    by_tuple = predicted_values(judged, items_in(judged, by_models), utility)
    score, variance = _people_alone(judged, clusters)
    model_score = expected_model_scores(judged, by_models, utility, 0)
    included = ~np.isnan(variance) & ~np.isnan(model_score)
    if np.count_nonzero(included) < MIN_POOLED_ITEMS:
        reason = note(
            "fewer than {n:d} items with intervals and judgments by the model", n=MIN_POOLED_ITEMS
        )
        return ModelSavings(len(people), math.nan, math.nan, reason)
    pooled = shrink(score[included], variance[included], model_score[included])
    tau2, error = pooled.residual_variance, float(variance[included].mean())
    return ModelSavings(
        len(people),
        _explained(judged, clusters, by_tuple),
        error / tau2 if tau2 > 0 else math.inf,
    )


def _people_alone(judged: CanonicalJudgments, clusters: Clusters) -> tuple[Floats, Floats]:
    """Return (N,) counting scores and their error variances."""
    nothing, n = np.zeros(clusters.items.shape), len(judged.items)
    none = np.zeros(n)
    predictions = Predictions(
        nothing, none, none, np.zeros(n, np.int64), np.zeros(n, np.bool_), 0, math.nan
    )
    alone = PoweredScores(judged, clusters, predictions)
    return alone.score, alone.variance


def _explained(judged: CanonicalJudgments, clusters: Clusters, by_tuple: Floats) -> float:
    """Return C² / (V(h) V(f)) of the sums over the items that have predictions; 0 for C <= 0.

    It is 0 if people judged all possible tuples: there is no variance between tuples to predict, and V(f) is
    a rounding error.
    """
    is_known = np.ones(len(judged.items), dtype=bool)
    is_known[judged.members[np.isnan(by_tuple)]] = False
    predicted = np.where(is_known[judged.members], by_tuple, 0)[judged.tuple_of]
    included, *terms = error_terms(judged, clusters, predicted)
    people, f, covariance = (term[included & is_known].sum() for term in terms)
    if not (covariance > 0 and f > MIN_PREDICTED_SHARE * people > 0):
        return 0.0
    return float(min(covariance**2 / (people * f), 1.0))
