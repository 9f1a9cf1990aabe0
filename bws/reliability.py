"""Split-half reliability: would other answers, other tuples or other annotators give the same scores?"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bws.breakdown import By, breakdown, part_name
from bws.components import is_complete
from bws.halves import (
    Deck,
    Missing,
    Odd,
    Trials,
    by_annotation,
    by_annotator,
    by_tuple,
    check_options,
    run_trials,
)
from bws.problems import InputError, Problem
from bws.records import Judgments
from bws.scoring.answers import Answers, in_order

__all__ = ["Correlation", "Reliability", "ReliabilityGroup", "reliability", "spearman_brown"]

log = logging.getLogger(__name__)

Split = Literal["annotation", "tuple", "annotator"]
HALVES = {"annotation": by_annotation, "tuple": by_tuple, "annotator": by_annotator}
QUESTIONS = {
    "annotation": "would other answers to the same tuples give the same scores? "
    "(the split of most published figures)",
    "tuple": "would other tuples of the same items give the same scores?",
    "annotator": "would other annotators give the same scores?",
}
MIN_SCORED = 0.5
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
        both = {"pearson": self.pearson, "spearman": self.spearman}
        return {
            "by": dict(self.by),
            "items": self.items,
            "tuples": self.tuples,
            "annotations": self.annotations,
            "trials": len(self.pearson.trials),
            "missing_items": self.missing_items,
            "scored_items": self.scored_items,
            **{name: found.document() for name, found in both.items()},
            "spearman_brown": {name: found.spearman_brown for name, found in both.items()},
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
        from tabulate import tabulate

        counts, numbers = ["items", "tuples", "annotations"], ["SD", "Spearman-Brown"]
        headers = ["", "split", *counts, "Pearson", *numbers, "Spearman", *numbers]
        by_split = {self.signature["split"]: self.groups, **self.splits}
        lines = [
            (split, group)
            for groups in zip(*by_split.values(), strict=True)
            for split, group in zip(by_split, groups, strict=True)
        ]
        rows = [
            [
                *(part_name(group.by), split, group.items, group.tuples, group.annotations),
                *(group.pearson.mean, group.pearson.sd, group.pearson.spearman_brown),
                *(group.spearman.mean, group.spearman.sd, group.spearman.spearman_brown),
            ]
            for split, group in lines
        ]
        questions = [f"{split}: {QUESTIONS[split]}" for split in by_split]
        notes = [
            f"{part_name(group.by)}, by {split}: {note}"
            for split, group in lines
            for note in group.notes
        ]
        return "\n".join([tabulate(rows, headers, floatfmt=".4f"), *questions, *notes, *self.notes])


def reliability(
    judgments: Judgments,
    *,
    trials: int = 100,
    split: Split | None = None,
    odd: Odd = "coin",
    missing: Missing = "drop",
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
    `bws.generalisability` regards that.
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
        trials, split=(split or "annotation", Split), odd=(odd, Odd), missing=(missing, Missing)
    )
    _check(judgments, split)
    parts = [(values, in_order(part)) for values, part in breakdown(judgments, by)]
    first: Split = split or "annotation"
    whole = parts[0][1]
    groups: dict[str, tuple[ReliabilityGroup, ...]] = {}
    notes = []
    for name in (first, *(() if split else _further_splits(whole))):
        halve = partial(_halved, split=name, trials=trials, odd=odd, missing=missing, seed=seed)
        overall = halve({}, whole)
        if name != first and overall.scored_items < MIN_SCORED * overall.items:
            notes.append(
                f"not split by {name}: in the mean trial, both halves score only "
                f"{overall.scored_items:.1f} of {overall.items} items"
            )
        else:
            groups[name] = (overall, *(halve(values, answers) for values, answers in parts[1:]))
    signature = {
        "score": "counting",
        "trials": trials,
        "split": first,
        "odd": odd,
        "missing": missing,
        "seed": seed,
        "judgments": whole.digest(),
        "version": version("giccs"),
    }
    return Reliability(groups.pop(first), signature, groups, tuple(notes))


def _further_splits(answers: Answers) -> Iterator[Split]:
    """Yield the splits besides annotation that ask something of these judgments."""
    if not is_complete(answers):
        yield "tuple"
    if len(answers.annotators) > 1:
        yield "annotator"


def _halved(
    by: Mapping[str, Any],
    answers: Answers,
    *,
    split: Split,
    trials: int,
    odd: Odd,
    missing: Missing,
    seed: int,
) -> ReliabilityGroup:
    """Return the reliability of the judgments of a part."""
    deck = Deck.of(answers)
    log.debug("%s by %s: %d trials, %d judgments", part_name(by), split, trials, len(answers))
    found = run_trials(deck, partial(HALVES[split], odd=odd), trials, missing, seed)
    return ReliabilityGroup(
        by,
        deck.n_items,
        len(deck.sizes),
        len(deck.tuple_of),
        found.missing,
        found.scored,
        Correlation(found.pearson),
        Correlation(found.spearman),
        (*_not_halved(deck, split), *_not_scored(found, missing)),
    )


def _not_halved(deck: Deck, split: Split) -> list[str]:
    if split == "annotator":
        count = np.count_nonzero(deck.annotator_of < 0)
        return [f"{count} judgments name no annotator and are in no half"] if count else []
    if split == "tuple":
        return []
    count = np.count_nonzero(deck.sizes == 1)
    what = f"{count} of {len(deck.sizes)} tuples have one judgment, which cannot be halved"
    return [what] if count else []


def _not_scored(found: Trials, missing: Missing) -> list[str]:
    notes = []
    if found.missing:
        policy = (
            "left out of that trial"
            if missing == "drop"
            else "taken as 0 there, if the other has one"
        )
        notes.append(f"{found.missing} items have no score from a half in some trial: {policy}")
    undefined = np.count_nonzero(np.isnan(found.pearson))
    if undefined:
        notes.append(
            f"{undefined} of {len(found.pearson)} trials have no correlation: a half's scores are "
            "all the same, or fewer than three items have scores"
        )
    if min(Correlation(found.pearson).mean, Correlation(found.spearman).mean) < 0:
        notes.append("the correlation is negative: Spearman-Brown is not defined")
    return notes


def _check(judgments: Judgments, split: Split | None) -> None:
    file = judgments.source or "judgments"
    if not len(judgments):
        raise InputError(Problem(file, None, "has no judgments; reliability needs some"))
    if split == "annotator" and (judgments.annotator_of < 0).all():
        message = "names no annotators; split by annotation, or give the annotator of each judgment"
        raise InputError(Problem(file, None, message))
