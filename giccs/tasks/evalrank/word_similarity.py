"""Word similarity: how well do a model's word vectors agree with ratings, set by set?  (EvalRank, 5.1)

The paper reports Spearman's rho of each set and no mean; here a group is a set, and the mean over sets is the
task's own number, every set counting the same. Word vectors are sought as a word is written, then in lower
case ("Jerusalem"; see `giccs.models.static`); pairs with an unknown word are left out and counted.
"""

from __future__ import annotations

from giccs.tasks import TaskOptions
from giccs.tasks.evalrank.agreement import Agreement

__all__ = ["open_tasks"]


def open_tasks(options: TaskOptions) -> list[Agreement]:
    """Return the task.

    >>> open_tasks(TaskOptions())[0].name
    'word-similarity'
    """
    return [Agreement("word-similarity", options.similarity)]
