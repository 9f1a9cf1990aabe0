"""Annotators: who answers as the others do, and whose answers a person should look at."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.annotator_scales import (
    NO_EFFECTS,
    PositionEffect,
    PositionEffects,
    Scales,
    Z,
    position_effects,
    scales,
)
from bws.problems import InputError, Problem
from bws.records import Judgments

__all__ = ["Annotator", "AnnotatorReport", "annotator_report"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

FEW = 5
"""With fewer judgments than this nobody is suspected."""
FAR = 3.0
"""So many standard deviations below the median compliance is too low."""
FAST = 1 / 3
"""Less than this share of the annotators' median time is too fast."""
ALARM = 0.05
"""Chance of any false alarm about places on the screen, over all annotators."""
MAD_TO_SD = 1.4826
"""Standard deviation over median absolute deviation, of a normal distribution."""


@dataclass(frozen=True)
class Annotator:
    """What the judgments of one annotator tell; NaN where they do not tell."""

    annotator: str
    judgments: int
    compliance: float
    """Share of the implied pairs that are in the order of the others' scores, in [0, 1]; who guesses
    gets about 0.5. NaN where nobody else judged these items."""
    seconds: float
    """Median time of a judgment; NaN where no time is known."""
    best_at: tuple[float, ...]
    """(K,) share of the best answers at each place on the screen; NaN where the order is unknown."""
    place_p: float
    """Chance of shares at least as uneven if places did not matter (chi-square test). NaN where the
    order is unknown or there are fewer than 5 K judgments, too few for the test."""
    same_answer: float
    """Share of the judgments that gave this annotator's most frequent answer, as places on the screen
    of best and worst; NaN where the order is unknown."""
    scale: float = math.nan
    """How sharply the answers follow the others' (`bws.annotator_scales`): 1 as all annotators on average, 0
    by guessing. NaN where nobody else judged these items, and where answers do not follow others at all."""
    scale_stderr: float = math.nan
    """Standard error of the scale."""
    positions: PositionEffects = NO_EFFECTS
    """Effects of being shown first rather than last on being chosen best and worst. NaN where the order is
    unknown or there are fewer than 5 K judgments."""
    reasons: tuple[str, ...] = ()
    """Why these judgments should be looked at."""


@dataclass(frozen=True)
class AnnotatorReport:
    """All annotators, sorted by id."""

    annotators: tuple[Annotator, ...]
    notes: tuple[str, ...] = ()
    """What is not known, and what was left out."""
    positions: PositionEffects = NO_EFFECTS
    """Effects of being shown first rather than last over all judgments; NaN where the order is unknown."""

    @property
    def to_look_at(self) -> tuple[Annotator, ...]:
        """The annotators with reasons. Nothing of theirs is removed: that is for a person to decide."""
        return tuple(annotator for annotator in self.annotators if annotator.reasons)

    def document(self) -> dict[str, Any]:
        """Return the report as plain dicts and lists."""
        return {
            "annotators": [asdict(annotator) for annotator in self.annotators],
            "to_look_at": [annotator.annotator for annotator in self.to_look_at],
            "positions": asdict(self.positions),
            "notes": list(self.notes),
        }

    def table(self) -> str:
        """Return the report as text: a line an annotator, then whom to look at and why, then notes."""
        from tabulate import tabulate

        headers = ["annotator", "judgments", "compliance", "scale [95 %]", "seconds", "p of places"]
        headers += ["same answer", "first: best", "worst"]
        rows = [
            [
                *(a.annotator, a.judgments, a.compliance, _scale_text(a), a.seconds, a.place_p),
                *(a.same_answer, *map(_log_odds_text, (a.positions.best, a.positions.worst))),
            ]
            for a in self.annotators
        ]
        reasons = [f"look at {a.annotator}: {'; '.join(a.reasons)}" for a in self.to_look_at]
        table = tabulate(rows, headers, floatfmt=".3g", disable_numparse=[3, 7, 8])
        return "\n".join([table, *_position_lines(self.positions), *reasons, *self.notes])


def _scale_text(annotator: Annotator) -> str:
    if math.isnan(annotator.scale):
        return "–"
    margin = Z * annotator.scale_stderr
    low, high = annotator.scale - margin, annotator.scale + margin
    return f"{annotator.scale:.2f} [{low:.2f}, {high:.2f}]"


def _log_odds_text(effect: PositionEffect) -> str:
    mark = "*" if effect.p < ALARM else ""
    return "–" if math.isnan(effect.log_odds) else f"{effect.log_odds:+.2f}{mark}"


def _position_lines(positions: PositionEffects) -> Iterator[str]:
    """Yield the effects of all judgments, and what the columns of the table are."""
    for answer, effect in (("best", positions.best), ("worst", positions.worst)):
        if not math.isnan(effect.log_odds):
            yield (
                f"shown first rather than last: log odds of {answer} {effect.log_odds:+.2f} "
                f"[{effect.low:+.2f}, {effect.high:+.2f}], p = {effect.p:.2g}"
            )
    if not math.isnan(positions.best.log_odds):
        yield (
            "positions enter the logit linearly; p-values are corrected for the number of tests, "
            f"* is p < {ALARM} for an annotator"
        )


def annotator_report(judgments: Judgments) -> AnnotatorReport:
    """Tell of each annotator how the answers compare with the others', and how they were given.

    Compliance: an answer says that the best item is above every other and every other above the
    worst: 2K - 3 pairs. Each is compared with the items' counting scores from all judgments of all
    other annotators (leave one out): it counts 1 in the same order, 0 in the opposite, and one half
    where the others' scores are equal; pairs with an item that no other judged do not count.

    An annotator with at least 5 judgments is to be looked at (`Annotator.reasons`) for
    compliance more than 3 standard deviations below the median annotator's, where the variance is the
    robust one between annotators plus the binomial one of so few judgments; a median time under a
    third of the median annotator's; best answers so uneven over the places on the screen as chance
    makes any of all annotators with probability 0.05; or always the same places for best and worst.

    Times come from the column ``seconds``, places from `Judgments.shown`. Judgments without annotator
    belong to nobody here but are among the others' judgments. Rows that were left out on reading,
    such as those whose best equals their worst, are known by line only and count for nobody.
    InputError: no judgment names its annotator.

    >>> from bws.records import Judgment, Judgments
    >>> rows = [Judgment(("a", "b", "c"), "a", "c", annotator=w) for w in ("w1", "w2")]
    >>> rows += [Judgment(("a", "b", "c"), "b", "a", annotator="w3")]
    >>> for found in annotator_report(Judgments.from_records(rows)).annotators:
    ...     print(found.annotator, round(found.compliance, 3))
    w1 0.667
    w2 0.667
    w3 0.333
    """
    named = judgments.annotator_of >= 0
    if not named.any():
        message = "names no annotators; give the annotator of each judgment"
        raise InputError(Problem(judgments.source or "judgments", None, message))
    ids, counts = judgments.annotators, np.bincount(judgments.annotator_of[named])
    compliance, seconds = _compliance(judgments), _median_seconds(judgments)
    best_at, same_answer = _places(judgments)
    owner, utility = _owner(judgments), _utilities_of_others(judgments)
    estimated = scales(judgments, owner, utility)
    has_scale = estimated.is_defined & ~np.isnan(estimated.stderr)
    together, positions = NO_EFFECTS, [NO_EFFECTS] * len(ids)
    if judgments.shown is not None:
        together, positions = position_effects(judgments, owner, utility, estimated)
    found = [
        Annotator(
            str(ids[a]),
            int(counts[a]),
            float(compliance[a]),
            float(seconds[a]),
            tuple(best_at[a].tolist()),
            _chance_of(best_at[a] * counts[a]),
            float(same_answer[a]),
            float(estimated.value[a]) if has_scale[a] else math.nan,
            float(estimated.stderr[a]) if has_scale[a] else math.nan,
            positions[a],
        )
        for a in sorted(np.flatnonzero(counts).tolist(), key=ids.__getitem__)
    ]
    usual = _Usual.of(found)
    suspected = [replace(one, reasons=tuple(usual.reasons_against(one))) for one in found]
    return AnnotatorReport(tuple(suspected), tuple(_notes(judgments, estimated)), together)


def _compliance(judgments: Judgments) -> Floats:
    """Return (A,) shares of the implied pairs that are in the order of the others' scores."""
    scores, everyone = _scores_of_others(judgments), np.arange(len(judgments))
    best, worst = (scores[everyone, place][:, None] for place in (judgments.best, judgments.worst))
    with np.errstate(invalid="ignore"):
        above, below = np.sign(best - scores), np.sign(scores - worst)
    above[everyone, judgments.best] = np.nan  # no pair with itself
    below[everyone, judgments.worst] = np.nan
    below[everyone, judgments.best] = np.nan  # best over worst counts once
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
    """Return (J, K) best less worst answers of other annotators about a judgment's items, and appearances."""
    tuples, n_items = judgments.tuples, len(judgments.tuples.items)
    items = tuples.members[judgments.tuple_of].astype(np.int64)
    place = np.arange(tuples.k)
    balance = (place == judgments.best[:, None]) * 1.0 - (place == judgments.worst[:, None])
    owner = _owner(judgments)[:, None] * n_items + items
    _, pair = np.unique(owner, return_inverse=True)  # of annotator and item
    pair = pair.reshape(items.shape)
    return (
        np.bincount(items.ravel(), balance.ravel())[items]
        - np.bincount(pair.ravel(), balance.ravel())[pair],
        np.bincount(items.ravel())[items] - np.bincount(pair.ravel())[pair],
    )


def _median_seconds(judgments: Judgments) -> Floats:
    """Return (A,) medians of the times that are numbers; NaN where there is none."""
    seconds, owner = _seconds(judgments), _owner(judgments)
    known = ~np.isnan(seconds)
    seconds, owner = seconds[known], owner[known]
    n = np.bincount(owner, minlength=len(judgments.annotators) + 1)[:-1]
    medians = np.full(len(n), np.nan)
    timed, start = np.flatnonzero(n), (np.cumsum(n) - n)[n > 0]
    ordered = seconds[np.lexsort((seconds, owner))]
    lower, upper = start + (n[timed] - 1) // 2, start + n[timed] // 2
    medians[timed] = (ordered[lower] + ordered[upper]) / 2
    return medians


def _seconds(judgments: Judgments) -> Floats:
    """Return (J,) times; NaN where the column is missing, or the text is no number of at least 0."""
    import polars as pl

    column = judgments.columns.get("seconds")
    if column is None:
        return np.full(len(judgments), np.nan)
    texts = pl.Series(column.tolist(), dtype=pl.String).str.strip_chars()
    seconds = texts.cast(pl.Float64, strict=False).to_numpy().copy()
    seconds[~(np.isfinite(seconds) & (seconds >= 0))] = np.nan
    return seconds


def _places(judgments: Judgments) -> tuple[Floats, Floats]:
    """Return (A, K) shares of best answers at each place on the screen, and (A,) of the commonest answer."""
    k, n_annotators = judgments.tuples.k, len(judgments.annotators)
    if judgments.shown is None:
        return np.full((n_annotators, k), np.nan), np.full(n_annotators, np.nan)
    best, worst = (
        np.argmax(judgments.shown == chosen[:, None], axis=1)
        for chosen in (judgments.best, judgments.worst)
    )
    answer = (_owner(judgments) * k + best) * k + worst
    counts = np.bincount(answer, minlength=(n_annotators + 1) * k * k)
    counts = counts.reshape(-1, k, k)[:n_annotators]
    n = counts.sum(axis=(1, 2))
    return _ratio(counts.sum(axis=2), n[:, None]), _ratio(counts.max(axis=(1, 2)), n)


def _chance_of(counts: Floats) -> float:
    """Return the p value of (K,) counts under equal chances (chi-square, K - 1 degrees of freedom)."""
    from scipy.special import chdtrc

    k, n = len(counts), counts.sum()
    if not n >= 5 * k:
        return math.nan
    return float(chdtrc(k - 1, ((counts - n / k) ** 2).sum() / (n / k)))


def _owner(judgments: Judgments) -> Ints:
    """Return (J,) annotators, with nobody as one more: A."""
    owner = judgments.annotator_of.astype(np.int64)
    return np.where(owner < 0, len(judgments.annotators), owner)


def _sums(judgments: Judgments, values: NDArray[Any]) -> Floats:
    """Return (A,) sums of (J,) values by annotator."""
    sums = np.bincount(_owner(judgments), values, len(judgments.annotators) + 1)
    return sums[:-1].astype(np.float64)


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """Return part / whole; NaN where whole is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(whole > 0, part / np.where(whole > 0, whole, 1), np.nan)


@dataclass(frozen=True)
class _Usual:
    """What is usual among the annotators with enough judgments; NaN where nothing is."""

    compliance: float
    spread: float
    """Standard deviation of compliance between annotators, from the median absolute deviation."""
    seconds: float
    tested: int
    """Annotators whose places were tested."""

    @classmethod
    def of(cls, annotators: list[Annotator]) -> _Usual:
        enough = [a for a in annotators if a.judgments >= FEW]
        compliance = np.array([a.compliance for a in enough])
        middle = _median(compliance)
        return cls(
            middle,
            MAD_TO_SD * _median(np.abs(compliance - middle)),
            _median(np.array([a.seconds for a in enough])),
            sum(not math.isnan(a.place_p) for a in annotators),
        )

    def reasons_against(self, one: Annotator) -> Iterator[str]:
        """Yield in words what is unusual about an annotator."""
        if one.judgments < FEW:
            return
        if one.compliance < self._least_compliance(one.judgments):
            yield f"compliance {one.compliance:.2f}, where {self.compliance:.2f} is usual"
        if one.seconds < FAST * self.seconds:
            yield f"{one.seconds:.3g} seconds a judgment, where {self.seconds:.3g} are usual"
        if one.place_p * self.tested < ALARM:
            shares = ", ".join(f"{share:.0%}" for share in one.best_at)
            yield f"best answers by place on the screen: {shares} (p = {one.place_p:.1g})"
        if one.same_answer == 1:
            yield f"the same two places in all {one.judgments} judgments"

    def _least_compliance(self, judgments: int) -> float:
        # One success and one failure more keep the variance above 0 where all comply.
        share = (self.compliance * judgments + 1) / (judgments + 2)
        variance = self.spread**2 + share * (1 - share) / judgments
        return self.compliance - FAR * math.sqrt(variance)


def _median(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else math.nan


def _notes(judgments: Judgments, estimated: Scales) -> Iterator[str]:
    unnamed = np.count_nonzero(judgments.annotator_of < 0)
    if unnamed:
        yield f"{unnamed} judgments name no annotator; they count among the others' judgments only"
    if judgments.left_out:
        yield f"{judgments.n_left_out} rows that were left out count for no annotator"
    if judgments.shown is None:
        yield "the order on the screen is not known: nothing is said about places"
    if not estimated.is_defined:
        yield "no scales: too few judgments, or answers that do not follow those of the others"
    untimed = np.count_nonzero(np.isnan(_seconds(judgments)))
    if untimed:
        yield f"{untimed} judgments have no time in the column seconds"
