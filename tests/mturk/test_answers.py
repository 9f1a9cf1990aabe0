"""Answers: XML out and in, what a question expects, and what is no answer to it."""

from xml.dom import minidom

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import characters

from mturk.answers import (
    ExpectedTuple,
    check,
    comment,
    expected,
    expected_in_page,
    from_xml,
    join_shown,
    split_shown,
    to_xml,
    tuple_answers,
)
from mturk.question_xml import forbidden_in_xml, write_html_question
from mturk.records import TupleAnswer

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


@given(FIELDS)
@example([("a\r\n\t", "\r\n]]>&amp;<!--\u2028\x85\x00\U0001f642\ufffe\ud800")])
def test_every_field_comes_back(fields):
    def carried(text):
        lost = forbidden_in_xml(text)
        return "".join("\ufffd" if c in lost else c for c in text)

    xml = to_xml(fields)
    assert from_xml(xml) == [(carried(name), carried(value)) for name, value in fields]
    others = minidom.parseString(xml.encode("utf-8")).getElementsByTagName("FreeText")
    texts = ["".join(node.data for node in other.childNodes) for other in others]
    assert texts == [carried(value) for _, value in fields]


@given(st.lists(st.text(), min_size=1, max_size=6).filter(lambda items: items != [""]))
def test_an_order_comes_back(items):
    assert split_shown(join_shown(items)) == tuple(items)


def test_answers_of_other_kinds_are_read():
    xml = to_xml([("q", "x")]).replace(
        "</Answer>",
        "</Answer><Answer><QuestionIdentifier>r</QuestionIdentifier><SelectionIdentifier>s1"
        "</SelectionIdentifier><SelectionIdentifier>s2</SelectionIdentifier></Answer>",
    )
    assert from_xml(xml) == [("q", "x"), ("r", "s1"), ("r", "s2")]


@pytest.mark.parametrize(
    ("xml", "said"),
    [
        ("", "not well-formed"),
        ("<a/>", "root element is a; QuestionFormAnswers is allowed"),
        ('<!DOCTYPE a [<!ENTITY b "c">]>' + to_xml([]).partition("?>")[2], "document type"),
        ("<QuestionFormAnswers><Answer/></QuestionFormAnswers>", "Answer is no Answer with a"),
        ("<QuestionFormAnswers><Reply/></QuestionFormAnswers>", "Reply is no Answer with a"),
    ],
)
def test_what_are_no_answers(xml, said):
    with pytest.raises(ValueError, match=said):
        from_xml(xml)


def test_a_whole_answer():
    assert check(ASKED, [*RIGHT.items(), ("assignmentId", "A1")]) == []
    assert tuple_answers(ASKED, [*RIGHT.items()]) == (
        TupleAnswer("t1", "a", "d%", ("b;c", "d%", "a"), 12.5),
        TupleAnswer("t2", "b", "a", (), None),
    )


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("best-t1", "", "t1: best is missing; choose one of 'a', 'b;c', 'd%'"),
        ("worst-t2", "c", "t2: worst is 'c'; allowed: 'a', 'b'"),
        ("worst-t1", "a", "t1: best and worst are both 'a'; they must be different items"),
        ("shown-t1", "a;a;d%25", "t1: shown is 'a;a;d%25'; it must be"),
        ("shown-t1", "a;b;c;d%25", "t1: shown is"),
        ("seconds-t1", "nan", "t1: seconds is 'nan'; a number from 0 is allowed"),
        ("seconds-t1", "-1", "t1: seconds is '-1'"),
        ("seconds-t1", "soon", "t1: seconds is 'soon'"),
    ],
)
def test_one_fault_is_one_message(field, value, said):
    fields = [*(RIGHT | {field: value}).items()]
    problems = check(ASKED, fields)
    assert len(problems) == 1
    assert problems[0].startswith(said)
    with pytest.raises(ValueError, match=r"^t\d: "):
        tuple_answers(ASKED, fields)


def test_all_faults_are_named():
    assert len(check(ASKED, [])) == 4


def test_a_field_that_comes_twice_is_a_fault():
    fields = [("best-t1", "b;c"), *RIGHT.items()]
    assert check(ASKED, fields) == ["best-t1 is there 2 times; once is allowed"]


def test_a_comment_is_stripped():
    assert comment([("comment", " gut \r\n")]) == "gut"
    assert comment([]) == ""


@pytest.mark.parametrize(
    "script",
    [
        "",
        "nonsense",
        "{}",
        "[1]",
        "null",
        '[{"tuple_id": "t", "group": "g"}]',
        '[{"tuple_id": "t", "group": "g", "items": "ab"}]',
        '[{"tuple_id": "t", "group": "g", "items": [1]}]',
        "[" * 100_000,
    ],
)
def test_other_peoples_pages_expect_nothing(script):
    assert expected_in_page(f'<p><script id="giccs-tuples">{script}</script>') == ()


def test_other_peoples_questions_expect_nothing():
    assert expected(write_html_question("<form><input name=a></form>")) == ()
    base = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
    form = f'<QuestionForm xmlns="{base}/2017-11-06/QuestionForm.xsd"/>'
    assert expected(form) == ()
