"""The noise ceiling: how well can a model agree with scores that are themselves uncertain?

Other annotators of the same tuples would have given somewhat other scores. Classical test theory (Spearman
1904, Am. J. Psychol. 15; Lord and Novick 1968) calls an item's expected score its true score; observed
scores correlate with true ones by the square root of the observed scores' reliability. A model that
predicted every true score would reach that correlation, and none can be expected to reach more.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from bws.files import read_judgments
from bws.halves import Deck, by_annotation
from bws.problems import InputError, Problem
from bws.records import Judgments, normal_id
from bws.reliability import spearman_brown
from bws.scoring import score
from bws.scoring.answers import Answers, in_order
from giccs.benchmark import SAMPLE, Benchmark
from giccs.metrics import Estimate, Statistic, estimated, resampled
from giccs.metrics import weighted_pearson as pearson
from giccs.metrics import weighted_spearman as spearman

__all__ = ["judgments_behind", "noise_ceiling"]

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Coefficient = Callable[[Floats, Floats, Ints], Statistic]

COEFFICIENTS: Mapping[str, Coefficient] = {"pearson": pearson, "spearman": spearman}
ROUNDING = 0.005 + 1e-9
"""Scores may have been written with two decimals."""
NAMED = 3
FEWEST = 3
"""Items that a trial needs, as in bws.reliability."""


def judgments_behind(
    benchmark: Benchmark, path: str | os.PathLike[str] | None = None
) -> Judgments | None:
    """Return the judgments in a file of any format; without one those of giccs-sample, or None.

    Whether they are those behind the benchmark's scores is for `noise_ceiling` to find out.

    >>> from giccs.benchmark import read_benchmark
    >>> len(judgments_behind(read_benchmark("giccs-sample")))
    3000
    """
    if path is not None:
        return read_judgments(path)
    if benchmark.name != SAMPLE:
        return None
    with resources.as_file(resources.files("giccs.data") / "judgments.csv") as own:
        return read_judgments(own)


def noise_ceiling(
    judgments: Judgments,
    benchmark: Benchmark,
    *,
    trials: int = 100,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Return ``pearson`` and ``spearman``: what a model that knew the true scores would reach, in [0, 1].

    The ceiling is the square root of the ``reliability`` (in ``extra``, beside the fingerprint of the
    ``data``): the Spearman-Brown value of the mean split-half correlation over `trials`, as bws-reliability
    prints it for these judgments. The interval is the 2.5 and 97.5 percentile over `resamples` draws of
    the benchmark's dialogues with replacement, each with the same halves; a negative correlation is 0 there.

    For Spearman's rho it is an approximation: a rank is no true rank plus an independent error. Halves
    of two and three judgments are taken for equal ones, which lowers the ceiling: with five judgments a
    tuple by less than 0.005 where it is 0.8 or more (Horst 1951, Educ. Psychol. Meas. 11, has the exact
    formula). The correlation inside dialogues gets no ceiling: the ranks of five items are too coarse for
    the formula, which says up to 0.08 more than such a model reaches on simulated judgments.

    NaN with a reason: no tuple has two judgments; halves whose scores are all the same; halves that
    correlate negatively. InputError: an item of the benchmark was not judged, or its score is not the
    counting score of the judgments, (1 + (best - worst) / appearances) / 2 within 0.005. Judgments of
    other dialogues are left out.

    >>> from giccs.benchmark import read_benchmark
    >>> sample = read_benchmark("giccs-sample")
    >>> found = noise_ceiling(judgments_behind(sample), sample, trials=10, resamples=10)
    >>> round(found["pearson"].value, 2), round(found["pearson"].extra["reliability"], 2)
    (0.99, 0.99)
    """
    if trials < 1:
        raise ValueError(f"trials is {trials}; it must be at least 1")
    answers, place, dialogue = _joined(judgments, benchmark)
    deck = Deck.of(answers)
    random = np.random.Generator(np.random.PCG64(seed))  # as bws.reliability draws
    halves = [by_annotation(deck, random, "coin") for _ in range(trials)]
    scores = [(deck.scores(first)[place], deck.scores(second)[place]) for first, second in halves]
    n_dialogues = len(benchmark.dialogue_ids)
    log.debug(
        "noise ceiling: %d trials, %d resamples of %d dialogues", trials, resamples, n_dialogues
    )
    weights = [np.ones((1, n_dialogues)), *resampled(n_dialogues, resamples, seed)]
    found = {}
    for name, coefficient in COEFFICIENTS.items():
        trial = [_between(first, second, dialogue, coefficient) for first, second in scores]
        shr = np.concatenate([_mean([r(each) for r in trial]) for each in weights])
        found[name] = _ceiling(shr, benchmark, _why_undefined(deck, shr[0]))
    return found


def _ceiling(shr: Floats, benchmark: Benchmark, reason: str) -> Estimate:
    """Return the ceiling from split-half correlations: first of the whole, then of the resamples (R,)."""
    reliability, drawn = spearman_brown(float(shr[0])), np.maximum(shr[1:], 0.0)
    found = estimated(
        math.sqrt(reliability),
        np.sqrt(2 * drawn / (1 + drawn)),
        len(benchmark.items),
        len(benchmark.dialogue_ids),
        reason,
    )
    return replace(found, extra={"reliability": reliability, "data": benchmark.fingerprint})


def _between(first: Floats, second: Floats, dialogue: Ints, coefficient: Coefficient) -> Statistic:
    """Return how two halves' scores (N,) correlate under weights; NaN where they cannot."""
    both = ~np.isnan(first + second)
    if np.count_nonzero(both) < FEWEST or np.ptp(first[both]) == 0 or np.ptp(second[both]) == 0:
        return lambda weights: np.full(len(weights), math.nan)
    used, renumbered = np.unique(dialogue[both], return_inverse=True)
    correlation = coefficient(first[both], second[both], renumbered)
    return lambda weights: correlation(weights[:, used])


def _mean(trials: Sequence[Floats]) -> Floats:
    """Return the mean (b,) over trials that are defined; NaN where none is."""
    values = np.stack(trials)
    defined = ~np.isnan(values)
    count = defined.sum(axis=0)
    total = np.where(defined, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


def _why_undefined(deck: Deck, shr: float) -> str:
    if deck.sizes[0] < 2:
        return "no tuple has two judgments, so there are no halves to compare"
    if math.isnan(shr):
        return "the scores of a half are all the same, or fewer than three items have one in both"
    return f"halves of the judgments correlate by {shr:.3f}: no reliability" if shr < 0 else ""


def _joined(judgments: Judgments, benchmark: Benchmark) -> tuple[Answers, Ints, Ints]:
    """Return the answers about the benchmark's items; (N,) each item's place there; (N,) its dialogue."""
    tuples = judgments.tuples
    keys = _keys(benchmark, grouped=any(tuples.groups))
    groups = tuples.groups[tuples.group_of_item]
    known = {key: place for place, key in enumerate(zip(groups, tuples.items, strict=True))}
    place = np.array([known.get(key, -1) for key in keys])
    _check(judgments, benchmark, place)
    asked: NDArray[np.bool_] = np.any(np.isin(tuples.members, place), axis=1)
    answers = in_order(judgments.take(asked[judgments.tuple_of]))
    place_in_answers = np.full(len(tuples.items), -1)
    place_in_answers[answers.origin] = np.arange(len(answers.origin))
    number = {dialogue_id: n for n, dialogue_id in enumerate(benchmark.dialogue_ids)}
    dialogue = np.array([number[item.dialogue_id] for item in benchmark.items])
    return answers, place_in_answers[place], dialogue


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


def _check(judgments: Judgments, benchmark: Benchmark, place: Ints) -> None:
    """Raise InputError unless counting makes the benchmark's scores of the judgments."""
    given = np.array([item.score for item in benchmark.items])
    found = score(judgments, scale="unit").score
    counted = np.where(place >= 0, found[place], math.nan)
    unjudged, differ = np.isnan(counted), np.abs(counted - given) > ROUNDING
    needs = f"the noise ceiling of {benchmark.name} needs the judgments behind its scores"
    faults = []
    if unjudged.any():
        which = _named(benchmark, unjudged)
        faults.append(f"{unjudged.sum()} of {len(given)} items are not judged ({which}); {needs}")
    if differ.any():
        which = _named(benchmark, differ)
        faults.append(
            f"{differ.sum()} of {len(given)} items have another score than counting gives ({which}); {needs}"
        )
    if faults:
        raise InputError(
            [Problem(judgments.source or "judgments", None, fault) for fault in faults]
        )


def _named(benchmark: Benchmark, which: NDArray[np.bool_]) -> str:
    ids = [benchmark.items[place].item_id for place in np.flatnonzero(which)]
    return ", ".join(ids[:NAMED]) + (", ..." if len(ids) > NAMED else "")
