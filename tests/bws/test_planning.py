"""A generalisability study's intervals, and whether planned designs reach what is promised."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bws.components import generalisability
from bws.design import fresh_rounds, make_tuples
from bws.files import judgments_from_records
from bws.planning import Planner, plan
from bws.records import Judgment
from bws.scoring import score
from bws.simulation import simulate

ITEMS = [f"i{n:03d}" for n in range(60)]


def judged(seed, annotators=4, k=3, factor=2.0, groups=0, count=None, disagreement=0.4):
    names = {"groups": [f"g{n % groups}" for n in range(60)], "count": count} if groups else {}
    options = names or {"factor": factor}
    design = make_tuples(ITEMS, k, seed=seed, **options)
    truth = np.random.default_rng(0).normal(size=60)[[int(item[1:]) for item in design.items]]
    return simulate(design, truth, annotators, noise=0.7, disagreement=disagreement, seed=seed)


def planner_of(judgments):
    answers = judgments.canonical
    return Planner.from_study(answers, generalisability(answers))


def parallel_correlation(seeds, **options):
    """Return how the scores of studies of the same items correlate: other designs, other annotators."""
    scores = []
    for seed in seeds:
        scored = score(judged(seed, **options))
        scores.append(scored.score[np.argsort(scored.items)])
    correlations = np.corrcoef(scores)
    return correlations[np.triu_indices(len(scores), 1)].mean()


def test_intervals_hold_the_estimates_and_say_what_they_leave_out():
    study = generalisability(judged(0).canonical)
    for estimate in (*study.variances.values(), study.reliability, study.root):
        assert estimate.low < estimate.value < estimate.high
    assert [note[:40] for note in study.notes] == ["intervals over items of the same group a"]
    assert "all errors included" in study.table()
    two = generalisability(judged(0, annotators=2).canonical)
    assert two.notes[-1] == (
        "2 named annotators: the intervals do not account for differences between annotators"
    )


def test_the_interval_is_wider_where_annotators_differ_together():
    """Half of the annotators guess, or all of them half of the time: who was drawn matters, or not."""
    design = make_tuples(ITEMS, 3, groups=[f"g{n % 12}" for n in range(60)], count=10)
    truth = np.random.default_rng(0).normal(size=60)[[int(item[1:]) for item in design.items]]
    records = list(simulate(design, truth, 6, noise=0.7).records())
    random = np.random.default_rng(0)

    def width(guesses):
        rows = [
            replace(
                row,
                **dict(
                    zip(("best", "worst"), random.permutation(row.items)[:2].tolist(), strict=True)
                ),
            )
            if guess
            else row
            for row, guess in zip(records, guesses, strict=True)
        ]
        result = generalisability(judgments_from_records(rows).canonical).reliability
        return result.high - result.low

    together = [row.annotator in {"simulated-1", "simulated-2", "simulated-3"} for row in records]
    assert width(together) > 1.3 * width(random.random(len(records)) < 0.5)


def test_few_clusters_have_no_interval():
    rows = [
        Judgment(items, items[n % 2], items[2], f"w{n}")
        for items in (("a", "b", "c"), ("b", "c", "d"), ("a", "c", "d"))
        for n in range(3)
    ]
    study = generalisability(judgments_from_records(rows).canonical)
    assert math.isnan(study.reliability.low)
    assert any("no interval, which needs 5" in note for note in study.notes)


@pytest.mark.parametrize(
    ("pilot", "other", "sizes"),
    [
        ({}, {"factor": 4.0}, (12, 4)),
        ({}, {"annotators": 8}, (6, 8)),
        ({"factor": 4.0}, {"factor": 1.0, "annotators": 6}, (3, 6)),
        ({"groups": 12, "count": 10}, {"groups": 12, "count": 5}, (3, 4)),
        ({"groups": 12, "count": 5}, {"groups": 12, "count": 10, "annotators": 2}, (6, 2)),
    ],
)
def test_planned_reliability_comes_true(pilot, other, sizes):
    planned = []
    for seed in range(8):
        planner = planner_of(judged(seed, **pilot))
        planned.append(planner.reliability(*sizes, planner.judgments_per_annotator_at(sizes[0])))
    actual = parallel_correlation(range(100, 112), **(pilot | other))
    assert np.mean(planned) == pytest.approx(actual, abs=0.02)


def own_rounds(seed, rounds, annotators):
    """Return a study of fresh tuples with one annotation each, from the annotators in turn."""
    design = fresh_rounds(ITEMS, 3, rounds, factor=2, seed=seed)
    truth = np.random.default_rng(0).normal(size=60)[[int(item[1:]) for item in design.items]]
    judgments = simulate(design, truth, annotators, noise=0.7, disagreement=0.4, seed=seed)
    return judgments.select(judgments.tuple_of % annotators == judgments.annotator_of)


@pytest.mark.nightly
def test_planned_reliability_of_more_fresh_tuples_comes_true():
    planned = []
    for seed in range(6):
        planner = planner_of(own_rounds(seed, 3, 12))
        planned.append(planner.reliability(36, 1, planner.judgments_per_annotator_at(36)))
    scores = []
    for seed in range(100, 106):
        scored = score(own_rounds(seed, 6, 12))
        scores.append(scored.score[np.argsort(scored.items)])
    actual = np.corrcoef(scores)[np.triu_indices(len(scores), 1)].mean()
    assert np.mean(planned) == pytest.approx(actual, abs=0.02)


@pytest.mark.parametrize(
    ("tuples", "met", "variance"), [(5, 10 / 59, 10 / 59 * 49 / 59), (25, 50 / 59, 0.25)]
)
def test_the_error_of_a_design_depends_on_how_often_opponents_meet(tuples, met, variance):
    """Counts of balanced opponents differ by 1 at most: a share `met`, or half of them, is one higher."""
    planner = planner_of(judged(1))
    opponents = 59
    assert met == pytest.approx(tuples * 2 / opponents)
    expected = opponents * variance / (tuples**2 * 2 * (1 - 2 / opponents))
    assert planner._design_share(tuples) == pytest.approx(expected)


def test_a_plan_of_single_annotations_has_no_repeated_tuples():
    """The effect of a tuple is part of the residual, which more annotations of the tuple do not reduce."""
    planner = planner_of(own_rounds(0, 4, 8))
    result = plan(planner, 0.9)
    designs = (*result.alternatives, *result.sufficient)
    assert {design.annotations_per_tuple for design in designs} == {1}
    assert "twice the tuples" in {design.what for design in designs}
    assert math.isnan(planner.annotations_for(0.9))
    assert math.isnan(planner.annotation_limit)
    assert "no tuple has two judgments" in result.table()
    assert planner_of(judged(0)).has_repeated_tuples


def test_a_single_annotator_has_components_but_no_plan():
    judgments = own_rounds(0, 4, 1)
    study = generalisability(judgments.canonical)
    assert len(np.unique(judgments.annotator_of)) == 1
    assert planner_of(judgments) is None
    assert "no reliability from variance components: requires two annotators" in study.table()


def test_the_plan_has_the_present_design_and_the_cheapest_that_reaches_the_target():
    planner = planner_of(judged(0))
    result = plan(planner, 0.95, price=0.5)
    present = result.alternatives[0]
    assert present.judgments == 40 * 3 * 4
    study = generalisability(judged(0).canonical)
    assert present.reliability == pytest.approx(study.reliability.value)
    assert present.cost == 240
    assert all(design.reliability >= 0.95 for design in result.sufficient)
    assert result.cheapest.judgments == min(design.judgments for design in result.sufficient)
    same_cost = [each for each in result.alternatives if each.what == "equal cost"]
    assert len(same_cost) > 2
    for design in same_cost:
        assert design.judgments == pytest.approx(present.judgments, abs=1)
    table = result.table()
    assert "cannot be reached with more annotations" in table
    assert result.planner.annotation_limit < 0.95
    doubled = {each.what: each.reliability for each in result.alternatives if "twice" in each.what}
    assert doubled.keys() == {
        "twice the tuples", "twice the annotations per tuple", "twice the annotators"
    }  # fmt: skip
    assert min(doubled.values()) > present.reliability


def test_a_complete_design_has_no_limit_and_no_more_tuples():
    planner = planner_of(judged(0, groups=12, count=10))
    assert planner.annotation_limit == 1
    result = plan(planner, 0.97)
    assert "twice the tuples" not in {each.what for each in result.alternatives}
    assert all(each.tuples_per_item <= 6 for each in (*result.alternatives, *result.sufficient))
    needed = planner.annotations_for(0.97)
    assert planner.reliability(6, needed, planner.judgments_per_annotator_at(6)) == pytest.approx(
        0.97
    )


def test_wrong_arguments_of_a_plan():
    planner = planner_of(judged(0))
    with pytest.raises(ValueError, match="target is 1; it must be above 0 and below 1"):
        plan(planner, 1)
    with pytest.raises(ValueError, match="price is -1; it must be 0 or more"):
        plan(planner, 0.9, price=-1)


def planner_with(needed):
    """41 items with eight 4-tuples of five annotations each; `needed` annotations reach 0.9."""
    residual = 8 * needed / 9
    return Planner(1.0, 0.0, 0.0, residual, 41, 4, 41.0, 9880.0, 8.0, 5.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("needed", "text"),
    [
        (0.6, "one annotation per tuple is enough for a reliability of 0.9 (now 5)"),
        (1.0, "one annotation per tuple is enough for a reliability of 0.9 (now 5)"),
        (1.04, "a reliability of 0.9 requires 2 annotations per tuple (now 5)"),
        (3.2, "a reliability of 0.9 requires 4 annotations per tuple (now 5)"),
        (4.0, "a reliability of 0.9 requires 4 annotations per tuple (now 5)"),
    ],
)
def test_required_annotations_are_whole_numbers_that_reach_the_target(needed, text):
    planner = planner_with(needed)
    assert planner.annotations_for(0.9) == pytest.approx(needed)
    assert f"with the present tuples, {text}" in plan(planner, 0.9).table()


def test_designs_that_reach_the_target_have_whole_tuples():
    planner = planner_with(6.4)
    designs = plan(planner, 0.9, price=0.5).sufficient
    assert len(designs) > 4
    for design in designs:
        n_tuples = -(-41 * design.tuples_per_item // 4)
        assert design.judgments == n_tuples * design.annotations_per_tuple
        assert design.cost == design.judgments / 2
    assert any(41 * design.tuples_per_item % 4 for design in designs)
