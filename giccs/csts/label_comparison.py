"""Predictions of a model compared with original and reannotated labels of the same rows (L-CSTS, Figure 5).

Both correlations are over the rows with an original label and a valid reannotated one. Rows of a sentence
pair are dependent, so all intervals are over sentence pairs, and those of differences are paired: each
jackknife replicate omits the same sentence pairs for both kinds of labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.base.charts import BLUE, VERMILION, chart_rows, limits
from bws.stats.estimates import Estimate
from giccs.csts.data import INVALID, Instance
from giccs.measures.clusters import Clusters
from giccs.measures.metrics import (
    CORRELATION_BOUNDS,
    Floats,
    Ints,
    Statistic,
    difference_estimate,
    jackknife_estimate,
    replicates,
    undefined_correlations,
    weighted_spearman,
)
from giccs.measures.results import Result, data_of, model_of, setting_of

if TYPE_CHECKING:
    import altair as alt
    import polars

TASKS = ("csts", "csts-prompt", "csts-train")
RESAMPLES = 1000
UNIT = "sentence pairs"
COLOURS = {"original": VERMILION, "reannotated": BLUE}


@dataclass(frozen=True, slots=True)
class LabelComparison:
    """Spearman's correlations of a model's predictions with both kinds of labels."""

    model: str
    setting: str
    data: str
    """Name of the data of the result."""
    rows: int
    """Number of compared rows."""
    without_prediction: int
    """Number of other rows with both labels whose prediction is NaN."""
    original: Estimate
    reannotated: Estimate
    difference: Estimate
    """Reannotated minus original."""

    def document(self) -> dict[str, Any]:
        """Return the comparison as a JSON-serialisable dict."""
        return {
            "model": self.model,
            "setting": self.setting,
            "data": self.data,
            "rows": self.rows,
            "without_prediction": self.without_prediction,
            "original": self.original.document(),
            "reannotated": self.reannotated.document(),
            "difference": self.difference.document(),
        }


def compare_labels(
    result: Result,
    table: polars.DataFrame,
    rows: Mapping[str, Instance],
    second: Mapping[str, int],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> LabelComparison:
    """Compare the predictions of a result with both kinds of labels.

    table: its predictions. rows: rows of the data with original labels, by uid. second: reannotated labels by
    uid. For several trainings, correlations are means over their seeds. Raises ValueError if the predictions
    are not of these rows: unknown uids, or labels that are neither the original nor the reannotated ones.
    """
    uids = [str(uid).rpartition(":")[2] for uid in table["uid"].to_list()]
    if reason := _other_rows_reason(uids, table["label"].to_list(), rows, second):
        raise ValueError(reason)
    predictions = _predictions(table)
    is_scored = np.array([_has_both_labels(uid, rows, second) for uid in uids], dtype=np.bool_)
    is_predicted = ~np.isnan(predictions).any(axis=0)
    kept = np.flatnonzero(is_scored & is_predicted)
    instances = [rows[uids[index]] for index in kept.tolist()]
    labels = {
        "original": np.array([instance.label for instance in instances], dtype=np.float64),
        "reannotated": np.array([second[row.uid] for row in instances], dtype=np.float64),
    }
    _, pair = np.unique([instance.pair for instance in instances], return_inverse=True)
    estimates = _correlations(
        predictions[:, kept], labels, pair.astype(np.intp), resamples=resamples, seed=seed
    )
    return LabelComparison(
        model_of(result),
        setting_of(result),
        data_of(result),
        len(kept),
        int((is_scored & ~is_predicted).sum()),
        **estimates,
    )


def _has_both_labels(
    uid: str, rows: Mapping[str, Instance], second: Mapping[str, int]
) -> bool:  # fmt: skip
    return rows[uid].label is not None and second.get(uid, INVALID) != INVALID


def _other_rows_reason(
    uids: Sequence[str],
    stored: Sequence[float | None],
    rows: Mapping[str, Instance],
    second: Mapping[str, int],
) -> str:
    """Return why predictions are not of the rows, or an empty string.

    A stored label must be the original or the reannotated one, for all rows the same kind.
    """
    if unknown := sum(uid not in rows for uid in uids):
        return f"{unknown} of {len(uids)} uids are unknown"
    kinds = ([rows[uid].label for uid in uids], [second.get(uid) for uid in uids])
    if not any(all(map(_equal, stored, labels)) for labels in kinds):
        return "its labels are neither the original nor the reannotated ones"
    return ""


def _equal(stored: float | None, label: float | None) -> bool:
    return stored is not None and label is not None and float(stored) == float(label)


def _predictions(table: polars.DataFrame) -> Floats:
    """Return the predictions (K, N) of the table, one row per training."""
    seeds = [name for name in table.columns if name.startswith("seed_")]
    names = seeds or [next(name for name in ("prediction", "value") if name in table.columns)]
    return np.array([table[name].to_numpy() for name in names], dtype=np.float64)


def _correlations(
    predictions: Floats, labels: Mapping[str, Floats], pair: Ints, *, resamples: int, seed: int
) -> dict[str, Estimate]:
    """Return the correlations with each kind of labels, and their difference; NaN with the first reason."""
    clusters = Clusters.single(int(pair.max()) + 1 if len(pair) else 0, UNIT)
    for score in labels.values():
        for prediction in predictions:
            if undefined := undefined_correlations(prediction, score, pair):
                return dict.fromkeys((*labels, "difference"), undefined["spearman"])
    statistics = {name: _mean_rho(predictions, score, pair) for name, score in labels.items()}
    settings: Any = {"resamples": resamples, "seed": seed}
    estimates = {
        name: jackknife_estimate(
            statistic, len(pair), clusters, bounds=CORRELATION_BOUNDS, **settings
        )
        for name, statistic in statistics.items()
    }
    original, reannotated = (
        replicates(statistics[name], clusters, **settings) for name in ("original", "reannotated")
    )
    return {**estimates, "difference": difference_estimate(reannotated - original, len(pair))}


def _mean_rho(predictions: Floats, score: Floats, pair: Ints) -> Statistic:
    """Return the statistic: the mean over trainings of Spearman's rho."""
    each = [weighted_spearman(prediction, score, pair) for prediction in predictions]

    def mean(weights: Floats) -> Floats:
        values: Floats = np.mean([statistic(weights) for statistic in each], axis=0)
        return values

    return mean


def label_chart(comparisons: Sequence[LabelComparison]) -> alt.TopLevelMixin:
    """Return Figure 5: for each model a point with its interval per kind of labels."""
    import altair as alt

    rows = [
        {
            "model": f"{comparison.model} ({comparison.setting})",
            "labels": name,
            "spearman": estimate.value,
            **limits(estimate.low, estimate.high),
        }
        for comparison in comparisons
        for name in COLOURS
        if (estimate := getattr(comparison, name)).value == estimate.value  # NaN is not drawn.
    ]
    kinds = [*COLOURS]
    base = alt.Chart(chart_rows(rows)).encode(
        y=alt.Y("model:N", title=None, sort=None, axis=alt.Axis(labelLimit=480)),
        yOffset=alt.YOffset("labels:N", sort=kinds),
        color=alt.Color(
            "labels:N", sort=kinds, scale=alt.Scale(domain=kinds, range=[*COLOURS.values()])
        ),
    )
    return alt.layer(
        base.transform_filter("isValid(datum.low)").mark_rule().encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=alt.X("spearman:Q", title="Spearman's rho"),
            shape=alt.Shape("labels:N", sort=kinds, scale=alt.Scale(domain=kinds)),
        ),
    ).properties(width=420, height=alt.Step(18))
