"""Published numbers over models (EvalRank's Tables 1b, 3, 4, 6, 7 and 10), computed from stored results.

A score has the name ``TASK:METRIC:SET``, with the folder or file of the data in place of the set if the score
is over all its data: ``evalrank-word:mrr:word_evalrank``. A downstream score is
``classification:accuracy:SET``. Scores by the distance end with ``:l2``, others are by the cosine. Results of
the published program are not used: each model has one score of a name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import cast

import numpy as np

from bws.base.notes import note
from bws.stats.estimates import Estimate
from giccs.evalrank.classification_data import SETS
from giccs.evalrank.score_correlations import MIN_MODELS, correlate
from giccs.evalrank.scores import DOWNSTREAM, ScoreColumn, ScoreSelector, collect_scores
from giccs.evaluation.recipe import ACROSS_MODELS
from giccs.measures.comparison import clustered_share
from giccs.measures.results import Group, Result, Signature, data_of, setting_of


@dataclass(frozen=True, slots=True)
class ModelKind:
    """Models that the paper compares with each other."""

    selectors: Sequence[ScoreSelector]
    steps: Sequence[str]
    """Post-processing steps that Table 10 compares with no post-processing."""
    ranked: str = ""
    """Task with a score by the cosine and by the distance, whose ranks of models Table 1b compares."""


KINDS: Mapping[str, ModelKind] = {
    "word embedding models": ModelKind(
        [ScoreSelector("word-similarity"), ScoreSelector("evalrank-word")], ["abtt"]
    ),
    "sentence embedding models": ModelKind(
        [ScoreSelector("sentence-similarity", "spearman", ""), ScoreSelector("evalrank-sentence")],
        ["pcr", "whitening", "flow"],
        ranked="sentence-similarity",
    ),
}
"""Name of the models in a recipe -> their intrinsic scores and post-processing."""
ACCURACIES = [ScoreSelector(DOWNSTREAM, "accuracy", name) for name in SETS]
DISTANCE = "l2"
SETTINGS = ("", "cos", DISTANCE)


def results_across_models(results: Sequence[Result], data: str) -> list[Result]:
    """Return a result per kind of models, with the numbers over its models as groups; none without scores.

    results: those on the data of the recipe. data: its name. Groups are ``{"score", "set"}`` with the
    ``spearman`` correlation of an intrinsic score with the accuracy on a set, ``{"score"}`` with
    `better_postprocessed`, and ``{"score", "model"}`` with the `ranks`.
    """
    usable = [result for result in results if setting_of(result) in SETTINGS]
    across = [_result(name, kind, usable, data) for name, kind in KINDS.items()]
    return [result for result in across if result.groups]


def better_postprocessed(scores: Mapping[str, float], steps: Sequence[str]) -> Estimate:
    """Return the share of models whose score is higher with one of the steps than without (Table 10).

    scores: score by model; a model ``NAME+STEP`` is compared with ``NAME``. Equal scores count one half. NaN
    with a reason if there is no such pair; the interval requires five pairs.

    >>> scores = {"a": 0.5, "a+abtt:2": 0.6, "b": 0.4, "b+abtt:2": 0.4, "c": 0.9}
    >>> better_postprocessed(scores, ["abtt"]).value
    0.75
    """
    divided = {model: model.rpartition("+")[::2] for model in scores}
    pairs = [
        (scores[base], scores[model])
        for model, (base, step) in divided.items()
        if base in scores and step.partition(":")[0] in steps
    ]
    if not pairs:
        reason = note("no model with and without post-processing")
        return Estimate(math.nan, math.nan, math.nan, 0, reason)
    before, after = np.array(pairs).T
    better = (np.sign(after - before) + 1) / 2
    share = clustered_share(better, np.ones(len(pairs), dtype=np.intp), unit="models")
    return replace(share, extra={})


def ranks(scores: Mapping[str, float]) -> dict[str, Estimate]:
    """Return the rank of each model, one plus the number of models with a higher score; without intervals.

    >>> {model: rank.value for model, rank in ranks({"a": 0.5, "b": 0.7, "c": 0.5}).items()}
    {'a': 2.0, 'b': 1.0, 'c': 2.0}
    """
    reason = note("a rank has no interval here")
    return {
        model: Estimate(
            1.0 + sum(other > score for other in scores.values()),
            math.nan,
            math.nan,
            len(scores),
            reason,
        )
        for model, score in scores.items()
    }


def _result(name: str, kind: ModelKind, results: Sequence[Result], data: str) -> Result:
    intrinsic = _columns(results, kind.selectors)
    downstream = _columns(results, ACCURACIES)
    groups = (
        *_correlations(intrinsic, downstream),
        *_shares([*downstream, *intrinsic], kind.steps),
        *_ranks([column for column in intrinsic if column.task == kind.ranked]),
    )
    return Result(
        model=name,
        task=ACROSS_MODELS,
        metrics={},
        groups=groups,
        signature=cast(Signature, {"task": ACROSS_MODELS, "giccs": version("giccs")}),
        environment={"data": data},
        seconds=0.0,
    )


def _columns(results: Sequence[Result], selectors: Sequence[ScoreSelector]) -> list[ScoreColumn]:
    """Return the score columns of each data set, with the end of their names as `ScoreColumn.setting`."""
    kinds = dict.fromkeys((data_of(each), setting_of(each) == DISTANCE) for each in results)
    return [
        replace(column, setting=_end(column, data, by_distance))
        for data, by_distance in kinds
        for column in collect_scores(
            [
                each
                for each in results
                if (data_of(each), setting_of(each) == DISTANCE) == (data, by_distance)
            ],
            selectors,
        ).columns
    ]


def _end(column: ScoreColumn, data: str, by_distance: bool) -> str:
    folder = "" if column.by else Path(data).name
    return ":".join(filter(None, [folder, DISTANCE if by_distance else ""]))


def _name(column: ScoreColumn) -> str:
    return ":".join(filter(None, [column.address, column.setting]))


def _correlations(
    intrinsic: Sequence[ScoreColumn], downstream: Sequence[ScoreColumn]
) -> Iterator[Group]:
    for cell in correlate(intrinsic, downstream).cells:
        if cell.rho.size >= MIN_MODELS:
            by = {"score": _name(cell.intrinsic), "set": cell.downstream.by[0][1]}
            yield Group(by, {"spearman": cell.rho})


def _shares(columns: Sequence[ScoreColumn], steps: Sequence[str]) -> Iterator[Group]:
    for column in columns:
        share = better_postprocessed(column.scores, steps)
        if share.n:
            yield Group({"score": _name(column)}, {"better_postprocessed": share})


def _ranks(columns: Sequence[ScoreColumn]) -> Iterator[Group]:
    """Yield the ranks by both similarities, over the models that have a score by each."""
    by_name = {_name(column): column for column in columns}
    for name, by_cosine in by_name.items():
        by_distance = by_name.get(f"{name}:{DISTANCE}")
        if by_distance is None:
            continue
        shared = [model for model in by_cosine.scores if model in by_distance.scores]
        for column in (by_cosine, by_distance):
            for model, rank in ranks({model: column.scores[model] for model in shared}).items():
                yield Group({"score": _name(column), "model": model}, {"rank": rank})
