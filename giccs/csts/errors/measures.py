"""How well are errors found? Precision, recall, F1 (L-CSTS, 4.3), MCC, and the Spearman of Table 2.

An error is a label that differs from the reannotated one (1, footnote 1); suspicious is one that differs from
the rank label (4.2). Neither has a tolerance. Everything is a function of how often each triple of
label, rank label and truth occurs, so that a bootstrap over instances is a draw of these 125 counts.

Calling everything an error finds every error: F1 = 2e / (1 + e) at an error rate e, which is 0.71 at the
paper's 55 %. No F1 means anything unless it is seen beside that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from giccs.csts.errors.records import Ints
from giccs.csts.records import LABELS
from giccs.measures.metrics import Estimate, estimated, weighted_spearman

__all__ = ["MEASURES", "all_called_errors", "measured", "values"]

MEASURES = ("precision", "recall", "f1", "mcc", "spearman")

Counts = NDArray[np.float64]
Values = Mapping[str, Counts]

LABEL, RANKED, TRUTH = np.indices((5, 5, 5)).reshape(3, -1) + LABELS[0]
"""Of the 125 cells."""
ERROR, SUSPICIOUS = LABEL != TRUTH, LABEL != RANKED


def measured(
    label: Ints, ranked: Ints, truth: Ints, *, resamples: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """Return `MEASURES` of N instances: labels, rank labels and reannotated labels, (N,) of 1 to 5.

    ``spearman`` is between rank labels and reannotated labels. Intervals are the 2.5 and 97.5 percentile of
    `resamples` draws of N instances. NaN with a reason: precision where nothing is suspicious; recall and
    F1 where there is no error; MCC where all or none are errors, or all or none suspicious.

    >>> found = measured(np.array([1, 2, 3, 4]), np.array([5, 5, 3, 4]), np.array([5, 2, 3, 5]))
    >>> [found[name].value for name in ("precision", "recall", "f1")]
    [0.5, 0.5, 0.5]
    """
    return _estimates(_counts(label, ranked, truth), _statistics, resamples, seed)


def values(label: Ints, ranked: Ints, truth: Ints) -> dict[str, float]:
    """Return what `measured` does, without intervals and reasons."""
    whole = _statistics(_counts(label, ranked, truth)[None, :].astype(np.float64))
    return {name: float(value[0]) for name, value in whole.items()}


def _counts(label: Ints, ranked: Ints, truth: Ints) -> Ints:
    """Return (125,) how often each cell occurs."""
    cells = np.ravel_multi_index((label - 1, ranked - 1, truth - 1), (5, 5, 5))
    return np.bincount(cells, minlength=len(LABEL))


def all_called_errors(
    label: Ints, truth: Ints, *, resamples: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """Return the measures of calling every label an error; its MCC is never defined.

    >>> label, truth = np.ones(100, int), np.repeat([2, 1], [55, 45])
    >>> round(all_called_errors(label, truth)["f1"].value, 3)  # 2 · 0.55 / 1.55
    0.71
    """
    errors = int(np.count_nonzero(label != truth))
    counts = np.array([errors, len(label) - errors])
    return _estimates(counts, lambda drawn: _detected(drawn[:, 0], drawn[:, 1]), resamples, seed)


def _statistics(counts: Counts) -> Values:
    """Return each measure under (b, 125) counts."""
    found, false, missed, right = (
        counts @ cells.astype(np.float64)
        for cells in (ERROR & SUSPICIOUS, ~ERROR & SUSPICIOUS, ERROR & ~SUSPICIOUS, ~ERROR & ~SUSPICIOUS)
    )  # fmt: skip
    spearman = weighted_spearman(
        RANKED.astype(np.float64), TRUTH.astype(np.float64), np.arange(len(TRUTH))
    )
    return {**_detected(found, false, missed, right), "spearman": spearman(counts)}


def _detected(
    found: Counts, false: Counts, missed: Counts | int = 0, right: Counts | int = 0
) -> Values:
    """Return precision, recall, F1 and MCC (Matthews 1975) of counts; NaN where there is none."""
    suspicious, errors = found + false, found + missed
    spread = suspicious * errors * (right + false) * (right + missed)
    agreement = found * right - false * missed
    return {
        "precision": _ratio(found, suspicious),
        "recall": _ratio(found, errors),
        "f1": np.where(errors > 0, _ratio(2 * found, suspicious + errors), math.nan),
        "mcc": _ratio(agreement, np.sqrt(spread)),
    }


def _ratio(above: Counts, below: Counts) -> Counts:
    defined = below > 0
    return np.where(defined, above / np.where(defined, below, 1.0), math.nan)


REASONS = {
    "precision": "nothing is suspicious",
    "recall": "there is no error to find",
    "f1": "there is no error to find",
    "mcc": "all or none are errors, or all or none are suspicious",
    "spearman": "rank labels or reannotated labels are all the same",
}
"""Why a measure is NaN."""


def _estimates(
    counts: Ints, statistics: Callable[[Counts], Values], resamples: int, seed: int
) -> dict[str, Estimate]:
    n = int(counts.sum())
    whole = statistics(counts[None, :].astype(np.float64))
    if not n:
        return {name: Estimate(math.nan, math.nan, math.nan, 0, "no instances") for name in whole}
    draws = np.random.default_rng(seed).multinomial(n, counts / n, size=resamples or 1)
    drawn = statistics(draws.astype(np.float64))
    points = {name: float(value[0]) for name, value in whole.items()}
    return {
        name: estimated(
            value,
            drawn[name][:resamples],
            n,
            n,
            REASONS[name] if math.isnan(value) else "",
            "instances",
        )
        for name, value in points.items()
    }
