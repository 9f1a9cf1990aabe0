"""Correlations of models with people's scores, where a model judge scored all dialogues and people a part.

A benchmark with the scores of a judge measures the agreement with the judge. People scored a random part of
the dialogues, P; U are the others. With the same metric computed from people's scores on P (h), from the
judge's scores on P (f_P) and on U (f_U),

    θ = h - λ (f_P - f_U)

on the scale of Fisher's z (PPI++, Angelopoulos, Duchi and Zrnic 2023). f_P and f_U estimate the same, so θ
estimates the metric against people's scores on all dialogues of the population, whatever the bias of the
judge. The variance is V(h) - 2 λ C(h, f_P) + λ² (V(f_P) + V(f_U)), with variances and the covariance from the
jackknife over dialogues (`giccs.measures.metrics`); λ in [0, 1] minimises it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.clusters import few_clusters_note, t_quantile, too_few_clusters_note
from giccs.measures.metrics import (
    CORRELATION_BOUNDS,
    WEIGHTED_CORRELATIONS,
    Estimate,
    Statistic,
    correlations,
    leave_out_weights,
    to_unbounded,
)

__all__ = ["PoweredCorrelation", "powered_correlations"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class PoweredCorrelation:
    """A correlation of a model with the scores of a judge and with those of people."""

    judge: Estimate
    """With the judge's scores, over all dialogues."""
    people: Estimate
    """With people's scores, over their dialogues."""
    powered: Estimate
    """Prediction-powered correlation with people's scores; as `people`, with a reason, if it is undefined."""
    weight: float
    """λ; NaN if undefined."""
    people_dialogues: int
    judge_dialogues: int
    """Number of dialogues that only the judge scored."""

    @property
    def equivalent_dialogues(self) -> float:
        """Number of dialogues that people alone would have to score for the width on Fisher's scale."""
        alone, powered = _half_width(self.people), _half_width(self.powered)
        return self.people_dialogues * (alone / powered) ** 2 if powered > 0 else math.nan

    def document(self) -> dict[str, Any]:
        """Return the correlations as a dict."""
        return {
            "judge": self.judge.document(),
            "people": self.people.document(),
            "prediction_powered": self.powered.document(),
            "lambda": self.weight,
            "dialogues": {"people": self.people_dialogues, "judge_alone": self.judge_dialogues},
            "equivalent_dialogues": self.equivalent_dialogues,
        }


def powered_correlations(
    prediction: Floats,
    judge: Floats,
    people: Floats,
    dialogue: Ints,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, PoweredCorrelation]:
    """Correlate predictions with people's scores of a random part of the dialogues, with a judge's of all.

    prediction, judge, people: (N,) numbers; `people` is NaN for dialogues that people did not score.
    Dialogues of which people scored some of the items are excluded. dialogue: (N,) indices of the dialogues.
    Metrics, `resamples` and `seed` are those of `giccs.measures.metrics.correlations`.

    With fewer than 5 dialogues of people or of the judge alone, or a metric that is undefined without a
    dialogue, the prediction-powered correlation is people's, with the reason. Fewer than 20 dialogues of
    people give a note.

    >>> from giccs.benchmark import read_benchmark
    >>> data = read_benchmark("giccs-sample").items
    >>> judge = np.array([item.score for item in data])
    >>> dialogue = np.unique([item.dialogue_id for item in data], return_inverse=True)[1]
    >>> people = np.where(dialogue < 30, judge, np.nan)  # a perfect judge
    >>> lengths = np.array([float(len(item.utterance)) for item in data])
    >>> rho = powered_correlations(lengths, judge, people, dialogue)["spearman"]
    >>> rho.people_dialogues, rho.judge_dialogues, round(rho.weight, 1)
    (30, 30, 0.4)
    """
    is_scored = ~np.isnan(people)
    n_scored = np.bincount(dialogue, is_scored)
    is_complete = n_scored == np.bincount(dialogue)
    by_people = is_complete[dialogue]
    by_judge_alone = (n_scored == 0)[dialogue]
    settings: dict[str, Any] = {"resamples": resamples, "seed": seed}
    judged = correlations(prediction, judge, _consecutive(dialogue), **settings)
    of_people = _Dialogues(prediction[by_people], people[by_people], dialogue[by_people])
    alone = of_people.correlations(settings)
    samples = (
        of_people,
        _Dialogues(prediction[by_people], judge[by_people], dialogue[by_people]),
        _Dialogues(prediction[by_judge_alone], judge[by_judge_alone], dialogue[by_judge_alone]),
    )
    estimates = {}
    for name in WEIGHTED_CORRELATIONS:
        powered, weight = _powered(name, alone[name], samples, settings)
        counts = samples[0].count, samples[2].count
        estimates[name] = PoweredCorrelation(judged[name], alone[name], powered, weight, *counts)
    return estimates


@dataclass(frozen=True, eq=False)
class _Dialogues:
    """Predictions and scores of the items of some dialogues."""

    prediction: Floats
    score: Floats
    dialogue: Ints

    @property
    def count(self) -> int:
        """Number of dialogues."""
        return len(np.unique(self.dialogue))

    def correlations(self, settings: Mapping[str, Any]) -> dict[str, Estimate]:
        """Return the correlations over these dialogues alone."""
        return correlations(self.prediction, self.score, _consecutive(self.dialogue), **settings)

    def jackknife(self, name: str, settings: Mapping[str, Any]) -> tuple[float, Floats]:
        """Return Fisher's z of a metric, and (G,) deviations of its jackknife replicates from their mean.

        The variance of z is (G - 1) / G times the sum of the squared deviations.
        """
        statistic: Statistic = WEIGHTED_CORRELATIONS[name](
            self.prediction, self.score, _consecutive(self.dialogue)
        )
        value = statistic(np.ones((1, self.count)))
        replicates = [statistic(w) for w in leave_out_weights(self.count, **settings)]
        z = to_unbounded(np.concatenate([value, *replicates]), CORRELATION_BOUNDS)
        return float(z[0]), z[1:] - z[1:].mean()


def _consecutive(dialogue: Ints) -> Ints:
    return np.unique(dialogue, return_inverse=True)[1].ravel()


def _powered(
    name: str,
    alone: Estimate,
    samples: tuple[_Dialogues, _Dialogues, _Dialogues],
    settings: Mapping[str, Any],
) -> tuple[Estimate, float]:
    """Return the prediction-powered correlation and λ; people's with a reason, and NaN, if undefined."""
    n_people, n_judge = samples[0].count, samples[2].count
    reason = too_few_clusters_note(n_people, "dialogues of people") or too_few_clusters_note(
        n_judge, "dialogues of the judge alone"
    )
    if reason:
        return replace(alone, reason=f"people's scores alone: {reason}"), math.nan
    (h, of_h), (f, of_f), (u, of_u) = (sample.jackknife(name, settings) for sample in samples)
    if math.isnan(alone.low) or not np.isfinite([h, f, u, *of_h, *of_f, *of_u]).all():
        reason = "undefined or at its bound without some of the dialogues"
        return replace(alone, reason=f"people's scores alone: {reason}"), math.nan
    g = len(of_h)
    variance_of_u = (len(of_u) - 1) / len(of_u) * float(of_u @ of_u)
    variance_of_f, covariance = ((g - 1) / g * float(of_f @ other) for other in (of_f, of_h))
    total = variance_of_f + variance_of_u
    weight = min(max(covariance / total, 0.0), 1.0) if total > 0 else 0.0
    rectifier = (g - 1) / g * float(np.sum((of_h - weight * of_f) ** 2))
    further = weight**2 * variance_of_u
    noise = rectifier**2 / (g - 1) + further**2 / (len(of_u) - 1)
    variance = rectifier + further
    df = variance**2 / noise if noise > 0 else math.inf
    half = float(t_quantile(np.array([df]))[0]) * math.sqrt(variance)
    z = h - weight * (f - u)
    value, low, high = np.tanh([z, z - half, z + half]).tolist()
    return Estimate(
        value, low, high, alone.n, few_clusters_note(n_people, "dialogues of people")
    ), weight


def _half_width(estimate: Estimate) -> float:
    """Return half the width of an interval on Fisher's scale; NaN without an interval."""
    low, high = to_unbounded(np.array([estimate.low, estimate.high]), CORRELATION_BOUNDS)
    return float(high - low) / 2
