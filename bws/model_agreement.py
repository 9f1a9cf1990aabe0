"""Agreement of a language model with people, beside the agreement of people with each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.base.tables import Cell, Column, ResultTable
from bws.common_tuples import CommonTuples
from bws.raw_agreement import chance_of_equal_answers
from bws.records import CanonicalJudgments
from bws.scoring.counting import counting
from bws.split_half import average_ranks, correlate, reliability, usual_split
from bws.stats.clusters import (
    MIN_CLUSTERS,
    clustered_mean,
    clustered_share,
    few_clusters_note,
    t_quantile,
    too_few_clusters_note,
)
from bws.stats.estimates import Estimate

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of agreement; NaN where undefined."""

    people: Estimate
    """People with each other."""
    model: Estimate
    """The model with people."""
    difference: Estimate
    """Model minus people."""
    chance: float
    """Expectation for random answers."""

    def document(self) -> dict[str, Any]:
        """Return the measure as a JSON-serialisable dict."""
        estimates = {
            "people": self.people,
            "model": self.model,
            "difference": self.difference,
        }
        return {name: each.document() for name, each in estimates.items()} | {"chance": self.chance}


@dataclass(frozen=True, eq=False)
class AgreementWithPeople:
    """Agreement of a model with people on the same tuples."""

    tuples: int
    """Tuples that the model and at least two judgments of people have in common."""
    answers: dict[str, Measure]
    """Share of equal answers: ``best``, ``worst``, and ``joint``, both at once."""
    scores: dict[str, Measure]
    """Correlation of counting scores, ``pearson`` and ``spearman``; that of people is the Spearman–Brown
    corrected split-half reliability."""
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON-serialisable dict."""
        return {
            "tuples": self.tuples,
            "answers": {name: each.document() for name, each in self.answers.items()},
            "scores": {name: each.document() for name, each in self.scores.items()},
            "notes": list(self.notes),
        }

    def result_table(self) -> ResultTable:
        """Return a row per measure."""
        columns = [
            Column("measure", "agreement"),
            Column("people", "people with each other", ".3f", align="right"),
            Column("model_with_people", "model with people", ".3f", align="right"),
            Column("difference", "difference", "+.3f", align="right"),
            Column("chance", "chance", ".3f", align="right"),
        ]
        names = {
            "best": "same best",
            "worst": "same worst",
            "joint": "same best and worst",
            "pearson": "scores, Pearson's r",
            "spearman": "scores, Spearman's rho",
        }
        rows: list[list[Cell]] = [
            [names[name], *map(_cell, (each.people, each.model, each.difference)), each.chance]
            for name, each in (self.answers | self.scores).items()
        ]
        return ResultTable(columns, rows, self.notes, "Agreement with people", "–")


def _cell(estimate: Estimate) -> Cell:
    """Return a value without limits if it has no interval."""
    return estimate.value if math.isnan(estimate.low) else estimate


def agreement_with_people(common: CommonTuples) -> AgreementWithPeople:
    """Return the agreement of a model with people, beside that of people with each other.

    Answers: for every judgment of people of a tuple with another judgment, the share of the others' answers,
    and the share of the model's answers, that are the same; both are means over the same judgments. The
    former is the observed agreement of `bws.agreement`.

    Scores: the correlation of the counting scores of model and people over items, and the split-half
    reliability of people's scores, Spearman–Brown corrected: the correlation with the scores of as many
    judgments of other people. It is by annotation, or by tuple if no tuple has two judgments.

    Intervals generalise to other groups, or tuples without groups, not to other annotators. Those of
    correlations are from a jackknife over groups, with Fisher's transformation; there are none without
    groups, as tuples share items.
    """
    people, model = common.people.canonical, common.model.canonical
    has_other = (np.bincount(people.tuple_of, minlength=len(common)) > 1)[people.tuple_of]
    paired = people.select(np.flatnonzero(has_other))
    cluster_of = common.cluster_of[paired.tuple_of]
    answers = {
        name: _measure(paired, model, cluster_of, name, chance)
        for name, chance in chance_of_equal_answers(common.people.tuples.k).items()
    }
    return AgreementWithPeople(
        len(np.unique(paired.tuple_of)),
        answers,
        _correlations(common),
        tuple(_notes(common, paired)),
    )


def _measure(
    people: CanonicalJudgments,
    model: CanonicalJudgments,
    cluster_of: Longs,
    name: str,
    chance: float,
) -> Measure:
    """Return the share of equal answers to one question."""
    own, answers = _answer(people, name), _answer(model, name)
    n_answers, n_tuples = people.k**2, len(people.members)
    by_people, by_model = (
        np.bincount(judgments.tuple_of * n_answers + given, minlength=n_tuples * n_answers)
        for judgments, given in ((people, own), (model, answers))
    )
    same = people.tuple_of * n_answers + own
    n_people, n_model = (
        np.bincount(judgments.tuple_of, minlength=n_tuples)[people.tuple_of]
        for judgments in (people, model)
    )
    with_people = (by_people[same] - 1) / (n_people - 1)
    with_model = by_model[same] / n_model
    return Measure(
        clustered_share(with_people, cluster_of),
        clustered_share(with_model, cluster_of),
        clustered_mean(with_model - with_people, cluster_of),
        chance,
    )


def _answer(judgments: CanonicalJudgments, name: str) -> Longs:
    """Return (J,) the answer to a question, as a number below K^2."""
    if name == "joint":
        return judgments.best * judgments.k + judgments.worst
    return judgments.best if name == "best" else judgments.worst


def _correlations(common: CommonTuples) -> dict[str, Measure]:
    """Return the correlations of the counting scores of the items of all common tuples."""
    people, model = common.people.canonical, common.model.canonical
    if not len(people):
        nothing = Estimate(math.nan)
        return {name: Measure(nothing, nothing, nothing, 0.0) for name in ("pearson", "spearman")}
    x, y = (_counting_scores(judgments) for judgments in (people, model))
    own = reliability(common.people, split=usual_split(common.people)).groups[0]
    group_of = people.group_of if common.has_groups else None
    return {
        name: Measure(
            Estimate(halves.spearman_brown),
            _correlation(rank(x), rank(y), group_of),
            Estimate(math.nan),
            0.0,
        )
        for name, halves, rank in (
            ("pearson", own.pearson, np.asarray),
            ("spearman", own.spearman, average_ranks),
        )
    }


def _counting_scores(judgments: CanonicalJudgments) -> Floats:
    counts = judgments.counts
    return counting(counts.appearances, counts.best, counts.worst)


def _correlation(x: Floats, y: Floats, group_of: Longs | None) -> Estimate:
    """Return the correlation over items, with an interval from leaving out each group."""
    r = correlate(x, y)
    if group_of is None or math.isnan(r) or abs(r) == 1:
        return Estimate(r)
    rows_of = [np.flatnonzero(group_of != group) for group in np.unique(group_of)]
    n = len(rows_of)
    if n < MIN_CLUSTERS:
        return Estimate(r)
    left_out = np.arctanh([correlate(x[rows], y[rows]) for rows in rows_of])
    if not np.isfinite(left_out).all():
        return Estimate(r)
    variance = (n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()
    margin = float(t_quantile(np.array(n - 1.0))) * math.sqrt(variance)
    low, high = (math.tanh(math.atanh(r) + sign * margin) for sign in (-1, 1))
    return Estimate(r, low, high)


def _notes(common: CommonTuples, paired: CanonicalJudgments) -> Iterator[str]:
    n_paired = len(np.unique(paired.tuple_of))
    if n_paired < len(common):
        yield note(
            "{n:d} of {m:d} tuples have one judgment of people; they count in the scores alone",
            n=len(common) - n_paired,
            m=len(common),
        )
    clusters = len(np.unique(common.cluster_of[paired.tuple_of]))
    few = too_few_clusters_note(clusters, common.unit) or few_clusters_note(clusters, common.unit)
    if few and clusters:
        yield few
    if not common.has_groups:
        yield note(
            "without groups, tuples that share items are treated as independent, and correlations have no "
            "interval"
        )
    yield note("scores of people: split-half reliability, Spearman-Brown corrected")
