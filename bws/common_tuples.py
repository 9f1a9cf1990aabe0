"""Tuples that both people and a language model judged, with the judgments of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bws.records import Judgments, Tuples

Longs = NDArray[np.int64]
Key = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class CommonTuples:
    """The judgments of people and of a model of the same U tuples.

    The canonical judgments of both have the same items and the same U tuples, so that their answers, which
    are positions in a tuple, are comparable. Tuples with the same items are one tuple.
    """

    people: Judgments
    model: Judgments
    n_people_only: int
    """Tuples that only people judged."""
    n_model_only: int
    """Tuples that only the model judged."""

    def __len__(self) -> int:
        return len(self.people.canonical.members)

    @property
    def has_groups(self) -> bool:
        """Whether the study of people has several groups; these tuples may be of one of them."""
        return len(self.people.tuples.groups) > 1

    @property
    def cluster_of(self) -> Longs:
        """(U,) number of the cluster of dependent tuples: its group, or the tuple itself without groups."""
        return self.people.canonical.clusters(self.has_groups)

    @property
    def unit(self) -> str:
        """Plural name of the clusters."""
        return "groups" if self.has_groups else "tuples"


def common_tuples(people: Judgments, model: Judgments) -> CommonTuples:
    """Return the judgments of the tuples that occur in both, matched by group and set of items."""
    keys = [tuple_keys(judgments.tuples) for judgments in (people, model)]
    judged = [
        {keys[number] for number in np.unique(judgments.tuple_of)}
        for keys, judgments in zip(keys, (people, model), strict=True)
    ]
    shared = judged[0] & judged[1]
    human, machine = (
        judgments.select(np.array([key in shared for key in keys], bool)[judgments.tuple_of])
        for keys, judgments in zip(keys, (people, model), strict=True)
    )
    n_people_only, n_model_only = (len(each - shared) for each in judged)
    return CommonTuples(human, machine, n_people_only, n_model_only)


def tuple_keys(tuples: Tuples) -> list[Key]:
    """Return (T,) group and sorted items of each tuple, which identify it."""
    return [(group, *sorted(items)) for _, group, items in tuples.rows()]
