"""Word similarity: how well do a model's word vectors agree with ratings, set by set?  (EvalRank, 5.1)

The paper reports Spearman's rho of each set and no mean; here a group is a set, and the mean over sets is the
task's own number, every set counting the same. "The word similarity datasets with less than 200 pairs are
not selected to avoid evaluation occasionality" (5.1): the mean leaves out, and names, sets with fewer than
200 pairs whose words the model knows. Word vectors are sought as a word is written, then in lower case
("Jerusalem"; see `giccs.models.static`); pairs with an unknown word are left out and counted.
"""

from __future__ import annotations

from giccs.evalrank.agreement import Agreement
from giccs.tasks import TaskOptions

__all__ = ["MIN_KNOWN_PAIRS", "open_tasks"]

TAKES: tuple[str, ...] = ("similarity",)
"""The fields of `TaskOptions` that concern the task."""

MIN_KNOWN_PAIRS = 200
"""Pairs of known words that a set needs to count in means and correlations (5.1)."""


def open_tasks(options: TaskOptions) -> list[Agreement]:
    """Return the task.

    >>> open_tasks(TaskOptions())[0].name
    'word-similarity'
    """
    return [Agreement("word-similarity", options.similarity, min_known_pairs=MIN_KNOWN_PAIRS)]
