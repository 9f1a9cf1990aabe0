"""Judgments joined with the benchmark whose scores they are behind."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from bws.records import CanonicalJudgments, Judgments, normal_id
from bws.scoring import Scale, score
from giccs.benchmark import Benchmark

__all__ = ["ACROSS_DIALOGUES", "ROUNDING", "SCORES", "JudgedItems", "index_in", "judged_items"]

Ints = NDArray[np.intp]

ROUNDING = 0.005 + 1e-9
"""Scores may have been written with two decimals."""
SCORES: tuple[tuple[str, Scale], ...] = (
    ("counting", "unit"),
    ("best-worst-logit", "unit"),
    ("best-worst-logit", "counting"),
    ("maxdiff", "unit"),
    ("maxdiff", "counting"),
)
"""Methods and scales of scores, in the order in which they are tried. A benchmark holds those on counting's
scale as (score + 1) / 2. Plackett-Luce of triples is the best-worst logit."""
NAMED = 3
ACROSS_DIALOGUES = (
    "tuples have items of several dialogues: the interval may be too narrow or too wide"
)
"""Remark on intervals over dialogues, which are then not independent."""


@dataclass(frozen=True, eq=False)
class JudgedItems:
    """The N items of a benchmark and the judgments about them."""

    answers: CanonicalJudgments
    """Those about any item of the benchmark; they may be about others too."""
    index: Ints
    """(N,) each item's index in the answers."""
    dialogue: Ints
    """(N,) index of each item's dialogue."""
    place: Ints
    """(N,) each item's index in the items of the judgments."""
    method: str
    scale: str
    """Those of `SCORES` that give the benchmark's scores."""

    @property
    def unnamed(self) -> int:
        """Judgments that name no annotator."""
        return int(np.count_nonzero(self.answers.annotator_of < 0))

    @property
    def has_tuples_within_dialogues(self) -> bool:
        """Whether all tuples have items of one dialogue of the benchmark."""
        of_item = np.full(len(self.answers.items), -1)
        of_item[self.index] = self.dialogue
        of_member = of_item[self.answers.members]
        return not ((of_member < 0).any() or np.ptp(of_member, axis=1).any())


def judged_items(judgments: Judgments, benchmark: Benchmark) -> JudgedItems:
    """Join the items of a benchmark with the judgments behind their scores.

    Judgments of other items are left out. Dialogues are the groups of judgments that name none, where no
    tuple has items of two. InputError: an item was not judged, or no method and scale of `SCORES` gives all
    scores within 0.005.
    """
    tuples = judgments.tuples
    keys = _keys(benchmark, grouped=any(tuples.groups))
    groups = tuples.groups[tuples.group_of_item]
    known = {key: place for place, key in enumerate(zip(groups, tuples.items, strict=True))}
    place = np.array([known.get(key, -1) for key in keys])
    method, scale = _method_of(judgments, benchmark, place)
    asked: NDArray[np.bool_] = np.any(np.isin(tuples.members, place), axis=1)
    answers = judgments.take(asked[judgments.tuple_of]).canonical
    number = {dialogue_id: n for n, dialogue_id in enumerate(benchmark.dialogue_ids)}
    dialogue = np.array([number[item.dialogue_id] for item in benchmark.items])
    index = index_in(answers, judgments, place)
    return _grouped(JudgedItems(answers, index, dialogue, place, method, scale))


def index_in(answers: CanonicalJudgments, judgments: Judgments, place: Ints) -> Ints:
    """Return (N,) the index in the answers of the items at `place` in the judgments' items."""
    place_in_answers = np.full(len(judgments.tuples.items), -1)
    place_in_answers[answers.origin] = np.arange(len(answers.origin))
    return place_in_answers[place]


def _grouped(judged: JudgedItems) -> JudgedItems:
    """Return them with dialogues as groups where they name none and no tuple has items of two."""
    answers = judged.answers
    if any(answers.groups) or not judged.has_tuples_within_dialogues:
        return judged
    of_item = np.empty(len(answers.items), dtype=np.int64)
    of_item[judged.index] = judged.dialogue
    groups = [str(n) for n in range(of_item.max() + 1)]
    return replace(judged, answers=replace(answers, groups=groups, group_of=of_item))


def _keys(benchmark: Benchmark, *, grouped: bool) -> list[tuple[str, str]]:
    """Return how judgments call the items: by group and item; by item alone where they have no groups."""
    keys = [
        (normal_id(item.dialogue_id) if grouped else "", normal_id(item.utterance_id))
        for item in benchmark.items
    ]
    if len(set(keys)) < len(keys):
        message = (
            f"{len(keys) - len(set(keys))} utterance ids occur in more than one dialogue, and the judgments "
            "name no groups; judgments with a column group are needed"
        )
        raise InputError(Problem(benchmark.name, None, message))
    return keys


def _method_of(judgments: Judgments, benchmark: Benchmark, place: Ints) -> tuple[str, str]:
    """Return the method and scale that give the benchmark's scores; InputError where there are none."""
    given = np.array([item.score for item in benchmark.items])
    needs = f"expected the judgments behind the scores of {benchmark.name}"
    unjudged = (place < 0) | ~np.isin(place, judgments.tuples.members[judgments.tuple_of])
    if unjudged.any():
        which = _named(benchmark, unjudged)
        fault = f"{unjudged.sum()} of {len(given)} items are not judged ({which}); {needs}"
        raise InputError(Problem(judgments.source or "judgments", None, fault))
    differing = []
    for method, scale in SCORES:
        found = score(judgments, method, scale=scale).score[place]
        differs = np.abs((found if scale == "unit" else (found + 1) / 2) - given) > ROUNDING
        if not differs.any():
            return method, scale
        differing.append(differs)
    tried = ", ".join(f"{method} ({scale})" for method, scale in SCORES[1:])
    fault = (
        f"{differing[0].sum()} of {len(given)} items have another score than counting gives "
        f"({_named(benchmark, differing[0])}), and the choice models with --scale do not give all scores "
        f"either: {tried}; {needs}"
    )
    raise InputError(Problem(judgments.source or "judgments", None, fault))


def _named(benchmark: Benchmark, which: NDArray[np.bool_]) -> str:
    ids = [benchmark.items[place].item_id for place in np.flatnonzero(which)]
    return ", ".join(ids[:NAMED]) + (", ..." if len(ids) > NAMED else "")
