"""Reliability against the number of annotations: what is drawn, and what is foretold."""

import math

import numpy as np
import pytest

from bws.base.problems import InputError
from bws.design import make_tuples
from bws.files import judgments_from_records
from bws.records import Judgment, Judgments
from bws.simulation import simulate
from bws.split_half import annotations_for, reliability, reliability_curve


def simulated(n_tuples: int, annotations: int, noise: float) -> Judgments:
    """Annotators w0, w1, ... who each judge the same tuples of 4 of 100 items by noisy true scores."""
    rng = np.random.default_rng(0)
    truth, rows = rng.normal(size=100), []
    for t in range(n_tuples):
        members = rng.choice(100, 4, replace=False)
        ids = tuple(f"i{i}" for i in members)
        for w in range(annotations):
            order = np.argsort(truth[members] + noise * rng.normal(size=4))
            rows.append(Judgment(ids, ids[order[-1]], ids[order[0]], f"w{w}", tuple_id=f"t{t}"))
    return judgments_from_records(rows)


def only(judgments: Judgments, annotations: int) -> Judgments:
    return judgments.select(judgments.annotator_of < annotations)


def test_the_last_point_and_the_whole_are_the_reliability():
    judgments = simulated(200, 5, noise=1.0)
    curve = reliability_curve(judgments, seed=4)
    result = reliability(judgments, split="annotation", seed=4).groups[0]
    assert [point.annotations for point in curve.points] == [2, 3, 4, 5]
    for point in (curve.points[-1], curve.overall):
        assert point.pearson.mean == result.pearson.mean
        assert point.spearman.sd == result.spearman.sd


def test_a_point_is_what_so_many_annotations_give():
    judgments = simulated(200, 8, noise=1.0)
    curve = reliability_curve(judgments, trials=200)
    # Four of the eight at random, or the first four: the same up to the luck of which four.
    four = reliability(only(judgments, 4), split="annotation", trials=200).groups[0]
    assert curve.points[2].annotations == 4
    assert curve.points[2].pearson.mean == pytest.approx(four.pearson.mean, abs=0.02)
    means = [point.pearson.mean for point in curve.points[::2]]
    assert means == sorted(means)


@pytest.mark.parametrize("more", [8, 16])
def test_the_extrapolation_comes_true(more):
    judgments = simulated(200, more, noise=1.5)
    reached = reliability(judgments, split="annotation", trials=200).groups[0].pearson.mean
    curve = reliability_curve(only(judgments, 4), trials=200, target=reached)
    assert curve.needed["pearson"]["split_half"] == pytest.approx(more, rel=0.2)


def test_annotations_for_a_target():
    # Halves that correlate with 0.6 from 4 annotations: 4 * 0.9 * 0.4 / (0.6 * 0.1) = 24.
    assert annotations_for(0.9, 0.6, 4) == pytest.approx(24)
    # It undoes Spearman-Brown: 2 * 0.6 / 1.6 = 0.75 takes twice the annotations.
    assert annotations_for(0.75, 0.6, 4) == pytest.approx(8)
    assert annotations_for(0.6, 0.6, 4) == pytest.approx(4)
    assert math.isnan(annotations_for(0.9, 0.0, 4))
    assert math.isnan(annotations_for(0.9, math.nan, 4))


def test_scores_from_all_judgments_need_half_as_many():
    needed = reliability_curve(simulated(100, 4, noise=1.5), trials=20).needed
    for result in needed.values():
        assert result["spearman_brown"] == pytest.approx(result["split_half"] / 2)


def uneven(judgments: Judgments, sizes: list[int]) -> Judgments:
    """Return the first judgments of each tuple, as many as its size."""
    return judgments.select(judgments.annotator_of < np.array(sizes)[judgments.tuple_of])


def test_all_points_rest_on_the_same_tuples():
    judgments = uneven(simulated(60, 4, noise=1.0), [1] * 10 + [3] * 20 + [4] * 30)
    curve = reliability_curve(judgments, trials=5)
    assert [(point.annotations, point.tuples) for point in curve.points] == [(2, 50), (3, 50)]
    assert (curve.overall.tuples, curve.overall.annotations) == (50, (20 * 3 + 30 * 4) / 50)
    note = "all points rest on the 50 of 50 tuples with at least 3 annotations"
    assert curve.tuples_note == note
    assert note in curve.document()["notes"]
    assert note in curve.table()


def test_the_curve_is_that_of_its_tuples_alone():
    """The last points do not rest on fewer tuples, nor on those with more annotations."""
    sizes = [3] * 10 + [5] * 180 + [6] * 10
    judgments = uneven(simulated(200, 6, noise=1.0), sizes)
    curve = reliability_curve(judgments, trials=200)
    alone = reliability_curve(
        uneven(simulated(200, 6, noise=1.0), [0] * 10 + [5] * 190), trials=200
    )
    assert [point.tuples for point in curve.points] == [190] * 4
    assert alone.tuples_note == ""
    for point, expected in zip(curve.points, alone.points, strict=True):
        assert point.annotations == expected.annotations
        assert point.pearson.mean == pytest.approx(expected.pearson.mean, abs=0.01)
    means = [point.pearson.spearman_brown for point in curve.points]
    assert means == sorted(means)


def test_guessing_gives_no_estimate():
    opposite = [
        Judgment(("a", "b", "c", "d"), best, worst, who)
        for who, best, worst in [("w1", "a", "d"), ("w2", "d", "a")]
    ]
    curve = reliability_curve(judgments_from_records(opposite), trials=3)
    assert math.isnan(curve.needed["pearson"]["split_half"])
    assert "no estimate" in curve.table()


def test_the_document_says_that_it_extrapolates():
    curve = reliability_curve(simulated(50, 3, noise=1.0), trials=3, target=0.95)
    document = curve.document()
    assert [point["annotations"] for point in document["points"]] == [2, 3]
    assert document["target"] == 0.95
    assert "extrapolated" in document["notes"][0]
    assert "(there are 3)" in curve.table() or "cannot be reached" in curve.table()


def complete(annotations: int, noise: float) -> Judgments:
    """All 3-tuples of groups of five."""
    items = [f"i{n}" for n in range(100)]
    design = make_tuples(items, 3, groups=[f"g{n // 5}" for n in range(100)], count=10)
    truth = np.random.default_rng(1).normal(size=100)
    return simulate(design, truth, annotations, noise=noise)


def test_the_target_is_the_reliability_of_the_scores():
    curve = reliability_curve(complete(4, noise=2.0), trials=50, target=0.9)
    assert curve.planner is None
    needed = curve.needed["pearson"]["spearman_brown"]
    assert f": {math.ceil(needed)} annotations per tuple, " in curve.table()
    assert math.ceil(needed) < math.ceil(curve.needed["pearson"]["split_half"])
    assert f"{math.ceil(curve.needed['pearson']['split_half'])} annotations" not in curve.table()
    # as many as that do make the scores so reliable
    more = reliability(complete(round(needed), noise=2.0), split="annotation", trials=50)
    assert more.groups[0].pearson.spearman_brown == pytest.approx(0.9, abs=0.015)


def test_annotations_do_not_remove_the_error_of_the_design():
    curve = reliability_curve(simulated(100, 4, noise=0.2), trials=5, target=0.97)
    assert curve.overall.pearson.spearman_brown > 0.97  # the halves share the tuples
    document = curve.document()
    assert math.isinf(document["annotations_alone"]["needed"])
    assert 0.8 < document["annotations_alone"]["limit"] < 0.97
    assert "cannot be reached with more annotations" in curve.table()
    assert document["needed"]["pearson"].keys() == {"split_half", "spearman_brown"}


def test_wrong_arguments():
    judgments = simulated(10, 2, noise=1.0)
    with pytest.raises(ValueError, match=r"target is 1\.0; it must be above 0 and below 1"):
        reliability_curve(judgments, target=1.0)
    with pytest.raises(ValueError, match="trials is 0"):
        reliability_curve(judgments, trials=0)
    with pytest.raises(ValueError, match="odd is 'x'"):
        reliability_curve(judgments, odd="x")
    with pytest.raises(InputError, match="no tuple has two judgments"):
        reliability_curve(only(judgments, 1))
    with pytest.raises(InputError, match="no tuple has two judgments"):
        reliability_curve(only(judgments, 0))
