"""Annotator quality: agreement with other annotators, speed, position effects, and flags for review.

Scales and position effects are coefficients of a best–worst logit, one annotator at a time. An annotator
chooses the best of K items with probability proportional to exp(lambda u + b x) and then the worst of the
others with probability proportional to exp(-lambda u + w x): the sequential best–worst logit (Marley and
Louviere 2005) with a scale lambda (sigma = 1 / lambda; Swait and Louviere 1993) and linear effects b and w
of the position x on the page, which is 1/2 for the item shown first and -1/2 for the item shown last. The
utilities u come from the judgments of all other annotators, for language models from those of people.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.clusters import Z_95, Estimate
from bws.control_quality import control_answers
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
Others = tuple[NDArray[Any], NDArray[Any]]
"""(J, K) best minus worst counts of a judgment's items, and appearances, in the judgments of others."""
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

    @property
    def value(self) -> float:
        """The log odds, for tables of estimates."""
        return self.log_odds


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
    unknown, there are fewer than 5 K judgments, or models judged tuples several times."""
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
    control_answers: int = 0
    """Number of answers about control items with an expected answer."""
    control: float = math.nan
    """Share of them as expected; NaN without such answers."""

    @property
    def scale_interval(self) -> Estimate:
        """The scale with its 95 % interval."""
        margin = Z_95 * self.scale_stderr
        return Estimate(self.scale, self.scale - margin, self.scale + margin)


@dataclass(frozen=True, repr=False)
class AnnotatorReport(Tabular):
    """Statistics of all annotators, sorted by id; language models after people."""

    annotators: tuple[Annotator, ...]
    notes: tuple[str, ...] = ()
    """Missing information and skipped rows."""
    positions: PositionEffects = NO_EFFECTS
    """Effects of being shown first rather than last over all judgments, of people if there are models beside
    them; NaN if the order is unknown."""

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
        if has_controls := any(a.control_answers for a in self.annotators):
            columns += [
                Column("control", "control", ".3f", align="right"),
                Column("control_answers", "of", align="right"),
            ]
        rows = [
            [
                *(a.annotator, a.judgments, a.compliance, a.scale_interval, a.seconds),
                *(a.place_p, a.same_answer),
                *(_log_odds(effect) for effect in (a.positions.best, a.positions.worst)),
                *((a.control, a.control_answers) if has_controls else ()),
            ]
            for a in self.annotators
        ]
        reasons = [f"review {a.annotator}: {'; '.join(a.reasons)}" for a in self.flagged]
        notes = [*_position_lines(self.positions), *reasons, *self.notes]
        return ResultTable(columns, rows, notes, "Annotators", "–")


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
def annotator_report(
    judgments: Judgments | Source,
    models: Sequence[Judgments | Source] = (),
    *,
    control: Iterable[str] = (),
) -> AnnotatorReport:
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

    models: judgments of language models, to be listed beside people. They are compared with people alone,
    and change no value of people. They are not flagged, as typical values are those of people. Their
    standard errors and p-values of positions account for several judgments of a tuple: they are the larger
    of the usual ones and those of clusters (groups, or tuples without groups). The same applies to judgments
    of models among those of people.

    control: as in `read_judgments`. Tuples with control items count for the share of expected answers alone
    (`bws.control_quality`), which no flag depends on.

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
    every_judgment, model_judgments = _people_and_models(judgments, models, control)
    judgments, notes = every_judgment.without_adaptive("annotators")
    has_annotator = judgments.annotator_of >= 0
    if not has_annotator.any():
        message = "no judgment names its annotator; expected an annotator per judgment"
        raise InputError(Problem(judgments.source or "judgments", None, message))
    others = _counts_of_others(judgments)
    annotator_of, utility = _annotator_or_last(judgments), _utilities(others)
    is_of_models = judgments.by_model.all()
    cluster_of = judgments.tuples.clusters()[judgments.tuple_of] if is_of_models else None
    scales = _estimate_scales(judgments, annotator_of, utility, cluster_of=cluster_of)
    overall_effects, positions = NO_EFFECTS, [NO_EFFECTS] * len(judgments.annotators)
    if judgments.shown is not None:
        overall_effects, positions = _position_effects(
            judgments, annotator_of, utility, scales, cluster_of
        )
    annotators = _statistics(judgments, others, scales, positions)
    typical = _TypicalValues.from_annotators(annotators)
    suspected = [
        replace(annotator, reasons=tuple(typical.flag_reasons(annotator)))
        for annotator in _with_controls(annotators, every_judgment)
    ]
    missing = np.setdiff1d(every_judgment.annotator_of, judgments.annotator_of)
    if n_missing := np.count_nonzero(missing >= 0):
        kinds = ["adaptive tuples"] if every_judgment.is_adaptive else []
        kinds += ["tuples with control items"] if every_judgment.tuples.controls else []
        notes.append(f"{n_missing} annotators of {' or '.join(kinds)} alone are not listed")
    notes += _notes(judgments, scales)
    listed_models = [
        row for part in model_judgments for row in _model_statistics(part, judgments, scales)
    ]
    if listed_models:
        notes.append("language models (model:...) are compared with people alone, and not flagged")
    listed_models.sort(key=lambda annotator: annotator.annotator)
    return AnnotatorReport((*suspected, *listed_models), tuple(notes), overall_effects)


def _people_and_models(
    judgments: Judgments | Source, models: Sequence[Judgments | Source], control: Iterable[str]
) -> tuple[Judgments, list[Judgments]]:
    """Return the judgments of people, and those of models beside them; of models alone as if of people."""
    judgments, parts = as_judgments(judgments, control), [as_judgments(part) for part in models]
    if judgments.by_model.any() and not judgments.by_model.all():
        parts.insert(0, judgments.select(judgments.by_model))
        judgments = judgments.select(~judgments.by_model)
    return judgments, parts


def _model_statistics(
    judgments: Judgments, people: Judgments, scales_of_people: _Scales
) -> list[Annotator]:
    """Return the statistics of language models, compared with the judgments of people."""
    judgments, _ = judgments.without_adaptive("annotators")
    others = _counts_of_people(judgments, people)
    annotator_of, utility = _annotator_or_last(judgments), _utilities(others)
    cluster_of = judgments.tuples.clusters(len(people.tuples.groups) > 1)[judgments.tuple_of]
    scales = _estimate_scales(judgments, annotator_of, utility, scales_of_people, cluster_of)
    positions = [NO_EFFECTS] * len(judgments.annotators)
    if judgments.shown is not None:
        _, positions = _position_effects(judgments, annotator_of, utility, scales, cluster_of)
    return _statistics(judgments, others, scales, positions)


def _statistics(
    judgments: Judgments, others: Others, scales: _Scales, positions: list[PositionEffects]
) -> list[Annotator]:
    """Return the statistics of all annotators with judgments, sorted by id, without reasons for review."""
    ids = judgments.annotators
    counts = np.bincount(_annotator_or_last(judgments), minlength=len(ids) + 1)[:-1]
    compliance, seconds = _compliance(judgments, others), _median_seconds(judgments)
    best_at, same_answer = _position_shares(judgments)
    has_scale = scales.is_defined & ~np.isnan(scales.stderr)
    return [
        Annotator(
            str(ids[a]),
            int(counts[a]),
            float(compliance[a]),
            float(seconds[a]),
            tuple(best_at[a].tolist()),
            math.nan if judgments.has_repeated_calls else _uniformity_p(best_at[a] * counts[a]),
            float(same_answer[a]),
            float(scales.value[a]) if has_scale[a] else math.nan,
            float(scales.stderr[a]) if has_scale[a] else math.nan,
            positions[a],
        )
        for a in sorted(np.flatnonzero(counts).tolist(), key=ids.__getitem__)
    ]


def _with_controls(annotators: list[Annotator], judgments: Judgments) -> list[Annotator]:
    """Return the annotators with their answers about control items."""
    n_answers, n_expected = control_answers(judgments)
    share = _ratio(n_expected.astype(np.float64), n_answers)
    row = {identity: index for index, identity in enumerate(judgments.annotators)}
    return [
        replace(
            a,
            control_answers=int(n_answers[row[a.annotator]]),
            control=float(share[row[a.annotator]]),
        )
        for a in annotators
    ]


def _compliance(judgments: Judgments, others: Others) -> Floats:
    """Return (A,) shares of the implied pairs that are in the order of the others' counting scores."""
    scores, rows = _ratio(*others), np.arange(len(judgments))
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


def _utilities(others: Others) -> Floats:
    """Return (J, K) analytical logits of a judgment's items from the judgments of others."""
    balance, n = others
    return np.where(n > 0, np.log((n + balance + 1) / (n - balance + 1)), np.nan)


def _counts_of_others(judgments: Judgments) -> Others:
    """Return the counts in the judgments of all other annotators."""
    n_items = len(judgments.tuples.items)
    items, balance = _items_and_balance(judgments)
    annotator_item = _annotator_or_last(judgments)[:, None] * n_items + items
    _, pair = np.unique(annotator_item, return_inverse=True)
    pair = pair.reshape(items.shape)
    return (
        np.bincount(items.ravel(), balance.ravel())[items]
        - np.bincount(pair.ravel(), balance.ravel())[pair],
        np.bincount(items.ravel())[items] - np.bincount(pair.ravel())[pair],
    )


def _counts_of_people(judgments: Judgments, people: Judgments) -> Others:
    """Return the counts in the judgments of people, whose items are matched by group and id."""
    items, balance = _items_and_balance(people)
    n_items = len(people.tuples.items)
    number = {key: n for n, key in enumerate(people.tuples.item_keys)}
    matched = np.array([number.get(key, n_items) for key in judgments.tuples.item_keys], np.int64)
    item = matched[judgments.tuples.members[judgments.tuple_of]]
    return (
        np.bincount(items.ravel(), balance.ravel(), n_items + 1)[item],
        np.bincount(items.ravel(), minlength=n_items + 1)[item],
    )


def _items_and_balance(judgments: Judgments) -> tuple[Integers, Floats]:
    """Return (J, K) items of a judgment, and 1 for the best, -1 for the worst, 0 for the others."""
    position = np.arange(judgments.tuples.k)
    balance = (position == judgments.best[:, None]) * 1.0 - (position == judgments.worst[:, None])
    return judgments.tuples.members[judgments.tuple_of].astype(np.int64), balance


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


def _estimate_scales(
    judgments: Judgments,
    annotator_of: Integers,
    utility: Floats,
    scales_of_people: _Scales | None = None,
    cluster_of: Integers | None = None,
) -> _Scales:
    """Estimate the scale of every annotator.

    annotator_of: (J,) annotator index of each judgment, A if unknown.
    utility: (J, K) utilities of each judgment's items from the judgments of all other annotators, or NaN.
        A judgment with NaN does not count.
    scales_of_people: those of which the unit is used; None for the unit of these judgments.
    cluster_of: (J,) clusters of dependent judgments, see `_find_modes`.

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
    is_defined = bool(slope > Z_95 * np.sqrt(information))
    if scales_of_people:
        pooled, is_defined = scales_of_people.pooled, scales_of_people.is_defined
    unit = pooled if pooled > 0 else 1.0
    stages = _best_worst_stages(judgments, unit * utility)
    value, stderr = _find_modes(
        stages, annotator_of, n_labels, mean=1.0, sd=SCALE_PRIOR_SD, cluster_of=cluster_of
    )
    stderr[_log_likelihood_derivatives(stages, annotator_of, value)[1] == 0] = np.nan
    return _Scales(_round_digits(value), _round_digits(stderr), float(pooled), is_defined)


def _position_effects(
    judgments: Judgments,
    annotator_of: Integers,
    utility: Floats,
    scales: _Scales,
    cluster_of: Integers | None = None,
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
        _estimate_effects([stage], single_label, 1, 2, cluster_of)[0] for stage in answers
    ]
    has_enough = np.bincount(annotator_of, minlength=n_annotators + 1)[:n_annotators] >= 5 * k
    n_tests = 2 * int(np.count_nonzero(has_enough))
    best, worst = (
        _estimate_effects([stage], annotator_of, n_annotators + 1, n_tests, cluster_of)
        for stage in answers
    )
    effects_by_annotator = [
        PositionEffects(best[a], worst[a]) if has_enough[a] else NO_EFFECTS
        for a in range(n_annotators)
    ]
    return PositionEffects(*overall_effects), effects_by_annotator


def _estimate_effects(
    stages: Sequence[Stage],
    annotator_of: Integers,
    n_labels: int,
    n_tests: int,
    cluster_of: Integers | None = None,
) -> list[PositionEffect]:
    """Return the position effect per owner (an annotator, or all judgments)."""
    from scipy.special import chdtrc

    none = np.zeros(n_labels)
    slope, information = _log_likelihood_derivatives(stages, annotator_of, none)
    variance = np.maximum(information, _slope_variance(stages, annotator_of, none, cluster_of))
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.minimum(1.0, n_tests * chdtrc(1, slope**2 / variance))
    value, stderr = _find_modes(
        stages, annotator_of, n_labels, mean=0.0, sd=POSITION_PRIOR_SD, cluster_of=cluster_of
    )
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
    stages: Sequence[Stage],
    annotator_of: Integers,
    n_labels: int,
    *,
    mean: float,
    sd: float,
    cluster_of: Integers | None = None,
) -> tuple[Floats, Floats]:
    """Return (n_owners,) modes of the posterior of the regressor's coefficient, and standard errors.

    Newton's method from the prior mean, safeguarded by bisection: a step that leaves the interval in which
    the slope changes its sign is replaced by the midpoint of the interval.

    The standard errors are derived from the curvature. With (J,) clusters of dependent judgments, they are
    those of a sandwich estimate with the clusters if these are larger.
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
    curvature = _log_likelihood_derivatives(stages, annotator_of, x)[1] + 1 / sd**2
    between = _slope_variance(stages, annotator_of, x, cluster_of)
    return x, np.sqrt(np.maximum(curvature, between)) / curvature


def _log_likelihood_derivatives(
    stages: Sequence[Stage], annotator_of: Integers, x: Floats
) -> tuple[Floats, Floats]:
    """Return (n_owners,) first and minus second derivatives of the log-likelihood at coefficients x."""
    slope, curvature = np.zeros(len(x)), np.zeros(len(x))
    for value, offset in stages:
        deviation, spread = _derivatives(value, offset, x[annotator_of])
        slope += np.bincount(annotator_of, deviation, len(x))
        curvature += np.bincount(annotator_of, spread, len(x))
    return slope, curvature


def _derivatives(value: Floats, offset: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return (C,) first and minus second derivatives of the log-likelihood of choices."""
    logit = x * value + offset
    p = np.exp(logit - logit.max(axis=0))
    p /= p.sum(axis=0)
    mean = (p * value).sum(axis=0)
    return value[0] - mean, (p * (value - mean) ** 2).sum(axis=0)


def _slope_variance(
    stages: Sequence[Stage], annotator_of: Integers, x: Floats, cluster_of: Integers | None
) -> Floats:
    """Return (n_owners,) variances between clusters of the log-likelihood's slope; 0 without clusters."""
    if cluster_of is None:
        return np.zeros(len(x))
    slope = np.zeros(len(annotator_of))
    for value, offset in stages:
        slope += _derivatives(value, offset, x[annotator_of])[0]
    pairs, pair_of = np.unique(
        np.column_stack([annotator_of, cluster_of]), axis=0, return_inverse=True
    )
    squares = np.bincount(pair_of.ravel(), slope, len(pairs)) ** 2
    n_clusters = np.bincount(pairs[:, 0], minlength=len(x))
    correction = n_clusters / np.maximum(n_clusters - 1, 1)
    return np.bincount(pairs[:, 0], squares, len(x)) * correction
