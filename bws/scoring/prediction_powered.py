"""Scores of people's judgments with the predictions of language models: prediction-powered inference.

People judged a random part of the tuples of a design, models also others. The value of an item in a
judgment, 1 (best), -1 (worst) or 0, has a prediction f. With λ in [0, 1], an item's score is

    θ = mean(h) - λ (mean of f over people's judgments - mean of f over the tuples of models alone)

for people's values h (PPI++, Angelopoulos, Duchi and Zrnic 2023). Both means of f have the same
expectation for any f, so θ estimates the same as people's counting score, whatever the bias of the models;
f only removes variance that is due to the opponents of an item in people's tuples. The error variance is that
of the values h - λ f between clusters of people's judgments (`bws.scoring.clustering`), plus λ² times that of
the mean of f over the tuples of models alone. λ minimises the sum over the items of the estimated variances
(power tuning); with λ = 0, scores and intervals are those of people's judgments.

f is the expected value of the item in the tuple under the best–worst logit fitted to the judgments of the
models: P(best) - P(worst). A model's own answers to a tuple are predictions as valid, but noisier, and
remove less variance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Source, frames_like_source
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.components import finite_population_correction
from bws.files import as_judgments
from bws.model_annotators import model_name
from bws.records import CanonicalJudgments, Judgments, Scores
from bws.scoring import score
from bws.scoring.choice import best_worst_logit
from bws.scoring.clustering import Cluster, Clusters, cluster_judgments
from bws.scoring.counting import (
    SMOOTHED_COUNTING,
    cluster_products,
    smoothed_logit_of_values,
    squared_cluster_sums,
)
from bws.scoring.expected import expected_counting, expected_values
from bws.scoring.intervals import compute_interval
from bws.scoring.methods import METHODS, Floats, Integers, Interval, Utilities
from bws.scoring.pooling import shrink
from bws.scoring.rank_sets import add_rank_sets
from bws.stats.clusters import MIN_CLUSTERS

PREDICTOR = "best-worst-logit"
METHOD = "prediction-powered counting"
MAX_RANDOM_P = 0.001
"""P-value below which a note says that people's tuples are no random part of the design."""
DECIMALS = 15


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of the values of N items that people judged, in their canonical order."""

    judged: Floats
    """(J, K) predictions for the items of people's judgments; 0 for items without predictions."""
    mean: Floats
    """(N,) means over the tuples of models alone; 0 for items without predictions."""
    variance: Floats
    """(N,) error variances of these means."""
    tuples: Integers
    """(N,) numbers of tuples of models alone."""
    is_predicted: NDArray[np.bool_]
    """(N,) whether the item has predictions for all its tuples and enough tuples of models alone."""
    n_tuples: int
    """Number of tuples of models alone."""
    random_p: float
    """P-value of equal mean predictions of people's tuples and those of models alone; NaN if undefined."""
    covariance: Any = None
    """Sparse (N, N) covariance of the errors of the means, with the diagonal `variance`; None if unused."""

    def corrections(self, items: Integers) -> Floats:
        """Return (J, K) predictions minus `mean`, for the (J, K) items of people's judgments."""
        corrections: Floats = self.judged - self.mean[items]
        return corrections


@frames_like_source
def prediction_powered_scores(
    people: Judgments | Source,
    models: Judgments | Source,
    *,
    scale: Literal["signed", "unit"] = "signed",
    cluster: Cluster | None = None,
    pool: bool = False,
    ranks: bool = False,
    seed: int = 0,
    control: Iterable[str] = (),
) -> Scores:
    """Score the items that people judged, by counting with predictions of models, with 95 % intervals.

    people: judgments of a random part of the tuples of a design. models: judgments by language models of
    other tuples of the same design, and possibly of the same tuples; several judgments of a tuple are
    repetitions. `scale` and `cluster` are those of `bws.score`.

    An item without predictions keeps the score of people's judgments: it has fewer than 5 tuples that only
    the models judged, or a tuple with an item that they never judged. Items that people never judged score
    NaN. Notes say how many there are of each. A note also warns if the mean predictions of people's tuples
    and of the others differ by more than chance: people's tuples are then no random part of the design, and
    the scores are biased.

    pool: shrink the prediction-powered scores towards their regression on the scores of the models
    (`bws.scoring.pooling`). The scores of the models are the expected counting scores under the best–worst
    logit. The error variance is taken to be the same for all judgments, the mean over the items. Scores and
    intervals are then right on average over the items, but an item about which models and people differ is
    shrunk towards the models. Items without an interval, or without judgments by the models, are not shrunk.

    ranks: add the ranks of each item that tests of differences permit (`bws.scoring.rank_sets`); not for
    pooled scores, whose intervals do not hold for each item.

    control: as in `read_judgments`; tuples with control items do not count, with a note.

    Raises ValueError for adaptive judgments of either file, if people's judgments have no intervals, for
    `pool` with `ranks`, and for `pool` with fewer than 10 items with intervals; InputError if `people`
    contains judgments of models or `models` those of people, and if they have no item or not the size of the
    tuples in common.
    """
    if pool and ranks:
        raise ValueError(
            "pooled scores have no ranks: their intervals hold on average over the items, not for each item"
        )
    what = "prediction-powered scores"
    people, control_notes = as_judgments(people, control).without_controls(what)
    models, _ = as_judgments(models).with_controls_of(people).without_controls(what)
    people.check_kind("people")
    models.check_kind("language models")
    models.check_not_adaptive("prediction-powered counting")
    people = _with_items_of(people, models)
    alone = score(people, interval="model", cluster=cluster, seed=seed)
    clusters = cluster_judgments(people, alone.signature["cluster"])  # type: ignore[arg-type]
    if clusters.no_interval_reason:
        raise ValueError(f"no prediction-powered scores: {clusters.no_interval_reason}")
    judged = people.canonical
    utility = METHODS[PREDICTOR].fit(models.canonical, clusters=None, seed=seed).utility
    predictions = predict(judged, models.canonical, utility)
    powered = PoweredScores(judged, clusters, predictions)
    bounds = powered.interval
    estimate = powered.score
    pool_notes: list[str] = []
    if pool:
        estimate, bounds, pool_notes = _pooled(
            powered, expected_model_scores(judged, models.canonical, utility, seed), bounds
        )
    scores = _replace_scores(alone, judged, estimate, bounds)
    notes = [
        *control_notes,
        *_study_notes(people, models, predictions, powered.weight),
        *pool_notes,
        *_width_notes(len(people), alone, scores),
        *dict.fromkeys([*alone.notes, *bounds.notes]),
    ]
    signature = {
        **alone.signature,
        "method": METHOD,
        "scale": scale,
        "standard_error": bounds.standard_error,
        "models": _model_names(models),
        "predictor": PREDICTOR,
        "lambda": powered.weight,
        "pooled": pool,
        "model_judgments": len(models),
        "models_sha256": models.canonical.digest(),
    }
    scores = _on_scale(replace(scores, notes=notes, signature=signature), scale)
    return add_rank_sets(scores, people, clusters, powered.fitted) if ranks else scores


def predict(people: CanonicalJudgments, models: CanonicalJudgments, utility: Floats) -> Predictions:
    """Return the predictions of people's values from the utilities of the items that models judged.

    utility: (M,) in the canonical order of the models' items. Raises InputError if the tuples differ in size,
    or no item is in both.
    """
    item_of = items_in(people, models)
    by_tuple = predicted_values(people, item_of, utility)

    members = item_of[models.members]
    is_new = ~_contained(members, people.members)
    new = replace(models, members=models.members[is_new], tuple_of=np.arange(np.sum(is_new)))
    values = expected_values(utility, new.members, best_worst_logit)
    mean, variance, tuples = (
        _of_people(column, item_of, len(people.items)) for column in _moments(new, values)
    )
    is_known = np.ones(len(people.items), dtype=bool)
    is_known[people.members[np.isnan(by_tuple)]] = False
    is_predicted = is_known & (tuples >= MIN_CLUSTERS)
    return Predictions(
        np.where(is_predicted[people.members], by_tuple, 0)[people.tuple_of],
        np.where(is_predicted, mean, 0),
        np.where(is_predicted, variance, 0),
        tuples.astype(np.int64),
        is_predicted,
        int(np.sum(is_new)),
        _random_p(_moments(people, by_tuple), (mean, variance), is_predicted),
        _covariance_of_means(new, values, np.where(is_predicted[item_of], item_of, -1), len(mean)),
    )


def predicted_values(people: CanonicalJudgments, item_of: Integers, utility: Floats) -> Floats:
    """Return (T, K) predictions for people's tuples; NaN for tuples with items without (M,) utilities.

    item_of: (M,) the index of each utility's item among people's items, or -1.
    """
    of_people = np.full(len(people.items), np.nan)
    of_people[item_of[item_of >= 0]] = utility[item_of >= 0]
    return expected_values(of_people, people.members, best_worst_logit)


def items_in(people: CanonicalJudgments, models: CanonicalJudgments) -> Integers:
    """Return (M,) the index in `people` of each item of `models`, or -1."""
    if people.k != models.k:
        message = f"tuples of {models.k} items; expected {people.k}, as those of people"
        raise InputError(Problem("judgments of models", None, message))
    index = {key: i for i, key in enumerate(people.item_keys)}
    item_of = np.array([index.get(key, -1) for key in models.item_keys], dtype=np.int64)
    if (item_of < 0).all():
        message = "no item of people's judgments; expected judgments of the same items and groups"
        raise InputError(Problem("judgments of models", None, message))
    return item_of


def _contained(rows: Integers, table: Integers) -> NDArray[np.bool_]:
    """Return for each row whether `table` contains it; both have ascending rows."""
    known = set(map(tuple, table.tolist()))
    return np.array([row in known for row in map(tuple, rows.tolist())], dtype=bool)


def _moments(design: CanonicalJudgments, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (N,) the mean over tuples of (T, K) values, its error variance, and the number of tuples.

    The tuples are those of a design, with its finite population correction; NaN for fewer than two.
    """
    n, members = len(design.items), design.members.ravel()
    tuples = np.bincount(members, minlength=n).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(members, values.ravel(), n) / tuples
        squares = np.bincount(members, (values.ravel() - mean[members]) ** 2, n)
        variance = squares / (tuples - 1) / tuples * finite_population_correction(design)
    return mean, np.where(tuples > 1, variance, np.nan), tuples


def _covariance_of_means(
    design: CanonicalJudgments, values: Floats, item_of: Integers, n: int
) -> Any:
    """Return the sparse (n, n) covariance of the errors of `_moments`' means of (T, K) values.

    item_of: (M,) index of each item of the design, or -1 for means without errors. The items of a tuple
    compete, so their errors are dependent.
    """
    mean, variance, tuples = _moments(design, values)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = tuples / (tuples - 1) * finite_population_correction(design)
        weight = np.where((item_of >= 0) & (variance >= 0), np.sqrt(ratio) / tuples, 0)
    items = design.members
    influence = np.where(weight[items] > 0, (values - mean[items]) * weight[items], 0)
    one_group = np.zeros(n, dtype=np.int64)
    return cluster_products(np.maximum(item_of, 0)[items], influence, design.tuple_of, one_group)


def _of_people(column: Floats, item_of: Integers, n: int) -> Floats:
    """Return (n,) values of people's items; 0 for items that the models never judged."""
    values = np.zeros(n)
    values[item_of[item_of >= 0]] = column[item_of >= 0]
    return values


def _random_p(
    judged: tuple[Floats, Floats, Floats], new: tuple[Floats, Floats], included: NDArray[np.bool_]
) -> float:
    """Return the p-value of equal mean predictions of two sets of tuples, by χ² over the items."""
    from scipy.stats import chi2

    variance = judged[1] + new[1]
    included = included & (judged[2] >= MIN_CLUSTERS) & (variance > 0)
    if not included.any():
        return np.nan
    statistic = ((judged[0] - new[0]) ** 2)[included] / variance[included]
    return float(chi2.sf(statistic.sum(), np.sum(included)))


def tuned_weight(
    judgments: CanonicalJudgments, clusters: Clusters, predictions: Predictions
) -> float:
    """Return λ in [0, 1] with the smallest sum of the items' estimated error variances.

    The sum is a quadratic function of λ: V(h) - 2 λ C(h, f) + λ² (V(f) + variance of f's mean).
    """
    included, _, f_variance, covariance = error_terms(judgments, clusters, predictions.judged)
    included &= predictions.is_predicted
    denominator = (f_variance + predictions.variance)[included].sum()
    return (
        float(np.clip(covariance[included].sum() / denominator, 0, 1)) if denominator > 0 else 0.0
    )


def error_terms(
    judgments: CanonicalJudgments, clusters: Clusters, predicted: Floats
) -> tuple[NDArray[np.bool_], Floats, Floats, Floats]:
    """Return the items where they are defined, V(h), V(f) and C(h, f); (N,) each.

    V is the variance of an item's mean value between clusters, not clipped at 0, for people's values h and
    the (J, K) predicted ones f, and 2 C(h, f) = V(h) + V(f) - V(h - f).
    """
    items, appearances = clusters.items, judgments.counts.appearances

    def variance(values: Floats) -> Floats:
        mean = _item_means(values, items, appearances)
        influence = (values - mean[items]) / appearances[items]
        between = clusters.between(squared_cluster_sums(items, influence))
        rows, *others = (kind.corrected for kind in between)
        if not others:
            return rows
        columns, cells = others
        total: Floats = rows + clusters.population_correction * (columns - cells)
        return total

    people_variance, f_variance = variance(judgments.values), variance(predicted)
    covariance = (people_variance + f_variance - variance(judgments.values - predicted)) / 2
    return ~np.isnan(covariance), people_variance, f_variance, covariance


def _item_means(values: Floats, items: Integers, appearances: Integers) -> Floats:
    mean: Floats = np.bincount(items.ravel(), values.ravel(), len(appearances)) / appearances
    return mean


@dataclass(frozen=True, eq=False)
class PoweredScores:
    """Scores and intervals of N items, from people's values corrected by predictions."""

    judgments: CanonicalJudgments
    clusters: Clusters
    predictions: Predictions

    @cached_property
    def weight(self) -> float:
        """λ."""
        return tuned_weight(self.judgments, self.clusters, self.predictions)

    @cached_property
    def values(self) -> Floats:
        """(J, K) h - λ (f - mean f); items with means outside [-1, 1] are moved to its ends."""
        items = self.clusters.items
        values = self.judgments.values - self.weight * self.predictions.corrections(items)
        mean = _item_means(values, items, self.judgments.counts.appearances)
        return values + (np.clip(mean, -1, 1) - mean)[items]

    @property
    def score(self) -> Floats:
        """(N,) θ."""
        return _item_means(self.values, self.clusters.items, self.judgments.counts.appearances)

    @property
    def variance(self) -> Floats:
        """(N,) error variances of θ, with the same variance per judgment for all items, the mean of theirs.

        NaN for items without an interval.
        """
        items, appearances = self.clusters.items, self.judgments.counts.appearances
        influence = (self.values - self.score[items]) / appearances[items]
        known = self.weight**2 * self.predictions.variance
        error = self.clusters.error_variance(squared_cluster_sums(items, influence), known)
        variance = np.where(self.clusters.too_few, np.nan, error.variance)
        per_judgment = float(np.nanmean(variance * appearances))
        return np.where(np.isnan(variance), np.nan, per_judgment / appearances)

    @cached_property
    def fitted(self) -> Utilities:
        """Smoothed logits of the scores."""
        covariance = self.weight**2 * self.predictions.covariance
        return smoothed_logit_of_values(self.values, self.judgments, self.clusters, covariance)

    @cached_property
    def interval(self) -> Interval:
        """95 % intervals, computed like those of counting (`bws.scoring.score`)."""
        return compute_interval(
            SMOOTHED_COUNTING,
            self.fitted,
            self.score,
            self.clusters,
            self.judgments,
        )


def expected_model_scores(
    people: CanonicalJudgments, models: CanonicalJudgments, utility: Floats, seed: int
) -> Floats:
    """Return (N,) the expected counting scores of people's items under the models; NaN if they have none."""
    scores = expected_counting(utility, models.group_of, models.k, best_worst_logit, seed)
    score_of = dict(zip(models.item_keys, scores.tolist(), strict=True))
    return np.array([score_of.get(key, np.nan) for key in people.item_keys])


def _pooled(
    powered: PoweredScores, model_score: Floats, bounds: Interval
) -> tuple[Floats, Interval, list[str]]:
    """Return the shrunk scores with intervals, limited to [-1, 1], and notes."""
    estimate, variance = powered.score, powered.variance
    low, high = np.array(bounds.low), np.array(bounds.high)
    included = ~np.isnan(variance) & ~np.isnan(model_score)
    pooled = shrink(estimate[included], variance[included], model_score[included])
    estimate[included] = pooled.estimate
    low[included] = np.maximum(pooled.estimate - pooled.half_width, -1)
    high[included] = np.minimum(pooled.estimate + pooled.half_width, 1)
    to_mean = shrink(powered.score[included], variance[included])
    notes = [
        note(
            "pooled with the scores of the models: scores and intervals are right on average over the items, "
            "not for each item; residual standard deviation of people's true scores {sd:.3f}; if shrunk to "
            "their mean without the models, {alone:.3f}, and the mean width of the intervals is {width:.3f}",
            sd=np.sqrt(pooled.residual_variance),
            alone=np.sqrt(to_mean.residual_variance),
            width=2 * to_mean.half_width.mean(),
        )
    ]
    if n_left := np.count_nonzero(~included):
        notes.append(
            note("{n:d} items without an interval or judgments by models are not pooled", n=n_left)
        )
    return estimate, replace(bounds, low=low, high=high), notes


def _replace_scores(
    alone: Scores, judgments: CanonicalJudgments, estimate: Floats, bounds: Interval
) -> Scores:
    """Return scores with estimate and interval of the judged items."""

    def for_all_items(values: Floats | None) -> Floats:
        expanded = np.full(len(alone), np.nan)
        expanded[judgments.origin] = values
        return expanded

    low, high = for_all_items(bounds.low), for_all_items(bounds.high)
    return replace(alone, score=for_all_items(estimate), low=low, high=high)


def _with_items_of(people: Judgments, models: Judgments) -> Judgments:
    """Return people's judgments with the items that only the models judged, which have no judgments."""
    known = set(people.tuples.item_keys)
    new = [k for k in models.tuples.item_keys[: models.tuples.n_scored] if k not in known]
    tuples = people.tuples
    groups = [*dict.fromkeys([*tuples.groups.tolist(), *(group for group, _ in new)])]
    index = {group: i for i, group in enumerate(groups)}
    group_of_new = np.array([index[group] for group, _ in new], dtype=np.int32)
    extended = replace(
        tuples,
        items=np.concatenate([tuples.items, np.array([item for _, item in new], dtype=object)]),
        group_of_item=np.concatenate([tuples.group_of_item, group_of_new]),
        groups=np.array(groups, dtype=object),
    )
    return replace(people, tuples=extended.with_controls(tuples.controls))


def _model_names(models: Judgments) -> list[str]:
    return [model_name(models.annotators[i]) for i in np.unique(models.annotator_of)]


def _study_notes(
    people: Judgments, models: Judgments, predictions: Predictions, weight: float
) -> Iterator[str]:
    """Yield notes on the numbers of judgments, on items without predictions, and on randomness."""
    n_tuples = len(people.canonical.members)
    yield note(
        "prediction-powered scores, lambda {weight:.2f}: {n:d} judgments of {tuples:d} tuples by people, "
        "predicted from {m:d} judgments by {models}, which alone judged {predicted:d} tuples",
        weight=weight,
        n=len(people),
        tuples=n_tuples,
        m=len(models),
        models=", ".join(_model_names(models)),
        predicted=predictions.n_tuples,
    )
    if n_kept := np.count_nonzero(~predictions.is_predicted):
        yield note(
            "{n:d} of {m:d} items have no predictions and keep the score of people's judgments: fewer than "
            "{least:d} tuples of the models alone, or a tuple with an item that the models never judged",
            n=n_kept,
            m=len(predictions.is_predicted),
            least=MIN_CLUSTERS,
        )
    if predictions.random_p < MAX_RANDOM_P:
        yield note(
            "the predictions for the tuples of people and for those of models alone differ by more than "
            "chance (p < {limit:g}): people's tuples are no random part of the design, so the scores are "
            "biased",
            limit=MAX_RANDOM_P,
        )


def _width_notes(n_judgments: int, alone: Scores, scores: Scores) -> Iterator[str]:
    """Yield a note on the mean width of the intervals."""
    width_alone, width = mean_width(alone), mean_width(scores)
    if width > 0:
        equivalent = n_judgments * (width_alone / width) ** 2
        yield note(
            "mean width of the intervals: {width:.3f}, of people's judgments alone {alone:.3f}; about "
            "{n:.0f} judgments by people alone would give the same width",
            width=width,
            alone=width_alone,
            n=equivalent,
        )


def mean_width(scores: Scores) -> float:
    """Return the mean width of the intervals of scores; NaN if there are none."""
    assert scores.low is not None
    assert scores.high is not None
    widths = (scores.high - scores.low)[~np.isnan(scores.low)]
    return float(widths.mean()) if widths.size else np.nan


def _on_scale(scores: Scores, scale: str) -> Scores:
    """Return signed scores on the scale."""
    if scale == "signed":
        return scores
    if scale != "unit":
        raise ValueError(f"scale is {scale!r}; expected one of: signed, unit")
    ends = {name: getattr(scores, name) for name in ("score", "low", "high")}
    return replace(scores, **{n: np.round((v + 1) / 2, DECIMALS) for n, v in ends.items()})
