"""Downstream tasks of EvalRank's paper (sections 5.1, 6.1): what do vectors tell of a sentence's class?

Ten sets, see `giccs.evalrank.classification_data`; logistic regression on the vectors, see
`giccs.evalrank.logistic`. Of a pair of sentences with vectors u and v the features are |u - v| and
u · v, element by element, as in SentEval. A text of which a model of words knows nothing gets a vector of
zeros; how many there are is said.

An interval is Wilson's, widened where rows share texts, as in MPQA and SICK: it is about other test
sentences, not about other training sentences. The mean over the sets takes them as independent; SST and MR,
which share reviews, are not quite.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

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
from giccs.measures.metrics import Estimate
from giccs.measures.results import Group, TaskOutput
from giccs.models.abilities import VectorModel
from giccs.progress import Progress, silent
from giccs.tasks import TaskKind, TaskOptions
from giccs.tasks.refusals import missing_ability_reason

__all__ = ["TASK", "Classification", "accuracy", "mean_accuracy", "open_tasks"]

Floats = NDArray[np.float32]
UNKNOWN_TEXTS_NOTE = "texts without a vector count as zeros"
METHOD = "logistic regression on standardised vectors"


@dataclass(frozen=True, slots=True)
class SetPredictions:
    """What was predicted of the rows of a set that were tested."""

    rows: Sequence[LabelledRow]
    labels: Sequence[str]
    fold: Sequence[int]
    costs: Sequence[float]
    """C of each classifier."""
    n_unknown: int
    """Texts without a vector, of training rows too."""
    n_unconverged: int
    """Fits that ended before they were done."""


@dataclass(frozen=True, slots=True)
class Classification:
    """Accuracy on each of the sets, and its mean over them."""

    seed: int = 0
    name: str = field(default="classification", init=False)
    default_data: ClassVar[str] = ""
    read: ClassVar = staticmethod(read_classification)

    def refuses(self, model: Any) -> str:
        """Return why the model cannot do it and what could be done; empty where it can."""
        return missing_ability_reason(model, VectorModel, self.name)

    def parameters(self, model: VectorModel, data: ClassificationData) -> dict[str, Any]:
        """Return what the metrics depend on besides model, data and version."""
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
        """Encode, learn and test each set."""
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
        """Return what is predicted of a set, or why nothing can be."""
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
    """Return the task."""
    return [Classification(options.seed)]


TASK = TaskKind(open_tasks)


def features(
    model: VectorModel, rows: Sequence[LabelledRow], progress: Progress
) -> tuple[Floats, int]:
    """Return (N, D) vectors of sentences, or (N, 2 D) of pairs; and how many texts have no vector."""
    sides = [[row.texts[side] for row in rows] for side in range(len(rows[0].texts))]
    vectors = cached_vectors(model, [text for side in sides for text in side], progress)
    unknown = np.isnan(vectors).any(axis=1, keepdims=True)
    vectors = np.where(unknown, np.float32(0), vectors)
    if len(sides) == 1:
        return vectors, int(np.count_nonzero(unknown))
    left, right = vectors[: len(rows)], vectors[len(rows) :]
    return np.hstack([np.abs(left - right), left * right]), int(np.count_nonzero(unknown))


def accuracy(is_correct: Sequence[bool], texts: Sequence[tuple[str, ...]]) -> Estimate:
    """Return the share of right answers, with Wilson's interval widened for rows that share texts.

    Its width grows by the root of the design effect (Kish 1965), at least 1: the variance of the share with
    the products of all rows that have a text in common (Fafchamps and Gubert 2007) over that of independent
    rows. ``stderr`` is the root of the former.

    >>> estimate = accuracy([True, True, True, False], [("a",), ("b",), ("c",), ("d",)])
    >>> f"{estimate.value} [{estimate.low:.3f}, {estimate.high:.3f}]"
    '0.75 [0.301, 0.954]'
    >>> duplicated = accuracy([True, True, True, False] * 2, [("a",), ("b",), ("c",), ("d",)] * 2)
    >>> duplicated.extra["stderr"] == estimate.extra["stderr"]  # no more was seen
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
    """Return the mean over the sets that have an accuracy; n is their number, `reason` says what is left out.

    The distances of its limits are the root of the sum of squares of theirs, over n (Zou and Donner 2008,
    Stat. Med. 27).

    >>> mean_accuracy([Estimate(0.5, 0.4, 0.6, 10), Estimate(0.9, 0.8, 0.92, 20)]).value
    0.7
    """
    defined = [estimate for estimate in accuracies if not math.isnan(estimate.value)]
    n_unknown = sum(estimate.extra.get("unknown", 0) for estimate in defined)
    note = _count_note(
        {"data sets left out": len(accuracies) - len(defined), UNKNOWN_TEXTS_NOTE: n_unknown}
    )
    if not defined:
        return Estimate(math.nan, math.nan, math.nan, 0, note or "no data sets")
    n, mean = len(defined), sum(estimate.value for estimate in defined) / len(defined)
    lower_width = math.hypot(*(estimate.value - estimate.low for estimate in defined)) / n
    upper_width = math.hypot(*(estimate.high - estimate.value for estimate in defined)) / n
    return Estimate(mean, mean - lower_width, mean + upper_width, n, note)


def _measure_set(labelled_set: LabelledSet, predictions: SetPredictions | str) -> Estimate:
    if isinstance(predictions, str):
        return Estimate(math.nan, math.nan, math.nan, len(labelled_set.rows), predictions)
    labels = [row.label for row in predictions.rows]
    is_correct = [
        label == prediction for label, prediction in zip(labels, predictions.labels, strict=True)
    ]
    estimate = accuracy(is_correct, [row.texts for row in predictions.rows])
    note = _count_note(
        {
            UNKNOWN_TEXTS_NOTE: predictions.n_unknown,
            "fits of the classifier did not converge": predictions.n_unconverged,
        }
    )
    extra: Mapping[str, Any] = {
        **estimate.extra,
        "majority": max(Counter(labels).values()) / len(labels),
        "costs": list(predictions.costs),
        "unknown": predictions.n_unknown,
    }
    return Estimate(estimate.value, estimate.low, estimate.high, estimate.n, note, extra)


def _count_note(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{count} {text}" for text, count in counts.items() if count)


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
