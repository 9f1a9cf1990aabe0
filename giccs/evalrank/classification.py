"""Classification of sentences by their vectors: the downstream tasks of EvalRank (sections 5.1, 6.1).

The task uses the ten sets of `giccs.evalrank.classification_data` and the logistic regression of
`giccs.evalrank.logistic`. The features of a pair of sentences with vectors u and v are the elementwise
|u - v| and u · v, as in SentEval. Texts of unknown words only have a zero vector and are counted.

Intervals are Wilson's, widened if rows share texts, as in MPQA and SICK. They refer to the sampling of test
sentences, not of training sentences. The mean over sets treats the sets as independent, although SST and MR
share reviews.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.stats.estimates import Estimate
from giccs.evalrank.classification_data import (
    ClassificationData,
    LabelledRow,
    LabelledSet,
    read_classification,
)
from giccs.evalrank.dependence import number_texts, variances
from giccs.evalrank.logistic import COSTS, FOLDS, INNER_FOLDS, Learner, too_few_reason
from giccs.evalrank.vector_cache import cached_vectors
from giccs.measures.comparison import wilson
from giccs.measures.results import Group, TaskOutput
from giccs.models.abilities import VectorModel
from giccs.progress import Progress, silent
from giccs.tasks import TaskKind, TaskOptions
from giccs.tasks.refusals import missing_ability_reason

Floats = NDArray[np.float32]
UNKNOWN_TEXTS_NOTE = "{n:d} texts without a vector count as zeros"
METHOD = "logistic regression on standardised vectors"


@dataclass(frozen=True, slots=True)
class SetPredictions:
    """Predictions for the test rows of a set."""

    rows: Sequence[LabelledRow]
    labels: Sequence[str]
    fold: Sequence[int]
    costs: Sequence[float]
    """Regularisation parameter C of each classifier."""
    n_unknown: int
    """Number of texts without a vector, including texts of training rows."""
    n_unconverged: int
    """Number of fits that did not converge."""


@dataclass(frozen=True, slots=True)
class Classification:
    """Accuracy per set, and its mean over sets."""

    seed: int = 0
    name: str = field(default="classification", init=False)
    default_data: ClassVar[str] = ""
    read: ClassVar = staticmethod(read_classification)

    def refuses(self, model: Any) -> str:
        """Return why the model is unsuitable, with a remedy, or an empty string."""
        return missing_ability_reason(model, VectorModel, self.name)

    def parameters(self, model: VectorModel, data: ClassificationData) -> dict[str, Any]:
        """Return the settings that the metrics depend on, besides model, data and version."""
        return {
            "setting": "",
            "classifier": {
                "method": METHOD,
                "costs": list(COSTS),
                "folds": FOLDS,
                "inner_folds": INNER_FOLDS,
                "seed": self.seed,
            },
        }

    def measure(
        self, model: VectorModel, data: ClassificationData, progress: Progress = silent
    ) -> TaskOutput:
        """Encode each set, fit the classifier and predict the test rows."""
        tables, groups = [], []
        for labelled_set in progress(data.sets, self.name, len(data.sets)):
            predictions = self._predict_set(model, labelled_set, progress)
            tables.append(_prediction_columns(labelled_set.name, predictions))
            groups.append(
                Group(
                    {"set": labelled_set.name},
                    {"accuracy": _measure_set(labelled_set, predictions)},
                )
            )
        return TaskOutput(
            metrics={"accuracy": mean_accuracy([group.metrics["accuracy"] for group in groups])},
            groups=tuple(groups),
            environment={
                "scikit-learn": version("scikit-learn"),
            },
            predictions=_join_predictions(tables),
        )

    def _predict_set(
        self, model: VectorModel, labelled_set: LabelledSet, progress: Progress
    ) -> SetPredictions | str:
        """Return the predictions for a set, or the reason why there are none."""
        train, dev, test = (
            np.asarray(labelled_set.rows_of_split(part), np.intp)
            for part in ("train", "dev", "test")
        )
        training_rows = train if labelled_set.splits else np.arange(len(labelled_set.rows))
        if reason := too_few_reason(
            [labelled_set.rows[row].label for row in training_rows], folds=not len(dev)
        ):
            return reason
        vectors, n_unknown = features(model, labelled_set.rows, progress)
        learner = Learner(vectors, [row.label for row in labelled_set.rows], self.seed)
        if not labelled_set.splits:
            return SetPredictions(
                labelled_set.rows, *learner.cross_validate(), n_unknown, learner.n_unconverged
            )
        labels, cost = learner.predict_test(train, dev, test)
        rows = [labelled_set.rows[row] for row in test]
        return SetPredictions(
            rows, labels, [0] * len(rows), [cost], n_unknown, learner.n_unconverged
        )


def open_tasks(options: TaskOptions) -> list[Classification]:
    """Return the classification task."""
    return [Classification(options.seed)]


TASK = TaskKind(open_tasks)


def features(
    model: VectorModel, rows: Sequence[LabelledRow], progress: Progress
) -> tuple[Floats, int]:
    """Return (N, D) features of sentences or (N, 2 D) of pairs, and the number of texts without a vector."""
    sides = [[row.texts[side] for row in rows] for side in range(len(rows[0].texts))]
    vectors = cached_vectors(model, [text for side in sides for text in side], progress)
    unknown = np.isnan(vectors).any(axis=1, keepdims=True)
    vectors = np.where(unknown, np.float32(0), vectors)
    if len(sides) == 1:
        return vectors, int(np.count_nonzero(unknown))
    left, right = vectors[: len(rows)], vectors[len(rows) :]
    return np.hstack([np.abs(left - right), left * right]), int(np.count_nonzero(unknown))


def accuracy(is_correct: Sequence[bool], texts: Sequence[tuple[str, ...]]) -> Estimate:
    """Return the share of correct predictions, with Wilson's interval widened for rows that share texts.

    The interval is scaled by the square root of the design effect (Kish 1965): the dyadic-robust variance of
    the share (Fafchamps and Gubert 2007) divided by the variance for independent rows, at least 1. ``stderr``
    is the square root of the variance after scaling.

    >>> estimate = accuracy([True, True, True, False], [("a",), ("b",), ("c",), ("d",)])
    >>> f"{estimate.value} [{estimate.low:.3f}, {estimate.high:.3f}]"
    '0.75 [0.301, 0.954]'
    >>> duplicated = accuracy([True, True, True, False] * 2, [("a",), ("b",), ("c",), ("d",)] * 2)
    >>> duplicated.extra["stderr"] == estimate.extra["stderr"]  # duplicates add no information
    True
    """
    n, p = len(is_correct), float(np.mean(is_correct))
    independent_variance = p * (1 - p) / n
    shared_variance = (
        variances(np.asarray(is_correct, float) - p, *number_texts(texts)).shared_text / n**2
    )
    design_effect = (
        max(1.0, shared_variance / independent_variance) if independent_variance else 1.0
    )
    low, high = (p + (limit - p) * math.sqrt(design_effect) for limit in wilson(sum(is_correct), n))
    extra = {"stderr": math.sqrt(independent_variance * design_effect)}
    return Estimate(p, max(0.0, low), min(1.0, high), n, extra=extra)


def mean_accuracy(accuracies: Sequence[Estimate]) -> Estimate:
    """Return the mean over the sets with an accuracy; n is their number, and `reason` lists exclusions.

    The distance of each limit from the mean is the square root of the sum of the squared distances of the
    sets, divided by n (Zou and Donner 2008, Stat. Med. 27).

    >>> mean_accuracy([Estimate(0.5, 0.4, 0.6, 10), Estimate(0.9, 0.8, 0.92, 20)]).value
    0.7
    """
    defined = [estimate for estimate in accuracies if not math.isnan(estimate.value)]
    n_unknown = sum(estimate.extra.get("unknown", 0) for estimate in defined)
    remarks = []
    if n_excluded := len(accuracies) - len(defined):
        remarks.append(note("{n:d} data sets excluded", n=n_excluded))
    if n_unknown:
        remarks.append(note(UNKNOWN_TEXTS_NOTE, n=n_unknown))
    reason = "; ".join(remarks)
    if not defined:
        return Estimate(math.nan, math.nan, math.nan, 0, reason or note("no data sets"))
    n, mean = len(defined), sum(estimate.value for estimate in defined) / len(defined)
    lower_width = math.hypot(*(estimate.value - estimate.low for estimate in defined)) / n
    upper_width = math.hypot(*(estimate.high - estimate.value for estimate in defined)) / n
    return Estimate(mean, mean - lower_width, mean + upper_width, n, reason)


def _measure_set(labelled_set: LabelledSet, predictions: SetPredictions | str) -> Estimate:
    if isinstance(predictions, str):
        return Estimate(math.nan, math.nan, math.nan, len(labelled_set.rows), predictions)
    labels = [row.label for row in predictions.rows]
    is_correct = [
        label == prediction for label, prediction in zip(labels, predictions.labels, strict=True)
    ]
    estimate = accuracy(is_correct, [row.texts for row in predictions.rows])
    remarks = []
    if n := predictions.n_unknown:
        remarks.append(note(UNKNOWN_TEXTS_NOTE, n=n))
    if n := predictions.n_unconverged:
        remarks.append(note("{n:d} fits of the classifier did not converge", n=n))
    extra: Mapping[str, Any] = {
        **estimate.extra,
        "majority": max(Counter(labels).values()) / len(labels),
        "costs": list(predictions.costs),
        "unknown": predictions.n_unknown,
    }
    return replace(estimate, reason="; ".join(remarks), extra=extra)


def _prediction_columns(
    name: str, predictions: SetPredictions | str
) -> Mapping[str, Sequence[Any]]:
    rows = [] if isinstance(predictions, str) else predictions.rows
    return {
        "set": [name] * len(rows),
        "place": [row.location for row in rows],
        "label": [row.label for row in rows],
        "prediction": [] if isinstance(predictions, str) else list(predictions.labels),
        "fold": [] if isinstance(predictions, str) else list(predictions.fold),
    }


def _join_predictions(tables: Sequence[Mapping[str, Sequence[Any]]]) -> Any:
    import polars

    columns = ("set", "place", "label", "prediction", "fold")
    schema = dict.fromkeys(columns, polars.String) | {"fold": polars.Int64}
    return polars.DataFrame(
        {column: [cell for table in tables for cell in table[column]] for column in columns},
        schema=schema,
    )
