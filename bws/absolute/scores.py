"""Absolute scores: one scale for the items of all groups, with what it says about a study.

The absolute score of an item is the answer that the average annotator of the study would give to it: a
rating logistic(beta (u - t) / 3), or the probability of a mark, logistic(u - t), averaged over draws from
the posterior. t and log beta are means over annotators, weighted by 1 minus their lapse rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit

from bws.absolute.arrays import Study, study_of
from bws.absolute.files import Anchors, check_anchors, of_annotators
from bws.absolute.fit import fit
from bws.absolute.model import RATING_SCALE, Floats
from bws.absolute.posterior import Posterior, draw
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.base.tables import Column, ResultTable
from bws.records import Judgments, Scores
from bws.stats.clusters import t_quantile
from bws.stats.estimates import Estimate

DRAWS = 1000
DECIMALS = 4
"""Decimals of absolute scores: draws differ between CPUs by about 1e-11."""
MIN_AGREEMENT = 0.5
"""Correlation of anchors with scores within groups below which absolute scores are refused."""
LIMITS = (0.025, 0.975)
BATCHES = 20
"""Batches of consecutive draws, from whose means the Monte-Carlo error is computed."""
ERROR_NOTE = (
    "Monte-Carlo error of the absolute scores (root mean square): {error:.4f}; by about as much they depend "
    "on the seed and on the names"
)
CORRELATIONS = ("pearson", "spearman", "rank_spearman")
"""Pearson's r and Spearman's rho over all items, and the mean of the latter within groups."""
SD_TITLES = {
    "offset": "SD between groups (logits)",
    "item": "SD within groups (logits)",
    "taste": "SD of tastes (logits)",
    "threshold": "SD of thresholds of annotators (logits)",
    "wobble": "SD of a threshold between groups (logits)",
    "slider": "SD of slider noise (logits)",
}
"""Name of a standard deviation -> its title."""


@dataclass(frozen=True, eq=False)
class AbsoluteScale:
    """Absolute scores of N items of D groups, and estimates from a posterior."""

    keys: list[tuple[str, str]]
    """(N,) group and id."""
    score: Floats
    """(N,) in [0, 1]."""
    low: Floats
    high: Floats
    ceilings: Mapping[str, Estimate]
    """Correlations of the scores with the true ones, by the names of `CORRELATIONS`: ceilings of models."""
    limits: Mapping[str, Estimate]
    """Correlations of the published scores with the true absolute ones: what a model that knows the latter
    reaches on the published scale."""
    groups: Mapping[str, Estimate]
    """Mean absolute score of each group."""
    ratio: Estimate
    """SD between groups, relative to that within groups."""
    sds: Mapping[str, Estimate]
    lapses: Mapping[str, Estimate]
    """Share of random answers of each annotator."""
    monte_carlo_error: float
    """Standard error of the scores as means of draws: root mean square over the items."""
    agreement: Estimate = field(default_factory=lambda: Estimate(math.nan))
    """Mean correlation (Spearman) of answers to anchors with the published scores within groups."""
    notes: tuple[str, ...] = ()
    signature: Mapping[str, object] = field(default_factory=dict)
    regression: ResultTable | None = None

    @property
    def ceiling(self) -> Estimate:
        """Ceiling of Pearson's r over all items."""
        return self.ceilings["pearson"]

    @property
    def ipsative_limit(self) -> Estimate:
        """Limit of Pearson's r with the published scores over all items."""
        return self.limits["pearson"]

    def result_tables(self) -> list[ResultTable]:
        """Return the tables: the study, annotators, groups."""
        rows = [
            ("Ceiling over all items", self.ceiling),
            ("Ipsative limit of the published scores", self.ipsative_limit),
            ("Ceiling of ρ within groups", self.limits["rank_spearman"]),
            ("ρ of anchors with scores within groups", self.agreement),
            ("SD between groups, relative to that within", self.ratio),
            *((SD_TITLES[name], value) for name, value in self.sds.items()),
        ]
        measures = [Column("measure", "measure"), Column("value", "value", ".3f")]
        people = [Column("annotator", "annotator"), Column("lapses", "lapses", ".3f")]
        groups = [Column("group", "group"), Column("mean", "mean absolute score", ".3f")]
        tables = [
            ResultTable(measures, rows, self.notes, "Absolute scale"),
            ResultTable(people, list(self.lapses.items()), title="Random answers of annotators"),
            ResultTable(groups, list(self.groups.items()), title="Means of groups"),
        ]
        return tables + ([self.regression] if self.regression else [])

    def document(self) -> dict[str, Any]:
        """Return the estimates in JSON form."""
        parts: dict[str, Any] = {
            "ceiling": self.ceiling.document(),
            "ipsative_limit": self.ipsative_limit.document(),
            "within_ceiling": self.limits["rank_spearman"].document(),
            "agreement": self.agreement.document(),
            "offset_ratio": self.ratio.document(),
            "sds": {name: value.document() for name, value in self.sds.items()},
            "lapses": {name: value.document() for name, value in self.lapses.items()},
            "groups": {name: value.document() for name, value in self.groups.items()},
            "monte_carlo_error": self.monte_carlo_error,
            "notes": list(self.notes),
            "signature": dict(self.signature),
        }
        if self.regression:
            keys = self.regression.column_keys()
            parts["regression"] = [
                {
                    key: cell.document() if isinstance(cell, Estimate) else cell
                    for key, cell in zip(keys, row, strict=True)
                }
                for row in self.regression.rows
            ]
        return parts

    @property
    def summary(self) -> str:
        """A note on the scale as a whole."""
        return note(
            "absolute scores: ceiling over all items {ceiling:.3f}, ipsative limit of the published scores "
            "{limit:.3f}",
            ceiling=self.ceiling.value,
            limit=self.ipsative_limit.value,
        )

    def added_to(self, scores: Scores) -> Scores:
        """Return scores with the columns of the absolute scores, rounded to `DECIMALS`.

        They are NaN for items without judgments.
        """
        index = {key: n for n, key in enumerate(self.keys)}
        rows = [index.get(key, -1) for key in scores.item_keys]
        columns = (
            np.append(values, np.nan)[rows].round(DECIMALS)
            for values in (self.score, self.low, self.high)
        )
        absolute, low, high = columns
        return replace(scores, absolute_score=absolute, absolute_low=low, absolute_high=high)


def absolute_scale(
    judgments: Judgments,
    anchors: Anchors,
    published: Scores | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> AbsoluteScale:
    """Return the absolute scale of judgments with anchors.

    published: scores of the judgments; counting by default.

    Raises InputError for anchors that do not belong to the judgments (`check_anchors`, `study_of`), and for
    anchors whose mean correlation with the scores within groups is below 0.5.
    """
    from bws.scoring import score

    judgments, notes = judgments.without_controls("absolute scores")
    anchors, more = of_annotators(anchors, judgments)
    notes = [*notes, *more]
    check_anchors(anchors, judgments)
    study = study_of(judgments.canonical, anchors)
    published = score(judgments) if published is None else published
    published_of = dict(zip(published.item_keys, published.score.tolist(), strict=True))
    of_items = np.array([published_of[key] for key in study.keys])
    agreement = _agreement(study, of_items)
    if agreement.value < MIN_AGREEMENT:
        message = (
            f"the mean correlation of the answers with the scores within groups is {agreement.value:.2f}; "
            f"expected at least {MIN_AGREEMENT}: anchors and judgments do not measure the same"
        )
        raise InputError(Problem(anchors.file, None, message))
    posterior = draw(study.data, fit(study.data), draws, seed)
    signature = {
        "kind": anchors.kind, "anchors": len(anchors), "judgments": judgments.canonical.digest(),
        "draws": draws, "seed": seed,
    }  # fmt: skip
    notes = [*notes, *study.notes, *_draw_notes(posterior)]
    notes += [agreement.reason] if math.isnan(agreement.value) else []
    scale = _summarised(study, posterior, of_items)
    notes.append(note(ERROR_NOTE, error=scale.monte_carlo_error))
    return replace(scale, agreement=agreement, notes=tuple(notes), signature=signature)


def average_answers(study: Study, posterior: Posterior) -> Floats:
    """Return (R, N) answers of the average annotator to each item, in [0, 1]."""
    distance = posterior.utility[:, *study.place] - posterior.threshold[:, None]
    is_rating = study.data.is_rating
    answers: Floats = expit(
        posterior.slope[:, None] * distance / RATING_SCALE if is_rating else distance
    )
    return answers


def _summarised(study: Study, posterior: Posterior, published: Floats) -> AbsoluteScale:
    """Return the scale of the draws, with the published scores of the items."""
    h = average_answers(study, posterior)
    score = h.mean(axis=0)
    low, high = np.quantile(h, LIMITS, axis=0)
    ceilings, limits = (_all_correlations(study, h, values) for values in (score, published))
    root = float(np.sqrt((ceilings["pearson"] ** 2).mean()))
    means = _group_means(study, h)
    return AbsoluteScale(
        study.keys, score, low, high,
        ceilings={name: _estimate(values) for name, values in ceilings.items()}
        | {"pearson": _estimate(ceilings["pearson"], value=root)},
        limits={name: _estimate(values) for name, values in limits.items()},
        groups=dict(zip(study.groups, map(_estimate, means.T), strict=True)),
        ratio=_estimate(posterior.sd["offset"] / posterior.sd["item"]),
        sds={name: _estimate(values) for name, values in posterior.sd.items()},
        lapses=dict(zip(study.annotators, map(_estimate, posterior.lapse.T), strict=True)),
        monte_carlo_error=_monte_carlo_error(h),
    )  # fmt: skip


def _monte_carlo_error(draws: Floats) -> float:
    """Return the root mean square over columns of the standard error of the mean of (R, N) dependent draws.

    It is that of the means of `BATCHES` batches of consecutive draws; NaN for fewer than two draws each.
    """
    size = len(draws) // BATCHES
    if size < 2:
        return math.nan
    means = draws[: BATCHES * size].reshape(BATCHES, size, -1).mean(axis=1)
    return float(np.sqrt(means.var(axis=0, ddof=1).mean() / BATCHES))


def _all_correlations(study: Study, h: Floats, score: Floats) -> dict[str, Floats]:
    """Return (R,) correlations of scores with draws in [0, 1], by the names of `CORRELATIONS`."""
    from scipy.stats import rankdata

    group_of, _ = study.place
    scaled = score / max(1.0, 2 * float(np.abs(score).max()))  # Groups stay apart in ranks.
    overall = _correlations(rankdata(h, axis=1), rankdata(score))
    within = _within_groups(
        study, rankdata(h + 2 * group_of, axis=1), rankdata(scaled + 2 * group_of)
    )
    return dict(zip(CORRELATIONS, (_correlations(h, score), overall, within), strict=True))


def _within_groups(study: Study, draws: Floats, ranks: Floats) -> Floats:
    """Return (R,) mean correlations of ranks within groups; groups with equal scores do not count."""
    group_of, _ = study.place
    x, y = (values - _group_means(study, values)[:, group_of] for values in (draws, ranks[None]))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = _group_means(study, x * y) / np.sqrt(
            _group_means(study, x**2) * _group_means(study, y**2)
        )
    defined = ~np.isnan(correlations).any(axis=0)
    means: Floats = correlations[:, defined].mean(axis=1)
    return means


def _estimate(draws: Floats, value: float | None = None) -> Estimate:
    low, high = np.quantile(draws, LIMITS).tolist()
    return Estimate(float(draws.mean()) if value is None else value, low, high)


def _correlations(h: Floats, score: Floats) -> Floats:
    """Return (R,) correlations of scores with draws; NaN where either is constant."""
    x, y = h - h.mean(axis=1, keepdims=True), score - score.mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations: Floats = x @ y / np.sqrt((x**2).sum(axis=1) * (y @ y))
    return correlations


def _group_means(study: Study, h: Floats) -> Floats:
    """Return (R, D) means over the items of each group."""
    group_of, _ = study.place
    first = np.searchsorted(group_of, np.arange(len(study.groups)))
    return np.add.reduceat(h, first, axis=1) / study.data.sizes


def _agreement(study: Study, published: Floats) -> Estimate:
    """Return the mean over groups of Spearman's correlation of mean answers with published scores.

    Answers are relative to the mean of their annotator. Groups with fewer than two items with anchors, or
    with equal answers, do not count.
    """
    from scipy.stats import spearmanr

    data = study.data
    n = np.bincount(data.anchor_annotator, minlength=data.n_annotators)
    means = np.bincount(data.anchor_annotator, data.answers, data.n_annotators) / np.maximum(n, 1)
    d, s, k = data.shape
    group, place = data.anchors // (s * k), data.anchors % k
    answer_sum = np.zeros((d, k))
    np.add.at(answer_sum, (group, place), data.answers - means[data.anchor_annotator])
    count = np.zeros((d, k))
    np.add.at(count, (group, place), 1)
    score = np.full((d, k), np.nan)
    score[study.place] = published
    values = []
    for answers, counts, scores in zip(answer_sum, count, score, strict=True):
        has = counts > 0
        pair = answers[has] / counts[has], scores[has]
        if has.sum() > 1 and all(np.ptp(each) > 1e-9 for each in pair):
            values.append(float(spearmanr(*pair).statistic))
    if not values:
        return Estimate(
            np.nan, n=0, reason=note("no group has two items with different answers to anchors")
        )
    return _mean(np.array(values))


def _mean(values: Floats) -> Estimate:
    """Return the mean of independent values with its interval, at most 1."""
    n = len(values)
    if n < 2:
        return Estimate(float(values.mean()), n=n, reason=note("no interval: a single group"))
    margin = float(t_quantile(np.array(n - 1.0)) * values.std(ddof=1) / np.sqrt(n))
    return Estimate(
        float(values.mean()),
        float(values.mean()) - margin,
        min(1.0, float(values.mean()) + margin),
        n,
    )


def _draw_notes(posterior: Posterior) -> list[str]:
    notes = []
    if posterior.divergences:
        notes.append(
            note(
                "{n:d} of {m:d} trajectories of the sampler diverged: intervals may be too narrow",
                n=posterior.divergences,
                m=len(posterior.threshold),
            )
        )
    return notes
