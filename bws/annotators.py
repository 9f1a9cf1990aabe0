"""Annotator quality: agreement with other annotators, scale, speed, positions, and flags for review."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bws.annotator_logit import (
    NO_EFFECTS,
    PositionEffect,
    PositionEffects,
    ScaleEstimates,
    estimate_scales,
    opposition,
    position_effects,
    scale_changes,
)
from bws.base.frames import Source, Tabular, frames_like_source
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.base.tables import Cell, Column, NumberText, ResultTable
from bws.control_quality import control_answers
from bws.files import as_judgments
from bws.files.columns import quoted
from bws.history import is_sorted_by_tuple, turns
from bws.records import CanonicalJudgments, Judgments
from bws.stats.clusters import Z_95
from bws.stats.estimates import Estimate

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Integers = NDArray[np.int64]
Others = tuple[NDArray[Any], NDArray[Any]]
"""(J, K) best minus worst counts of a judgment's items, and appearances, in the judgments of others."""
Flag = Literal["random", "inexact", "reversed", "worse", "fast", "positions", "same_answer"]
"""Reason to review an annotator's judgments, see `annotator_report`."""

MIN_JUDGMENTS = 5
"""Annotators with fewer judgments are not flagged."""
MAX_RANDOM_SCALE = 0.5
"""Answers are close to random if the scale is below this share of the annotators' upper quartile."""
MIN_TIME_SHARE = 1 / 3
"""An annotator is too fast below this share of the annotators' median time."""
MAX_TASTE_P = 0.2
"""P-value of `taste_test` below which tastes have a note, so that few of them are missed."""
MIN_SHARED_ITEMS = 0.8
"""Share of the items of an annotator's judgments in both halves below which these are not compared."""
FALSE_ALARM_RATE = 0.05
"""Family-wise error rate of the test of screen positions, over all annotators."""
REVERSED = "best and worst exchanged: scale {scale:.2f} [{low:.2f}, {high:.2f}], below 0"
INEXACT = (
    "answers far less exact than usual: scale {scale:.2f} [{low:.2f}, {high:.2f}], below {bound:.2f} "
    "({share:g} of the upper quartile)"
)
RANDOM = (
    "answers close to random: scale {scale:.2f} [{low:.2f}, {high:.2f}], below {bound:.2f} ({share:g} of the "
    "upper quartile)"
)
WORSE = (
    "less exact in the second half of the judgments: scale {first:.2f}, then {second:.2f} (p {p:p})"
)
FAST = "{seconds:.3g} seconds per judgment (median {median:.3g})"
UNEVEN_POSITIONS = "best answers per screen position: {shares} (p {p:p})"
SAME_ANSWER = "same two screen positions in all {n:d} judgments"


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
    """Standard error of the scale, with a judgment as one observation."""
    scale_low: float = math.nan
    """Lower limit of the scale's 95 % interval."""
    scale_high: float = math.nan
    positions: PositionEffects = NO_EFFECTS
    """Effects of being shown first rather than last on being chosen best and worst. NaN if the order is
    unknown or there are fewer than 5 K judgments."""
    scale_first: float = math.nan
    """Scale of the first half of the judgments, in the order of the rows; NaN if this order is unknown or
    there are fewer than 5 K judgments."""
    scale_second: float = math.nan
    """Scale of the second half."""
    worse_p: float = math.nan
    """One-sided p-value of a second half that is not less exact than the first one."""
    flags: tuple[Flag, ...] = ()
    """Reasons to review these judgments."""
    reasons: tuple[str, ...] = ()
    """The same reasons as texts."""
    control_answers: int = 0
    """Number of answers about control items with an expected answer."""
    control: float = math.nan
    """Share of them as expected; NaN without such answers."""

    @property
    def scale_interval(self) -> Estimate:
        """The scale with its 95 % interval."""
        return Estimate(self.scale, self.scale_low, self.scale_high)


@dataclass(frozen=True, repr=False)
class AnnotatorReport(Tabular):
    """Statistics of all annotators, sorted by id; language models after people."""

    annotators: tuple[Annotator, ...]
    notes: tuple[str, ...] = ()
    """Missing information and skipped rows."""
    positions: PositionEffects = NO_EFFECTS
    """Effects of being shown first rather than last over all judgments, of people if there are models beside
    them; NaN if the order is unknown."""
    too_few: int = 0
    """Number of people with too few judgments for random answers to be found with a probability of 90 %."""

    @property
    def flagged(self) -> tuple[Annotator, ...]:
        """Annotators with reasons for review; their judgments are not removed."""
        return tuple(annotator for annotator in self.annotators if annotator.flags)

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
        has_controls = any(a.control_answers for a in self.annotators)
        has_halves = any(not math.isnan(a.scale_first) for a in self.annotators)
        columns = [
            Column("annotator", "annotator"),
            Column("judgments", "judgments", align="right"),
            Column("compliance", "compliance", ".3f", align="right"),
            Column("scale", "scale [95 %]", ".2f", align="right"),
            *([Column("halves", "halves", align="right")] if has_halves else []),
            Column("seconds", "seconds", ".3g", align="right"),
            Column("place_p", "position p", ".3g", align="right"),
            Column("same_answer", "same answer", ".3f", align="right"),
            Column("first_best", "first: best", align="right"),
            Column("first_worst", "worst", align="right"),
        ]
        if has_controls:
            columns += [
                Column("control", "control", ".3f", align="right"),
                Column("control_answers", "of", align="right"),
            ]
        rows = [
            [
                *(a.annotator, a.judgments, a.compliance, a.scale_interval),
                *((_halves(a),) if has_halves else ()),
                *(a.seconds, a.place_p, a.same_answer),
                *(_log_odds(effect) for effect in (a.positions.best, a.positions.worst)),
                *((a.control, a.control_answers) if has_controls else ()),
            ]
            for a in self.annotators
        ]
        reasons = [f"review {a.annotator}: {'; '.join(a.reasons)}" for a in self.flagged]
        notes = [*_position_lines(self.positions), *reasons, *self.notes]
        return ResultTable(columns, rows, notes, "Annotators", "–")


def _halves(annotator: Annotator) -> Cell:
    """Return the scales of both halves of the judgments; the value is their difference."""
    first, second = annotator.scale_first, annotator.scale_second
    if math.isnan(first):
        return math.nan
    mark = "*" if "worse" in annotator.flags else ""
    return NumberText(f"{first:.2f}, {second:.2f}{mark}", second - first)


def _log_odds(effect: PositionEffect) -> Cell:
    mark = "*" if effect.p < FALSE_ALARM_RATE else ""
    is_known = not math.isnan(effect.log_odds)
    return NumberText(f"{effect.log_odds:+.2f}{mark}", effect.log_odds) if is_known else math.nan


def _position_lines(positions: PositionEffects) -> Iterator[str]:
    """Yield the effects over all judgments, and an explanation of the table's columns."""
    for answer, effect in (("best", positions.best), ("worst", positions.worst)):
        if not math.isnan(effect.log_odds):
            yield note(
                "shown first rather than last: log odds of {answer} {effect:+.2f} [{low:+.2f}, {high:+.2f}], "
                "p {p:p}",
                answer=answer,
                effect=effect.log_odds,
                low=effect.low,
                high=effect.high,
                p=effect.p,
            )
    if not math.isnan(positions.best.log_odds):
        yield note(
            "positions enter the logit linearly; p-values are corrected for the number of tests, * marks "
            "p < {limit:g} for an annotator",
            limit=FALSE_ALARM_RATE,
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

    An annotator with at least 5 judgments is flagged (`Annotator.flags`) for any of:

    - random: the upper limit of the scale's 95 % interval is below half of the upper quartile of the
      annotators' scales, and the interval contains 0;
    - inexact: the same with an interval above 0, as for many slips or another opinion;
    - reversed: this limit is below 0, as for exchanged best and worst answers; such an annotator is not
      random;
    - worse: a second half of the judgments that is less exact than the first one (family-wise error rate
      0.05 over all annotators), in the order of the rows unless these are sorted by tuple;
    - fast: a median time under a third of the median annotator's;
    - positions: uneven screen positions of best answers (family-wise error rate 0.05 over all annotators);
    - same_answer: the same two positions for best and worst in all judgments.

    Notes state the probability that random answers to an annotator's tuples are flagged, and the number of
    annotators with too few judgments for 90 %.
    The power and the false alarms of the flags of scales are in docs/background/measures.md.

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

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> rows = [Judgment(("a", "b", "c"), "a", "c", annotator=w) for w in ("w1", "w2")]
    >>> rows += [Judgment(("a", "b", "c"), "b", "a", annotator="w3")]
    >>> for annotator in annotator_report(judgments_from_records(rows)).annotators:
    ...     print(annotator.annotator, round(annotator.compliance, 3))
    w1 0.667
    w2 0.667
    w3 0.333
    """
    every_judgment, model_judgments = _people_and_models(judgments, models, control)
    judgments, notes = every_judgment.without_adaptive("annotators")
    has_annotator = judgments.annotator_of >= 0
    if not has_annotator.any():
        message = note("no judgment names its annotator; expected an annotator per judgment")
        raise InputError(Problem(judgments.source or "judgments", None, message))
    annotator_of = _annotator_or_last(judgments)
    is_opposed = _opposed_annotators(judgments, annotator_of)
    agreeing = ~is_opposed[annotator_of]
    utility = _utilities(_counts_of_others(judgments, agreeing))
    is_of_models = judgments.by_model.all()
    cluster_of = judgments.tuples.clusters()[judgments.tuple_of] if is_of_models else None
    scales = estimate_scales(
        judgments, annotator_of, utility, cluster_of=cluster_of, is_opposed=is_opposed
    )
    overall_effects, positions = position_effects(
        judgments, annotator_of, utility, scales, cluster_of
    )
    annotators = _statistics(judgments, _counts_of_others(judgments), scales, positions)
    if scales.is_defined and not is_of_models and not is_sorted_by_tuple(judgments):
        annotators = _with_changes(annotators, judgments, annotator_of, utility, scales)
    typical = _TypicalValues.from_annotators(annotators)
    suspected = [
        typical.flagged(annotator) for annotator in _with_controls(annotators, every_judgment)
    ]
    missing = np.setdiff1d(every_judgment.annotator_of, judgments.annotator_of)
    if n_missing := np.count_nonzero(missing >= 0):
        kinds = ["adaptive tuples"] if every_judgment.is_adaptive else []
        kinds += ["tuples with control items"] if every_judgment.tuples.controls else []
        notes.append(
            note(
                "{n:d} annotators of {unit} alone are not listed",
                n=n_missing,
                unit=" or ".join(kinds),
            )
        )
    notes += _notes(judgments, scales)
    if (taste_p := taste_test(judgments.canonical)) < MAX_TASTE_P:
        notes.append(
            note(
                "annotators seem to have preferences of their own (p {p:p}): intervals of scales then "
                "apply to the judged items, and effects of positions on an annotator with known preferences "
                "are larger than shown",
                p=taste_p,
            )
        )
    listed = np.unique(judgments.annotator_of[has_annotator])
    too_few = 0
    if scales.is_defined:
        found = scales.random_high[listed] < typical.max_random_scale
        too_few = int(np.count_nonzero(~found))
        power = scales.random_power(typical.max_random_scale)[listed]
        if (power := power[~np.isnan(power)]).size:
            notes.append(
                note(
                    "power: random answers are flagged with a probability of {median:.0%} for the median "
                    "annotator, {low:.0%} to {high:.0%} for all",
                    median=np.median(power),
                    low=power.min(),
                    high=power.max(),
                )
            )
    if too_few:
        notes.append(
            note(
                "{n:d} of {m:d} annotators have too few judgments for random answers to be found with a "
                "probability of 90 %",
                n=too_few,
                m=len(listed),
            )
        )
    listed_models = [
        row
        for part in model_judgments
        for row in _model_statistics(part, judgments.select(agreeing), scales)
    ]
    if listed_models:
        notes.append(
            note("language models (model:...) are compared with people alone, and not flagged")
        )
    listed_models.sort(key=lambda annotator: annotator.annotator)
    return AnnotatorReport((*suspected, *listed_models), tuple(notes), overall_effects, too_few)


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
    judgments: Judgments, people: Judgments, scales_of_people: ScaleEstimates
) -> list[Annotator]:
    """Return the statistics of language models, compared with the judgments of people."""
    judgments, _ = judgments.without_adaptive("annotators")
    others = _counts_of_people(judgments, people)
    annotator_of, utility = _annotator_or_last(judgments), _utilities(others)
    cluster_of = judgments.tuples.clusters(len(people.tuples.groups) > 1)[judgments.tuple_of]
    scales = estimate_scales(judgments, annotator_of, utility, scales_of_people, cluster_of)
    _, positions = position_effects(judgments, annotator_of, utility, scales, cluster_of)
    return _statistics(judgments, others, scales, positions)


def _statistics(
    judgments: Judgments, others: Others, scales: ScaleEstimates, positions: list[PositionEffects]
) -> list[Annotator]:
    """Return the statistics of all annotators with judgments, sorted by id, without reasons for review."""
    ids = judgments.annotators
    counts = np.bincount(_annotator_or_last(judgments), minlength=len(ids) + 1)[:-1]
    compliance, seconds = _compliance(judgments, others), _median_seconds(judgments)
    best_at, same_answer = _position_shares(judgments)
    has_scale = scales.is_defined & ~np.isnan(scales.stderr)
    scale, stderr, low, high = (
        np.where(has_scale, values, math.nan)
        for values in (scales.value, scales.stderr, scales.low, scales.high)
    )
    return [
        Annotator(
            str(ids[a]),
            int(counts[a]),
            float(compliance[a]),
            float(seconds[a]),
            tuple(best_at[a].tolist()),
            math.nan if judgments.has_repeated_calls else _uniformity_p(best_at[a] * counts[a]),
            float(same_answer[a]),
            float(scale[a]),
            float(stderr[a]),
            float(low[a]),
            float(high[a]),
            positions[a],
        )
        for a in sorted(np.flatnonzero(counts).tolist(), key=ids.__getitem__)
    ]


def _with_changes(
    annotators: list[Annotator],
    judgments: Judgments,
    annotator_of: Ints,
    utility: Floats,
    scales: ScaleEstimates,
) -> list[Annotator]:
    """Return the annotators with the scales of both halves of their judgments."""
    counts = np.bincount(annotator_of, minlength=len(judgments.annotators) + 1)
    is_second = turns(annotator_of) >= counts[annotator_of] / 2
    changes = scale_changes(judgments, annotator_of, utility, scales, is_second)
    shared = _shared_items(judgments, annotator_of, is_second)
    index = {str(name): n for n, name in enumerate(judgments.annotators)}
    return [
        replace(
            each,
            scale_first=float(changes.first[n]),
            scale_second=float(changes.second[n]),
            worse_p=float(changes.p[n]),
        )
        if each.judgments >= 5 * judgments.tuples.k
        and shared[n] >= MIN_SHARED_ITEMS
        and not math.isnan(changes.p[n])
        else each
        for each, n in ((each, index[each.annotator]) for each in annotators)
    ]


def _shared_items(judgments: Judgments, annotator_of: Ints, is_second: NDArray[np.bool_]) -> Floats:
    """Return (A + 1,) shares of the items of each annotator's judgments that both halves contain.

    An item counts once for each of its judgments. If the halves have different items, easier items and
    utilities that others' answers spoilt are indistinguishable from a less exact annotator.
    """
    members = judgments.tuples.members[judgments.tuple_of]
    n_labels = len(judgments.annotators) + 1
    key = annotator_of[:, None] * len(judgments.tuples.items) + members
    in_second = np.broadcast_to(is_second[:, None], key.shape)
    both = np.intersect1d(key[~in_second], key[in_second])
    n_shared = np.bincount(annotator_of, np.isin(key, both).sum(axis=1), n_labels)
    return _ratio(n_shared, np.bincount(annotator_of, minlength=n_labels) * members.shape[1])


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


def _opposed_annotators(judgments: Judgments, annotator_of: Integers) -> NDArray[np.bool_]:
    """Return (A + 1,) whether the answers of each annotator oppose those of the others.

    The annotator who opposes the others most clearly is left out, if the score test has a two-sided p below
    0.05, then the next one who opposes the remaining others, and so on. False for all if half of the
    annotators or more would be left out: then nobody knows who is right.
    """
    is_opposed = np.zeros(len(judgments.annotators) + 1, dtype=bool)
    n_annotators = len(np.unique(annotator_of))
    while 2 * np.count_nonzero(is_opposed) < n_annotators:
        utility = _utilities(_counts_of_others(judgments, ~is_opposed[annotator_of]))
        statistic = np.where(is_opposed, 0.0, opposition(judgments, annotator_of, utility))
        if not statistic.max() > Z_95:
            return is_opposed
        is_opposed[statistic.argmax()] = True
    return np.zeros_like(is_opposed)


def _counts_of_others(judgments: Judgments, counted: NDArray[np.bool_] | None = None) -> Others:
    """Return the counts in the judgments of all other annotators.

    counted: (J,) the judgments that count; None for all.
    """
    n_items = len(judgments.tuples.items)
    items, balance = _items_and_balance(judgments)
    weight = np.ones(items.shape, dtype=np.int64)
    if counted is not None:
        weight *= counted[:, None]
    annotator_item = _annotator_or_last(judgments)[:, None] * n_items + items
    _, pair = np.unique(annotator_item, return_inverse=True)
    pair = pair.reshape(items.shape)

    def of_others(values: NDArray[Any]) -> NDArray[Any]:
        sums, own = (np.bincount(index.ravel(), values.ravel()) for index in (items, pair))
        return np.asarray(sums[items] - own[pair])

    return of_others(balance * weight), of_others(weight).astype(np.int64)


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


def taste_test(judgments: CanonicalJudgments) -> float:
    """Return the one-sided p-value of no preferences of annotators of their own for items.

    The residuals of an annotator's values of an item, best 1 and worst -1, from the mean of their tuples then
    have products with mean 0. Their sum, over all pairs of tuples with the item, is approximately normal if
    the assignment of answers to annotators is random within a tuple. NaN if no tuple has two annotators.
    """
    from scipy.special import ndtr

    judgments = judgments.select(np.flatnonzero(judgments.annotator_of >= 0))
    tuple_of, n_items = judgments.tuple_of, len(judgments.items)
    count = np.maximum(np.bincount(tuple_of), 1)
    mean = (
        np.stack([np.bincount(tuple_of, each) for each in judgments.values.T], axis=1)
        / count[:, None]
    )
    residual = (judgments.values - mean[tuple_of]).ravel()
    cells = (judgments.annotator_of[:, None] * n_items + judgments.judged_items).ravel()
    cell_of = np.unique(cells, return_inverse=True)[1].ravel()
    sums, squares, fourth = (np.bincount(cell_of, residual**power) for power in (1, 2, 4))
    several = count[count > 1]
    if not len(several):
        return math.nan
    variance = 2 * np.sum(squares**2 - fourth) * np.mean(several / (several - 1))
    z = np.sum(sums**2 - squares) / math.sqrt(variance) if variance > 0 else math.nan
    return float(ndtr(-z))


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

    scale: float
    """Upper quartile: the median may be that of random answers."""
    seconds: float
    """Median."""
    n_tested: int
    """Number of annotators whose screen positions were tested."""
    n_compared: int
    """Number of annotators of whom both halves of the judgments were compared."""

    @classmethod
    def from_annotators(cls, annotators: list[Annotator]) -> _TypicalValues:
        eligible = [a for a in annotators if a.judgments >= MIN_JUDGMENTS]
        return cls(
            _quantile([a.scale for a in eligible], 0.75),
            _quantile([a.seconds for a in eligible], 0.5),
            sum(not math.isnan(a.place_p) for a in annotators),
            sum(not math.isnan(a.worse_p) for a in annotators),
        )

    @property
    def max_random_scale(self) -> float:
        """Scale below which answers are close to random."""
        return MAX_RANDOM_SCALE * self.scale

    def flagged(self, annotator: Annotator) -> Annotator:
        """Return the annotator with flags and reasons."""
        reasons = dict(self._reasons(annotator)) if annotator.judgments >= MIN_JUDGMENTS else {}
        return replace(annotator, flags=tuple(reasons), reasons=tuple(reasons.values()))

    def _reasons(self, annotator: Annotator) -> Iterator[tuple[Flag, str]]:
        scale = {
            "scale": annotator.scale,
            "low": annotator.scale_low,
            "high": annotator.scale_high,
            "bound": self.max_random_scale,
            "share": MAX_RANDOM_SCALE,
        }
        if annotator.scale_high < 0:
            yield "reversed", note(REVERSED, **scale)
        elif annotator.scale_high < self.max_random_scale:
            if annotator.scale_low > 0:
                yield "inexact", note(INEXACT, **scale)
            else:
                yield "random", note(RANDOM, **scale)
        if annotator.worse_p * self.n_compared < FALSE_ALARM_RATE:
            halves = {"first": annotator.scale_first, "second": annotator.scale_second}
            yield "worse", note(WORSE, **halves, p=annotator.worse_p)
        if annotator.seconds < MIN_TIME_SHARE * self.seconds:
            yield "fast", note(FAST, seconds=annotator.seconds, median=self.seconds)
        if annotator.place_p * self.n_tested < FALSE_ALARM_RATE:
            shares = ", ".join(f"{share:.0%}" for share in annotator.best_at)
            yield "positions", note(UNEVEN_POSITIONS, shares=shares, p=annotator.place_p)
        if annotator.same_answer == 1:
            yield "same_answer", note(SAME_ANSWER, n=annotator.judgments)


def _quantile(values: list[float], share: float) -> float:
    """Return a quantile of the defined values; NaN if there are none."""
    defined = [value for value in values if not math.isnan(value)]
    return float(np.quantile(defined, share)) if defined else math.nan


def _notes(judgments: Judgments, scales: ScaleEstimates) -> Iterator[str]:
    n_unnamed = np.count_nonzero(judgments.annotator_of < 0)
    if n_unnamed:
        yield note(
            "{n:d} judgments without annotator; they count only among the others' judgments",
            n=n_unnamed,
        )
    if judgments.left_out:
        yield note("{n:d} skipped rows count for no annotator", n=judgments.n_left_out)
    if judgments.shown is None:
        yield note("no position effects: the order on the screen is unknown")
    if not scales.is_defined:
        yield note(
            "no scales: too few judgments, or the answers of annotators are unrelated to those of the others "
            "or contradict them; see compliance"
        )
    yield from _notes_on_seconds(judgments)


def _notes_on_seconds(judgments: Judgments) -> Iterator[str]:
    """Yield the numbers of judgments without time, and of those whose time cannot be read."""
    is_unknown = np.isnan(_seconds(judgments))
    column = judgments.columns.get("seconds", np.full(len(judgments), "", dtype=object))
    unreadable = [text for text in column[is_unknown] if text.strip()]
    if n_untimed := np.count_nonzero(is_unknown) - len(unreadable):
        yield note("{n:d} judgments have no time (column seconds)", n=n_untimed)
    if unreadable:
        yield note(
            "{n:d} judgments have a time (column seconds) that is no number from 0, such as {example}; they "
            "count as without time",
            n=len(unreadable),
            example=quoted(unreadable[0]),
        )
