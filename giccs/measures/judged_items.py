"""Judgments joined with the benchmark whose scores they produced, and the ceilings of its items.

Counting scores have an error variance, estimated by `bws.components`, and a reliability. The scores of a
choice model are shrunk by a prior, so their error is not an additive part of their variance; their ceiling is
computed from samples of the true utilities (`bws.scoring.true_utilities`). Both kinds provide the ceilings of
Pearson's r and Spearman's rho for any subset of the items, for the jackknife of `giccs.measures.ceiling`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bws.base.ids import normal_id
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.base.progress import tracked
from bws.components import components
from bws.raw_agreement import item_disagreement
from bws.records import CanonicalJudgments, Judgments
from bws.scoring import Scale, score
from bws.scoring.expected import expected_counting, expected_of_draws
from bws.scoring.methods import METHODS, Method
from bws.scoring.true_utilities import TrueUtilities, estimate_taste_variance, true_utilities
from giccs.benchmark import Benchmark

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]

ROUNDING = 0.005 + 1e-9
"""Tolerance for scores rounded to two decimals."""
SCORES: tuple[tuple[str, Scale], ...] = (
    ("counting", "unit"),
    ("best-worst-logit", "unit"),
    ("best-worst-logit", "counting"),
    ("maxdiff", "unit"),
    ("maxdiff", "counting"),
)
"""Methods and scales of scores, in the order in which they are tried. A benchmark stores scores on counting's
scale as (score + 1) / 2. Plackett-Luce of triples equals the best-worst logit.
"""
MAX_NAMED_ITEMS = 3
ACROSS_DIALOGUES_REMARK = note(
    "tuples have items of several dialogues: the interval may be too narrow or too wide"
)
"""Remark on intervals over dialogues, which are then not independent."""
MAX_DRAWN_VALUES = 30_000
"""Maximum number of sampled true scores, over all samples."""
MIN_MAX_DRAWS = (4, 100)
JACKKNIFE_DRAWS = 20
"""Number of samples in the jackknife of counting scores."""
MIN_ERROR_SHARE = 0.05
"""Minimum error variance of an item, as a share of the mean error variance."""


@dataclass(frozen=True, eq=False)
class JudgedItems:
    """The N items of a benchmark and the judgments about them."""

    canonical: CanonicalJudgments
    """Judgments of any item of the benchmark, possibly with other items."""
    index: Ints
    """(N,) index of each item in the answers."""
    dialogue: Ints
    """(N,) index of each item's dialogue."""
    original_index: Ints
    """(N,) index of each item in the items of the judgments."""
    method: str
    scale: str
    """Method and scale of `SCORES` that reproduce the benchmark's scores."""

    @property
    def n_anonymous(self) -> int:
        """Number of judgments without annotator."""
        return int(np.count_nonzero(self.canonical.annotator_of < 0))

    @property
    def has_tuples_within_dialogues(self) -> bool:
        """Whether each tuple has items of a single dialogue of the benchmark."""
        dialogue_of_item = np.full(len(self.canonical.items), -1)
        dialogue_of_item[self.index] = self.dialogue
        dialogue_of_member = dialogue_of_item[self.canonical.members]
        is_control = self.canonical.members >= self.canonical.n_scored
        dialogue_of_tuple = dialogue_of_member.max(axis=1, keepdims=True)
        dialogue_of_member = np.where(is_control, dialogue_of_tuple, dialogue_of_member)
        return not ((dialogue_of_member < 0).any() or np.ptp(dialogue_of_member, axis=1).any())


def judged_items(judgments: Judgments, benchmark: Benchmark) -> JudgedItems:
    """Join the items of a benchmark with the judgments behind their scores.

    Judgments of other items are ignored. Dialogues are used as groups for judgments without groups, if no
    tuple has items of two dialogues. Raises InputError if an item was not judged, if no method and scale of
    `SCORES` reproduces all scores within 0.005, or for copies of judgments (`bws.copies`).
    """
    judgments.check_no_copies()
    tuples = judgments.tuples
    keys = item_keys(benchmark, grouped=any(tuples.groups))
    index_of_key = {key: index for index, key in enumerate(tuples.item_keys[: tuples.n_scored])}
    original_index = np.array([index_of_key.get(key, -1) for key in keys])
    method, scale = _scoring_method(judgments, benchmark, original_index)
    is_included: NDArray[np.bool_] = np.any(np.isin(tuples.members, original_index), axis=1)
    canonical = judgments.select(is_included[judgments.tuple_of]).canonical
    dialogue_index = {dialogue_id: n for n, dialogue_id in enumerate(benchmark.dialogue_ids)}
    dialogue = np.array([dialogue_index[item.dialogue_id] for item in benchmark.items])
    index = canonical_index(canonical, judgments, original_index)
    return _with_dialogue_groups(
        JudgedItems(canonical, index, dialogue, original_index, method, scale)
    )


def disagreement_of_items(judgments: Judgments, benchmark: Benchmark) -> dict[str, float]:
    """Return the disagreement on each item of a benchmark (`bws.raw_agreement.item_disagreement`), by its id.

    Raises InputError like `judged_items`.
    """
    values = item_disagreement(judgments)[judged_items(judgments, benchmark).original_index]
    ids = [item.item_id for item in benchmark.items]
    return dict(zip(ids, values.tolist(), strict=True))


def canonical_index(
    canonical: CanonicalJudgments, judgments: Judgments, original_index: Ints
) -> Ints:
    """Return (N,) the index in the answers of the items at `original_index` in the judgments' items."""
    canonical_of_original = np.full(len(judgments.tuples.items), -1)
    canonical_of_original[canonical.origin] = np.arange(len(canonical.origin))
    return canonical_of_original[original_index]


def _with_dialogue_groups(judged_data: JudgedItems) -> JudgedItems:
    """Return the data with dialogues as groups, if there are no groups and no tuple has items of two
    dialogues."""
    canonical = judged_data.canonical
    if any(canonical.groups) or not judged_data.has_tuples_within_dialogues:
        return judged_data
    dialogue_of_item = np.zeros(len(canonical.items), dtype=np.int64)
    dialogue_of_item[judged_data.index] = judged_data.dialogue
    groups = [str(n) for n in range(dialogue_of_item.max() + 1)]
    return replace(
        judged_data, canonical=replace(canonical, groups=groups, group_of=dialogue_of_item)
    )


def item_keys(benchmark: Benchmark, *, grouped: bool) -> list[tuple[str, str]]:
    """Return the keys of the items in the judgments: group and item, or the item alone without groups."""
    keys = [
        (normal_id(item.dialogue_id) if grouped else "", normal_id(item.utterance_id))
        for item in benchmark.items
    ]
    if len(set(keys)) < len(keys):
        message = (
            f"{len(keys) - len(set(keys))} utterance ids occur in more than one dialogue, and the "
            "judgments have no groups; expected judgments with a column group"
        )
        raise InputError(Problem(benchmark.name, None, message))
    return keys


def _scoring_method(
    judgments: Judgments, benchmark: Benchmark, original_index: Ints
) -> tuple[str, str]:
    """Return the method and scale that reproduce the benchmark's scores; raise InputError if there are
    none."""
    benchmark_scores = np.array([item.score for item in benchmark.items])
    expected = (
        f"expected the judgments behind the scores of {benchmark.name}; a benchmark with the scores of these "
        "judgments: giccs score --scale unit, then giccs build"
    )
    is_unjudged = (original_index < 0) | ~np.isin(
        original_index, judgments.tuples.members[judgments.tuple_of]
    )
    if is_unjudged.any():
        item_ids = _list_item_ids(benchmark, is_unjudged)
        count = f"{is_unjudged.sum()} of {len(benchmark_scores)}"
        message = f"{count} items are not judged ({item_ids}); {expected}"
        raise InputError(Problem(judgments.source or "judgments", None, message))
    differing = []
    methods = [
        (method, scale) for method, scale in SCORES
        if not judgments.is_adaptive or METHODS[method].stages is not None
    ]  # fmt: skip
    for method, scale in methods:
        computed_scores = score(judgments, method, scale=scale).score[original_index]
        differs = (
            np.abs(
                (computed_scores if scale == "unit" else (computed_scores + 1) / 2)
                - benchmark_scores
            )
            > ROUNDING
        )
        if not differs.any():
            return method, scale
        differing.append(differs)
    tried = ", ".join(f"{method} ({scale})" for method, scale in methods[1:])
    message = (
        f"{differing[0].sum()} of {len(benchmark_scores)} items have another score than that of "
        f"{methods[0][0]} ({_list_item_ids(benchmark, differing[0])}), and the choice models with --scale do "
        f"not reproduce all scores either: {tried}; {expected}"
    )
    raise InputError(Problem(judgments.source or "judgments", None, message))


def _list_item_ids(benchmark: Benchmark, is_named: NDArray[np.bool_]) -> str:
    ids = [benchmark.items[index].item_id for index in np.flatnonzero(is_named)]
    return ", ".join(ids[:MAX_NAMED_ITEMS]) + (", ..." if len(ids) > MAX_NAMED_ITEMS else "")


class Items(Protocol):
    """N scores and their ceilings."""

    @property
    def score(self) -> Floats:
        """(N,)"""

    @property
    def dialogue(self) -> Ints:
        """(N,) index of the item's dialogue."""

    @property
    def constants(self) -> tuple[float, float]:
        """Means that are constant in every study, over all items that were judged together.

        Each judgment of a tuple has one best and one worst item, so the means of counting scores and of the
        shares of being selected are constant; utilities have the mean 0.
        """

    @property
    def feedback(self) -> Floats:
        """(2,) correction factor of changes of log(1 - ceiling^2) when items are omitted."""

    @property
    def no_ceiling(self) -> str:
        """Reason for a missing ceiling; empty otherwise."""

    def select(self, rows: Rows) -> Items:
        """Return the items of `rows`, with the number of samples for the jackknife."""

    def ceilings(self) -> Floats:
        """Return the ceilings of Pearson's r and Spearman's rho (2,); NaN if errors are as large as the
        scores' variance."""

    def without_annotators(self, block_of: Ints) -> Floats:
        """Return (B, N, 2) contributions of the items to changes of log(1 - ceiling^2) without each block."""


@dataclass(frozen=True, eq=False)
class CountedItems:
    """Counting scores with the variances of their errors."""

    score: Floats
    n_chosen: Floats
    """(N,) share of its judgments in which an item is best or worst."""
    dialogue: Ints
    error: Floats
    """(N,) error variances; NaN if unknown."""
    normal: Floats
    """(R, N) standard normal numbers."""
    canonical: CanonicalJudgments
    index: Ints
    """(N,) index of each item in the answers."""

    @classmethod
    def of(
        cls, answers: CanonicalJudgments, index: Ints, dialogue: Ints, seed: int
    ) -> CountedItems:
        """Return the items at `index` in the answers."""
        score, n_chosen = _counting_scores(answers, index)
        random = np.random.Generator(np.random.PCG64(seed))
        normal = random.standard_normal((_draw_count(len(score)), len(score)))
        error = components(answers).error[index]
        return cls(score, n_chosen, dialogue, error, normal, answers, index)

    @property
    def constants(self) -> tuple[float, float]:
        """Means that are constant in every study."""
        return float(self.score.mean()), float(self.n_chosen.mean())

    @property
    def feedback(self) -> Floats:
        """(2,) ones."""
        return np.ones(2)

    @property
    def no_ceiling(self) -> str:
        """Reason for a missing ceiling; empty otherwise."""
        if np.isnan(self.error).all():
            return note("no item has judgments from which the error of its score can be estimated")
        variance, mean = float(np.var(self.score, ddof=1)), float(np.nanmean(self.error))
        if mean < variance:
            return ""
        return note(
            "the error variance of the scores ({mean:.3f}) is as large as their variance ({variance:.3f})",
            mean=mean,
            variance=variance,
        )

    @property
    def reliability(self) -> float:
        """Share of the scores' variance that is not error."""
        return 1 - float(np.nanmean(self.error)) / float(np.var(self.score, ddof=1))

    def select(self, rows: Rows) -> CountedItems:
        """Return the items of `rows`, with the number of samples for the jackknife."""
        return replace(
            self,
            score=self.score[rows],
            n_chosen=self.n_chosen[rows],
            dialogue=self.dialogue[rows],
            error=self.error[rows],
            normal=self.normal[:JACKKNIFE_DRAWS, rows],
            index=self.index[rows],
        )

    def ceilings(self) -> Floats:
        """Return the ceilings of Pearson's r and Spearman's rho (2,); at most 1, NaN for a negative
        reliability."""
        share = min(self.reliability, 1.0)
        if share <= 0:
            return np.full(2, math.nan)
        true = share * self.score + np.sqrt(share * self._smoothed_errors()) * self.normal
        return np.array([math.sqrt(share), _spearman(true, self.score).mean()])

    def without_annotators(self, block_of: Ints) -> Floats:
        """Return (B, N, 2) contributions of the items to changes of log(1 - ceiling^2) without each block."""
        total = float(np.nansum(self.error))
        blocks = int(block_of.max(initial=-1)) + 1 if total > 0 else 0
        changes = np.zeros((blocks, len(self.score), 2))
        for block in tracked(range(blocks), "annotators", blocks):
            error_without_block = components(
                self.canonical, excluded_annotators=np.flatnonzero(block_of == block)
            ).error
            changes[block] = (
                np.nan_to_num(error_without_block[self.index] - self.error)[:, np.newaxis] / total
            )
        return changes

    def _smoothed_errors(self) -> Floats:
        """Return (N,) error variances as a function of the score, with the mean of `error`.

        They are smaller near the ends of the scale: least squares on the second and fourth power.
        """
        square, mean = (
            (self.score - self.score.mean()) ** 2,
            max(float(np.nanmean(self.error)), 0.0),
        )
        powers = np.stack([np.ones_like(square), square, square**2], axis=1)
        is_known = ~np.isnan(self.error)
        weights = np.linalg.lstsq(powers[is_known], self.error[is_known], rcond=None)[0]
        fitted = np.maximum(powers @ weights, MIN_ERROR_SHARE * mean)
        return fitted * (mean / fitted.mean()) if mean else np.zeros_like(fitted)


@dataclass(frozen=True, eq=False)
class ModelledItems:
    """Scores of a choice model, with samples of the true scores (`bws.scoring.true_utilities`).

    A ceiling is the mean correlation of scores and samples. log(1 - ceiling^2) is treated as linear in the
    variance t of the annotators' preferences, from 0 to the t of `draws_with_tastes`.
    """

    score: Floats
    utility: Floats
    """(N,)"""
    n_chosen: Floats
    """(N,) share of its judgments in which an item is best or worst."""
    dialogue: Ints
    draws_without_tastes: Floats
    """(R, N) true scores for annotators without individual preferences."""
    draws_with_tastes: Floats
    """(R, N) true scores for annotators whose preferences have the variance `true.assumed`."""
    true: TrueUtilities
    index: Ints
    """(N,) index of each item in `true`."""

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
        """Return the items at `index` in the answers; None like `true_utilities`."""
        model = METHODS[method]
        assert model.stages is not None
        fitted = model.fit(answers, clusters=None, seed=seed)
        true = true_utilities(
            answers,
            model.stages,
            fitted.utility,
            fitted.estimated["prior"],
            _draw_count(len(answers.items)),
            block_of,
            seed,
        )
        if true is None:
            return None
        observed, alike, draws_with_tastes = (
            _scores(values, answers, model, scale)[:, index]
            for values in (fitted.utility[np.newaxis], true.without_tastes, true.with_tastes)
        )
        _, n_chosen = _counting_scores(answers, index)
        return cls(
            observed[0],
            fitted.utility[index],
            n_chosen,
            dialogue,
            alike,
            draws_with_tastes,
            true,
            index,
        )

    @property
    def constants(self) -> tuple[float, float]:
        """Means that are constant in every study."""
        return float(self.utility.mean()), float(self.n_chosen.mean())

    @property
    def feedback(self) -> Floats:
        """(2,) correction factor of changes of log(1 - ceiling^2) when items are omitted: 1 / ceiling^2.

        Let utilities without shrinkage have the variance U, of which v is error. The prior is estimated from
        both, so log(1 - c^2) = log(v / U) decreases by y when U grows by the share y. When items are omitted,
        the prior is unchanged: the shrunk utilities have the variance c^2 U and their samples c^2 v more, so
        log(v / (U + v)) decreases by c^2 y only.
        """
        start, _ = self._error_line()
        return np.asarray(1 / (1 - np.exp(start)))

    @property
    def no_ceiling(self) -> str:
        """Reason for a missing ceiling; empty otherwise."""
        if np.isnan(self.true.taste_variance):
            return note(
                "no item was judged by two annotators, so the errors of the scores are unknown"
            )
        is_error_dominated = (
            self.true.taste_variance > 0 and not self.true.non_taste_share[self.index].any()
        )
        if is_error_dominated or np.isnan(self.ceilings()).any():
            return note("the errors of the scores are as large as their differences")
        return ""

    def select(self, rows: Rows) -> ModelledItems:
        """Return the items of `rows`."""
        return replace(
            self,
            score=self.score[rows],
            utility=self.utility[rows],
            n_chosen=self.n_chosen[rows],
            dialogue=self.dialogue[rows],
            draws_without_tastes=self.draws_without_tastes[:, rows],
            draws_with_tastes=self.draws_with_tastes[:, rows],
            index=self.index[rows],
        )

    def ceilings(self) -> Floats:
        """Return the ceilings of Pearson's r and Spearman's rho (2,); NaN if samples and scores do not
        agree."""
        tastes = estimate_taste_variance(
            self.true.excess[self.index], self.true.excess_per_unit[self.index]
        )
        start, slope = self._error_line()
        return np.sqrt(np.where((left := np.exp(start + slope * tastes)) < 1, 1 - left, math.nan))

    def without_annotators(self, block_of: Ints) -> Floats:
        """Return (B, N, 2) contributions of the items to changes of log(1 - ceiling^2) without each block."""
        true, (_, slope) = self.true, self._error_line()
        changes = np.nan_to_num(true.excess_without_block - true.excess)[:, self.index]
        return changes[..., np.newaxis] * slope / np.nansum(true.excess_per_unit[self.index])

    def _error_line(self) -> tuple[Floats, Floats]:
        """Return log(1 - ceiling^2) for t = 0, and its slope (2,) each."""
        start, with_tastes = (
            _log_error_share(draws, self.score)
            for draws in (self.draws_without_tastes, self.draws_with_tastes)
        )
        return start, (with_tastes - start) / self.true.assumed_variance


def _log_error_share(draws: Floats, score: Floats) -> Floats:
    """Return log(1 - r^2) of the mean r and rho (2,) of samples (R, N) with scores (N,); NaN below 0."""
    means = np.array([_pearson(draws, score).mean(), _spearman(draws, score).mean()])
    log_error_share: Floats = np.log(1 - np.where(means > 0, means, math.nan) ** 2)
    return log_error_share


def _scores(utility: Floats, canonical: CanonicalJudgments, model: Method, scale: str) -> Floats:
    """Return (R, N) scores in [-1, 1] of R samples of utilities."""
    if scale != "counting" or model.stages is None:
        return model.to_score(utility)
    if len(utility) == 1:
        only = expected_counting(utility[0], canonical.group_of, canonical.k, model.stages)
        return only[np.newaxis]
    return expected_of_draws(utility, canonical.group_of, canonical.k, model.stages)


def _counting_scores(canonical: CanonicalJudgments, index: Ints) -> tuple[Floats, Floats]:
    """Return (N,) each: the counting scores of the items and their shares of being selected."""
    counts = canonical.counts
    scores = ((counts.best - counts.worst) / counts.appearances)[index]
    return scores, ((counts.best + counts.worst) / counts.appearances)[index]


def _draw_count(n_items: int) -> int:
    return max(MIN_MAX_DRAWS[0], min(MIN_MAX_DRAWS[1], MAX_DRAWN_VALUES // n_items))


def _pearson(draws: Floats, score: Floats) -> Floats:
    """Return (R,) Pearson's r of samples (R, N) and scores (N,)."""
    centred_score, centred_draws = score - score.mean(), draws - draws.mean(axis=1, keepdims=True)
    products: Floats = centred_draws @ centred_score
    r: Floats = products / np.sqrt((centred_draws**2).sum(axis=1) * (centred_score @ centred_score))
    return r


def _spearman(draws: Floats, score: Floats) -> Floats:
    """Return (R,) Spearman's rho of samples (R, N) and scores (N,); only the scores have ties."""
    from scipy.stats import rankdata

    ranks = np.argsort(np.argsort(draws, axis=1), axis=1) - (len(score) - 1) / 2
    score_ranks = rankdata(score) - (len(score) + 1) / 2
    products = ranks @ score_ranks
    rho: Floats = products / np.sqrt((ranks[0] @ ranks[0]) * (score_ranks @ score_ranks))
    return rho
