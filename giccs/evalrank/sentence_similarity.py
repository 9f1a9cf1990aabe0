"""Sentence similarity: how well does a model agree with ratings, also level by level?  (EvalRank, Figure 2)

The paper draws 3,000 pairs of each level; here all pairs of a level count, and their number is told. Scores
are brought to 0 … 5 before levels are taken (SICK's 1 … 5: 3.4 becomes 3); correlations do not depend on it.
A file that does not tell its scale, with scores inside 0 … 5 and some above 4, is taken to be on 0 … 5; a
warning says so, and there are no levels for other such files.

Of several sets (STS12 to STS16, say) the mean over the sets is the task's own number, every set counting the
same; where all sets have one scale the group ``pairs=all`` is the correlation over all their pairs. Papers
report either for STS12 to STS16.
"""

from __future__ import annotations

from dataclasses import replace

from bws.problems import Problem
from giccs.evalrank.agreement import TOP, Agreement
from giccs.evalrank.similarity_data import SimilarityData, read_similarity
from giccs.tasks import TaskOptions

__all__ = ["open_tasks", "read_sentences"]

TAKES: tuple[str, ...] = ("similarity",)
"""The fields of `TaskOptions` that concern the task."""


def open_tasks(options: TaskOptions) -> list[Agreement]:
    """Return the task.

    >>> open_tasks(TaskOptions(similarity="l2"))[0].similarity
    'l2'
    """
    return [
        Agreement(
            "sentence-similarity", options.similarity, levels=True, pooled=True, read=read_sentences
        )
    ]


def read_sentences(data: str) -> SimilarityData:
    """Read rated pairs as `read_similarity` does, with a scale for every set that can have one."""
    found = read_similarity(data)
    sets, warnings = [], list(found.warnings)
    for one in found.sets:
        scores = [pair.score for pair in one.pairs]
        if one.scale is None:
            of_five = min(scores) >= 0 and TOP - 1 < max(scores) <= TOP
            what = "taken to be 0 to 5" if of_five else "unknown, so there are no levels"
            warnings.append(Problem(found.name, None, f"{one.name}: the scale is {what}"))
            one = replace(one, scale=(0.0, TOP) if of_five else None)
        sets.append(one)
    return replace(found, sets=tuple(sets), warnings=tuple(warnings))
