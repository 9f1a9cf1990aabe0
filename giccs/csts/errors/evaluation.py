"""Evaluation of error identification, and choice of the number of topics (L-CSTS, 4.3, Table 2, Figure 10).

"We use half of the dataset to generate answer clusters and ranking distributions, and the other half to
evaluate". The paper's best K has the highest F1 on the evaluation half, which is optimistic. Here K is
selected on the training half, and the paper's selection is reported beside it.

Unspecified details are chosen here: the halves are random by the seed (for an odd number the training half is
the smaller one); the pairs of a half are ranked among themselves; the smallest K is selected for equal F1.

Measures. An error is a label that differs from the reannotated one (1, footnote 1). A suspicious label
differs from the rank label (4.2). Neither has a tolerance. All measures are functions of the counts of the
125 triples of label, rank label and truth, so that a bootstrap over instances resamples these counts.

Calling every label an error finds every error: F1 = 2e / (1 + e) for an error rate e, which is 0.71 for the
paper's 55 %. Compare F1 with this baseline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.charts import BLACK, BLUE, GREEN, VERMILION, chart_rows
from bws.stats.estimates import Estimate
from giccs.csts.data import LABELS
from giccs.csts.errors.answers import Ints, Vectors
from giccs.csts.errors.detection import (
    DISTRIBUTIONS,
    assigned,
    distinct,
    predefined,
    rank_labels,
    similarities,
    topics,
)
from giccs.measures.comparison import paired_correlations
from giccs.measures.metrics import correlations, percentile_estimate, weighted_spearman
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    import altair as alt

PAPER_KS = tuple(range(1, 21))
"""Table 2: "selected in the range of 1-20"."""
PUBLISHED_CORRELATIONS = {"answers": 0.5544, "labels": 0.4922}
"""L-CSTS, 4.1: `truth_correlations` of the answers of GPT-3.5, encoded by text-embedding-ada-002."""
FEWEST = 4
"""Minimum number of reannotated instances for two halves of more than one."""

Metrics = Mapping[str, Estimate]

MEASURES = ("precision", "recall", "f1", "mcc", "spearman")

Counts = NDArray[np.float64]
Values = Mapping[str, Counts]

LABEL, RANKED, TRUTH = np.indices((5, 5, 5)).reshape(3, -1) + LABELS[0]
"""Components of the 125 cells."""
ERROR, SUSPICIOUS = LABEL != TRUTH, LABEL != RANKED


REASONS = {
    "precision": "no label is suspicious",
    "recall": "there are no errors",
    "f1": "there are no errors",
    "mcc": "all or none are errors, or all or none are suspicious",
    "spearman": "rank labels or reannotated labels are constant",
}
"""Reasons why a measure is NaN."""

COLOURS = (BLUE, VERMILION, GREEN, BLACK)
"""The baseline is black."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])
"""Lines are also distinguished by their pattern."""
BASELINE = "all called errors"


@dataclass(frozen=True, slots=True)
class Point:
    """The measures for one K and one distribution on both halves, without intervals."""

    distribution: str
    k: int
    training: Mapping[str, float]
    evaluation: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row of Table 2: one distribution without clusters, and with the selected K."""

    distribution: str
    k: int
    """K with the highest F1 on the training half."""
    clustered: Metrics
    """Measures on the evaluation half, with intervals."""
    not_clustered: Metrics
    """The same measures for K = 1."""
    paper_k: int
    """K with the highest F1 on the evaluation half, as in the paper; it is selected on the data of its
    evaluation."""
    paper_f1: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Results of the evaluation on two halves."""

    training: int
    evaluation: int
    """Number of instances in the evaluation half."""
    error_rate: Estimate
    """Share of labels in the evaluation half that differ from the reannotated ones."""
    all_errors: Metrics
    """The baseline on the evaluation half that calls every label an error."""
    outcomes: Mapping[str, Outcome]
    """By distribution."""
    curve: tuple[Point, ...]
    ks_left_out: tuple[int, ...]
    """Requested values of K that exceed the number of distinct answer pairs in the training half."""

    def document(self) -> dict[str, Any]:
        """Return the evaluation as a JSON-serialisable dict."""
        return {
            "training": self.training,
            "evaluation": self.evaluation,
            "error_rate": self.error_rate.document(),
            "all_errors": _documents(self.all_errors),
            "outcomes": [
                {
                    "distribution": outcome.distribution,
                    "k": outcome.k,
                    "clustered": _documents(outcome.clustered),
                    "not_clustered": _documents(outcome.not_clustered),
                    "k_best_on_evaluation": outcome.paper_k,
                    "f1_best_on_evaluation": outcome.paper_f1,
                }
                for outcome in self.outcomes.values()
            ],
            "curve": [
                {"distribution": point.distribution, "k": point.k}
                | {"training": dict(point.training), "evaluation": dict(point.evaluation)}
                for point in self.curve
            ],
            "ks_left_out": list(self.ks_left_out),
        }


def evaluate(
    vectors: Vectors,
    label: Ints,
    truth: Ints,
    ks: Sequence[int] = PAPER_KS,
    *,
    seed: int = 0,
    resamples: int = 1000,
    progress: Progress = silent,
) -> Evaluation:
    """Evaluate all three distributions over `ks`, and select K for each on the training half.

    label, truth: (N,) annotated and reannotated labels, 1 to 5, all known.

    Raises ValueError for fewer than four instances, labels outside the scale, or if all `ks` are impossible.
    """
    _check(vectors, label, truth, ks)
    train, test = halves(len(label), seed)
    most = distinct(vectors.joint[train])
    usable = sorted({k for k in ks if k <= most})
    if not usable:
        raise ValueError(
            f"k from {min(ks)} requested, but the training half has {most} distinct answer pairs"
        )
    learnt, evaluated = (_Half(vectors.rows(at), label[at], truth[at]) for at in (train, test))
    k_values = sorted({1, *usable})
    labels = {
        (name, k): metrics
        for k in progress(k_values, "clusters", len(k_values))
        for name, metrics in _rank_labels_at(k, learnt, evaluated, seed).items()
    }
    points = {
        at: Point(*at, learnt.values(of_learnt), evaluated.values(of_judged))
        for at, (of_learnt, of_judged) in labels.items()
    }

    def outcome(name: str) -> Outcome:
        k, paper_k = (_best(points, name, usable, half) for half in ("training", "evaluation"))
        clustered, single_cluster = (
            measured(
                evaluated.label,
                labels[name, at][1],
                evaluated.truth,
                resamples=resamples,
                seed=seed,
            )
            for at in (k, 1)
        )
        paper_f1 = points[name, paper_k].evaluation["f1"]
        return Outcome(name, k, clustered, single_cluster, paper_k, paper_f1)

    baseline = all_called_errors(label[test], truth[test], resamples=resamples, seed=seed)
    return Evaluation(
        training=len(train),
        evaluation=len(test),
        error_rate=baseline["precision"],
        all_errors=baseline,
        outcomes={name: outcome(name) for name in DISTRIBUTIONS},
        curve=tuple(points[name, k] for name in DISTRIBUTIONS for k in usable),
        ks_left_out=tuple(sorted({k for k in ks if k > most})),
    )


def halves(n: int, seed: int) -> tuple[Ints, Ints]:
    """Return the rows of the training half and of the evaluation half, each in ascending order.

    >>> train, test = halves(5, seed=0)
    >>> len(train), sorted([*train.tolist(), *test.tolist()])
    (2, [0, 1, 2, 3, 4])
    """
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


@dataclass(frozen=True, slots=True)
class _Half:
    vectors: Vectors
    label: Ints
    truth: Ints

    def values(self, ranked: Ints) -> dict[str, float]:
        return values(self.label, ranked, self.truth)


def _rank_labels_at(k: int, train: _Half, test: _Half, seed: int) -> dict[str, tuple[Ints, Ints]]:
    """Return, by distribution, the rank labels of both halves for K, fitted on the training half."""
    clusters = topics(train.vectors.joint, k, seed)
    sides = [
        (similarities(half.vectors.first, half.vectors.second), assigned(clusters, half.vectors.joint))
        for half in (train, test)
    ]  # fmt: skip
    metrics = {}
    for name in DISTRIBUTIONS:
        counts = predefined(name, train.label, train.truth)
        of_both = [rank_labels(similarity, cluster, counts) for similarity, cluster in sides]
        metrics[name] = (of_both[0], of_both[1])
    return metrics


def _best(points: Mapping[tuple[str, int], Point], name: str, ks: Sequence[int], half: str) -> int:
    """Return the smallest K with the highest F1, or the smallest K if F1 is never defined."""

    def f1(k: int) -> float:
        value: float = getattr(points[name, k], half)["f1"]
        return -1.0 if math.isnan(value) else value

    return max(ks, key=lambda k: (f1(k), -k))


def _check(vectors: Vectors, label: Ints, truth: Ints, ks: Sequence[int]) -> None:
    if not len(vectors) == len(label) == len(truth):
        sizes = f"{len(vectors)} vectors, {len(label)} labels, {len(truth)} reannotated labels"
        raise ValueError(f"{sizes}; expected one of each per instance")
    if len(label) < FEWEST:
        raise ValueError(f"{len(label)} reannotated instances; expected at least {FEWEST}")
    for name, labels in (("label", label), ("truth", truth)):
        off = labels[~np.isin(labels, LABELS)]
        if len(off):
            raise ValueError(f"{name} {off[0]} is out of range; expected 1 to 5")
    if not ks or min(ks) < 1:
        raise ValueError(f"ks are {list(ks)}; expected integers from 1")


def _documents(metrics: Metrics) -> dict[str, Any]:
    return {name: estimate.document() for name, estimate in metrics.items()}


def measured(
    label: Ints, ranked: Ints, truth: Ints, *, resamples: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """Return `MEASURES` of N instances: labels, rank labels and reannotated labels, (N,) of 1 to 5.

    ``spearman`` is between rank labels and reannotated labels. Intervals are the 2.5 and 97.5 percentiles of
    `resamples` bootstrap samples of N instances. NaN with a reason: precision if nothing is suspicious;
    recall and F1 without errors; MCC if all or none are errors, or all or none suspicious.

    >>> measures = measured(np.array([1, 2, 3, 4]), np.array([5, 5, 3, 4]), np.array([5, 2, 3, 5]))
    >>> [measures[name].value for name in ("precision", "recall", "f1")]
    [0.5, 0.5, 0.5]
    """
    return _estimates(_counts(label, ranked, truth), _statistics, resamples, seed)


def values(label: Ints, ranked: Ints, truth: Ints) -> dict[str, float]:
    """Return the values of `measured`, without intervals and reasons."""
    full_statistics = _statistics(_counts(label, ranked, truth)[None, :].astype(np.float64))
    return {name: float(value[0]) for name, value in full_statistics.items()}


def _counts(label: Ints, ranked: Ints, truth: Ints) -> Ints:
    """Return (125,) counts of the cells."""
    cells = np.ravel_multi_index((label - 1, ranked - 1, truth - 1), (5, 5, 5))
    return np.bincount(cells, minlength=len(LABEL))


def truth_correlations(
    vectors: Vectors, label: Ints, truth: Ints, pair: Ints, *, resamples: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """Return Spearman's correlations with the reannotated labels (L-CSTS, 4.1, correlation analysis).

    ``answers`` is that of the cosine of the two answers, ``labels`` that of the original labels, and
    ``difference`` the first minus the second. vectors, label, truth: N instances; pair: (N,) sentence pairs 0
    … P-1. Intervals are jackknife intervals over sentence pairs. NaN with a reason for constant values.
    """
    cosines = similarities(vectors.first, vectors.second).astype(np.float64)
    labels, score = label.astype(np.float64), truth.astype(np.float64)
    options: dict[str, Any] = {"resamples": resamples, "seed": seed}
    estimates = {
        "answers": correlations(cosines, score, pair, **options)["spearman"],
        "labels": correlations(labels, score, pair, **options)["spearman"],
        "difference": paired_correlations(cosines, labels, score, pair, **options)["spearman"],
    }
    return {
        name: replace(estimate, reason=estimate.reason.replace("dialogue", "sentence pair"))
        for name, estimate in estimates.items()
    }


def all_called_errors(
    label: Ints, truth: Ints, *, resamples: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """Return the measures of calling every label an error; MCC is always undefined.

    >>> label, truth = np.ones(100, int), np.repeat([2, 1], [55, 45])
    >>> round(all_called_errors(label, truth)["f1"].value, 3)  # 2 · 0.55 / 1.55
    0.71
    """
    errors = int(np.count_nonzero(label != truth))
    counts = np.array([errors, len(label) - errors])
    return _estimates(counts, lambda drawn: _detected(drawn[:, 0], drawn[:, 1]), resamples, seed)


def _statistics(counts: Counts) -> Values:
    """Return each measure for (b, 125) counts."""
    detected, false, missed, right = (
        counts @ cells.astype(np.float64)
        for cells in (ERROR & SUSPICIOUS, ~ERROR & SUSPICIOUS, ERROR & ~SUSPICIOUS, ~ERROR & ~SUSPICIOUS)
    )  # fmt: skip
    spearman = weighted_spearman(
        RANKED.astype(np.float64), TRUTH.astype(np.float64), np.arange(len(TRUTH))
    )
    return {**_detected(detected, false, missed, right), "spearman": spearman(counts)}


def _detected(
    detected: Counts, false: Counts, missed: Counts | int = 0, right: Counts | int = 0
) -> Values:
    """Return precision, recall, F1 and MCC (Matthews 1975) of counts; NaN if undefined."""
    suspicious, errors = detected + false, detected + missed
    spread = suspicious * errors * (right + false) * (right + missed)
    agreement = detected * right - false * missed
    return {
        "precision": _ratio(detected, suspicious),
        "recall": _ratio(detected, errors),
        "f1": np.where(errors > 0, _ratio(2 * detected, suspicious + errors), math.nan),
        "mcc": _ratio(agreement, np.sqrt(spread)),
    }


def _ratio(above: Counts, below: Counts) -> Counts:
    defined = below > 0
    return np.where(defined, above / np.where(defined, below, 1.0), math.nan)


def _estimates(
    counts: Ints, statistics: Callable[[Counts], Values], resamples: int, seed: int
) -> dict[str, Estimate]:
    n = int(counts.sum())
    full_statistics = statistics(counts[None, :].astype(np.float64))
    if not n:
        return {
            name: Estimate(math.nan, math.nan, math.nan, 0, "no instances")
            for name in full_statistics
        }
    draws = np.random.default_rng(seed).multinomial(n, counts / n, size=resamples or 1)
    resampled = statistics(draws.astype(np.float64))
    points = {name: float(value[0]) for name, value in full_statistics.items()}
    return {
        name: percentile_estimate(
            value,
            resampled[name][:resamples],
            n,
            n,
            REASONS[name] if math.isnan(value) else "",
            "instances",
        )
        for name, value in points.items()
    }


def f1_over_k(evaluation: Evaluation) -> alt.Chart:
    """Return F1 on the evaluation half over K for each distribution, beside the all-error baseline."""
    import altair as alt

    baseline = evaluation.all_errors["f1"].value
    rows = [
        {"K": point.k, "F1": point.evaluation["f1"], "distribution": point.distribution}
        for point in evaluation.curve
    ]
    rows += [
        {"K": k, "F1": baseline, "distribution": BASELINE}
        for k in sorted({point.k for point in evaluation.curve})
    ]
    names = [*DISTRIBUTIONS, BASELINE]
    defined_rows = [row for row in rows if row["F1"] == row["F1"]]  # NaN is not drawn.
    chart: alt.Chart = (
        alt.Chart(chart_rows(defined_rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("K:Q", axis=alt.Axis(tickMinStep=1, format="d"), title="clusters (K)"),
            y=alt.Y("F1:Q", scale=alt.Scale(zero=False)),
            color=alt.Color("distribution:N", scale=alt.Scale(domain=names, range=list(COLOURS))),
            strokeDash=alt.StrokeDash(
                "distribution:N", scale=alt.Scale(domain=names, range=list(DASHES))
            ),
            tooltip=["distribution:N", "K:Q", alt.Tooltip("F1:Q", format=".3f")],
        )
        .properties(width=480, height=280)
    )
    return chart
