"""Split-half reliability: would other answers, other tuples or other annotators give the same scores?

`reliability` splits all judgments; `reliability_curve` draws 2, 3, ... annotations per tuple first. Both
use `JudgmentRounds`, which arranges the judgments so that a random half of every tuple's judgments takes as
many array operations as the largest tuple has judgments.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bws.components import generalisability, is_complete
from bws.metadata import By, breakdown
from bws.planning import Planner, check_target, describe_annotation_needs
from bws.problems import InputError, Problem
from bws.records import CanonicalJudgments, Judgments
from bws.tables import Column, ResultTable, part_name

__all__ = [
    "Correlation",
    "CurvePoint",
    "Reliability",
    "ReliabilityCurve",
    "ReliabilityGroup",
    "annotations_for",
    "reliability",
    "reliability_curve",
    "spearman_brown",
]

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Halves = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Twice (J,): which judgments are in the first half, and which in the second."""
OddRule = Literal["coin", "second"]
"""Which half gets one more where a number is odd: a coin decides, or always the second."""
MissingPolicy = Literal["drop", "zero"]
"""What becomes of an item that one half does not score: left out of the trial, or scored 0."""
Split = Literal["annotation", "tuple", "annotator"]
SPLIT_QUESTIONS = {
    "annotation": "would other answers to the same tuples give the same scores? "
    "(the split of most published figures)",
    "tuple": "would other tuples of the same items give the same scores?",
    "annotator": "would other annotators give the same scores?",
}
MIN_SCORED_SHARE = 0.5
"""Share of the items that halves must score, in the mean trial, for a split that was not chosen."""


@dataclass(frozen=True, eq=False)
class Correlation:
    """One coefficient over the trials; trials in which it is not defined do not count."""

    trials: NDArray[np.float64]
    """(n,) NaN where a half's scores are all the same or fewer than three items have scores."""

    @property
    def mean(self) -> float:
        """Mean over the trials; NaN where no trial has a value."""
        return float(self._defined.mean()) if len(self._defined) else math.nan

    @property
    def sd(self) -> float:
        """Population standard deviation over the trials; NaN for fewer than two values.

        It tells how much one random split differs from another. It is no standard error.
        """
        return float(self._defined.std()) if len(self._defined) > 1 else math.nan

    @property
    def spearman_brown(self) -> float:
        """The mean stepped up to all judgments; see `spearman_brown`."""
        return spearman_brown(self.mean)

    @property
    def _defined(self) -> NDArray[np.float64]:
        return self.trials[~np.isnan(self.trials)]

    def document(self) -> dict[str, float]:
        """Return mean and sd as a dict."""
        return {"mean": self.mean, "sd": self.sd}


def spearman_brown(r: float) -> float:
    """Return 2r / (1 + r): the reliability of whole data whose halves correlate with r.

    Spearman (1910) and Brown (1910); exact for halves of equal size. NaN for r < 0, where a
    reliability has no meaning, and for NaN.

    >>> round(spearman_brown(0.6), 3)
    0.75
    """
    return 2 * r / (1 + r) if r >= 0 else math.nan


@dataclass(frozen=True, eq=False)
class ReliabilityGroup:
    """The reliability of some of the tuples."""

    by: Mapping[str, Any]
    """What these tuples have in common: ``{"source": "CROWDSS"}``; empty for the whole."""
    items: int
    """Items of the judged tuples."""
    tuples: int
    """Tuples with at least one judgment."""
    annotations: int
    missing_items: int
    """Items that lacked a score from a half in any trial."""
    scored_items: float
    """Mean number of items per trial that both halves score."""
    pearson: Correlation
    spearman: Correlation
    notes: tuple[str, ...] = ()
    """What was left out, and why a number is NaN."""

    def document(self) -> dict[str, Any]:
        """Return the group as JSON has it."""
        correlations = {"pearson": self.pearson, "spearman": self.spearman}
        return {
            "by": dict(self.by),
            "items": self.items,
            "tuples": self.tuples,
            "annotations": self.annotations,
            "trials": len(self.pearson.trials),
            "missing_items": self.missing_items,
            "scored_items": self.scored_items,
            **{name: correlation.document() for name, correlation in correlations.items()},
            "spearman_brown": {
                name: correlation.spearman_brown for name, correlation in correlations.items()
            },
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class Reliability:
    """Split-half reliability of the whole and of its parts."""

    groups: tuple[ReliabilityGroup, ...]
    """The whole first; by the split that was chosen, or by annotation."""
    signature: Mapping[str, Any]
    """All that produced the numbers."""
    splits: Mapping[str, tuple[ReliabilityGroup, ...]] = field(default_factory=dict)
    """The same parts by the further splits that these judgments allow; empty where one was chosen."""
    notes: tuple[str, ...] = ()
    """Why a further split was left out."""

    def document(self) -> dict[str, Any]:
        """Return the result as JSON has it."""
        return {
            "groups": [group.document() for group in self.groups],
            "splits": {
                split: [group.document() for group in groups]
                for split, groups in self.splits.items()
            },
            "notes": list(self.notes),
            "signature": dict(self.signature),
        }

    def table(self) -> str:
        """Return the result as text: a line per group and split, what each split asks, then the notes."""
        return str(self.result_table())

    def result_table(self) -> ResultTable:
        """Return a row per group and split (GiCCS, Table 3)."""
        by_split = {self.signature["split"]: self.groups, **self.splits}
        lines = [
            (split, group)
            for groups in zip(*by_split.values(), strict=True)
            for split, group in zip(by_split, groups, strict=True)
        ]
        counts = ("items", "tuples", "annotations")
        columns = [Column("part"), Column("split", "split")]
        columns += [Column(name, name, source=name, align="right") for name in counts]
        rows = [
            [group.by, split, group.items, group.tuples, group.annotations, *_correlations(group)]
            for split, group in lines
        ]
        sources = [
            f"/splits/{split}/{n}" if split in self.splits else f"/groups/{n}"
            for n in range(len(self.groups))
            for split in by_split
        ]
        questions = [f"{split}: {SPLIT_QUESTIONS[split]}" for split in by_split]
        notes = [
            f"{part_name(group.by)}, by {split}: {note}"
            for split, group in lines
            for note in group.notes
        ]
        return ResultTable(
            [*columns, *_correlation_columns(".4f")],
            rows,
            [*questions, *notes, *self.notes],
            "Split-half reliability, mean and SD over random splits (GiCCS, Table 3)",
            "nan",
            sources,
        )


def _correlation_columns(spec: str) -> list[Column]:
    """Return the columns of `_correlations`."""
    parts = {
        "": ("", "{}/mean"),
        "_sd": ("SD", "{}/sd"),
        "_full": ("Spearman-Brown", "spearman_brown/{}"),
    }
    return [
        Column(
            f"{name}{key}", title, spec, group=name.capitalize(), source=source.format(name),
            align="decimal",
        )
        for name in ("pearson", "spearman")
        for key, (title, source) in parts.items()
    ]  # fmt: skip


def _correlations(result: ReliabilityGroup | CurvePoint) -> list[float]:
    return [
        value
        for correlation in (result.pearson, result.spearman)
        for value in (correlation.mean, correlation.sd, correlation.spearman_brown)
    ]


def reliability(
    judgments: Judgments,
    *,
    trials: int = 100,
    split: Split | None = None,
    odd: OddRule = "coin",
    missing: MissingPolicy = "drop",
    seed: int = 0,
    by: By | None = None,
) -> Reliability:
    """Split the judgments in halves, score the items by each, correlate; over and over.

    Each trial scores the items by counting, (best - worst) / appearances, in either half, and
    correlates the two scores over the items: Pearson's r, and Spearman's rho with average ranks for
    ties. The result has mean and population standard deviation over the trials, and apart from them
    the Spearman-Brown values, which estimate the reliability of scores from all judgments.

    split="annotation": a tuple's n judgments go half and half at random. The halves share the tuples, so
    that the error of an incomplete design (which opponents an item met) counts as truth.
    split="tuple": the tuples go half and half with all their judgments, balanced so that both halves
    judge an item equally often where that is possible; the halves share the annotators. In small groups
    Spearman-Brown is too low: all tuples together meet opponents more evenly than independent halves would;
    `bws.components` regards that.
    split="annotator": the annotators do, with all that they judged; judgments that name no annotator are
    in no half.
    split=None: by annotation in `groups`, and in `splits` by tuple where the design is incomplete (not
    every set of K items of a group was judged) and by annotator where annotators are named, each where
    both halves score at least half of the items in the mean trial; a note says where they do not.

    odd="coin": where n is odd, a coin decides which half gets one more (Kiritchenko and Mohammad
    2016). odd="second": the second half always does, as in GiCCS, section 4.2: two of five
    annotations against three (there with trials=3). By tuple, the second half has the greater number of
    judgments.

    missing="drop": an item that one half does not score is left out of the trial.
    missing="zero": its score in that half is taken as 0. An item that neither scores is left out.

    by: a column's name to (T,) values, one a tuple of `judgments.tuples`. The whole comes first, then
    each combination of values, sorted; each part is what its tuples alone would give.

    The halves depend on the seed and on what was judged how, not on the order of rows, items, tuples
    or annotators. Tuples with the same items are one tuple. A tuple with one judgment cannot be
    halved by annotation: it is in no half, and counted in the notes. A trial has no correlation (NaN,
    counted in the notes) where a half's scores are all the same or fewer than three items have
    scores. Equal numbers of judgments in the halves are what Spearman-Brown supposes; for two against
    three it is a close approximation.

    ValueError: an argument outside of what is allowed. InputError: no judgments, or split="annotator"
    where no judgment names its annotator.

    >>> from bws.records import Judgment, Judgments
    >>> rows = [(("a", "b", "c"), "a", "c"), (("b", "c", "d"), "b", "d"), (("a", "b", "d"), "a", "d")]
    >>> found = reliability(Judgments.from_records([Judgment(*row) for row in rows * 4]))
    >>> round(found.groups[0].spearman.mean, 3), found.groups[0].annotations
    (1.0, 12)
    """
    check_options(
        trials,
        split=(split or "annotation", Split),
        odd=(odd, OddRule),
        missing=(missing, MissingPolicy),
    )
    _check_judgments(judgments, split)
    parts = [(values, part.canonical) for values, part in breakdown(judgments, by)]
    first: Split = split or "annotation"
    canonical = parts[0][1]
    groups: dict[str, tuple[ReliabilityGroup, ...]] = {}
    notes = []
    for name in (first, *(() if split else _further_splits(canonical))):
        measure_part = partial(
            _measure_split, split=name, trials=trials, odd=odd, missing=missing, seed=seed
        )
        overall = measure_part({}, canonical)
        if name != first and overall.scored_items < MIN_SCORED_SHARE * overall.items:
            notes.append(
                f"not split by {name}: in the mean trial, both halves score only "
                f"{overall.scored_items:.1f} of {overall.items} items"
            )
        else:
            groups[name] = (
                overall,
                *(measure_part(values, subset) for values, subset in parts[1:]),
            )
    signature = {
        "score": "counting",
        "trials": trials,
        "split": first,
        "odd": odd,
        "missing": missing,
        "seed": seed,
        "judgments": canonical.digest(),
        "version": version("giccs"),
    }
    return Reliability(groups.pop(first), signature, groups, tuple(notes))


def _further_splits(judgments: CanonicalJudgments) -> Iterator[Split]:
    """Yield the splits besides annotation that ask something of these judgments."""
    if not is_complete(judgments):
        yield "tuple"
    if len(judgments.annotators) > 1:
        yield "annotator"


def _measure_split(
    by: Mapping[str, Any],
    judgments: CanonicalJudgments,
    *,
    split: Split,
    trials: int,
    odd: OddRule,
    missing: MissingPolicy,
    seed: int,
) -> ReliabilityGroup:
    """Return the reliability of the judgments of a part."""
    rounds = JudgmentRounds.from_judgments(judgments)
    log.debug("%s by %s: %d trials, %d judgments", part_name(by), split, trials, len(judgments))
    trial_results = run_trials(rounds, partial(SPLITS[split], odd=odd), trials, missing, seed)
    return ReliabilityGroup(
        by,
        rounds.n_items,
        len(rounds.sizes),
        len(rounds.tuple_of),
        trial_results.n_missing,
        trial_results.mean_scored,
        Correlation(trial_results.pearson),
        Correlation(trial_results.spearman),
        (*_unsplit_notes(rounds, split), *_score_notes(trial_results, missing)),
    )


def _unsplit_notes(rounds: JudgmentRounds, split: Split) -> list[str]:
    if split == "annotator":
        count = np.count_nonzero(rounds.annotator_of < 0)
        return [f"{count} judgments name no annotator and are in no half"] if count else []
    if split == "tuple":
        return []
    count = np.count_nonzero(rounds.sizes == 1)
    note = f"{count} of {len(rounds.sizes)} tuples have one judgment, which cannot be halved"
    return [note] if count else []


def _score_notes(trial_results: Trials, missing: MissingPolicy) -> list[str]:
    notes = []
    if trial_results.n_missing:
        policy = (
            "left out of that trial"
            if missing == "drop"
            else "taken as 0 there, if the other has one"
        )
        notes.append(
            f"{trial_results.n_missing} items have no score from a half in some trial: {policy}"
        )
    undefined = np.count_nonzero(np.isnan(trial_results.pearson))
    if undefined:
        notes.append(
            f"{undefined} of {len(trial_results.pearson)} trials have no correlation: a half's scores are "
            "all the same, or fewer than three items have scores"
        )
    if min(Correlation(trial_results.pearson).mean, Correlation(trial_results.spearman).mean) < 0:
        notes.append("the correlation is negative: Spearman-Brown is not defined")
    return notes


def _check_judgments(judgments: Judgments, split: Split | None) -> None:
    file = judgments.source or "judgments"
    if not len(judgments):
        raise InputError(Problem(file, None, "has no judgments; reliability needs some"))
    if split == "annotator" and (judgments.annotator_of < 0).all():
        message = "names no annotators; split by annotation, or give the annotator of each judgment"
        raise InputError(Problem(file, None, message))


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """Split-half reliability with a number of annotations a tuple."""

    annotations: float
    """Annotations a tuple, both halves together."""
    tuples: int
    """Tuples that have so many; the others are left out of this point."""
    pearson: Correlation
    spearman: Correlation

    def document(self) -> dict[str, Any]:
        """Return the point as JSON has it."""
        correlations = {"pearson": self.pearson, "spearman": self.spearman}
        return {
            "annotations": self.annotations,
            "tuples": self.tuples,
            **{name: correlation.document() for name, correlation in correlations.items()},
            "spearman_brown": {
                name: correlation.spearman_brown for name, correlation in correlations.items()
            },
        }


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """How split-half reliability grows, and what it would take to reach a target."""

    points: tuple[CurvePoint, ...]
    """2, 3, ... annotations a tuple."""
    overall: CurvePoint
    """All annotations of all tuples that have at least two; their mean number a tuple."""
    target: float
    planner: Planner | None = None
    """Where the design is incomplete: the variance components, as halves share the error of the design."""
    notes: tuple[str, ...] = ()

    @property
    def needed(self) -> Mapping[str, Mapping[str, float]]:
        """Annotations a tuple for the target, by coefficient; extrapolated, see `annotations_for`.

        ``split_half``: until the halves correlate so; ``spearman_brown``: until scores from all
        annotations are so reliable by Spearman-Brown, which takes half as many.
        """
        means = {"pearson": self.overall.pearson.mean, "spearman": self.overall.spearman.mean}
        return {
            name: {
                "split_half": annotations_for(self.target, r, self.overall.annotations),
                "spearman_brown": annotations_for(
                    self.target, spearman_brown(r), self.overall.annotations
                ),
            }
            for name, r in means.items()
        }

    def document(self) -> dict[str, Any]:
        """Return the curve as plain dicts and lists."""
        return {
            "points": [point.document() for point in self.points],
            "whole": self.overall.document(),
            "target": self.target,
            "needed": {name: dict(estimates) for name, estimates in self.needed.items()},
            "annotations_alone": self.planner.annotation_needs(self.target)
            if self.planner
            else None,
            "notes": [_EXTRAPOLATION_NOTE, *self.notes],
        }

    def table(self) -> str:
        """Return the curve as text: a line a point, then what the target needs."""
        columns = [
            Column("annotations", "annotations per tuple", ".4g", align="decimal"),
            Column("tuples", "tuples", align="right"),
            *_correlation_columns(".4g"),
        ]
        rows = [[point.annotations, point.tuples, *_correlations(point)] for point in self.points]
        lines = [
            f"reliability of {self.target} (Spearman-Brown, {name}): "
            f"{_describe_need(estimates['spearman_brown'], self.overall)}"
            for name, estimates in self.needed.items()
        ]
        if self.planner:
            lines = [describe_annotation_needs(self.target, self.planner)]
        lines += [*self.notes, _EXTRAPOLATION_NOTE]
        return str(ResultTable(columns, rows, lines, missing="nan"))


_INCOMPLETE_NOTES = {
    True: "the design is incomplete: these halves share the error of which opponents an item met; what the "
    "target takes is estimated from variance components, which contain it",
    False: "the design is incomplete: these halves share the error of which opponents an item met, so that "
    "the scores are less reliable than they say; variance components cannot be estimated",
}
_EXTRAPOLATION_NOTE = (
    "the numbers of annotations for the target are extrapolated, by the Spearman-Brown formula or from "
    "variance components; that supposes further annotators like those at hand"
)


def _describe_need(needed: float, overall: CurvePoint) -> str:
    if math.isnan(needed):
        return "no estimate, as the halves do not correlate"
    n_more = max(0, math.ceil(needed - overall.annotations))
    advice = f"{n_more} more than there are" if n_more else "there are enough"
    return f"{needed:.1f} annotations per tuple, {advice} ({overall.annotations:.4g})"


def annotations_for(target: float, r: float, annotations: float) -> float:
    """Return how many annotations give reliability `target`, where `annotations` give `r`.

    Spearman-Brown prophecy: annotations * target (1 - r) / (r (1 - target)). It supposes that further
    annotations are like the present ones. NaN where r is not above 0: there is nothing to extrapolate.

    >>> round(annotations_for(0.9, 0.75, 4), 3)
    12.0
    """
    return annotations * target * (1 - r) / (r * (1 - target)) if r > 0 else math.nan


def reliability_curve(
    judgments: Judgments,
    *,
    trials: int = 100,
    odd: OddRule = "coin",
    target: float = 0.9,
    seed: int = 0,
) -> ReliabilityCurve:
    """Return split-half reliability with 2, 3, ... annotations a tuple, and what `target` would need.

    In each trial a point draws its number of annotations from those of each tuple that has as many,
    at random, and splits them as `bws.reliability` does by annotation; items of other tuples are left
    out. The target is the reliability of scores from all annotations of a tuple, by Spearman-Brown; where
    the design is incomplete, by variance components (`Planner`), since no number of annotations takes away
    the error of which opponents an item met.

    ValueError: a target that is not between 0 and 1, trials below 1. InputError: no tuple has
    two judgments.

    >>> from bws.records import Judgment, Judgments
    >>> rows = [(("a", "b", "c"), "a", "c"), (("b", "c", "d"), "b", "d"), (("a", "b", "d"), "a", "d")]
    >>> curve = reliability_curve(Judgments.from_records([Judgment(*row) for row in rows * 4]))
    >>> [(point.annotations, round(point.pearson.mean, 3)) for point in (*curve.points, curve.overall)]
    [(2, 1.0), (3, 0.989), (4, 1.0), (4.0, 1.0)]
    """
    check_target(target)
    check_options(trials, odd=(odd, OddRule))
    canonical = judgments.canonical if len(judgments) else None
    rounds = JudgmentRounds.from_judgments(canonical) if canonical else None
    if canonical is None or rounds is None or rounds.sizes[0] < 2:
        message = "no tuple has two judgments; a curve needs that"
        raise InputError(Problem(judgments.source or "judgments", None, message))
    points = [
        _curve_point(rounds, m, trials, odd, seed) for m in range(2, int(rounds.sizes[0]) + 1)
    ]
    has_complete_design = is_complete(canonical)
    planner = (
        None if has_complete_design else Planner.from_study(canonical, generalisability(canonical))
    )
    notes = () if has_complete_design else (_INCOMPLETE_NOTES[planner is not None],)
    overall = _curve_point(rounds, None, trials, odd, seed)
    return ReliabilityCurve(tuple(points), overall, target, planner, notes)


def _curve_point(
    rounds: JudgmentRounds, n_annotations: int | None, trials: int, odd: OddRule, seed: int
) -> CurvePoint:
    sizes = rounds.sizes[rounds.sizes >= (n_annotations or 2)]
    log.debug("%s annotations of %d tuples: %d trials", n_annotations or "all", len(sizes), trials)
    split = partial(split_by_annotation, odd=odd, n_annotations=n_annotations)
    trial_results = run_trials(rounds, split, trials, "drop", seed)
    return CurvePoint(
        float(np.mean(sizes)) if n_annotations is None else n_annotations,
        len(sizes),
        Correlation(trial_results.pearson),
        Correlation(trial_results.spearman),
    )


@dataclass(frozen=True, eq=False)
class JudgmentRounds:
    """J judgments of T tuples of K items, N items in all, each tuple and item judged at least once.

    Tuples with more judgments come first. The judgments lie in rounds: round j holds the j-th
    judgment of every tuple that has one, so that it belongs to the first tuples, one each.
    """

    members: NDArray[np.int64]
    """(T, K) item indices."""
    n_items: int
    sizes: Ints
    """(T,) judgments of the tuple, descending."""
    slices: tuple[slice, ...]
    tuple_of: Ints
    """(J,)"""
    best: Ints
    """(J,) item"""
    worst: Ints
    """(J,) item"""
    annotator_of: Ints
    """(J,) -1 where it is not known."""

    @classmethod
    def from_judgments(cls, judgments: CanonicalJudgments) -> JudgmentRounds:
        """Lay the answers out, which come sorted by tuple."""
        counts = np.bincount(judgments.tuple_of)
        order = np.argsort(-counts, kind="stable")
        new_index = np.empty_like(order)
        new_index[order] = np.arange(len(order))
        turn = np.arange(len(judgments)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.lexsort((new_index[judgments.tuple_of], turn))
        ends = np.cumsum(np.bincount(turn)).tolist()
        return cls(
            judgments.members[order],
            len(judgments.items),
            counts[order],
            tuple(slice(start, end) for start, end in pairwise([0, *ends])),
            new_index[judgments.tuple_of[rows]],
            judgments.best_item[rows],
            judgments.worst_item[rows],
            judgments.annotator_of[rows],
        )

    def scores(self, half: NDArray[np.bool_]) -> Floats:
        """Return (N,) counting scores from the judgments of a half; NaN where an item has none.

        score = (best - worst) / appearances; equal fractions are equal floats.
        """
        rows = np.flatnonzero(half)
        judgments_per_tuple = np.bincount(self.tuple_of[rows], minlength=len(self.sizes))
        weights = np.repeat(judgments_per_tuple, self.members.shape[1])
        appearances = np.bincount(self.members.ravel(), weights, self.n_items)
        best = np.bincount(self.best[rows], minlength=self.n_items)
        worst = np.bincount(self.worst[rows], minlength=self.n_items)
        with np.errstate(invalid="ignore"):
            return (best - worst) / appearances


def split_by_annotation(
    rounds: JudgmentRounds, rng: np.random.Generator, odd: OddRule, n_annotations: int | None = None
) -> Halves:
    """Split each tuple's judgments into two halves at random.

    A tuple with n judgments, or with `n_annotations` picked at random from its n, gives n // 2 to one half
    and the rest to the other. Tuples with one judgment, or with fewer than `n_annotations`, are in neither.
    """
    n_used = rounds.sizes if n_annotations is None else np.full_like(rounds.sizes, n_annotations)
    n_used = np.where((rounds.sizes >= 2) & (rounds.sizes >= n_used), n_used, 0)
    first = n_used // 2
    if odd == "coin":
        first += (n_used % 2) * (rng.random(len(n_used)) < 0.5)
    return _sample_halves(rounds, rng, first, n_used - first)


def _sample_halves(
    rounds: JudgmentRounds, rng: np.random.Generator, to_first: Ints, to_second: Ints
) -> Halves:
    """Deal `to_first` (T,) random judgments of each tuple to one half and `to_second` to the other.

    Selection sampling (Knuth, The Art of Computer Programming 2, section 3.4.2, algorithm S): each
    place that is still open goes to any of the judgments that are left with equal chances.
    """
    first, second = np.zeros((2, len(rounds.tuple_of)), dtype=np.bool_)
    left_first, left_any = to_first.copy(), to_first + to_second
    for turn, rows in enumerate(rounds.slices):
        n = rows.stop - rows.start
        draw = rng.random(n) * (rounds.sizes[:n] - turn)
        is_used = draw < left_any[:n]
        first[rows] = draw < left_first[:n]
        second[rows] = is_used & ~first[rows]
        left_first[:n] -= first[rows]
        left_any[:n] -= is_used
    return first, second


def split_by_annotator(rounds: JudgmentRounds, rng: np.random.Generator, odd: OddRule) -> Halves:
    """Split the annotators into two halves at random; who is not known is in neither."""
    annotators, annotator_of = np.unique(rounds.annotator_of, return_inverse=True)
    draw = np.where(annotators < 0, np.inf, rng.random(len(annotators)))
    n = np.count_nonzero(annotators >= 0)
    more = n % 2 and odd == "coin" and rng.random() < 0.5
    in_first = np.zeros(len(annotators), dtype=np.bool_)
    in_first[np.argsort(draw, kind="stable")[: n // 2 + more]] = True
    first = in_first[annotator_of]
    return first, ~first & (rounds.annotator_of >= 0)


BALANCING_ROUNDS = 20
"""Passes over the tuples that make the halves of `split_by_tuple` equal; few tuples change after ten."""


def split_by_tuple(rounds: JudgmentRounds, rng: np.random.Generator, odd: OddRule) -> Halves:
    """Split the tuples into two halves at random, each with all its judgments.

    The halves are balanced, as Spearman-Brown supposes halves of equal size: from a random start, tuples
    whose change of sides reduces the sum over items of (judgments in one half - in the other) squared
    change sides, a random share of them at a time.
    """
    k = rounds.members.shape[1]
    side = np.where(rng.random(len(rounds.sizes)) < 0.5, rounds.sizes, -rounds.sizes)
    share = 1 / (1 + math.sqrt(rounds.members.size / rounds.n_items))  # all at once would overshoot
    for _ in range(BALANCING_ROUNDS):
        surplus = np.bincount(rounds.members.ravel(), side.repeat(k), rounds.n_items)
        gain = np.sign(side) * surplus[rounds.members].sum(axis=1) - k * rounds.sizes
        if not (gain > 0).any():
            break
        side[(gain > 0) & (rng.random(len(side)) < share)] *= -1
    if odd == "second" and side.sum() > 0:
        side = -side
    first = (side > 0)[rounds.tuple_of]
    return first, ~first


SPLITS = {
    "annotation": split_by_annotation,
    "tuple": split_by_tuple,
    "annotator": split_by_annotator,
}


@dataclass(frozen=True, eq=False)
class Trials:
    """The correlations of n trials; NaN where a trial has none."""

    pearson: Floats
    """(n,)"""
    spearman: Floats
    """(n,)"""
    n_missing: int
    """Items that lacked a score from one half or both in any trial."""
    mean_scored: float
    """Mean number of items per trial that both halves score."""


def run_trials(
    rounds: JudgmentRounds,
    split: Callable[[JudgmentRounds, np.random.Generator], Halves],
    n: int,
    missing: MissingPolicy,
    seed: int,
) -> Trials:
    """Split the judgments n times and correlate the scores of the two halves over the items.

    An item that neither half scores is left out of a trial, whatever `missing` says.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    correlations, is_missing = np.empty((n, 2)), np.zeros(rounds.n_items, dtype=np.bool_)
    n_scored = 0
    for trial in range(n):
        scores = np.array([rounds.scores(half) for half in split(rounds, rng)])
        unscored = np.isnan(scores)
        is_missing |= unscored.any(axis=0)
        n_scored += int(np.count_nonzero(~unscored.any(axis=0)))
        is_dropped = unscored.any(axis=0) if missing == "drop" else unscored.all(axis=0)
        first, second = np.nan_to_num(scores, nan=0.0)[:, ~is_dropped]
        correlations[trial] = correlate(first, second), correlate(_ranks(first), _ranks(second))
    return Trials(
        correlations[:, 0], correlations[:, 1], int(np.count_nonzero(is_missing)), n_scored / n
    )


def correlate(x: Floats, y: Floats) -> float:
    """Return Pearson's r of two (N,) arrays; NaN where one does not vary or N < 3."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    r = float(x @ y) / math.sqrt(float(x @ x) * float(y @ y))
    return min(1.0, max(-1.0, r))  # rounding


def _ranks(values: Floats) -> Floats:
    """Return (N,) ranks, equal values with their average rank; exact, as every rank is a half."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[index]
    return ranks


def check_options(trials: int, **choices: tuple[str, Any]) -> None:
    """Raise ValueError where an option, given as (value, its Literal type), is not allowed."""
    if trials < 1:
        raise ValueError(f"trials is {trials}; it must be at least 1")
    for name, (value, literal) in choices.items():
        expected = get_args(literal)
        if value not in expected:
            raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(expected)}")
