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
    LabelledSet,
    Row,
    read_classification,
)
from giccs.evalrank.dependence import numbered, variances
from giccs.evalrank.logistic import COSTS, FOLDS, INNER_FOLDS, Learner, too_few
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
UNKNOWN = "texts without a vector count as zeros"
METHOD = "logistic regression on standardised vectors"


@dataclass(frozen=True, slots=True)
class Answers:
    """What was predicted of the rows of a set that were tested."""

    rows: Sequence[Row]
    predicted: Sequence[str]
    fold: Sequence[int]
    costs: Sequence[float]
    """C of each classifier."""
    unknown: int
    """Texts without a vector, of training rows too."""
    unconverged: int
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
        for one in progress(data.sets, self.name, len(data.sets)):
            found = self._asked(model, one, progress)
            tables.append(_table(one.name, found))
            groups.append(Group({"set": one.name}, {"accuracy": _measured(one, found)}))
        return TaskOutput(
            metrics={"accuracy": mean_accuracy([group.metrics["accuracy"] for group in groups])},
            groups=tuple(groups),
            environment={
                "scikit-learn": version("scikit-learn"),
            },
            predictions=_joined(tables),
        )

    def _asked(self, model: VectorModel, one: LabelledSet, progress: Progress) -> Answers | str:
        """Return what is predicted of a set, or why nothing can be."""
        train, dev, test = (
            np.asarray(one.part(part), np.intp) for part in ("train", "dev", "test")
        )
        learnt = train if one.parts else np.arange(len(one.rows))
        if reason := too_few([one.rows[row].label for row in learnt], folds=not len(dev)):
            return reason
        vectors, unknown = features(model, one.rows, progress)
        learner = Learner(vectors, [row.label for row in one.rows], self.seed)
        if not one.parts:
            return Answers(one.rows, *learner.cross_validated(), unknown, learner.unconverged)
        predicted, cost = learner.tested(train, dev, test)
        rows = [one.rows[row] for row in test]
        return Answers(rows, predicted, [0] * len(rows), [cost], unknown, learner.unconverged)


def open_tasks(options: TaskOptions) -> list[Classification]:
    """Return the task."""
    return [Classification(options.seed)]


TASK = TaskKind(open_tasks)


def features(model: VectorModel, rows: Sequence[Row], progress: Progress) -> tuple[Floats, int]:
    """Return (N, D) vectors of sentences, or (N, 2 D) of pairs; and how many texts have no vector."""
    sides = [[row.texts[side] for row in rows] for side in range(len(rows[0].texts))]
    found = cached_vectors(model, [text for side in sides for text in side], progress)
    unknown = np.isnan(found).any(axis=1, keepdims=True)
    found = np.where(unknown, np.float32(0), found)
    if len(sides) == 1:
        return found, int(np.count_nonzero(unknown))
    left, right = found[: len(rows)], found[len(rows) :]
    return np.hstack([np.abs(left - right), left * right]), int(np.count_nonzero(unknown))


def accuracy(right: Sequence[bool], texts: Sequence[tuple[str, ...]]) -> Estimate:
    """Return the share of right answers, with Wilson's interval widened for rows that share texts.

    Its width grows by the root of the design effect (Kish 1965), at least 1: the variance of the share with
    the products of all rows that have a text in common (Fafchamps and Gubert 2007) over that of independent
    rows. ``stderr`` is the root of the former.

    >>> found = accuracy([True, True, True, False], [("a",), ("b",), ("c",), ("d",)])
    >>> f"{found.value} [{found.low:.3f}, {found.high:.3f}]"
    '0.75 [0.301, 0.954]'
    >>> twice = accuracy([True, True, True, False] * 2, [("a",), ("b",), ("c",), ("d",)] * 2)
    >>> twice.extra["stderr"] == found.extra["stderr"]  # no more was seen
    True
    """
    n, p = len(right), float(np.mean(right))
    alone = p * (1 - p) / n
    shared = variances(np.asarray(right, float) - p, *numbered(texts)).shared / n**2
    effect = max(1.0, shared / alone) if alone else 1.0
    low, high = (p + (limit - p) * math.sqrt(effect) for limit in wilson(sum(right), n))
    extra = {"stderr": math.sqrt(alone * effect)}
    return Estimate(p, max(0.0, low), min(1.0, high), n, extra=extra)


def mean_accuracy(found: Sequence[Estimate]) -> Estimate:
    """Return the mean over the sets that have an accuracy; n is their number, `reason` says what is left out.

    The distances of its limits are the root of the sum of squares of theirs, over n (Zou and Donner 2008,
    Stat. Med. 27).

    >>> mean_accuracy([Estimate(0.5, 0.4, 0.6, 10), Estimate(0.9, 0.8, 0.92, 20)]).value
    0.7
    """
    known = [one for one in found if not math.isnan(one.value)]
    unknown = sum(one.extra.get("unknown", 0) for one in known)
    said = _said({"data sets left out": len(found) - len(known), UNKNOWN: unknown})
    if not known:
        return Estimate(math.nan, math.nan, math.nan, 0, said or "no data sets")
    n, mean = len(known), sum(one.value for one in known) / len(known)
    below = math.hypot(*(one.value - one.low for one in known)) / n
    above = math.hypot(*(one.high - one.value for one in known)) / n
    return Estimate(mean, mean - below, mean + above, n, said)


def _measured(one: LabelledSet, found: Answers | str) -> Estimate:
    if isinstance(found, str):
        return Estimate(math.nan, math.nan, math.nan, len(one.rows), found)
    labels = [row.label for row in found.rows]
    right = [label == answer for label, answer in zip(labels, found.predicted, strict=True)]
    measured = accuracy(right, [row.texts for row in found.rows])
    said = _said(
        {UNKNOWN: found.unknown, "fits of the classifier did not converge": found.unconverged}
    )
    extra: Mapping[str, Any] = {
        **measured.extra,
        "majority": max(Counter(labels).values()) / len(labels),
        "costs": list(found.costs),
        "unknown": found.unknown,
    }
    return Estimate(measured.value, measured.low, measured.high, measured.n, said, extra)


def _said(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{count} {what}" for what, count in counts.items() if count)


def _table(name: str, found: Answers | str) -> Mapping[str, Sequence[Any]]:
    rows = [] if isinstance(found, str) else found.rows
    return {
        "set": [name] * len(rows),
        "place": [row.place for row in rows],
        "label": [row.label for row in rows],
        "prediction": [] if isinstance(found, str) else list(found.predicted),
        "fold": [] if isinstance(found, str) else list(found.fold),
    }


def _joined(tables: Sequence[Mapping[str, Sequence[Any]]]) -> Any:
    import polars

    columns = ("set", "place", "label", "prediction", "fold")
    schema = dict.fromkeys(columns, polars.String) | {"fold": polars.Int64}
    return polars.DataFrame(
        {column: [cell for table in tables for cell in table[column]] for column in columns},
        schema=schema,
    )
