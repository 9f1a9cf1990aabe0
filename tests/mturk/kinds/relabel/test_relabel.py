"""Validation of answers under graded, binary and invalid conditions; simulated workers; the output file."""

import csv

import pytest

from mturk.kinds import Behaviour, ExpectedTuple
from mturk.kinds.relabel import KIND

TEXTS = ("A kite.", "Two kites.")
GRADED = ExpectedTuple("17", "p1", (*TEXTS, "the colour"), "relabel")
BINARY = ExpectedTuple("17", "p1", (*TEXTS, "The number of kites."), "relabel")


@pytest.mark.parametrize("label", ["1", "2", "3", "4", "5"])
def test_binary_conditions_permit_three_levels(label):
    assert KIND.problems(GRADED, [("label-17", label)]) == []
    message = f"17: the label is {label} for a binary condition; expected one of 1, 3, 5"
    expected = [] if label in ("1", "3", "5") else [message]
    assert KIND.problems(GRADED, [("label-17", label), ("binary-17", "yes")]) == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([], "17: missing answer; expected a level or a ticked box"),
        ([("binary-17", "yes")], "17: missing answer; expected a level or a ticked box"),
        (
            [("label-17", "6"), ("binary-17", "yes")],
            "17: the label is '6'; expected one of 1, 2, 3, 4, 5",
        ),
        (
            [("label-17", "3"), ("binary-17", "on")],
            "17: the box has the value 'on'; expected 'yes'",
        ),
        (
            [("not-applicable-17", "yes"), ("binary-17", "yes")],
            "17: the condition is binary and does not apply; expected only one",
        ),
        (
            [("label-17", "3"), ("binary-17", "yes"), ("binary-17", "yes")],
            "binary-17 occurs 2 times; expected once",
        ),
    ],
)
def test_invalid_answers(fields, message):
    assert KIND.problems(GRADED, fields) == [message]


def simulated(expected, true_label, **behaviour):
    truth = {("p1", expected.items[2]): float(true_label)}
    answers = [
        KIND.simulate(expected, truth, Behaviour(**behaviour), f"W{number}")
        for number in range(200)
    ]
    assert all(KIND.problems(expected, answer) == [] for answer in answers)
    return [dict(answer) for answer in answers]


def test_simulated_labels_of_binary_conditions():
    assert {answer["label-17"] for answer in simulated(GRADED, 4, noise=0)} == {"4"}
    assert simulated(BINARY, 4, noise=0) == [{"label-17": "5", "binary-17": "yes"}] * 200
    assert simulated(BINARY, 2, noise=0) == [{"label-17": "1", "binary-17": "yes"}] * 200
    assert {answer["label-17"] for answer in simulated(BINARY, 3, noise=1)} == {"1", "3", "5"}


def test_simulated_workers_call_the_true_label_minus_one_invalid():
    assert simulated(BINARY, -1, noise=2) == [{"not-applicable-17": "yes"}] * 200
    careless = simulated(GRADED, -1, careless=0.5)
    assert 30 < sum("label-17" in answer for answer in careless) < 130  # 83 expected of 200


def test_simulated_study_gives_the_collected_file(study, triplets_csv):
    truth = study.file(
        "truth.csv",
        "sentence1,sentence2,condition,label\n"
        "Two children dig a moat.,Two old men play chess.,the number of people,5\n"
        "Two children dig a moat.,Two old men play chess.,the age of the people,1\n"
        '"A <b>red</b> kite, ""high"".",A red bus ${B} ]]> stops 🙂.,the colour,4\n'
        '"A <b>red</b> kite, ""high"".",A red bus ${B} ]]> stops 🙂.,what <i>moves</i> it,-1\n',
    )
    study.publish("relabel", triplets_csv, assignments=2, pairs_per_hit=4)
    study.simulate("--workers", "2", "--truth", truth, "--noise", "0")
    with open(study.collect("relabel.csv"), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "uid", "sentence1", "sentence2", "condition", "label", "applies", "binary", "annotator",
        "assignment_id", "seconds", "comment",
    ]  # fmt: skip
    answers = sorted((row["uid"], row["label"], row["applies"], row["binary"]) for row in rows)
    assert answers[::2] == answers[1::2]
    assert answers[::2] == [
        ("u1", "5", "yes", "yes"),
        ("u2", "1", "yes", "yes"),
        ("u3", "4", "yes", "no"),
        ("u4", "", "no", ""),
    ]
