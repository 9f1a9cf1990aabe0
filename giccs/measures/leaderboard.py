"""A comparison of models: rows, pairs, and what they mean; computed by `model_comparison.compare`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from giccs.measures.detectable import ALPHA, POWER
from giccs.measures.metrics import Estimate

__all__ = ["Leaderboard", "ModelComparison", "PairDifference", "RankedModel", "SkippedResult"]


@dataclass(frozen=True)
class RankedModel:
    """A row of a leaderboard."""

    model: str
    """Unique within the leaderboard together with `history`."""
    history: str
    estimate: Estimate
    """Of the metric, as stored in the result."""
    rank_low: int
    rank_high: int
    """The ranks that all pairwise decisions allow; 1 is the best."""
    ties_first: bool
    """Whether the first model is not significantly better; True for the first itself."""

    def document(self) -> dict[str, Any]:
        """Return the row as a dict."""
        ranks = {"rank_low": self.rank_low, "rank_high": self.rank_high}
        model = {"model": self.model, "history": self.history}
        return model | self.estimate.document() | ranks | {"ties_first": self.ties_first}


@dataclass(frozen=True)
class PairDifference:
    """The difference between two rows of a leaderboard; NaN always comes with a reason."""

    first: int
    """Index of the row with the higher metric."""
    second: int
    value: float
    """Metric of `first` less that of `second`, over the dialogues where both are defined."""
    n: int
    """Dialogues."""
    low: float = math.nan
    """The limits of the 95 % interval, not adjusted for the number of pairs."""
    high: float = math.nan
    stderr: float = math.nan
    p: float = math.nan
    """Two-sided, of this pair alone."""
    p_holm: float = math.nan
    p_bh: float = math.nan
    detectable: float = math.nan
    """Minimum detectable difference of one planned pair, with `POWER` at the level `ALPHA`."""
    needed: float = math.nan
    """Dialogues with which the target of the leaderboard is detected, for one planned pair."""
    needed_all_pairs: float = math.nan
    """The same at the level divided by the number of pairs (Bonferroni)."""
    reason: str = ""

    @property
    def is_significant(self) -> bool:
        """Whether the models differ at the level `ALPHA`, adjusted by Holm for all pairs."""
        return self.p_holm < ALPHA


@dataclass(frozen=True)
class Leaderboard:
    """The models of one task, data set and metric, best first, and all their pairs."""

    task: str
    data: str
    content: str
    """Fingerprint of the data: equal contents are the same items."""
    metric: str
    items: int
    """Items; of multiple choice, questions."""
    dialogues: int
    target: float
    """Difference that `PairDifference.needed` is about."""
    models: tuple[RankedModel, ...]
    pairs: tuple[PairDifference, ...]

    def pair(self, first: int, second: int) -> PairDifference:
        """Return the pair of two rows, by their indices; `first` is the smaller index."""
        return next(pair for pair in self.pairs if (pair.first, pair.second) == (first, second))

    def document(self) -> dict[str, Any]:
        """Return the leaderboard as a dict; pairs name rows by index."""
        plain = ("task", "data", "content", "metric", "items", "dialogues", "target")
        return {
            **{name: getattr(self, name) for name in plain},
            "power": POWER,
            "alpha": ALPHA,
            "models": [model.document() for model in self.models],
            "pairs": [asdict(pair) for pair in self.pairs],
            "notes": self.notes(),
        }

    def notes(self) -> list[str]:
        """Return what a reader needs beside the numbers: the tests, their power, what is not defined."""
        return [*self._of_tests(), *self._of_power(), *self._of_reasons()]

    def _of_tests(self) -> Iterator[str]:
        test = (
            "exact McNemar test and Agresti–Min interval"
            if self.metric == "accuracy"
            else "paired t-test over dialogues with the jackknife standard error"
        )
        tested = sum(not math.isnan(pair.p) for pair in self.pairs)
        yield f"Difference, p: {test}. Holm, BH: p adjusted for the pairs of this table ({tested})."
        yield (
            "†: the first model is not significantly better (Holm, 5 %). ranks: those that all pairwise "
            "decisions allow, with 95 % confidence for all models together."
        )

    def _of_power(self) -> Iterator[str]:
        condition = f"power {POWER}, two-sided level {ALPHA}, one planned pair"
        if detectable := _defined(pair.detectable for pair in self.pairs):
            yield f"Minimum detectable difference ({condition}): {_range(detectable, '.3f')}."
        needed = _defined(pair.needed for pair in self.pairs)
        in_all = _defined(pair.needed_all_pairs for pair in self.pairs)
        if needed:
            at_once = f"; for all pairs at once (Bonferroni): {_range(in_all, ',.0f')}"
            yield (
                f"Dialogues to detect a difference of {self.target:g} ({condition}): "
                f"{_range(needed, ',.0f')}{at_once if in_all and len(self.pairs) > 1 else ''}."
            )

    def _of_reasons(self) -> Iterator[str]:
        pairs: dict[str, list[str]] = {}
        for pair in self.pairs:
            if pair.reason:
                pairs.setdefault(pair.reason, []).append(f"{pair.first + 1}–{pair.second + 1}")
        yield from (f"{', '.join(named)}: {reason}." for reason, named in pairs.items())


@dataclass(frozen=True)
class SkippedResult:
    """A result that is not compared, and why."""

    model: str
    history: str
    task: str
    data: str
    content: str
    metric: str
    """The metric by which it is not compared; empty: by none."""
    reason: str

    def __str__(self) -> str:
        by = f" by {self.metric}" if self.metric else ""
        history = f" ({self.history} history)" if self.history else ""
        return (
            f"Not compared{by}: {self.model}{history}, {self.task} on {self.data}: {self.reason}."
        )


@dataclass(frozen=True)
class ModelComparison:
    """All leaderboards of some results."""

    leaderboards: tuple[Leaderboard, ...]
    skipped: tuple[SkippedResult, ...]

    def document(self) -> dict[str, Any]:
        """Return the comparison as a dict."""
        return {
            "comparisons": [leaderboard.document() for leaderboard in self.leaderboards],
            "skipped": [asdict(result) for result in self.skipped],
        }


def _defined(numbers: Iterator[float]) -> list[float]:
    return [number for number in numbers if not math.isnan(number)]


def _range(numbers: list[float], form: str) -> str:
    """Return the least, the greatest and the median number; one number where all are the same.

    >>> _range([0.25, 0.5, 0.125], ".2f"), _range([2.0], ".2f")
    ('0.12 to 0.50 (median 0.25)', '2.00')
    """
    least, most = format(min(numbers), form), format(max(numbers), form)
    return least if least == most else f"{least} to {most} (median {median(numbers):{form}})"
