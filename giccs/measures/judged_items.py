"""Judgments joined with the benchmark whose scores they are behind, and the ceilings of its items.

Counting scores have errors, of which `bws.components` knows the variance, and a reliability. The scores of
a choice model are shrunk by a prior, so that their error is no such part of their variance; their ceiling
comes from draws of the true utilities (`bws.scoring.true_utilities`). Both kinds give the ceilings of
Pearson's r and Spearman's rho of any part of the items, for the jackknife of `giccs.measures.ceiling`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bws.components import components
from bws.problems import InputError, Problem
from bws.records import CanonicalJudgments, Judgments, normal_id
from bws.scoring import Scale, score
from bws.scoring.expected import expected_counting, expected_of_draws
from bws.scoring.methods import METHODS, Method
from bws.scoring.true_utilities import TrueUtilities, estimate_taste_variance, true_utilities
from giccs.benchmark import Benchmark

__all__ = [
    "ACROSS_DIALOGUES",
    "ROUNDING",
    "SCORES",
    "CountedItems",
    "Items",
    "JudgedItems",
    "ModelledItems",
    "index_in",
    "judged_items",
]

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

ROUNDING = 0.005 + 1e-9
"""Scores may have been written with two decimals."""
SCORES: tuple[tuple[str, Scale], ...] = (
    ("counting", "unit"),
    ("best-worst-logit", "unit"),
    ("best-worst-logit", "counting"),
    ("maxdiff", "unit"),
    ("maxdiff", "counting"),
)
"""Methods and scales of scores, in the order in which they are tried. A benchmark holds those on counting's
scale as (score + 1) / 2. Plackett-Luce of triples is the best-worst logit."""
NAMED = 3
ACROSS_DIALOGUES = (
    "tuples have items of several dialogues: the interval may be too narrow or too wide"
)
"""Remark on intervals over dialogues, which are then not independent."""
DRAWN_VALUES = 30_000
"""True scores drawn, over all draws."""
DRAWS = (4, 100)
BLOCK_DRAWS = 20
"""Draws in the jackknife of counting scores."""
SMALLEST_SHARE = 0.05
"""Of the mean error variance, the least that an item is given."""


@dataclass(frozen=True, eq=False)
class JudgedItems:
    """The N items of a benchmark and the judgments about them."""

    answers: CanonicalJudgments
    """Those about any item of the benchmark; they may be about others too."""
    index: Ints
    """(N,) each item's index in the answers."""
    dialogue: Ints
    """(N,) index of each item's dialogue."""
    place: Ints
    """(N,) each item's index in the items of the judgments."""
    method: str
    scale: str
    """Those of `SCORES` that give the benchmark's scores."""

    @property
    def unnamed(self) -> int:
        """Judgments that name no annotator."""
        return int(np.count_nonzero(self.answers.annotator_of < 0))

    @property
    def has_tuples_within_dialogues(self) -> bool:
        """Whether all tuples have items of one dialogue of the benchmark."""
        of_item = np.full(len(self.answers.items), -1)
        of_item[self.index] = self.dialogue
        of_member = of_item[self.answers.members]
        return not ((of_member < 0).any() or np.ptp(of_member, axis=1).any())


def judged_items(judgments: Judgments, benchmark: Benchmark) -> JudgedItems:
    """Join the items of a benchmark with the judgments behind their scores.

    Judgments of other items are left out. Dialogues are the groups of judgments that name none, where no
    tuple has items of two. InputError: an item was not judged, or no method and scale of `SCORES` gives all
    scores within 0.005.
    """
    tuples = judgments.tuples
    keys = _keys(benchmark, grouped=any(tuples.groups))
    groups = tuples.groups[tuples.group_of_item]
    known = {key: place for place, key in enumerate(zip(groups, tuples.items, strict=True))}
    place = np.array([known.get(key, -1) for key in keys])
    method, scale = _method_of(judgments, benchmark, place)
    asked: NDArray[np.bool_] = np.any(np.isin(tuples.members, place), axis=1)
    answers = judgments.take(asked[judgments.tuple_of]).canonical
    number = {dialogue_id: n for n, dialogue_id in enumerate(benchmark.dialogue_ids)}
    dialogue = np.array([number[item.dialogue_id] for item in benchmark.items])
    index = index_in(answers, judgments, place)
    return _grouped(JudgedItems(answers, index, dialogue, place, method, scale))


def index_in(answers: CanonicalJudgments, judgments: Judgments, place: Ints) -> Ints:
    """Return (N,) the index in the answers of the items at `place` in the judgments' items."""
    place_in_answers = np.full(len(judgments.tuples.items), -1)
    place_in_answers[answers.origin] = np.arange(len(answers.origin))
    return place_in_answers[place]


def _grouped(judged: JudgedItems) -> JudgedItems:
    """Return them with dialogues as groups where they name none and no tuple has items of two."""
    answers = judged.answers
    if any(answers.groups) or not judged.has_tuples_within_dialogues:
        return judged
    of_item = np.empty(len(answers.items), dtype=np.int64)
    of_item[judged.index] = judged.dialogue
    groups = [str(n) for n in range(of_item.max() + 1)]
    return replace(judged, answers=replace(answers, groups=groups, group_of=of_item))


def _keys(benchmark: Benchmark, *, grouped: bool) -> list[tuple[str, str]]:
    """Return how judgments call the items: by group and item; by item alone where they have no groups."""
    keys = [
        (normal_id(item.dialogue_id) if grouped else "", normal_id(item.utterance_id))
        for item in benchmark.items
    ]
    if len(set(keys)) < len(keys):
        message = (
            f"{len(keys) - len(set(keys))} utterance ids occur in more than one dialogue, and the judgments "
            "name no groups; judgments with a column group are needed"
        )
        raise InputError(Problem(benchmark.name, None, message))
    return keys


def _method_of(judgments: Judgments, benchmark: Benchmark, place: Ints) -> tuple[str, str]:
    """Return the method and scale that give the benchmark's scores; InputError where there are none."""
    given = np.array([item.score for item in benchmark.items])
    needs = f"expected the judgments behind the scores of {benchmark.name}"
    unjudged = (place < 0) | ~np.isin(place, judgments.tuples.members[judgments.tuple_of])
    if unjudged.any():
        which = _named(benchmark, unjudged)
        fault = f"{unjudged.sum()} of {len(given)} items are not judged ({which}); {needs}"
        raise InputError(Problem(judgments.source or "judgments", None, fault))
    differing = []
    for method, scale in SCORES:
        found = score(judgments, method, scale=scale).score[place]
        differs = np.abs((found if scale == "unit" else (found + 1) / 2) - given) > ROUNDING
        if not differs.any():
            return method, scale
        differing.append(differs)
    tried = ", ".join(f"{method} ({scale})" for method, scale in SCORES[1:])
    fault = (
        f"{differing[0].sum()} of {len(given)} items have another score than counting gives "
        f"({_named(benchmark, differing[0])}), and the choice models with --scale do not give all scores "
        f"either: {tried}; {needs}"
    )
    raise InputError(Problem(judgments.source or "judgments", None, fault))


def _named(benchmark: Benchmark, which: NDArray[np.bool_]) -> str:
    ids = [benchmark.items[place].item_id for place in np.flatnonzero(which)]
    return ", ".join(ids[:NAMED]) + (", ..." if len(ids) > NAMED else "")


class Items(Protocol):
    """N scores, and what their ceilings are."""

    @property
    def score(self) -> Floats:
        """(N,)"""

    @property
    def dialogue(self) -> Ints:
        """(N,) index of the item's dialogue."""

    @property
    def constants(self) -> tuple[float, float]:
        """Means that are the same in every study, over all items that were judged together.

        The judgments of a tuple have one best and one worst item, so that the means of counting scores and
        of the shares of being chosen are constants; and utilities have the mean 0.
        """

    @property
    def feedback(self) -> Floats:
        """(2,) by what changes of log(1 - ceiling^2) without some items are too small."""

    @property
    def no_ceiling(self) -> str:
        """Why there is no ceiling; empty where there is one."""

    def take(self, rows: Rows) -> Items:
        """Return the items of `rows`, with as many draws as the jackknife needs."""

    def ceilings(self) -> Floats:
        """Return Pearson's and Spearman's (2,); NaN where errors are as large as the scores'."""

    def without_annotators(self, block_of: Ints) -> Floats:
        """Return (B, N, 2) what log(1 - ceiling^2) changes by through each item without each block."""


@dataclass(frozen=True, eq=False)
class CountedItems:
    """Scores by counting, with the variances of their errors."""

    score: Floats
    chosen: Floats
    """(N,) share of its judgments in which an item is best or worst."""
    dialogue: Ints
    error: Floats
    """(N,) NaN where it is not known."""
    normal: Floats
    """(R, N) standard normal numbers."""
    answers: CanonicalJudgments
    index: Ints
    """(N,) place of each item in the answers."""

    @classmethod
    def of(
        cls, answers: CanonicalJudgments, index: Ints, dialogue: Ints, seed: int
    ) -> CountedItems:
        """Return the items at `index` in the answers."""
        score, chosen = _counted(answers, index)
        random = np.random.Generator(np.random.PCG64(seed))
        normal = random.standard_normal((_draws(len(score)), len(score)))
        error = components(answers).error[index]
        return cls(score, chosen, dialogue, error, normal, answers, index)

    @property
    def constants(self) -> tuple[float, float]:
        """Means that are the same in every study."""
        return float(self.score.mean()), float(self.chosen.mean())

    @property
    def feedback(self) -> Floats:
        """(2,) of 1."""
        return np.ones(2)

    @property
    def no_ceiling(self) -> str:
        """Why there is no ceiling; empty where there is one."""
        if np.isnan(self.error).all():
            return "no item has judgments from which the error of its score can be estimated"
        variance, mean = float(np.var(self.score, ddof=1)), float(np.nanmean(self.error))
        if mean < variance:
            return ""
        return f"the errors of the scores (variance {mean:.3f}) are as large as the scores' ({variance:.3f})"

    @property
    def reliability(self) -> float:
        """Share of the scores' variance that is not error."""
        return 1 - float(np.nanmean(self.error)) / float(np.var(self.score, ddof=1))

    def take(self, rows: Rows) -> CountedItems:
        """Return the items of `rows`, with as many draws as the jackknife needs."""
        return replace(
            self,
            score=self.score[rows],
            chosen=self.chosen[rows],
            dialogue=self.dialogue[rows],
            error=self.error[rows],
            normal=self.normal[:BLOCK_DRAWS, rows],
            index=self.index[rows],
        )

    def ceilings(self) -> Floats:
        """Return Pearson's and Spearman's (2,); at most 1, NaN where the reliability is below 0."""
        share = min(self.reliability, 1.0)
        if share <= 0:
            return np.full(2, math.nan)
        true = share * self.score + np.sqrt(share * self._smoothed()) * self.normal
        return np.array([math.sqrt(share), _spearman(true, self.score).mean()])

    def without_annotators(self, block_of: Ints) -> Floats:
        """Return (B, N, 2) what log(1 - ceiling^2) changes by through each item without each block."""
        total = float(np.nansum(self.error))
        blocks = int(block_of.max(initial=-1)) + 1 if total > 0 else 0
        changes = np.zeros((blocks, len(self.score), 2))
        for block in range(blocks):
            left = components(
                self.answers, excluded_annotators=np.flatnonzero(block_of == block)
            ).error
            changes[block] = np.nan_to_num(left[self.index] - self.error)[:, np.newaxis] / total
        return changes

    def _smoothed(self) -> Floats:
        """Return (N,) error variances that depend on the score only, with the mean of `error`.

        They are smaller near the ends of the scale: least squares on the second and fourth power.
        """
        square, mean = (
            (self.score - self.score.mean()) ** 2,
            max(float(np.nanmean(self.error)), 0.0),
        )
        powers = np.stack([np.ones_like(square), square, square**2], axis=1)
        known = ~np.isnan(self.error)
        weights = np.linalg.lstsq(powers[known], self.error[known], rcond=None)[0]
        fitted = np.maximum(powers @ weights, SMALLEST_SHARE * mean)
        return fitted * (mean / fitted.mean()) if mean else np.zeros_like(fitted)


@dataclass(frozen=True, eq=False)
class ModelledItems:
    """Scores by a choice model, with draws of the true scores (`bws.scoring.true_utilities`).

    A ceiling is the mean correlation of scores and draws. log(1 - ceiling^2) is taken as linear in the
    variance t of the annotators' tastes, from 0 and the t of `tasteful`.
    """

    score: Floats
    utility: Floats
    """(N,)"""
    chosen: Floats
    """(N,) share of its judgments in which an item is best or worst."""
    dialogue: Ints
    alike: Floats
    """(R, N) true scores for annotators without tastes."""
    tasteful: Floats
    """(R, N) for annotators whose tastes have the variance `true.assumed`."""
    true: TrueUtilities
    index: Ints
    """(N,) place of each item in `true`."""

    @classmethod
    def of(
        cls,
        answers: CanonicalJudgments,
        index: Ints,
        dialogue: Ints,
        method: str,
        scale: str,
        block_of: Ints,
        seed: int,
    ) -> ModelledItems | None:
        """Return the items at `index` in the answers; None as `true_utilities`."""
        model = METHODS[method]
        assert model.stages is not None
        fitted = model.fit(answers, clusters=None, seed=seed)
        true = true_utilities(
            answers,
            model.stages,
            fitted.utility,
            fitted.estimated["prior"],
            _draws(len(answers.items)),
            block_of,
            seed,
        )
        if true is None:
            return None
        observed, alike, tasteful = (
            _scores(values, answers, model, scale)[:, index]
            for values in (fitted.utility[np.newaxis], true.without_tastes, true.with_tastes)
        )
        _, chosen = _counted(answers, index)
        return cls(
            observed[0], fitted.utility[index], chosen, dialogue, alike, tasteful, true, index
        )

    @property
    def constants(self) -> tuple[float, float]:
        """Means that are the same in every study."""
        return float(self.utility.mean()), float(self.chosen.mean())

    @property
    def feedback(self) -> Floats:
        """(2,) by what changes of log(1 - ceiling^2) without some items are too small: 1 / ceiling^2.

        Let utilities without shrinkage have the variance U, of which v is error. The prior is estimated from
        both, so that log(1 - c^2) = log(v / U) falls by y when U grows by the share y. Without some items
        the prior stays: the shrunk utilities have the variance c^2 U and their draws c^2 v more, so that
        log(v / (U + v)) falls by c^2 y only.
        """
        start, _ = self._line()
        return np.asarray(1 / (1 - np.exp(start)))

    @property
    def no_ceiling(self) -> str:
        """Why there is no ceiling; empty where there is one."""
        if np.isnan(self.true.taste_variance):
            return "no item was judged by two annotators, so the errors of the scores are not known"
        drowned = self.true.taste_variance > 0 and not self.true.non_taste_share[self.index].any()
        if drowned or np.isnan(self.ceilings()).any():
            return "the errors of the scores are as large as their differences"
        return ""

    def take(self, rows: Rows) -> ModelledItems:
        """Return the items of `rows`."""
        return replace(
            self,
            score=self.score[rows],
            utility=self.utility[rows],
            chosen=self.chosen[rows],
            dialogue=self.dialogue[rows],
            alike=self.alike[:, rows],
            tasteful=self.tasteful[:, rows],
            index=self.index[rows],
        )

    def ceilings(self) -> Floats:
        """Return Pearson's and Spearman's (2,); NaN where the draws do not agree with the scores."""
        tastes = estimate_taste_variance(
            self.true.excess[self.index], self.true.excess_per_unit[self.index]
        )
        start, slope = self._line()
        return np.sqrt(np.where((left := np.exp(start + slope * tastes)) < 1, 1 - left, math.nan))

    def without_annotators(self, block_of: Ints) -> Floats:
        """Return (B, N, 2) what log(1 - ceiling^2) changes by through each item without each block."""
        true, (_, slope) = self.true, self._line()
        changes = np.nan_to_num(true.excess_without_block - true.excess)[:, self.index]
        return changes[..., np.newaxis] * slope / np.nansum(true.excess_per_unit[self.index])

    def _line(self) -> tuple[Floats, Floats]:
        """Return log(1 - ceiling^2) for t = 0, and its slope (2,) each."""
        start, there = (_log_left(draws, self.score) for draws in (self.alike, self.tasteful))
        return start, (there - start) / self.true.assumed_variance


def _log_left(draws: Floats, score: Floats) -> Floats:
    """Return log(1 - r^2) of the mean r and rho (2,) of draws (R, N) with scores (N,); NaN below 0."""
    means = np.array([_pearson(draws, score).mean(), _spearman(draws, score).mean()])
    left: Floats = np.log(1 - np.where(means > 0, means, math.nan) ** 2)
    return left


def _scores(utility: Floats, answers: CanonicalJudgments, model: Method, scale: str) -> Floats:
    """Return (R, N) the scores in [-1, 1] of R draws of utilities."""
    if scale != "counting" or model.stages is None:
        return model.to_score(utility)
    if len(utility) == 1:
        only = expected_counting(utility[0], answers.group_of, answers.k, model.stages)
        return only[np.newaxis]
    return expected_of_draws(utility, answers.group_of, answers.k, model.stages)


def _counted(answers: CanonicalJudgments, index: Ints) -> tuple[Floats, Floats]:
    """Return (N,) each the counting scores of some items and the shares of being chosen."""
    counts = answers.counts
    scores = ((counts.best - counts.worst) / counts.appearances)[index]
    return scores, ((counts.best + counts.worst) / counts.appearances)[index]


def _draws(items: int) -> int:
    return max(DRAWS[0], min(DRAWS[1], DRAWN_VALUES // items))


def _pearson(draws: Floats, score: Floats) -> Floats:
    """Return (R,) Pearson's r of draws (R, N) and scores (N,)."""
    own, others = score - score.mean(), draws - draws.mean(axis=1, keepdims=True)
    products: Floats = others @ own
    r: Floats = products / np.sqrt((others**2).sum(axis=1) * (own @ own))
    return r


def _spearman(draws: Floats, score: Floats) -> Floats:
    """Return (R,) Spearman's rho of draws (R, N) and scores (N,); only the scores have ties."""
    from scipy.stats import rankdata

    ranks = np.argsort(np.argsort(draws, axis=1), axis=1) - (len(score) - 1) / 2
    of_score = rankdata(score) - (len(score) + 1) / 2
    products = ranks @ of_score
    rho: Floats = products / np.sqrt((ranks[0] @ ranks[0]) * (of_score @ of_score))
    return rho
