"""Split-half reliability: would other judgments of the same tuples have given the same scores?"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bws.breakdown import By, breakdown, part_name
from bws.halves import (
    Deck,
    Missing,
    Odd,
    Trials,
    by_annotation,
    by_annotator,
    check_options,
    run_trials,
)
from bws.problems import InputError, Problem
from bws.records import Judgments
from bws.scoring.answers import in_order

__all__ = ["Correlation", "Reliability", "ReliabilityGroup", "reliability", "spearman_brown"]

log = logging.getLogger(__name__)

Split = Literal["annotation", "annotator"]


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
            **{name: found.document() for name, found in both.items()},
            "spearman_brown": {name: found.spearman_brown for name, found in both.items()},
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class Reliability:
    """Split-half reliability of the whole and of its parts."""

    groups: tuple[ReliabilityGroup, ...]
    """The whole first."""
    signature: Mapping[str, Any]
    """All that produced the numbers."""

    def document(self) -> dict[str, Any]:
        """Return the result as JSON has it."""
        groups = [group.document() for group in self.groups]
        return {"groups": groups, "signature": dict(self.signature)}

    def table(self) -> str:
        """Return the result as text: a line a group, then the notes."""
        from tabulate import tabulate

        counts, numbers = ["items", "tuples", "annotations"], ["SD", "Spearman-Brown"]
        headers = ["", *counts, "Pearson", *numbers, "Spearman", *numbers]
        rows = [
            [
                part_name(group.by),
                *(group.items, group.tuples, group.annotations),
                *(group.pearson.mean, group.pearson.sd, group.pearson.spearman_brown),
                *(group.spearman.mean, group.spearman.sd, group.spearman.spearman_brown),
            ]
            for group in self.groups
        ]
        notes = [f"{part_name(group.by)}: {note}" for group in self.groups for note in group.notes]
        return "\n".join([tabulate(rows, headers, floatfmt=".4f"), *notes])


def reliability(
    judgments: Judgments,
    *,
    trials: int = 100,
    split: Split = "annotation",
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

    split="annotation": a tuple's n judgments go half and half at random. split="annotator": the
    annotators do, with all that they judged; judgments that name no annotator are in no half.

    odd="coin": where n is odd, a coin decides which half gets one more (Kiritchenko and Mohammad
    2016). odd="second": the second half always does, as in GiCCS, section 4.2: two of five
    annotations against three (there with trials=3).

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
    check_options(trials, split=(split, Split), odd=(odd, Odd), missing=(missing, Missing))
    _check(judgments, split)
    halve = partial(by_annotation if split == "annotation" else by_annotator, odd=odd)
    groups, digest = [], ""
    for values, part in breakdown(judgments, by):
        answers = in_order(part)
        digest = digest or answers.digest()  # the whole comes first
        deck = Deck.of(answers)
        log.debug("%s: %d trials, %d judgments", part_name(values), trials, len(part))
        found = run_trials(deck, halve, trials, missing, seed)
        notes = [*_not_halved(deck, split), *_not_scored(found, missing)]
        groups.append(_group(values, deck, found, tuple(notes)))
    signature = {
        "score": "counting",
        "trials": trials,
        "split": split,
        "odd": odd,
        "missing": missing,
        "seed": seed,
        "judgments": digest,
        "version": version("giccs"),
    }
    return Reliability(tuple(groups), signature)


def _group(
    by: Mapping[str, Any], deck: Deck, found: Trials, notes: tuple[str, ...]
) -> ReliabilityGroup:
    return ReliabilityGroup(
        by,
        deck.n_items,
        len(deck.sizes),
        len(deck.tuple_of),
        found.missing,
        Correlation(found.pearson),
        Correlation(found.spearman),
        notes,
    )


def _not_halved(deck: Deck, split: Split) -> list[str]:
    if split == "annotator":
        count = np.count_nonzero(deck.annotator_of < 0)
        return [f"{count} judgments name no annotator and are in no half"] if count else []
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


def _check(judgments: Judgments, split: Split) -> None:
    file = judgments.source or "judgments"
    if not len(judgments):
        raise InputError(Problem(file, None, "has no judgments; reliability needs some"))
    if split == "annotator" and (judgments.annotator_of < 0).all():
        message = "names no annotators; split by annotation, or give the annotator of each judgment"
        raise InputError(Problem(file, None, message))
