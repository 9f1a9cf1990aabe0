"""The intervals of scores: estimate ± t standard errors on the scale of a method's utilities."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bws.clusters import MIN_CLUSTERS, t_quantile
from bws.scoring.clustering import Clusters
from bws.scoring.methods import METHODS, Floats, Interval, Method, Utilities

__all__ = ["Source", "interval_of", "interval_source"]

Source = Literal["bootstrap", "model"]


def interval_source(method: str, interval: Source, bootstrap: int) -> Source | None:
    """Return what to take intervals from, None where none are wanted; ValueError where it cannot be."""
    if bootstrap < 0:
        raise ValueError(f"bootstrap is {bootstrap}; it is a number of resamples: 0 or more")
    if interval == "bootstrap":
        return "bootstrap" if bootstrap else None
    if bootstrap:
        raise ValueError(
            f"bootstrap is {bootstrap} but the interval is to come from standard errors; ask for one"
        )
    if not METHODS[method].has_stderr:
        able = ", ".join(name for name, other in METHODS.items() if other.has_stderr)
        raise ValueError(
            f"method {method} has no standard errors; use the bootstrap, or one of: {able}"
        )
    return "model"


def interval_of(method: Method, estimate: Utilities, score: Floats, clusters: Clusters) -> Interval:
    """Return the ends of estimate ± t standard errors as scores, widened to contain the score.

    t is the 97.5 % quantile of Student's t for the degrees of freedom of each standard error. NaN for items
    that fewer than `MIN_CLUSTERS` clusters judged; the notes say so.
    """
    df = np.full(len(score), np.inf) if estimate.df is None else estimate.df
    reach = t_quantile(df) * np.asarray(estimate.stderr)
    reach[clusters.too_few] = np.nan
    low = np.minimum(method.to_score(estimate.utility - reach), score)
    high = np.maximum(method.to_score(estimate.utility + reach), score)
    notes = [*estimate.notes, *_notes(low, high, clusters), *clusters.notes]
    return Interval(low, high, notes, estimate.stderr_method)


def _notes(low: Floats, high: Floats, clusters: Clusters) -> list[str]:
    notes = []
    if few := np.count_nonzero(clusters.too_few):
        notes.append(
            f"{few} items have no interval: fewer than {MIN_CLUSTERS} clusters judged them"
        )
    if same := np.count_nonzero(low == high):
        notes.append(
            f"the intervals of {same} items have no width, as the items score the same in every "
            "resample; that is not certainty"
        )
    return notes
