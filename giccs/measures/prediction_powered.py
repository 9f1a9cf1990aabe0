"""Agreement of models with people's scores, where a model judge scored all dialogues and people a part.

A benchmark with the scores of a judge measures the agreement with the judge. People scored a random part of
the dialogues, P; U are the others. With the same metric computed from people's scores on P (h), from the
judge's scores on P (f_P) and on U (f_U),

    θ = h - λ (f_P - f_U)

on the scale of Fisher's z (PPI++, Angelopoulos, Duchi and Zrnic 2023). f_P and f_U estimate the same, so θ
estimates the metric against people's scores on all dialogues of the population, whatever the bias of the
judge. The variance is V(h) - 2 λ C(h, f_P) + λ² (V(f_P) + V(f_U)), with variances and the covariance from the
jackknife over dialogues (`giccs.measures.metrics`); λ in [0, 1] minimises it. The variance of h - λ f_P is
multiplied by (G - 1) / (G - 3) for the G dialogues of people, as that of the regression estimator from two
samples, whose slope is estimated as well (Cochran 1977, Sampling Techniques, section 12.6).

The accuracy of multiple choice is a mean over dialogues of correct answers, with people's key (h) or the
judge's (f): the option with the highest score. The same formula holds without Fisher's z; the interval is
Wilson's for the number of dialogues with which people alone reach the variance of θ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.scoring.prediction_powered import MAX_RANDOM_P
from bws.stats.clusters import few_clusters_note, t_quantile, too_few_clusters_note
from bws.stats.estimates import Estimate
from giccs.measures.clusters import Clusters
from giccs.measures.comparison import share_over_clusters, wilson
from giccs.measures.metrics import (
    CONSTANT_TOLERANCE,
    CORRELATION_BOUNDS,
    WEIGHTED_CORRELATIONS,
    Statistic,
    correlations,
    degrees_of_freedom,
    leave_out_weights,
    to_unbounded,
    with_coarse_note,
    with_offsets_note,
    with_tails_note,
)

NOT_RANDOM = note(
    "the dialogues of people and those of the judge alone differ by more than chance (p < {p:g}): people's "
    "dialogues are no random part, so the prediction-powered values are biased",
    p=MAX_RANDOM_P,
)
PEOPLE_ALONE = "people's scores alone: {reason}"
Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class PoweredEstimate:
    """A correlation or accuracy of a model by the scores of a judge and by those of people."""

    judge: Estimate
    """By the judge's scores, over all dialogues."""
    people: Estimate
    """By people's scores, over their dialogues."""
    powered: Estimate
    """Prediction-powered estimate by people's scores; as `people`, with a reason, if it is undefined."""
    weight: float
    """λ; NaN if undefined."""
    people_dialogues: int
    judge_dialogues: int
    """Number of dialogues that only the judge scored."""
    equivalent_dialogues: float
    """Number of dialogues that people alone would have to score for the width of the interval."""
    random_p: float
    """P-value of people's dialogues as a random part of all dialogues; NaN if untestable."""

    def document(self) -> dict[str, Any]:
        """Return the estimates as a dict."""
        return {
            "judge": self.judge.document(),
            "people": self.people.document(),
            "prediction_powered": self.powered.document(),
            "lambda": self.weight,
            "dialogues": {"people": self.people_dialogues, "judge_alone": self.judge_dialogues},
            "equivalent_dialogues": self.equivalent_dialogues,
            "random_p": self.random_p,
        }


def powered_correlations(
    prediction: Floats,
    judge: Floats,
    people: Floats,
    dialogue: Ints,
    *,
    resamples: int = 1000,
    seed: int = 0,
    clusters: Clusters | None = None,
) -> dict[str, PoweredEstimate]:
    """Correlate predictions with people's scores of a random part of the dialogues, with a judge's of all.

    prediction, judge, people: (N,) numbers; `people` is NaN for dialogues that people did not score.
    Dialogues of which people scored some of the items are excluded. dialogue: (N,) indices of the dialogues.
    Metrics, `resamples` and `seed` are those of `giccs.measures.metrics.correlations`.

    With fewer than 5 dialogues of people or of the judge alone, or a metric that is undefined without a
    dialogue, the prediction-powered correlation is people's, with the reason. Fewer than 20 dialogues of
    people give a note, and other notes are those of `giccs.measures.metrics.correlations`. The mean and
    standard deviation per dialogue of the judge's scores and of the predictions are tested for a difference
    between people's dialogues and the others (`random_p`, Bonferroni).

    clusters: those of the dialogues that are omitted together, as the same domains are in P and U. Values
    and λ are those without clusters, and so is the factor for the estimation of λ.

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
    parts = is_complete, is_complete, n_scored == 0
    judged = correlations(prediction, judge, _consecutive(dialogue), **settings, clusters=clusters)
    of_people = _Dialogues(prediction[by_people], people[by_people], dialogue[by_people])
    over_dialogues = of_people.correlations(settings)
    alone = over_dialogues
    if clusters:
        alone = of_people.correlations({**settings, "clusters": clusters.select(is_complete)})
    samples = (
        of_people,
        _Dialogues(prediction[by_people], judge[by_people], dialogue[by_people]),
        _Dialogues(prediction[by_judge_alone], judge[by_judge_alone], dialogue[by_judge_alone]),
    )
    random_p = _random_p(
        is_complete,
        [moment for each in (judge, prediction) for moment in _moments(each, dialogue)],
    )
    estimates = {}
    for name in WEIGHTED_CORRELATIONS:
        powered, weight = _powered(name, over_dialogues[name], samples, settings)
        if clusters and math.isnan(weight):
            powered = replace(alone[name], reason=powered.reason)
        elif clusters:
            statistics = [sample.statistic(name) for sample in samples]
            error = _error_over_clusters(
                statistics, parts, clusters, weight, CORRELATION_BOUNDS, is_heavy=name == "pearson"
            )
            half = error.quantile * math.sqrt(error.variance)
            z = math.atanh(powered.value)
            powered = replace(
                powered, low=math.tanh(z - half), high=math.tanh(z + half), reason=error.reason
            )
            if name == "pearson":
                powered = with_offsets_note(powered, clusters.unit)
        if name == "pearson" and not math.isnan(weight):
            powered = with_tails_note(powered, prediction, of_people.score, judge)
        if name == "rank_spearman" and not math.isnan(weight):
            powered = with_coarse_note(powered, np.bincount(dialogue)[is_complete])
        counts = samples[0].count, samples[2].count
        half_width = _half_width(powered)
        ratio = _half_width(alone[name]) / half_width if half_width > 0 else math.nan
        equivalent = math.nan if clusters else counts[0] * ratio**2
        estimates[name] = PoweredEstimate(
            judged[name], alone[name], powered, weight, *counts, equivalent, random_p
        )
    return estimates


def powered_accuracy(
    judge: Floats, people: Floats, clusters: Clusters | None = None
) -> PoweredEstimate:
    """Return the accuracy by people's key on a random part of the dialogues, and by a judge's on all.

    judge, people: (D,) 1 for correct and 0 for wrong answers to the question of a dialogue, or the share of
    correct ones in several orders; `people` is NaN for dialogues that people did not score.

    Intervals are Wilson's; equivalent dialogues are those with which people alone reach the variance. With
    fewer than 5 dialogues of people or of the judge alone, the prediction-powered accuracy is people's, with
    the reason. If the keys do not covary, as for a model that is always right, λ is 0 and it is people's.
    `random_p` tests the accuracy by the judge's key in people's dialogues and in the others. clusters: as in
    `powered_correlations`.

    >>> judge, people = np.tile([1.0, 1, 0, 1], 25), np.tile([1.0, 1, 0, 0], 25)
    >>> accuracy = powered_accuracy(judge, np.where(np.arange(100) < 40, people, np.nan))
    >>> round(accuracy.powered.value, 3), round(accuracy.weight, 2), round(accuracy.equivalent_dialogues)
    (0.5, 0.4, 50)
    """
    is_scored = ~np.isnan(people)
    h, f, u = people[is_scored], judge[is_scored], judge[~is_scored]
    counts = len(h), len(u)
    judged, alone = _accuracy(judge), _accuracy(h)
    if clusters:
        judged = share_over_clusters(judge, clusters)
        alone = share_over_clusters(h, clusters.select(is_scored))
    if reason := _too_few_note(*counts):
        powered = replace(alone, reason=note(PEOPLE_ALONE, reason=reason))
        return PoweredEstimate(judged, alone, powered, math.nan, *counts, counts[0], math.nan)
    covariance = float(np.mean((h - h.mean()) * (f - f.mean()))) / len(h)
    total = _variance(f) + _variance(u)
    weight = min(max(covariance / total, 0.0), 1.0) if total > 0 else 0.0
    value = float(h.mean() - weight * (f.mean() - u.mean()))
    variance = _variance(h - weight * f) + weight**2 * _variance(u)
    ratio = _variance(h) / variance if weight else 1.0
    value = min(max(value, 0.0), 1.0)
    powered = _accuracy(h, value, ratio)
    powered = replace(powered, reason=few_clusters_note(counts[0], "dialogues of people"))
    equivalent = counts[0] * ratio
    if clusters:
        means, parts = map(_mean_of, (h, f, u)), (is_scored, is_scored, ~is_scored)
        error = _error_over_clusters([*means], parts, clusters, weight)
        size = value * (1 - value) / error.variance if error.variance else clusters.count
        limits = wilson(value * size, size, error.quantile)
        powered, equivalent = Estimate(value, *limits, len(h), error.reason), math.nan
    random_p = _random_p(is_scored, [judge])
    return PoweredEstimate(judged, alone, powered, weight, *counts, equivalent, random_p)


@dataclass(frozen=True)
class _Error:
    """Variance of a prediction-powered value over clusters, quantile of Student's t, and a remark.

    NaN for too few clusters.
    """

    variance: float
    quantile: float
    reason: str


def _error_over_clusters(
    statistics: Sequence[Statistic],
    parts: Sequence[NDArray[np.bool_]],
    clusters: Clusters,
    weight: float,
    bounds: tuple[float, float] | None = None,
    *,
    is_heavy: bool = False,
) -> _Error:
    """Return the error of h - λ (f_P - f_U) of statistics with the weights of their parts of the dialogues.

    A jackknife that omits a cluster from P and from U at once. parts: (D,) dialogues of P, P and U.
    """
    of_people, of_judge = (clusters.select(part) for part in parts[1:])
    for each, whose in ((of_people, "people"), (of_judge, "the judge alone")):
        unit = f"{clusters.unit} of {whose}"
        if few := too_few_clusters_note(each.count, unit, clusters.minimum):
            return _Error(math.nan, math.nan, few)
    is_kept = clusters.of_dialogue != np.arange(clusters.count)[:, np.newaxis]
    h, f, u = (
        to_unbounded(statistic(is_kept[:, part].astype(np.float64)), bounds)
        for statistic, part in zip(statistics, parts, strict=True)
    )
    values = h - weight * (f - u)
    variance = _tuning(int(parts[0].sum()), weight) * (clusters.count - 1) * float(np.var(values))
    df = degrees_of_freedom(of_people, values, is_heavy)
    return _Error(variance, float(t_quantile(np.array(df))), of_people.few_note)


def _tuning(n_people: int, weight: float) -> float:
    """Return the factor of the variance for the estimation of λ."""
    return (n_people - 1) / (n_people - 3) if 0 < weight < 1 else 1.0


def _mean_of(values: Floats) -> Statistic:
    """Return the weighted mean of values (D,) as a function of the weights."""
    return lambda weights: (weights @ values) / weights.sum(axis=1)


def _accuracy(correct: Floats, value: float | None = None, ratio: float = 1.0) -> Estimate:
    """Return a share, by default the mean of `correct`, with Wilson's interval.

    ratio: variance of the mean relative to that of the share.
    """
    mean, variance, n = float(correct.mean()), _variance(correct), len(correct)
    effective = ratio * (mean * (1 - mean) / variance if variance > 0 else n)
    share = mean if value is None else value
    return Estimate(share, *wilson(share * effective, effective), n)


def _variance(correct: Floats) -> float:
    """Return the variance of the mean, p(1-p)/n for right and wrong answers."""
    return float(correct.var()) / len(correct)


def _random_p(is_of_people: NDArray[np.bool_], values: Sequence[Floats]) -> float:
    """Return the p-value of equal means of values per dialogue, (D,) each, in people's and other dialogues.

    Welch's t-test of each, with the correction of Bonferroni; NaN without variance.
    """
    from scipy.stats import ttest_ind

    p = [
        float(ttest_ind(each[is_of_people], each[~is_of_people], equal_var=False).pvalue)
        for each in values
        if np.ptp(each) > CONSTANT_TOLERANCE
    ]
    return min(1.0, min(p) * len(p)) if p else math.nan


def _moments(values: Floats, dialogue: Ints) -> tuple[Floats, Floats]:
    """Return mean and standard deviation per dialogue of values (N,)."""
    n = np.bincount(dialogue)
    centred = values - values.mean()
    mean = np.bincount(dialogue, centred) / n
    squares = np.bincount(dialogue, (centred - mean[dialogue]) ** 2)
    return mean, np.sqrt(squares / n)


def _too_few_note(n_people: int, n_judge: int) -> str:
    """Return why there are too few dialogues, or an empty string."""
    return too_few_clusters_note(n_people, "dialogues of people") or too_few_clusters_note(
        n_judge, "dialogues of the judge alone"
    )


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

    def statistic(self, name: str) -> Statistic:
        """Return a metric as a function of the weights of these dialogues."""
        statistic: Statistic = WEIGHTED_CORRELATIONS[name](
            self.prediction, self.score, _consecutive(self.dialogue)
        )
        return statistic

    def jackknife(self, name: str, settings: Mapping[str, Any]) -> tuple[float, Floats]:
        """Return Fisher's z of a metric, and (G,) deviations of its jackknife replicates from their mean.

        The variance of z is (G - 1) / G times the sum of the squared deviations.
        """
        statistic = self.statistic(name)
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
    if reason := _too_few_note(n_people, n_judge):
        return replace(alone, reason=note(PEOPLE_ALONE, reason=reason)), math.nan
    (h, of_h), (f, of_f), (u, of_u) = (sample.jackknife(name, settings) for sample in samples)
    if math.isnan(alone.low) or not np.isfinite([h, f, u, *of_h, *of_f, *of_u]).all():
        reason = note("undefined or at its bound without some of the dialogues")
        return replace(alone, reason=note(PEOPLE_ALONE, reason=reason)), math.nan
    g = len(of_h)
    variance_of_u = (len(of_u) - 1) / len(of_u) * float(of_u @ of_u)
    variance_of_f, covariance = ((g - 1) / g * float(of_f @ other) for other in (of_f, of_h))
    total = variance_of_f + variance_of_u
    weight = min(max(covariance / total, 0.0), 1.0) if total > 0 else 0.0
    rectifier = _tuning(g, weight) * (g - 1) / g * float(np.sum((of_h - weight * of_f) ** 2))
    further = weight**2 * variance_of_u
    df_of_people, df_of_judge = (
        degrees_of_freedom(Clusters.single(len(each)), each, has_heavy_tails=name == "pearson")
        for each in (of_h - weight * of_f, of_u)
    )
    noise = rectifier**2 / df_of_people + further**2 / df_of_judge
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
