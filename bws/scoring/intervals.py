"""Where the intervals of scores come from: resamples of clusters, or a model's standard errors."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bws.problems import InputError, Problem
from bws.records import Judgments
from bws.scoring.answers import Answers
from bws.scoring.methods import METHODS
from bws.scoring.records import Integers, Interval, Method, Utilities

__all__ = ["Cluster", "Source", "clusters_of", "interval_source", "model_interval"]

Cluster = Literal["annotator", "tuple"]
Source = Literal["bootstrap", "model"]
NORMAL_QUANTILE = 1.959963984540054


def interval_source(method: str, interval: Source, bootstrap: int) -> Source | None:
    """Return what to take intervals from, None where none are wanted; ValueError where it cannot be."""
    if bootstrap < 0:
        raise ValueError(f"bootstrap is {bootstrap}; it is a number of resamples: 0 or more")
    if interval == "bootstrap":
        return "bootstrap" if bootstrap else None
    if bootstrap:
        raise ValueError(
            f"bootstrap is {bootstrap} but the interval is to come from the model; ask for one"
        )
    if not METHODS[method].has_stderr:
        able = ", ".join(name for name, other in METHODS.items() if other.has_stderr)
        raise ValueError(
            f"method {method} has no standard errors; use the bootstrap, or one of: {able}"
        )
    return "model"


def clusters_of(judgments: Judgments, answers: Answers, cluster: Cluster) -> Integers:
    """Return (J,) the number of each answer's cluster, from 0; InputError where there are none."""
    cluster_of = answers.annotator_of if cluster == "annotator" else answers.tuple_of
    unknown = np.count_nonzero(cluster_of < 0)
    if not unknown and (not len(answers) or cluster_of.any()):
        return cluster_of
    problem = f"{unknown} of {len(answers)} judgments name no annotator"
    if not unknown:
        problem = f"all judgments are of one {cluster}"
    other = "tuple" if cluster == "annotator" else "annotator"
    message = f"{problem}, so that they cannot be clustered by {cluster}; cluster by {other}"
    raise InputError(Problem(judgments.source or "judgments", None, message))


def model_interval(method: Method, found: Utilities) -> Interval:
    """Return the ends of utility ± 1.96 standard errors as scores; NaN where either is NaN."""
    reach = NORMAL_QUANTILE * np.asarray(found.stderr)
    low, high = (method.to_score(found.utility + end) for end in (-reach, reach))
    return Interval(low, high)
