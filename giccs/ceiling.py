"""The noise ceiling: how well can a model agree with scores that are themselves uncertain?

Other annotators, and other tuples where not all were judged, would have given somewhat other scores.
Classical test theory (Spearman 1904, Am. J. Psychol. 15; Lord and Novick 1968) calls an item's expected
score its true score; observed scores correlate with true ones by the square root of the observed scores'
reliability. A model that predicted every true score would reach that correlation, and none can be
expected to reach more. The reliability is that of `bws.components`, whose error contains the annotators,
the choice of tuples and single answers.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from bws.clusters import few_clusters, too_few_clusters
from bws.components import components
from bws.files import read_judgments
from bws.records import Judgments
from bws.scoring.answers import Answers, in_order
from giccs.benchmark import SAMPLE, Benchmark
from giccs.judged_items import ACROSS_DIALOGUES, ROUNDING, JudgedItems, judged_items
from giccs.metrics import Estimate

__all__ = ["METHOD", "judgments_behind", "judgments_digest", "meaning", "noise_ceiling"]

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

METHOD = "components 1"
"""Name and version of how a ceiling is computed; a change of numbers changes it."""
MEANING = (
    "The noise ceiling is what a model that knew the true scores would reach: the scores contain errors "
    "of annotators and single answers, and of the choice of tuples where not all were judged."
)
EQUAL_MEANS = (
    "The scores of every dialogue have the same mean, as they compare its items only with each other. "
    "A model that knew how similar items are in absolute terms would therefore stay below the ceiling "
    "over all items, even without noise; the within-dialogue ρ is the fair measure of such a model."
)
MIN_ITEMS = 3
MAX_DIALOGUE_BLOCKS = 50
MAX_ANNOTATOR_BLOCKS = 20
DRAWN_VALUES = 30_000
"""True scores drawn for Spearman's rho, over all draws."""
DRAWS = (4, 100)
BLOCK_DRAWS = 20
"""Draws in the jackknife."""
CONSTANT = 1e-9
SMALLEST_SHARE = 0.05
"""Of the mean error variance, the least that an item is given."""


def judgments_behind(
    benchmark: Benchmark,
    path: str | os.PathLike[str] | None = None,
    *,
    merge_variants: bool = False,
) -> Judgments | None:
    """Return the judgments in a file of any format; without one those of giccs-sample, or None.

    merge_variants: as in `bws.read_judgments`; as it was for the scores.

    Whether they are those behind the benchmark's scores is for `noise_ceiling` to find out.

    >>> from giccs.benchmark import read_benchmark
    >>> len(judgments_behind(read_benchmark("giccs-sample")))
    3000
    """
    if path is not None:
        return read_judgments(path, merge_variants=merge_variants)
    if benchmark.name != SAMPLE:
        return None
    with resources.as_file(resources.files("giccs.data") / "judgments.csv") as own:
        return read_judgments(own)


def noise_ceiling(
    judgments: Judgments, benchmark: Benchmark, *, seed: int = 0
) -> dict[str, Estimate]:
    """Return ``pearson`` and ``spearman``: what a model that knew the true scores would reach, in [0, 1].

    A true score is an item's expected counting score over the population of annotators and, where a design
    is incomplete, over random tuples of its group. The ceiling of Pearson's r is the square root of the
    scores' reliability, 1 - mean error variance / variance of the scores. That of Spearman's rho is its
    mean over draws (from `seed`) of true scores given the scores: normal, with the mean and variance of
    the regression of true on observed scores. On simulated judgments both are within 0.005 of what true
    scores reach (docs/coverage.md). ``extra`` has the ``reliability``, which is the ceiling squared, the
    fingerprint of the ``data``, the number of ``annotators`` (0 where the judgments name none), and whether
    the scores of every dialogue have the same mean (``equal_dialogue_means``; see `meaning`).

    The interval is symmetric in log(1 - ceiling^2), by a t quantile and a jackknife over dialogues, to
    whose variance the variance between annotators is added: that of the mean error when one annotator
    is left out, as far as it is the same in all dialogues (Cameron, Gelbach and Miller 2011, J. Bus. Econ.
    Stat. 29, for two-way clusters). With more than 50 dialogues or 20 annotators, blocks of them are left
    out. ``reason`` warns of fewer than 20 annotators; of judgments that name no annotator, as lasting
    differences between annotators are then no part of the error; and of tuples with items of several
    dialogues, which are then not independent.

    NaN with a reason: no tuple was judged by two annotators; scores that are all the same; errors as large
    as the scores' variance. InputError: an item of the benchmark was not judged, or its score is not the
    counting score of the judgments, (1 + (best - worst) / appearances) / 2 within 0.005. Judgments of
    other dialogues are left out.

    >>> from giccs.benchmark import read_benchmark
    >>> sample = read_benchmark("giccs-sample")
    >>> ceiling = noise_ceiling(judgments_behind(sample), sample)
    >>> 0.9 < ceiling["pearson"].low < ceiling["pearson"].value < 1
    True
    """
    judged = judged_items(judgments, benchmark)
    answers, index, dialogue = judged.answers, judged.index, judged.dialogue
    n_annotators = len(answers.annotators)
    extra = {
        "data": benchmark.fingerprint,
        "annotators": n_annotators,
        "equal_dialogue_means": _has_equal_means(benchmark, dialogue),
    }
    counts, error = answers.counts, components(answers).error[index]
    scores = ((counts.best - counts.worst) / counts.appearances)[index]
    chosen = ((counts.best + counts.worst) / counts.appearances)[index]
    log.debug("noise ceiling: %d annotators, %d items", n_annotators, len(scores))
    if reason := _why_undefined(answers, scores, error):
        undefined = Estimate(math.nan, math.nan, math.nan, len(scores), reason)
        return {
            name: replace(undefined, extra={"reliability": math.nan, **extra})
            for name in COEFFICIENTS
        }
    draws = max(DRAWS[0], min(DRAWS[1], DRAWN_VALUES // len(scores)))
    normal = np.random.Generator(np.random.PCG64(seed)).standard_normal((draws, len(scores)))
    items = _Items(scores, chosen, error, dialogue, normal)
    between = _between_annotators(answers, index, items)
    remark = "; ".join(_remarks(judged))
    return {
        name: replace(estimate, extra={"reliability": estimate.value**2, **extra})
        for name, estimate in _with_intervals(items, between, remark).items()
    }


COEFFICIENTS = ("pearson", "spearman")


@dataclass(frozen=True, eq=False)
class _Items:
    """N scores with the variances of their errors, and what their ceilings are."""

    score: Floats
    """(N,)"""
    chosen: Floats
    """(N,) share of its judgments in which an item is best or worst."""
    error: Floats
    """(N,) NaN where it is not known."""
    dialogue: Ints
    """(N,) index of the item's dialogue."""
    normal: Floats
    """(R, N) standard normal numbers."""

    @property
    def reliability(self) -> float:
        return 1 - float(np.nanmean(self.error)) / float(np.var(self.score, ddof=1))

    def take(self, rows: NDArray[np.bool_]) -> _Items:
        return _Items(
            self.score[rows],
            self.chosen[rows],
            self.error[rows],
            self.dialogue[rows],
            self.normal[:BLOCK_DRAWS, rows],
        )

    def ceilings(self) -> Floats:
        """Return Pearson's and Spearman's (2,); at most 1, NaN where the reliability is below 0."""
        share = min(self.reliability, 1.0)
        if share <= 0:
            return np.full(2, math.nan)
        true = share * self.score + np.sqrt(share * self._smoothed()) * self.normal
        return np.array([math.sqrt(share), _spearman(true, self.score).mean()])

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


def _spearman(draws: Floats, score: Floats) -> Floats:
    """Return (R,) Spearman's rho of draws (R, N) and scores (N,); only the scores have ties."""
    from scipy.stats import rankdata

    ranks = np.argsort(np.argsort(draws, axis=1), axis=1) - (len(score) - 1) / 2
    of_score = rankdata(score) - (len(score) + 1) / 2
    products = ranks @ of_score
    rho: Floats = products / np.sqrt((ranks[0] @ ranks[0]) * (of_score @ of_score))
    return rho


def _with_intervals(items: _Items, between: tuple[float, int], remark: str) -> dict[str, Estimate]:
    """Return the ceilings with their intervals. between: variance of log error, degrees of freedom."""
    whole = items.ceilings()
    n, n_dialogues = len(items.score), int(items.dialogue.max()) + 1
    changes = np.empty((0, 2))
    freedom = 0
    if few := too_few_clusters(n_dialogues, "dialogues"):
        remark = "; ".join(filter(None, [remark, few]))
    else:
        changes, freedom = _without_dialogues(items)
        if not np.isfinite(changes).all():
            why = "without some dialogues the scores show no errors, or nothing else: no interval"
            remark, changes = "; ".join(filter(None, [remark, why])), changes[:0]
    return {
        name: Estimate(value, *_interval(value, change, freedom, between), n, remark)
        for name, value, change in zip(COEFFICIENTS, whole.tolist(), changes.T, strict=True)
    }


def _without_dialogues(items: _Items) -> tuple[Floats, int]:
    """Return the changes (B, 2) of log(1 - ceiling^2) without each block of dialogues, and their freedom.

    The judgments of a tuple have one best and one worst item. Over all items, the mean score and the mean
    share of being chosen are therefore constants, however the items of different blocks compete in
    tuples; what a block changes by changing these means is left out, by least squares.
    """
    block = items.dialogue % MAX_DIALOGUE_BLOCKS
    parts = [items.take(block != b) for b in range(int(block.max()) + 1)]
    with np.errstate(divide="ignore"):
        values = np.log(1 - np.array([part.ceilings() for part in parts]) ** 2)
    values -= values.mean(axis=0)
    if not np.isfinite(values).all():
        return values, 0
    means = np.array([(part.score.mean(), part.chosen.mean()) for part in parts])
    means -= means.mean(axis=0)
    means[np.abs(means) < CONSTANT] = 0.0
    weights, _, rank, _ = np.linalg.lstsq(means, values, rcond=None)
    return values - means @ weights, len(parts) - 1 - int(rank)


def _interval(
    value: float, changes: Floats, freedom: int, between: tuple[float, int]
) -> tuple[float, float]:
    """Return the 95 % interval of a ceiling from `_without_dialogues` and `_between_annotators`."""
    from scipy.stats import t

    if not len(changes):
        return math.nan, math.nan
    n, (more, its_freedom) = len(changes), between
    own = float((n - 1) ** 2 / (n * freedom) * np.sum(changes**2))
    variance = own + more
    if not variance:
        return value, value
    of_both = variance**2 / (own**2 / freedom + more**2 / max(its_freedom, 1))
    half = float(t.ppf(0.975, of_both)) * math.sqrt(variance)
    middle = math.log(1 - value**2)
    low, high = (math.sqrt(max(0.0, 1 - math.exp(middle + end))) for end in (half, -half))
    return low, high


def _between_annotators(answers: Answers, index: Ints, items: _Items) -> tuple[float, int]:
    """Return the variance of log mean error between annotators, and its degrees of freedom.

    A jackknife: the squared change of the mean error without an annotator, less that of its parts in
    each dialogue, which the jackknife over dialogues has. 0 where it is below.
    """
    of_annotator = np.argsort(np.argsort(_annotator_digests(answers))) % MAX_ANNOTATOR_BLOCKS
    blocks = int(of_annotator.max(initial=-1)) + 1
    total = float(np.nansum(items.error))
    if blocks < 2 or total <= 0:
        return 0.0, 0
    changes = []
    for block in range(blocks):
        left = components(answers, without=np.flatnonzero(of_annotator == block)).error[index]
        changes.append(np.bincount(items.dialogue, np.nan_to_num(left - items.error) / total))
    centred = np.array(changes) - np.mean(changes, axis=0)
    variance = (blocks - 1) / blocks * float(np.sum(centred.sum(axis=1) ** 2) - np.sum(centred**2))
    return max(variance, 0.0), blocks - 1


def _remarks(judged: JudgedItems) -> Iterator[str]:
    """Yield what a reader of the ceiling must know of the annotators and the design."""
    if judged.unnamed:
        yield (
            f"{judged.unnamed} of {len(judged.answers)} judgments name no annotator: lasting differences "
            "between annotators are not part of the error, and the ceiling may be too high"
        )
    elif few := few_clusters(len(judged.answers.annotators), "annotators"):
        yield few
    if not judged.has_tuples_within_dialogues:
        yield ACROSS_DIALOGUES


def _why_undefined(answers: Answers, scores: Floats, error: Floats) -> str:
    judges = np.where(answers.annotator_of < 0, -1 - np.arange(len(answers)), answers.annotator_of)
    pairs = np.unique(np.stack([answers.tuple_of, judges]), axis=1)
    if np.bincount(pairs[0]).max() < 2:
        return "no tuple was judged by two annotators, so the errors of the scores are not known"
    if len(scores) < MIN_ITEMS or np.ptp(scores) == 0:
        return "the scores are all the same, or there are fewer than three"
    if np.isnan(error).all():
        return "no item has judgments from which the error of its score can be estimated"
    variance, mean = float(np.var(scores, ddof=1)), float(np.nanmean(error))
    if mean >= variance:
        return f"the errors of the scores (variance {mean:.3f}) are as large as the scores' ({variance:.3f})"
    return ""


def _has_equal_means(benchmark: Benchmark, dialogue: Ints) -> bool:
    """Tell whether the scores of all dialogues, of two items or more, have the same mean."""
    given = np.array([item.score for item in benchmark.items])
    sizes = np.bincount(dialogue)
    means = np.bincount(dialogue, given) / sizes
    return bool(len(sizes) > 1 and sizes.min() > 1 and np.ptp(means) <= ROUNDING)


def meaning(ceiling: Mapping[str, Estimate]) -> list[str]:
    """Return sentences on what a ceiling means; none where no coefficient has one.

    >>> known = Estimate(0.9, 0.8, 0.95, 30, extra={"reliability": 0.81, "equal_dialogue_means": True})
    >>> len(meaning({"pearson": known}))
    2
    """
    known = [one for one in ceiling.values() if not math.isnan(one.value)]
    sentences = [MEANING] if known else []
    if any(one.extra.get("equal_dialogue_means") for one in known):
        sentences.append(EQUAL_MEANS)
    return sentences


def judgments_digest(judgments: Judgments) -> str:
    """Return SHA-256 over who judged what how, whatever the annotators are called."""
    answers = in_order(judgments)
    texts = repr([answers.k, answers.groups, answers.items, answers.group_of.tolist()])
    state = hashlib.sha256(texts.encode("utf-8"))
    state.update(answers.members.astype("<i4").tobytes())
    unknown = _rows_digest(answers, answers.annotator_of < 0)
    for one in [unknown, *sorted(_annotator_digests(answers))]:
        state.update(one.encode("ascii"))
    return state.hexdigest()


def _annotator_digests(answers: Answers) -> list[str]:
    """Return SHA-256 of each annotator's judgments."""
    return [
        _rows_digest(answers, answers.annotator_of == a) for a in range(len(answers.annotators))
    ]


def _rows_digest(answers: Answers, rows: NDArray[np.bool_]) -> str:
    columns = np.stack([answers.tuple_of[rows], answers.best[rows], answers.worst[rows]])
    return hashlib.sha256(columns.astype("<i4").tobytes()).hexdigest()
