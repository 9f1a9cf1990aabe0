"""Validation of answers to triplets, and simulated workers."""

import statistics

import pytest

from bws.base.problems import InputError
from mturk import kinds
from mturk.kinds import Behaviour, ExpectedTuple
from mturk.kinds.verification import KIND

ASKED = ExpectedTuple("17", "p1", ("A kite.", "A bus.", "the colour"), "verification")
TRUTH = {("p1", "the colour"): 4.0}


@pytest.mark.parametrize("label", ["1", "2", "3", "4", "5"])
def test_level_is_valid(label):
    assert kinds.find_problems([ASKED], [("label-17", label), ("seconds-17", "3")]) == []


def test_ticked_box_is_valid():
    assert KIND.problems(ASKED, [("not-applicable-17", "yes")]) == []
    assert KIND.problems(ASKED, [("label-17", ""), ("not-applicable-17", "yes")]) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([], "17: missing answer; expected a level or a ticked box"),
        ([("label-17", "6")], "17: the label is '6'; expected one of 1, 2, 3, 4, 5"),
        ([("label-17", "3.0")], "17: the label is '3.0'; expected one of 1, 2, 3, 4, 5"),
        ([("not-applicable-17", "on")], "17: the box has the value 'on'; expected 'yes'"),
        (
            [("label-17", "4"), ("not-applicable-17", "yes")],
            "17: the condition has label 4 and does not apply; expected only one",
        ),
        ([("label-17", "4"), ("label-17", "4")], "label-17 occurs 2 times; expected once"),
        (
            [("label-17", "4"), ("seconds-17", "x")],
            "17: seconds is 'x'; expected a number of at least 0",
        ),
    ],
)
def test_invalid_answers(fields, message):
    assert KIND.problems(ASKED, fields) == [message]


def labels_said(behaviour, workers=400):
    said = [dict(KIND.simulate(ASKED, TRUTH, behaviour, f"W{n}")) for n in range(workers)]
    return [int(one["label-17"]) for one in said if "label-17" in one], said


def test_simulated_labels():
    assert set(labels_said(Behaviour(noise=0))[0]) == {4}
    noisy, _ = labels_said(Behaviour(noise=1))
    assert set(noisy) <= {1, 2, 3, 4, 5}
    assert statistics.stdev(noisy) == pytest.approx(0.95, abs=0.15)  # 1 cut off at 5


def test_careless_workers_may_tick_box():
    labels, said = labels_said(Behaviour(careless=1.0))
    assert set(labels) == {1, 2, 3, 4, 5}
    assert 30 < sum("not-applicable-17" in one for one in said) < 110  # 67 expected of 400
    assert all(KIND.problems(ASKED, list(one.items())) == [] for one in said)


def test_triplet_without_true_label_is_reported():
    with pytest.raises(InputError, match="triplet '17': no true label for condition 'the colour'"):
        KIND.simulate(ASKED, {}, Behaviour(), "W1")


def test_unknown_kind():
    with pytest.raises(
        ValueError,
        match="kind is 'songs'; expected tuples, conditions, items, relabel or verification",
    ):
        kinds.get_kind("songs")
