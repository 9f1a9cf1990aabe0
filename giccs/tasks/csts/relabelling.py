"""The second labels of L-CSTS as data of their own, divided for training and testing (L-CSTS, 3.3 and 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from giccs.tasks.csts.data import Dataset, merged
from giccs.tasks.csts.records import INVALID

__all__ = ["divided", "relabelled"]


def relabelled(dataset: Dataset, labels: Mapping[str, int]) -> tuple[Dataset, int]:
    """Give the rows their second labels; return the valid ones, and how many conditions are invalid.

    >>> from giccs.tasks.csts.records import Instance
    >>> rows = [Instance(uid, "A kite.", "A bus.", "the color", 1, 0) for uid in ("0", "1")]
    >>> kept, invalid = relabelled(Dataset("kites", tuple(rows)), {"0": 5, "1": -1})
    >>> [(one.uid, one.label) for one in kept.instances], invalid
    ([('0', 5)], 1)
    """
    both = merged(dataset, labels).dataset
    kept = tuple(one for one in both.instances if one.label != INVALID)
    return replace(both, instances=kept), len(both.instances) - len(kept)


def divided(dataset: Dataset, shares: Sequence[float], seed: int) -> tuple[Dataset, ...]:
    """Divide at random into parts of about these shares of the rows, and the rest as the last part.

    L-CSTS draws 70 % of the instances. Here the rows of a sentence pair stay together, because a model that
    has seen a pair under one condition knows it under the other; so a share holds to one pair. ValueError
    where shares are not above 0 or leave no rest.
    """
    if min(shares) <= 0 or sum(shares) >= 1:
        raise ValueError(f"shares are {list(shares)}; they must be above 0 and below 1 together")
    pair = np.array([one.pair for one in dataset.instances])
    pairs, sizes = np.unique(pair, return_counts=True)
    drawn = np.random.default_rng(seed).permutation(len(pairs))
    before = np.cumsum(sizes[drawn]) - sizes[drawn]
    part_of = np.empty(len(pairs), np.intp)
    part_of[drawn] = np.searchsorted(np.cumsum(shares) * len(pair), before, side="right")
    part = part_of[np.searchsorted(pairs, pair)]
    return tuple(
        replace(
            dataset,
            instances=tuple(
                one for one, its in zip(dataset.instances, part, strict=True) if its == number
            ),
        )
        for number in range(len(shares) + 1)
    )
