"""Validation of two conditions, and remarks on them."""

import pytest

from mturk import kinds
from mturk.kinds import Behaviour, ExpectedTuple
from mturk.kinds.conditions import KIND, SIMULATED_CONDITIONS, find_remark, split_words
from mturk.kinds.sentence_pairs import pair_id

PAIR = pair_id("A large ball.", "A small fruit.")
ASKED = ExpectedTuple(PAIR, PAIR, ("A large ball.", "A small fruit."), "conditions")


def fields(high, low, **more):
    return [
        (f"high-{PAIR}", high),
        (f"low-{PAIR}", low),
        *((f"{k}-{PAIR}", v) for k, v in more.items()),
    ]


def test_two_different_phrases_are_valid():
    assert KIND.problems(ASKED, fields("the shape", "the size", seconds="7.5")) == []
    assert kinds.find_problems([ASKED], fields("the shape", "the size")) == []


@pytest.mark.parametrize(
    ("high", "low", "message"),
    [
        ("", "the size", "the condition of high similarity is missing"),
        ("the shape", " .- ", "the condition of low similarity is missing"),
        ("The Size!", " the  size", "both conditions are the same"),
        ("x" * 201, "the size", "the condition of high similarity has 201 characters or several"),
        ("the\nshape", "the size", "the condition of high similarity has 9 characters or several"),
    ],
)
def test_invalid_answers(high, low, message):
    [problem] = KIND.problems(ASKED, fields(high, low))
    assert problem.startswith(f"{PAIR}: {message}")


def test_all_problems_of_an_answer_are_reported():
    result = KIND.problems(
        ASKED, [*fields("", ""), (f"high-{PAIR}", ""), (f"seconds-{PAIR}", "-1")]
    )
    assert len(result) == 4
    assert f"high-{PAIR} occurs 2 times" in result[0]
    assert "seconds is '-1'" in result[-1]


@pytest.mark.parametrize(
    ("condition", "why", "word"),
    [
        ("The colour in the sentence", "about", "sentence"),
        ("the size is LARGE", "value", "large"),
        ("the ball is ball", "value", "ball"),
        ("the 3 of them", "value", "3"),
        ("der Satz", "about", "satz"),
        ("The activity.", "vague", "activity"),
    ],
)
def test_remarks(condition, why, word):
    assert find_remark(condition, ASKED.items) == (why, word)


@pytest.mark.parametrize(
    "condition",
    [
        "the way the object is moved",
        "the activity of the man",
        "the number of people",
        "the mood",
    ],
)
def test_conditions_without_remarks(condition):
    assert find_remark(condition, ASKED.items) is None


def test_remarks_for_review():
    [said] = KIND.remarks(ASKED, fields("the shape", "the size is large"))
    assert said == "'the size is large': 'large' may be a value of the condition"


def test_words_are_letters_and_digits():
    assert split_words("L'âge – 3 Männer_innen") == ["l", "âge", "3", "männer", "innen"]


def test_simulated_conditions_are_true_or_marked():
    truth = {(PAIR, "the shape"): 5.0, (PAIR, "the weight"): 2.5, (PAIR, "the size"): 1.0}
    known = KIND.simulate(ASKED, truth, Behaviour(), "W1")
    assert dict(known) == dict(fields("the shape", "the size"))
    invented = KIND.simulate(ASKED, {}, Behaviour(seed=3), "W1")
    assert invented == KIND.simulate(ASKED, {}, Behaviour(seed=3), "W1")
    texts = {text.removesuffix(" (simulated)") for _, text in invented}
    assert len(texts & set(SIMULATED_CONDITIONS)) == 2
    assert KIND.problems(ASKED, invented) == []
    careless = KIND.simulate(ASKED, truth, Behaviour(careless=1.0), "W1")
    assert all(text.endswith("(simulated)") for _, text in careless)
