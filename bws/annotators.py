"""Annotator quality: agreement with other annotators, speed, position effects, and flags for review.

Scales and position effects are coefficients of a best–worst logit, one annotator at a time. An annotator
chooses the best of K items with probability proportional to exp(lambda u + b x) and then the worst of the
others with probability proportional to exp(-lambda u + w x): the sequential best–worst logit (Marley and
Louviere 2005) with a scale lambda (sigma = 1 / lambda; Swait and Louviere 1993) and linear effects b and w
of the position x on the page, which is 1/2 for the item shown first and -1/2 for the item shown last. The
utilities u come from the judgments of all other annotators.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.clusters import Estimate
from bws.files import as_judgments
from bws.frames import Source, Tabular, frames_like_source
from bws.problems import InputError, Problem
from bws.records import Judgments
from bws.tables import Cell, Column, NumberText, ResultTable

__all__ = [
    "Annotator",
    "AnnotatorReport",
    "PositionEffect",
    "PositionEffects",
    "annotator_report",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Integers = NDArray[np.int64]
Stage = tuple[Floats, Floats]
"""(L, C) regressor and (L, C) offset of C choices among L alternatives, the chosen one first."""

MIN_JUDGMENTS = 5
"""Annotators with fewer judgments are not flagged."""
MAX_SDS_BELOW_MEDIAN = 3.0
"""Compliance is too low if it is more standard deviations below the median."""
MIN_TIME_SHARE = 1 / 3
"""An annotator is too fast below this share of the annotators' median time."""
FALSE_ALARM_RATE = 0.05
"""Family-wise error rate of the test of screen positions, over all annotators."""
MAD_TO_SD = 1.4826
"""Standard deviation over median absolute deviation, of a normal distribution."""
SCALE_PRIOR_SD = 1.0
"""Standard deviation of the prior of an annotator's scale, whose mean is 1."""
POOLED_PRIOR_SD = 10.0
POSITION_PRIOR_SD = 2.0
"""Standard deviation of the prior of a position effect, in logits; its mean is 0."""
Z_95 = 1.959963984540054
"""Quantile of the normal distribution for a 95 % interval."""
STEP_TOLERANCE = 1e-6
"""Size of the last Newton step; the remaining error is far smaller."""
MAX_STEPS = 200


@dataclass(frozen=True, eq=False)
class _Scales:
    """Scales of A annotators relative to the other annotators, and of the judgments without annotator."""

    value: Floats
    """(A + 1,) 1: the average of all annotators; 0: random answers; below 0: opposite answers."""
    stderr: Floats
    """(A + 1,) standard errors; NaN where the others judged none of the items."""
    pooled: float
    """Coefficient of the others' utilities over all judgments, which corresponds to a scale of 1."""
    is_defined: bool
    """Whether this coefficient is above 0 (score test, two-sided p < 0.05), so that scales have a unit."""


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """Effect of being shown first rather than last on being chosen; NaN if unknown."""

    log_odds: float = float("nan")
    """Difference of the logits; above 0 if items that are shown first are chosen more often."""
    low: float = float("nan")
    """Lower end of the 95 % interval."""
    high: float = float("nan")
    p: float = float("nan")
    """Two-sided p-value of no effect (score test), multiplied by the number of tests, at most 1."""


@dataclass(frozen=True, slots=True)
class PositionEffects:
    """Position effects on the best and the worst answer."""

    best: PositionEffect
    worst: PositionEffect


NO_EFFECTS = PositionEffects(PositionEffect(), PositionEffect())


@dataclass(frozen=True)
class Annotator:
    """Statistics of one annotator's judgments; NaN where undefined."""

    annotator: str
    judgments: int
    compliance: float
    """Share of the implied pairs that are in the order of the others' scores, in [0, 1]; about 0.5 for
    random answers. NaN if no other annotator judged these items."""
    seconds: float
    """Median time per judgment; NaN if no time is known."""
    best_at: tuple[float, ...]
    """(K,) share of the best answers at each screen position; NaN if the order is unknown."""
    place_p: float
    """P-value of equal shares of best answers over screen positions (chi-square test). NaN if the order is
    unknown or there are fewer than 5 K judgments."""
    same_answer: float
    """Share of the judgments with this annotator's most frequent answer, a pair of screen positions (best,
    worst); NaN if the order is unknown."""
    scale: float = math.nan
    """Scale of the logit above: 1 is the average of all annotators, 0 is random. NaN if no other annotator
    judged these items, or if answers do not depend on the other annotators' utilities at all."""
    scale_stderr: float = math.nan
    """Standard error of the scale."""
    positions: PositionEffects = NO_EFFECTS
    """Effects of being shown first rather than last on being chosen best and worst. NaN if the order is
    unknown or there are fewer than 5 K judgments."""
    reasons: tuple[str, ...] = ()
    """Reasons to review these judgments."""


@dataclass(frozen=True, repr=False)
class AnnotatorReport(Tabular):
    """Statistics of all annotators, sorted by id."""

    annotators: tuple[Annotator, ...]
    notes: tuple[str, ...] = ()
    """Missing information and skipped rows."""
    positions: PositionEffects = NO_EFFECTS
    """Effects of being shown first rather than last over all judgments; NaN if the order is unknown."""

    @property
    def flagged(self) -> tuple[Annotator, ...]:
        """Annotators with reasons for review; their judgments are not removed."""
        return tuple(annotator for annotator in self.annotators if annotator.reasons)

    def document(self) -> dict[str, Any]:
        """Return the report as plain dicts and lists."""
        return {
            "annotators": [asdict(annotator) for annotator in self.annotators],
            "to_look_at": [annotator.annotator for annotator in self.flagged],
            "positions": asdict(self.positions),
            "notes": list(self.notes),
        }

    def result_table(self) -> ResultTable:
        """Return a row per annotator; reasons for review are notes."""
        columns = [
            Column("annotator", "annotator"),
            Column("judgments", "judgments", align="right"),
            Column("compliance", "compliance", ".3f", align="right"),
            Column("scale", "scale [95 %]", ".2f", align="right"),
            Column("seconds", "seconds", ".3g", align="right"),
            Column("place_p", "position p", ".3g", align="right"),
            Column("same_answer", "same answer", ".3f", align="right"),
            Column("first_best", "first: best", align="right"),
            Column("first_worst", "worst", align="right"),
        ]
        rows = [
            [
                *(a.annotator, a.judgments, a.compliance, _scale_interval(a), a.seconds),
                *(a.place_p, a.same_answer),
                *(_log_odds(effect) for effect in (a.positions.best, a.positions.worst)),
            ]
            for a in self.annotators
        ]
        reasons = [f"review {a.annotator}: {'; '.join(a.reasons)}" for a in self.flagged]
        notes = [*_position_lines(self.positions), *reasons, *self.notes]
        return ResultTable(columns, rows, notes, "Annotators", "–")


def _scale_interval(annotator: Annotator) -> Estimate:
    margin = Z_95 * annotator.scale_stderr
    return Estimate(annotator.scale, annotator.scale - margin, annotator.scale + margin)


def _log_odds(effect: PositionEffect) -> Cell:
    mark = "*" if effect.p < FALSE_ALARM_RATE else ""
    is_known = not math.isnan(effect.log_odds)
    return NumberText(f"{effect.log_odds:+.2f}{mark}", effect.log_odds) if is_known else math.nan


def _position_lines(positions: PositionEffects) -> Iterator[str]:
    """Yield the effects over all judgments, and an explanation of the table's columns."""
    for answer, effect in (("best", positions.best), ("worst", positions.worst)):
        if not math.isnan(effect.log_odds):
            yield (
                f"shown first rather than last: log odds of {answer} {effect.log_odds:+.2f} "
                f"[{effect.low:+.2f}, {effect.high:+.2f}], p = {effect.p:.2g}"
            )
    if not math.isnan(positions.best.log_odds):
        yield (
            "positions enter the logit linearly; p-values are corrected for the number of tests, "
            f"* marks p < {FALSE_ALARM_RATE} for an annotator"
        )


@frames_like_source
def annotator_report(judgments: Judgments | Source) -> AnnotatorReport:
    """Return statistics per annotator: compliance with the others, speed, positions, and reasons for review.

    Compliance: an answer implies that the best item is above every other item and every other item above
    the worst: 2K - 3 pairs. Each pair is compared with the items' counting scores from all judgments of all
    other annotators (leave one out). It counts 1 in the same order, 0 in the opposite order, and one half
    if the others' scores are equal. Pairs with an item that no other annotator judged do not count.

    An annotator with at least 5 judgments is flagged (`Annotator.reasons`) for any of:

    - compliance more than 3 standard deviations below the median annotator's; the variance is the robust
      variance between annotators plus the binomial variance of the annotator's judgments;
    - a median time under a third of the median annotator's;
    - uneven screen positions of best answers (family-wise error rate 0.05 over all annotators);
    - the same two positions for best and worst in all judgments.

    Times come from the column ``seconds``, positions from `Judgments.shown`. Judgments without annotator
    count only among the others' judgments. Rows that were skipped on reading count for no annotator. Of an
    adaptive study, only warm-up and audit tuples count, with a note: counting scores are biased on tuples
    that were chosen to be hard, and late annotators would have more of them.

    Raises ValueError if all tuples are adaptive, and InputError if no judgment names its annotator.

    >>> from bws.records import Judgment, Judgments
    >>> rows = [Judgment(("a", "b", "c"), "a", "c", annotator=w) for w in ("w1", "w2")]
    >>> rows += [Judgment(("a", "b", "c"), "b", "a", annotator="w3")]
    >>> for annotator in annotator_report(Judgments.from_records(rows)).annotators:
    ...     print(annotator.annotator, round(annotator.compliance, 3))
    w1 0.667
    w2 0.667
    w3 0.333
    """
    every_judgment = as_judgments(judgments)
    judgments, notes = every_judgment.without_adaptive("annotators")
    has_annotator = judgments.annotator_of >= 0
    if not has_annotator.any():
        message = "no judgment names its annotator; expected an annotator per judgment"
        raise InputError(Problem(judgments.source or "judgments", None, message))
    ids, counts = judgments.annotators, np.bincount(judgments.annotator_of[has_annotator])
    compliance, seconds = _compliance(judgments), _median_seconds(judgments)
    best_at, same_answer = _position_shares(judgments)
    annotator_of, utility = _annotator_or_last(judgments), _utilities_of_others(judgments)
    scales = _estimate_scales(judgments, annotator_of, utility)
    has_scale = scales.is_defined & ~np.isnan(scales.stderr)
    overall_effects, positions = NO_EFFECTS, [NO_EFFECTS] * len(ids)
    if judgments.shown is not None:
        overall_effects, positions = _position_effects(judgments, annotator_of, utility, scales)
    annotators = [
        Annotator(
            str(ids[a]),
            int(counts[a]),
            float(compliance[a]),
            float(seconds[a]),
            tuple(best_at[a].tolist()),
            _uniformity_p(best_at[a] * counts[a]),
            float(same_answer[a]),
            float(scales.value[a]) if has_scale[a] else math.nan,
            float(scales.stderr[a]) if has_scale[a] else math.nan,
            positions[a],
        )
        for a in sorted(np.flatnonzero(counts).tolist(), key=ids.__getitem__)
    ]
    typical = _TypicalValues.from_annotators(annotators)
    suspected = [
        replace(annotator, reasons=tuple(typical.flag_reasons(annotator)))
        for annotator in annotators
    ]
    missing = np.setdiff1d(every_judgment.annotator_of, judgments.annotator_of)
    if n_missing := np.count_nonzero(missing >= 0):
        notes.append(f"{n_missing} annotators of adaptive tuples alone are not listed")
    return AnnotatorReport(tuple(suspected), (*notes, *_notes(judgments, scales)), overall_effects)


def _compliance(judgments: Judgments) -> Floats:
    """Return (A,) shares of the implied pairs that are in the order of the others' scores."""
    scores, rows = _scores_of_others(judgments), np.arange(len(judgments))
    best, worst = (
        scores[rows, position][:, None] for position in (judgments.best, judgments.worst)
    )
    with np.errstate(invalid="ignore"):
        above, below = np.sign(best - scores), np.sign(scores - worst)
    above[rows, judgments.best] = np.nan  # no pair with itself
    below[rows, judgments.worst] = np.nan
    below[rows, judgments.best] = np.nan  # best over worst counts once
    order = np.concatenate([above, below], axis=1)
    agreeing = _sums(judgments, np.nansum((order + 1) / 2, axis=1))
    return _ratio(agreeing, _sums(judgments, np.count_nonzero(~np.isnan(order), axis=1)))


def _scores_of_others(judgments: Judgments) -> Floats:
    """Return (J, K) counting scores of a judgment's items from all judgments of other annotators."""
    return _ratio(*_counts_of_others(judgments))


def _utilities_of_others(judgments: Judgments) -> Floats:
    """Return (J, K) analytical logits of a judgment's items from all judgments of other annotators."""
    balance, n = _counts_of_others(judgments)
    return np.where(n > 0, np.log((n + balance + 1) / (n - balance + 1)), np.nan)


def _counts_of_others(judgments: Judgments) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return (J, K) best minus worst counts of a judgment's items, and appearances, of other annotators."""
    tuples, n_items = judgments.tuples, len(judgments.tuples.items)
    items = tuples.members[judgments.tuple_of].astype(np.int64)
    position = np.arange(tuples.k)
    balance = (position == judgments.best[:, None]) * 1.0 - (position == judgments.worst[:, None])
    annotator_item = _annotator_or_last(judgments)[:, None] * n_items + items
    _, pair = np.unique(annotator_item, return_inverse=True)
    pair = pair.reshape(items.shape)
    return (
        np.bincount(items.ravel(), balance.ravel())[items]
        - np.bincount(pair.ravel(), balance.ravel())[pair],
        np.bincount(items.ravel())[items] - np.bincount(pair.ravel())[pair],
    )


def _median_seconds(judgments: Judgments) -> Floats:
    """Return (A,) median times per judgment; NaN for annotators without times."""
    seconds, annotator_of = _seconds(judgments), _annotator_or_last(judgments)
    has_time = ~np.isnan(seconds)
    seconds, annotator_of = seconds[has_time], annotator_of[has_time]
    n = np.bincount(annotator_of, minlength=len(judgments.annotators) + 1)[:-1]
    medians = np.full(len(n), np.nan)
    with_times, start = np.flatnonzero(n), (np.cumsum(n) - n)[n > 0]
    ordered = seconds[np.lexsort((seconds, annotator_of))]
    lower, upper = start + (n[with_times] - 1) // 2, start + n[with_times] // 2
    medians[with_times] = (ordered[lower] + ordered[upper]) / 2
    return medians


def _seconds(judgments: Judgments) -> Floats:
    """Return (J,) times; NaN if the column is missing or the text is not a non-negative number."""
    import polars as pl

    column = judgments.columns.get("seconds")
    if column is None:
        return np.full(len(judgments), np.nan)
    texts = pl.Series(column.tolist(), dtype=pl.String).str.strip_chars()
    seconds = texts.cast(pl.Float64, strict=False).to_numpy().copy()
    seconds[~(np.isfinite(seconds) & (seconds >= 0))] = np.nan
    return seconds


def _position_shares(judgments: Judgments) -> tuple[Floats, Floats]:
    """Return (A, K) shares of best answers per screen position, and (A,) of the most frequent answer."""
    k, n_annotators = judgments.tuples.k, len(judgments.annotators)
    if judgments.shown is None:
        return np.full((n_annotators, k), np.nan), np.full(n_annotators, np.nan)
    best, worst = (
        np.argmax(judgments.shown == answer_position[:, None], axis=1)
        for answer_position in (judgments.best, judgments.worst)
    )
    answer = (_annotator_or_last(judgments) * k + best) * k + worst
    counts = np.bincount(answer, minlength=(n_annotators + 1) * k * k)
    counts = counts.reshape(-1, k, k)[:n_annotators]
    n = counts.sum(axis=(1, 2))
    return _ratio(counts.sum(axis=2), n[:, None]), _ratio(counts.max(axis=(1, 2)), n)


def _uniformity_p(counts: Floats) -> float:
    """Return the p-value of (K,) counts under equal probabilities (chi-square, K - 1 degrees of freedom)."""
    from scipy.special import chdtrc

    k, n = len(counts), counts.sum()
    if not n >= 5 * k:
        return math.nan
    return float(chdtrc(k - 1, ((counts - n / k) ** 2).sum() / (n / k)))


def _annotator_or_last(judgments: Judgments) -> Ints:
    """Return (J,) annotator indices, A for judgments without annotator."""
    annotator_of = judgments.annotator_of.astype(np.int64)
    return np.where(annotator_of < 0, len(judgments.annotators), annotator_of)


def _sums(judgments: Judgments, values: NDArray[Any]) -> Floats:
    """Return (A,) sums of (J,) values per annotator."""
    sums = np.bincount(_annotator_or_last(judgments), values, len(judgments.annotators) + 1)
    return sums[:-1].astype(np.float64)


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Floats:
    """Return numerator / denominator; NaN where the denominator is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(
            denominator > 0, numerator / np.where(denominator > 0, denominator, 1), np.nan
        )


@dataclass(frozen=True)
class _TypicalValues:
    """Typical values of the annotators with enough judgments; NaN where undefined."""

    compliance: float
    compliance_sd: float
    """Standard deviation of compliance between annotators, from the median absolute deviation."""
    seconds: float
    n_tested: int
    """Number of annotators whose screen positions were tested."""

    @classmethod
    def from_annotators(cls, annotators: list[Annotator]) -> _TypicalValues:
        eligible = [a for a in annotators if a.judgments >= MIN_JUDGMENTS]
        compliance = np.array([a.compliance for a in eligible])
        median_compliance = _median(compliance)
        return cls(
            median_compliance,
            MAD_TO_SD * _median(np.abs(compliance - median_compliance)),
            _median(np.array([a.seconds for a in eligible])),
            sum(not math.isnan(a.place_p) for a in annotators),
        )

    def flag_reasons(self, annotator: Annotator) -> Iterator[str]:
        """Yield the reasons to review an annotator's judgments."""
        if annotator.judgments < MIN_JUDGMENTS:
            return
        if annotator.compliance < self._min_compliance(annotator.judgments):
            yield f"compliance {annotator.compliance:.2f} (median {self.compliance:.2f})"
        if annotator.seconds < MIN_TIME_SHARE * self.seconds:
            yield f"{annotator.seconds:.3g} seconds per judgment (median {self.seconds:.3g})"
        if annotator.place_p * self.n_tested < FALSE_ALARM_RATE:
            shares = ", ".join(f"{share:.0%}" for share in annotator.best_at)
            yield f"best answers per screen position: {shares} (p = {annotator.place_p:.1g})"
        if annotator.same_answer == 1:
            yield f"same two screen positions in all {annotator.judgments} judgments"

    def _min_compliance(self, judgments: int) -> float:
        # An additional success and failure keep the variance above 0 if all annotators comply.
        share = (self.compliance * judgments + 1) / (judgments + 2)
        variance = self.compliance_sd**2 + share * (1 - share) / judgments
        return self.compliance - MAX_SDS_BELOW_MEDIAN * math.sqrt(variance)


def _median(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(np.median(defined)) if len(defined) else math.nan


def _notes(judgments: Judgments, scales: _Scales) -> Iterator[str]:
    n_unnamed = np.count_nonzero(judgments.annotator_of < 0)
    if n_unnamed:
        yield f"{n_unnamed} judgments without annotator; they count only among the others' judgments"
    if judgments.left_out:
        yield f"{judgments.n_left_out} skipped rows count for no annotator"
    if judgments.shown is None:
        yield "no position effects: the order on the screen is unknown"
    if not scales.is_defined:
        yield "no scales: too few judgments, or answers unrelated to those of other annotators"
    n_untimed = np.count_nonzero(np.isnan(_seconds(judgments)))
    if n_untimed:
        yield f"{n_untimed} judgments have no time (column seconds)"


def _estimate_scales(judgments: Judgments, annotator_of: Integers, utility: Floats) -> _Scales:
    """Estimate the scale of every annotator.

    annotator_of: (J,) annotator index of each judgment, A if unknown.
    utility: (J, K) utilities of each judgment's items from the judgments of all other annotators, or NaN.
        A judgment with NaN does not count.

    A scale is relative to the coefficient over all judgments. It is the mode of the posterior under a normal
    prior with mean 1 and standard deviation 1, which pulls annotators with few judgments towards 1 and keeps
    the scale of an annotator who always agrees with the others finite. The standard error is derived from
    the curvature at the mode and ignores the error of the utilities.
    """
    n_labels = len(judgments.annotators) + 1
    utility = _zero_unknown(utility)
    single_label = np.zeros(len(annotator_of), dtype=np.int64)
    stages = _best_worst_stages(judgments, utility)
    (slope,), (information,) = _log_likelihood_derivatives(stages, single_label, np.zeros(1))
    (pooled,), _ = _find_modes(stages, single_label, 1, mean=0.0, sd=POOLED_PRIOR_SD)
    unit = pooled if pooled > 0 else 1.0
    stages = _best_worst_stages(judgments, unit * utility)
    value, stderr = _find_modes(stages, annotator_of, n_labels, mean=1.0, sd=SCALE_PRIOR_SD)
    stderr[_log_likelihood_derivatives(stages, annotator_of, value)[1] == 0] = np.nan
    is_defined = bool(slope > Z_95 * np.sqrt(information))
    return _Scales(_round_digits(value), _round_digits(stderr), float(pooled), is_defined)


def _position_effects(
    judgments: Judgments, annotator_of: Integers, utility: Floats, scales: _Scales
) -> tuple[PositionEffects, list[PositionEffects]]:
    """Return the position effects of all judgments together, and of each of A annotators.

    The arguments are those of `_estimate_scales` and its result. Judgments with items that no other
    annotator judged count as if these items were equal. Effects of an annotator require 5 K judgments. The
    p-values of annotators are corrected for the number of annotators with effects and the two answers, those
    of all judgments for the two answers (Bonferroni). Raises ValueError if the order on the page is unknown.
    """
    if judgments.shown is None:
        raise ValueError("the order on the page is unknown; position effects need it")
    k, n_annotators = judgments.tuples.k, len(judgments.annotators)
    position = 0.5 - np.argsort(judgments.shown, axis=1) / max(k - 1, 1)
    unit = scales.pooled if scales.pooled > 0 else 1.0
    offset = unit * scales.value[annotator_of][:, None] * _zero_unknown(utility)
    best_order, worst_order = _chosen_first(judgments)
    answers = (_stage(position, offset, best_order), _stage(position, -offset, worst_order))
    single_label = np.zeros(len(annotator_of), dtype=np.int64)
    overall_effects = [
        _estimate_effects([stage], single_label, 1, n_tests=2)[0] for stage in answers
    ]
    has_enough = np.bincount(annotator_of, minlength=n_annotators + 1)[:n_annotators] >= 5 * k
    n_tests = 2 * int(np.count_nonzero(has_enough))
    best, worst = (
        _estimate_effects([stage], annotator_of, n_annotators + 1, n_tests) for stage in answers
    )
    effects_by_annotator = [
        PositionEffects(best[a], worst[a]) if has_enough[a] else NO_EFFECTS
        for a in range(n_annotators)
    ]
    return PositionEffects(*overall_effects), effects_by_annotator


def _estimate_effects(
    stages: Sequence[Stage], annotator_of: Integers, n_labels: int, n_tests: int
) -> list[PositionEffect]:
    """Return the position effect per owner (an annotator, or all judgments)."""
    from scipy.special import chdtrc

    slope, information = _log_likelihood_derivatives(stages, annotator_of, np.zeros(n_labels))
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.minimum(1.0, n_tests * chdtrc(1, slope**2 / information))
    value, stderr = _find_modes(stages, annotator_of, n_labels, mean=0.0, sd=POSITION_PRIOR_SD)
    rows = np.column_stack((value, value - Z_95 * stderr, value + Z_95 * stderr, p))
    has_no_choice = information == 0  # worst answers of pairs (K = 2)
    return [
        PositionEffect() if empty else PositionEffect(*_round_digits(row).tolist())
        for row, empty in zip(rows, has_no_choice, strict=True)
    ]


def _round_digits(values: Floats) -> Floats:
    """Return values rounded to 10 digits, so that they do not depend on the order of summation."""
    return np.array([float(f"{value:.9e}") for value in values])


def _zero_unknown(utility: Floats) -> Floats:
    """Return the utilities, set to 0 in every judgment with an unknown utility."""
    has_unknown: NDArray[np.bool_] = np.any(np.isnan(utility), axis=1)
    return np.where(has_unknown[:, None], 0.0, utility)


def _chosen_first(judgments: Judgments) -> tuple[Integers, Integers]:
    """Return tuple positions (J, K) with the best first, and (J, K - 1) without the best, the worst first."""
    position = np.arange(judgments.tuples.k)
    is_best, is_worst = (
        position == answer_position[:, None]
        for answer_position in (judgments.best, judgments.worst)
    )
    order = np.argsort(np.where(is_best, 0, np.where(is_worst, 1, 2)), axis=1, kind="stable")
    return order, order[:, 1:]


def _stage(value: Floats, offset: Floats, order: Integers) -> Stage:
    """Return (K, J) values and offsets, the chosen item first; sums over few items are fast in this order."""
    chosen_first = (
        np.take_along_axis(value, order, axis=1),
        np.take_along_axis(offset, order, axis=1),
    )
    return np.ascontiguousarray(chosen_first[0].T), np.ascontiguousarray(chosen_first[1].T)


def _best_worst_stages(judgments: Judgments, utility: Floats) -> list[Stage]:
    zeros = np.zeros_like(utility)
    best_order, worst_order = _chosen_first(judgments)
    return [_stage(utility, zeros, best_order), _stage(-utility, zeros, worst_order)]


def _find_modes(
    stages: Sequence[Stage], annotator_of: Integers, n_labels: int, *, mean: float, sd: float
) -> tuple[Floats, Floats]:
    """Return (n_owners,) modes of the posterior of the regressor's coefficient, and standard errors.

    Newton's method from the prior mean, safeguarded by bisection: a step that leaves the interval in which
    the slope changes its sign is replaced by the midpoint of the interval.
    """
    x = np.full(n_labels, mean)
    low, high = np.full(n_labels, -np.inf), np.full(n_labels, np.inf)
    for _ in range(MAX_STEPS):
        slope, curvature = _log_likelihood_derivatives(stages, annotator_of, x)
        slope, curvature = slope - (x - mean) / sd**2, curvature + 1 / sd**2
        low, high = np.where(slope >= 0, x, low), np.where(slope <= 0, x, high)
        target = x + slope / curvature
        target = np.where((target < low) | (target > high), (low + high) / 2, target)
        step, x = np.abs(target - x).max(initial=0.0), target
        if step <= STEP_TOLERANCE:
            break
    return x, 1 / np.sqrt(_log_likelihood_derivatives(stages, annotator_of, x)[1] + 1 / sd**2)


def _log_likelihood_derivatives(
    stages: Sequence[Stage], annotator_of: Integers, x: Floats
) -> tuple[Floats, Floats]:
    """Return (n_owners,) first and minus second derivatives of the log-likelihood at coefficients x."""
    slope, curvature = np.zeros(len(x)), np.zeros(len(x))
    for value, offset in stages:
        logit = x[annotator_of] * value + offset
        p = np.exp(logit - logit.max(axis=0))
        p /= p.sum(axis=0)
        mean = (p * value).sum(axis=0)
        spread = (p * (value - mean) ** 2).sum(axis=0)
        slope += np.bincount(annotator_of, value[0] - mean, len(x))
        curvature += np.bincount(annotator_of, spread, len(x))
    return slope, curvature
