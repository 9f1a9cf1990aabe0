"""The second labels of L-CSTS as data of their own, divided for training and testing (L-CSTS, 3.3 and 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate

import numpy as np

from giccs.csts.data import Dataset, merged
from giccs.csts.records import INVALID

__all__ = ["divided", "relabelled"]


def relabelled(dataset: Dataset, labels: Mapping[str, int]) -> tuple[Dataset, int]:
    """Give the rows their second labels; return the valid ones, and how many conditions are invalid.

    >>> from giccs.csts.records import Instance
    >>> rows = [Instance(uid, "A kite.", "A bus.", "the color", 1, 0) for uid in ("0", "1")]
    >>> kept, invalid = relabelled(Dataset("kites", tuple(rows)), {"0": 5, "1": -1})
    >>> [(one.uid, one.label) for one in kept.instances], invalid
    ([('0', 5)], 1)
    """
    both = merged(dataset, labels).dataset
    kept = tuple(one for one in both.instances if one.label != INVALID)
    return replace(both, instances=kept), len(both.instances) - len(kept)


def divided(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """Divide at random into about this share of the rows, and the rest.

    L-CSTS draws 70 % of the instances. Here the rows of a sentence pair stay together, because a model that
    has seen a pair under one condition knows it under the other; so the share holds to one pair. ValueError
    for a share that is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise ValueError(f"share is {share}; it must lie between 0 and 1")
    rows = Counter(one.pair for one in dataset.instances)
    pairs = np.random.default_rng(seed).permutation(sorted(rows)).tolist()
    before = [0, *accumulate(rows[pair] for pair in pairs)]
    enough = share * len(dataset.instances)
    first = {pair for pair, so_far in zip(pairs, before, strict=False) if so_far < enough}
    inside, outside = (
        tuple(one for one in dataset.instances if (one.pair in first) is wanted)
        for wanted in (True, False)
    )
    return replace(dataset, instances=inside), replace(dataset, instances=outside)
