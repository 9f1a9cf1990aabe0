"""Split-half reliability of scores with respect to answers, tuples or annotators.

`reliability` splits all judgments; `reliability_curve` samples 2, 3, ... annotations per tuple first. Both
use `JudgmentRounds`, which arranges the judgments so that sampling a random half per tuple takes as many
array operations as the largest tuple has judgments.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.metadata import version
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Source, Tabular, frames_like_source
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.base.progress import tracked
from bws.base.tables import Column, ResultTable, part_name
from bws.components import generalisability, is_complete
from bws.files import as_judgments
from bws.metadata import By, breakdown
from bws.planning import Planner, check_target, describe_annotation_needs, whole_number
from bws.records import CanonicalJudgments, Judgments
from bws.stats.constancy import centred, is_constant

log = logging.getLogger(__name__)

ALL = slice(None)
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Halves = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Two (J,) masks: the judgments in the first half, and those in the second."""
COMPLETE_DESIGN = (
    "every possible tuple was judged, so that there are no other tuples: the split by tuple underestimates "
    "the reliability"
)
OddRule = Literal["coin", "second"]
"""Half that gets the additional element of an odd number: a random half, or always the second."""
MissingPolicy = Literal["drop", "zero"]
"""Treatment of items without score in one half: dropped from the trial, or scored 0."""
Split = Literal["annotation", "tuple", "annotator"]
SPLIT_QUESTIONS = {
    "annotation": note(
        "annotation: reproducibility with other answers to the same tuples (the split of most published "
        "figures)"
    ),
    "tuple": note("tuple: reproducibility with other tuples of the same items"),
    "annotator": note("annotator: reproducibility with other annotators"),
}
DROPPED = "{n:d} items have no score in a half of some trials: dropped from that trial"
SCORED_ZERO = (
    "{n:d} items have no score in a half of some trials: scored 0 in that half unless both lack a "
    "score"
)
NO_ESTIMATE = (
    "reliability of {target:g} (Spearman-Brown, {coefficient}): no estimate (the halves are not positively "
    "correlated)"
)
MORE_ANNOTATIONS = (
    "reliability of {target:g} (Spearman-Brown, {coefficient}): {n:d} annotations per tuple, {more:d} more "
    "than the present {present:.4g}"
)
ENOUGH_ANNOTATIONS = (
    "reliability of {target:g} (Spearman-Brown, {coefficient}): {n:d} annotations per tuple, at most the "
    "present {present:.4g}"
)
ONE_IS_ENOUGH = (
    "reliability of {target:g} (Spearman-Brown, {coefficient}): one annotation per tuple, at most the "
    "present {present:.4g}"
)
MIN_SCORED_SHARE = 0.5
"""Smallest mean share of items scored by both halves, for splits that were not requested."""
MIN_CURVE_SHARE = 0.9
"""Smallest share of the tuples with two annotations on which all points of a curve rest."""


@dataclass(frozen=True, eq=False)
class Correlation:
    """Correlation coefficient over trials; undefined trials are ignored."""

    trials: NDArray[np.float64]
    """(n,) values; NaN if a half's scores are constant or fewer than three items have scores."""

    @property
    def mean(self) -> float:
        """Mean over the trials; NaN if undefined in all trials."""
        return float(self._defined.mean()) if len(self._defined) else math.nan

    @property
    def sd(self) -> float:
        """Population standard deviation over the trials; NaN for fewer than two values.

        It measures the variation between random splits and is not a standard error.
        """
        return float(self._defined.std()) if len(self._defined) > 1 else math.nan

    @property
    def spearman_brown(self) -> float:
        """Mean, Spearman–Brown corrected to all judgments; see `spearman_brown`."""
        return spearman_brown(self.mean)

    @property
    def _defined(self) -> NDArray[np.float64]:
        return self.trials[~np.isnan(self.trials)]

    def document(self) -> dict[str, float]:
        """Return mean and sd as a dict."""
        return {"mean": self.mean, "sd": self.sd}


def spearman_brown(r: float) -> float:
    """Return 2r / (1 + r), the reliability of the full data if halves correlate with r.

    Spearman (1910) and Brown (1910); exact for halves of equal size. NaN for negative r and for NaN.

    >>> round(spearman_brown(0.6), 3)
    0.75
    """
    return 2 * r / (1 + r) if r >= 0 else math.nan


@dataclass(frozen=True, eq=False)
class ReliabilityGroup:
    """Split-half reliability of a group of tuples."""

    by: Mapping[str, Any]
    """Column values that these tuples share, such as ``{"source": "CROWDSS"}``; empty for all tuples."""
    items: int
    """Items of the judged tuples."""
    tuples: int
    """Tuples with at least one judgment."""
    annotations: int
    missing_items: int
    """Number of items without score in a half of any trial."""
    scored_items: float
    """Mean number of items per trial with scores in both halves."""
    pearson: Correlation
    spearman: Correlation
    notes: tuple[str, ...] = ()
    """Skipped judgments, and reasons for NaN."""

    def document(self) -> dict[str, Any]:
        """Return the group as a JSON-serialisable dict."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Reliability(Tabular):
    """Split-half reliability of all tuples and of each group."""

    groups: tuple[ReliabilityGroup, ...]
    """All tuples first, then the groups; by the requested split, or by annotation."""
    signature: Mapping[str, Any]
    """Settings of the computation."""
    splits: Mapping[str, tuple[ReliabilityGroup, ...]] = field(default_factory=dict)
    """The same groups by further applicable splits; empty if a split was requested."""
    notes: tuple[str, ...] = ()
    """Control items, and reasons for omitted further splits."""

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON-serialisable dict."""
        return {
            "groups": [group.document() for group in self.groups],
            "splits": {
                split: [group.document() for group in groups]
                for split, groups in self.splits.items()
            },
            "notes": list(self.notes),
            "signature": dict(self.signature),
        }

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
        questions = [SPLIT_QUESTIONS[split] for split in by_split]
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


@frames_like_source
def reliability(
    judgments: Judgments | Source,
    *,
    trials: int = 100,
    split: Split | None = None,
    odd: OddRule = "coin",
    missing: MissingPolicy = "drop",
    seed: int = 0,
    by: By | None = None,
    control: Iterable[str] = (),
) -> Reliability:
    """Return the mean correlation of item scores from random halves of the judgments.

    judgments: `Judgments`, a path, a data frame, or records.

    Each trial scores the items by counting, (best - worst) / appearances, in both halves. It correlates
    the two scores over the items: Pearson's r, and Spearman's rho with average ranks for ties. The result
    contains the mean and the population standard deviation over trials, and separately the Spearman–Brown
    corrected values, which estimate the reliability of scores from all judgments.

    split="annotation": the judgments of each tuple are split at random. The halves share the tuples, so that
    the error of an incomplete design (the opponents of an item) counts as true variance.
    split="tuple": the tuples are split with all their judgments, balanced so that both halves judge an item
    equally often if possible; the halves share the annotators. In small groups, the Spearman–Brown value is
    too low, because all tuples together have more balanced opponents than independent halves;
    `bws.components` accounts for that.
    split="annotator": the annotators are split with all their judgments; judgments without annotator are in
    no half.
    split=None: by annotation in `groups`; also in `splits`, by tuple if the design is incomplete (not every
    set of K items of a group was judged), and by annotator if annotators are named. A further split is
    omitted, with a note, if both halves score less than half of the items on average.

    odd="coin": a random half gets the additional element of an odd number (Kiritchenko and Mohammad 2016).
    odd="second": the second half always gets it, as in GiCCS, section 4.2: two of five annotations against
    three (there with trials=3). By tuple, the second half has the greater number of judgments.

    missing="drop": items without score in one half are dropped from the trial.
    missing="zero": their score in that half is 0. Items without score in both halves are dropped.

    by: mapping from column names to (T,) values, one per tuple of `judgments.tuples`. The first result is
    that of all tuples, followed by those of each combination of values, sorted. The result of a group
    depends on its tuples alone.

    control: as in `read_judgments`. Control items are not among the items that are correlated or balanced;
    their tuples count for the other items.

    The halves depend on the seed and the judgments, not on the order of rows, items, tuples or annotators.
    Tuples with the same items are one tuple. A tuple with one judgment cannot be split by annotation; it is
    in no half and counted in the notes. A correlation is NaN, and counted in the notes, if the scores of a
    half are constant or fewer than three items have scores. Spearman–Brown assumes halves of equal size; for
    two against three annotations it is a close approximation.

    Raises ValueError for an invalid argument. Raises InputError if there are no judgments, for copies of
    judgments (`bws.copies`), or for split="annotator" if no judgment names its annotator.

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> rows = [(("a", "b", "c"), "a", "c"), (("b", "c", "d"), "b", "d"), (("a", "b", "d"), "a", "d")]
    >>> overall = reliability(judgments_from_records([Judgment(*row) for row in rows * 4])).groups[0]
    >>> round(overall.spearman.mean, 3), overall.annotations
    (1.0, 12)
    """
    judgments = as_judgments(judgments, control)
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
    notes = judgments.notes
    for name in (first, *(() if split else _further_splits(canonical))):
        measure_part = partial(
            _measure_split, split=name, trials=trials, odd=odd, missing=missing, seed=seed
        )
        overall = measure_part({}, canonical)
        if name != first and overall.scored_items < MIN_SCORED_SHARE * overall.items:
            notes.append(
                note(
                    "no split by {split}: both halves score only {scored:.1f} of {n:d} items on average",
                    split=name,
                    scored=overall.scored_items,
                    n=overall.items,
                )
            )
        else:
            groups[name] = (
                overall,
                *(measure_part(values, subset) for values, subset in parts[1:]),
            )
    if split == "tuple" and is_complete(canonical):
        notes.append(note(COMPLETE_DESIGN))
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


def usual_split(judgments: Judgments) -> Split:
    """Return the split by annotation, or by tuple if no tuple has two judgments (fresh tuples)."""
    is_fresh = len(np.unique(judgments.tuple_of)) == len(judgments)
    return "tuple" if is_fresh else "annotation"


def _further_splits(judgments: CanonicalJudgments) -> Iterator[Split]:
    """Yield the splits other than annotation that apply to these judgments."""
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
    """Return the split-half reliability of the judgments of a group."""
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
        return [note("{n:d} judgments without annotator are in no half", n=count)] if count else []
    if split == "tuple":
        return []
    count = np.count_nonzero(rounds.sizes == 1)
    if not count:
        return []
    return [
        note(
            "{n:d} of {m:d} tuples have one judgment, which cannot be split",
            n=count,
            m=len(rounds.sizes),
        )
    ]


def _score_notes(trial_results: Trials, missing: MissingPolicy) -> list[str]:
    notes = []
    if n := trial_results.n_missing:
        notes.append(note(DROPPED, n=n) if missing == "drop" else note(SCORED_ZERO, n=n))
    undefined = np.count_nonzero(np.isnan(trial_results.pearson))
    if undefined:
        notes.append(
            note(
                "{n:d} of {m:d} trials have no correlation: the scores of a half are constant, or fewer than "
                "three items have scores",
                n=undefined,
                m=len(trial_results.pearson),
            )
        )
    if min(Correlation(trial_results.pearson).mean, Correlation(trial_results.spearman).mean) < 0:
        notes.append(note("the correlation is negative: Spearman-Brown is undefined"))
    return notes


def _check_judgments(judgments: Judgments, split: Split | None) -> None:
    judgments.check_not_adaptive("split-half reliability")
    file = judgments.source or "judgments"
    if not len(judgments):
        message = note("no judgments; reliability requires at least one")
        raise InputError(Problem(file, None, message))
    judgments.check_no_copies()
    if split == "annotator" and (judgments.annotator_of < 0).all():
        message = note("no judgment names its annotator; split by annotation, or add annotators")
        raise InputError(Problem(file, None, message))


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """Split-half reliability at a given number of annotations per tuple."""

    annotations: float
    """Annotations per tuple, both halves together."""
    tuples: int
    """Number of tuples; other tuples are ignored."""
    pearson: Correlation
    spearman: Correlation

    def document(self) -> dict[str, Any]:
        """Return the point as a JSON-serialisable dict."""
        correlations = {"pearson": self.pearson, "spearman": self.spearman}
        return {
            "annotations": self.annotations,
            "tuples": self.tuples,
            **{name: correlation.document() for name, correlation in correlations.items()},
            "spearman_brown": {
                name: correlation.spearman_brown for name, correlation in correlations.items()
            },
        }


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityCurve(Tabular):
    """Split-half reliability by number of annotations, and the number required for a target."""

    points: tuple[CurvePoint, ...]
    """Points at 2, 3, ... annotations per tuple, all of the same tuples."""
    overall: CurvePoint
    """Point for all annotations of all tuples with at least two; `annotations` is the mean per tuple."""
    target: float
    planner: Planner | None = None
    """Variance components if the design is incomplete, because halves share the error of the design."""
    notes: tuple[str, ...] = ()

    @property
    def tuples_note(self) -> str:
        """The tuples of all points; empty if they are all tuples with all their annotations."""
        last = self.points[-1]
        if (last.tuples, last.annotations) == (self.overall.tuples, self.overall.annotations):
            return ""
        return note(
            "all points rest on the {n:d} of {m:d} tuples with at least {annotations:g} annotations",
            n=last.tuples,
            m=self.overall.tuples,
            annotations=last.annotations,
        )

    @property
    def needed(self) -> Mapping[str, Mapping[str, float]]:
        """Annotations per tuple for the target, by coefficient; extrapolated, see `annotations_for`.

        ``split_half``: for this correlation of the halves; ``spearman_brown``: for this Spearman–Brown
        corrected reliability of scores from all annotations, which requires half as many.
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
            "notes": [_EXTRAPOLATION_NOTE, *self.notes, *filter(None, [self.tuples_note])],
        }

    def result_table(self) -> ResultTable:
        """Return a row per point; the annotations required for the target are notes."""
        columns = [
            Column("annotations", "annotations per tuple", ".4g", align="decimal"),
            Column("tuples", "tuples", align="right"),
            *_correlation_columns(".4g"),
        ]
        rows = [[point.annotations, point.tuples, *_correlations(point)] for point in self.points]
        lines = [
            self._describe_need(name, estimates["spearman_brown"])
            for name, estimates in self.needed.items()
        ]
        if self.planner:
            lines = [describe_annotation_needs(self.target, self.planner)]
        lines += [*filter(None, [self.tuples_note]), *self.notes, _EXTRAPOLATION_NOTE]
        title = "Split-half reliability by number of annotations"
        return ResultTable(columns, rows, lines, title, "nan")

    def _describe_need(self, coefficient: str, needed: float) -> str:
        """Return a sentence with the number of annotations for the target."""
        values: dict[str, object] = {
            "target": self.target,
            "coefficient": coefficient,
            "present": self.overall.annotations,
        }
        if math.isnan(needed):
            return note(NO_ESTIMATE, **values)
        n = whole_number(needed)
        if more := max(0, math.ceil(n - self.overall.annotations)):
            return note(MORE_ANNOTATIONS, n=n, more=more, **values)
        return note(ENOUGH_ANNOTATIONS, n=n, **values) if n > 1 else note(ONE_IS_ENOUGH, **values)


_INCOMPLETE_NOTES = {
    True: note(
        "the design is incomplete: the halves share the error due to an item's opponents; annotations for "
        "the target are estimated from variance components, which include this error"
    ),
    False: note(
        "the design is incomplete: the halves share the error due to an item's opponents, so that the "
        "reliability is overestimated; variance components cannot be estimated"
    ),
}
_EXTRAPOLATION_NOTE = note(
    "the numbers of annotations for the target are extrapolated with the Spearman-Brown formula or from "
    "variance components, assuming that further annotators are like the present ones"
)


def annotations_for(target: float, r: float, annotations: float) -> float:
    """Return the number of annotations for reliability `target` if `annotations` have reliability `r`.

    Spearman–Brown prophecy formula: annotations * target (1 - r) / (r (1 - target)). It assumes that further
    annotations are like the present ones. NaN unless r is positive.

    >>> round(annotations_for(0.9, 0.75, 4), 3)
    12.0
    """
    return annotations * target * (1 - r) / (r * (1 - target)) if r > 0 else math.nan


@frames_like_source
def reliability_curve(
    judgments: Judgments | Source,
    *,
    trials: int = 100,
    odd: OddRule = "coin",
    target: float = 0.9,
    seed: int = 0,
    control: Iterable[str] = (),
) -> ReliabilityCurve:
    """Return split-half reliability with 2, 3, ... annotations per tuple, and the number for `target`.

    In each trial, a point samples its number of annotations from each tuple, and splits them like
    `bws.reliability` by annotation. All points rest on the same tuples: those with the annotations of the
    last point, the largest number that 90 % of the tuples with two annotations have. The target is the
    reliability of scores from all annotations of a tuple, Spearman–Brown corrected. If the design is
    incomplete, it is estimated from variance components (`Planner`), since annotations do not reduce the
    error due to an item's opponents. control: as in `bws.reliability`.

    Raises ValueError for a target that is not between 0 and 1 or trials below 1, and InputError if no tuple
    has two judgments, or for copies of judgments (`bws.copies`).

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> rows = [(("a", "b", "c"), "a", "c"), (("b", "c", "d"), "b", "d"), (("a", "b", "d"), "a", "d")]
    >>> curve = reliability_curve(judgments_from_records([Judgment(*row) for row in rows * 4]))
    >>> [(point.annotations, round(point.pearson.mean, 3)) for point in (*curve.points, curve.overall)]
    [(2, 1.0), (3, 0.989), (4, 1.0), (4.0, 1.0)]
    """
    judgments = as_judgments(judgments, control)
    check_target(target)
    check_options(trials, odd=(odd, OddRule))
    judgments.check_no_copies()
    canonical = judgments.canonical if len(judgments) else None
    rounds = JudgmentRounds.from_judgments(canonical) if canonical else None
    if canonical is None or rounds is None or rounds.sizes[0] < 2:
        message = note("no tuple has two judgments; expected at least one for a reliability curve")
        raise InputError(Problem(judgments.source or "judgments", None, message))
    n_tuples = np.count_nonzero(rounds.sizes >= 2)
    last = int(rounds.sizes[math.ceil(MIN_CURVE_SHARE * n_tuples) - 1])
    points = [_curve_point(rounds, m, last, trials, odd, seed) for m in range(2, last + 1)]
    has_complete_design = is_complete(canonical)
    planner = (
        None if has_complete_design else Planner.from_study(canonical, generalisability(canonical))
    )
    notes = () if has_complete_design else (_INCOMPLETE_NOTES[planner is not None],)
    overall = _curve_point(rounds, None, 2, trials, odd, seed)
    return ReliabilityCurve(tuple(points), overall, target, planner, notes)


def _curve_point(
    rounds: JudgmentRounds,
    n_annotations: int | None,
    min_size: int,
    trials: int,
    odd: OddRule,
    seed: int,
) -> CurvePoint:
    sizes = rounds.sizes[rounds.sizes >= min_size]
    log.debug("%s annotations of %d tuples: %d trials", n_annotations or "all", len(sizes), trials)
    split = partial(split_by_annotation, odd=odd, n_annotations=n_annotations, min_size=min_size)
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

    Tuples are sorted by number of judgments, descending. Judgments are arranged in rounds: round j contains
    the j-th judgment of every tuple that has one, that is one judgment of each of the first tuples.
    """

    members: NDArray[np.int64]
    """(T, K) item indices; N for control items."""
    n_items: int
    """N, without control items."""
    sizes: Ints
    """(T,) numbers of judgments per tuple, descending."""
    slices: tuple[slice, ...]
    tuple_of: Ints
    """(J,)"""
    best: Ints
    """(J,) item; N for a control item."""
    worst: Ints
    """(J,) item; N for a control item."""
    annotator_of: Ints
    """(J,) annotator index, -1 if unknown."""

    @classmethod
    def from_judgments(cls, judgments: CanonicalJudgments) -> JudgmentRounds:
        """Arrange judgments, which are sorted by tuple, in rounds."""
        counts = np.bincount(judgments.tuple_of)
        order = np.argsort(-counts, kind="stable")
        new_index = np.empty_like(order)
        new_index[order] = np.arange(len(order))
        turn = np.arange(len(judgments)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.lexsort((new_index[judgments.tuple_of], turn))
        ends = np.cumsum(np.bincount(turn)).tolist()
        n = judgments.n_scored
        return cls(
            np.minimum(judgments.members[order], n),
            n,
            counts[order],
            tuple(slice(start, end) for start, end in pairwise([0, *ends])),
            new_index[judgments.tuple_of[rows]],
            np.minimum(judgments.best_item[rows], n),
            np.minimum(judgments.worst_item[rows], n),
            judgments.annotator_of[rows],
        )

    def counts(self, half: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Return (N,) best - worst and (N,) appearances of each item in the judgments of a half."""
        rows, n = np.flatnonzero(half), self.n_items
        judgments_per_tuple = np.bincount(self.tuple_of[rows], minlength=len(self.sizes))
        best = np.bincount(self.best[rows], minlength=n + 1)
        worst = np.bincount(self.worst[rows], minlength=n + 1)
        return (best - worst)[:n], self.sums(judgments_per_tuple)

    def sums(self, values: Ints, tuples: Ints | slice = ALL) -> Ints:
        """Return (N,) the sum over tuples of (T,) values, for each item of a tuple."""
        n = self.n_items
        total = np.zeros(n + 1)
        for column in self.columns:
            total += np.bincount(column[tuples], values, n + 1)
        return total[:n].astype(np.int64)

    @cached_property
    def columns(self) -> tuple[Ints, ...]:
        """K arrays (T,): the columns of `members`."""
        return tuple(np.ascontiguousarray(column) for column in self.members.T)

    @cached_property
    def annotators(self) -> tuple[Ints, Ints]:
        """The (A,) annotator indices in the judgments, and (J,) the position of each judgment's annotator."""
        annotators, position = np.unique(self.annotator_of, return_inverse=True)
        return annotators, position

    @cached_property
    def all_counts(self) -> tuple[Ints, Ints]:
        """`counts` of all judgments."""
        return self.counts(np.ones(len(self.tuple_of), dtype=np.bool_))


def split_by_annotation(
    rounds: JudgmentRounds,
    rng: np.random.Generator,
    odd: OddRule,
    n_annotations: int | None = None,
    min_size: int = 2,
) -> Halves:
    """Split each tuple's judgments into two halves at random.

    One half gets n // 2 of a tuple's n judgments, the other half the rest; with `n_annotations`, n is this
    number, sampled at random. Tuples with fewer than `min_size` judgments are in no half.
    """
    n_used = rounds.sizes if n_annotations is None else np.full_like(rounds.sizes, n_annotations)
    n_used = np.where(rounds.sizes >= min_size, n_used, 0)
    first = n_used // 2
    if odd == "coin":
        first += (n_used % 2) * (rng.random(len(n_used)) < 0.5)
    return _sample_halves(rounds, rng, first, n_used - first)


def _sample_halves(
    rounds: JudgmentRounds, rng: np.random.Generator, to_first: Ints, to_second: Ints
) -> Halves:
    """Assign `to_first` (T,) random judgments of each tuple to one half and `to_second` to the other.

    Selection sampling (Knuth, The Art of Computer Programming 2, section 3.4.2, algorithm S): each remaining
    slot is assigned to the remaining judgments with equal probability.
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
    """Split the annotators into two halves at random; judgments without annotator are in no half."""
    annotators, annotator_of = rounds.annotators
    draw = np.where(annotators < 0, np.inf, rng.random(len(annotators)))
    n = np.count_nonzero(annotators >= 0)
    more = n % 2 and odd == "coin" and rng.random() < 0.5
    in_first = np.zeros(len(annotators), dtype=np.bool_)
    in_first[np.argsort(draw, kind="stable")[: n // 2 + more]] = True
    first = in_first[annotator_of]
    return first, ~first & (rounds.annotator_of >= 0)


MAX_PAIRS_PER_ITEM = 4
"""Number of possible fractions per item up to which ranks are computed by counting."""
BALANCING_ROUNDS = 20
"""Passes over the tuples that balance the halves of `split_by_tuple`; few tuples change after ten."""


def split_by_tuple(rounds: JudgmentRounds, rng: np.random.Generator, odd: OddRule) -> Halves:
    """Split the tuples into two halves at random, each with all its judgments.

    The halves are balanced, as Spearman–Brown assumes halves of equal size. From a random start, a random
    share of tuples is moved to the other half at a time, among those whose move reduces the sum over items of
    the squared difference of judgments between the halves. Control items are not balanced.
    """
    n = rounds.n_items
    n_scored = np.count_nonzero(rounds.members < n, axis=1)
    side = np.where(rng.random(len(rounds.sizes)) < 0.5, rounds.sizes, -rounds.sizes)
    share = 1 / (1 + math.sqrt(rounds.members.size / n))  # moving all at once would overshoot
    surplus = np.append(rounds.sums(side), 0)
    for _ in range(BALANCING_ROUNDS):
        difference = np.sign(side) * sum(surplus[column] for column in rounds.columns)
        can_move = difference > n_scored * rounds.sizes
        if not can_move.any():
            break
        moved = np.flatnonzero(can_move & (rng.random(len(side)) < share))
        side[moved] *= -1
        surplus[:n] += 2 * rounds.sums(side[moved], moved)
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
    """Correlations of n trials; NaN where undefined."""

    pearson: Floats
    """(n,)"""
    spearman: Floats
    """(n,)"""
    n_missing: int
    """Number of items without score in one or both halves of any trial."""
    mean_scored: float
    """Mean number of items per trial with scores in both halves."""


def run_trials(
    rounds: JudgmentRounds,
    split: Callable[[JudgmentRounds, np.random.Generator], Halves],
    n: int,
    missing: MissingPolicy,
    seed: int,
) -> Trials:
    """Split the judgments n times and correlate the scores of the two halves over the items.

    Items without score in both halves are dropped from a trial for every `missing`.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    correlations, is_missing = np.empty((n, 2)), np.zeros(rounds.n_items, dtype=np.bool_)
    n_scored = 0
    for trial in tracked(range(n), "trials", n):
        halves = _counts_of_halves(rounds, *split(rounds, rng))
        unscored = np.array([appearances == 0 for _, appearances in halves])
        lacks_one = unscored.any(axis=0)
        is_missing |= lacks_one
        n_scored += int(np.count_nonzero(~lacks_one))
        is_kept = ~(lacks_one if missing == "drop" else unscored.all(axis=0))
        # without appearances, the score is 0
        counts = [(net[is_kept], appearances[is_kept].clip(min=1)) for net, appearances in halves]
        correlations[trial] = (
            correlate(*(net / appearances for net, appearances in counts)),
            correlate(*(_ranks_of_fractions(*each) for each in counts)),
        )
    return Trials(
        correlations[:, 0], correlations[:, 1], int(np.count_nonzero(is_missing)), n_scored / n
    )


def _counts_of_halves(
    rounds: JudgmentRounds, first: NDArray[np.bool_], second: NDArray[np.bool_]
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Return `JudgmentRounds.counts` of both halves."""
    counts = rounds.counts(first)
    if not (first ^ second).all():
        return counts, rounds.counts(second)
    net, appearances = rounds.all_counts  # of which the second half has the rest
    return counts, (net - counts[0], appearances - counts[1])


def correlate(x: Floats, y: Floats) -> float:
    """Return Pearson's r of two (N,) arrays; NaN if one is constant or N < 3."""
    if len(x) < 3 or is_constant(x) or is_constant(y):
        return math.nan
    x, y = centred(x), centred(y)
    r = float(x @ y) / math.sqrt(float(x @ x) * float(y @ y))
    return min(1.0, max(-1.0, r))  # remove rounding errors


def average_ranks(values: Floats) -> Floats:
    """Return (N,) ranks with average ranks for ties; exact, as all ranks are multiples of 1/2."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[index]
    return ranks


def _ranks_of_fractions(numerator: Ints, denominator: Ints) -> Floats:
    """Return `average_ranks` of (N,) fractions from -1 to 1, by counting equal pairs of numbers."""
    most = int(denominator.max(initial=1))
    width = 2 * most + 1
    if most * width > MAX_PAIRS_PER_ITEM * len(numerator):
        return average_ranks(numerator / denominator)
    pair = denominator * width + numerator + most
    counts = np.bincount(pair)
    pairs = np.flatnonzero(counts)
    _, index = np.unique((pairs % width - most) / (pairs // width), return_inverse=True)
    equal = np.bincount(index, counts[pairs])
    ranks = np.zeros(len(counts))
    ranks[pairs] = (np.cumsum(equal) - (equal - 1) / 2)[index]
    return np.asarray(ranks[pair])


def check_options(trials: int, **choices: tuple[str, Any]) -> None:
    """Raise ValueError for an invalid option; options are (value, Literal type) pairs."""
    if trials < 1:
        raise ValueError(f"trials is {trials}; it must be at least 1")
    for name, (value, literal) in choices.items():
        expected = get_args(literal)
        if value not in expected:
            raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(expected)}")
