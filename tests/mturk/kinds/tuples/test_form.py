"""Validation and parsing of forms of tuples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import characters

from mturk.kinds import ExpectedTuple, find_problems
from mturk.kinds.tuples.form import TupleAnswer, join_shown, split_shown, tuple_answers

ANY_TEXT = st.text(characters(), max_size=40)
FIELDS = st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=8)
ASKED = [ExpectedTuple("t1", "d1", ("a", "b;c", "d%")), ExpectedTuple("t2", "d2", ("a", "b"))]
RIGHT = {
    "best-t1": "a",
    "worst-t1": "d%",
    "shown-t1": "b%3Bc;d%25;a",
    "seconds-t1": "12.5",
    "best-t2": "b",
    "worst-t2": "a",
}


@given(st.lists(st.text(), min_size=1, max_size=6).filter(lambda items: items != [""]))
def test_order_round_trip(items):
    assert split_shown(join_shown(items)) == tuple(items)


def test_complete_answer():
    assert find_problems(ASKED, [*RIGHT.items(), ("assignmentId", "A1")]) == []
    assert tuple_answers(ASKED, [*RIGHT.items()]) == (
        TupleAnswer("t1", "a", "d%", ("b;c", "d%", "a"), 12.5),
        TupleAnswer("t2", "b", "a", (), None),
    )


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("best-t1", "", "t1: best is missing; expected one of 'a', 'b;c', 'd%'"),
        ("worst-t2", "c", "t2: worst is 'c'; expected one of 'a', 'b'"),
        ("worst-t1", "a", "t1: best and worst are both 'a'; expected different items"),
        ("shown-t1", "a;a;d%25", "t1: shown is 'a;a;d%25'; expected 'a', 'b;c', 'd%' in any order"),
        ("shown-t1", "a;b;c;d%25", "t1: shown is"),
        ("seconds-t1", "nan", "t1: seconds is 'nan'; expected a number of at least 0"),
        ("seconds-t1", "-1", "t1: seconds is '-1'"),
        ("seconds-t1", "soon", "t1: seconds is 'soon'"),
    ],
)
def test_one_message_per_problem(field, value, message):
    fields = [*(RIGHT | {field: value}).items()]
    problems = find_problems(ASKED, fields)
    assert len(problems) == 1
    assert problems[0].startswith(message)
    with pytest.raises(ValueError, match=r"^t\d: "):
        tuple_answers(ASKED, fields)


def test_all_problems_are_reported():
    assert len(find_problems(ASKED, [])) == 4


def test_repeated_field_is_reported():
    fields = [("best-t1", "b;c"), *RIGHT.items()]
    assert find_problems(ASKED, fields) == ["best-t1 occurs 2 times; expected once"]
