"""Reliability against the number of annotations: are there enough, and how many more would do?"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bws.components import is_complete
from bws.generalisability import generalisability
from bws.halves import Deck, Odd, by_annotation, check_options, run_trials
from bws.planning import Planner, annotations_alone, check_target
from bws.problems import InputError, Problem
from bws.records import Judgments
from bws.reliability import Correlation, spearman_brown
from bws.scoring.answers import in_order

__all__ = ["CurvePoint", "ReliabilityCurve", "annotations_for", "reliability_curve"]

log = logging.getLogger(__name__)


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
        both = {"pearson": self.pearson, "spearman": self.spearman}
        return {
            "annotations": self.annotations,
            "tuples": self.tuples,
            **{name: found.document() for name, found in both.items()},
            "spearman_brown": {name: found.spearman_brown for name, found in both.items()},
        }


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """How split-half reliability grows, and what it would take to reach a target."""

    points: tuple[CurvePoint, ...]
    """2, 3, ... annotations a tuple."""
    whole: CurvePoint
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
        means = {"pearson": self.whole.pearson.mean, "spearman": self.whole.spearman.mean}
        return {
            name: {
                "split_half": annotations_for(self.target, r, self.whole.annotations),
                "spearman_brown": annotations_for(
                    self.target, spearman_brown(r), self.whole.annotations
                ),
            }
            for name, r in means.items()
        }

    def document(self) -> dict[str, Any]:
        """Return the curve as plain dicts and lists."""
        return {
            "points": [point.document() for point in self.points],
            "whole": self.whole.document(),
            "target": self.target,
            "needed": {name: dict(found) for name, found in self.needed.items()},
            "annotations_alone": self.planner.annotations_alone(self.target)
            if self.planner
            else None,
            "notes": [_EXTRAPOLATED, *self.notes],
        }

    def table(self) -> str:
        """Return the curve as text: a line a point, then what the target needs."""
        from tabulate import tabulate

        numbers = ["SD", "Spearman-Brown"]
        headers = ["annotations per tuple", "tuples", "Pearson", *numbers, "Spearman", *numbers]
        rows = [
            [
                *(point.annotations, point.tuples),
                *(point.pearson.mean, point.pearson.sd, point.pearson.spearman_brown),
                *(point.spearman.mean, point.spearman.sd, point.spearman.spearman_brown),
            ]
            for point in self.points
        ]
        lines = [
            f"reliability of {self.target} (Spearman-Brown, {name}): "
            f"{_verdict(found['spearman_brown'], self.whole)}"
            for name, found in self.needed.items()
        ]
        if self.planner:
            lines = [annotations_alone(self.target, self.planner)]
        lines += [*self.notes, _EXTRAPOLATED]
        return "\n".join([tabulate(rows, headers, floatfmt=".4g"), *lines])


_INCOMPLETE = {
    True: "the design is incomplete: these halves share the error of which opponents an item met; what the "
    "target takes is estimated from variance components, which contain it",
    False: "the design is incomplete: these halves share the error of which opponents an item met, so that "
    "the scores are less reliable than they say; variance components cannot be estimated",
}
_EXTRAPOLATED = (
    "the numbers of annotations for the target are extrapolated, by the Spearman-Brown formula or from "
    "variance components; that supposes further annotators like those at hand"
)


def _verdict(needed: float, whole: CurvePoint) -> str:
    if math.isnan(needed):
        return "no estimate, as the halves do not correlate"
    more = max(0, math.ceil(needed - whole.annotations))
    advice = f"{more} more than there are" if more else "there are enough"
    return f"{needed:.1f} annotations per tuple, {advice} ({whole.annotations:.4g})"


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
    odd: Odd = "coin",
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
    >>> [(point.annotations, round(point.pearson.mean, 3)) for point in (*curve.points, curve.whole)]
    [(2, 1.0), (3, 0.989), (4, 1.0), (4.0, 1.0)]
    """
    check_target(target)
    check_options(trials, odd=(odd, Odd))
    answers = in_order(judgments) if len(judgments) else None
    deck = Deck.of(answers) if answers else None
    if answers is None or deck is None or deck.sizes[0] < 2:
        message = "no tuple has two judgments; a curve needs that"
        raise InputError(Problem(judgments.source or "judgments", None, message))
    points = [_point(deck, m, trials, odd, seed) for m in range(2, int(deck.sizes[0]) + 1)]
    complete = is_complete(answers)
    planner = None if complete else Planner.of(answers, generalisability(answers))
    notes = () if complete else (_INCOMPLETE[planner is not None],)
    whole = _point(deck, None, trials, odd, seed)
    return ReliabilityCurve(tuple(points), whole, target, planner, notes)


def _point(deck: Deck, drawn: int | None, trials: int, odd: Odd, seed: int) -> CurvePoint:
    sizes = deck.sizes[deck.sizes >= (drawn or 2)]
    log.debug("%s annotations of %d tuples: %d trials", drawn or "all", len(sizes), trials)
    halve = partial(by_annotation, odd=odd, drawn=drawn)
    found = run_trials(deck, halve, trials, "drop", seed)
    return CurvePoint(
        float(np.mean(sizes)) if drawn is None else drawn,
        len(sizes),
        Correlation(found.pearson),
        Correlation(found.spearman),
    )
