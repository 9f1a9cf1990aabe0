"""Judgments and anchors as the arrays of the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bws.absolute.files import Anchor, Anchors, separate_sets
from bws.absolute.model import Data, Integers
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.records import CanonicalJudgments

MIN_ANCHORS = 10
"""Anchors of a person below which the threshold is mostly that of the population."""
FEW_ANCHORS = (
    "{n:d} of {m:d} annotators have fewer than {limit:d} anchors: their thresholds are mostly those of the "
    "others"
)
NO_ANCHORS = (
    "{n:d} of {m:d} groups have no anchors: their means are known from the other groups alone"
)
MIN_EQUAL = 3
"""Number of equal ratings from which a person does not use the slider."""


@dataclass(frozen=True, eq=False)
class Study:
    """The arrays of a study with the names of their items, groups and annotators."""

    data: Data
    keys: list[tuple[str, str]]
    """(N,) group and id of each item."""
    place: tuple[Integers, Integers]
    """(N,) group of each item, and its place in the group."""
    groups: list[str]
    annotators: list[str]
    notes: tuple[str, ...]


def study_of(judgments: CanonicalJudgments, anchors: Anchors) -> Study:
    """Return the arrays; raise InputError for judgments without annotators, for a single group, and if people
    and groups fall into separate sets.

    Ratings of an annotator that are all equal are left out, with a note.
    """
    if (judgments.annotator_of < 0).any():
        message = (
            "judgments without annotator; expected one for each, since lapses are those of people"
        )
        raise InputError(Problem("judgments", None, message))
    if len(judgments.groups) < 2:
        message = "one group; expected several, which anchors relate to each other"
        raise InputError(Problem("judgments", None, message))
    rows, notes = _with_different_ratings(anchors)
    if not rows:
        raise InputError(Problem(anchors.file, None, f"no anchors that differ; {notes[0]}"))
    if problems := [*separate_sets(replace(anchors, rows=tuple(rows)))]:
        raise InputError(problems)
    annotators = sorted({*judgments.annotators, *(row.annotator for row in rows)})
    group_of = judgments.group_of
    first = np.searchsorted(group_of, np.arange(len(judgments.groups)))
    place = np.arange(len(group_of)) - first[group_of]
    item_of = {key: index for index, key in enumerate(judgments.item_keys)}
    code_of = {name: code for code, name in enumerate(annotators)}
    judge = np.array([code_of[name] for name in judgments.annotators])[judgments.annotator_of]
    anchored = np.array([item_of[row.group, row.item] for row in rows])
    person = np.array([code_of[row.annotator] for row in rows])

    choices = judgments.best_first().T
    pairs = (
        np.concatenate([group_of[choices[0]], group_of[anchored]]),
        np.concatenate([judge, person]),
    )
    slot, annotator_of_slot = _slots(*pairs, len(judgments.groups), len(annotators))
    k = int(np.bincount(group_of).max())
    shape = (*annotator_of_slot.shape, k)
    j = len(judge)
    judge_slot = np.broadcast_to(slot[:j], choices.shape)
    data = Data(
        sizes=np.bincount(group_of),
        annotator_of_slot=annotator_of_slot,
        n_annotators=len(annotators),
        choices=np.ascontiguousarray(
            np.ravel_multi_index((group_of[choices], judge_slot, place[choices]), shape)
        ),
        choice_annotator=judge,
        anchors=np.ravel_multi_index((group_of[anchored], slot[j:], place[anchored]), shape),
        anchor_annotator=person,
        answers=np.array([row.answer for row in rows], np.float64),
        is_rating=anchors.kind == "rating",
        has_wobble=len({(row.group, row.annotator) for row in rows}) < len(rows),
    )  # fmt: skip
    notes += _missing_anchors(data, len({row.group for row in rows}))
    return Study(
        data, judgments.item_keys, (group_of, place), judgments.groups, annotators, tuple(notes)
    )


def _missing_anchors(data: Data, n_with_anchors: int) -> Iterator[str]:
    """Yield notes on people with few anchors, and on groups without any."""
    counts = np.bincount(data.anchor_annotator, minlength=data.n_annotators)
    n_few = int(np.count_nonzero(counts < MIN_ANCHORS))
    if n_few:
        yield note(FEW_ANCHORS, n=n_few, m=data.n_annotators, limit=MIN_ANCHORS)
    n_groups = len(data.sizes)
    if n_with_anchors < n_groups:
        yield note(NO_ANCHORS, n=n_groups - n_with_anchors, m=n_groups)


def _with_different_ratings(anchors: Anchors) -> tuple[list[Anchor], list[str]]:
    """Return the anchors without ratings of people whose ratings are all equal, and notes on them."""
    answers: dict[str, list[int]] = {}
    for row in anchors.rows:
        answers.setdefault(row.annotator, []).append(row.answer)
    constant = {
        name: values[0]
        for name, values in answers.items()
        if anchors.kind == "rating" and len(values) >= MIN_EQUAL and len({*values}) == 1
    }
    notes = [
        note(
            "the {n:d} ratings of {annotator} are all {value:d} and are left out",
            n=len(answers[name]),
            annotator=name,
            value=value,
        )
        for name, value in constant.items()
    ]
    return [row for row in anchors.rows if row.annotator not in constant], notes


def _slots(
    group: Integers, annotator: Integers, n_groups: int, n_annotators: int
) -> tuple[Integers, Integers]:
    """Return the place of each row's annotator in its group, and (D, S) the annotator of each place."""
    pairs, index = np.unique(group * n_annotators + annotator, return_inverse=True)
    group_of, annotator_of = np.divmod(pairs, n_annotators)
    first = np.searchsorted(group_of, np.arange(n_groups))
    slot = np.arange(len(pairs)) - first[group_of]
    table = np.full((n_groups, int(slot.max()) + 1), -1)
    table[group_of, slot] = annotator_of
    return slot[index], table
