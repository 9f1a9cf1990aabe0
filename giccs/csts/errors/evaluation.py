"""How many topics, and how well are errors found then? (L-CSTS, section 4.3, Table 2, Figure 10)

"We use half of the dataset to generate answer clusters and ranking distributions, and the other half to
evaluate". The paper's best K is the one with the highest F1 on the half that is evaluated, which flatters;
here K is chosen on the training half, and the paper's choice stands beside it by its name.

Chosen here, where the paper says nothing: the halves are drawn at random by the seed (of an odd number the
training half is the smaller one); the pairs of a half are ranked among themselves; equal F1 takes the
smaller K.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from giccs.csts.errors.clustering import assigned, distinct, topics
from giccs.csts.errors.measures import all_called_errors, measured, values
from giccs.csts.errors.ranking import label_counts, rank_labels, similarities
from giccs.csts.errors.records import DISTRIBUTIONS, UNKNOWN, Ints, Vectors
from giccs.csts.records import LABELS
from giccs.measures.metrics import Estimate
from giccs.progress import Progress, silent

__all__ = ["PAPER_KS", "Evaluation", "Outcome", "Point", "evaluate", "halves", "predefined"]

PAPER_KS = tuple(range(1, 21))
"""Table 2: "selected in the range of 1-20"."""
FEWEST = 4
"""Reannotated instances without which there are no two halves of more than one."""

Found = Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Point:
    """The measures at one K under one distribution, on both halves; without intervals."""

    distribution: str
    k: int
    training: Mapping[str, float]
    evaluation: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row of Table 2: one distribution without clusters, and with the K that was chosen."""

    distribution: str
    k: int
    """Highest F1 on the training half."""
    clustered: Found
    """On the evaluation half, with intervals."""
    not_clustered: Found
    """The same at K = 1."""
    paper_k: int
    """Highest F1 on the evaluation half: the paper's way, which has seen what it is measured on."""
    paper_f1: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the halves say."""

    training: int
    evaluation: int
    """Instances of the halves."""
    error_rate: Estimate
    """Of the evaluation half: the share of labels that differ from the reannotated ones."""
    all_errors: Found
    """The baseline on the evaluation half: everything is called an error."""
    outcomes: Mapping[str, Outcome]
    """By distribution."""
    curve: tuple[Point, ...]
    ks_left_out: tuple[int, ...]
    """Asked for, but the training half has fewer distinct answer pairs."""

    def document(self) -> dict[str, Any]:
        """Return the evaluation as JSON has it."""
        return {
            "training": self.training,
            "evaluation": self.evaluation,
            "error_rate": self.error_rate.document(),
            "all_errors": _documents(self.all_errors),
            "outcomes": [
                {
                    "distribution": one.distribution,
                    "k": one.k,
                    "clustered": _documents(one.clustered),
                    "not_clustered": _documents(one.not_clustered),
                    "k_best_on_evaluation": one.paper_k,
                    "f1_best_on_evaluation": one.paper_f1,
                }
                for one in self.outcomes.values()
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
    by_cluster: bool = False,
    seed: int = 0,
    resamples: int = 1000,
    progress: Progress = silent,
) -> Evaluation:
    """Measure all three distributions over `ks`, and choose K for each on the training half.

    label, truth: (N,) of 1 to 5, the annotated and the reannotated ones, all known.
    by_cluster: the original and the reannotated distribution are those of each cluster, not of the half.

    Raises ValueError for fewer than four instances, labels off the scale, or where no K can be had.
    """
    _check(vectors, label, truth, ks)
    train, test = halves(len(label), seed)
    most = distinct(vectors.both[train])
    usable = sorted({k for k in ks if k <= most})
    if not usable:
        raise ValueError(
            f"k from {min(ks)} is asked for, but the training half has {most} distinct answer pairs"
        )
    learnt, judged = (_Half(vectors.rows(at), label[at], truth[at]) for at in (train, test))
    asked = sorted({1, *usable})
    labels = {
        (name, k): found
        for k in progress(asked, "clusters", len(asked))
        for name, found in _rank_labels_at(k, learnt, judged, by_cluster, seed).items()
    }
    points = {
        at: Point(*at, learnt.values(of_learnt), judged.values(of_judged))
        for at, (of_learnt, of_judged) in labels.items()
    }

    def outcome(name: str) -> Outcome:
        k, paper_k = (_best(points, name, usable, half) for half in ("training", "evaluation"))
        clustered, alone = (
            measured(
                judged.label, labels[name, at][1], judged.truth, resamples=resamples, seed=seed
            )
            for at in (k, 1)
        )
        paper_f1 = points[name, paper_k].evaluation["f1"]
        return Outcome(name, k, clustered, alone, paper_k, paper_f1)

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
    """Return the rows of the training half and those of the evaluation half, each in rising order.

    >>> train, test = halves(5, seed=0)
    >>> len(train), sorted([*train.tolist(), *test.tolist()])
    (2, [0, 1, 2, 3, 4])
    """
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def predefined(
    distribution: str, label: Ints, truth: Ints, cluster: Ints, k: int, *, by_cluster: bool
) -> Ints:
    """Return (k, 5) counts of the labels that a distribution takes its shares from (4.3).

    truth: (N,), `UNKNOWN` where an instance was not reannotated.
    """
    if distribution == "even":
        return np.ones((k, len(LABELS)), dtype=np.intp)
    source = {"original": label, "reannotated": truth}[distribution]
    known = source != UNKNOWN
    if not known.any():
        raise ValueError(f"the {distribution} distribution needs labels; there are none")
    return label_counts(source[known], cluster[known], k, by_cluster=by_cluster)


@dataclass(frozen=True, slots=True)
class _Half:
    vectors: Vectors
    label: Ints
    truth: Ints

    def values(self, ranked: Ints) -> dict[str, float]:
        return values(self.label, ranked, self.truth)


def _rank_labels_at(
    k: int, train: _Half, test: _Half, by_cluster: bool, seed: int
) -> dict[str, tuple[Ints, Ints]]:
    """Return, by distribution, the rank labels of both halves at K; all that is learnt is the first's."""
    clusters = topics(train.vectors.both, k, seed)
    of_train = assigned(clusters, train.vectors.both)
    sides = [
        (similarities(half.vectors.first, half.vectors.second), assigned(clusters, half.vectors.both))
        for half in (train, test)
    ]  # fmt: skip
    found = {}
    for name in DISTRIBUTIONS:
        counts = predefined(name, train.label, train.truth, of_train, k, by_cluster=by_cluster)
        of_both = [rank_labels(similarity, cluster, counts) for similarity, cluster in sides]
        found[name] = (of_both[0], of_both[1])
    return found


def _best(points: Mapping[tuple[str, int], Point], name: str, ks: Sequence[int], half: str) -> int:
    """Return the K with the highest F1, the smallest of equals; the smallest K where none has an F1."""

    def f1(k: int) -> float:
        value: float = getattr(points[name, k], half)["f1"]
        return -1.0 if math.isnan(value) else value

    return max(ks, key=lambda k: (f1(k), -k))


def _check(vectors: Vectors, label: Ints, truth: Ints, ks: Sequence[int]) -> None:
    if not len(vectors) == len(label) == len(truth):
        sizes = f"{len(vectors)} vectors, {len(label)} labels, {len(truth)} reannotated labels"
        raise ValueError(f"{sizes}; one of each an instance is allowed")
    if len(label) < FEWEST:
        raise ValueError(f"{len(label)} reannotated instances; {FEWEST} or more are allowed")
    for what, given in (("label", label), ("truth", truth)):
        off = given[~np.isin(given, LABELS)]
        if len(off):
            raise ValueError(f"a {what} is {off[0]}; 1 to 5 are allowed")
    if not ks or min(ks) < 1:
        raise ValueError(f"ks are {list(ks)}; numbers from 1 are allowed")


def _documents(found: Found) -> dict[str, Any]:
    return {name: one.document() for name, one in found.items()}
