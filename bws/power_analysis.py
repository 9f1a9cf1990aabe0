"""Expected reliability of a planned design, and what anchors add to it, by simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bws.absolute.design import plan_anchors
from bws.absolute.files import Anchors
from bws.absolute.scores import absolute_scale
from bws.absolute.simulation import simulate_anchors
from bws.base.frames import Tabular
from bws.base.notes import note
from bws.base.problems import InputError
from bws.base.progress import progress_shown_by, tracked
from bws.base.tables import Cell, Column, ResultTable
from bws.components import components
from bws.design import fresh_rounds, make_tuples
from bws.records import Floats, Judgments, Tuples
from bws.scoring import score
from bws.simulation import Model, simulate
from bws.split_half import Correlation, correlate, reliability

N_TRIALS = 10
N_DRAWS = 100
"""Draws behind an absolute score of a simulated study, whose error is small beside that of the answers."""
ANCHOR_DESIGNS = ("rating:1", "rating:2", "rating:3", "mark")
WITHOUT_ANCHORS = "none"


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


@dataclass(frozen=True, eq=False, repr=False)
class AnchorPower(Tabular):
    """Expected correlation with the true similarity over the items of all groups, by design of anchors."""

    correlations: Mapping[str, Correlation]
    """Design, or ``none`` for the published scores -> Pearson's r in each simulated study; NaN if the
    anchors were refused."""
    answers: Mapping[str, int]
    """Number of answers to anchors in a study."""
    refused: Mapping[str, str]
    """Design -> why the anchors of the first refused study were refused."""
    offset_sd: float
    slider_sd: float
    studies: int
    seed: int

    def document(self) -> dict[str, Any]:
        """Return the result as plain dicts."""
        designs = [
            {"anchors": name, "answers": self.answers[name], "pearson": values.document()}
            for name, values in self.correlations.items()
        ]
        settings = {"offset_sd": self.offset_sd, "slider_sd": self.slider_sd}
        return {"designs": designs, **settings, "studies": self.studies, "seed": self.seed}

    def result_table(self) -> ResultTable:
        """Return a row per design."""
        columns = [
            Column("anchors", "anchors"),
            Column("answers", "answers to anchors", align="right"),
            Column("pearson", "r over all items", ".3f", align="right"),
            Column("pearson_sd", "SD over studies", ".3f", align="right"),
        ]
        rows: list[list[Cell]] = [
            [name, self.answers[name], values.mean, values.sd]
            for name, values in self.correlations.items()
        ]
        return ResultTable(columns, rows, self.notes(), "Absolute scores by number of anchors", "–")

    def notes(self) -> list[str]:
        """Return how the numbers were simulated."""
        lines = [
            note(
                "simulated, no results: {n:d} studies, seed {seed:d}; differences between groups {offset:g} "
                "of the SD within them, slider noise {slider:g} logits",
                n=self.studies, seed=self.seed, offset=self.offset_sd, slider=self.slider_sd,
            ),
            note(
                "r: correlation with the true similarity over the items of all groups; none: that of the "
                "published scores"
            ),
        ]  # fmt: skip
        lines += [
            note(
                "{n:d} studies with {design} have no absolute scores, such as: {reason}",
                design=name, n=int(np.isnan(self.correlations[name].trials).sum()), reason=reason,
            )
            for name, reason in self.refused.items()
        ]  # fmt: skip
        return lines


def anchor_power(
    tuples: Tuples,
    truth: Floats,
    annotators: int = 5,
    *,
    designs: Sequence[str] = ANCHOR_DESIGNS,
    per_tuple: int | None = None,
    noise: float = 0.25,
    model: Model = "gumbel",
    disagreement: float = 0.0,
    careless: float = 0.0,
    position_bias: float = 0.0,
    offset_sd: float = 0.7,
    slider_sd: float = 2.0,
    studies: int = 10,
    seed: int = 0,
) -> AnchorPower:
    """Simulate studies with each design of anchors; return the correlation of their scores with the truth.

    tuples, truth, annotators, per_tuple, noise, model, disagreement, careless, position_bias: of
        `bws.simulate`. With per_tuple, as many people answer the anchors of a group.
    designs: of `bws.plan_anchors`. All have the same judgments and differences between groups.
    offset_sd: standard deviation of the differences between groups, relative to that of the truth within
        groups. slider_sd: that of a rating in logits; the SDs of thresholds are those of `simulate_anchors`.

    The truth is the answer of the average annotator to each item. Scores without anchors are those of
    counting; the others are means over 100 draws. Raises ValueError for arguments out of range.
    """
    if studies < 1 or len(tuples.groups) < 2:
        raise ValueError(
            f"{studies} studies of {len(tuples.groups)} groups; expected one study of two groups or more"
        )
    shared: dict[str, Any] = {"noise": noise, "disagreement": disagreement, "careless": careless}
    settings: dict[str, Any] = {
        "model": model,
        "position_bias": position_bias,
        "per_tuple": per_tuple,
    }
    further: dict[str, Any] = {
        "offset_sd": offset_sd,
        "slider_sd": slider_sd,
        "per_group": per_tuple,
    }
    plans = {design: plan_anchors(tuples, design, seed=seed) for design in designs}
    seeds = np.random.Generator(np.random.PCG64(seed)).integers(2**31, size=studies).tolist()
    found: dict[str, list[float]] = {name: [] for name in (WITHOUT_ANCHORS, *plans)}
    answers = {WITHOUT_ANCHORS: 0}
    refused: dict[str, str] = {}
    for trial in tracked(seeds, "simulated studies"):
        judgments = simulate(tuples, truth, annotators, seed=trial, **shared, **settings)
        published = score(judgments)
        for name, plan in plans.items():
            simulated = simulate_anchors(judgments, truth, plan, seed=trial, **shared, **further)
            true_scores = simulated.true_scores(is_rating=name != "mark")
            answers[name] = len(simulated.rows)
            if name == designs[0]:
                r = _correlation(published.item_keys, published.score, tuples, true_scores)
                found[WITHOUT_ANCHORS].append(r)
            try:
                with progress_shown_by(lambda work, label, total: iter(work)):
                    scale = absolute_scale(judgments, Anchors(simulated.rows), draws=N_DRAWS)
                found[name].append(_correlation(scale.keys, scale.score, tuples, true_scores))
            except InputError as error:
                found[name].append(math.nan)
                refused.setdefault(name, error.problems[0].message)
    correlations = {name: Correlation(np.array(values)) for name, values in found.items()}
    return AnchorPower(correlations, answers, refused, offset_sd, slider_sd, studies, seed)


def _correlation(
    keys: Sequence[tuple[str, str]], scores: Floats, tuples: Tuples, true_scores: Floats
) -> float:
    """Return Pearson's correlation of the scores of some items with the true ones of all."""
    true_of = dict(zip(tuples.item_keys, true_scores.tolist(), strict=True))
    return correlate(scores, np.array([true_of[key] for key in keys]))
