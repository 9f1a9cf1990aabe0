"""Tuples that both people and a language model judged, with the answers of both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bws.records import CanonicalJudgments, Judgments

__all__ = ["CommonTuples", "common_tuples"]

Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CommonTuples:
    """U tuples with judgments of people and of a model. Tuples with the same items are one tuple."""

    people: CanonicalJudgments
    """Their judgments of these tuples; `tuple_of` counts these tuples, from 0 to U - 1."""
    model: CanonicalJudgments
    """The model's judgments of these tuples, numbered likewise."""
    cluster_of: Longs
    """(U,) number of the cluster of dependent tuples: the tuples of a group, or each tuple without groups."""
    has_groups: bool
    """Whether clusters are groups."""
    n_people_only: int
    """Tuples that only people judged."""
    n_model_only: int
    """Tuples that only the model judged."""

    def __len__(self) -> int:
        return len(self.cluster_of)

    @property
    def unit(self) -> str:
        """Plural name of the clusters."""
        return "groups" if self.has_groups else "tuples"


def common_tuples(people: Judgments, model: Judgments) -> CommonTuples:
    """Return the tuples that occur in both, matched by group and set of items.

    An answer is a position in the tuple's items in ascending order of ids, so that answers of people and
    model to the same tuple are comparable.
    """
    human, machine = people.canonical, model.canonical
    human_tuples, machine_tuples = _numbers(human), _numbers(machine)
    keys = [key for key in human_tuples if key in machine_tuples]
    groups = [group for group, _ in keys]
    number_of_group = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    has_groups = len({*human.groups, *machine.groups}) > 1
    clusters = [number_of_group[group] for group in groups] if has_groups else range(len(keys))
    return CommonTuples(
        _selected(human, np.array([human_tuples[key] for key in keys], np.int64)),
        _selected(machine, np.array([machine_tuples[key] for key in keys], np.int64)),
        np.array(clusters, np.int64),
        has_groups,
        len(human_tuples) - len(keys),
        len(machine_tuples) - len(keys),
    )


def _numbers(judgments: CanonicalJudgments) -> dict[tuple[str, tuple[str, ...]], int]:
    """Return the number of each tuple by its group and its items."""
    return {
        (
            judgments.groups[judgments.group_of[members[0]]],
            tuple(judgments.items[item] for item in members),
        ): number
        for number, members in enumerate(judgments.members.tolist())
    }


def _selected(judgments: CanonicalJudgments, tuples: Longs) -> CanonicalJudgments:
    """Return the judgments of some tuples, which are numbered in the given order."""
    number = np.full(len(judgments.members), -1, np.int64)
    number[tuples] = np.arange(len(tuples))
    renumbered = replace(
        judgments, members=judgments.members[tuples], tuple_of=number[judgments.tuple_of]
    )
    return renumbered.select(np.flatnonzero(renumbered.tuple_of >= 0))
