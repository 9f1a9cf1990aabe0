"""Variance components against a program that looks at every pair, and against known components."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from bws.components import (
    MAX_ANNOTATOR_GROUPS,
    _component_sums,
    _estimates_from_sums,
    components,
    generalisability,
)
from bws.design import make_tuples
from bws.files import judgments_from_records
from bws.records import Judgment
from bws.scoring import score
from bws.simulation import simulate


def judged(seed, annotators=4, groups=0, disagreement=0.0, n=40, k=4, factor=2):
    """Return simulated judgments of a design, of all sets of 3 in groups of 5 where there are groups."""
    items = [f"i{number}" for number in range(n)]
    if groups:
        design = make_tuples(
            items, 3, groups=[f"g{number % groups}" for number in range(n)], count=10
        )
    else:
        design = make_tuples(items, k, factor=factor, seed=seed)
    truth = np.random.default_rng(seed).normal(size=n)
    return simulate(design, truth, annotators, disagreement=disagreement, seed=seed)


def by_pairs(judgments):
    """Return an item's (design, annotator, residual) and the variance of its score, from all pairs."""
    answers = judgments.canonical
    result = []
    for item in range(len(answers.items)):
        rows = [
            (t, a, float(answers.members[t, b] == item) - float(answers.members[t, w] == item))
            for t, b, w, a in zip(
                answers.tuple_of, answers.best, answers.worst, answers.annotator_of, strict=True
            )
            if item in answers.members[t]
        ]
        half = {kind: [] for kind in ("tuple", "annotator", "both")}
        for (t, a, x), (u, b, y) in combinations(rows, 2):
            kind = "tuple" if t == u else "annotator" if a == b else "both"
            half[kind].append((x - y) ** 2 / 2)
        same_tuple, same_annotator, different = (np.mean(half[kind]) for kind in half)
        design, annotator = different - same_tuple, different - same_annotator
        residual = same_tuple + same_annotator - different
        opponents = np.flatnonzero(answers.group_of == answers.group_of[item])
        opponents = opponents[opponents != item]
        met = [np.mean([o in answers.members[t] for t, _, _ in rows]) for o in opponents]
        chance = (answers.k - 1) / len(opponents)
        uneven = np.sum(np.square(np.subtract(met, chance)))
        tuples = [set(answers.members[t]) for t, _, _ in rows]
        only_in_one = [len(t - u) for t, u in combinations(tuples, 2) if t != u]
        of_design = design * uneven / np.mean(only_in_one)
        covariance = [
            (a == b) * annotator + (t == u and a == b) * residual
            for t, a, _ in rows
            for u, b, _ in rows
        ]
        result.append((design, annotator, residual, of_design + np.mean(covariance)))
    return np.array(result)


@pytest.mark.parametrize("groups", [0, 8])
def test_errors_are_those_of_all_pairs(groups):
    judgments = judged(3, groups=groups, disagreement=0.5)
    result, expected = components(judgments.canonical), by_pairs(judgments)
    np.testing.assert_allclose(result.error, expected[:, 3], atol=1e-12)
    design, annotator, residual = expected[:, :3].mean(axis=0)  # every item has as many pairs
    np.testing.assert_allclose(
        [result.design, result.annotator, result.residual],
        [design, annotator, residual],
        atol=1e-12,
    )
    variance = np.var(score(judgments).score, ddof=1)
    assert result.item == pytest.approx(variance - expected[:, 3].mean())


def test_items_with_a_mean_score_other_than_0_vary_around_it():
    sums = _component_sums(judged(5).canonical)
    high = sums[sums[:, 1] > 0]
    item, *_, error, _ = _estimates_from_sums(high.sum(axis=0))
    assert item + error == pytest.approx(np.var(high[:, 1], ddof=1))


def test_unbiased_errors_of_complete_groups():
    # the scores of two groups of annotators differ by errors alone
    items = [f"i{number}" for number in range(200)]
    design = make_tuples(items, 3, groups=[f"g{number % 40}" for number in range(200)], count=10)
    truth = np.random.default_rng(0).normal(size=200)
    said = [simulate(design, truth, 5, disagreement=0.5, seed=seed) for seed in range(60)]
    observed = np.var([score(one).score for one in said], axis=0, ddof=1).mean()
    estimated = np.mean([components(one.canonical).error.mean() for one in said])
    assert estimated == pytest.approx(observed, rel=0.05)


def test_opponents_met_equally_often_leave_no_error_of_the_design():
    # a Fano plane: 7 of the 35 sets of 3 of 7 items, in which all pairs meet once
    design = make_tuples([f"i{number}" for number in range(7)], 3, count=7)
    judgments = simulate(design, np.arange(7.0), 3, noise=0.0)
    assert (np.unique(design.members.ravel(), return_counts=True)[1] == 3).all()
    result = components(judgments.canonical)
    assert result.design > 0
    assert result.error == pytest.approx(np.zeros(7))


def test_leaving_annotators_out_keeps_the_scores_of_all():
    judgments = judged(2, annotators=5, disagreement=0.5).canonical
    whole = components(judgments)
    parts = [components(judgments, excluded_annotators=np.array([one])) for one in range(5)]
    # each pair of annotators is in three of the five
    assert np.mean([part.error for part in parts], axis=0) == pytest.approx(whole.error)
    assert np.ptp([part.error.mean() for part in parts]) > 0


def test_intervals_of_many_annotators_do_not_depend_on_their_names():
    judgments = judged(3, annotators=25, disagreement=0.5)
    names = [f"q{n:02}" for n in np.random.default_rng(0).permutation(25)]
    renamed = replace(judgments, annotators=np.array(names, dtype=object))
    expected, found = (generalisability(each.canonical) for each in (judgments, renamed))
    assert len(judgments.canonical.annotators) > MAX_ANNOTATOR_GROUPS
    assert renamed.canonical.annotators != judgments.canonical.annotators
    assert found.reliability == expected.reliability
    assert found.variances == expected.variances


def rows(*judgments):
    return judgments_from_records(
        [
            Judgment(tuple(items), best, worst, annotator=who)
            for items, best, worst, who in judgments
        ]
    ).canonical


def test_what_cannot_be_told_is_in_the_residual():
    nested = rows(
        *[(s, s[0], s[2], f"{s}{n}") for s in ("abc", "bcd", "cda", "dab") for n in range(2)]
    )
    result = components(nested)  # no annotator judged two tuples, and annotators of a tuple agree
    assert (result.annotator, result.residual) == (0, 0)
    assert result.design > 0
    single = rows(*[(s, s[0], s[2], "w") for s in ("abc", "bcd", "cda", "dab")])
    result = components(single)
    assert math.isnan(result.annotator)
    assert math.isnan(result.item)
    assert np.isnan(result.error).all()


def test_an_unknown_annotator_is_another_one_each_time():
    known = judged(1)
    unknown = components(
        judgments_from_records(
            [Judgment(r.items, r.best, r.worst) for r in known.records()]
        ).canonical
    )
    assert unknown.annotator == 0
    assert unknown.design > 0
    assert not np.isnan(unknown.error).any()
